// cases/kv-store.ts — key-values are read as committed, and replayed as of the end of the previous execution.

import type { Event } from "../../history/event.js";
import type { ExecutionStatus, KvEntry, Provider } from "../../provider/provider.js";
import { completed, kvAllCleared, kvCleared, kvSet, NAMED, raised, started, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, continueExecution, create, runTurn, takeTurn } from "../steps.js";

/** The largest value that the runtime lets through, and how many of them. */
const MAX_VALUE = "x".repeat(64 * 1024);
const MAX_KEYS = 150;

export const kvStore: Category = {
  name: "kv_store",
  about: "Key-values are read as committed, and replayed as of the end of the previous execution.",
  cases: [
    {
      id: "kv_set_and_get",
      promise: "A value that a turn has set can be read",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "counter", "42")]);

        t.equal(await provider.getKvValue("a", "counter"), "42", "the value");
      },
    },
    {
      id: "kv_overwrite",
      promise: "A key has the last value that it was given, by the last turn and within it",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "status", "old")]);
        t.equal(await provider.getKvValue("a", "status"), "old", "the value after the first turn");
        await write(provider, [kvSet("a", 101, "status", "newer"), kvSet("a", 102, "status", "newest")]);

        t.equal(await provider.getKvValue("a", "status"), "newest", "the value after the second turn");
        t.equal(await all(provider), { status: "newest" }, "all values after the second turn");
      },
    },
    {
      id: "kv_clear_single",
      promise: "A key that was cleared has no value, and others keep theirs",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "remove_me", "x"), kvSet("a", 101, "other", "y")]);
        await write(provider, [kvCleared("a", 102, "remove_me")]);

        t.isNull(await provider.getKvValue("a", "remove_me"), "the value of the cleared key");
        t.equal(await provider.getKvValue("a", "other"), "y", "the value of the other key");
      },
    },
    {
      id: "kv_clear_all",
      promise: "All keys can be cleared at once",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "x", "1"), kvSet("a", 101, "y", "2")]);
        await write(provider, [kvAllCleared("a", 102)]);

        for (const key of ["x", "y"]) t.isNull(await provider.getKvValue("a", key), `the value of ${key}`);
        t.equal(await all(provider), {}, "all values");
      },
    },
    {
      id: "kv_get_nonexistent",
      promise: "A key that nobody has set has no value",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");

        t.isNull(await provider.getKvValue("a", "k"), "the value");
        t.equal(await all(provider), {}, "all values");
      },
    },
    {
      id: "kv_snapshot_in_fetch",
      promise: "A fetch hands out the values of the execution that has ended, with the times of their events",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "x", "10", 1_700_000_000_007), kvSet("a", 101, "y", "20", 8)]);
        await complete(provider);

        t.equal(await snapshot(provider), { x: entry("10", 1_700_000_000_007), y: entry("20", 8) }, "the snapshot");
      },
    },
    {
      id: "kv_snapshot_after_clear_single",
      promise: "A fetch does not hand out what was cleared before the execution ended",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "keep", "yes"), kvSet("a", 101, "remove", "bye")]);
        await write(provider, [kvCleared("a", 102, "remove")]);
        await complete(provider);

        t.equal(await snapshot(provider), { keep: entry("yes") }, "the snapshot");
      },
    },
    {
      id: "kv_snapshot_after_clear_all",
      promise: "A fetch hands out nothing when all that was ever set is cleared",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "x", "1"), kvSet("a", 101, "y", "2")]);
        await write(provider, [kvAllCleared("a", 102)]);

        t.equal(await snapshot(provider), {}, "the snapshot while the execution runs");
        await complete(provider);
        t.equal(await snapshot(provider), {}, "the snapshot after its end");
      },
    },
    {
      id: "kv_execution_id_tracking",
      promise: "A value that two executions have set is the later one's, also when the earlier one is pruned",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "shared", "from_exec_1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "shared", "from_exec_2")], 2);
        await admin.pruneExecutions("a", { keepLast: 1 });

        t.equal(await provider.getKvValue("a", "shared"), "from_exec_2", "the value");
        const before = { shared: entry("from_exec_1") };
        t.equal(await snapshot(provider), before, "the snapshot, which is that of the pruned execution's end");
      },
    },
    {
      id: "kv_cross_execution_overwrite",
      promise: "The running execution's value hides that of an earlier one",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "k", "v1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "k", "v2")], 2);

        t.equal(await provider.getKvValue("a", "k"), "v2", "the value");
        t.equal(await all(provider), { k: "v2" }, "all values");
      },
    },
    {
      id: "kv_cross_execution_remove_readd",
      promise: "A key can go in one execution and come back in another",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "cycle", "exec1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvCleared("a", 200, "cycle")], 2);
        t.isNull(await provider.getKvValue("a", "cycle"), "the value after it was cleared");
        await continueExecution(provider, "a", 3);
        t.isNull(await provider.getKvValue("a", "cycle"), "the value in the next execution");
        await write(provider, [kvSet("a", 300, "cycle", "exec3")], 3);

        t.equal(await provider.getKvValue("a", "cycle"), "exec3", "the value after it was set again");
        t.equal(await snapshot(provider), {}, "the snapshot of that execution");
      },
    },
    {
      id: "kv_prune_preserves_overwritten",
      promise: "Pruning leaves a value alone that the running execution has overwritten",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "survive", "v1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "survive", "v2")], 2);
        const pruned = await admin.pruneExecutions("a", { keepLast: 1 });

        t.equal(pruned.executionsDeleted, 1, "executions pruned");
        t.equal(await provider.getKvValue("a", "survive"), "v2", "the value");
      },
    },
    {
      id: "kv_prune_preserves_all_keys",
      promise: "Pruning an execution leaves the values alone that it has set",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "orphan", "survives")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "keeper", "alive")], 2);
        const pruned = await admin.pruneExecutions("a", { keepLast: 1 });

        t.equal(pruned.executionsDeleted, 1, "executions pruned");
        t.equal(await all(provider), { orphan: "survives", keeper: "alive" }, "all values");
      },
    },
    {
      id: "kv_instance_isolation",
      promise: "The same key has a value of its own in every instance",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) {
          await create(provider, instance);
          await runTurn(provider, instance, { events: [kvSet(instance, 100, "k", `of ${instance}`)] });
        }
        await create(provider, "c");

        for (const instance of ["a", "b"]) {
          t.equal(await provider.getKvValue(instance, "k"), `of ${instance}`, `the value in ${instance}`);
          t.equal(await all(provider, instance), { k: `of ${instance}` }, `all values of ${instance}`);
        }
        t.isNull(await provider.getKvValue("c", "k"), "the value in an instance that has not set it");
      },
    },
    {
      id: "kv_delete_instance_cascades",
      promise: "The deletion of an instance deletes its values",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "doomed", "bye")]);
        await complete(provider);
        t.equal(await provider.getKvValue("a", "doomed"), "bye", "the value before the deletion");
        await admin.deleteInstance("a", false);

        t.isNull(await provider.getKvValue("a", "doomed"), "the value after the deletion");
        t.equal(await all(provider), {}, "all values after the deletion");
      },
    },
    {
      id: "kv_clear_nonexistent_key",
      promise: "A key that was never set can be cleared",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvCleared("a", 100, "never set"), kvAllCleared("a", 101)]);

        t.isNull(await provider.getKvValue("a", "never set"), "the value");
        t.equal(await all(provider), {}, "all values");
        await complete(provider);
        t.equal(await snapshot(provider), {}, "the snapshot after the execution's end");
      },
    },
    {
      id: "kv_get_unknown_instance",
      promise: "An instance that nobody knows has no values",
      async run(t) {
        const { provider } = await t.open();
        t.isNull(await provider.getKvValue("unknown", "k"), "a value");
        t.equal(await all(provider, "unknown"), {}, "all values");
      },
    },
    {
      id: "kv_set_after_clear",
      promise: "What a turn sets after it has cleared everything stays, and what it has set before goes",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "old_a", "1"), kvSet("a", 101, "old_b", "2")]);
        await write(provider, [
          kvSet("a", 102, "lost", "x"),
          kvAllCleared("a", 103),
          kvSet("a", 104, "new_x", "fresh"),
          kvSet("a", 105, "old_b", "again"),
        ]);

        for (const key of ["old_a", "lost"]) t.isNull(await provider.getKvValue("a", key), `the value of ${key}`);
        t.equal(await provider.getKvValue("a", "new_x"), "fresh", "the value of new_x");
        t.equal(await all(provider), { new_x: "fresh", old_b: "again" }, "all values");
      },
    },
    {
      id: "kv_empty_value",
      promise: "Empty text is a value",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "blank", "")]);
        t.equal(await provider.getKvValue("a", "blank"), "", "the value");
        t.equal(await all(provider), { blank: "" }, "all values");

        await continueExecution(provider, "a", 2);
        t.equal(await provider.getKvValue("a", "blank"), "", "the value in the next execution");
        t.equal(await all(provider), { blank: "" }, "all values in the next execution");
        t.equal(await snapshot(provider), { blank: entry("") }, "the snapshot of the next execution");
      },
    },
    {
      id: "kv_large_value",
      promise: "A value may have 64 KiB",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "big", MAX_VALUE)]);

        const value = await provider.getKvValue("a", "big");
        t.equal(value?.length, MAX_VALUE.length, "the length of the value");
        t.ok(value === MAX_VALUE, "the value is the one that was set");
      },
    },
    {
      id: "kv_special_chars_in_key",
      promise: "A key may be any text",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const keys = [
          "with space",
          "日本語",
          "dots.and/slashes",
          "🚀",
          "__proto__",
          "%_'\"\\",
          "line\nbreak\ttab",
          " ",
        ];
        await write(
          provider,
          keys.map((key, index) => kvSet("a", 100 + index, key, `value of ${key}`)),
        );

        for (const key of keys) t.equal(await provider.getKvValue("a", key), `value of ${key}`, `the value of ${key}`);
        const expected = new Map(keys.map((key) => [key, `value of ${key}`]));
        t.equal(await provider.getKvAllValues("a"), expected, "all values");
      },
    },
    {
      id: "kv_snapshot_empty",
      promise: "A fetch of an instance that has set nothing hands out no values",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        t.equal(await snapshot(provider), {}, "the snapshot");
      },
    },
    {
      id: "kv_snapshot_cross_execution",
      promise: "A fetch hands out what earlier executions have set, and not what the running one has",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "A", "from_exec1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "B", "from_exec2")], 2);

        t.equal(await snapshot(provider), { A: entry("from_exec1") }, "the snapshot");
      },
    },
    {
      id: "kv_prune_current_execution_protected",
      promise: "Pruning an instance with a single execution leaves its values alone",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "alive", "yes")]);
        const pruned = await admin.pruneExecutions("a", { keepLast: 1 });

        t.equal(pruned.executionsDeleted, 0, "executions pruned");
        t.equal(await provider.getKvValue("a", "alive"), "yes", "the value");
      },
    },
    {
      id: "kv_delete_instance_with_children",
      promise: "The deletion of an instance deletes the values of its children",
      async run(t) {
        const { provider, admin } = await t.open();
        const metadata = { parent: NAMED, child: { ...NAMED, parentInstanceId: "parent" } };
        for (const instance of ["parent", "child"] as const) {
          await create(provider, instance, { metadata: metadata[instance] });
          await runTurn(provider, instance, { events: [kvSet(instance, 100, "k", "v")] });
          await complete(provider, instance);
          t.equal(await provider.getKvValue(instance, "k"), "v", `the value of the ${instance} before the deletion`);
        }
        await admin.deleteInstance("parent", false);

        for (const instance of ["parent", "child"]) {
          t.isNull(await provider.getKvValue(instance, "k"), `the value of the ${instance} after the deletion`);
        }
      },
    },
    {
      id: "kv_clear_isolation",
      promise: "What one instance clears, another keeps",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) {
          await create(provider, instance);
          await runTurn(provider, instance, { events: [kvSet(instance, 100, "ended", "1")] });
          await continueExecution(provider, instance, 2);
          await runTurn(provider, instance, { executionId: 2, events: [kvSet(instance, 200, "running", "2")] });
        }
        await write(provider, [kvAllCleared("a", 201)], 2);
        await write(provider, [kvCleared("a", 202, "running")], 2);
        await continueExecution(provider, "a", 3);

        t.equal(await all(provider, "a"), {}, "all values of the instance that has cleared");
        t.equal(await all(provider, "b"), { ended: "1", running: "2" }, "all values of the other instance");
        t.equal(await snapshot(provider, "b"), { ended: entry("1") }, "the snapshot of the other instance");
      },
    },
    {
      id: "kv_delta_snapshot_excludes_current_execution",
      promise: "What the running execution has set is read by others, and left out of what a fetch hands to its replay",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "counter", "1")]);

        t.equal(await provider.getKvValue("a", "counter"), "1", "the value");
        t.equal(await snapshot(provider), {}, "the snapshot");
      },
    },
    {
      id: "kv_delta_snapshot_includes_completed_execution",
      promise: "A fetch hands the values of the execution before to the one that continues it",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "counter", "5")]);
        await continueExecution(provider, "a", 2);

        t.equal(await snapshot(provider), { counter: entry("5") }, "the snapshot");
      },
    },
    {
      id: "kv_delta_client_reads_merged",
      promise: "A read sees what the running execution has changed and, besides, what it has left alone",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "color", "red"), kvSet("a", 101, "size", "large")]);
        await complete(provider);
        await write(provider, [kvSet("a", 200, "color", "blue"), kvSet("a", 201, "shape", "circle")], 2);

        const expected = { color: "blue", size: "large", shape: "circle" };
        for (const [key, value] of Object.entries(expected)) {
          t.equal(await provider.getKvValue("a", key), value, `the value of ${key}`);
        }
      },
    },
    {
      id: "kv_delta_tombstone_overrides_store",
      promise: "A value of an earlier execution that the running one has cleared is not read any more",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "temp", "exists")]);
        await complete(provider);
        await write(provider, [kvCleared("a", 200, "temp")], 2);

        t.isNull(await provider.getKvValue("a", "temp"), "the value");
        t.equal(await snapshot(provider), { temp: entry("exists") }, "the snapshot, for a replay that clears it again");
      },
    },
    {
      id: "kv_delta_clear_all_tombstones_store",
      promise: "Clearing everything clears what earlier executions have set, too",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "x", "1"), kvSet("a", 101, "y", "2")]);
        await complete(provider);
        await write(provider, [kvAllCleared("a", 200), kvSet("a", 201, "z", "3")], 2);

        for (const key of ["x", "y"]) t.isNull(await provider.getKvValue("a", key), `the value of ${key}`);
        t.equal(await provider.getKvValue("a", "z"), "3", "the value of z");
      },
    },
    {
      id: "kv_delta_merged_on_completion",
      promise: "A value can be read after its instance has completed",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "result", "42")]);
        await complete(provider);

        t.equal(await provider.getKvValue("a", "result"), "42", "the value");
        t.equal(await all(provider), { result: "42" }, "all values");
      },
    },
    {
      id: "kv_delta_merged_on_can",
      promise: "An execution that continues another starts from its last values",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "version", "1", 5), kvSet("a", 101, "progress", "50%", 6)]);
        await write(provider, [kvSet("a", 102, "progress", "100%", 7)]);
        await continueExecution(provider, "a", 2);

        t.equal(await snapshot(provider), { version: entry("1", 5), progress: entry("100%", 7) }, "the snapshot");
      },
    },
    {
      id: "kv_delta_delete_instance_cascades",
      promise: "The forced deletion of a running instance deletes its values, of whichever execution",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "ended", "1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "running", "2")], 2);
        await admin.deleteInstance("a", true);

        t.isNull(await provider.getKvValue("a", "running"), "the value of the running execution");
        t.equal(await all(provider), {}, "all values");
      },
    },
    {
      id: "kv_delta_prune_untouched_key_survives",
      promise: "Pruning leaves values alone that no later execution has touched, and a fetch still hands them out",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "stale_config", "old")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "other", "new")], 2);
        await continueExecution(provider, "a", 3);
        const pruned = await admin.pruneExecutions("a", { keepLast: 1 });

        t.equal(pruned.executionsDeleted, 2, "executions pruned");
        t.equal(await all(provider), { stale_config: "old", other: "new" }, "all values");
        t.equal(await snapshot(provider), { stale_config: entry("old"), other: entry("new") }, "the snapshot");
      },
    },

    // What follows has no counterpart in the reference's suite.
    {
      id: "kv_delta_merged_on_failure",
      promise: "An execution that fails leaves its values to the next, as one that ends in any other way does",
      async run(t) {
        for (const status of ["Failed", "Completed", "ContinuedAsNew"] satisfies ExecutionStatus[]) {
          const { provider } = await t.open();
          await create(provider, "a");
          await write(provider, [
            kvSet("a", 100, "x", "10", 7),
            kvSet("a", 101, "y", "20"),
            kvSet("a", 102, "z", "30"),
          ]);
          const last = [kvSet("a", 103, "y", "21", 8), kvCleared("a", 104, "z"), kvSet("a", 105, "new", "40", 9)];
          await runTurn(provider, "a", { events: last, metadata: { ...NAMED, status, output: "the end" } });

          const expected = { x: entry("10", 7), y: entry("21", 8), new: entry("40", 9) };
          t.equal(await snapshot(provider), expected, `the snapshot after the turn that is ${status}`);
          t.equal(await all(provider), { x: "10", y: "21", new: "40" }, `all values after the turn that is ${status}`);
        }
      },
    },
    {
      id: "kv_delta_not_merged_while_running",
      promise: "A turn that says that the execution still runs does not add to what a fetch hands out",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const metadata = { ...NAMED, status: "Running" } as const;
        await runTurn(provider, "a", { events: [kvSet("a", 100, "x", "1")], metadata });

        t.equal(await snapshot(provider), {}, "the snapshot");
        t.equal(await provider.getKvValue("a", "x"), "1", "the value");
      },
    },
    {
      id: "kv_clear_all_merged",
      promise: "An execution that has cleared everything leaves nothing to the next",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "x", "1"), kvSet("a", 101, "y", "2")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "z", "3"), kvAllCleared("a", 201)], 2);
        t.equal(await all(provider), {}, "all values after the clearing");
        t.equal(await snapshot(provider), { x: entry("1"), y: entry("2") }, "the snapshot of the one that has cleared");
        await continueExecution(provider, "a", 3);

        t.equal(await snapshot(provider), {}, "the snapshot of the next");
        t.equal(await all(provider), {}, "all values in the next");
        await write(provider, [kvSet("a", 300, "x", "fresh")], 3);
        t.equal(await all(provider), { x: "fresh" }, "all values after one was set again");
      },
    },
    {
      id: "kv_get_all_values_merged",
      promise: "All values are those of earlier executions under those of the running one, without what it has cleared",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [
          kvSet("a", 100, "color", "red"),
          kvSet("a", 101, "size", "large"),
          kvSet("a", 102, "temp", "x"),
        ]);
        await continueExecution(provider, "a", 2);
        await write(
          provider,
          [
            kvSet("a", 200, "color", "blue"),
            kvSet("a", 201, "shape", "circle"),
            kvCleared("a", 202, "temp"),
            kvSet("a", 203, "brief", "y"),
            kvCleared("a", 204, "brief"),
          ],
          2,
        );

        t.equal(await all(provider), { color: "blue", size: "large", shape: "circle" }, "all values");
        for (const key of ["temp", "brief"]) t.isNull(await provider.getKvValue("a", key), `the value of ${key}`);
      },
    },
    {
      id: "kv_snapshot_constant_in_execution",
      promise: "All fetches of one execution hand out the same values",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "k", "first", 3), kvSet("a", 101, "gone", "x")]);
        await continueExecution(provider, "a", 2);
        const expected = { k: entry("first", 3), gone: entry("x") };
        t.equal(await snapshot(provider), expected, "the snapshot before the execution has changed anything");
        await write(
          provider,
          [kvSet("a", 200, "k", "second", 4), kvCleared("a", 201, "gone"), kvSet("a", 202, "new", "n")],
          2,
        );

        t.equal(await snapshot(provider), expected, "the snapshot after it has changed everything");
        t.equal(await all(provider), { k: "second", new: "n" }, "all values");
      },
    },
    {
      id: "kv_many_large_values",
      promise: "An instance may have 150 values of 64 KiB, and a fetch hands out all of them",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const keys = Array.from({ length: MAX_KEYS }, (_, index) => `key-${index}`);
        await write(
          provider,
          keys.map((key, index) => kvSet("a", 100 + index, key, MAX_VALUE)),
        );
        const values = await provider.getKvAllValues("a");
        t.equal([...values.keys()].sort(), keys.toSorted(), "the keys of all values");
        t.ok(
          [...values.values()].every((value) => value === MAX_VALUE),
          "every value is the one that was set",
        );
        await continueExecution(provider, "a", 2);

        const entries = await snapshot(provider);
        t.equal(Object.keys(entries).sort(), keys.toSorted(), "the keys of the snapshot");
        const isWhole = Object.values(entries).every(({ value }) => value === MAX_VALUE);
        t.ok(isWhole, "every value of the snapshot is the one that was set");
      },
    },
    {
      id: "kv_keys_are_exact",
      promise: "Keys that differ in case, in trailing space or in the form of an accent are different keys",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const keys = ["key", "Key", "KEY", "key ", " key", "key  ", "é", "e\u0301", "", "ß", "ss"];
        await write(
          provider,
          keys.map((key, index) => kvSet("a", 100 + index, key, `value ${index}`)),
        );
        const expected = new Map(keys.map((key, index) => [key, `value ${index}`]));
        t.equal(await provider.getKvAllValues("a"), expected, "all values");
        await continueExecution(provider, "a", 2);
        await write(provider, [kvCleared("a", 200, "key "), kvSet("a", 201, "Key", "changed")], 2);
        await continueExecution(provider, "a", 3);

        expected.delete("key ");
        expected.set("Key", "changed");
        t.equal(await provider.getKvAllValues("a"), expected, "all values after one was cleared and one changed");
        for (const [key, value] of expected)
          t.equal(await provider.getKvValue("a", key), value, `the value of '${key}'`);
        t.isNull(await provider.getKvValue("a", "key "), "the value of the cleared key");
      },
    },
    {
      id: "kv_instance_ids_are_exact",
      promise: "Values of instances whose ids differ in case or in trailing space are kept apart",
      async run(t) {
        const { provider } = await t.open();
        const instances = ["order", "Order", "order "];
        for (const instance of instances) {
          await create(provider, instance);
          await runTurn(provider, instance, { events: [kvSet(instance, 100, "k", `of '${instance}'`)] });
        }

        for (const instance of instances) {
          t.equal(await all(provider, instance), { k: `of '${instance}'` }, `all values of '${instance}'`);
        }
      },
    },
    {
      id: "kv_refused_turn_writes_nothing",
      promise: "A refused turn sets, clears and merges nothing",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "keep", "1")]);
        const events = [kvCleared("a", 101, "keep"), kvSet("a", 102, "k", "v"), kvSet("a", 1, "k", "w")];
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const refused = turn({ events, metadata: { ...NAMED, status: "Completed" } });
        await t.refused(provider.ackOrchestrationItem(lockToken, refused), "duplicate-event", "the ack");

        t.equal(await all(provider), { keep: "1" }, "all values after the refused ack");
        await provider.ackOrchestrationItem(lockToken, turn());
        t.equal(await snapshot(provider), {}, "the snapshot of the execution that still runs");
      },
    },
    {
      id: "kv_set_in_first_turn",
      promise: "The turn that creates an instance can set values, and can be its last",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "running", { events: [kvSet("running", 2, "k", "v")] });
        const metadata = { ...NAMED, status: "Completed" } as const;
        await create(provider, "ended", { events: [kvSet("ended", 2, "k", "v", 7)], metadata });

        t.equal(await all(provider, "running"), { k: "v" }, "all values of the instance that runs");
        t.equal(await snapshot(provider, "running"), {}, "the snapshot of the instance that runs");
        t.equal(await all(provider, "ended"), { k: "v" }, "all values of the instance that has ended");
        t.equal(await snapshot(provider, "ended"), { k: entry("v", 7) }, "the snapshot of the instance that has ended");
      },
    },
    {
      id: "kv_recreated_instance_starts_empty",
      promise: "An instance that is created again after its deletion has none of the former one's values",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 100, "ended", "1")]);
        await continueExecution(provider, "a", 2);
        await write(provider, [kvSet("a", 200, "running", "2"), kvCleared("a", 201, "cleared")], 2);
        await admin.deleteInstance("a", true);
        await create(provider, "a");

        t.equal(await all(provider), {}, "all values");
        await complete(provider);
        t.equal(await snapshot(provider), {}, "the snapshot after the new one's end");
      },
    },
    {
      id: "kv_of_unnamed_instance",
      promise: "An instance that nobody has named has values like any other",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a", { events: [started("a"), kvSet("a", 2, "key", "value")] });
        t.equal(await provider.getKvValue("a", "key"), "value", "the value while the execution runs");
        await runTurn(provider, "a", { metadata: { status: "ContinuedAsNew", output: "{}" } });
        await begin(provider, "a", { executionId: 2, events: [started("a", { executionId: 2 })] });
        t.equal(await snapshot(provider), { key: entry("value") }, "the values that the next one begins with");
      },
    },
    {
      id: "kv_turn_that_says_nothing_of_the_status",
      promise: "Only a turn that ends its execution hands the values on: one that comes after the end does not",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await write(provider, [kvSet("a", 2, "before", "1")]);
        await complete(provider);
        await write(provider, [kvSet("a", 10_000, "after", "2")]);
        t.equal(await all(provider), { before: "1", after: "2" }, "the values that a reader sees");
        t.equal(await snapshot(provider), { before: entry("1") }, "the values that a fetch hands out");
      },
    },
  ],
};

const entry = (value: string, lastUpdatedAtMs = 0): KvEntry => ({ value, lastUpdatedAtMs });

/** A turn of instance "a" with these events. */
async function write(provider: Provider, events: readonly Event[], executionId = 1): Promise<void> {
  await runTurn(provider, "a", { executionId, events });
}

/** Ends execution 1. */
async function complete(provider: Provider, instance = "a"): Promise<void> {
  const metadata = { ...NAMED, status: "Completed", output: "done" } as const;
  await runTurn(provider, instance, { events: [completed(instance, 9_999)], metadata });
}

/** What a fetch hands to the replay of the current execution. */
async function snapshot(provider: Provider, instance = "a"): Promise<Record<string, KvEntry>> {
  await provider.enqueueForOrchestrator(raised(instance));
  const { item, lockToken } = await takeTurn(provider);
  await provider.ackOrchestrationItem(lockToken, turn({ executionId: item.executionId }));
  return Object.fromEntries(item.kvSnapshot);
}

async function all(provider: Provider, instance = "a"): Promise<Record<string, string>> {
  return Object.fromEntries(await provider.getKvAllValues(instance));
}
