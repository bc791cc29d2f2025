// cases/hand-over.ts — work that arrives while a fetch waits for it, or at the moment of a fetch.
//
// A store may hand such work over as it is written, without a look into its queues. Nobody must be able to tell: what is
// handed over is what a later fetch would have brought, in its turn, locked and counted like anything else.

import type { Event } from "../../history/event.js";
import type { ActivityExecute } from "../../history/work-item.js";
import type { LockedOrchestrationItem, LockedWorkItem, Provider } from "../../provider/provider.js";
import {
  act,
  completed,
  done,
  NAMED,
  queued,
  raised,
  scheduled,
  semver,
  start,
  started,
  supports,
  timer,
  turn,
} from "../builders.js";
import type { CaseContext } from "../case-context.js";
import { onlyLongPolls, pollTurn, pollWork, waits } from "../polls.js";
import type { Category } from "../provider-case.js";
import {
  continueExecution,
  create,
  createEnded,
  fetchTurn,
  fetchWork,
  LONG_LOCK_MS,
  runTurn,
  takeTurn,
  takeWork,
} from "../steps.js";

export const handOver: Category = {
  name: "hand_over",
  about: "Work that arrives while a fetch waits is what a later fetch would have brought.",
  cases: [
    // What is handed over
    {
      id: "turn_is_as_a_fetch_would_bring_it",
      promise:
        "A wait for a turn brings all that the commit which ends it has written, and the messages in their order",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const poll = pollTurn(t, provider);
        await waits(t, poll, "a fetch while the only instance is locked");
        const orchestratorItems = [raised("a", "first"), start("b"), raised("a", "second")];
        const events = [scheduled("a", 2), scheduled("a", 3)];
        await provider.ackOrchestrationItem(lockToken, turn({ events, orchestratorItems }));

        const locked = await brought(t, poll);
        const item = { instance: "a", executionId: 1, messages: [raised("a", "first"), raised("a", "second")] };
        t.matches(locked, { attemptCount: 1, item }, "what it brings");
        t.equal(locked.item.history, [started("a"), ...events], "the history that it brings");
        t.equal((await takeTurn(provider)).item.instance, "b", "what is left for others");
        t.isNull(await fetchTurn(provider), "what is left when both are locked");
      },
    },
    {
      id: "turn_is_locked_and_counted",
      promise: "A turn that a wait has brought is locked, counted, renewed, abandoned and acked like any other",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const poll = pollTurn(t, provider, { lockTimeoutMs: t.lockMs });
        await waits(t, poll, "a fetch from an empty queue");
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await brought(t, poll);
        await provider.enqueueForOrchestrator(raised("a"));
        t.isNull(await fetchTurn(provider), "the instance under the lock that was handed over");
        await provider.renewOrchestrationItemLock(lockToken, 2 * t.lockMs);
        await t.wait(t.lockMs);
        t.isNull(await fetchTurn(provider), "the instance under the renewed lock");
        await provider.abandonOrchestrationItem(lockToken);

        const again = await takeTurn(provider);
        t.matches(again, { attemptCount: 2, item: { messages: [start("a"), raised("a")] } }, "what was given back");
        const late = provider.ackOrchestrationItem(lockToken, turn());
        await t.refused(late, "lock-lost", "an ack with the token that was given back");
        await provider.ackOrchestrationItem(again.lockToken, turn({ events: [started("a")], metadata: NAMED }));
        t.equal(await provider.read("a"), [started("a")], "the history after the ack");
      },
    },
    {
      id: "turn_of_a_locked_instance_waits",
      promise:
        "A wait for a turn is not ended by messages to an instance that somebody holds, and ended when it is free",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a", "before"));
        const { lockToken } = await takeTurn(provider);
        const poll = pollTurn(t, provider);
        await waits(t, poll, "a fetch while the only instance is locked");
        await provider.enqueueForOrchestrator(raised("a", "meanwhile"));
        await waits(t, poll, "the fetch when a message for it has arrived");
        await provider.ackOrchestrationItem(lockToken, turn());

        t.equal((await brought(t, poll)).item.messages, [raised("a", "meanwhile")], "the messages that it brings");
      },
    },
    {
      id: "activity_is_locked_and_counted",
      promise: "An activity that a wait has brought is locked, counted, renewed, abandoned and acked like any other",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a");
        const poll = pollWork(t, provider, { lockTimeoutMs: t.lockMs });
        await waits(t, poll, "a fetch from an empty queue");
        await runTurn(provider, "a", { workerItems: [act("a", 2)] });
        const { item, lockToken, attemptCount, executionState } = await brought(t, poll);
        t.equal(item, act("a", 2), "the activity");
        t.equal([attemptCount, executionState], [1, "running"], "its attempts, and the state of its execution");
        t.isNull(await fetchWork(provider), "the activity under the lock that was handed over");
        t.equal(await provider.renewWorkItemLock(lockToken, 2 * t.lockMs), "running", "the answer to a renewal");
        await t.wait(t.lockMs);
        t.isNull(await fetchWork(provider), "the activity under the renewed lock");
        await provider.abandonWorkItem(lockToken);

        const again = await takeWork(provider);
        t.equal(again.attemptCount, 2, "the attempts when it was given back");
        await t.refused(provider.ackWorkItem(lockToken, done("a", 2)), "lock-lost", "an ack with the former token");
        await provider.ackWorkItem(again.lockToken, done("a", 2));
        t.equal((await takeTurn(provider)).item.messages, [done("a", 2)], "the messages after the ack");
      },
    },
    {
      id: "activity_tells_whether_its_execution_runs",
      promise:
        "An activity that a wait has brought says that its execution is over, also where it ended in the same commit",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await createEnded(provider, "ended");
        const forEnded = pollWork(t, provider);
        await waits(t, forEnded, "a fetch from an empty queue");
        await provider.enqueueForWorker(act("ended", 2));
        t.equal((await brought(t, forEnded)).executionState, "terminated", "where the instance had ended before");

        await create(provider, "ending");
        const forEnding = pollWork(t, provider);
        await waits(t, forEnding, "a second fetch");
        const metadata = { status: "Completed", output: "done" } as const;
        await runTurn(provider, "ending", { workerItems: [act("ending", 2)], metadata });
        t.equal((await brought(t, forEnding)).executionState, "terminated", "where it ends in the same commit");

        await create(provider, "next");
        const forNext = pollWork(t, provider);
        await waits(t, forNext, "a third fetch");
        await runTurn(provider, "next", { executionId: 2, workerItems: [act("next", 2)], metadata: NAMED });
        t.equal((await brought(t, forNext)).executionState, "terminated", "where the next execution begins with it");
      },
    },
    {
      id: "queue_message_waits_with_others",
      promise:
        "A queue message that arrives while a fetch waits is kept where others wait for the start of its instance",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(raised("a"));
        t.isNull(await fetchTurn(provider), "a turn of what nobody has started");
        const poll = pollTurn(t, provider);
        await waits(t, poll, "a fetch while nobody has started the instance");
        await provider.enqueueForOrchestrator(queued("a"));
        await waits(t, poll, "the fetch, while still nobody has");
        await provider.enqueueForOrchestrator(start("a"));

        const { item } = await brought(t, poll);
        t.equal(item.messages, [raised("a"), queued("a"), start("a")], "the messages that it brings");
      },
    },

    // In whose turn
    {
      id: "oldest_turn_first_though_another_arrives",
      promise: "A fetch at the moment at which a message arrives brings the instance that has waited longest",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("old"));
        await t.wait(10);
        const [, first] = await Promise.all([provider.enqueueForOrchestrator(start("new")), takeTurn(provider)]);
        t.equal(first.item.instance, "old", "what the fetch brings");
        t.equal((await takeTurn(provider)).item.instance, "new", "what the next one brings");
      },
    },
    {
      id: "oldest_activity_first_though_another_arrives",
      promise: "A fetch at the moment at which an activity arrives brings the one that has waited longest",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const [, first] = await Promise.all([provider.enqueueForWorker(act("a", 2)), takeWork(provider)]);
        t.equal(first.item.id, 1, "what the fetch brings");
        t.equal((await takeWork(provider)).item.id, 2, "what the next one brings");
      },
    },
    {
      id: "messages_of_one_turn_keep_their_order",
      promise: "A timer that is due at once comes after what its turn has sent before it",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await create(provider, "a");
        const orchestratorItems = [raised("a", "before"), timer("a", 5, clock.now()), raised("a", "after")];
        await runTurn(provider, "a", { orchestratorItems });
        t.equal((await takeTurn(provider)).item.messages, orchestratorItems, "the messages");
      },
    },

    // To whom
    {
      id: "version_that_was_pinned_later_counts",
      promise: "A wait for a turn is not ended by an instance that a later turn has pinned to another version",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("1.0.0") } });
        await runTurn(provider, "a");
        await runTurn(provider, "a", { metadata: { pinnedVersion: semver("2.0.0") } });
        const poll = pollTurn(t, provider, { capability: supports("1.0.0..1.9.9") });
        await waits(t, poll, "a fetch from an empty queue");
        await provider.enqueueForOrchestrator(raised("a"));
        await waits(t, poll, "the fetch that can no longer replay the instance");
        t.equal((await takeTurn(provider)).item.instance, "a", "what everybody else can fetch");
      },
    },
    {
      id: "turns_of_another_process_count",
      promise: "A wait for a turn brings the instance as another process has left it",
      async run(t) {
        onlyLongPolls(t);
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("1.0.0") } });
        await runTurn(provider, "a");
        const other = await store.openAnother();
        await continueExecution(other, "a", 2);
        await runTurn(other, "a", { executionId: 2, metadata: { pinnedVersion: semver("2.0.0") } });
        const old = pollTurn(t, provider, { capability: supports("1.0.0..1.9.9") });
        await waits(t, old, "the fetch that could replay what this process knew");
        const current = pollTurn(t, provider, { capability: supports("2.0.0..2.9.9") });
        await waits(t, current, "the fetch that can replay what the other process has made of it");
        await provider.enqueueForOrchestrator(raised("a"));

        t.equal((await brought(t, current)).item.executionId, 2, "the execution that it brings");
        await waits(t, old, "the fetch that cannot replay it any more");
      },
    },
    {
      id: "owner_of_a_session_looks_for_itself",
      promise: "A fetch brings the work of a session that its owner holds, although others wait that cannot have it",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const ofOwner = (ownerId: string) => ({ session: { ownerId, lockTimeoutMs: 10 * t.lockMs } });
        await provider.enqueueForWorker(act("a", 1, { sessionId: "s" }));
        await takeWork(provider, ofOwner("A"));
        await provider.enqueueForWorker(act("a", 2, { sessionId: "s" }));
        const stranger = pollWork(t, provider, ofOwner("B"));
        await waits(t, stranger, "the fetch of somebody else");

        t.equal((await brought(t, pollWork(t, provider, ofOwner("A")))).item.id, 2, "what the owner's fetch brings");
        await waits(t, stranger, "the fetch of somebody else, still");
      },
    },

    // When
    {
      id: "refused_neighbour_takes_nothing_along",
      promise:
        "Work that is committed at the moment at which something else is refused is handed over once, and for good",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const forTurn = pollTurn(t, provider);
        const forWork = pollWork(t, provider);
        await waits(t, forTurn, "the fetch of a turn");
        await waits(t, forWork, "the fetch of an activity");
        const calls = [
          provider.enqueueForOrchestrator(start("b")),
          provider.enqueueForWorker(act("b", 1)),
          provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 1)], workerItems: [act("a", 9)] })),
        ];
        const outcomes = await Promise.allSettled(calls);
        t.equal(
          outcomes.map(({ status }) => status),
          ["fulfilled", "fulfilled", "rejected"],
          "what became of the calls",
        );

        const [b, work] = [await brought(t, forTurn), await brought(t, forWork)];
        t.matches(b, { attemptCount: 1, item: { instance: "b" } }, "the turn");
        t.matches(work, { attemptCount: 1, item: { instance: "b" } }, "the activity");
        t.isNull(await fetchTurn(provider), "a turn that nobody holds");
        t.isNull(await fetchWork(provider), "an activity that nobody holds");
        await provider.ackOrchestrationItem(b.lockToken, turn({ events: [started("b")], metadata: NAMED }));
        await provider.ackWorkItem(work.lockToken, null);
        await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
        t.equal(await provider.read("b"), [started("b")], "the history of what was handed over");
      },
    },
    {
      id: "refused_neighbour_of_whoever_looks",
      promise:
        "A commit that comes at one moment with one that is refused, and with somebody who looks or deletes, is there in full",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b", "c", "d"]) await create(provider, instance);
        const tokens: string[] = [];
        for (const instance of ["a", "b"]) {
          await provider.enqueueForOrchestrator(raised(instance));
          tokens.push((await takeTurn(provider)).lockToken);
        }
        const [refused, committed, sent, fetched] = await Promise.allSettled([
          provider.ackOrchestrationItem(tokens[0]!, turn({ events: [started("a")] })),
          provider.ackOrchestrationItem(tokens[1]!, turn({ events: [scheduled("b", 2)] })),
          provider.enqueueForOrchestrator(raised("c")),
          fetchTurn(provider),
          provider.admin?.deleteInstance("d", true),
        ]);
        t.equal(
          [refused, committed, sent, fetched].map(({ status }) => status),
          ["rejected", "fulfilled", "fulfilled", "fulfilled"],
          "what became of the calls",
        );

        t.equal(await provider.read("b"), [started("b"), scheduled("b", 2)], "the history of what was committed");
        t.equal(await provider.read("a"), [started("a")], "the history of what was refused");
        await provider.renewOrchestrationItemLock(tokens[0]!, LONG_LOCK_MS);
        const found =
          fetched.status === "fulfilled" && fetched.value !== null ? fetched.value : await takeTurn(provider);
        t.matches(found, { attemptCount: 1, item: { instance: "c", messages: [raised("c")] } }, "the turn of another");
      },
    },
    {
      id: "turn_that_is_acked_at_once",
      promise: "A turn may be acked the moment it is there, also before whoever sent its message has heard of that",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const warm = new Map<string, string>();
        /** Waits for the next turn, and acks it as soon as it is there. */
        const ackNext = async (events: readonly Event[], workerItems: readonly ActivityExecute[]): Promise<void> => {
          const { item, lockToken } = (await pollTurn(t, provider, { warm }))!;
          const metadata = item.warmAsOf === null ? NAMED : {};
          const acked = provider.ackOrchestrationItem(lockToken, turn({ events, workerItems, metadata }));
          warm.set("a", lockToken);
          await acked;
        };
        const steps = [
          [started("a"), scheduled("a", 2)],
          [completed("a", 3), scheduled("a", 4)],
          [completed("a", 5), scheduled("a", 6)],
        ] as const;
        let work: LockedWorkItem | null = null;
        for (const [place, events] of steps.entries()) {
          const activity = act("a", 2 * place + 2);
          const acked = ackNext(events, [activity]);
          await waits(t, acked, "the fetch of a turn");
          const forWork = pollWork(t, provider);
          await waits(t, forWork, "the fetch of an activity");
          if (work === null) await provider.enqueueForOrchestrator(start("a"), { ifAbsent: true });
          else await provider.ackWorkItem(work.lockToken, done("a", work.item.id));
          await t.soon(acked, "the ack of a turn that was there");
          work = await brought(t, forWork);
          t.matches(work, { item: activity, attemptCount: 1 }, "the activity that it asked for");
        }

        t.equal(await provider.read("a"), steps.flat(), "the history");
        t.isNull(await fetchTurn(provider), "a turn that nobody asked for");
        t.isNull(await fetchWork(provider), "an activity that nobody asked for");
        const depths = await provider.admin?.getQueueDepths();
        if (depths !== undefined) t.equal(depths.orchestratorQueue, 0, "messages that nobody has used up");
      },
    },
    {
      id: "turn_that_is_refused_at_once",
      promise: "What a turn answers is there for good, also where the turn is refused the moment it comes",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const instances of [["a"], ["b", "c"]]) await refuseFirst(t, provider, instances);
        t.isNull(await fetchTurn(provider), "a turn that nobody asked for");
      },
    },
    {
      id: "delay_that_began_while_nobody_waited",
      promise: "A wait ends when a delay is over that began after a first wait had ended, and before this one",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const work = await takeWork(provider);
        const early: Promise<unknown>[] = [
          pollTurn(t, provider, { pollTimeoutMs: 100 }),
          pollWork(t, provider, { pollTimeoutMs: 100 }),
        ];
        await t.outlive(100);
        for (const poll of early) t.isNull(await t.soon(poll, "the end of a first wait"), "what it brings");
        await provider.enqueueForOrchestrator(start("a"), { delayMs: t.lockMs });
        await provider.abandonWorkItem(work.lockToken, { delayMs: t.lockMs });
        const forTurn = pollTurn(t, provider);
        const forWork = pollWork(t, provider);
        await t.wait(t.lockMs / 2);
        await waits(t, forTurn, "the fetch of a turn before the delay is over");
        await waits(t, forWork, "the fetch of an activity before the delay is over");

        await t.outlive(t.lockMs / 2);
        t.equal((await brought(t, forTurn)).item.instance, "a", "the turn");
        t.equal((await brought(t, forWork)).item.id, 1, "the activity");
      },
    },
    {
      id: "delay_of_another_process",
      promise: "A wait for a turn ends when a delay is over that another process has begun meanwhile",
      async run(t) {
        onlyLongPolls(t);
        const store = await t.open();
        const { provider } = store;
        const other = await store.openAnother();
        const poll = pollTurn(t, provider);
        await waits(t, poll, "a fetch from an empty queue");
        await other.enqueueForOrchestrator(start("a"), { delayMs: 2 * t.lockMs });
        await t.wait(t.lockMs);
        await waits(t, poll, "the fetch before the delay is over");

        await t.outlive(t.lockMs);
        t.equal((await brought(t, poll)).item.instance, "a", "what it brings");
      },
    },
  ],
};

