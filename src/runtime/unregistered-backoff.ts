// runtime/unregistered-backoff.ts — how long work waits that nobody here can run: a newer version may be on its way.
//
//   U1. Giving back what one cannot run is no attempt at it: it never brings work closer to being poison for those who can.
//   U2. What this runtime has given back too often, over minutes, and nobody has moved on since, nobody can run: only then
//       is it failed, naming what is missing.

export { GivenBack, growingDelayMs as unregisteredDelayMs } from "../provider/kit/given-back.js";

/** How long work is left alone that nobody here can run: `baseMs` at first, doubled each time, at most `maxMs`. */
export interface UnregisteredBackoff {
  readonly baseMs: number;
  readonly maxMs: number;
}
