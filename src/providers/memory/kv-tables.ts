// providers/memory/kv-tables.ts — the key-value pairs of one instance, in two tables.
//
// `store` is the state at the end of the previous execution, `delta` what the running one has changed since. With a
// single table, the replay of a read-modify-write would read its own later writes.

import type { Event } from "../../history/event.js";
import type { KvEntry } from "../../provider/provider.js";

export class KvTables {
  readonly #store = new Map<string, KvEntry>();
  /** Null is a tombstone: it hides the store's value until the merge removes it. */
  readonly #delta = new Map<string, KvEntry | null>();

  /** Takes over what the event says of a key; other events mean nothing here. */
  apply(event: Event): void {
    switch (event.type) {
      case "KeyValueSet":
        this.#delta.set(event.key, { value: event.value, lastUpdatedAtMs: event.lastUpdatedAtMs });
        return;
      case "KeyValueCleared":
        this.#delta.set(event.key, null);
        return;
      case "KeyValuesCleared":
        for (const key of [...this.#delta.keys(), ...this.#store.keys()]) this.#delta.set(key, null);
        return;
    }
  }

  /** The execution is over: its changes become the state that the next one starts from. */
  merge(): void {
    for (const [key, entry] of this.#delta) {
      if (entry === null) this.#store.delete(key);
      else this.#store.set(key, entry);
    }
    this.#delta.clear();
  }

  /** What a replay of the running execution starts from. */
  snapshot(): ReadonlyMap<string, KvEntry> {
    return new Map(this.#store);
  }

  get(key: string): string | null {
    const entry = this.#delta.has(key) ? this.#delta.get(key) : this.#store.get(key);
    return entry?.value ?? null;
  }

  /** Everything committed: the store under the delta. */
  values(): ReadonlyMap<string, string> {
    const values = new Map<string, string>();
    for (const key of [...this.#store.keys(), ...this.#delta.keys()]) {
      const value = this.get(key);
      if (value !== null) values.set(key, value);
    }
    return values;
  }
}
