// runtime/execution-ledger.ts — what the runtime itself must know of an execution, kept up event by event: how it
// started and ended, what is still out, how long it took. The engine has its own view; this one never judges, so that it
// can be kept of histories that the engine would refuse.
//
//   E1. Every event costs O(1). A warm execution's ledger grows by its new events and equals one made from scratch.

import { childInstance } from "../engine/action.js";
import { isInlineCall } from "../engine/system-calls.js";
import { type Event, type EventOf, isTerminal } from "../history/event.js";
import type { ParentLink } from "../history/work-item.js";
import { LimitUsage } from "./limit-usage.js";

export interface OpenChild {
  readonly name: string;
  /** The child's full instance id. */
  readonly instance: string;
  readonly scheduledAtMs: number;
  isCancelRequested: boolean;
}

interface OpenActivity {
  readonly isInline: boolean;
  isCancelRequested: boolean;
}

export class ExecutionLedger {
  /** How much of its limits the execution has used. */
  readonly usage = new LimitUsage();
  readonly #instance: string;
  readonly #activities = new Map<number, OpenActivity>();
  /** Null: none yet. So the next. */
  #timers: Set<number> | null = null;
  #children: Map<number, OpenChild> | null = null;
  #started: EventOf<"OrchestrationStarted"> | null = null;
  #terminal: Event | null = null;
  #lastEventId = 0;
  #turns = 0;
  #isAmongArrivals = false;

  constructor(instance: string, history: readonly Event[] = []) {
    this.#instance = instance;
    for (const event of history) this.add(event);
  }

  get started(): EventOf<"OrchestrationStarted"> | null {
    return this.#started;
  }

  /** The first event that ended the execution. */
  get terminal(): Event | null {
    return this.#terminal;
  }

  /** The highest so far. */
  get lastEventId(): number {
    return this.#lastEventId;
  }

  get eventCount(): number {
    return this.usage.historyEvents;
  }

  /** Batches of arrivals, the first turn included. Turns that brought nothing but arrivals merge with the next. */
  get turns(): number {
    return this.#turns;
  }

  get parent(): ParentLink | null {
    return this.#started === null ? null : parentLinkOf(this.#started);
  }

  /** Activities that nobody answered and nobody cancelled, oldest first. */
  activitiesInFlight(): number[] {
    return [...this.#activities].filter(([, activity]) => !activity.isCancelRequested).map(([id]) => id);
  }

  /** Oldest first. Timers that the code has dropped are among them: history does not tell. */
  timersInFlight(): number[] {
    return [...(this.#timers ?? [])];
  }

  /** Children that have neither ended nor been told to, oldest first. */
  childrenInFlight(): OpenChild[] {
    return [...(this.#children?.values() ?? [])].filter((child) => !child.isCancelRequested);
  }

  /** The child that this scheduling event started, as long as it has not ended. */
  child(scheduleId: number | null): OpenChild | null {
    return scheduleId === null ? null : (this.#children?.get(scheduleId) ?? null);
  }

  add(event: Event): void {
    this.#countTurn(event);
    this.usage.add(event);
    this.#lastEventId = Math.max(this.#lastEventId, event.eventId);
    if (isTerminal(event)) this.#terminal ??= event;
    if (event.type === "OrchestrationStarted") this.#start(event);
    else this.#trackOpenWork(event);
  }

  #start(event: EventOf<"OrchestrationStarted">): void {
    this.#started = event;
    this.#terminal = null;
    this.#activities.clear();
    this.#timers = null;
    this.#children = null;
  }

  #trackOpenWork(event: Event): void {
    const source = event.sourceEventId ?? 0;
    switch (event.type) {
      case "ActivityScheduled":
        this.#activities.set(event.eventId, { isInline: isInlineCall(event.name), isCancelRequested: false });
        break;
      case "TimerCreated":
        this.#timers ??= new Set();
        this.#timers.add(event.eventId);
        break;
      case "SubOrchestrationScheduled":
        this.#children ??= new Map();
        this.#children.set(event.eventId, {
          name: event.name,
          instance: childInstance(this.#instance, event.instance),
          scheduledAtMs: event.timestampMs,
          isCancelRequested: false,
        });
        break;
      case "ActivityCompleted":
      case "ActivityFailed":
        this.#activities.delete(source);
        break;
      case "TimerFired":
        this.#timers?.delete(source);
        break;
      case "SubOrchestrationCompleted":
      case "SubOrchestrationFailed":
        this.#children?.delete(source);
        break;
      case "ActivityCancelRequested":
        markCancelled(this.#activities.get(source));
        break;
      case "SubOrchestrationCancelRequested":
        markCancelled(this.#children?.get(source));
        break;
      default:
        break;
    }
  }

  #countTurn(event: Event): void {
    const isFirst = event.type === "OrchestrationStarted";
    const arrives = isFirst || this.#isArrival(event);
    if (isFirst) this.#turns = 1;
    else if (arrives && !this.#isAmongArrivals) this.#turns += 1;
    this.#isAmongArrivals = arrives;
  }

  /** System calls are, as a rule, answered within the turn that asks: those answers did not arrive. */
  #isArrival(event: Event): boolean {
    switch (event.type) {
      case "ActivityCompleted":
        return this.#activities.get(event.sourceEventId ?? 0)?.isInline !== true;
      case "ActivityFailed":
      case "TimerFired":
      case "SubOrchestrationCompleted":
      case "SubOrchestrationFailed":
      case "ExternalEvent":
      case "ExternalEventPersistent":
      case "OrchestrationCancelRequested":
        return true;
      default:
        return false;
    }
  }
}

/** Null where there is no parent. */
export function parentLinkOf(start: {
  readonly parentInstance?: string | null;
  readonly parentId?: number | null;
  readonly parentExecutionId?: number;
}): ParentLink | null {
  const { parentInstance, parentId, parentExecutionId } = start;
  if (parentInstance == null || parentId == null) return null;
  return { parentInstance, parentId, ...(parentExecutionId === undefined ? {} : { parentExecutionId }) };
}

function markCancelled(open: { isCancelRequested: boolean } | undefined): void {
  if (open !== undefined) open.isCancelRequested = true;
}
