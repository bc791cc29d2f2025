// cases/deletion.ts — a tree is deleted as a whole, and nothing of it comes back.

import type { SubOrchCompleted } from "../../history/work-item.js";
import type { DeleteResult, ProviderAdmin } from "../../provider/admin.js";
import type { Provider } from "../../provider/provider.js";
import {
  act,
  cancel,
  continueAsNew,
  done,
  kvSet,
  NAMED,
  queued,
  raised,
  scheduled,
  semver,
  start,
  started,
  statusSet,
  supports,
  timer,
  turn,
} from "../builders.js";
import type { CaseContext, CaseStore } from "../case-context.js";
import type { Category } from "../provider-case.js";
import {
  begin,
  commitNext,
  create,
  createEnded,
  createExecutions,
  fetchTurn,
  fetchWork,
  LONG_LOCK_MS,
  takeTurn,
  takeWork,
} from "../steps.js";

const NOTHING: DeleteResult = {
  instancesDeleted: 0,
  executionsDeleted: 0,
  eventsDeleted: 0,
  queueMessagesDeleted: 0,
};

export const deletion: Category = {
  name: "deletion",
  about: "A tree is deleted as a whole, and nothing of it comes back.",
  cases: [
    // What may be deleted
    {
      id: "delete_terminal_instances",
      promise: "An instance that has ended, however it ended, can be deleted",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "completed");
        await createEnded(provider, "failed", { status: "Failed", output: "broken" });
        await createEnded(provider, "cancelled", { status: "Failed", output: "cancelled: enough" });
        for (const instance of ["completed", "failed", "cancelled"]) {
          const one = { instancesDeleted: 1, executionsDeleted: 1, eventsDeleted: 1, queueMessagesDeleted: 0 };
          t.equal(await admin.deleteInstance(instance, false), one, `what the deletion of the ${instance} one took`);
          await isGone(t, store, instance);
        }
      },
    },
    {
      id: "delete_running_rejected_force_succeeds",
      promise: "An instance that runs is deleted only by force",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await create(provider, "a");
        const before = await admin.getInstanceInfo("a");
        const error = await t.refused(admin.deleteInstance("a", false), "still-running", "the deletion without force");
        t.ok(/running/i.test(error.message), "the message of the refusal says that the instance is running");
        t.equal(await admin.getInstanceInfo("a"), before, "the instance after the refused deletion");
        t.equal(await provider.read("a"), [started("a")], "its history after the refused deletion");

        t.matches(await admin.deleteInstance("a", true), { instancesDeleted: 1 }, "what the forced deletion took");
        await isGone(t, store, "a");
      },
    },
    {
      id: "delete_nonexistent_instance",
      promise: "The deletion of an instance that does not exist, or no longer, is refused",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const force of [false, true]) {
          const call = admin.deleteInstance("does-not-exist-12345", force);
          const error = await t.refused(call, "not-found", `the deletion of an unknown instance, force ${force}`);
          t.ok(/not found/i.test(error.message), "the message of the refusal says that nothing was found");
        }
        await createEnded(provider, "a");
        await admin.deleteInstance("a", false);
        await t.refused(admin.deleteInstance("a", false), "not-found", "the second deletion of an instance");
      },
    },
    {
      id: "delete_before_first_turn_is_not_found",
      promise: "An instance whose start is only queued is not there to be deleted, and starts all the same",
      async run(t) {
        const { provider, admin } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await t.refused(admin.deleteInstance("a", true), "not-found", "the deletion of an instance that is queued");
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "its messages after the refused deletion");
      },
    },
    {
      id: "delete_instance_with_running_child",
      promise: "A tree in which only a child runs is deleted as a whole by force, and without not at all",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "root");
        await createEnded(provider, "child", { parentInstanceId: "root" });
        await create(provider, "grandchild", { metadata: { ...NAMED, parentInstanceId: "child" } });
        await t.refused(admin.deleteInstance("root", false), "still-running", "the deletion without force");
        t.equal((await admin.listInstances()).length, 3, "instances after the refused deletion");
        for (const instance of ["root", "child", "grandchild"]) {
          t.equal(await provider.read(instance), [started(instance)], `the history of the ${instance} after it`);
        }

        t.matches(await admin.deleteInstance("root", true), { instancesDeleted: 3 }, "what the forced deletion took");
        for (const instance of ["root", "child", "grandchild"]) await isGone(t, store, instance);
      },
    },
    {
      id: "cascade_delete_hierarchy",
      promise: "A root is deleted with all its descendants, and a child not without its root, forced or not",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createTree(provider);
        for (const child of ["child1", "child2", "grandchild"]) {
          for (const force of [false, true]) {
            const call = admin.deleteInstance(child, force);
            const error = await t.refused(call, "sub-orchestration", `the deletion of ${child}, force ${force}`);
            t.ok(/sub-orchestration|root|parent/i.test(error.message), "the message of the refusal names the reason");
          }
        }
        t.equal((await admin.listInstances()).length, 4, "instances after the refused deletions");

        t.equal(
          await admin.deleteInstance("root", false),
          { instancesDeleted: 4, executionsDeleted: 4, eventsDeleted: 4, queueMessagesDeleted: 0 },
          "what the deletion of the root took",
        );
        for (const instance of ["root", "child1", "child2", "grandchild"]) await isGone(t, store, instance);
      },
    },
    {
      id: "delete_child_of_deleted_parent",
      promise:
        "A child that is started after its parent was deleted is the root of what is left, and is deleted as one",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createOrphan(provider, admin);
        t.matches(await admin.deleteInstance("orphan", false), { instancesDeleted: 2 }, "what the deletion took");
        for (const instance of ["orphan", "grandchild"]) await isGone(t, store, instance);
      },
    },

    // What goes
    {
      id: "delete_cleans_queues_and_locks",
      promise: "Left-over activities go with their instance, and its id can be used again under another name",
      async run(t) {
        const { provider, admin } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        await createEnded(provider, "a");
        t.matches(await admin.deleteInstance("a", false), { queueMessagesDeleted: 1 }, "what the deletion took");
        t.isNull(await fetchWork(provider), "the activity of the deleted instance");

        await provider.enqueueForOrchestrator(start("a", { orchestration: "ReusedOrch", version: "2.0.0" }));
        const { item, lockToken } = await takeTurn(provider);
        const expected = { instance: "a", orchestrationName: "ReusedOrch", version: "2.0.0", history: [] };
        t.matches(item, expected, "the new instance");
        const metadata = { orchestrationName: "ReusedOrch", orchestrationVersion: "2.0.0" };
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata }));
        t.matches(await admin.getInstanceInfo("a"), metadata, "the description of the new instance");
      },
    },
    {
      id: "delete_counts_rows",
      promise: "A deletion tells exactly how many executions, events and messages it took",
      async run(t) {
        const { provider, admin } = await t.open();
        await createExecutions(provider, "a", 3, "Running");
        await provider.appendWithExecution("a", 3, [scheduled("a", 2), scheduled("a", 3)]);
        await provider.enqueueForOrchestrator(raised("a", "first"));
        await takeTurn(provider);
        await provider.enqueueForOrchestrator(raised("a", "second"));
        await provider.enqueueForOrchestrator(raised("a", "delayed"), { delayMs: 10 * t.lockMs });
        await provider.enqueueForOrchestrator(timer("a", 4, t.now() + 10 * t.lockMs));
        for (const id of [2, 3]) await provider.enqueueForWorker(act("a", id, { executionId: 3 }));
        await takeWork(provider);

        t.equal(
          await admin.deleteInstance("a", true),
          { instancesDeleted: 1, executionsDeleted: 3, eventsDeleted: 5, queueMessagesDeleted: 6 },
          "what the deletion took",
        );
        const noRows = { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 };
        t.equal(await admin.getQueueDepths(), noRows, "the depths of the queues afterwards");
        t.matches(
          await admin.getSystemMetrics(),
          { totalInstances: 0, totalExecutions: 0, totalEvents: 0 },
          "the metrics afterwards",
        );
      },
    },
    {
      id: "delete_takes_messages",
      promise:
        "Nothing that was addressed to a deleted instance arrives any more: no message, timer or activity, due or not",
      async run(t) {
        const { provider, admin } = await t.open();
        const work = [act("a", 2), act("a", 3, { tag: "gpu" }), act("a", 4, { sessionId: "s" })];
        const dueAt = t.now() + t.lockMs;
        await create(provider, "a", { workerItems: work, orchestratorItems: [raised("a"), timer("a", 5, dueAt)] });
        await provider.enqueueForOrchestrator(queued("a"), { delayMs: t.lockMs });
        await admin.deleteInstance("a", true);

        t.isNull(await fetchTurn(provider), "a message to the deleted instance");
        const session = { ownerId: "w", lockTimeoutMs: LONG_LOCK_MS };
        const anything = { session, tagFilter: { kind: "any" } } as const;
        t.isNull(await fetchWork(provider, anything), "an activity of the deleted instance");
        await t.outlive(t.lockMs);
        t.isNull(await fetchTurn(provider), "a message or a timer that has become due since");

        await provider.enqueueForOrchestrator(start("a"));
        const { messages } = (await takeTurn(provider)).item;
        t.equal(messages, [start("a")], "the messages of an instance with the same id");
      },
    },
    {
      id: "delete_frees_the_id",
      promise: "A new instance with the id of a deleted one inherits nothing of it",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createExecutions(provider, "a", 2, "Running");
        const events = [kvSet("a", 2, "old", "value"), statusSet("a", 3, "old status")];
        const pinnedVersion = semver("9.9.9");
        await provider.enqueueForOrchestrator(raised("a"));
        await commitNext(provider, "a", { executionId: 2, events, metadata: { ...NAMED, pinnedVersion } });
        await admin.deleteInstance("a", true);
        await isGone(t, store, "a");

        const outcome = await provider.enqueueForOrchestrator(start("a"), { ifAbsent: true });
        t.equal(outcome, "enqueued", "the outcome of a start that wants the id to be free");
        const pending = { status: "Pending", executionId: 1, customStatus: null, customStatusVersion: 0 } as const;
        t.matches(await provider.getInstanceStatus("a"), pending, "the status of the new instance");
        const { item, lockToken, attemptCount } = await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
        t.matches(item, { executionId: 1, history: [], messages: [start("a")] }, "the first turn of the new instance");
        t.equal(item.kvSnapshot.size, 0, "key-values of the new instance");
        t.equal(attemptCount, 1, "the attempts at the first turn");
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata: NAMED }));

        t.equal(await provider.read("a"), [started("a")], "the history of the new instance");
        t.equal(await admin.listExecutions("a"), [1], "the executions of the new instance");
        t.isNull(await provider.getKvValue("a", "old"), "a key of the deleted instance");
        t.isNull(await provider.getCustomStatus("a", 0), "a custom status of the deleted instance");
        const fresh = { currentExecutionId: 1, status: "Running", output: null, parentInstanceId: null } as const;
        t.matches(await admin.getInstanceInfo("a"), fresh, "the description of the new instance");
      },
    },
    {
      id: "delete_ends_delayed_abandon",
      promise: "The hold of a turn that was given back with a delay goes with the instance",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 10 * t.lockMs });
        await admin.deleteInstance("a", true);
        await provider.enqueueForOrchestrator(start("a"));
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages of the new instance, at once");
      },
    },
    {
      id: "delete_corrupt_instance",
      promise: "An instance whose history cannot be decoded can be deleted",
      async run(t) {
        const store = await t.open();
        await createEnded(store.provider, "a");
        await store.corruptHistory("a");
        const one = { instancesDeleted: 1, eventsDeleted: 1 };
        t.matches(await store.admin.deleteInstance("a", false), one, "what the deletion took");
        await isGone(t, store, "a");
      },
    },

    // What stays
    {
      id: "delete_leaves_others_alone",
      promise: "Instances beside the deleted one keep everything, however alike their ids are",
      async run(t) {
        const { provider, admin } = await t.open();
        const others = ["ab", "A", "a::sub::2", "a_b", "a%", "_"];
        await create(provider, "a");
        await createEnded(provider, "%");
        for (const other of others) {
          const events = [started(other), kvSet(other, 2, "key", other), statusSet(other, 3, other)];
          await create(provider, other, { events, workerItems: [act(other, 4)] });
        }
        for (const other of others) await provider.enqueueForOrchestrator(raised(other));
        await admin.deleteInstance("a", true);
        await admin.deleteInstance("%", false);

        t.equal([...(await admin.listInstances())].sort(), [...others].sort(), "the instances that are left");
        for (const other of others) {
          t.equal((await provider.read(other)).length, 3, `events of '${other}'`);
          t.equal(await provider.getKvValue(other, "key"), other, `the value of '${other}'`);
          t.matches(await provider.getInstanceStatus(other), { customStatus: other }, `the status of '${other}'`);
          t.equal((await takeTurn(provider)).item.messages, [raised(other)], `the messages of '${other}'`);
          t.equal((await takeWork(provider)).item, act(other, 4), `the activity of '${other}'`);
        }
      },
    },
    {
      id: "delete_leaves_locks_of_others",
      promise: "Whoever works on another instance can still commit",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await create(provider, "b", { workerItems: [act("b", 2)], orchestratorItems: [raised("b")] });
        const held = await takeTurn(provider);
        const work = await takeWork(provider);
        await admin.deleteInstance("a", true);
        await provider.ackWorkItem(work.lockToken, done("b", 2));
        await provider.ackOrchestrationItem(held.lockToken, turn({ events: [scheduled("b", 3)] }));
        t.equal((await provider.read("b")).length, 2, "events of the other instance");
        t.equal((await takeTurn(provider)).item.messages, [done("b", 2)], "the messages of the other instance");
      },
    },
    {
      id: "delete_leaves_messages_to_parent",
      promise: "What a deleted child has told its parent still arrives",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "parent");
        const told: SubOrchCompleted = {
          type: "SubOrchCompleted",
          parentInstance: "parent",
          parentExecutionId: 1,
          parentId: 2,
          result: "ok",
        };
        const metadata = { ...NAMED, status: "Completed", parentInstanceId: "parent" } as const;
        await create(provider, "child", { orchestratorItems: [told], metadata });
        await admin.deleteInstancesAtomic(["child"], false);
        t.equal((await takeTurn(provider)).item.messages, [told], "the messages of the parent");
      },
    },
    {
      id: "delete_leaves_sessions",
      promise: "A session stays with its owner when the instance that opened it is deleted",
      async run(t) {
        const { provider, admin } = await t.open();
        const ofWorker = (ownerId: string) => ({ session: { ownerId, lockTimeoutMs: LONG_LOCK_MS } });
        await create(provider, "a", { workerItems: [act("a", 2, { sessionId: "s" })] });
        await takeWork(provider, ofWorker("w1"));
        await admin.deleteInstance("a", true);

        await provider.enqueueForWorker(act("b", 2, { sessionId: "s" }));
        t.isNull(await fetchWork(provider, ofWorker("w2")), "work of the session, for another worker");
        t.equal((await takeWork(provider, ofWorker("w1"))).item.instance, "b", "work of the session, for its owner");
        const renewed = await provider.renewSessionLock(["w1"], {
          extendForMs: LONG_LOCK_MS,
          idleTimeoutMs: LONG_LOCK_MS,
        });
        t.equal(renewed, 1, "sessions of the worker that were renewed");
      },
    },

    // Who still works on it
    {
      id: "force_delete_prevents_ack_recreation",
      promise: "Whoever works on a deleted instance cannot commit, and so not bring it back",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        await admin.deleteInstance("a", true);

        const commit = turn({
          events: [scheduled("a", 2)],
          workerItems: [act("a", 2)],
          orchestratorItems: [raised("a"), raised("b"), start("b")],
          metadata: NAMED,
        });
        await t.refused(
          provider.ackOrchestrationItem(lockToken, commit),
          "lock-lost",
          "the ack of the deleted instance",
        );
        const renewal = provider.renewOrchestrationItemLock(lockToken, LONG_LOCK_MS);
        await t.refused(renewal, "lock-lost", "the renewal of its lock");
        await provider.abandonOrchestrationItem(lockToken);
        await isGone(t, store, "a");
        t.isNull(await fetchWork(provider), "an activity of the refused turn");
        t.isNull(await fetchTurn(provider), "a message of the refused or the abandoned turn");
      },
    },
    {
      id: "stale_turn_after_delete_recreate",
      promise: "The lock of a deleted instance neither commits to the new one with its id nor releases it",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const stale = await takeTurn(provider);
        await admin.deleteInstance("a", true);
        await provider.enqueueForOrchestrator(start("a"));
        const held = await takeTurn(provider);

        const commit = turn({ events: [started("a"), scheduled("a", 2)], metadata: NAMED });
        await t.refused(
          provider.ackOrchestrationItem(stale.lockToken, commit),
          "lock-lost",
          "the ack with the old lock",
        );
        await provider.abandonOrchestrationItem(stale.lockToken, { ignoreAttempt: true });
        t.isNull(await fetchTurn(provider), "the new instance while its own lock is held");
        await provider.ackOrchestrationItem(held.lockToken, turn({ events: [started("a")], metadata: NAMED }));
        t.equal(await provider.read("a"), [started("a")], "the history of the new instance");
        t.isNull(await fetchTurn(provider), "a message of the deleted instance, for the new one");
      },
    },
    {
      id: "stale_activity_after_delete_recreate",
      promise: "An activity that was running when its instance was deleted cannot answer the new one with its id",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { events: [started("a"), scheduled("a", 2)], workerItems: [act("a", 2)] });
        const stale = await takeWork(provider);
        await admin.deleteInstance("a", true);
        await create(provider, "a", { events: [started("a"), scheduled("a", 2)], workerItems: [act("a", 2)] });

        const ack = provider.ackWorkItem(stale.lockToken, done("a", 2, { result: "stale-result" }));
        await t.refused(ack, "lock-lost", "the ack of the old activity");
        const renewal = provider.renewWorkItemLock(stale.lockToken, LONG_LOCK_MS);
        await t.refused(renewal, "lock-lost", "the renewal of its lock");
        await provider.abandonWorkItem(stale.lockToken);
        await provider.enqueueForOrchestrator(raised("a", "probe"));
        t.equal((await takeTurn(provider)).item.messages, [raised("a", "probe")], "the messages of the new instance");
        const fresh = await takeWork(provider);
        t.equal(fresh.attemptCount, 1, "the attempts at the activity of the new instance");
        t.isNull(await fetchWork(provider), "the activity of the deleted instance");
      },
    },
    {
      id: "delete_between_executions_needs_force",
      promise: "An instance that has continued as new has not ended, even before its next execution begins",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        const next = continueAsNew("a");
        await create(provider, "a", {
          metadata: { ...NAMED, status: "ContinuedAsNew", output: "next input" },
          orchestratorItems: [next],
        });
        await t.refused(admin.deleteInstance("a", false), "still-running", "the deletion without force");
        const atomic = admin.deleteInstancesAtomic(["a"], false);
        await t.refused(atomic, "still-running", "the atomic deletion without force");
        t.equal((await takeTurn(provider)).item.messages, [next], "the start of its next execution");
        t.matches(await admin.deleteInstance("a", true), { instancesDeleted: 1 }, "what the deletion by force took");
        await isGone(t, store, "a");
      },
    },
    {
      id: "unborn_children_go_with_their_parent",
      promise: "A child that has not begun goes with its parent, and cannot answer a new one with its id",
      async run(t) {
        const { provider, admin } = await t.open();
        const childOf = (parent: string, id: string) => start(id, { parentInstance: parent, parentId: 2 });
        await create(provider, "b");
        await create(provider, "a", { orchestratorItems: [childOf("a", "held"), childOf("a", "queued")] });
        const held = await takeTurn(provider);
        t.equal(held.item.instance, "held", "the child that somebody works on");
        await provider.enqueueForOrchestrator(cancel("held"));
        await provider.enqueueForOrchestrator(cancel("queued"));
        await provider.enqueueForOrchestrator(childOf("b", "of-another"));

        const deleted = await admin.deleteInstance("a", true);
        const both = { instancesDeleted: 1, queueMessagesDeleted: 4 };
        t.matches(
          deleted,
          both,
          "what the deletion took: two starts, and what was sent to those that they would start",
        );
        const begin = turn({ events: [started("held")], metadata: { ...NAMED, parentInstanceId: "a" } });
        await t.refused(
          provider.ackOrchestrationItem(held.lockToken, begin),
          "lock-lost",
          "the first turn of the child",
        );
        t.isNull(await provider.getInstanceStatus("held"), "the status of the child that was worked on");
        t.isNull(await provider.getInstanceStatus("queued"), "the status of the child that was queued");
        t.equal((await takeTurn(provider)).item.instance, "of-another", "the only instance that can be fetched");
        t.isNull(await fetchTurn(provider), "another one");
        t.equal(await provider.enqueueForOrchestrator(start("held"), { ifAbsent: true }), "enqueued", "a fresh start");
        t.equal((await takeTurn(provider)).item.messages, [start("held")], "what the fresh instance finds");
      },
    },
    {
      id: "start_of_a_known_child_goes_with_its_parent",
      promise:
        "A start that a deleted parent has queued for an instance that exists is gone, and that instance goes on",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "x");
        await create(provider, "a", { orchestratorItems: [start("x", { parentInstance: "a", parentId: 2 })] });
        await provider.enqueueForOrchestrator(raised("x"));
        const held = await takeTurn(provider);
        t.equal(held.item.messages.length, 2, "the messages of the instance that exists, the start among them");

        await admin.deleteInstance("a", true);
        const answer = provider.ackOrchestrationItem(held.lockToken, turn());
        await t.refused(answer, "lock-lost", "the turn that would have answered the start");
        t.equal((await takeTurn(provider)).item.messages, [raised("x")], "the messages that are left");
        t.equal(await provider.read("x"), [started("x")], "the history of the instance that exists");
      },
    },
    {
      id: "unborn_child_that_others_start_stays",
      promise: "What somebody else has started, too, is not taken along with a parent: it can be fetched at once",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { orchestratorItems: [start("child", { parentInstance: "a", parentId: 2 })] });
        const own = start("child", { orchestration: "Other" });
        await provider.enqueueForOrchestrator(own);
        await provider.enqueueForOrchestrator(raised("child"));
        await takeTurn(provider);
        const waiting = t.polling === "long" ? fetchTurn(provider, { pollTimeoutMs: LONG_LOCK_MS }) : null;
        if (waiting !== null) t.ok(await t.isPending(waiting), "a fetch waits while the child is locked");

        await admin.deleteInstance("a", true);
        const locked = waiting === null ? await takeTurn(provider) : await t.soon(waiting, "the fetch of the child");
        t.equal(locked?.item.messages, [own, raised("child")], "what the child finds");
      },
    },
    {
      id: "delete_by_another_process",
      promise: "A deletion by one process refuses the commits of another",
      async run(t) {
        const store = await t.open();
        const { admin } = store;
        const other = await store.openAnother();
        await create(other, "a", { workerItems: [act("a", 2)], orchestratorItems: [raised("a")] });
        const held = await takeTurn(other);
        const work = await takeWork(other);
        await admin.deleteInstance("a", true);

        const commit = turn({ events: [scheduled("a", 2)], metadata: NAMED });
        await t.refused(other.ackOrchestrationItem(held.lockToken, commit), "lock-lost", "the ack of the turn");
        await t.refused(other.ackWorkItem(work.lockToken, done("a", 2)), "lock-lost", "the ack of the activity");
        await isGone(t, store, "a");
        t.isNull(await other.getInstanceStatus("a"), "the status as the other process sees it");
      },
    },
    {
      id: "concurrent_deletes_count_once",
      promise: "Of two who delete one instance at the same time, one has deleted it",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "a");
        const outcomes = await Promise.allSettled([admin.deleteInstance("a", false), admin.deleteInstance("a", false)]);
        const taken = outcomes.map((it) => (it.status === "fulfilled" ? it.value.instancesDeleted : 0));
        t.equal(taken.sort(), [0, 1], "the instances that each of the two has deleted");
        await isGone(t, store, "a");
      },
    },

    // Hierarchy
    {
      id: "list_children",
      promise: "Children are listed without their own children",
      async run(t) {
        const { provider, admin } = await t.open();
        await createEnded(provider, "root");
        await createEnded(provider, "root::sub::2", { parentInstanceId: "root" });
        await createEnded(provider, "root::sub::3", { parentInstanceId: "root" });
        await createEnded(provider, "root::sub::3::sub::2", { parentInstanceId: "root::sub::3" });

        const children = [...(await admin.listChildren("root"))].sort();
        t.equal(children, ["root::sub::2", "root::sub::3"], "the children of the root");
        t.equal(await admin.listChildren("root::sub::3"), ["root::sub::3::sub::2"], "the children of a child");
        t.equal(await admin.listChildren("root::sub::2"), [], "the children of a leaf");
        t.equal(await admin.listChildren("unknown"), [], "the children of an unknown instance");
      },
    },
    {
      id: "delete_get_parent_id",
      promise: "A child knows its parent, and a root that it has none",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "root");
        await create(provider, "child", { metadata: { ...NAMED, parentInstanceId: "root" } });
        t.isNull(await admin.getParentId("root"), "the parent of the root");
        t.equal(await admin.getParentId("child"), "root", "the parent of the child");
        await t.refused(admin.getParentId("unknown"), "not-found", "the parent of an unknown instance");

        await provider.enqueueForOrchestrator(raised("child"));
        await commitNext(provider, "child", { metadata: NAMED });
        t.equal(await admin.getParentId("child"), "root", "the parent after a turn that does not name it");
      },
    },
    {
      id: "delete_get_instance_tree",
      promise: "A tree holds the instance and all its descendants, and nobody else",
      async run(t) {
        const { provider, admin } = await t.open();
        await createTree(provider);
        await createEnded(provider, "other");
        const tree = await admin.getInstanceTree("root");
        t.equal(tree.rootId, "root", "the root of the tree");
        t.equal([...tree.allIds].sort(), ["child1", "child2", "grandchild", "root"], "the members of the tree");
        t.equal(
          await admin.getInstanceTree("child1"),
          { rootId: "child1", allIds: ["child1", "grandchild"] },
          "the tree from a child on",
        );
        t.equal(
          await admin.getInstanceTree("grandchild"),
          { rootId: "grandchild", allIds: ["grandchild"] },
          "the tree of a leaf",
        );
        await t.refused(admin.getInstanceTree("unknown"), "not-found", "the tree of an unknown instance");
      },
    },
    {
      id: "tree_order",
      promise: "A tree is listed root first, every parent before its children",
      async run(t) {
        const { provider, admin } = await t.open();
        // Ids whose alphabetical order is not that of the tree.
        const parents: Record<string, string> = { z: "m", b: "z", a: "b", y: "m", c: "y", n: "a" };
        await createEnded(provider, "m");
        for (const [child, parentInstanceId] of Object.entries(parents)) {
          await createEnded(provider, child, { parentInstanceId });
        }
        const { allIds } = await admin.getInstanceTree("m");
        t.equal(allIds[0], "m", "the first of the tree");
        t.equal([...allIds].sort(), ["a", "b", "c", "m", "n", "y", "z"], "the members of the tree");
        for (const [child, parent] of Object.entries(parents)) {
          t.ok(allIds.indexOf(parent) < allIds.indexOf(child), `'${parent}' comes before its child '${child}'`);
        }
      },
    },

    // Just these
    {
      id: "delete_instances_atomic",
      promise: "A set of instances is deleted at once",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        for (const instance of ["a", "b", "c", "d"]) await createEnded(provider, instance);
        t.equal(
          await admin.deleteInstancesAtomic(["a", "b", "c"], false),
          { instancesDeleted: 3, executionsDeleted: 3, eventsDeleted: 3, queueMessagesDeleted: 0 },
          "what the deletion took",
        );
        for (const instance of ["a", "b", "c"]) await isGone(t, store, instance);
        t.equal(await admin.listInstances(), ["d"], "the instances that are left");
      },
    },
    {
      id: "delete_instances_atomic_force",
      promise: "A set with one that runs is deleted only by force, and without force none of it is",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "ended");
        await create(provider, "running");
        const call = admin.deleteInstancesAtomic(["ended", "running"], false);
        await t.refused(call, "still-running", "the deletion without force");
        t.equal([...(await admin.listInstances())].sort(), ["ended", "running"], "the instances afterwards");
        for (const instance of ["ended", "running"]) {
          t.equal(await provider.read(instance), [started(instance)], `the history of the ${instance} one afterwards`);
        }

        const forced = await admin.deleteInstancesAtomic(["ended", "running"], true);
        t.matches(forced, { instancesDeleted: 2 }, "what the forced deletion took");
        for (const instance of ["ended", "running"]) await isGone(t, store, instance);
      },
    },
    {
      id: "delete_instances_atomic_orphan_detection",
      promise: "A parent is not deleted without its children, forced or not",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "other");
        await createEnded(provider, "root");
        await createEnded(provider, "child", { parentInstanceId: "root" });
        for (const force of [false, true]) {
          const call = admin.deleteInstancesAtomic(["other", "root"], force);
          const error = await t.refused(call, "orphans", `the deletion of the root alone, force ${force}`);
          t.ok(/child|orphan|tree/i.test(error.message), "the message of the refusal names the reason");
          for (const instance of ["other", "root", "child"]) {
            t.equal(await provider.read(instance), [started(instance)], `the history of '${instance}' afterwards`);
          }
          t.equal((await admin.listInstances()).length, 3, "instances afterwards");
        }

        const both = await admin.deleteInstancesAtomic(["root", "child"], false);
        t.matches(both, { instancesDeleted: 2 }, "what the deletion of root and child took");
        for (const instance of ["root", "child"]) await isGone(t, store, instance);
      },
    },
    {
      id: "delete_instances_atomic_child_alone",
      promise: "A child can be deleted by itself where just that is asked for, and its parent stays",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createTree(provider);
        const two = { instancesDeleted: 2, executionsDeleted: 2, eventsDeleted: 2 };
        // The child before its own: the order of the ids means nothing.
        t.matches(await admin.deleteInstancesAtomic(["grandchild", "child1"], false), two, "what the deletion took");
        for (const instance of ["child1", "grandchild"]) await isGone(t, store, instance);
        t.equal((await admin.getInstanceTree("root")).allIds, ["root", "child2"], "the tree that is left");
      },
    },
    {
      id: "delete_instances_atomic_nothing",
      promise: "To delete nothing, unknown ids, or one id twice takes what is there, once",
      async run(t) {
        const { provider, admin } = await t.open();
        await createEnded(provider, "a");
        await createEnded(provider, "b");
        for (const force of [false, true]) {
          t.equal(await admin.deleteInstancesAtomic([], force), NOTHING, `what no ids took, force ${force}`);
          const unknown = await admin.deleteInstancesAtomic(["unknown", "A"], force);
          t.equal(unknown, NOTHING, `what unknown ids took, force ${force}`);
        }
        t.equal((await admin.listInstances()).length, 2, "instances afterwards");
        const mixed = await admin.deleteInstancesAtomic(["unknown", "a", "a"], false);
        t.equal(
          mixed,
          { ...NOTHING, instancesDeleted: 1, executionsDeleted: 1, eventsDeleted: 1 },
          "what the mixture took",
        );
        t.equal(await admin.listInstances(), ["b"], "the instances that are left");
      },
    },
    {
      id: "delete_instances_atomic_ignores_unknown",
      promise: "What waits for an instance that is not known is not touched by a deletion of its id",
      async run(t) {
        const { provider, admin } = await t.open();
        await begin(provider, "unnamed");
        await provider.enqueueForOrchestrator(start("queued"));
        const taken = await admin.deleteInstancesAtomic(["unnamed", "queued"], true);
        t.equal(taken, NOTHING, "what the deletion of two that are not known took");
        t.equal(await provider.read("unnamed"), [started("unnamed")], "the history of the one that no turn has named");
        t.equal((await takeTurn(provider)).item.messages, [start("queued")], "the start of the one that is queued");
      },
    },
    {
      id: "delete_instances_atomic_many",
      promise: "A deletion may name thousands of ids",
      async run(t) {
        const { provider, admin } = await t.open();
        await createEnded(provider, "first");
        await createEnded(provider, "last");
        await createEnded(provider, "other");
        const unknown = Array.from({ length: 5_000 }, (_, index) => `unknown-${index}`);
        const taken = await admin.deleteInstancesAtomic(["first", ...unknown, "last"], false);
        t.equal(
          taken,
          { ...NOTHING, instancesDeleted: 2, executionsDeleted: 2, eventsDeleted: 2 },
          "what the deletion took",
        );
        t.equal(await admin.listInstances(), ["other"], "the instances that are left");
      },
    },
  ],
};

