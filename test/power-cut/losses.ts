// test/power-cut/losses.ts — how much was lost, by what became of that which was not synced.

import { FATES, type Fate } from "./disk.js";
import type { Looked } from "./power-cuts.js";

export interface Losses {
  readonly fate: Fate;
  readonly images: number;
  /** Those that lost nothing that was acknowledged. */
  readonly whole: number;
  /** Acknowledged commits that are not there. */
  readonly commits: Spread;
  readonly acknowledgements: Spread;
}

export interface Spread {
  readonly median: number;
  readonly p90: number;
  readonly most: number;
}

export function lossesOf(images: readonly Looked[]): readonly Losses[] {
  return FATES.map((fate) => {
    const those = images.filter((image) => image.fate === fate);
    return {
      fate,
      images: those.length,
      whole: those.filter(({ lostAcknowledgements }) => lostAcknowledgements === 0).length,
      commits: spreadOf(those.map(({ lostCommits }) => lostCommits)),
      acknowledgements: spreadOf(those.map(({ lostAcknowledgements }) => lostAcknowledgements)),
    };
  });
}

function spreadOf(numbers: readonly number[]): Spread {
  const sorted = [...numbers].sort((one, other) => one - other);
  const at = (part: number): number => sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
  return { median: at(0.5), p90: at(0.9), most: at(1) };
}
