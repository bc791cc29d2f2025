// cases/prune.ts — old executions can be removed; the current one and a running one never are.

import type { ExecutionStatus, Provider } from "../../provider/provider.js";
import { act, continueAsNew, kvSet, NAMED, raised, scheduled, started, statusSet, timer, turn } from "../builders.js";
import type { CaseContext, CaseStore } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, create, createExecutions, runTurn, takeTurn, takeWork } from "../steps.js";

/** Later than anything in any case, and still a date to every store. */
const YEAR_2100_MS = 4_102_444_800_000;

export const prune: Category = {
  name: "prune",
  about: "Old executions can be removed; the current one and a running one never are.",
  cases: [
    {
      id: "prune_options_combinations",
      promise: "The newest executions stay, as many as are wanted; without options only the current one",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "four", 4);
        t.equal(
          await admin.pruneExecutions("four", { keepLast: 2 }),
          { instancesProcessed: 1, executionsDeleted: 2, eventsDeleted: 2 },
          "what was pruned of four when two are kept",
        );
        t.equal(await admin.listExecutions("four"), [3, 4], "the executions that are left of four");
        await createExecutions(provider, "three", 3);
        t.equal(
          await admin.pruneExecutions("three", {}),
          { instancesProcessed: 1, executionsDeleted: 2, eventsDeleted: 2 },
          "what was pruned of three without options",
        );
        t.equal(await admin.listExecutions("three"), [3], "the executions that are left of three");
      },
    },
    {
      id: "prune_safety",
      promise: "The current execution stays: to keep none, one or an unsaid number is the same",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const keepLast of [undefined, 0, 1]) {
          const instance = `keep-${keepLast}`;
          await createExecutions(provider, instance, 4);
          const before = await admin.getInstanceInfo(instance);
          t.equal(
            await admin.pruneExecutions(instance, keepLast === undefined ? {} : { keepLast }),
            { instancesProcessed: 1, executionsDeleted: 3, eventsDeleted: 3 },
            `what was pruned with keepLast ${keepLast}`,
          );
          t.equal(await admin.listExecutions(instance), [4], `the executions that are left with keepLast ${keepLast}`);
          t.equal(await admin.getInstanceInfo(instance), before, `the instance afterwards with keepLast ${keepLast}`);
        }
        await t.refused(
          admin.pruneExecutions("unknown", { keepLast: 0 }),
          "not-found",
          "the pruning of an unknown instance",
        );
      },
    },
    {
      id: "prune_keeps_more_than_there_are",
      promise: "Where no more executions exist than are to be kept, none goes; to prune again changes nothing",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 3);
        const nothing = { instancesProcessed: 1, executionsDeleted: 0, eventsDeleted: 0 };
        for (const keepLast of [3, 4, 1_000]) {
          t.equal(await admin.pruneExecutions("a", { keepLast }), nothing, `what was pruned when ${keepLast} are kept`);
        }
        await admin.pruneExecutions("a", {});
        t.equal(await admin.pruneExecutions("a", {}), nothing, "what the second pruning took");
        t.equal(await admin.listExecutions("a"), [3], "the executions that are left");
      },
    },
    {
      id: "prune_never_takes_current",
      promise: "The current execution stays, whatever its state and however long ago it ended",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const status of ["Running", "Completed", "Failed", "ContinuedAsNew"] satisfies ExecutionStatus[]) {
          await createExecutions(provider, status, 2, status);
          await t.wait(t.lockMs / 10);
          const options = { keepLast: 0, completedBeforeMs: YEAR_2100_MS };
          t.matches(await admin.pruneExecutions(status, options), { executionsDeleted: 1 }, "what was pruned");
          t.equal(await admin.listExecutions(status), [2], `the executions of one that is ${status}`);
          t.matches(
            await provider.getInstanceStatus(status),
            { status, executionId: 2 },
            `the status of the ${status} one`,
          );
          const history = [started(status, { executionId: 2 })];
          t.equal(await provider.read(status), history, `the history of the ${status} one`);
        }
      },
    },
    {
      id: "prune_never_takes_running",
      promise: "An execution that was never ended stays, even where a later one is current",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 2, "Running");
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        await commitNext(provider, "a", {
          executionId: 3,
          events: [started("a", { executionId: 3 })],
          metadata: NAMED,
        });
        const options = { completedBeforeMs: YEAR_2100_MS };
        t.matches(await admin.pruneExecutions("a", options), { executionsDeleted: 1 }, "what was pruned by time");
        t.equal(await admin.listExecutions("a"), [2, 3], "the executions that are left, of which 2 was never ended");
        t.matches(await admin.pruneExecutions("a", {}), { executionsDeleted: 0 }, "what was pruned without options");
        t.equal((await provider.readWithExecution("a", 2)).length, 1, "events of the one that was never ended");
      },
    },
    {
      id: "prune_removes_histories",
      promise: "A pruned execution leaves neither its history nor its description, and its events are counted",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { events: [started("a"), scheduled("a", 2), scheduled("a", 3)] });
        await runTurn(provider, "a", { metadata: { status: "ContinuedAsNew" } });
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        await commitNext(provider, "a", {
          executionId: 2,
          events: [started("a", { executionId: 2 })],
          metadata: NAMED,
        });
        t.equal(
          await admin.pruneExecutions("a", {}),
          { instancesProcessed: 1, executionsDeleted: 1, eventsDeleted: 3 },
          "what was pruned",
        );
        t.equal(await provider.readWithExecution("a", 1), [], "the history of the pruned execution");
        await t.refused(admin.getExecutionInfo("a", 1), "not-found", "the description of the pruned execution");
        t.equal(await provider.read("a"), [started("a", { executionId: 2 })], "the history of the current execution");
        t.equal(await admin.latestExecutionId("a"), 2, "the latest execution");
        t.matches(await admin.getSystemMetrics(), { totalExecutions: 1, totalEvents: 1 }, "the metrics");
      },
    },
    {
      id: "prune_leaves_everything_else",
      promise: "Pruning leaves key-values, custom status, messages, activities and the instance as they are",
      async run(t) {
        const { provider, admin } = await t.open();
        const events = [started("a"), kvSet("a", 2, "early", "1"), statusSet("a", 3, "on its way")];
        await create(provider, "a", { events, workerItems: [act("a", 4)] });
        await runTurn(provider, "a", { metadata: { status: "ContinuedAsNew" } });
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        const second = [started("a", { executionId: 2 }), kvSet("a", 2, "late", "2")];
        await commitNext(provider, "a", { executionId: 2, events: second, metadata: NAMED });
        await provider.enqueueForOrchestrator(timer("a", 9, 1));
        await provider.enqueueForOrchestrator(raised("a"));
        const before = { info: await admin.getInstanceInfo("a"), status: await provider.getInstanceStatus("a") };

        await t.wait(t.lockMs / 10);
        t.matches(await admin.pruneExecutions("a", {}), { executionsDeleted: 1 }, "what was pruned");

        t.equal(await admin.getInstanceInfo("a"), before.info, "the description afterwards");
        t.equal(await provider.getInstanceStatus("a"), before.status, "the status afterwards");
        const values = new Map([
          ["early", "1"],
          ["late", "2"],
        ]);
        t.equal(await provider.getKvAllValues("a"), values, "the key-values, of which one is of the pruned execution");
        t.equal(await admin.getQueueDepths(), { orchestratorQueue: 2, workerQueue: 1, timerQueue: 0 }, "the queues");
        const { item } = await takeTurn(provider);
        t.equal(item.messages, [timer("a", 9, 1), raised("a")], "the messages");
        t.equal([...item.kvSnapshot.keys()], ["early"], "the keys that the next turn begins with");
        const work = await takeWork(provider);
        t.equal(work.item, act("a", 4), "the activity of the pruned execution");
        t.equal(work.executionState, "terminated", "what is said of its execution");
      },
    },
    {
      id: "prune_during_turn",
      promise: "Who works on an instance while it is pruned can still commit",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 3, "Running");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        t.matches(await admin.pruneExecutions("a", {}), { executionsDeleted: 2 }, "what was pruned");
        await provider.ackOrchestrationItem(lockToken, turn({ executionId: 3, events: [scheduled("a", 2)] }));
        t.equal((await provider.read("a")).length, 2, "events of the current execution");
      },
    },
    {
      id: "prune_leaves_others_alone",
      promise: "Pruning one instance leaves the executions of all others",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const instance of ["a", "A", "ab"]) await createExecutions(provider, instance, 3);
        await admin.pruneExecutions("a", {});
        t.equal(await admin.listExecutions("a"), [3], "the executions of the pruned instance");
        for (const other of ["A", "ab"]) {
          t.equal(await admin.listExecutions(other), [1, 2, 3], `the executions of '${other}'`);
          t.equal(
            (await provider.readWithExecution(other, 1)).length,
            1,
            `events of the first execution of '${other}'`,
          );
        }
      },
    },
    {
      id: "prune_unknown_is_not_found",
      promise: "An instance that no turn has named is not there to be pruned",
      async run(t) {
        const { provider, admin } = await t.open();
        await begin(provider, "unnamed");
        await t.refused(admin.pruneExecutions("unnamed", {}), "not-found", "the pruning of an instance without a name");
        await t.refused(admin.pruneExecutions("unknown", {}), "not-found", "the pruning of an unknown instance");
        t.equal(await provider.read("unnamed"), [started("unnamed")], "the history of the one without a name");
      },
    },
    {
      id: "prune_completed_before",
      promise: "Only executions that ended before the given time go, those that continued as new among them",
      async run(t) {
        const store = await t.open();
        const { admin } = store;
        await createExecutionsOverTime(t, store.provider, "a", 4);
        const [firstEnd, secondEnd] = [await endOf(t, store, "a", 1), await endOf(t, store, "a", 2)];

        const nothing = { instancesProcessed: 1, executionsDeleted: 0, eventsDeleted: 0 };
        const tooEarly = await admin.pruneExecutions("a", { completedBeforeMs: firstEnd });
        t.equal(tooEarly, nothing, "what ended before the very millisecond in which the first one ended");
        const one = { instancesProcessed: 1, executionsDeleted: 1, eventsDeleted: 1 };
        t.equal(
          await admin.pruneExecutions("a", { completedBeforeMs: firstEnd + 1 }),
          one,
          "what ended before the next",
        );
        t.equal(await admin.listExecutions("a"), [2, 3, 4], "the executions after the first pruning");
        t.equal(
          await admin.pruneExecutions("a", { completedBeforeMs: secondEnd }),
          nothing,
          "what else ended before 2",
        );
        t.equal(await admin.pruneExecutions("a", { completedBeforeMs: secondEnd + 1 }), one, "what ended before 3");
        t.equal(await admin.listExecutions("a"), [3, 4], "the executions after the second pruning");
      },
    },
    {
      id: "prune_keep_last_and_completed_before",
      promise: "An execution goes only where it is both too old and too many",
      async run(t) {
        const store = await t.open();
        const { admin } = store;
        await createExecutionsOverTime(t, store.provider, "a", 5);
        const thirdEnd = await endOf(t, store, "a", 3);
        await admin.pruneExecutions("a", { keepLast: 4, completedBeforeMs: thirdEnd });
        t.equal(await admin.listExecutions("a"), [2, 3, 4, 5], "executions 1 and 2 are old, and four are kept");
        await admin.pruneExecutions("a", { keepLast: 1, completedBeforeMs: thirdEnd });
        t.equal(await admin.listExecutions("a"), [3, 4, 5], "execution 2 is old, and one is kept");
      },
    },

    // In bulk
    {
      id: "prune_bulk",
      promise: "The named instances are pruned, and no others",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const instance of ["a", "b", "c"]) await createExecutions(provider, instance, 4);
        t.equal(
          await admin.pruneExecutionsBulk({ instanceIds: ["a", "b"] }, { keepLast: 1 }),
          { instancesProcessed: 2, executionsDeleted: 6, eventsDeleted: 6 },
          "what was pruned",
        );
        for (const instance of ["a", "b"])
          t.equal(await admin.listExecutions(instance), [4], `what is left of '${instance}'`);
        t.equal(await admin.listExecutions("c"), [1, 2, 3, 4], "the executions of the one that was not named");
      },
    },
    {
      id: "prune_bulk_includes_running_instances",
      promise: "Instances that run are pruned in bulk, too, and run on",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 3, "Running");
        t.equal(
          await admin.pruneExecutionsBulk({ instanceIds: ["a"] }, { keepLast: 1 }),
          { instancesProcessed: 1, executionsDeleted: 2, eventsDeleted: 2 },
          "what was pruned",
        );
        t.equal(await admin.listExecutions("a"), [3], "the executions that are left");
        t.matches(await admin.getInstanceInfo("a"), { status: "Running", currentExecutionId: 3 }, "the instance");
      },
    },
    {
      id: "prune_bulk_filters",
      promise:
        "An empty filter is about all instances, children too; an empty list about none; unknown ids about nothing",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 2);
        await create(provider, "child", { metadata: { ...NAMED, status: "ContinuedAsNew", parentInstanceId: "a" } });
        await provider.enqueueForOrchestrator(continueAsNew("child"));
        const events = [started("child", { executionId: 2 })];
        await commitNext(provider, "child", { executionId: 2, events, metadata: NAMED });
        await create(provider, "single");

        const nothing = { instancesProcessed: 0, executionsDeleted: 0, eventsDeleted: 0 };
        t.equal(await admin.pruneExecutionsBulk({ instanceIds: [] }, {}), nothing, "what an empty list of ids took");
        t.equal(await admin.pruneExecutionsBulk({ instanceIds: ["unknown"] }, {}), nothing, "what an unknown id took");
        const all = { instancesProcessed: 2, executionsDeleted: 2, eventsDeleted: 2 };
        t.equal(await admin.pruneExecutionsBulk({}, {}), all, "what the empty filter took");
        for (const instance of ["a", "child"])
          t.equal(await admin.listExecutions(instance), [2], `what is left of '${instance}'`);
        t.equal(await admin.listExecutions("single"), [1], "what is left of the one with a single execution");
      },
    },
    {
      id: "prune_bulk_limit",
      promise: "No more instances are pruned than the limit says, the oldest first; a limit of 0 prunes none",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const instance of ["c", "a", "b"]) {
          await createExecutions(provider, instance, 2);
          await t.wait(t.lockMs / 10);
        }
        const nothing = { instancesProcessed: 0, executionsDeleted: 0, eventsDeleted: 0 };
        t.equal(await admin.pruneExecutionsBulk({ limit: 0 }, {}), nothing, "what a limit of 0 took");
        const kept = await admin.pruneExecutionsBulk({}, { keepLast: 2 });
        t.equal(kept, nothing, "what was taken of instances that have no more executions than are kept");
        const one = { instancesProcessed: 1, executionsDeleted: 1, eventsDeleted: 1 };
        const named = await admin.pruneExecutionsBulk({ instanceIds: ["b", "c"], limit: 1 }, {});
        t.equal(named, one, "what a limit of 1 took of two that are named");
        t.equal(await admin.listExecutions("c"), [2], "the executions of the oldest");
        t.equal(await admin.pruneExecutionsBulk({ limit: 1 }, {}), one, "what a limit of 1 took of all");
        t.equal(await admin.listExecutions("b"), [1, 2], "the executions of the newest");
        const rest = await admin.pruneExecutionsBulk({ limit: 2 }, {});
        t.equal(rest, one, "what the same call took then: those that are pruned do not stand in its way");
      },
    },
    {
      id: "prune_bulk_completed_before",
      promise: "A filter by time is about instances whose current execution ended before it: none that runs",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createExecutions(provider, "running", 2, "Running");
        await createExecutions(provider, "early", 2);
        await t.wait(t.lockMs / 10);
        await createExecutions(provider, "late", 2);
        const [early, late] = [await endOf(t, store, "early", 2), await endOf(t, store, "late", 2)];

        const processed = async (completedBeforeMs: number) =>
          (await admin.pruneExecutionsBulk({ completedBeforeMs }, {})).instancesProcessed;
        const instanceIds = ["running", "early", "late"];
        const ofNamed = await admin.pruneExecutionsBulk({ instanceIds, completedBeforeMs: early }, {});
        t.equal(ofNamed.instancesProcessed, 0, "of named ones, those that ended before that millisecond");
        t.equal(await processed(early), 0, "instances that ended before the very millisecond of the early one");
        t.equal(await processed(late), 1, "instances that ended before the late one");
        t.equal(await admin.listExecutions("early"), [2], "the executions of the early one");
        t.equal(
          await processed(late + 1),
          1,
          "instances that ended before the next millisecond, and are not pruned yet",
        );
        t.equal(await admin.listExecutions("late"), [2], "the executions of the late one");
        t.equal(await admin.listExecutions("running"), [1, 2], "the executions of the one that runs");
      },
    },
  ],
};

/** As `createExecutions`, with time between the ends of the executions. The last one completes. */
async function createExecutionsOverTime(
  t: CaseContext,
  provider: Provider,
  instance: string,
  count: number,
): Promise<void> {
  await createExecutions(provider, instance, 1, "ContinuedAsNew");
  for (let executionId = 2; executionId <= count; executionId += 1) {
    await t.wait(t.lockMs / 10);
    await provider.enqueueForOrchestrator(continueAsNew(instance));
    const status = executionId < count ? "ContinuedAsNew" : "Completed";
    const events = [started(instance, { executionId })];
    await commitNext(provider, instance, { executionId, events, metadata: { ...NAMED, status } });
  }
}

/** When the execution ended, by the store's own clock. */
async function endOf(t: CaseContext, { admin }: CaseStore, instance: string, executionId: number): Promise<number> {
  const { completedAtMs } = await admin.getExecutionInfo(instance, executionId);
  return t.found(completedAtMs, `the end of execution ${executionId} of '${instance}'`);
}