/** A root with two children, and a grandchild under the first of them. All have completed. */
async function createTree(provider: Provider): Promise<void> {
  await createEnded(provider, "root");
  await createEnded(provider, "child1", { parentInstanceId: "root" });
  await createEnded(provider, "child2", { parentInstanceId: "root" });
  await createEnded(provider, "grandchild", { parentInstanceId: "child1" });
}

/** A child that was started after its parent had been deleted, and a child of its own. */
async function createOrphan(provider: Provider, admin: ProviderAdmin): Promise<void> {
  await createEnded(provider, "parent");
  await admin.deleteInstance("parent", false);
  await provider.enqueueForOrchestrator(start("orphan", { parentInstance: "parent", parentId: 2 }));
  const metadata = { ...NAMED, status: "Completed", output: "done", parentInstanceId: "parent" } as const;
  await commitNext(provider, "orphan", { events: [started("orphan")], metadata });
  await createEnded(provider, "grandchild", { parentInstanceId: "orphan" });
}

/** Checks that nothing is left of the instance, whichever way one asks. */
async function isGone(t: CaseContext, { provider, admin }: CaseStore, instance: string): Promise<void> {
  await t.refused(admin.getInstanceInfo(instance), "not-found", `the description of '${instance}' after its deletion`);
  t.equal(await admin.listExecutions(instance), [], `the executions of '${instance}' after its deletion`);
  t.equal(await provider.read(instance), [], `the history of '${instance}' after its deletion`);
  t.equal(await provider.readWithExecution(instance, 1), [], `its first history after its deletion`);
  t.isNull(await provider.getInstanceStatus(instance), `the status of '${instance}' after its deletion`);
  t.isNull(await provider.getInstanceStats(instance), `the statistics of '${instance}' after its deletion`);
  t.isNull(await provider.getCustomStatus(instance, 0), `the custom status of '${instance}' after its deletion`);
  t.equal((await provider.getKvAllValues(instance)).size, 0, `key-values of '${instance}' after its deletion`);
}
