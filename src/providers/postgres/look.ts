// providers/postgres/look.ts — looks for work, and again where others were in the way: null must mean that there is none.
//
//   L1. A claim passes over what somebody else has locked at that moment. He may be taking it, or only touching it; so whoever
//       got nothing looks again, and this time waits for him. Most likely it was taken: who can wait for other work lets a moment
//       pass first.
//   L2. Nobody waits for long: the next look takes what else is there. And not for ever: others may be in the way without end.
//       After some looks the answer is that it is worth another one soon (`isPassed`).
//   L3. What was found and set aside, because nobody can read it, is no reason to stop looking.

import { isLockTimeout } from "./driver-errors.js";

/** What a look found, and when it is worth another one. */
export interface Look<T> {
  readonly found: T | null;
  readonly nextAt: number | null;
  /** Nothing was there for anybody who wants the same. */
  readonly isEmpty: boolean;
}

/** One claim's answer to one fetch. */
export interface Claimed<T> extends Look<T> {
  /** Others had something locked. */
  readonly isPassed: boolean;
  /** Something could not be read. */
  readonly isAside: boolean;
}

/**
 * `sure`: whoever got nothing looks until he is sure that there is nothing. `once`: he can wait for another moment. `again`: he
 * has waited for it.
 */
export type Patience = "sure" | "once" | "again";

const MOST_LOOKS = 5;

/** `claim` takes what is there; when told to, it waits first for what somebody else has locked. */
export async function lookUntilSure<T>(
  patience: Patience,
  claim: (isWaiting: boolean) => Promise<Claimed<T>>,
): Promise<Claimed<T>> {
  const mostLooks = patience === "sure" ? MOST_LOOKS : 1;
  let isWaiting = patience === "again"; // L1
  for (let looks = 0; looks < mostLooks; ) {
    const claimed: Claimed<T> | null = await claim(isWaiting).catch((error: unknown) => {
      if (isLockTimeout(error)) return null; // L2
      throw error;
    });
    const isPassed: boolean = claimed === null || claimed.isPassed;
    if (claimed !== null && (claimed.found !== null || !(isPassed || claimed.isAside))) return claimed;
    isWaiting = claimed !== null && isPassed; // L1
    if (isPassed) looks += 1; // L3
  }
  return { found: null, nextAt: null, isEmpty: false, isPassed: true, isAside: false };
}

/** The places of fetches that want the same, and so can share a claim. */
export function groupedBy<T>(calls: readonly T[], wishOf: (call: T) => object): Iterable<readonly number[]> {
  const groups = new Map<string, number[]>();
  for (const [index, call] of calls.entries()) {
    const key = JSON.stringify(wishOf(call));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [index]);
    else group.push(index);
  }
  return groups.values();
}