/** Outcomes that come together. Their turns are acked the moment they are there, that of the first with an event that is there. */
async function refuseFirst(t: CaseContext, provider: Provider, instances: readonly string[]): Promise<void> {
  const warm = new Map<string, string>();
  const works: LockedWorkItem[] = [];
  for (const instance of instances) {
    await provider.enqueueForOrchestrator(start(instance));
    const { lockToken } = await takeTurn(provider);
    warm.set(instance, lockToken);
    const events = [started(instance), scheduled(instance, 2)];
    const workerItems = [act(instance, 2)];
    await provider.ackOrchestrationItem(lockToken, turn({ events, workerItems, metadata: NAMED }));
    works.push(await takeWork(provider));
  }
  const tries = instances.map(async () => {
    const { item, lockToken } = t.found(await pollTurn(t, provider, { warm }), "a turn");
    const events = [completed(item.instance, item.instance === instances[0] ? 2 : 3)];
    const [acked] = await Promise.allSettled([provider.ackOrchestrationItem(lockToken, turn({ events }))]);
    if (acked.status === "rejected") await provider.abandonOrchestrationItem(lockToken);
    return { instance: item.instance, isAcked: acked.status === "fulfilled" };
  });
  for (const each of tries) await waits(t, each, "the fetch of a turn");
  await Promise.all(works.map(({ lockToken, item }) => provider.ackWorkItem(lockToken, done(item.instance, 2))));
  const ended = await t.soon(Promise.all(tries), "the end of the turns");
  t.equal(ended.find(({ instance }) => instance === instances[0])?.isAcked, false, "whether the wrong one was acked");

  for (const _ of ended.filter(({ isAcked }) => !isAcked)) {
    const { item, lockToken } = await takeTurn(provider);
    t.equal(item.messages, [done(item.instance, 2)], `what a turn of '${item.instance}' answers that was refused`);
    await provider.ackOrchestrationItem(lockToken, turn({ events: [completed(item.instance, 3)] }));
  }
  for (const instance of instances) {
    const events = [started(instance), scheduled(instance, 2), completed(instance, 3)];
    t.equal(await provider.read(instance), events, `the history of '${instance}'`);
  }
}

async function brought<T extends LockedOrchestrationItem | LockedWorkItem>(
  t: CaseContext,
  poll: Promise<T | null>,
): Promise<T> {
  return t.found(await t.soon(poll, "the end of a wait"), "what a wait brings");
}
