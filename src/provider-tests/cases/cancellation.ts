// cases/cancellation.ts — a cancelled activity is taken away from its worker, and a worker learns that its execution is over.

import type { Event } from "../../history/event.js";
import type { ExecutionStatus, ScheduledId } from "../../provider/provider.js";
import { act, completed, done, event, NAMED, raised, scheduled, start, started, turn } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import {
  begin,
  continueExecution,
  create,
  fetchTurn,
  fetchWork,
  LONG_LOCK_MS,
  runTurn,
  takeTurn,
  takeWork,
} from "../steps.js";

/** More than the parameters that one statement of a database may have. */
const VERY_MANY = 1_500;

export const cancellation: Category = {
  name: "cancellation",
  about: "A cancelled activity is taken away from its worker, and a worker learns that its execution is over.",
  cases: [
    {
      id: "fetch_returns_running_state_for_active_orchestration",
      promise: "An activity of an execution that runs is handed out as running",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 1)], metadata: { ...NAMED, status: "Running" } });
        await create(provider, "b", { workerItems: [act("b", 1)] });

        const explicit = await takeWork(provider);
        t.equal(explicit.item, act("a", 1), "the activity of an instance that was said to run");
        t.equal(explicit.executionState, "running", "its execution state");
        const implicit = await takeWork(provider);
        t.equal(implicit.item, act("b", 1), "the activity of an instance of which no status was said");
        t.equal(implicit.executionState, "running", "its execution state");
      },
    },
    {
      id: "fetch_returns_terminal_state_when_orchestration_completed",
      promise: "An activity of a completed execution is handed out as terminated, and can be acked",
      run: (t) => isHandedOutAsTerminated(t, "Completed", completed("a", 2)),
    },
    {
      id: "fetch_returns_terminal_state_when_orchestration_failed",
      promise: "An activity of a failed execution is handed out as terminated, and can be acked",
      run: (t) => isHandedOutAsTerminated(t, "Failed", failed("a", 2)),
    },
    {
      id: "fetch_returns_terminal_state_when_orchestration_continued_as_new",
      promise: "An activity of an execution that continued as new is handed out as terminated, and can be acked",
      run: (t) => isHandedOutAsTerminated(t, "ContinuedAsNew", continued("a", 2)),
    },
    {
      id: "fetch_returns_missing_state_when_instance_deleted",
      promise: "An activity of an instance that the store does not know is handed out as running",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        await provider.enqueueForOrchestrator(start("b"));
        await provider.enqueueForWorker(act("b", 1));

        for (const instance of ["a", "b"]) {
          const { item, executionState } = await takeWork(provider);
          t.equal(item, act(instance, 1), `the activity of '${instance}'`);
          t.equal(executionState, "running", `the execution state of '${instance}', of which there is no turn`);
        }
      },
    },
    {
      id: "activity_of_an_earlier_execution",
      promise: "An activity of an execution that is not the current one is terminated, one of the current one runs",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await continueExecution(provider, "a", 2);
        await provider.enqueueForWorker(act("a", 1));
        await provider.enqueueForWorker(act("a", 1, { executionId: 2 }));

        for (const [executionId, state] of [[1, "terminated"] as const, [2, "running"] as const]) {
          const { item, executionState, lockToken } = await takeWork(provider);
          t.equal(item, act("a", 1, { executionId }), `the activity of execution ${executionId}`);
          t.equal(executionState, state, `the state of execution ${executionId} in the fetch`);
          const renewed = await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);
          t.equal(renewed, state, `the state of execution ${executionId} in the renewal`);
        }
      },
    },
    {
      id: "execution_without_an_end_that_is_no_longer_current",
      promise: "An execution is terminated as soon as the next one is current, whatever was said of its end",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 1)] });
        const { lockToken } = await takeWork(provider);
        await runTurn(provider, "a", { executionId: 2, events: [started("a", { executionId: 2 })] });

        const renewed = await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);
        t.equal(renewed, "terminated", "the state of execution 1 when a turn of execution 2 is committed");
      },
    },
    {
      id: "renew_returns_running_when_orchestration_active",
      promise: "Whoever renews the lock of an activity hears that its execution runs",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 1)] });
        const { lockToken } = await takeWork(provider);

        t.equal(await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS), "running", "the execution state");
        await runTurn(provider, "a", { events: [scheduled("a", 2)] });
        const renewed = await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);
        t.equal(renewed, "running", "the execution state after another turn");
      },
    },
    {
      id: "renew_returns_terminal_when_orchestration_completed",
      promise: "Whoever renews the lock of an activity hears that its execution has completed, and keeps the lock",
      run: (t) => turnsTerminated(t, "Completed", completed("a", 2)),
    },
    {
      id: "renew_returns_terminal_when_orchestration_failed",
      promise: "Whoever renews the lock of an activity hears that its execution has failed, and keeps the lock",
      run: (t) => turnsTerminated(t, "Failed", failed("a", 2)),
    },
    {
      id: "renew_returns_terminal_when_orchestration_continued_as_new",
      promise: "Whoever renews the lock of an activity hears that its execution continued as new, and keeps the lock",
      run: (t) => turnsTerminated(t, "ContinuedAsNew", continued("a", 2)),
    },
    {
      id: "state_of_an_instance_that_no_turn_has_named",
      promise:
        "While no turn has named orchestration and version, an activity is running, even when the instance ended",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a", {
          workerItems: [act("a", 1), act("a", 2)],
          metadata: { orchestrationName: "TestOrch" },
        });
        const { lockToken } = await takeWork(provider);
        await runTurn(provider, "a", {
          events: [completed("a", 2)],
          metadata: { status: "Completed", output: "done" },
        });

        t.equal(await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS), "running", "the state in a renewal");
        t.equal((await takeWork(provider)).executionState, "running", "the state in a fetch");
      },
    },
    {
      id: "renew_returns_missing_when_instance_deleted",
      promise: "The lock of an activity can be renewed where the store does not know the instance",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);

        t.equal(await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS), "running", "the execution state");
      },
    },
    {
      id: "ack_work_item_none_deletes_without_enqueue",
      promise: "An activity that is acked without a completion is gone, and its instance hears nothing",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 1)] });
        await provider.ackWorkItem((await takeWork(provider)).lockToken, null);

        t.isNull(await fetchWork(provider), "the activity after its ack");
        t.isNull(await fetchTurn(provider), "a message to its instance");
      },
    },
    {
      id: "ack_work_item_fails_when_entry_deleted",
      promise: "An activity that is gone cannot be acked, and its completion is not delivered",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 1)] });
        const { lockToken } = await takeWork(provider);
        await provider.ackWorkItem(lockToken, null);

        await t.refused(provider.ackWorkItem(lockToken, done("a", 1)), "lock-lost", "a second ack");
        t.isNull(await fetchTurn(provider), "the completion of the refused ack");
      },
    },
    {
      id: "renew_fails_when_entry_deleted",
      promise: "The lock of an activity that is gone cannot be renewed",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);
        await provider.ackWorkItem(lockToken, null);

        const renewal = provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);
        await t.refused(renewal, "lock-lost", "a renewal after the ack");
      },
    },
    {
      id: "cancelled_activities_deleted_from_worker_queue",
      promise: "Cancelled activities are gone from the worker queue, the others stay",
      async run(t) {
        const { provider } = await t.open();
        const workerItems = [act("a", 1), act("a", 2), act("a", 3)];
        await begin(provider, "a", { workerItems, metadata: { orchestrationName: "TestOrch" } });
        await provider.abandonWorkItem((await takeWork(provider)).lockToken);
        await runTurn(provider, "a", { cancelledActivities: [cancelled("a", 1), cancelled("a", 2)] });

        t.equal((await takeWork(provider)).item, act("a", 3), "the activity that is left");
        t.isNull(await fetchWork(provider), "a cancelled activity");
      },
    },
    {
      id: "cancelled_activity_is_lost_to_its_worker",
      promise: "A cancelled activity is taken away from the worker that holds it: neither renewal nor ack succeeds",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 1)] });
        const { lockToken } = await takeWork(provider);
        await runTurn(provider, "a", { cancelledActivities: [cancelled("a", 1)] });

        const renewal = provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);
        await t.refused(renewal, "lock-lost", "the renewal after the cancellation");
        const ack = provider.ackWorkItem(lockToken, done("a", 1));
        await t.refused(ack, "lock-lost", "the ack after the cancellation");
        await provider.abandonWorkItem(lockToken);
        t.isNull(await fetchWork(provider), "the cancelled activity, which its worker has abandoned too late");
        t.isNull(await fetchTurn(provider), "its completion");
      },
    },
    {
      id: "cancelling_nonexistent_activities_is_idempotent",
      promise: "To cancel an activity that does not exist does nothing",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { cancelledActivities: [cancelled("a", 999), cancelled("a", 1)] });
        t.equal(await provider.read("a"), [started("a")], "the history of the turn that cancels them");

        await runTurn(provider, "a", { workerItems: [act("a", 2)], cancelledActivities: [cancelled("unknown", 2)] });
        t.equal((await takeWork(provider)).item, act("a", 2), "the activity of the next turn");
      },
    },
    {
      id: "batch_cancellation_deletes_multiple_activities",
      promise: "One turn can cancel several activities",
      async run(t) {
        const { provider } = await t.open();
        const ids = [1, 2, 3, 4, 5];
        await create(provider, "a", { workerItems: ids.map((id) => act("a", id)) });
        await runTurn(provider, "a", { cancelledActivities: ids.map((id) => cancelled("a", id)) });

        t.isNull(await fetchWork(provider), "a cancelled activity");
      },
    },
    {
      id: "very_many_cancelled_activities",
      promise: "One turn can cancel very many activities",
      async run(t) {
        const { provider } = await t.open();
        const ids = Array.from({ length: VERY_MANY }, (_, index) => index + 2);
        await create(provider, "a", { workerItems: ids.map((id) => act("a", id)) });
        await runTurn(provider, "a", { cancelledActivities: ids.slice(1).map((id) => cancelled("a", id)) });

        t.equal((await takeWork(provider)).item, act("a", 2), "the one activity that is not cancelled");
        t.isNull(await fetchWork(provider), "a cancelled activity");
      },
    },
    {
      id: "activity_that_was_scheduled_twice",
      promise: "An activity may have been scheduled twice: its cancellation takes all that is left of it",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 2), act("a", 2), act("a", 3), act("a", 3)] });
        await provider.ackWorkItem((await takeWork(provider)).lockToken, null);
        await runTurn(provider, "a", { cancelledActivities: [cancelled("a", 2), cancelled("a", 3)] });

        t.isNull(await fetchWork(provider), "the cancelled activities");
      },
    },
    {
      id: "same_activity_in_worker_items_and_cancelled_is_noop",
      promise: "An activity that one turn both schedules and cancels never reaches a worker",
      async run(t) {
        const { provider } = await t.open();
        const dropped = act("a", 2, { name: "DroppedActivity" });
        const normal = act("a", 3, { name: "NormalActivity" });
        await create(provider, "a", { workerItems: [dropped, normal], cancelledActivities: [cancelled("a", 2)] });

        const { item, lockToken } = await takeWork(provider);
        t.equal(item, normal, "the activity that is left");
        await provider.ackWorkItem(lockToken, done("a", 3));
        t.isNull(await fetchWork(provider), "the cancelled activity");
      },
    },
    {
      id: "cancellation_takes_no_other_of_the_same_id",
      promise: "A cancellation takes no activity of the same id along, be it of another execution or another instance",
      async run(t) {
        const { provider } = await t.open();
        const others = [act("a", 1, { executionId: 2 }), act("b", 1)];
        await create(provider, "a", { workerItems: [act("a", 1), ...others] });
        await runTurn(provider, "a", { cancelledActivities: [cancelled("a", 1)] });

        for (const other of others) t.equal((await takeWork(provider)).item, other, "the next activity");
        t.isNull(await fetchWork(provider), "the cancelled activity");
      },
    },
    {
      id: "refused_turn_cancels_nothing",
      promise: "An activity stays where it is when the turn that cancels it is refused",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 2), act("a", 3)] });
        const held = await takeWork(provider);
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const cancelledActivities = [cancelled("a", 2), cancelled("a", 3)];
        const refused = turn({ events: [scheduled("a", 1)], cancelledActivities });
        const ack = provider.ackOrchestrationItem(lockToken, refused);
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");

        const renewed = await provider.renewWorkItemLock(held.lockToken, LONG_LOCK_MS);
        t.equal(renewed, "running", "the state in a renewal by the worker that held its activity all along");
        t.equal((await takeWork(provider)).item, act("a", 3), "the activity that nobody held");
      },
    },
    {
      id: "orphan_activity_after_instance_force_deletion",
      promise: "A deleted instance takes its activities along, and one that is queued too late harms nobody",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await create(provider, "a", { workerItems: [act("a", 1), act("a", 2)] });
        const held = await takeWork(provider);

        const { instancesDeleted } = await admin.deleteInstance("a", true);
        t.equal(instancesDeleted, 1, "how many instances were deleted");
        await t.refused(admin.getInstanceInfo("a"), "not-found", "what is known of the deleted instance");
        t.isNull(await fetchWork(provider), "its activity that nobody held");
        const ack = provider.ackWorkItem(held.lockToken, done("a", 1));
        await t.refused(ack, "lock-lost", "the ack of its activity that a worker held");

        await provider.enqueueForWorker(act("a", 3));
        const late = await takeWork(provider);
        t.equal(
          late.executionState,
          "running",
          "the execution state of an activity that was queued after the deletion",
        );
        await provider.ackWorkItem(late.lockToken, done("a", 3));
        t.isNull(await fetchTurn(provider), "the deleted instance, after a completion for it");
      },
    },
  ],
};

