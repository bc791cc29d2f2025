// testing/kv-after.ts — the key-value store after an execution, from what its history says.

import type { Event } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";

/** `before`: as of the start of the execution. */
export function kvAfter(events: readonly Event[], before: ReadonlyMap<string, KvEntry>): ReadonlyMap<string, KvEntry> {
  const entries = new Map(before);
  for (const event of events) {
    if (event.type === "KeyValueSet") {
      entries.set(event.key, { value: event.value, lastUpdatedAtMs: event.lastUpdatedAtMs });
    } else if (event.type === "KeyValueCleared") entries.delete(event.key);
    else if (event.type === "KeyValuesCleared") entries.clear();
  }
  return entries;
}
