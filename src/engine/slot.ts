// engine/slot.ts — one scheduled thing and the task that stands for it, from the call to the outcome.
//
//   called → (bound to its event) → answered, or dropped
//
//   SL1. An answer reaches the task only if the slot was not dropped before.
//   SL2. A wait is delivered only when it has a value and somebody listens; until then the value is not consumed.

import { ActivityFailedError, OrchestrationFailedError, TaskCancelledError } from "../errors.js";
import type { ErrorDetails } from "../history/error-details.js";
import { type Outcome, Task, type TaskOwner } from "./durable-task.js";
import type { LaneWait } from "./lanes.js";
import type { Droppable, Scope } from "./scope.js";

export type SlotKind = "activity" | "timer" | "subOrchestration" | "event" | "queue";

/** The engine, as a slot sees it. */
export interface SlotHost {
  /** Null, or the error for whoever listens when code may not run. */
  refuse(): Error | null;
  listened(slot: Slot): void;
  /** The slot has a value that nobody has seen yet. */
  accepted(slot: Slot): void;
  settled(slot: Slot): void;
  dropped(slot: Slot): void;
}

export class Slot implements TaskOwner, LaneWait, Droppable {
  readonly task: Task<unknown>;
  /** The event that records it, once there is one. */
  scheduleId: number | null = null;
  isListened = false;
  isDropped = false;
  /** Dropped by code that was re-run: whatever that asked for was committed long ago. */
  wasDroppedOnReplay = false;
  /** Of a sub-orchestration, once it is bound: its full instance id. */
  childInstance = "";
  #accepted: string | null = null;

  constructor(
    readonly host: SlotHost,
    readonly kind: SlotKind,
    /** Of the activity, orchestration, event or queue; empty for a timer. */
    readonly name: string,
    readonly scope: Scope,
    /** Turns the recorded text into what the code gets. A throw becomes the task's failure. */
    readonly decode: (text: string) => unknown,
  ) {
    this.task = new Task(this);
    scope.add(this);
  }

  get isSettled(): boolean {
    return this.task.outcome !== null;
  }

  /** A wait that only lacks a listener, or a delivery. */
  get isResolvable(): boolean {
    return this.#accepted !== null && !this.isSettled;
  }

  onListen(): Error | null {
    const refusal = this.host.refuse();
    if (refusal === null && !this.isListened && !this.isSettled) {
      this.isListened = true;
      this.host.listened(this);
    }
    return refusal;
  }

  onDrop(): void {
    if (this.host.refuse() === null) this.drop();
  }

  accept(data: string): void {
    this.#accepted = data;
    this.host.accepted(this);
  }

  /** Delivers what a lane assigned. */
  deliverAccepted(): void {
    this.complete(this.#accepted ?? "");
  }

  complete(text: string): void {
    this.#settle(outcomeOf(() => this.decode(text)));
  }

  fail(details: ErrorDetails): void {
    const error =
      this.kind === "activity"
        ? new ActivityFailedError(this.name, details)
        : new OrchestrationFailedError(this.childInstance, details);
    this.#settle({ status: "rejected", error });
  }

  /** Gives the work up. Whoever awaits it, now or later, gets a TaskCancelledError. */
  drop(): void {
    if (this.isSettled) return;
    this.isDropped = true;
    this.host.dropped(this);
    this.#settle({ status: "rejected", error: new TaskCancelledError(`${describe(this)} was cancelled.`) });
  }

  /** Gives the work up when no code is left to be told. */
  dropSilently(): void {
    if (this.isSettled) return;
    this.isDropped = true;
    this.host.dropped(this);
  }

  #settle(outcome: Outcome<unknown>): void {
    this.scope.remove(this);
    this.host.settled(this);
    this.task.settle(outcome);
  }
}

function outcomeOf(decode: () => unknown): Outcome<unknown> {
  try {
    return { status: "fulfilled", value: decode() };
  } catch (error) {
    return { status: "rejected", error };
  }
}

function describe(slot: Slot): string {
  switch (slot.kind) {
    case "activity":
      return `Activity '${slot.name}'`;
    case "timer":
      return "The timer";
    case "subOrchestration":
      return `Sub-orchestration '${slot.name}'`;
    case "event":
      return `The wait for event '${slot.name}'`;
    case "queue":
      return `The wait for a message of queue '${slot.name}'`;
  }
}
