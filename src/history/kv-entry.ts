// history/kv-entry.ts — a value of an instance's key-value store, with the time of its last write.

/** A value of an instance's key-value store, as it is stored, and when it was last written. */
export interface KvEntry {
  readonly value: string;
  readonly lastUpdatedAtMs: number;
}
