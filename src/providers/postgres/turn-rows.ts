// providers/postgres/turn-rows.ts — turns as `commit_turns` takes them: columns of the rows to be written. Turns count from 1.

import { encodeWorkItem } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import type { ActivityExecute } from "../../history/work-item.js";
import { toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import type { ExecutionMetadata, SemVerRange, TurnCommit } from "../../provider/provider.js";
import { bigintArray, integerArray, textArray } from "./array-parameter.js";
import type { Lock } from "./lock-calls.js";
import type { SqlValue } from "./session.js";
import { ALL_VERSIONS, areSameVersions, versionColumns } from "./versions.js";
import { messageRow, scheduledRow, tagColumn } from "./work-rows.js";

/** A turn that is to be committed. */
export interface TurnCall {
  readonly lockToken: string;
  readonly lock: Lock<string>;
  readonly turn: TurnCommit;
  /** Its events, encoded. */
  readonly eventData: readonly string[];
  readonly bytes: number;
  /** Null: its instance is locked. */
  readonly step: Step | null;
}

/** What a turn needs to be a step, or a beginning (S9, S10 of `0001-tables.ts`). */
export interface Step {
  /** The secret of the last commit. Null: there must be nothing of the instance. */
  readonly expected: string | null;
  /** The activities whose outcomes it answers. */
  readonly done: readonly Lock<number>[];
  /** What whoever has computed it replays. */
  readonly versions: SemVerRange;
}

/** An activity that a turn schedules. */
export interface ScheduledActivity {
  readonly turn: number;
  readonly item: ActivityExecute;
  readonly text: string;
  /** It is of the execution that has scheduled it, and that one goes on. */
  readonly isWanted: boolean;
}

/** The same, and by which lock somebody wants it at once. */
export interface OfferedActivity extends ScheduledActivity {
  readonly wish: { readonly secret: string; readonly until: number } | null;
}

interface ValueRow {
  readonly key: string | null;
  readonly value: string | null;
  readonly at: number;
  readonly all: boolean;
}

export function activitiesOf(calls: readonly TurnCall[]): readonly ScheduledActivity[] {
  return calls.flatMap(({ turn, lock }, index) => {
    const { workerItems, executionId, metadata } = turn;
    const goesOn = metadata.status === undefined || metadata.status === "Running";
    return workerItems.map((item) => ({
      turn: index + 1,
      item,
      text: encodeWorkItem(item),
      isWanted: goesOn && item.executionId === executionId && toColumn(item.instance) === lock.id,
    }));
  });
}

/** The parameters of `commit_turns` from `p_ids` to `p_event_data`. Steps come last but for beginnings. */
export function turnColumns(calls: readonly TurnCall[]): readonly SqlValue[] {
  const heads = calls.map(({ turn }) => turn.metadata).filter(saysSomething);
  let head = 0;
  const ordinals = calls.map(({ turn }) => (saysSomething(turn.metadata) ? ++head : null));
  const turnOfEvent = calls.flatMap(({ turn }, index) => turn.events.map(() => index + 1));
  const events = calls.flatMap(({ turn }) => turn.events);
  return [
    textArray(calls.map(({ lock }) => lock.id)),
    textArray(calls.map(({ lock }) => lock.secret)),
    bigintArray(calls.map(({ turn }) => turn.executionId)),
    integerArray(ordinals),
    ...stepColumns(calls),
    textArray(heads.map(({ orchestrationName }) => toNullableColumn(orchestrationName))),
    textArray(heads.map(({ orchestrationVersion }) => toNullableColumn(orchestrationVersion))),
    textArray(heads.map(({ parentInstanceId }) => toNullableColumn(parentInstanceId))),
    textArray(heads.map(({ status }) => status ?? null)),
    textArray(heads.map(({ output }) => toNullableColumn(output))),
    bigintArray(heads.map(({ pinnedVersion }) => pinnedVersion?.major ?? null)),
    bigintArray(heads.map(({ pinnedVersion }) => pinnedVersion?.minor ?? null)),
    bigintArray(heads.map(({ pinnedVersion }) => pinnedVersion?.patch ?? null)),
    integerArray(turnOfEvent),
    bigintArray(events.map(({ eventId }) => eventId)),
    textArray(events.map(({ type }) => type)),
    textArray(calls.flatMap(({ eventData }) => eventData)),
  ];
}

/** From `p_locked` to `p_max`. */
function stepColumns(calls: readonly TurnCall[]): readonly SqlValue[] {
  const expected: string[] = [];
  const done: Lock<number>[] = [];
  const of: number[] = [];
  let versions: SemVerRange | null = null;
  let locked = 0;
  for (const [index, { step }] of calls.entries()) {
    if (step === null) {
      locked += 1;
      continue;
    }
    versions = versions === null || areSameVersions(versions, step.versions) ? step.versions : ALL_VERSIONS;
    if (step.expected !== null) expected.push(step.expected);
    for (const lock of step.done) {
      done.push(lock);
      of.push(index + 1);
    }
  }
  const { min, max } = versions ?? ALL_VERSIONS;
  return [
    locked,
    textArray(expected),
    bigintArray(done.map(({ id }) => id)),
    textArray(done.map(({ secret }) => secret)),
    integerArray(of),
    versionColumns(min),
    versionColumns(max),
  ];
}

/** From `p_act_turns` to `p_act_until`. */
export function activityColumns(activities: readonly OfferedActivity[]): readonly SqlValue[] {
  return [
    integerArray(activities.map(({ turn }) => turn)),
    textArray(activities.map(({ item }) => toColumn(item.instance))),
    bigintArray(activities.map(({ item }) => item.executionId)),
    bigintArray(activities.map(({ item }) => item.id)),
    textArray(activities.map(({ item }) => tagColumn(item.tag))),
    textArray(activities.map(({ item }) => toNullableColumn(item.sessionId))),
    textArray(activities.map(({ text }) => text)),
    textArray(activities.map(({ wish }) => wish?.secret ?? null)),
    bigintArray(activities.map(({ wish }) => wish?.until ?? null)),
  ];
}

/** From `p_custom` on: what few turns have, as rows of JSON. What nobody has is null. */
export function otherRows(calls: readonly TurnCall[], now: number): readonly (string | null)[] {
  return [
    list(calls, ({ turn }) => customStatus(turn.events)),
    list(calls, ({ turn }) => changedValues(turn.events, now)),
    list(calls, ({ turn }) => turn.orchestratorItems.map((item) => messageRow(item, now))),
    list(calls, ({ turn }) => turn.cancelledActivities.map(scheduledRow)),
    list(calls, ({ turn }) => turn.cancelledTimers.map(scheduledRow)),
  ];
}

const NOTHING: readonly never[] = Object.freeze([]);

function isValueEvent({ type }: Event): boolean {
  return type === "KeyValueSet" || type === "KeyValueCleared" || type === "KeyValuesCleared";
}

function saysSomething({ orchestrationName, orchestrationVersion, status, pinnedVersion }: ExecutionMetadata): boolean {
  const isNamed = orchestrationName !== undefined && orchestrationVersion !== undefined;
  return isNamed || status !== undefined || pinnedVersion !== undefined;
}

/** `n` is the order among all, `turn` whose it is. */
function list(calls: readonly TurnCall[], rowsOf: (call: TurnCall) => readonly object[]): string | null {
  const rows: object[] = [];
  for (const [index, call] of calls.entries()) {
    for (const row of rowsOf(call)) rows.push({ n: rows.length, turn: index + 1, ...row });
  }
  return rows.length === 0 ? null : JSON.stringify(rows);
}

/** The last one of a turn counts. */
function customStatus(events: readonly Event[]): readonly { readonly status: string | null }[] {
  const last = events.findLast((event) => event.type === "CustomStatusUpdated");
  return last?.type === "CustomStatusUpdated" ? [{ status: toNullableColumn(last.status) }] : NOTHING;
}

/** What a turn comes to: whether everything was cleared, and then the last change of each key. */
function changedValues(events: readonly Event[], now: number): readonly ValueRow[] {
  if (!events.some(isValueEvent)) return NOTHING;
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
