// cases/management.ts — operators see what is there: lists, details and counts.

import type { ExecutionStatus } from "../../provider/provider.js";
import {
  act,
  completed,
  continueAsNew,
  event,
  kvCleared,
  kvSet,
  NAMED,
  raised,
  scheduled,
  start,
  started,
  timer,
  turn,
} from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import {
  begin,
  commitNext,
  continueExecution,
  create,
  createEnded,
  createExecutions,
  runTurn,
  takeTurn,
  takeWork,
} from "../steps.js";

const EMPTY = {
  totalInstances: 0,
  totalExecutions: 0,
  runningInstances: 0,
  completedInstances: 0,
  failedInstances: 0,
  totalEvents: 0,
};

export const management: Category = {
  name: "management",
  about: "Operators see what is there: lists, details and counts.",
  cases: [
    // Lists
    {
      id: "list_instances",
      promise: "All instances are listed, whatever their state, newest first",
      async run(t) {
        const { provider, admin } = await t.open();
        t.equal(await admin.listInstances(), [], "the instances of an empty store");
        await create(provider, "mgmt-inst-0");
        await aWhile(t);
        await createEnded(provider, "mgmt-inst-1");
        await aWhile(t);
        await createEnded(provider, "mgmt-inst-2", { status: "Failed", parentInstanceId: "mgmt-inst-0" });
        const newestFirst = ["mgmt-inst-2", "mgmt-inst-1", "mgmt-inst-0"];
        t.equal(await admin.listInstances(), newestFirst, "the instances");

        await aWhile(t);
        await runTurn(provider, "mgmt-inst-0");
        t.equal(await admin.listInstances(), newestFirst, "the instances after one more turn of the oldest");
      },
    },
    {
      id: "list_instances_by_status",
      promise: "Instances are found by the status of their current execution, newest first",
      async run(t) {
        const { provider, admin } = await t.open();
        await createEnded(provider, "mgmt-completed");
        await aWhile(t);
        await createEnded(provider, "mgmt-failed", { status: "Failed", output: "broken" });
        await create(provider, "mgmt-running");
        await createEnded(provider, "mgmt-between", { status: "ContinuedAsNew" });
        await createExecutions(provider, "mgmt-continued", 2);
        await provider.enqueueForOrchestrator(start("mgmt-pending"));

        const lists = async (status: ExecutionStatus) => admin.listInstancesByStatus(status);
        t.equal(await lists("Completed"), ["mgmt-continued", "mgmt-completed"], "completed instances");
        t.equal(await lists("Failed"), ["mgmt-failed"], "failed instances");
        t.equal(await lists("Running"), ["mgmt-running"], "running instances");
        t.equal(await lists("ContinuedAsNew"), ["mgmt-between"], "instances between two executions");
      },
    },
    {
      id: "list_executions",
      promise: "Executions are listed in order, even of an instance that no turn has named",
      async run(t) {
        const { provider, admin } = await t.open();
        await begin(provider, "mgmt-exec-list");
        t.equal(await admin.listExecutions("mgmt-exec-list"), [1], "the executions after the first turn");
        await createExecutions(provider, "mgmt-exec-more", 12, "Running");
        const all = Array.from({ length: 12 }, (_, index) => index + 1);
        t.equal(await admin.listExecutions("mgmt-exec-more"), all, "the executions of an instance with twelve");
        t.equal(await admin.listExecutions("unknown"), [], "the executions of an unknown instance");
      },
    },
    {
      id: "execution_without_events_listed",
      promise: "An execution is listed from its first turn on, also where that turn wrote no event",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { events: [] });
        t.equal(await admin.listExecutions("a"), [1], "the executions of an instance without events");
        const expected = { executionId: 1, status: "Running", eventCount: 0, completedAtMs: null } as const;
        t.matches(await admin.getExecutionInfo("a", 1), expected, "the execution without events");
      },
    },
    {
      id: "latest_execution_id",
      promise: "The latest execution is the one with the highest id; 1 where there is none",
      async run(t) {
        const { provider, admin } = await t.open();
        t.equal(await admin.latestExecutionId("unknown"), 1, "the latest execution of an unknown instance");
        await provider.enqueueForOrchestrator(start("a"));
        t.equal(await admin.latestExecutionId("a"), 1, "the latest execution before the first turn");
        await commitNext(provider, "a", { events: [started("a")], metadata: NAMED });
        t.equal(await admin.latestExecutionId("a"), 1, "the latest execution after the first turn");
        await continueExecution(provider, "a", 2);
        await continueExecution(provider, "a", 3);
        t.equal(await admin.latestExecutionId("a"), 3, "the latest execution after two continuations");
      },
    },

    // Details
    {
      id: "get_instance_info",
      promise: "An instance is described under the name and version of its last turn, with its creation and its parent",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "parent");
        await create(provider, "mgmt-info", {
          metadata: { orchestrationName: "InfoOrch", orchestrationVersion: "2.0.0", parentInstanceId: "parent" },
        });
        const info = await admin.getInstanceInfo("mgmt-info");
        t.equal(
          info,
          {
            instanceId: "mgmt-info",
            orchestrationName: "InfoOrch",
            orchestrationVersion: "2.0.0",
            currentExecutionId: 1,
            status: "Running",
            output: null,
            createdAtMs: info.createdAtMs,
            updatedAtMs: info.updatedAtMs,
            parentInstanceId: "parent",
          },
          "the description after the first turn",
        );
        t.ok(Number.isSafeInteger(info.createdAtMs), "the time of creation is an integer of milliseconds");
        t.ok(info.updatedAtMs >= info.createdAtMs, "the first turn is not before the creation");
        t.isNull((await admin.getInstanceInfo("parent")).parentInstanceId, "the parent of a root");
      },
    },
    {
      id: "info_of_ended_instance",
      promise: "An instance that has ended is described with the status and the output of its end",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const status of ["Completed", "Failed", "ContinuedAsNew"] satisfies ExecutionStatus[]) {
          await createEnded(provider, status, { status, output: `it is ${status}` });
          const expected = { status, output: `it is ${status}`, currentExecutionId: 1 };
          t.matches(await admin.getInstanceInfo(status), expected, `the description of an instance that has ${status}`);
        }
      },
    },
    {
      id: "info_of_current_execution",
      promise: "Status, output and version of an instance are those of its current execution",
      async run(t) {
        const { provider, admin } = await t.open();
        await createEnded(provider, "a", { status: "ContinuedAsNew", output: "next input" });
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        const metadata = { orchestrationName: "TestOrch", orchestrationVersion: "2.0.0" };
        await commitNext(provider, "a", { executionId: 2, events: [started("a", { executionId: 2 })], metadata });

        const running = {
          currentExecutionId: 2,
          status: "Running",
          output: null,
          orchestrationVersion: "2.0.0",
        } as const;
        t.matches(await admin.getInstanceInfo("a"), running, "the description while execution 2 runs");
        await runTurn(provider, "a", { executionId: 2, metadata: { status: "Completed", output: "all done" } });
        const over = { currentExecutionId: 2, status: "Completed", output: "all done" } as const;
        t.matches(await admin.getInstanceInfo("a"), over, "the description when execution 2 has completed");
      },
    },
    {
      id: "updated_with_every_turn",
      promise: "Every turn moves the time of the last update, nothing else does, and the time of creation stays",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        const first = await admin.getInstanceInfo("a");

        await aWhile(t);
        await provider.enqueueForOrchestrator(raised("a"));
        await provider.enqueueForWorker(act("a", 2));
        const { lockToken } = await takeTurn(provider);
        t.equal(await admin.getInstanceInfo("a"), first, "the description while the next turn is being worked on");
        await provider.ackOrchestrationItem(lockToken, turn());
        const second = await admin.getInstanceInfo("a");
        t.ok(second.updatedAtMs > first.updatedAtMs, "a turn that decides nothing moves the time of the last update");

        await aWhile(t);
        await continueExecution(provider, "a", 2);
        const third = await admin.getInstanceInfo("a");
        t.ok(third.updatedAtMs > second.updatedAtMs, "a turn of the next execution moves the time of the last update");
        t.equal(third.createdAtMs, first.createdAtMs, "the time of creation after two more turns");
      },
    },
    {
      id: "times_are_the_clocks",
      promise: "Creation, update, start and end carry the time of the turn that made them, to the millisecond",
      async run(t) {
        const { provider, admin } = await t.open();
        const clock = t.exactTime;
        const startedAtMs = clock.now();
        await provider.enqueueForOrchestrator(start("a"));
        await clock.advance(7);
        await commitNext(provider, "a", { events: [started("a")], metadata: NAMED });
        const createdAtMs = startedAtMs + 7;
        await clock.advance(11);
        await runTurn(provider, "a", { metadata: { status: "Completed", output: "done" } });

        const times = { createdAtMs, updatedAtMs: createdAtMs + 11 };
        t.matches(await admin.getInstanceInfo("a"), times, "the times of the instance");
        const executionTimes = { startedAtMs: createdAtMs, completedAtMs: createdAtMs + 11 };
        t.matches(await admin.getExecutionInfo("a", 1), executionTimes, "the times of the execution");
      },
    },
    {
      id: "get_execution_info",
      promise: "An execution of an instance that no turn has named is described by what its turns said of it",
      async run(t) {
        const { provider, admin } = await t.open();
        await begin(provider, "mgmt-exec-info", {
          events: [started("somebody-else")],
          metadata: { status: "Completed", output: "result" },
        });
        t.matches(
          await admin.getExecutionInfo("mgmt-exec-info", 1),
          { executionId: 1, status: "Completed", output: "result", eventCount: 1 },
          "the execution, whose event names another instance",
        );
      },
    },
    {
      id: "execution_has_no_end_while_it_runs",
      promise: "An execution has an end once it has completed, failed or continued as new, and none before",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const status of ["Completed", "Failed", "ContinuedAsNew"] satisfies ExecutionStatus[]) {
          await create(provider, status);
          const running = { status: "Running", output: null, completedAtMs: null } as const;
          t.matches(await admin.getExecutionInfo(status, 1), running, "the execution while it runs");
          await aWhile(t);
          await runTurn(provider, status, { events: [completed(status, 2)], metadata: { status, output: "end" } });
          const over = await admin.getExecutionInfo(status, 1);
          t.matches(over, { status, output: "end", eventCount: 2 }, `the execution that has ${status}`);
          const endedAtMs = t.found(over.completedAtMs, `the end of an execution that has ${status}`);
          t.ok(endedAtMs > over.startedAtMs, `the end of an execution that has ${status} comes after its beginning`);
        }
      },
    },
    {
      id: "status_without_output_has_none",
      promise: "A turn that speaks of the status speaks of output and end, too: what it does not say is gone",
      async run(t) {
        const { provider, admin } = await t.open();
        await createEnded(provider, "a");
        await runTurn(provider, "a", { metadata: { status: "Running" } });
        const running = { status: "Running", output: null, completedAtMs: null } as const;
        t.matches(await admin.getExecutionInfo("a", 1), running, "the execution that runs again");
        t.matches(await provider.getInstanceStatus("a"), { status: "Running", output: null }, "the status");

        await runTurn(provider, "a", { metadata: { status: "Completed" } });
        const over = await admin.getExecutionInfo("a", 1);
        t.matches(over, { status: "Completed", output: null }, "the execution that has ended without an output");
        t.found(over.completedAtMs, "its end");
        t.matches(await admin.getInstanceInfo("a"), { status: "Completed", output: null }, "the instance");
      },
    },
    {
      id: "executions_are_described_each_by_itself",
      promise: "Every execution has its own status, times and number of events",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { events: [started("a"), scheduled("a", 2), scheduled("a", 3)] });
        await aWhile(t);
        await continueExecution(provider, "a", 2);
        await runTurn(provider, "a", {
          executionId: 2,
          events: [event("a", 2, { type: "KeyValuesCleared" }, { executionId: 2 })],
        });

        const first = await admin.getExecutionInfo("a", 1);
        t.matches(first, { executionId: 1, status: "ContinuedAsNew", eventCount: 3 }, "execution 1");
        t.found(first.completedAtMs, "the end of execution 1");
        const second = await admin.getExecutionInfo("a", 2);
        const running = {
          executionId: 2,
          status: "Running",
          output: null,
          completedAtMs: null,
          eventCount: 2,
        } as const;
        t.matches(second, running, "execution 2");
        t.ok(second.startedAtMs > first.startedAtMs, "execution 2 begins after execution 1");
      },
    },
    {
      id: "unknown_is_not_found",
      promise: "Nobody describes an instance or an execution that does not exist",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await t.refused(admin.getInstanceInfo("unknown"), "not-found", "the description of an unknown instance");
        await t.refused(admin.getExecutionInfo("unknown", 1), "not-found", "an execution of an unknown instance");
        await t.refused(admin.getExecutionInfo("a", 2), "not-found", "an execution that has not begun");
        await t.refused(admin.getInstanceInfo("A"), "not-found", "the description under an id in another case");
      },
    },
    {
      id: "known_by_named_turn_only",
      promise: "An instance is known to operators from its first turn on that names orchestration and version",
      async run(t) {
        const { provider, admin } = await t.open();
        await provider.enqueueForOrchestrator(start("queued"), { delayMs: 10 * t.lockMs });
        await begin(provider, "unnamed");
        for (const instance of ["queued", "unnamed"]) {
          await t.refused(admin.getInstanceInfo(instance), "not-found", `the description of the ${instance} one`);
          await t.refused(admin.getParentId(instance), "not-found", `the parent of the ${instance} one`);
          await t.refused(admin.getInstanceTree(instance), "not-found", `the tree of the ${instance} one`);
        }
        t.equal(await admin.listInstances(), [], "the instances");
        t.equal(await admin.listInstancesByStatus("Running"), [], "the running instances");
        const nobody = { totalInstances: 0, runningInstances: 0 };
        t.matches(await admin.getSystemMetrics(), nobody, "the metrics");
        t.equal(await admin.listExecutions("queued"), [], "executions of the queued one");

        await runTurn(provider, "unnamed", { metadata: NAMED });
        t.matches(await admin.getInstanceInfo("unnamed"), { status: "Running" }, "the description once it was named");
        t.equal(await admin.listInstances(), ["unnamed"], "the instances once one was named");
      },
    },
    {
      id: "history_as_provider_reads_it",
      promise: "Operators read the same history as everybody",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { events: [started("a"), scheduled("a", 2)] });
        await continueExecution(provider, "a", 2);
        const second = [started("a", { executionId: 2 })];
        t.equal(await admin.readHistory("a"), second, "the latest history");
        t.equal(await admin.readHistory("a"), await provider.read("a"), "the latest history, by management");
        const first = [started("a"), scheduled("a", 2)];
        t.equal(await admin.readHistoryWithExecutionId("a", 1), first, "the history of execution 1");
        t.equal(await admin.readHistoryWithExecutionId("a", 2), second, "the history of execution 2");
        t.equal(await admin.readHistoryWithExecutionId("a", 3), [], "the history of an execution that has not begun");
        t.equal(await admin.readHistory("unknown"), [], "the history of an unknown instance");
      },
    },
    {
      id: "corrupt_history_is_told",
      promise: "Operators are told of a history that cannot be decoded, and everything else of its instance",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "a");
        await store.corruptHistory("a");
        await t.refused(admin.readHistory("a"), "corrupt", "the corrupt history");
        await t.refused(admin.readHistoryWithExecutionId("a", 1), "corrupt", "the corrupt history of execution 1");
        t.matches(await admin.getInstanceInfo("a"), { status: "Completed" }, "the description of its instance");
        t.matches(await admin.getExecutionInfo("a", 1), { eventCount: 1 }, "the description of its execution");
        t.equal(await admin.listInstances(), ["a"], "the instances");
      },
    },

    // Counts
    {
      id: "get_system_metrics",
      promise: "The metrics count every instance, execution and event",
      async run(t) {
        const { provider, admin } = await t.open();
        t.equal(await admin.getSystemMetrics(), EMPTY, "the metrics of an empty store");
        await create(provider, "mgmt-metrics", { events: [started("somebody-else")] });
        t.equal(
          await admin.getSystemMetrics(),
          { ...EMPTY, totalInstances: 1, totalExecutions: 1, runningInstances: 1, totalEvents: 1 },
          "the metrics with one instance",
        );
      },
    },
    {
      id: "system_metrics_by_state",
      promise: "The metrics count instances by the state of their current execution",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "running", { events: [started("running"), scheduled("running", 2)] });
        await createEnded(provider, "completed");
        t.equal(
          await admin.getSystemMetrics(),
          {
            ...EMPTY,
            totalInstances: 2,
            totalExecutions: 2,
            runningInstances: 1,
            completedInstances: 1,
            totalEvents: 3,
          },
          "the metrics with one that runs and one that has completed",
        );
        await createEnded(provider, "failed", { status: "Failed", output: "broken" });
        await createEnded(provider, "between", { status: "ContinuedAsNew" });
        t.equal(
          await admin.getSystemMetrics(),
          {
            totalInstances: 4,
            totalExecutions: 4,
            runningInstances: 1,
            completedInstances: 1,
            failedInstances: 1,
            totalEvents: 5,
          },
          "the metrics with one that has failed and one between two executions",
        );

        await createExecutions(provider, "continued", 3);
        await runTurn(provider, "running", { metadata: { status: "Failed", output: "broken" } });
        t.equal(
          await admin.getSystemMetrics(),
          {
            totalInstances: 5,
            totalExecutions: 7,
            runningInstances: 0,
            completedInstances: 2,
            failedInstances: 2,
            totalEvents: 8,
          },
          "the metrics with one that has completed in its third execution",
        );
      },
    },
    {
      id: "get_queue_depths",
      promise: "A queued message is one more in its queue",
      async run(t) {
        const { provider, admin } = await t.open();
        const empty = { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 };
        t.equal(await admin.getQueueDepths(), empty, "the depths of an empty store");
        await provider.enqueueForOrchestrator(start("mgmt-depth"));
        t.equal(await admin.getQueueDepths(), { ...empty, orchestratorQueue: 1 }, "the depths with one message");
        await provider.enqueueForWorker(act("mgmt-depth", 1));
        await provider.enqueueForWorker(act("mgmt-depth", 2, { tag: "gpu", sessionId: "s" }));
        const both = { ...empty, orchestratorQueue: 1, workerQueue: 2 };
        t.equal(await admin.getQueueDepths(), both, "the depths with one message and two activities");
      },
    },
    {
      id: "queue_depths_count_delayed",
      promise: "What is not yet visible is counted: timers, delayed messages, and what was put back with a delay",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { orchestratorItems: [timer("a", 2, t.now() + 10 * t.lockMs)] });
        await provider.enqueueForOrchestrator(raised("a"), { delayMs: 10 * t.lockMs });
        await provider.enqueueForWorker(act("a", 3));
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: 10 * t.lockMs });
        const depths = { orchestratorQueue: 2, workerQueue: 1, timerQueue: 0 };
        t.equal(await admin.getQueueDepths(), depths, "the depths");

        await provider.enqueueForOrchestrator(raised("a"));
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 10 * t.lockMs });
        const more = { ...depths, orchestratorQueue: 3 };
        t.equal(await admin.getQueueDepths(), more, "the depths when an instance was put back with a delay");
      },
    },
    {
      id: "queue_depths_leave_out_locked",
      promise: "What a live lock holds is not counted; when the lock ends or is given up, it is again",
      async run(t) {
        const { provider, admin } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForOrchestrator(raised("a"));
        await provider.enqueueForWorker(act("a", 2));
        const all = { orchestratorQueue: 2, workerQueue: 1, timerQueue: 0 };

        const held = await takeTurn(provider);
        t.equal(
          await admin.getQueueDepths(),
          { ...all, orchestratorQueue: 0 },
          "the depths while the messages are held",
        );
        const work = await takeWork(provider);
        const nothing = { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 };
        t.equal(await admin.getQueueDepths(), nothing, "the depths while the activity is held, too");
        await provider.abandonOrchestrationItem(held.lockToken);
        await provider.abandonWorkItem(work.lockToken);
        t.equal(await admin.getQueueDepths(), all, "the depths when all was given back");

        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await takeWork(provider, { lockTimeoutMs: t.lockMs });
        t.equal(await admin.getQueueDepths(), nothing, "the depths while all is held once more");
        await t.outlive(t.lockMs);
        t.equal(await admin.getQueueDepths(), all, "the depths when the locks have ended");
      },
    },

    {
      id: "queue_depths_leave_out_cancelled",
      promise: "A timer that is cancelled while somebody holds it is not counted, neither as queued nor as held",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const instance of ["a", "b"]) await create(provider, instance);
        await provider.enqueueForOrchestrator(timer("a", 2, 0));
        await takeTurn(provider);
        await provider.enqueueForOrchestrator(raised("a"));
        await provider.enqueueForOrchestrator(raised("b"));
        const cancelledTimers = [{ instance: "a", executionId: 1, id: 2 }];
        await provider.ackOrchestrationItem((await takeTurn(provider)).lockToken, turn({ cancelledTimers }));
        const depths = { orchestratorQueue: 1, workerQueue: 0, timerQueue: 0 };
        t.equal(await admin.getQueueDepths(), depths, "the depths: what came for the instance under its lock");
      },
    },

    // Statistics of one instance
    {
      id: "get_instance_stats_nonexistent",
      promise: "There are no statistics of an instance that does not exist, or is only queued",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        t.isNull(await provider.getInstanceStats("unknown"), "the statistics of an unknown instance");
        t.isNull(await provider.getInstanceStats("a"), "the statistics of an instance whose start is queued");
      },
    },
    {
      id: "get_instance_stats_history",
      promise: "The statistics count the events of the current execution and the bytes that they take",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [started("a"), scheduled("a", 2, "xxx x")] });
        const stats = t.found(await provider.getInstanceStats("a"), "the statistics");
        const nothingElse = { queuePendingCount: 0, kvUserKeyCount: 0, kvTotalValueBytes: 0 };
        t.matches(stats, { historyEventCount: 2, ...nothingElse }, "the statistics");
        t.ok(stats.historySizeBytes > 0, "the history takes some bytes");

        // As many characters, nine bytes more.
        await create(provider, "b", { events: [started("b"), scheduled("b", 2, "日本語 🚀")] });
        const other = t.found(await provider.getInstanceStats("b"), "the statistics of an instance with other letters");
        t.ok(other.historySizeBytes >= stats.historySizeBytes + 9, "the size is in bytes of UTF-8, not in characters");

        await continueExecution(provider, "a", 2);
        const next = t.found(await provider.getInstanceStats("a"), "the statistics in execution 2");
        t.equal(next.historyEventCount, 1, "the events of execution 2");
        t.ok(next.historySizeBytes < stats.historySizeBytes, "the history of execution 2 takes fewer bytes");
      },
    },
    {
      id: "get_instance_stats_without_start",
      promise: "There are statistics of an execution that has no events, or does not begin with its start",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [] });
        const nothing = { historyEventCount: 0, historySizeBytes: 0, queuePendingCount: 0 };
        t.matches(await provider.getInstanceStats("a"), nothing, "the statistics without events");
        const late = { ...started("a", { carryForwardEvents: [["q", "1"]] }), eventId: 3 };
        await runTurn(provider, "a", { events: [scheduled("a", 2), late] });
        const events = { historyEventCount: 2, queuePendingCount: 0 };
        t.matches(await provider.getInstanceStats("a"), events, "the statistics of a history that begins otherwise");
      },
    },
    {
      id: "get_instance_stats_kv",
      promise: "The statistics count keys and bytes of an instance that has ended",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const events = [kvSet("a", 2, "k1", "aaa"), kvSet("a", 3, "k2", "bbbbb"), completed("a", 4)];
        await runTurn(provider, "a", { events, metadata: { status: "Completed", output: "done" } });
        const expected = { historyEventCount: 4, kvUserKeyCount: 2, kvTotalValueBytes: 8 };
        t.matches(await provider.getInstanceStats("a"), expected, "the statistics after the end");
      },
    },
    {
      id: "get_instance_stats_carry_forward",
      promise: "The statistics count the queue messages that the execution was given to begin with",
      async run(t) {
        const { provider } = await t.open();
        const carryForwardEvents = [["q", "1"] as const, ["q", "2"] as const, ["r", "3"] as const];
        await create(provider, "a", { events: [started("a", { carryForwardEvents })] });
        const expected = { queuePendingCount: 3, kvUserKeyCount: 0, kvTotalValueBytes: 0 };
        t.matches(
          await provider.getInstanceStats("a"),
          expected,
          "the statistics of an execution that was given three",
        );
        await continueExecution(provider, "a", 2);
        const none = { queuePendingCount: 0 };
        t.matches(await provider.getInstanceStats("a"), none, "the statistics of the next one, which was given none");
      },
    },
    {
      id: "get_instance_stats_kv_delta_only",
      promise: "The statistics count keys and bytes of an execution that still runs",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [kvSet("a", 2, "k1", "xxx"), kvSet("a", 3, "k2", "yyyyyy")] });
        const expected = { queuePendingCount: 0, kvUserKeyCount: 2, kvTotalValueBytes: 9 };
        t.matches(await provider.getInstanceStats("a"), expected, "the statistics");
      },
    },
    {
      id: "get_instance_stats_kv_merged",
      promise: "A key that is written again counts once, with its new value",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [kvSet("a", 2, "mk1", "aaa"), kvSet("a", 3, "mk2", "bb")] });
        const before = { kvUserKeyCount: 2, kvTotalValueBytes: 5 };
        t.matches(await provider.getInstanceStats("a"), before, "the statistics before the end");
        const metadata = { status: "Completed", output: "done" } as const;
        await runTurn(provider, "a", { events: [kvSet("a", 4, "mk1", "zzzzz")], metadata });
        const after = { kvUserKeyCount: 2, kvTotalValueBytes: 7 };
        t.matches(await provider.getInstanceStats("a"), after, "the statistics after the end");
      },
    },
    {
      id: "instance_stats_kv_as_readers_see_them",
      promise:
        "Keys and bytes are counted as a reader sees them across executions: overwritten once, cleared not at all",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [kvSet("a", 100, "k1", "aaa"), kvSet("a", 101, "k2", "é")] });
        const first = { kvUserKeyCount: 2, kvTotalValueBytes: 5 };
        t.matches(await provider.getInstanceStats("a"), first, "the statistics with a letter of two bytes");
        await continueExecution(provider, "a", 2);
        await runTurn(provider, "a", { executionId: 2, events: [kvSet("a", 200, "k1", "zzzzz")] });
        const second = { kvUserKeyCount: 2, kvTotalValueBytes: 7 };
        t.matches(
          await provider.getInstanceStats("a"),
          second,
          "the statistics when execution 2 has overwritten a key",
        );
        await runTurn(provider, "a", { executionId: 2, events: [kvCleared("a", 201, "k2")] });
        const third = { kvUserKeyCount: 1, kvTotalValueBytes: 5 };
        t.matches(await provider.getInstanceStats("a"), third, "the statistics when execution 2 has cleared the other");
      },
    },
  ],
};

/** Long enough that what comes after it is later, whatever the resolution of the store's clock. */
function aWhile(t: CaseContext): Promise<void> {
  return t.wait(t.lockMs / 10);
}
