// cases/durability.ts — what a call has answered is there when the store is opened again.
//
// Every case closes all providers and opens the store anew, as a process does that takes over from a dead one. What a crash
// or a power cut leaves behind no case can find out: that is for tests that kill.

import {
  act,
  continueAsNew,
  done,
  event,
  kvSet,
  NAMED,
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
import type { Category } from "../provider-case.js";
import { commitNext, create, createEnded, fetchTurn, fetchWork, runTurn, takeTurn, takeWork } from "../steps.js";

export const durability: Category = {
  name: "durability",
  about: "What a call has answered is there when the store is opened again.",
  cases: [
    {
      id: "instances_survive",
      promise: "History, status, custom status, key-values and statistics are there again",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", {
          events: [started("a"), kvSet("a", 2, "early", "1"), statusSet("a", 3, "first")],
          metadata: { ...NAMED, status: "ContinuedAsNew", output: "next" },
          orchestratorItems: [continueAsNew("a")],
        });
        await commitNext(provider, "a", {
          executionId: 2,
          events: [started("a", { executionId: 2 }), kvSet("a", 2, "late", "2"), statusSet("a", 3, "second")],
          metadata: { ...NAMED, pinnedVersion: semver("1.2.3") },
        });
        const reads = async (from = provider) => ({
          first: await from.readWithExecution("a", 1),
          second: await from.read("a"),
          status: await from.getInstanceStatus("a"),
          customStatus: await from.getCustomStatus("a", 0),
          values: await from.getKvAllValues("a"),
          stats: await from.getInstanceStats("a"),
        });
        const before = await reads();

        const { provider: again } = await store.reopen();
        t.equal(await reads(again), before, "what is read of the instance");
        t.equal(before.second.length, 3, "the events of its second execution");
        await again.enqueueForOrchestrator(raised("a"));
        t.isNull(await fetchTurn(again, { capability: supports("9.0.0..9.9.9") }), "the instance, to other versions");
        const { item } = await takeTurn(again, { capability: supports("1.2.3..1.2.3") });
        t.equal([...item.kvSnapshot.keys()], ["early"], "the keys that a replay of execution 2 begins with");
      },
    },
    {
      id: "messages_survive",
      promise: "Queued messages are there again: in their order, with their attempts, each at its time",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 2));
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken);
        await provider.enqueueForOrchestrator(raised("a"));
        const late = timer("a", 3, t.now() + t.lockMs);
        await provider.enqueueForOrchestrator(late);
        await provider.enqueueForOrchestrator(start("b"), { delayMs: t.lockMs });

        const { provider: again } = await store.reopen();
        const first = await takeTurn(again);
        t.equal(first.item.messages, [done("a", 2), raised("a")], "the messages that are due");
        t.equal(first.attemptCount, 2, "the attempts, one of them before");
        await again.ackOrchestrationItem(first.lockToken, turn());
        t.isNull(await fetchTurn(again), "what is not due");
        await t.outlive(t.lockMs);
        const items = [(await takeTurn(again)).item, (await takeTurn(again)).item];
        t.equal(items.map(({ instance }) => instance).sort(), ["a", "b"], "the instances whose time has come");
        t.equal(items.find(({ instance }) => instance === "a")?.messages, [late], "the timer");
      },
    },
    {
      id: "activities_survive",
      promise: "Queued activities are there again: in their order, with attempts, tags and sessions",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", {
          workerItems: [act("a", 2), act("a", 3, { tag: "gpu" }), act("a", 4, { sessionId: "s" }), act("a", 5)],
        });
        await provider.abandonWorkItem((await takeWork(provider)).lockToken);

        const { provider: again } = await store.reopen();
        const first = await takeWork(again);
        t.matches(first, { item: { id: 2 }, attemptCount: 2 }, "the activity that was given back");
        t.equal((await takeWork(again)).item.id, 5, "the next one without tag and session");
        const tagged = await takeWork(again, { tagFilter: { kind: "tags", tags: ["gpu"] } });
        t.equal(tagged.item, act("a", 3, { tag: "gpu" }), "the one with a tag");
        const session = { ownerId: "w", lockTimeoutMs: t.lockMs };
        t.equal((await takeWork(again, { session })).item, act("a", 4, { sessionId: "s" }), "the one of a session");
      },
    },
    {
      id: "locks_survive",
      promise: "Locks are there again: they hold until their end, and whoever has the token may commit",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", { workerItems: [act("a", 2)], orchestratorItems: [raised("a")] });
        const held = await takeTurn(provider);
        const work = await takeWork(provider);
        await create(provider, "b", { workerItems: [act("b", 2)], orchestratorItems: [raised("b")] });
        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await takeWork(provider, { lockTimeoutMs: t.lockMs });

        const { provider: again } = await store.reopen();
        t.isNull(await fetchTurn(again), "an instance under a lock");
        t.isNull(await fetchWork(again), "an activity under a lock");
        await again.ackOrchestrationItem(held.lockToken, turn({ events: [scheduled("a", 2)] }));
        await again.ackWorkItem(work.lockToken, done("a", 2));
        t.equal((await again.read("a")).length, 2, "the events after the ack");
        t.equal((await takeTurn(again)).item.messages, [done("a", 2)], "the completion");
        await t.outlive(t.lockMs);
        t.matches(await takeTurn(again), { item: { instance: "b" }, attemptCount: 2 }, "the turn whose lock has ended");
        t.matches(await takeWork(again), { item: { instance: "b" }, attemptCount: 2 }, "the activity, likewise");
      },
    },
    {
      id: "delayed_abandons_survive",
      promise: "What was given back with a delay is held back to its end",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", { workerItems: [act("a", 2)], orchestratorItems: [raised("a")] });
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: t.lockMs });
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: t.lockMs });

        const { provider: again } = await store.reopen();
        t.isNull(await fetchTurn(again), "the instance during its delay");
        t.isNull(await fetchWork(again), "the activity during its delay");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(again)).item.messages, [raised("a")], "the messages after the delay");
        t.equal((await takeWork(again)).item.id, 2, "the activity after the delay");
      },
    },
    {
      id: "sessions_survive",
      promise: "A session stays with its owner",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await provider.enqueueForWorker(act("a", 1, { sessionId: "s" }));
        const mine = { session: { ownerId: "mine", lockTimeoutMs: t.lockMs } };
        await provider.ackWorkItem((await takeWork(provider, mine)).lockToken, null);
        await provider.enqueueForWorker(act("a", 2, { sessionId: "s" }));

        const { provider: again } = await store.reopen();
        const theirs = { session: { ownerId: "theirs", lockTimeoutMs: t.lockMs } };
        t.isNull(await fetchWork(again, theirs), "the session's work, to somebody else");
        t.equal((await takeWork(again, mine)).item.id, 2, "the session's work, to its owner");
      },
    },
    {
      id: "acks_survive",
      promise: "What was acked, refused, cancelled or dropped does not come back",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", {
          workerItems: [act("a", 2), act("a", 3)],
          orchestratorItems: [raised("a"), timer("a", 4, t.now() + t.lockMs)],
        });
        const refused = await takeTurn(provider);
        const ack = provider.ackOrchestrationItem(refused.lockToken, turn({ events: [scheduled("a", 1)] }));
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");
        const cancelled = { instance: "a", executionId: 1 };
        await provider.ackOrchestrationItem(
          refused.lockToken,
          turn({
            events: [event("a", 5, { type: "TimerCreated", fireAtMs: 1 })],
            cancelledActivities: [{ ...cancelled, id: 2 }],
            cancelledTimers: [{ ...cancelled, id: 4 }],
          }),
        );
        await provider.ackWorkItem((await takeWork(provider)).lockToken, null);

        const { provider: again } = await store.reopen();
        t.isNull(await fetchWork(again), "an activity that was acked or cancelled");
        t.isNull(await fetchTurn(again), "a message that was acked");
        t.equal(
          (await again.read("a")).map(({ eventId }) => eventId),
          [1, 5],
          "the events of the history",
        );
        await t.outlive(t.lockMs);
        t.isNull(await fetchTurn(again), "the timer that was cancelled");
        await t.refused(again.ackOrchestrationItem(refused.lockToken, turn()), "lock-lost", "the ack once more");
      },
    },
    {
      id: "management_survives",
      promise: "What operators saw they see again, in the same order, and what they deleted or pruned stays away",
      async run(t) {
        const store = await t.open();
        const { provider, admin } = store;
        await createEnded(provider, "doomed");
        await createEnded(provider, "root");
        await t.wait(t.lockMs / 10);
        await createEnded(provider, "child", { parentInstanceId: "root" });
        await runTurn(provider, "child", { executionId: 2, events: [started("child", { executionId: 2 })] });
        await admin.deleteInstance("doomed", false);
        await admin.pruneExecutions("child", {});
        const looks = async ({ admin: from } = store) => ({
          all: await from.listInstances(),
          tree: await from.getInstanceTree("root"),
          root: await from.getInstanceInfo("root"),
          executions: await from.listExecutions("child"),
          metrics: await from.getSystemMetrics(),
          depths: await from.getQueueDepths(),
        });
        const before = await looks();

        const again = await store.reopen();
        t.equal(await looks(again), before, "what operators see");
        t.equal(before.all, ["child", "root"], "the instances, newest first");
        t.equal(before.executions, [2], "the executions that were not pruned");
        t.equal(await again.provider.read("doomed"), [], "the history of the deleted one");
      },
    },
  ],
};
