// cases/bulk-deletion.ts — many ended trees can be deleted at once, and nothing that has not ended.

import type { DeleteResult } from "../../provider/admin.js";
import { act, continueAsNew, NAMED, raised, scheduled, start, started } from "../builders.js";
import type { CaseContext, CaseStore } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, create, createEnded, createExecutions, fetchWork, runTurn } from "../steps.js";

/** Later than anything in any case, and still a date to every store. */
const YEAR_2100_MS = 4_102_444_800_000;

const NOTHING: DeleteResult = {
  instancesDeleted: 0,
  executionsDeleted: 0,
  eventsDeleted: 0,
  queueMessagesDeleted: 0,
};

export const bulkDeletion: Category = {
  name: "bulk_deletion",
  about: "Many ended trees can be deleted at once, and nothing that has not ended.",
  cases: [
    {
      id: "delete_instance_bulk_filter_combinations",
      promise: "A list of ids is about these, an empty one about none, an empty filter about all",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        for (const instance of ["i0", "i1", "i2", "i3", "i4"]) await createEnded(provider, instance);
        const two = { ...NOTHING, instancesDeleted: 2, executionsDeleted: 2, eventsDeleted: 2 };
        t.equal(await admin.deleteInstanceBulk({ instanceIds: ["i0", "i1"] }), two, "what two ids took");
        await isLeft(t, store, ["i2", "i3", "i4"]);
        t.equal(await admin.deleteInstanceBulk({ instanceIds: ["unknown", "i0"] }), NOTHING, "what ids of nobody took");
        t.equal(await admin.deleteInstanceBulk({ instanceIds: [] }), NOTHING, "what an empty list of ids took");
        await isLeft(t, store, ["i2", "i3", "i4"]);
        t.matches(await admin.deleteInstanceBulk({}), { instancesDeleted: 3 }, "what the empty filter took");
        await isLeft(t, store, []);
        t.equal(await admin.deleteInstanceBulk({}), NOTHING, "what the empty filter took from an empty store");
      },
    },
    {
      id: "delete_instance_bulk_safety_and_limits",
      promise: "What runs is passed over, and no more trees go than the limit says",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        const all = ["ended-1", "running-1", "ended-2", "running-2"];
        for (const instance of all) {
          if (instance.startsWith("ended")) await createEnded(provider, instance);
          else await create(provider, instance);
        }
        t.matches(await admin.deleteInstanceBulk({ instanceIds: all }), { instancesDeleted: 2 }, "what four ids took");
        await isLeft(t, store, ["running-1", "running-2"]);

        for (const instance of ["a", "b", "c", "d"]) await createEnded(provider, instance);
        const deleted = async () => (await admin.deleteInstanceBulk({ limit: 2 })).instancesDeleted;
        t.equal(
          [await deleted(), await deleted(), await deleted()],
          [2, 2, 0],
          "what a limit of 2 took of four, thrice",
        );
        await isLeft(t, store, ["running-1", "running-2"]);
      },
    },
    {
      id: "delete_instance_bulk_completed_before_filter",
      promise: "Only what ended before the given time goes, not what ended in that very millisecond",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "early");
        await t.wait(t.lockMs / 10);
        await createEnded(provider, "late", { status: "Failed", output: "broken" });
        const [early, late] = [await endOf(t, store, "early"), await endOf(t, store, "late")];

        t.equal(
          await admin.deleteInstanceBulk({ completedBeforeMs: early }),
          NOTHING,
          "what ended before the early one",
        );
        const both = ["early", "late"];
        const named = await admin.deleteInstanceBulk({ instanceIds: both, completedBeforeMs: early });
        t.equal(named, NOTHING, "what of both ended before the early one");
        await isLeft(t, store, both);
        t.matches(
          await admin.deleteInstanceBulk({ completedBeforeMs: late }),
          { instancesDeleted: 1 },
          "what ended before the late one",
        );
        await isLeft(t, store, ["late"]);
        const rest = await admin.deleteInstanceBulk({ instanceIds: both, completedBeforeMs: late + 1 });
        t.matches(rest, { instancesDeleted: 1 }, "what ended before the next millisecond");
        await isLeft(t, store, []);
      },
    },
    {
      id: "delete_instance_bulk_cascades_to_children",
      promise: "Roots go with their descendants, all of which are counted",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        const roots = ["root-1", "root-3", "root-0"];
        for (const root of roots) await createEnded(provider, root);
        await createEnded(provider, "child-of-1", { parentInstanceId: "root-1" });
        for (const child of ["x", "y", "z"]) await createEnded(provider, child, { parentInstanceId: "root-3" });
        t.equal(
          await admin.deleteInstanceBulk({ instanceIds: roots }),
          { instancesDeleted: 7, executionsDeleted: 7, eventsDeleted: 7, queueMessagesDeleted: 0 },
          "what the deletion of three roots took",
        );
        await isLeft(t, store, []);
      },
    },
    {
      id: "bulk_delete_skips_children",
      promise: "A child is passed over, even when it is named or has ended while its root runs",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "root");
        await createEnded(provider, "child", { parentInstanceId: "root" });
        await create(provider, "running-root");
        await createEnded(provider, "ended-child", { parentInstanceId: "running-root" });
        const children = await admin.deleteInstanceBulk({ instanceIds: ["child", "ended-child"] });
        t.equal(children, NOTHING, "what the ids of two children took");
        t.matches(await admin.deleteInstanceBulk({}), { instancesDeleted: 2 }, "what the empty filter took");
        await isLeft(t, store, ["running-root", "ended-child"]);
      },
    },
    {
      id: "bulk_delete_takes_child_of_deleted_parent",
      promise: "A child that was started after its parent was deleted is a root, and is not left behind for ever",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "parent");
        await admin.deleteInstance("parent", false);
        const metadata = { ...NAMED, status: "Completed", parentInstanceId: "parent" } as const;
        for (const orphan of ["orphan", "named-orphan"]) {
          await provider.enqueueForOrchestrator(start(orphan, { parentInstance: "parent", parentId: 2 }));
          await commitNext(provider, orphan, { events: [started(orphan)], metadata });
        }
        const named = await admin.deleteInstanceBulk({ instanceIds: ["named-orphan"] });
        t.matches(named, { instancesDeleted: 1 }, "what a filter took that names one of them");
        await isLeft(t, store, ["orphan"]);
        t.matches(await admin.deleteInstanceBulk({}), { instancesDeleted: 1 }, "what the empty filter took");
        await isLeft(t, store, []);
      },
    },
    {
      id: "bulk_delete_passes_over_running_descendants",
      promise: "A tree in which something still runs is passed over as a whole, and the others are deleted",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "root");
        await create(provider, "child", {
          metadata: { ...NAMED, parentInstanceId: "root" },
          workerItems: [act("child", 2)],
        });
        await createEnded(provider, "other");
        t.matches(await admin.deleteInstanceBulk({}), { instancesDeleted: 1 }, "what the empty filter took");
        await isLeft(t, store, ["root", "child"]);
        t.found(await fetchWork(provider), "the activity of the child");
      },
    },
    {
      id: "bulk_delete_every_kind_of_end",
      promise:
        "Completed and failed instances have ended, those that go on as new have not; the current execution decides",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "completed");
        await createEnded(provider, "failed", { status: "Failed", output: "broken" });
        await createEnded(provider, "between", { status: "ContinuedAsNew" });
        await createExecutions(provider, "continued", 3);
        await createExecutions(provider, "goes-on", 2, "Running");
        await createEnded(provider, "again");
        await runTurn(provider, "again", { executionId: 2, events: [started("again", { executionId: 2 })] });
        await begin(provider, "unnamed", { metadata: { status: "Completed" } });
        const unended = await admin.deleteInstanceBulk({ instanceIds: ["between", "goes-on", "again", "unnamed"] });
        t.matches(
          unended,
          { instancesDeleted: 0 },
          "what a filter took that names what has not ended, or is not known",
        );
        t.equal(
          await admin.deleteInstanceBulk({}),
          { instancesDeleted: 3, executionsDeleted: 5, eventsDeleted: 5, queueMessagesDeleted: 0 },
          "what the empty filter took",
        );
        await isLeft(t, store, ["between", "goes-on", "again"]);
        t.equal(
          await provider.read("unnamed"),
          [started("unnamed")],
          "the history of an instance that no turn has named",
        );
      },
    },
    {
      id: "bulk_delete_completed_before_looks_at_current_execution",
      promise: "By time, too, an instance goes by its current execution: earlier ones ended long ago",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "a", { status: "ContinuedAsNew" });
        const firstEnd = await endOf(t, store, "a");
        await t.wait(t.lockMs / 10);
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        await commitNext(provider, "a", {
          executionId: 2,
          events: [started("a", { executionId: 2 })],
          metadata: NAMED,
        });
        const everything = { completedBeforeMs: YEAR_2100_MS };
        t.equal(await admin.deleteInstanceBulk(everything), NOTHING, "what was taken while execution 2 runs");
        await runTurn(provider, "a", { executionId: 2, metadata: { status: "Completed", output: "done" } });

        const early = await admin.deleteInstanceBulk({ completedBeforeMs: firstEnd + 1 });
        t.equal(early, NOTHING, "what was taken by the end of execution 1");
        t.matches(
          await admin.deleteInstanceBulk(everything),
          { instancesDeleted: 1 },
          "what was taken by that of execution 2",
        );
        await isLeft(t, store, []);
      },
    },
    {
      id: "bulk_delete_limit_zero",
      promise: "A limit of 0 deletes nothing",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "a");
        t.equal(await admin.deleteInstanceBulk({ limit: 0 }), NOTHING, "what a limit of 0 took");
        t.equal(
          await admin.deleteInstanceBulk({ instanceIds: ["a"], limit: 0 }),
          NOTHING,
          "what it took of a named one",
        );
        await isLeft(t, store, ["a"]);
      },
    },
    {
      id: "bulk_delete_limit_oldest_first",
      promise: "Under a limit the oldest trees go first, and only what may go counts against it",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        const ended = ["d", "b", "c", "a"];
        await create(provider, "running");
        for (const instance of ended) {
          await createEnded(provider, instance);
          await createEnded(provider, `child-of-${instance}`, { parentInstanceId: instance });
          await t.wait(t.lockMs / 10);
        }
        const first = await admin.deleteInstanceBulk({ limit: 1 });
        t.matches(first, { instancesDeleted: 2 }, "what a limit of 1 took: one root, and its child");
        const left = (...roots: string[]) => ["running", ...roots, ...roots.map((root) => `child-of-${root}`)];
        await isLeft(t, store, left("b", "c", "a"));
        const named = { instanceIds: ["running", "unknown", "child-of-b", "a", "c"], limit: 1 };
        t.matches(
          await admin.deleteInstanceBulk(named),
          { instancesDeleted: 2 },
          "what a limit of 1 took of named ones",
        );
        await isLeft(t, store, left("b", "a"));
      },
    },
    {
      id: "bulk_delete_counts_rows",
      promise: "A bulk deletion tells exactly how many executions, events and messages it took",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 3);
        await create(provider, "b", {
          events: [started("b"), scheduled("b", 2)],
          workerItems: [act("b", 2), act("b", 3)],
          orchestratorItems: [raised("b")],
          metadata: { ...NAMED, status: "Failed", output: "broken" },
        });
        t.equal(
          await admin.deleteInstanceBulk({}),
          { instancesDeleted: 2, executionsDeleted: 4, eventsDeleted: 5, queueMessagesDeleted: 3 },
          "what the deletion took",
        );
      },
    },
    {
      id: "bulk_delete_many_ids",
      promise: "A filter may name thousands of ids, one of them twice",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        for (const instance of ["first", "last", "other"]) await createEnded(provider, instance);
        const unknown = Array.from({ length: 5_000 }, (_, index) => `unknown-${index}`);
        const taken = await admin.deleteInstanceBulk({ instanceIds: ["first", ...unknown, "last", "first"] });
        t.equal(
          taken,
          { ...NOTHING, instancesDeleted: 2, executionsDeleted: 2, eventsDeleted: 2 },
          "what the ids took",
        );
        await isLeft(t, store, ["other"]);
      },
    },
  ],
};

/** Checks that exactly these instances exist, and have their histories. */
async function isLeft(t: CaseContext, { provider, admin }: CaseStore, instances: readonly string[]): Promise<void> {
  t.equal([...(await admin.listInstances())].sort(), [...instances].sort(), "the instances that are left");
  for (const instance of instances) t.ok((await provider.read(instance)).length > 0, `'${instance}' has its history`);
}

/** When the first execution of the instance ended, by the store's own clock. */
async function endOf(t: CaseContext, { admin }: CaseStore, instance: string): Promise<number> {
  const { completedAtMs } = await admin.getExecutionInfo(instance, 1);
  return t.found(completedAtMs, `the end of '${instance}'`);
}
