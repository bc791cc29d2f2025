// The types of judge.mjs, for tests in TypeScript.

export interface Health {
  readonly heapBytes: number;
  /** By type: how many. */
  readonly handles: Readonly<Record<string, number>>;
}

export function whyNotJudged(minutes: readonly unknown[]): string | null;
export function growth(minutes: readonly Readonly<Record<string, Health>>[]): readonly string[];
export function summaryOf(samples: readonly Health[]): Health;
