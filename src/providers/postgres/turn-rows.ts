// providers/postgres/turn-rows.ts — turns as `ack_turns` takes them: lists of JSON rows, each with the number of its call.

import type { Event } from "../../history/event.js";
import { toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import type { TurnCommit } from "../../provider/provider.js";
import { activityRow, messageRow, scheduledRow } from "./work-rows.js";

/** A turn that is to be committed. */
export interface TurnCall {
  readonly lockToken: string;
  readonly turn: TurnCommit;
  /** Its events, encoded. */
  readonly events: readonly { readonly id: number; readonly type: string; readonly data: string }[];
  readonly bytes: number;
}

interface ValueRow {
  readonly key: string | null;
  readonly value: string | null;
  readonly at: number;
  readonly all: boolean;
}

/** The parameters of `ack_turns` from `p_turns` on. What nobody needs is null. */
export function turnRows(calls: readonly TurnCall[], now: number): readonly (string | null)[] {
  return [
    JSON.stringify(calls.map(turnRow)),
    list(calls, ({ events }) => events),
    list(calls, ({ turn }) => customStatus(turn.events)),
    list(calls, ({ turn }) => changedValues(turn.events, now)),
    list(calls, ({ turn }) => turn.workerItems.map(activityRow)),
    list(calls, ({ turn }) => turn.orchestratorItems.map((item) => messageRow(item, now))),
    list(calls, ({ turn }) => turn.cancelledActivities.map(scheduledRow)),
    list(calls, ({ turn }) => turn.cancelledTimers.map(scheduledRow)),
  ];
}

function turnRow({ lockToken, turn: { executionId, metadata } }: TurnCall, call: number): object {
  const { pinnedVersion: pin } = metadata;
  return {
    call,
    token: lockToken,
    execution: executionId,
    name: toNullableColumn(metadata.orchestrationName),
    version: toNullableColumn(metadata.orchestrationVersion),
    parent: toNullableColumn(metadata.parentInstanceId),
    status: metadata.status ?? null,
    output: toNullableColumn(metadata.output),
    major: pin?.major ?? null,
    minor: pin?.minor ?? null,
    patch: pin?.patch ?? null,
  };
}

/** `n` is the order among all, `call` whose it is. */
function list(calls: readonly TurnCall[], rowsOf: (call: TurnCall) => readonly object[]): string | null {
  const rows = calls.flatMap((each, call) => rowsOf(each).map((row) => ({ call, ...row })));
  return rows.length === 0 ? null : JSON.stringify(rows.map((row, n) => ({ n, ...row })));
}

/** The last one of a turn counts. */
function customStatus(events: readonly Event[]): readonly { readonly status: string | null }[] {
  const last = events.findLast((event) => event.type === "CustomStatusUpdated");
  return last?.type === "CustomStatusUpdated" ? [{ status: toNullableColumn(last.status) }] : [];
}

/** What a turn comes to: whether everything was cleared, and then the last change of each key. */
function changedValues(events: readonly Event[], now: number): readonly ValueRow[] {
  const keys = new Map<string, ValueRow>();
  let isCleared = false;
  for (const event of events) {
    if (event.type === "KeyValueSet") {
      const at = Math.trunc(event.lastUpdatedAtMs);
      keys.set(event.key, { key: toColumn(event.key), value: toColumn(event.value), at, all: false });
    } else if (event.type === "KeyValueCleared") {
      keys.set(event.key, { key: toColumn(event.key), value: null, at: now, all: false });
    } else if (event.type === "KeyValuesCleared") {
      keys.clear();
      isCleared = true;
    }
  }
  const everything: ValueRow = { key: null, value: null, at: now, all: true };
  return isCleared ? [everything, ...keys.values()] : [...keys.values()];
}
