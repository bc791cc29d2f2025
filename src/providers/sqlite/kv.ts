// providers/sqlite/kv.ts — the key-value pairs of an instance, in two tables.
//
// `kv_store` is the state at the end of the previous execution, `kv_delta` what the running one has changed since. With
// a single table, the replay of a read-modify-write would read its own later writes.

import type { Event } from "../../history/event.js";
import { fromColumn, toColumn } from "../../provider/kit/text-column.js";
import type { KvEntry } from "../../provider/provider.js";
import type { Database } from "./database.js";
import type { Transaction } from "./transaction.js";

/** Sets a value, or with null hides whatever the store has. The last change of a key counts. */
const upsertDelta = `
  INSERT INTO duroxide_kv_delta (instance_id, key, value, last_updated_at) VALUES (?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET value = excluded.value, last_updated_at = excluded.last_updated_at
`;

/** Hides every key that the instance has, in either table. */
const clearAllKeys = `
  INSERT INTO duroxide_kv_delta (instance_id, key, value, last_updated_at)
  SELECT instance_id, key, NULL, ? FROM duroxide_kv_store WHERE instance_id = ?
  UNION
  SELECT instance_id, key, NULL, ? FROM duroxide_kv_delta WHERE instance_id = ?
  ON CONFLICT DO UPDATE SET value = NULL, last_updated_at = excluded.last_updated_at
`;

// The three steps of a merge, in this order.
const mergeValues = `
  INSERT INTO duroxide_kv_store (instance_id, key, value, last_updated_at)
  SELECT instance_id, key, value, last_updated_at FROM duroxide_kv_delta WHERE instance_id = ? AND value IS NOT NULL
  ON CONFLICT DO UPDATE SET value = excluded.value, last_updated_at = excluded.last_updated_at
`;
const mergeTombstones = `
  DELETE FROM duroxide_kv_store
  WHERE instance_id = ?
    AND key IN (SELECT key FROM duroxide_kv_delta WHERE instance_id = ? AND value IS NULL)
`;
const selectDelta = `SELECT 1 FROM duroxide_kv_delta WHERE instance_id = ? LIMIT 1`;
const emptyDelta = `DELETE FROM duroxide_kv_delta WHERE instance_id = ?`;

const selectSnapshot = `SELECT key, value, last_updated_at FROM duroxide_kv_store WHERE instance_id = ?`;

/** The committed value of one key; a tombstone is a row with null, and hides the store's value. */
const selectValue = `
  SELECT value, 1 AS rank FROM duroxide_kv_delta WHERE instance_id = ? AND key = ?
  UNION ALL
  SELECT value, 2 AS rank FROM duroxide_kv_store WHERE instance_id = ? AND key = ?
  ORDER BY rank LIMIT 1
`;

/** The committed values: the delta's, and the store's where the delta says nothing. */
const selectValues = `
  SELECT key, value FROM duroxide_kv_delta WHERE instance_id = ? AND value IS NOT NULL
  UNION ALL
  SELECT key, value FROM duroxide_kv_store AS store
  WHERE instance_id = ?
    AND NOT EXISTS (SELECT 1 FROM duroxide_kv_delta AS delta WHERE delta.instance_id = store.instance_id AND delta.key = store.key)
`;

interface ValueRow {
  readonly key: string;
  readonly value: string;
}

/** Takes over what the event says of a key; other events mean nothing here. */
export function applyToKv(tx: Transaction, instance: string, event: Event): void {
  switch (event.type) {
    case "KeyValueSet":
      tx.touchKv(toColumn(instance));
      tx.db.runBlindly(
        upsertDelta,
        toColumn(instance),
        toColumn(event.key),
        toColumn(event.value),
        Math.trunc(event.lastUpdatedAtMs),
      );
      return;
    case "KeyValueCleared":
      tx.touchKv(toColumn(instance));
      tx.db.runBlindly(upsertDelta, toColumn(instance), toColumn(event.key), null, tx.now);
      return;
    case "KeyValuesCleared":
      tx.touchKv(toColumn(instance));
      tx.db.runBlindly(clearAllKeys, tx.now, toColumn(instance), tx.now, toColumn(instance));
      return;
  }
}

/** The execution is over: its changes become the state that the next one starts from. */
export function mergeKv(tx: Transaction, instance: string): void {
  const instanceId = toColumn(instance);
  if (tx.db.getOf(instanceId, selectDelta, instanceId) === undefined) return;
  tx.touchKv(instanceId);
  tx.db.runBlindly(mergeValues, instanceId);
  tx.db.runBlindly(mergeTombstones, instanceId, instanceId);
  tx.db.runBlindly(emptyDelta, instanceId);
}

/** What a replay of the running execution starts from. */
export function kvSnapshot(db: Database, instance: string): ReadonlyMap<string, KvEntry> {
  const rows = db.all<ValueRow & { readonly last_updated_at: number }>(selectSnapshot, toColumn(instance));
  return new Map(
    rows.map((row) => [fromColumn(row.key), { value: fromColumn(row.value), lastUpdatedAtMs: row.last_updated_at }]),
  );
}

export function kvValue(db: Database, instance: string, key: string): string | null {
  const at = [toColumn(instance), toColumn(key)] as const;
  const row = db.get<{ readonly value: string | null }>(selectValue, ...at, ...at);
  return row?.value == null ? null : fromColumn(row.value);
}

export function kvValues(db: Database, instance: string): ReadonlyMap<string, string> {
  const instanceId = toColumn(instance);
  const rows = db.all<ValueRow>(selectValues, instanceId, instanceId);
  return new Map(rows.map((row) => [fromColumn(row.key), fromColumn(row.value)]));
}
