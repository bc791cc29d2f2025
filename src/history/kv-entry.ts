// history/kv-entry.ts — a value of an instance's key-value store, with the time of its last write.

export interface KvEntry {
  readonly value: string;
  readonly lastUpdatedAtMs: number;
}
