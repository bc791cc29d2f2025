// cases/queue-semantics.ts — both queues deliver what they were given, in order, when it is due.

import { type OrchestratorItem, targetInstance } from "../../history/work-item.js";
import { act, cancel, continueAsNew, done, queued, raised, start, started, timer, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, create, fetchTurn, fetchWork, takeTurn, takeWork } from "../steps.js";

export const queueSemantics: Category = {
  name: "queue_semantics",
  about: "Both queues deliver what they were given, in order, when it is due.",
  cases: [
    // The worker queue

    {
      id: "worker_queue_fifo_ordering",
      promise: "Activities are fetched one at a time, in the order in which they were enqueued",
      async run(t) {
        const { provider } = await t.open();
        for (const id of [0, 1, 2, 3, 4]) await provider.enqueueForWorker(act("a", id));
        for (const id of [0, 1, 2, 3, 4]) t.equal((await takeWork(provider)).item.id, id, "the next activity");
        t.isNull(await fetchWork(provider), "a sixth activity");
      },
    },
    {
      id: "worker_peek_lock_semantics",
      promise: "A fetched activity is hidden, not removed: its ack removes it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);
        t.isNull(await fetchWork(provider), "the activity under its lock");
        await provider.ackWorkItem(lockToken, done("a", 1));
        t.isNull(await fetchWork(provider), "the activity after its ack");
      },
    },
    {
      id: "worker_ack_atomicity",
      promise: "The ack of an activity removes it and queues its completion, in one",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        await provider.enqueueForWorker(act("a", 1));
        t.isNull(await fetchTurn(provider), "the instance before the ack");
        await provider.ackWorkItem((await takeWork(provider)).lockToken, done("a", 1));

        t.isNull(await fetchWork(provider), "the activity after its ack");
        const { item } = await takeTurn(provider);
        t.matches(item, { instance: "a", messages: [done("a", 1)] }, "the instance after the ack");
      },
    },
    {
      id: "worker_ack_without_completion",
      promise: "The ack of an activity without a completion removes it and tells nobody",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForWorker(act("a", 1));
        await provider.ackWorkItem((await takeWork(provider)).lockToken, null);

        t.isNull(await fetchWork(provider), "the activity after its ack");
        t.isNull(await fetchTurn(provider), "the instance after the ack");
      },
    },
    {
      id: "worker_ack_once",
      promise: "An activity is acked once: a second ack is refused and sends no second completion",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);
        await provider.ackWorkItem(lockToken, done("a", 1));

        await t.refused(provider.ackWorkItem(lockToken, done("a", 1)), "lock-lost", "the second ack");
        t.equal((await takeTurn(provider)).item.messages, [done("a", 1)], "the messages after both acks");
      },
    },
    {
      id: "lost_lock_token_handling",
      promise: "An activity whose worker has vanished can be fetched again when its lock has ended",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        await takeWork(provider, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchWork(provider), "the activity under its lock");
        await t.outlive(t.lockMs);
        t.equal((await takeWork(provider)).item, act("a", 1), "the activity when the lock has ended");
      },
    },
    {
      id: "worker_item_immediate_visibility",
      promise:
        "An activity can be fetched as soon as it is enqueued, and needs no instance to be fetched, renewed and acked",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("nobody", 1));
        const { executionState, lockToken } = await takeWork(provider);
        t.equal(executionState, "running", "the state of an execution that nobody knows");
        t.equal(await provider.renewWorkItemLock(lockToken, 30_000), "running", "what the renewal says of it");
        await provider.ackWorkItem(lockToken, done("nobody", 1));
        t.isNull(await fetchWork(provider), "the activity after its ack");
      },
    },
    {
      id: "worker_delayed_visibility_skips_future_items",
      promise:
        "An activity that is abandoned with a delay is hidden for that long, and later ones need not wait for it",
      async run(t) {
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: t.lockMs });
        const second = await takeWork(provider);
        t.equal(second.item.id, 2, "the next activity");
        t.isNull(await fetchWork(provider), "the delayed activity at once");
        await t.wait(Math.floor(t.lockMs / 2));
        t.isNull(await fetchWork(provider), "the delayed activity after half of its delay");

        await t.outlive(Math.ceil(t.lockMs / 2));
        const first = await takeWork(provider);
        t.equal(first.item.id, 1, "the activity after its delay");
        await provider.ackWorkItem(first.lockToken, null);
        await provider.ackWorkItem(second.lockToken, null);
        t.isNull(await fetchWork(provider), "an activity after both acks");
      },
    },
    {
      id: "worker_items_go_to_one_fetch_each",
      promise: "Of many fetches at the same time each activity goes to one, and none is passed over",
      async run(t) {
        const { provider } = await t.open();
        for (const id of [1, 2, 3]) await provider.enqueueForWorker(act("a", id));
        const fetched = await Promise.all(Array.from({ length: 10 }, () => fetchWork(provider)));
        t.equal(
          fetched.flatMap((locked) => locked?.item.id ?? []).sort(),
          [1, 2, 3],
          "the activities that were fetched",
        );
      },
    },
    {
      id: "abandoned_work_has_new_token",
      promise: "An abandoned activity can be fetched at once under a new token, and the old one is worth nothing",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const first = await takeWork(provider);
        await provider.abandonWorkItem(first.lockToken);
        const second = await takeWork(provider);

        t.ok(second.lockToken !== first.lockToken, "that the second fetch has a token of its own");
        await t.refused(provider.ackWorkItem(first.lockToken, null), "lock-lost", "an ack with the first token");
        await provider.ackWorkItem(second.lockToken, null);
        t.isNull(await fetchWork(provider), "the activity after the ack with the second token");
      },
    },
    {
      id: "abandoned_work_keeps_its_place",
      promise: "An activity that is abandoned without a delay keeps its place before later ones",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        await t.wait(5);
        await provider.enqueueForWorker(act("a", 2));
        await provider.abandonWorkItem((await takeWork(provider)).lockToken);
        t.equal((await takeWork(provider)).item.id, 1, "the next activity");
      },
    },
    {
      id: "work_is_abandoned_late_or_twice",
      promise:
        "An unknown token is abandoned silently; an expired one counts as long as nobody has taken the activity since",
      async run(t) {
        const { provider } = await t.open();
        await provider.abandonWorkItem("unknown", { delayMs: 10 });
        await provider.enqueueForWorker(act("a", 1));
        const first = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        await provider.abandonWorkItem(first.lockToken, { delayMs: t.lockMs });
        t.isNull(await fetchWork(provider), "the activity, whose first worker has asked for a delay");

        await t.outlive(t.lockMs);
        const second = await takeWork(provider);
        await provider.abandonWorkItem(first.lockToken);
        t.isNull(await fetchWork(provider), "the activity, which its second worker has");
        await provider.ackWorkItem(second.lockToken, null);
      },
    },

    // The order of messages

    {
      id: "messages_in_order_of_arrival",
      promise: "The messages of a batch come in the order in which they were enqueued, whatever their kind",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const messages = [done("a", 3), queued("a"), raised("a"), done("a", 1), cancel("a"), done("a", 2)];
        for (const message of messages) {
          await provider.enqueueForOrchestrator(message);
          await t.wait(1);
        }
        t.equal((await takeTurn(provider)).item.messages, messages, "the messages");
      },
    },
    {
      id: "messages_in_order_within_a_moment",
      promise:
        "Messages of one moment keep their order: those that one turn sends, and those that come one after another",
      async run(t) {
        const { provider } = await t.open();
        const sent = Array.from({ length: 20 }, (_, n) => done("a", 20 - n));
        await create(provider, "a", { orchestratorItems: sent });
        const after = Array.from({ length: 10 }, (_, n) => raised("a", `signal-${10 - n}`));
        for (const message of after) await provider.enqueueForOrchestrator(message);

        t.equal((await takeTurn(provider)).item.messages, [...sent, ...after], "the messages");
      },
    },
    {
      id: "timer_has_place_of_its_fire_time",
      promise: "In a batch a timer stands at the time at which it fires, not at that of its creation",
      async run(t) {
        const { provider } = await t.open();
        const now = t.now();
        const early = timer("a", 3, now + Math.floor(t.lockMs / 2));
        const late = timer("a", 2, now + 2 * t.lockMs);
        await create(provider, "a", { orchestratorItems: [late, early] });
        await t.outlive(t.lockMs);
        await provider.enqueueForOrchestrator(done("a", 4));
        await t.outlive(t.lockMs);

        t.equal((await takeTurn(provider)).item.messages, [early, done("a", 4), late], "the messages");
      },
    },
    {
      id: "delayed_abandon_keeps_order",
      promise: "Messages that are abandoned with a delay stay before those that arrive meanwhile",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        for (const id of [1, 2]) await provider.enqueueForOrchestrator(done("a", id));
        await t.wait(1);
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: t.lockMs });
        await t.wait(Math.floor(t.lockMs / 2));
        await provider.enqueueForOrchestrator(done("a", 3));
        t.isNull(await fetchTurn(provider), "the instance, which is held back as a whole");
        await t.outlive(Math.ceil(t.lockMs / 2));

        t.equal((await takeTurn(provider)).item.messages, [done("a", 1), done("a", 2), done("a", 3)], "the messages");
      },
    },
    {
      id: "equal_messages_are_kept",
      promise: "Messages may be equal: all of them are delivered",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        for (let i = 0; i < 3; i += 1) await provider.enqueueForOrchestrator(done("a", 1));
        t.equal((await takeTurn(provider)).item.messages, [done("a", 1), done("a", 1), done("a", 1)], "the messages");
      },
    },

    // The order of instances

    {
      id: "oldest_message_first",
      promise: "The next instance is the one whose oldest visible message is the oldest",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["c", "a", "b"]) {
          await provider.enqueueForOrchestrator(start(instance));
          await t.wait(1);
        }
        await provider.enqueueForOrchestrator(raised("b"));
        for (const instance of ["c", "a", "b"]) {
          t.equal((await takeTurn(provider)).item.instance, instance, "the next instance");
        }
      },
    },
    {
      id: "message_due_first_comes_first",
      promise: "Between instances, too, a timer stands at the time at which it fires, not at that of its creation",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b", "c"]) await create(provider, instance);
        await provider.enqueueForOrchestrator(timer("a", 2, t.now() + 2 * t.lockMs));
        await provider.enqueueForOrchestrator(timer("b", 2, t.now() + t.lockMs));
        await t.outlive(2 * t.lockMs);
        await provider.enqueueForOrchestrator(timer("c", 2, 0));

        for (const instance of ["c", "b", "a"]) {
          t.equal((await takeTurn(provider)).item.instance, instance, "the next instance");
        }
      },
    },
    {
      id: "busy_instance_starves_nobody",
      promise: "An instance that keeps writing to itself does not come before others that wait",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "busy", { orchestratorItems: [raised("busy")] });
        await t.wait(1);
        await provider.enqueueForOrchestrator(start("patient"));
        await t.wait(1);
        await commitNext(provider, "busy", { orchestratorItems: [raised("busy")] });

        t.equal((await takeTurn(provider)).item.instance, "patient", "the next instance");
      },
    },
    {
      id: "sleepers_hide_nobody",
      promise: "Instances that wait for timers stand in nobody's way",
      async run(t) {
        const { provider } = await t.open();
        for (let i = 0; i < 5; i += 1) {
          const instance = `sleeper-${i}`;
          await create(provider, instance, { orchestratorItems: [timer(instance, 2, t.now() + 60_000)] });
        }
        await provider.enqueueForOrchestrator(start("awake"));

        t.equal((await takeTurn(provider)).item.instance, "awake", "the next instance");
        t.isNull(await fetchTurn(provider), "a further instance");
      },
    },

    // Delays and timers

    {
      id: "timer_delayed_visibility",
      promise: "A timer that is enqueued with a delay is hidden for that long, even where its fire time is past",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        await provider.enqueueForOrchestrator(timer("a", 2, 0), { delayMs: t.lockMs });
        t.isNull(await fetchTurn(provider), "the instance at once");
        await t.wait(Math.floor(t.lockMs / 2));
        t.isNull(await fetchTurn(provider), "the instance after half of the delay");
        await t.outlive(Math.ceil(t.lockMs / 2));
        t.equal((await takeTurn(provider)).item.messages, [timer("a", 2, 0)], "the messages after the delay");
      },
    },
    {
      id: "enqueued_timer_waits_for_later_of_two",
      promise: "A timer that is enqueued waits for both its fire time and its delay",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const byDelay = timer("a", 2, 0);
        const byFireTime = timer("a", 3, t.now() + 2 * t.lockMs);
        await provider.enqueueForOrchestrator(byDelay, { delayMs: t.lockMs });
        await provider.enqueueForOrchestrator(byFireTime, { delayMs: 1 });
        t.isNull(await fetchTurn(provider), "the instance at once");

        await t.outlive(t.lockMs);
        const first = await takeTurn(provider);
        t.equal(first.item.messages, [byDelay], "the messages after the delay of the first");
        await provider.ackOrchestrationItem(first.lockToken, turn());
        t.isNull(await fetchTurn(provider), "the instance before the fire time of the second");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.messages, [byFireTime], "the messages at that time");
      },
    },
    {
      id: "timer_of_turn_fires_at_its_time",
      promise: "A timer that a turn sets fires at its time, not before",
      async run(t) {
        const { provider } = await t.open();
        const timerOfTurn = timer("a", 2, t.now() + 2 * t.lockMs);
        await begin(provider, "a", { orchestratorItems: [timerOfTurn] });
        t.isNull(await fetchTurn(provider), "the instance at once");
        await t.wait(t.lockMs);
        t.isNull(await fetchTurn(provider), "the instance at half the time");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.messages, [timerOfTurn], "the messages at the time of the timer");
      },
    },
    {
      id: "delayed_message_hides_no_other",
      promise: "A message that is not due, or delayed, keeps no visible one of its instance waiting, nor goes with it",
      async run(t) {
        const { provider } = await t.open();
        const later = timer("a", 2, t.now() + 2 * t.lockMs);
        await create(provider, "a", { orchestratorItems: [later] });
        await provider.enqueueForOrchestrator(raised("a"), { delayMs: 2 * t.lockMs });
        await provider.enqueueForOrchestrator(done("a", 3));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [done("a", 3)], "the messages before the timer is due and the delay is over");
        await provider.ackOrchestrationItem(lockToken, turn());

        await t.outlive(2 * t.lockMs);
        const due = [raised("a"), later];
        t.equal((await takeTurn(provider)).item.messages, due, "the messages afterwards, by the time they were due");
      },
    },
    {
      id: "due_to_the_millisecond",
      promise: "What is delayed is there exactly when its time has come: a message, a timer, an abandoned activity",
      async run(t) {
        const { exactTime } = t;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"), { delayMs: 2_000 });
        await exactTime.advance(1_999);
        t.isNull(await fetchTurn(provider), "a delayed message one millisecond before its time");
        await exactTime.advance(1);
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [start("a")], "the delayed message at its time");

        const fired = timer("a", 2, t.now() + 5_000);
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], orchestratorItems: [fired] }));
        await exactTime.advance(4_999);
        t.isNull(await fetchTurn(provider), "a timer one millisecond before its time");
        await exactTime.advance(1);
        t.equal((await takeTurn(provider)).item.messages, [fired], "the timer at its time");

        await provider.enqueueForWorker(act("a", 1));
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: 2 });
        await exactTime.advance(1);
        t.isNull(await fetchWork(provider), "a delayed activity one millisecond before its time");
        await exactTime.advance(1);
        t.equal((await takeWork(provider)).item, act("a", 1), "the delayed activity at its time");
      },
    },

    // Messages ahead of their instance

    {
      id: "early_message_waits_for_start",
      promise:
        "A message that runs ahead of its instance's start waits for it, unseen and uncounted, and then comes first",
      async run(t) {
        const { provider } = await t.open();
        const early: readonly OrchestratorItem[] = [
          cancel("a"),
          raised("b"),
          done("c", 1),
          timer("d", 2, 0),
          { type: "SubOrchCompleted", parentInstance: "e", parentExecutionId: 1, parentId: 2, result: "ok" },
        ];
        for (const message of early) await provider.enqueueForOrchestrator(message);
        for (let i = 0; i < 3; i += 1) t.isNull(await fetchTurn(provider), "an instance that has not been started");
        await t.outlive(t.lockMs);
        t.isNull(await fetchTurn(provider), "an instance that has not been started, a while later");

        for (const message of early) {
          const begun = start(targetInstance(message));
          await provider.enqueueForOrchestrator(begun);
          const { item, attemptCount } = await takeTurn(provider);
          t.equal(item.messages, [message, begun], `the messages when the instance is started (${message.type})`);
          t.equal(attemptCount, 1, `the attempt count (${message.type})`);
        }
      },
    },
    {
      id: "orphan_cancel_consumes_no_attempts",
      promise:
        "The cancellation of an instance that does not exist is not counted in the store, however often it is passed over",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await provider.enqueueForOrchestrator(cancel("missing"));
        for (let i = 0; i < 3; i += 1) t.isNull(await fetchTurn(provider), "an instance that does not exist");
        t.equal(await store.maxAttemptCount("missing"), 0, "the stored attempt count");
      },
    },
    {
      id: "orphan_cancel_starves_nobody",
      promise: "Cancellations of instances that do not exist do not keep others waiting",
      async run(t) {
        const { provider } = await t.open();
        for (let i = 0; i < 20; i += 1) await provider.enqueueForOrchestrator(cancel(`missing-${i}`));
        await t.wait(1);
        for (const instance of ["b", "c"]) await provider.enqueueForOrchestrator(start(instance));

        t.equal((await takeTurn(provider)).item.instance, "b", "the next instance");
        t.equal((await takeTurn(provider)).item.instance, "c", "the instance after it");
        t.isNull(await fetchTurn(provider), "a further instance");
      },
    },
    {
      id: "early_message_gives_instance_its_place",
      promise: "An instance whose message ran ahead of its start stands in line by that message, once it has started",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "c"]) await provider.enqueueForOrchestrator(raised(instance));
        t.isNull(await fetchTurn(provider), "an instance that has not been started");
        await t.wait(1);
        for (const instance of ["b", "d"]) await provider.enqueueForOrchestrator(start(instance));
        await t.wait(1);
        await provider.enqueueForOrchestrator(start("a"));
        t.equal((await takeTurn(provider)).item.instance, "a", "the next instance when the first has started");

        await provider.enqueueForOrchestrator(start("c"), { delayMs: t.lockMs });
        t.equal((await takeTurn(provider)).item.instance, "b", "the next instance while a start is delayed");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.instance, "c", "the next instance when the delay is over");
        t.equal((await takeTurn(provider)).item.instance, "d", "the one behind it");
      },
    },
    {
      id: "early_message_waits_for_delayed_start",
      promise: "A message that comes before its instance's delayed start is visible waits for it, behind it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"), { delayMs: t.lockMs });
        await provider.enqueueForOrchestrator(cancel("a"));
        t.isNull(await fetchTurn(provider), "the instance before its start");
        await t.outlive(t.lockMs);

        const { item, attemptCount } = await takeTurn(provider);
        t.equal(item.messages, [start("a"), cancel("a")], "the messages");
        t.equal(attemptCount, 1, "the attempt count");
      },
    },
    {
      id: "orphan_queue_messages_dropped",
      promise: "Queue messages to an instance that nobody has started are dropped when their turn comes",
      async run(t) {
        const { provider } = await t.open();
        for (const data of ["1", "2"]) await provider.enqueueForOrchestrator(queued("orphan", "inbox", data));
        for (let i = 0; i < 2; i += 1) t.isNull(await fetchTurn(provider), "the instance that nobody has started");
        await provider.enqueueForOrchestrator(start("orphan"));
        t.equal((await takeTurn(provider)).item.messages, [start("orphan")], "its messages after a later start");

        await create(provider, "existing");
        await provider.enqueueForOrchestrator(queued("existing", "ConfigUpdate", "v3"));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.instance, "existing", "the instance that exists");
        t.equal(item.messages, [queued("existing", "ConfigUpdate", "v3")], "its messages");
        await provider.ackOrchestrationItem(lockToken, turn());
      },
    },
    {
      id: "orphan_queue_messages_starve_nobody",
      promise: "Queue messages that are dropped do not keep others waiting",
      async run(t) {
        const { provider } = await t.open();
        for (let i = 0; i < 3; i += 1) await provider.enqueueForOrchestrator(queued(`missing-${i}`));
        await t.wait(1);
        await provider.enqueueForOrchestrator(start("b"));
        t.equal((await takeTurn(provider)).item.instance, "b", "the next instance");
      },
    },
    {
      id: "queue_message_with_start_kept",
      promise: "A queue message is kept when the start of its instance is there",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(queued("a"));
        await provider.enqueueForOrchestrator(start("a"));
        t.equal((await takeTurn(provider)).item.messages, [queued("a"), start("a")], "the messages");
      },
    },
    {
      id: "queue_message_with_hidden_start_kept",
      promise: "A queue message is kept when the start of its instance is queued but not visible",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("abandoned"));
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: t.lockMs });
        await provider.enqueueForOrchestrator(start("delayed"), { delayMs: t.lockMs });
        for (const instance of ["abandoned", "delayed"]) await provider.enqueueForOrchestrator(queued(instance));
        t.isNull(await fetchTurn(provider), "an instance whose start is not visible");
        await t.outlive(t.lockMs);

        for (const instance of ["abandoned", "delayed"]) {
          const { item } = await takeTurn(provider);
          t.equal(item.messages, [start(instance), queued(instance)], `the messages of the ${instance} instance`);
        }
      },
    },
    {
      id: "queue_message_beside_early_message_kept",
      promise: "A queue message is kept beside another message that waits for the start",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(queued("a"));
        await provider.enqueueForOrchestrator(raised("a"));
        t.isNull(await fetchTurn(provider), "the instance before its start");
        await provider.enqueueForOrchestrator(start("a"));

        t.equal((await takeTurn(provider)).item.messages, [queued("a"), raised("a"), start("a")], "the messages");
      },
    },
    {
      id: "queue_message_of_unnamed_instance_kept",
      promise: "A queue message to an instance that only its history knows is delivered",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        await provider.enqueueForOrchestrator(queued("a"));
        t.equal((await takeTurn(provider)).item.messages, [queued("a")], "the messages");
      },
    },
    {
      id: "queue_message_behind_continue_as_new_kept",
      promise: "A queue message to an instance that continues as new is kept while its next start is held back",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a", { orchestratorItems: [continueAsNew("a")], metadata: { status: "ContinuedAsNew" } });
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: t.lockMs });
        await provider.enqueueForOrchestrator(queued("a"));
        t.isNull(await fetchTurn(provider), "the instance, which is held back");
        await t.outlive(t.lockMs);

        t.equal((await takeTurn(provider)).item.messages, [continueAsNew("a"), queued("a")], "the messages");
      },
    },
  ],
};
