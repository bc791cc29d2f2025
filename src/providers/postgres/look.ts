// providers/postgres/look.ts — looks for work, and again where others were in the way: null must mean that there is none.
//
//   L1. A claim passes over what somebody else has locked at that moment. He may be taking it, or only touching it; so whoever
//       got nothing looks again, and this time waits for him.
//   L2. Others may be in the way without end, or hold a lock and say nothing. They must not keep us: after some looks the
//       answer is that it is worth another one soon.
//   L3. What was found and set aside, because nobody can read it, is no reason to stop looking.

import type { Clock } from "../../clock.js";

/** What a look found, and when it is worth another one. */
export interface Look<T> {
  readonly found: T | null;
  readonly nextAt: number | null;
}

/** One claim's answer to one fetch. */
export interface Claimed<T> extends Look<T> {
  /** Others had something locked. */
  readonly isPassed: boolean;
  /** Something could not be read. */
  readonly isAside: boolean;
}

const MOST_LOOKS = 5;
const LOOK_AGAIN_MS = 10;

/** `claim` takes what is there; when told to, it waits first for what somebody else has locked. */
export async function lookUntilSure<T>(
  clock: Clock,
  claim: (isWaiting: boolean) => Promise<Claimed<T>>,
): Promise<Look<T>> {
  let claimed = await claim(false);
  for (let look = 1; claimed.found === null; ) {
    if (claimed.isPassed) look += 1;
    else if (!claimed.isAside) break;
    if (look > MOST_LOOKS) return { found: null, nextAt: clock.now() + LOOK_AGAIN_MS }; // L2
    claimed = await claim(claimed.isPassed); // L1, L3
  }
  return claimed;
}
