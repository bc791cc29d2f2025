// runtime/warm-instances.ts — executions that wait between turns, kept in memory so that they need no replay.
//
//   W1. An execution is kept under the lock token with which its turn is committed. It is up to date as long as the store
//       says that this commit was the last.
//   W2. Whoever takes an execution owns it: it is not here any more, and no fetch is told of it.
//   W3. Memory is bounded: the least recently used go first, and one that is too large for the whole is never kept.

import type { Execution } from "../engine/execution.js";
import type { ExecutionLedger } from "./execution-ledger.js";

/** An execution in memory, and what the runtime knows of it. Both are as of the same turn. */
export interface LiveExecution {
  readonly execution: Execution;
  readonly ledger: ExecutionLedger;
}

interface Entry {
  /** Null: it is not here any more. Tables that are garbage may still know of the entry (linked-set.ts). */
  live: LiveExecution | null;
  readonly lockToken: string;
  readonly bytes: number;
}

/** The ledger, the suspended function and the entry itself, beside what the execution says of its events: measured. */
const BYTES_PER_INSTANCE = 9_000;

export class WarmInstances {
  readonly #maxBytes: number;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #marks = new Map<string, string>();
  #bytes = 0;

  /** 0: nothing is kept. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** A live view for fetches: which instances are here, and as of which commit. */
  get marks(): ReadonlyMap<string, string> {
    return this.#marks;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The execution as of that commit; null where it is not here, or another one is: then the store's answer has been
   * overtaken. Whatever was here is not any more (W2).
   */
  take(instance: string, lockToken: string | null): LiveExecution | null {
    const isCurrent = this.#entries.get(instance)?.lockToken === lockToken;
    const live = this.#remove(instance);
    return isCurrent ? live : null; // W1
  }

  put(live: LiveExecution, lockToken: string): void {
    const { instance, approximateBytes } = live.execution;
    this.#remove(instance);
    const bytes = approximateBytes + BYTES_PER_INSTANCE;
    if (bytes > this.#maxBytes) return; // W3
    this.#entries.set(instance, { live, lockToken, bytes });
    this.#marks.set(instance, lockToken);
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) this.#evict();
  }

  /** Its commit has failed. One that somebody has put here since stays. */
  discard(instance: string, lockToken: string): void {
    if (this.#marks.get(instance) === lockToken) this.#remove(instance);
  }

  #remove(instance: string): LiveExecution | null {
    const entry = this.#entries.get(instance);
    if (entry === undefined) return null;
    this.#entries.delete(instance);
    this.#marks.delete(instance);
    this.#bytes -= entry.bytes;
    const { live } = entry;
    entry.live = null;
    return live;
  }

  #evict(): void {
    for (const instance of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#remove(instance);
    }
  }
}
