// engine/system-calls.ts — time and randomness as recorded answers, under the reference's reserved activity names.
//
// A new call is answered within its turn: the schedule and its completion stand in the same commit, and the history is
// the one that the reference would have written with a worker's help.

export const SYSTEM_CALL_PREFIX = "__duroxide_syscall:";
export const NEW_GUID = `${SYSTEM_CALL_PREFIX}new_guid`;
export const UTC_NOW_MS = `${SYSTEM_CALL_PREFIX}utc_now_ms`;
/** Reads the store, which the engine does not: the runtime answers it. */
export const GET_KV_VALUE = `${SYSTEM_CALL_PREFIX}get_kv_value`;

export function isInlineCall(activityName: string): boolean {
  return activityName === NEW_GUID || activityName === UTC_NOW_MS;
}

export function inlineResult(activityName: string, nowMs: number, newGuid: () => string): string {
  return activityName === NEW_GUID ? newGuid() : String(nowMs);
}
