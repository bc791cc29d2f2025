// engine/history-index.ts — what the history of one execution says, kept up event by event. No rescans.
//
//   H1. Ids are strictly increasing and the first event is OrchestrationStarted; anything else is a broken history.
//   H2. A schedule is outstanding until its one answer is recorded. A cancel request does not answer it: the answer
//       may have won the race.

import type { Event } from "../history/event.js";
import { childInstance } from "./action.js";
import { NondeterminismError } from "./nondeterminism.js";

/** What can be answered by a message that names its schedule. */
export type AnswerableKind = "activity" | "timer" | "suborchestration";

export interface Outstanding {
  readonly kind: AnswerableKind;
  /** For a child: its full instance id. */
  readonly childInstance: string | null;
  isCancelRequested: boolean;
}

/** The four families of cancel breadcrumbs, by the names that diagnostics use. */
export type BreadcrumbFamily = "activities" | "sub-orchestrations" | "external waits" | "persistent waits";

export interface Breadcrumb {
  readonly family: BreadcrumbFamily;
  readonly source: number;
}

export const DROPPED_FUTURE = "dropped_future";

/** A rough guess at what an event costs beside its texts. */
const BYTES_PER_EVENT = 160;

export class HistoryIndex {
  readonly #instance: string;
  readonly #kinds = new Map<number, AnswerableKind>();
  readonly outstanding = new Map<number, Outstanding>();
  #uncheckedDrops: Breadcrumb[] = [];
  /** Null: none yet. Most executions give nothing up. */
  #breadcrumbSources: Set<number> | null = null;
  #last: Event | null = null;
  #cancelReason: string | null = null;
  #terminal: Event | null = null;
  #bytes = 0;
  #count = 0;
  #idsTakenUpTo: number | null = null;

  constructor(instance: string) {
    this.#instance = instance;
  }

  get lastEvent(): Event | null {
    return this.#last;
  }

  get nextEventId(): number {
    return Math.max(this.#last?.eventId ?? 0, this.#idsTakenUpTo ?? 0) + 1;
  }

  /** The first reason that somebody gave. */
  get cancelReason(): string | null {
    return this.#cancelReason;
  }

  get terminal(): Event | null {
    return this.#terminal;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#count;
  }

  /** Recorded decisions to drop something, which code that was led through the history must have taken again. */
  get uncheckedDrops(): readonly Breadcrumb[] {
    return this.#uncheckedDrops;
  }

  dropsChecked(): void {
    this.#uncheckedDrops = [];
  }

  /** For a history that is broken: whatever is appended must not collide with what stands in the store. */
  startAfter(eventId: number): void {
    this.#idsTakenUpTo = eventId;
  }

  kindOf(scheduleId: number): AnswerableKind | undefined {
    return this.#kinds.get(scheduleId);
  }

  hasBreadcrumb(source: number): boolean {
    return this.#breadcrumbSources?.has(source) ?? false;
  }

  /** @throws NondeterminismError for a history that cannot be (H1) */
  add(event: Event): void {
    this.#checkOrder(event);
    this.#last = event;
    this.#count += 1;
    this.#bytes += BYTES_PER_EVENT + textLength(event);
    switch (event.type) {
      case "ActivityScheduled":
        return this.#schedule(event, "activity", null);
      case "TimerCreated":
        return this.#schedule(event, "timer", null);
      case "SubOrchestrationScheduled":
        return this.#schedule(event, "suborchestration", childInstance(this.#instance, event.instance));
      case "ActivityCompleted":
      case "ActivityFailed":
      case "TimerFired":
      case "SubOrchestrationCompleted":
      case "SubOrchestrationFailed":
        if (event.sourceEventId !== null) this.outstanding.delete(event.sourceEventId);
        return;
      case "ActivityCancelRequested":
        return this.#breadcrumb(event, event.reason, "activities");
      case "SubOrchestrationCancelRequested":
        return this.#breadcrumb(event, event.reason, "sub-orchestrations");
      case "ExternalSubscribedCancelled":
        return this.#breadcrumb(event, event.reason, "external waits");
      case "ExternalSubscribedPersistentCancelled":
        return this.#breadcrumb(event, event.reason, "persistent waits");
      case "OrchestrationCancelRequested":
        this.#cancelReason ??= event.reason;
        return;
      case "OrchestrationCompleted":
      case "OrchestrationFailed":
      case "OrchestrationContinuedAsNew":
        this.#terminal ??= event;
        return;
      default:
        return;
    }
  }

  #checkOrder(event: Event): void {
    if (this.#idsTakenUpTo !== null) return;
    if (this.#last === null) {
      if (event.type !== "OrchestrationStarted") {
        throw new NondeterminismError("corrupted history: first event must be OrchestrationStarted");
      }
      if (event.eventId < 1) {
        throw new NondeterminismError(`corrupted history: event id ${event.eventId} is not positive`);
      }
      return;
    }
    if (event.eventId <= this.#last.eventId) {
      throw new NondeterminismError(
        `corrupted history: event ${event.eventId} (${event.type}) follows event ${this.#last.eventId}: ids must increase`,
      );
    }
  }

  #schedule(event: Event, kind: AnswerableKind, child: string | null): void {
    this.#kinds.set(event.eventId, kind);
    this.outstanding.set(event.eventId, { kind, childInstance: child, isCancelRequested: false });
  }

  #breadcrumb(event: Event, reason: string, family: BreadcrumbFamily): void {
    const source = event.sourceEventId;
    if (source === null) return;
    if (reason === DROPPED_FUTURE) this.#uncheckedDrops.push({ family, source });
    this.#breadcrumbSources ??= new Set();
    this.#breadcrumbSources.add(source);
    const schedule = this.outstanding.get(source);
    if (schedule !== undefined) schedule.isCancelRequested = true;
  }
}

function textLength(event: Event): number {
  switch (event.type) {
    case "OrchestrationStarted":
    case "ActivityScheduled":
    case "SubOrchestrationScheduled":
    case "OrchestrationChained":
      return event.name.length + event.input.length;
    case "ActivityCompleted":
    case "SubOrchestrationCompleted":
      return event.result.length;
    case "ExternalEvent":
    case "ExternalEventPersistent":
      return event.name.length + event.data.length;
    case "KeyValueSet":
      return event.key.length + event.value.length;
    case "CustomStatusUpdated":
      return event.status?.length ?? 0;
    default:
      return 0;
  }
}
