import type { Mutant } from "./mutant.js";

export const KV_STORE: readonly Mutant[] = [
  {
    name: "the snapshot has the values of the running execution",
    category: "kv_store",
    caughtBy: "kv_delta_snapshot_excludes_current_execution",
    store: "memory",
    patches: [
      {
        file: "kv-tables.ts",
        find: "new Map(this.#store)",
        replace: "new Map([...this.#store, ...this.#delta] as never)",
      },
    ],
  },
  {
    name: "the snapshot is read from the delta",
    category: "kv_store",
    caughtBy: "kv_snapshot_in_fetch",
    store: "sqlite",
    patches: [
      {
        file: "kv.ts",
        find: "SELECT key, value, last_updated_at FROM duroxide_kv_store WHERE instance_id = ?",
        replace:
          "SELECT key, value, last_updated_at FROM duroxide_kv_delta WHERE instance_id = ? AND value IS NOT NULL",
      },
    ],
  },
  {
    name: "a value has the time of its commit, not of its event",
    category: "kv_store",
    caughtBy: "kv_snapshot_in_fetch",
    store: "sqlite",
    patches: [{ file: "kv.ts", find: "Math.trunc(event.lastUpdatedAtMs)", replace: "tx.now" }],
  },
  {
    name: "a cleared key is read through to its old value",
    category: "kv_store",
    caughtBy: "kv_delta_tombstone_overrides_store",
    store: "memory",
    patches: [
      {
        file: "kv-tables.ts",
        find: "this.#delta.has(key) ? this.#delta.get(key) : this.#store.get(key)",
        replace: "this.#delta.get(key) ?? this.#store.get(key)",
      },
    ],
  },
  {
    name: "a list of all values has cleared ones",
    category: "kv_store",
    caughtBy: "kv_get_all_values_merged",
    store: "sqlite",
    patches: [
      {
        file: "kv.ts",
        find: "AND delta.key = store.key)",
        replace: "AND delta.key = store.key AND delta.value IS NOT NULL)",
      },
    ],
  },
  {
    name: "a merge leaves cleared keys where they are",
    category: "kv_store",
    caughtBy: "kv_clear_all_merged",
    store: "sqlite",
    patches: [{ file: "kv.ts", find: "  tx.db.runBlindly(mergeTombstones, instanceId, instanceId);\n", replace: "" }],
  },
  {
    name: "an execution that fails takes its values along",
    category: "kv_store",
    caughtBy: "kv_delta_merged_on_failure",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: `metadata.status !== "Running"`,
        replace: `metadata.status !== "Running" && metadata.status !== "Failed"`,
      },
    ],
  },
  {
    name: "the last turn's values come too late for the merge",
    category: "kv_store",
    caughtBy: "kv_delta_merged_on_failure",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: `    for (const event of turn.events) this.kv.apply(event);
    if (turn.metadata.status !== undefined && !execution.isRunning) this.kv.merge();`,
        replace: `    if (turn.metadata.status !== undefined && !execution.isRunning) this.kv.merge();
    for (const event of turn.events) this.kv.apply(event);`,
      },
    ],
  },
  {
    name: "every turn merges its values",
    category: "kv_store",
    caughtBy: "kv_delta_not_merged_while_running",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "turn.metadata.status !== undefined && !execution.isRunning",
        replace: "turn.metadata.status !== undefined",
      },
    ],
  },
  {
    name: "clearing everything forgets what earlier executions have set",
    category: "kv_store",
    caughtBy: "kv_delta_clear_all_tombstones_store",
    store: "memory",
    patches: [
      {
        file: "kv-tables.ts",
        find: "[...this.#delta.keys(), ...this.#store.keys()]",
        replace: "[...this.#delta.keys()]",
      },
    ],
  },
  {
    name: "clearing everything clears it for every instance",
    category: "kv_store",
    caughtBy: "kv_clear_isolation",
    store: "sqlite",
    patches: [
      {
        file: "kv.ts",
        find: "SELECT instance_id, key, NULL, ? FROM duroxide_kv_delta WHERE instance_id = ?",
        replace: "SELECT instance_id, key, NULL, ? FROM duroxide_kv_delta WHERE ? IS NOT NULL",
      },
    ],
  },
  {
    name: "empty text reads as no value",
    category: "kv_store",
    caughtBy: "kv_empty_value",
    store: "memory",
    patches: [{ file: "kv-tables.ts", find: "entry?.value ?? null", replace: "entry?.value || null" }],
  },
  {
    name: "keys are compared without case",
    category: "kv_store",
    caughtBy: "kv_keys_are_exact",
    store: "sqlite",
    patches: [
      {
        file: "schema.ts",
        find: `CREATE TABLE duroxide_kv_delta (
        instance_id     TEXT    NOT NULL,
        key             TEXT    NOT NULL,`,
        replace: `CREATE TABLE duroxide_kv_delta (
        instance_id     TEXT    NOT NULL,
        key             TEXT    NOT NULL COLLATE NOCASE,`,
      },
    ],
  },
  {
    name: "trailing space of a key is cut off",
    category: "kv_store",
    caughtBy: "kv_keys_are_exact",
    store: "memory",
    patches: [
      { file: "kv-tables.ts", find: "this.#delta.set(event.key, {", replace: "this.#delta.set(event.key.trimEnd(), {" },
    ],
  },
  {
    name: "a deletion leaves the values of the running execution behind",
    category: "kv_store",
    caughtBy: "kv_delta_delete_instance_cascades",
    store: "sqlite",
    patches: [{ file: "deletion.ts", find: "tx.db.run(deleteKvDelta, these);", replace: "" }],
  },
  {
    name: "pruning removes what the pruned executions have set",
    category: "kv_store",
    caughtBy: "kv_prune_preserves_all_keys",
    store: "sqlite",
    patches: [
      {
        file: "deletion.ts",
        find: "    eventsDeleted: tx.db.run(pruneHistories, id, these),",
        replace: `    eventsDeleted:
      0 * tx.db.run("DELETE FROM duroxide_kv_store WHERE instance_id = ?", id) + tx.db.run(pruneHistories, id, these),`,
      },
    ],
  },
  {
    name: "a turn after the end hands values on",
    category: "kv_store",
    caughtBy: "kv_turn_that_says_nothing_of_the_status",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "turn.metadata.status !== undefined && !execution.isRunning",
        replace: "!execution.isRunning",
      },
    ],
  },
];
