// provider/kit/proven-starts.ts — which starts may have their first turn before they are stored.
//
// A turn may end its process: an endless loop, no memory left. If its start is stored first, its attempts are counted, and in the end it is
// poison. If not, nothing is lost, since nobody was answered; but whoever asks for it again would end the next process as well, for ever.
//
//   V1. An orchestration is proven when its first turn has been taken a hundred times in this process, and has not failed: what was called
//       poison was not run at all. After a crash nothing is proven: who starts again what has ended the process is most likely met here.
//   V2. One of 32 is stored first all the same: 64 in a row, since one alone would keep its neighbours waiting for nothing, of 2,048 that are
//       counted from a random one. So whatever ends the process is stored sooner or later, however much was proven before its turn came.
//   V3. Bounded: more orchestrations than that are not proven.

import type { ExecutionMetadata } from "../provider.js";

const ENOUGH = 100;
/** V2 */
const ROUND = 2_048;
const STORED_FIRST = 64;
const MOST_NAMES = 1_000;

/** Which starts may be committed together with their first turns: see `startsGoAhead` of the options. */
export type StartsGoAhead = "proven" | "always" | "never";

export const STARTS_GO_AHEAD: readonly StartsGoAhead[] = Object.freeze(["proven", "always", "never"]);

export class ProvenStarts {
  readonly #when: StartsGoAhead;
  readonly #newId: () => string;
  /** How often the first turn of each was taken, by name. */
  readonly #taken = new Map<string, number>();
  /** How many of a round have been asked for, beginning with a random one. V2 */
  #place: number | null = null;

  /** `newId`: for what must be random. */
  constructor(when: StartsGoAhead, newId: () => string) {
    this.#when = when;
    this.#newId = newId;
  }

  /** A turn has come to its end. V1 */
  taken({ orchestrationName: name, status }: ExecutionMetadata): void {
    if (name === undefined || status === "Failed") return;
    const before = this.#taken.get(name);
    if (before === undefined && this.#taken.size >= MOST_NAMES) return; // V3
    if (before !== ENOUGH) this.#taken.set(name, (before ?? 0) + 1);
  }

  /** Whether this start of it may have its turn before it is stored. Whoever asks again is told of the next place in the round. */
  mayGoAhead(name: string): boolean {
    if (this.#when !== "proven") return this.#when === "always";
    if (this.#taken.get(name) !== ENOUGH) return false; // V1
    const place = this.#place ?? numberIn(this.#newId()) % ROUND;
    this.#place = (place + 1) % ROUND;
    return place >= STORED_FIRST; // V2
  }
}

/** Any, but the same for the same text, and as random as it. */
function numberIn(text: string): number {
  let number = 0;
  for (let index = 0; index < text.length; index += 1) number = (number * 31 + text.charCodeAt(index)) >>> 0;
  return number;
}