async function isHandedOutAsTerminated(t: CaseContext, status: ExecutionStatus, ending: Event): Promise<void> {
  const { provider } = await t.open();
  await create(provider, "a", {
    events: [started("a"), ending],
    workerItems: [act("a", 1)],
    metadata: { ...NAMED, status, output: "out" },
  });

  const { item, executionState, lockToken } = await takeWork(provider);
  t.equal(item, act("a", 1), `an activity that was scheduled as its execution became ${status}`);
  t.equal(executionState, "terminated", "its execution state");
  await provider.ackWorkItem(lockToken, done("a", 1));
  t.equal((await takeTurn(provider)).item.messages, [done("a", 1)], "the messages of its instance after the ack");
}

async function turnsTerminated(t: CaseContext, status: ExecutionStatus, ending: Event): Promise<void> {
  const { provider } = await t.open();
  await create(provider, "a", { workerItems: [act("a", 1)] });
  const { lockToken } = await takeWork(provider);
  await runTurn(provider, "a", { events: [ending], metadata: { status, output: "out" } });

  const renewed = await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);
  t.equal(renewed, "terminated", `the state in a renewal after the execution became ${status}`);
  t.isNull(await fetchWork(provider), "the activity, whose lock is still held");
  await provider.ackWorkItem(lockToken, done("a", 1));
  t.equal((await takeTurn(provider)).item.messages, [done("a", 1)], "the messages of its instance after the ack");
}

function failed(instance: string, eventId: number): Event {
  const kind = { type: "OrchestrationFailed" } as const;
  const details = { category: "application", kind, message: "no", retryable: false } as const;
  return event(instance, eventId, { type: "OrchestrationFailed", details });
}

function continued(instance: string, eventId: number): Event {
  return event(instance, eventId, { type: "OrchestrationContinuedAsNew", input: "{}" });
}

function cancelled(instance: string, id: number): ScheduledId {
  return { instance, executionId: 1, id };
}
