// mutants/mutant.ts — a deliberately broken provider: our own source with one thing changed.
//
//   M1. A patch must fit: its `find` stands exactly once in the file. When the source moves on, the mutant follows.
//   M2. A mutant is caught when the case that it names fails. Which others fail does not matter.

/** One provider, broken in one way. */
export interface Mutant {
  /** Unique; plain words for what is broken, such as "ack does not look at the lock's end". */
  readonly name: string;
  /** The category that must catch it, and the case. */
  readonly category: string;
  readonly caughtBy: string;
  readonly store: "memory" | "sqlite";
  readonly patches: readonly Patch[];
}

export interface Patch {
  /** In the provider's folder, such as `memory-provider.ts`. */
  readonly file: string;
  /** Source text that stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}
