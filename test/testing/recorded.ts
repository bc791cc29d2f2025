// test/testing/recorded.ts — histories that code writes when it is run, turn by turn.

import type { OrchestrationDefinition } from "../../src/define.js";
import { orchestration } from "../../src/define.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { type ReplayOptions, replay } from "../../src/testing/replay.js";
import type { Replayed } from "../../src/testing/replay-check.js";
import { type Code, type Drive, Driver } from "../engine/drive.js";

/** The history after the first turn and one more for each batch. */
export async function recorded(
  code: Code,
  batches: readonly (readonly OrchestratorItem[])[] = [],
  drive: Omit<Drive, "code"> = {},
): Promise<Event[]> {
  const driver = new Driver({ ...drive, code });
  for (const batch of [[], ...batches]) await driver.turn(...batch);
  return withTimersAsCreated(driver.history);
}

/** As the history names it. */
export function codeOf(code: Code, version?: string): OrchestrationDefinition {
  return orchestration(
    { name: "TestOrch", ...(version === undefined ? {} : { version }) },
    code,
  ) as OrchestrationDefinition;
}

/** The engine's tests do not care when a timer fires; a valid history does. */
function withTimersAsCreated(events: readonly Event[]): Event[] {
  return events.map((event) => {
    const source = event.type === "TimerFired" ? events.find(({ eventId }) => eventId === event.sourceEventId) : null;
    return source?.type === "TimerCreated" ? { ...event, fireAtMs: source.fireAtMs } : event;
  });
}

/** Replays code under the name that recorded histories give it. */
export async function replayed(history: readonly Event[], code: Code, options?: ReplayOptions): Promise<Replayed> {
  return replay(history, codeOf(code), options);
}
