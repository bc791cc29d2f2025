// provider/kit/worker-wake.ts — which waiting fetches of activities a new row concerns.
//
// Work without a session suits any worker with the right tags, so one of them is woken for each row. Work of a session
// suits its owner only, and who that is only the store knows: everybody is woken, and looks.

import type { ActivityExecute } from "../../history/work-item.js";
import type { FetchWorkOptions } from "../provider.js";

/**
 * The group of a waiting fetch: those that may take each other's place for work without a session.
 *
 * @example
 * const group = workerGroup({ lockTimeoutMs: 30_000, tagFilter: { kind: "tags", tags: ["gpu"] } });
 */
export function workerGroup({ tagFilter, session }: FetchWorkOptions): string {
  const wants = tagFilter === undefined || tagFilter.kind === "default-only" ? "default" : JSON.stringify(tagFilter);
  return session === undefined ? wants : `session ${wants}`;
}

/**
 * How many fetches of each group to wake for a row that can be taken now.
 *
 * @example
 * const signal = new WorkSignal(systemClock);
 * signal.notify(fetchesToWake({ sessionId: "user-7" })); // all: only the session's owner can take it
 */
export function fetchesToWake({ sessionId }: Pick<ActivityExecute, "sessionId">): number {
  return sessionId === undefined ? 1 : Number.POSITIVE_INFINITY;
}
