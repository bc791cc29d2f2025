// providers/postgres/work-rows.ts — messages and activities as the functions of the schema take them: rows of JSON.

import { encodeWorkItem } from "../../history/codec.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import { isStartLike, targetInstance } from "../../history/work-item.js";
import type { Effects } from "../../provider/kit/effects.js";
import { toColumn, toNullableColumn } from "../../provider/kit/text-column.js";
import type { ScheduledId, TagFilter } from "../../provider/provider.js";

/** A message but for its text, which not everybody needs. */
export interface MessageFacts {
  readonly instance: string;
  readonly due: number;
  readonly visible: number;
  readonly kind: "start" | "queue" | "timer" | "other";
  readonly parent: string | null;
  readonly timer_execution: number | null;
  readonly timer: number | null;
}

export interface MessageRow extends MessageFacts {
  readonly item: string;
}

export interface ActivityRow {
  readonly instance: string;
  readonly execution: number;
  readonly id: number;
  readonly tag: string;
  readonly session: string | null;
  readonly item: string;
}

/** The time that is `delayMs` away, as an integer that columns can hold. */
export function timeIn(now: number, delayMs: number): number {
  return Math.min(now + Math.ceil(delayMs), Number.MAX_SAFE_INTEGER);
}

export function messageRow(item: OrchestratorItem, now: number): MessageRow {
  return { ...messageFacts(item, now), item: encodeWorkItem(item) };
}

export function messageFacts(item: OrchestratorItem, now: number, delayMs = 0): MessageFacts {
  const due = item.type === "TimerFired" ? item.fireAtMs : now;
  const isTimer = item.type === "TimerFired";
  return {
    instance: toColumn(targetInstance(item)),
    due,
    visible: Math.max(due, timeIn(now, delayMs)),
    kind: kindOf(item),
    parent: toNullableColumn(isStartLike(item) ? item.parentInstance : null),
    timer_execution: isTimer ? item.executionId : null,
    timer: isTimer ? item.id : null,
  };
}

function kindOf(item: OrchestratorItem): MessageFacts["kind"] {
  if (isStartLike(item)) return "start";
  if (item.type === "QueueMessage") return "queue";
  return item.type === "TimerFired" ? "timer" : "other";
}

export function activityRow(item: ActivityExecute): ActivityRow {
  return {
    instance: toColumn(item.instance),
    execution: item.executionId,
    id: item.id,
    tag: tagColumn(item.tag),
    session: toNullableColumn(item.sessionId),
    item: encodeWorkItem(item),
  };
}

export function scheduledRow({ instance, executionId, id }: ScheduledId): object {
  return { instance: toColumn(instance), execution: executionId, id };
}

/** The tags that the filter lets through, as columns. Null: any. */
export function wantedTags(filter: TagFilter): readonly string[] | null {
  switch (filter.kind) {
    case "any":
      return null;
    case "none":
      return [];
    case "default-only":
      return [NO_TAG];
    case "tags":
      return filter.tags.map(tagColumn);
    case "default-and":
      return [NO_TAG, ...filter.tags.map(tagColumn)];
  }
}

const NO_TAG = "";

export function tagColumn(tag: string | undefined): string {
  return tag === undefined ? NO_TAG : `=${toColumn(tag)}`;
}

/** What a message that was sent makes possible. */
export function noteMessage(effects: Effects, item: OrchestratorItem, visibleAt: number, now: number): void {
  noteReady(effects, visibleAt, now);
  if (isStartLike(item)) effects.changed(targetInstance(item));
}

/** Also of what was told before: whoever looked while the instance was locked has seen the end of its lock instead. */
export function noteReady(effects: Effects, readyAt: number | null, now: number): void {
  if (readyAt === null) return;
  if (readyAt <= now) effects.readyMessages += 1;
  else effects.messageAt(readyAt);
}
