// engine/kv-state.ts — the key-value store as the code sees it: the snapshot, then this execution's writes.

import type { KvEntry } from "../history/kv-entry.js";

export class KvState {
  /** Null: none yet. Most executions have none. */
  #entries: Map<string, KvEntry> | null;

  constructor(snapshot: ReadonlyMap<string, KvEntry>) {
    this.#entries = snapshot.size === 0 ? null : new Map(snapshot);
  }

  get(key: string): string | undefined {
    return this.#entries?.get(key)?.value;
  }

  get size(): number {
    return this.#entries?.size ?? 0;
  }

  set(key: string, value: string, lastUpdatedAtMs: number): void {
    this.#entries ??= new Map();
    this.#entries.set(key, { value, lastUpdatedAtMs });
  }

  delete(key: string): void {
    this.#entries?.delete(key);
  }

  clear(): void {
    this.#entries = null;
  }

  /** Sorted, so that whatever code does for each key it does in the same order on every replay. */
  keys(): string[] {
    return [...(this.#entries?.keys() ?? [])].sort();
  }

  keysUpdatedBefore(timeMs: number): string[] {
    return this.keys().filter((key) => this.#entries!.get(key)!.lastUpdatedAtMs < timeMs);
  }
}
