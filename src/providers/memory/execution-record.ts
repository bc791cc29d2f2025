// providers/memory/execution-record.ts — one execution: its status and its append-only history.

import type { Event, EventOf } from "../../history/event.js";
import type { ExecutionMetadata, ExecutionStatus, SemVer } from "../../provider/provider.js";

export class ExecutionRecord {
  status: ExecutionStatus = "Running";
  output: string | null = null;
  completedAt: number | null = null;
  pinnedVersion: SemVer | null = null;
  /** Ascending by event id. */
  readonly #history: Event[] = [];

  constructor(
    readonly executionId: number,
    readonly startedAt: number,
  ) {}

  get isRunning(): boolean {
    return this.status === "Running";
  }

  get eventCount(): number {
    return this.#history.length;
  }

  /** A copy: what a fetch has handed out does not grow under its reader. */
  history(): readonly Event[] {
    return this.#history.slice();
  }

  findStarted(): EventOf<"OrchestrationStarted"> | null {
    for (const event of this.#history) if (event.type === "OrchestrationStarted") return event;
    return null;
  }

  has(eventId: number): boolean {
    return this.#history[indexOfEvent(this.#history, eventId)]?.eventId === eventId;
  }

  /** The events must have passed `checkEvents`. */
  append(events: readonly Event[]): void {
    for (const event of events) this.#history.splice(indexOfEvent(this.#history, event.eventId), 0, event);
  }

  apply(metadata: ExecutionMetadata, now: number): void {
    if (metadata.pinnedVersion !== undefined) this.pinnedVersion = metadata.pinnedVersion;
    if (metadata.status === undefined) return;
    this.status = metadata.status;
    this.output = metadata.output ?? null;
    this.completedAt = this.isRunning ? null : now;
  }
}

/** Where the event is, or would be. New events go to the end, so that is where to look first. */
function indexOfEvent(history: readonly Event[], eventId: number): number {
  const last = history.at(-1);
  if (last === undefined || last.eventId < eventId) return history.length;
  let low = 0;
  let high = history.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (history[middle]!.eventId < eventId) low = middle + 1;
    else high = middle;
  }
  return low;
}
