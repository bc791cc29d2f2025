// test/engine/live-run.ts — code run anew on what a history says arrived: turn by turn, at the recorded times.

import { Execution } from "../../src/engine/execution.js";
import { NEW_GUID } from "../../src/engine/system-calls.js";
import type { OrchestrationHandler, StartedPayload, TurnResult } from "../../src/engine/turn.js";
import type { Event, EventOf } from "../../src/history/event.js";
import type { KvEntry } from "../../src/history/kv-entry.js";
import { nextBatch } from "./recorded-arrivals.js";

export interface LiveRun {
  readonly events: readonly Event[];
  /** After how many events each turn but the last was over. */
  readonly turnEnds: readonly number[];
  readonly result: TurnResult;
}

/** A history, and the code that is to write it again. */
export interface Recording {
  readonly events: readonly Event[];
  readonly handler: OrchestrationHandler;
  readonly kv: ReadonlyMap<string, KvEntry>;
}

/** Up to the recorded event at `until`, or the end of the execution. Arrivals of one time are one batch. */
export async function runLive({ events, handler, kv }: Recording, until = events.length): Promise<LiveRun> {
  const execution = executionOf({ events, handler, kv }, []);
  const produced: Event[] = [];
  const turnEnds: number[] = [];
  for (let arrived = 1; ; arrived = produced.length) {
    const nowMs = events[produced.length]!.timestampMs;
    const messages = nextBatch(events, arrived, (first, next) => first.timestampMs === next.timestampMs);
    const { events: added, result } = await execution.turn({ nowMs, messages });
    produced.push(...added);
    if (result.kind !== "waiting" || produced.length >= until) return { events: produced, turnEnds, result };
    if (added.length === 0) throw new Error(`after event ${produced.length} nothing happens that was recorded`);
    turnEnds.push(produced.length);
  }
}

/** An execution of that code over this much of the history. */
export function executionOf({ events, handler, kv }: Recording, history: readonly Event[]): Execution {
  const { started, instanceId: instance, executionId } = startOf(events);
  const guids = guidsOf(events);
  return new Execution({
    instance,
    executionId,
    handler,
    history,
    started: history.length === 0 ? started : null,
    kvSnapshot: kv,
    newGuid: () => guids.shift() ?? "00000000-0000-4000-8000-000000000000",
    trace: () => {},
  });
}

function startOf(events: readonly Event[]): { instanceId: string; executionId: number; started: StartedPayload } {
  const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...started } =
    events[0] as EventOf<"OrchestrationStarted">;
  return { instanceId, executionId, started };
}

/** In the order in which they were asked for. */
function guidsOf(events: readonly Event[]): string[] {
  const calls = new Set(events.flatMap((event) => (isGuidCall(event) ? [event.eventId] : [])));
  return events.flatMap((event) => {
    return event.type === "ActivityCompleted" && calls.has(event.sourceEventId ?? 0) ? [event.result] : [];
  });
}

function isGuidCall(event: Event): boolean {
  return event.type === "ActivityScheduled" && event.name === NEW_GUID;
}
