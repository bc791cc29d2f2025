// provider-tests/provider-case.ts — what a case of the validation suite is, and what an author must hand in to run it.

import type { Clock } from "../clock.js";
import type { Provider } from "../provider/provider.js";
import type { CaseContext } from "./case-context.js";

/** One promise of the contract, and the program that finds out whether a provider keeps it. */
export interface ProviderCase {
  /** Unique in its category. */
  readonly id: string;
  /** The promise, as a sentence. It is what a failure is reported under. */
  readonly promise: string;
  /** Throws where the promise is broken. Must check something. */
  run(t: CaseContext): Promise<void>;
}

/** Cases about one thing. */
export interface Category {
  readonly name: string;
  /** What all its cases are about, as a sentence. */
  readonly about: string;
  readonly cases: readonly ProviderCase[];
}

/** A store that was opened for one case. */
export interface TestStore {
  readonly provider: Provider;
  /** Opens one more provider on the same store, as another process would. Absent: the store has only one user. */
  openAnother?(): Promise<Provider>;
  /**
   * Opens the store again after its provider was closed, as a new process would. Absent: `openAnother` does; without
   * that one too, the store has nothing to open again.
   */
  reopen?(): Promise<Provider>;
  /** Overwrites every stored event of the instance with something that cannot be decoded. */
  corruptHistory?(instance: string): Promise<void>;
  /** Overwrites every queued message to the instance, and every activity of it, in the same way. */
  corruptQueues?(instance: string): Promise<void>;
  /** The highest stored attempt count over the instance's messages in the orchestrator queue. */
  maxAttemptCount?(instance: string): Promise<number>;
  /** Cleans up after the case, when its providers are closed. */
  close?(): Promise<void>;
}

/** How the suite gets at a provider. Only `open` is needed. */
export interface ProviderFactory {
  /**
   * Opens an empty store that shares nothing with any other. The provider must live by `clock`, unless `time` is "real".
   */
  open(options: { readonly clock: Clock }): Promise<TestStore>;
  /**
   * "virtual": the provider lives by the clock that `open` is given, and no case waits. "real": it has its own; cases
   * about time then wait, and those that need exact milliseconds are skipped.
   * @default "virtual"
   */
  readonly time?: "virtual" | "real";
  /** Whether a fetch with a `pollTimeoutMs` waits for work. @default "long" */
  readonly polling?: "long" | "short";
  /** How long the locks of the cases are that are to expire. @default 5000 in virtual time, 1000 in real time */
  readonly lockTimeoutMs?: number;
  /** In real time: how soon a short poll must answer. @default 500 */
  readonly shortPollThresholdMs?: number;
}
