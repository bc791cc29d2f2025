// cases/lock-expiration.ts — a lock lives as long as it says: it can be renewed, given back, and taken over when it has ended.

import { act, done, NAMED, raised, scheduled, start, started, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "../steps.js";

export const lockExpiration: Category = {
  name: "lock_expiration",
  about: "A lock lives as long as it says: it can be renewed, given back, and taken over when it has ended.",
  cases: [
    // Locks of instances
    {
      id: "lock_expires_after_timeout",
      promise: "An expired lock lets another dispatcher take the instance, and refuses the first one's ack",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const late = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchTurn(provider), "the instance under its lock");
        await t.outlive(t.lockMs);
        const owner = await takeTurn(provider);
        t.ok(owner.lockToken !== late.lockToken, "the second lock has a token of its own");

        const commit = turn({ events: [started("a")] });
        await t.refused(provider.ackOrchestrationItem(late.lockToken, commit), "lock-lost", "the ack of the first");
        t.equal(await provider.read("a"), [], "the history after the ack of the first");
        await provider.ackOrchestrationItem(owner.lockToken, commit);
        t.equal(await provider.read("a"), [started("a")], "the history after the ack of the second");
      },
    },
    {
      id: "locks_end_to_the_millisecond",
      promise: "A lock is live until its very last millisecond, and over with the next",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        await takeTurn(provider, { lockTimeoutMs: 1_234 });
        await takeWork(provider, { lockTimeoutMs: 1_234 });

        await clock.advance(1_233);
        t.isNull(await fetchTurn(provider), "the instance in the last millisecond of its lock");
        t.isNull(await fetchWork(provider), "the activity in the last millisecond of its lock");
        await clock.advance(1);
        t.found(await fetchTurn(provider), "the instance when its lock is over");
        t.found(await fetchWork(provider), "the activity when its lock is over");
      },
    },
    {
      id: "orchestration_ack_fails_after_lock_expiry",
      promise: "An expired lock refuses the ack although nobody has taken the instance, and loses no message",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        const ack = provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
        await t.refused(ack, "lock-lost", "an ack after the end of its lock");
        t.equal(await provider.read("a"), [], "the history after the refused ack");
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages after the refused ack");
      },
    },
    {
      id: "ack_while_second_owner_is_mid_turn",
      promise: "A turn that outlives its lock leaves nothing behind while the second owner is in the middle of its own",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const late = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        const owner = await takeTurn(provider);
        const commit = turn({
          events: [scheduled("a", 2)],
          workerItems: [act("a", 2)],
          orchestratorItems: [start("b")],
        });

        await t.refused(provider.ackOrchestrationItem(late.lockToken, commit), "lock-lost", "the ack of the first");
        t.equal(await provider.read("a"), [started("a")], "the history after the ack of the first");
        t.isNull(await fetchWork(provider), "an activity of the first");
        t.isNull(await fetchTurn(provider), "a message of the first, or the instance that the second holds");
        await provider.renewOrchestrationItemLock(owner.lockToken, 10 * t.lockMs);
        await provider.ackOrchestrationItem(owner.lockToken, commit);
        t.equal(await provider.read("a"), [started("a"), scheduled("a", 2)], "the history after the ack of the second");
        t.equal((await takeWork(provider)).item, act("a", 2), "the activity of the second");
        t.isNull(await fetchWork(provider), "one more activity");
        const again = provider.ackOrchestrationItem(late.lockToken, commit);
        await t.refused(again, "lock-lost", "the ack of the first after that of the second");
      },
    },
    {
      id: "ack_while_second_process_is_mid_turn",
      promise: "A process that was asleep longer than its lock cannot commit what another one has taken over",
      async run(t) {
        const store = await t.open();
        const sleeper = await store.openAnother();
        const { provider } = store;
        await create(sleeper, "a");
        await sleeper.enqueueForOrchestrator(raised("a"));
        const late = await takeTurn(sleeper, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        const owner = await takeTurn(provider);
        const commit = turn({ events: [scheduled("a", 2)] });

        await t.refused(sleeper.ackOrchestrationItem(late.lockToken, commit), "lock-lost", "the ack of the sleeper");
        const renewal = sleeper.renewOrchestrationItemLock(late.lockToken, t.lockMs);
        await t.refused(renewal, "lock-lost", "the renewal of the sleeper");
        await sleeper.abandonOrchestrationItem(late.lockToken);
        t.isNull(await fetchTurn(sleeper), "the instance, which the other process holds");
        await provider.ackOrchestrationItem(owner.lockToken, commit);
        t.equal(await sleeper.read("a"), [started("a"), scheduled("a", 2)], "the history that both processes see");
      },
    },
    {
      id: "lock_renewal_on_ack",
      promise: "An ack releases the instance at once for what has arrived meanwhile",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        await provider.enqueueForOrchestrator(start("a", { input: "again" }));
        t.isNull(await fetchTurn(provider), "the instance under its lock");

        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
        const { messages } = (await takeTurn(provider)).item;
        t.equal(messages, [start("a", { input: "again" })], "its messages right after the ack");
      },
    },
    {
      id: "concurrent_lock_attempts_respect_expiration",
      promise: "Fetches that come under a live lock neither break nor lengthen it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        for (let round = 0; round < 2; round += 1) {
          const fetched = await Promise.all(Array.from({ length: 5 }, () => fetchTurn(provider)));
          t.equal(fetched, [null, null, null, null, null], "what five fetches get under the lock");
          await t.wait(t.lockMs / 4);
        }

        await t.outlive(t.lockMs / 2);
        t.equal((await takeTurn(provider)).item.instance, "a", "what is fetched when the lock has ended");
      },
    },
    {
      id: "orchestration_lock_renewal_extends_timeout",
      promise: "A renewed instance lock lives for the extension, counted from the renewal",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.wait(t.lockMs / 2);
        await provider.renewOrchestrationItemLock(lockToken, 2 * t.lockMs);
        await t.wait(t.lockMs);
        t.isNull(await fetchTurn(provider), "the instance, half a lock after its first end");

        await t.outlive(t.lockMs);
        t.found(await fetchTurn(provider), "the instance when the extension is over");
      },
    },
    {
      id: "renewed_orchestration_lock_can_be_acked",
      promise: "A renewed instance lock commits its turn after its first end",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.wait(t.lockMs / 2);
        await provider.renewOrchestrationItemLock(lockToken, t.lockMs);
        await t.outlive(t.lockMs / 2);
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
        t.equal(await provider.read("a"), [started("a")], "the history");
        t.isNull(await fetchTurn(provider), "the instance, whose messages are consumed");
      },
    },
    {
      id: "renewal_counts_in_milliseconds",
      promise: "A renewal extends a lock by milliseconds, counted from the renewal, even if it ends sooner by that",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        const instance = await takeTurn(provider, { lockTimeoutMs: 1_000 });
        const activity = await takeWork(provider, { lockTimeoutMs: 1_000 });
        await clock.advance(600);
        await provider.renewOrchestrationItemLock(instance.lockToken, 1_250);
        await provider.renewWorkItemLock(activity.lockToken, 1_250);

        await clock.advance(1_249);
        t.isNull(await fetchTurn(provider), "the instance in the last millisecond of its extension");
        t.isNull(await fetchWork(provider), "the activity in the last millisecond of its extension");
        await provider.renewOrchestrationItemLock(instance.lockToken, 10);
        await provider.renewWorkItemLock(activity.lockToken, 10);
        await clock.advance(9);
        t.isNull(await fetchTurn(provider), "the instance in the last of ten milliseconds");
        t.isNull(await fetchWork(provider), "the activity in the last of ten milliseconds");
        await clock.advance(1);
        const nextInstance = t.found(await fetchTurn(provider), "the instance after ten milliseconds");
        const nextActivity = t.found(await fetchWork(provider), "the activity after ten milliseconds");

        await provider.renewOrchestrationItemLock(nextInstance.lockToken, 10);
        await provider.renewWorkItemLock(nextActivity.lockToken, 10);
        await clock.advance(10);
        t.found(await fetchTurn(provider), "the instance at an end that the renewal made an earlier one");
        t.found(await fetchWork(provider), "the activity at an end that the renewal made an earlier one");
      },
    },
    {
      id: "orchestration_lock_renewal_after_expiration",
      promise: "An expired instance lock cannot be renewed, whether somebody has taken the instance or not",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        const renewal = provider.renewOrchestrationItemLock(lockToken, t.lockMs);
        await t.refused(renewal, "lock-lost", "the renewal of an expired lock");
        t.found(await fetchTurn(provider), "the instance after the refused renewal");
        const late = provider.renewOrchestrationItemLock(lockToken, t.lockMs);
        await t.refused(late, "lock-lost", "the renewal when somebody else has the instance");
      },
    },
    {
      id: "orchestration_lock_renewal_invalid_token",
      promise: "An instance lock is not renewed with a token that is unknown, or acked, or abandoned",
      async run(t) {
        const { provider } = await t.open();
        const renew = (token: string) => provider.renewOrchestrationItemLock(token, t.lockMs);
        await t.refused(renew("invalid-token-123"), "lock-lost", "a renewal with an unknown token");
        await provider.enqueueForOrchestrator(start("a"));
        const abandoned = await takeTurn(provider);
        await provider.abandonOrchestrationItem(abandoned.lockToken);
        await t.refused(renew(abandoned.lockToken), "lock-lost", "a renewal after the abandon");
        const acked = await takeTurn(provider);
        await provider.ackOrchestrationItem(acked.lockToken, turn());
        await t.refused(renew(acked.lockToken), "lock-lost", "a renewal after the ack");
      },
    },

    // Instances that are given back
    {
      id: "abandon_releases_lock_immediately",
      promise: "An abandoned instance can be fetched at once with the same messages, under a new token only",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const first = await takeTurn(provider);
        t.isNull(await fetchTurn(provider), "the instance under its lock");
        await provider.abandonOrchestrationItem(first.lockToken);

        const second = await takeTurn(provider);
        t.equal(second.item.messages, [start("a")], "its messages right after the abandon");
        t.ok(second.lockToken !== first.lockToken, "the second lock has a token of its own");
        const ack = provider.ackOrchestrationItem(first.lockToken, turn());
        await t.refused(ack, "lock-lost", "an ack with the token that was abandoned");
      },
    },
    {
      id: "abandoned_instance_keeps_the_order_of_its_messages",
      promise: "An abandon leaves the messages in their order, with those behind them that arrived under the lock",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        for (const id of [1, 2]) await provider.enqueueForOrchestrator(done("a", id));
        await t.wait(1);
        const { lockToken } = await takeTurn(provider);
        await provider.enqueueForOrchestrator(done("a", 3));
        await t.wait(1);
        await provider.abandonOrchestrationItem(lockToken);

        const { messages } = (await takeTurn(provider)).item;
        t.equal(messages, [done("a", 1), done("a", 2), done("a", 3)], "the messages after the abandon");
      },
    },
    {
      id: "abandon_twice",
      promise: "To abandon an instance a second time changes nothing",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        await provider.abandonOrchestrationItem(lockToken);
        await provider.abandonOrchestrationItem(lockToken, { delayMs: 10 * t.lockMs, ignoreAttempt: true });

        t.equal((await takeTurn(provider)).attemptCount, 2, "the attempts of the instance right after both");
      },
    },
    {
      id: "abandon_with_delay",
      promise: "An instance that is abandoned with a delay is invisible for that long, and then as it was",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        await provider.abandonOrchestrationItem(lockToken, { delayMs: t.lockMs });
        t.isNull(await fetchTurn(provider), "the instance right after the abandon");
        await t.wait(t.lockMs / 2);
        t.isNull(await fetchTurn(provider), "the instance in the middle of its delay");

        await t.outlive(t.lockMs / 2);
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "its messages when the delay is over");
      },
    },
    {
      id: "delays_end_to_the_millisecond",
      promise: "Work that is abandoned with a delay is back in the very millisecond in which that is over",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 1_234 });
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: 1_234 });

        await clock.advance(1_233);
        t.isNull(await fetchTurn(provider), "the instance in the last millisecond of its delay");
        t.isNull(await fetchWork(provider), "the activity in the last millisecond of its delay");
        await clock.advance(1);
        t.found(await fetchTurn(provider), "the instance when its delay is over");
        t.found(await fetchWork(provider), "the activity when its delay is over");
      },
    },
    {
      id: "fractions_of_milliseconds_are_rounded_up",
      promise: "A lock or a delay of a fraction of a millisecond is never shorter than it says",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        await takeTurn(provider, { lockTimeoutMs: 10.5 });
        await takeWork(provider, { lockTimeoutMs: 10.5 });
        await clock.advance(10);
        t.isNull(await fetchTurn(provider), "the instance after 10 of 10.5 ms");
        t.isNull(await fetchWork(provider), "the activity after 10 of 10.5 ms");
        await clock.advance(1);

        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, { delayMs: 0.5 });
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, { delayMs: 0.5 });
        t.isNull(await fetchTurn(provider), "the instance during a delay of 0.5 ms");
        t.isNull(await fetchWork(provider), "the activity during a delay of 0.5 ms");
        await clock.advance(1);
        t.found(await fetchTurn(provider), "the instance after its delay");
        t.found(await fetchWork(provider), "the activity after its delay");
      },
    },
    {
      id: "delayed_abandon_keeps_later_arrivals_in_order",
      promise: "A delayed abandon holds the whole instance: later messages do not overtake its own",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 1));
        await t.wait(1);
        const { lockToken } = await takeTurn(provider);
        await provider.enqueueForOrchestrator(done("a", 2));
        await provider.abandonOrchestrationItem(lockToken, { delayMs: t.lockMs });
        await provider.enqueueForOrchestrator(done("a", 3));
        t.isNull(await fetchTurn(provider), "the instance with later messages, right after the abandon");
        await t.wait(t.lockMs / 2);
        t.isNull(await fetchTurn(provider), "the instance with later messages, in the middle of the delay");

        await t.outlive(t.lockMs / 2);
        const { messages } = (await takeTurn(provider)).item;
        t.equal(messages, [done("a", 1), done("a", 2), done("a", 3)], "the messages when the delay is over");
      },
    },
    {
      id: "delayed_abandon_does_not_hold_other_instances",
      promise: "An instance that is abandoned with a delay stands in nobody's way",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(start(instance));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.instance, "a", "the instance whose message came first");
        await provider.abandonOrchestrationItem(lockToken, { delayMs: t.lockMs });
        t.equal((await takeTurn(provider)).item.instance, "b", "what is fetched during the delay");
      },
    },
    {
      id: "delayed_abandon_voids_the_token",
      promise: "An instance that waits out its delay belongs to nobody: the token of its fetch is void",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 1));
        const { lockToken } = await takeTurn(provider);
        await provider.abandonOrchestrationItem(lockToken, { delayMs: t.lockMs, ignoreAttempt: true });

        const renewal = provider.renewOrchestrationItemLock(lockToken, 10 * t.lockMs);
        await t.refused(renewal, "lock-lost", "a renewal during the delay");
        await t.refused(provider.ackOrchestrationItem(lockToken, turn()), "lock-lost", "an ack during the delay");
        await provider.abandonOrchestrationItem(lockToken);
        t.isNull(await fetchTurn(provider), "the instance, which a second abandon does not release");
        await t.outlive(t.lockMs);
        t.matches(await takeTurn(provider), { attemptCount: 1, item: { instance: "a" } }, "the item after the delay");
      },
    },
    {
      id: "expired_lock_can_be_abandoned",
      promise: "An expired instance lock can still be abandoned while nobody has taken the instance",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        await provider.abandonOrchestrationItem(lockToken, { delayMs: t.lockMs, ignoreAttempt: true });

        t.isNull(await fetchTurn(provider), "the instance during the delay of the late abandon");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).attemptCount, 1, "the attempts after the late abandon took one back");
      },
    },
    {
      id: "end_of_one_lock_leaves_others_alone",
      promise: "Whichever way a lock ends, the batches of other instances are acked as if nothing had happened",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["expires", "abandoned", "delayed", "held"]) {
          await provider.enqueueForOrchestrator(start(instance));
        }
        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        const abandoned = await takeTurn(provider);
        const delayed = await takeTurn(provider);
        const held = await takeTurn(provider);
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.instance, "expires", "the instance whose lock has expired");
        const options = { ignoreAttempt: true };
        await provider.abandonOrchestrationItem(abandoned.lockToken, options);
        await provider.abandonOrchestrationItem(delayed.lockToken, { delayMs: 10 * t.lockMs, ...options });

        await provider.ackOrchestrationItem(held.lockToken, turn({ events: [started("held")], metadata: NAMED }));
        const next = await takeTurn(provider);
        t.matches(next, { item: { instance: "abandoned" }, attemptCount: 1 }, "the instance that was abandoned");
        t.isNull(await fetchTurn(provider), "the messages that were acked");
      },
    },
    {
      id: "taken_over_lock_cannot_be_abandoned",
      promise: "When an instance is taken over, an abandon of the first owner does not disturb the second",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const late = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        const owner = await takeTurn(provider);
        await provider.abandonOrchestrationItem(late.lockToken, { ignoreAttempt: true });
        t.isNull(await fetchTurn(provider), "the instance, which the second still holds");
        await provider.abandonOrchestrationItem(late.lockToken, { delayMs: 10 * t.lockMs });

        await provider.abandonOrchestrationItem(owner.lockToken);
        const third = await takeTurn(provider);
        t.equal(third.attemptCount, 3, "the attempts, of which the first owner has taken none back");
        await provider.ackOrchestrationItem(third.lockToken, turn({ events: [started("a")] }));
        t.equal(await provider.read("a"), [started("a")], "the history after the ack of the third");
      },
    },

    // Locks of activities
    {
      id: "worker_lock_expires_after_timeout",
      promise: "An activity whose lock has expired can be fetched again, under a new token",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const first = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.wait(t.lockMs / 2);
        t.isNull(await fetchWork(provider), "the activity in the middle of its lock");

        await t.outlive(t.lockMs / 2);
        const second = await takeWork(provider);
        t.equal(second.item, act("a", 1), "the activity when its lock has ended");
        t.ok(second.lockToken !== first.lockToken, "the second lock has a token of its own");
      },
    },
    {
      id: "worker_lock_renewal_success",
      promise: "A live lock of an activity can be renewed, and says that its execution runs",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchWork(provider), "the activity under its lock");
        await t.wait(t.lockMs / 4);

        t.equal(await provider.renewWorkItemLock(lockToken, t.lockMs), "running", "the answer to the renewal");
        t.isNull(await fetchWork(provider), "the activity under its renewed lock");
      },
    },
    {
      id: "worker_lock_renewal_invalid_token",
      promise: "No activity is renewed with an unknown token",
      async run(t) {
        const { provider } = await t.open();
        const renewal = provider.renewWorkItemLock("invalid-token-123", t.lockMs);
        await t.refused(renewal, "lock-lost", "a renewal with an unknown token");
      },
    },
    {
      id: "worker_lock_renewal_after_expiration",
      promise: "An expired lock of an activity cannot be renewed, whether somebody has taken the activity or not",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        const renewal = provider.renewWorkItemLock(lockToken, t.lockMs);
        await t.refused(renewal, "lock-lost", "the renewal of an expired lock");
        t.found(await fetchWork(provider), "the activity after the refused renewal");
        const late = provider.renewWorkItemLock(lockToken, t.lockMs);
        await t.refused(late, "lock-lost", "the renewal when somebody else has the activity");
      },
    },
    {
      id: "worker_lock_renewal_extends_timeout",
      promise: "A renewed lock of an activity lives for the extension, counted from the renewal",
      async run(t) {
        const { provider } = await t.open();
        const metadata = { orchestrationName: NAMED.orchestrationName!, status: "Running" } as const;
        await create(provider, "a", {
          events: [started("a"), scheduled("a", 2)],
          workerItems: [act("a", 2)],
          metadata,
        });
        const { lockToken } = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.wait(t.lockMs / 2);
        await provider.renewWorkItemLock(lockToken, 2 * t.lockMs);
        await t.wait(t.lockMs);
        t.isNull(await fetchWork(provider), "the activity, half a lock after its first end");

        await t.outlive(t.lockMs);
        t.found(await fetchWork(provider), "the activity when the extension is over");
      },
    },
    {
      id: "worker_lock_renewal_after_ack",
      promise: "An activity that is acked cannot be renewed",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);
        await provider.ackWorkItem(lockToken, done("a", 1));
        await t.refused(provider.renewWorkItemLock(lockToken, t.lockMs), "lock-lost", "a renewal after the ack");
      },
    },
    {
      id: "worker_ack_fails_after_lock_expiry",
      promise: "An expired lock refuses the completion although nobody has taken the activity, which is still there",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        await t.refused(provider.ackWorkItem(lockToken, done("a", 1)), "lock-lost", "an ack after the end of its lock");
        t.isNull(await fetchTurn(provider), "the completion of the refused ack");
        t.equal((await takeWork(provider)).item, act("a", 1), "the activity after the refused ack");
      },
    },
    {
      id: "worker_ack_fails_after_take_over",
      promise: "Of two workers that ran one activity only the one that holds its lock completes it",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForWorker(act("a", 1));
        const late = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        const owner = await takeWork(provider);

        const ack = provider.ackWorkItem(late.lockToken, done("a", 1, { result: "late" }));
        await t.refused(ack, "lock-lost", "the ack of the first worker");
        t.isNull(await fetchTurn(provider), "the completion of the first worker");
        await provider.ackWorkItem(owner.lockToken, done("a", 1));
        t.equal((await takeTurn(provider)).item.messages, [done("a", 1)], "the completion of the second worker");
        t.isNull(await fetchWork(provider), "the activity when it is completed");
      },
    },
    {
      id: "abandon_work_item_releases_lock",
      promise: "An abandoned activity can be fetched at once, and acked under its new token only",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const first = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchWork(provider), "the activity under its lock");
        await provider.abandonWorkItem(first.lockToken);

        const second = await takeWork(provider);
        t.equal(second.item, act("a", 1), "the activity right after the abandon");
        t.ok(second.lockToken !== first.lockToken, "the second lock has a token of its own");
        const ack = provider.ackWorkItem(first.lockToken, done("a", 1));
        await t.refused(ack, "lock-lost", "an ack with the token that was abandoned");
        await provider.ackWorkItem(second.lockToken, done("a", 1));
        t.isNull(await fetchWork(provider), "the activity when it is acked");
      },
    },
    {
      id: "abandon_work_item_with_delay",
      promise: "An activity that is abandoned with a delay is invisible for that long, and stands in nobody's way",
      async run(t) {
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
        const { item, lockToken } = await takeWork(provider);
        t.equal(item.id, 1, "the activity that came first");
        await provider.abandonWorkItem(lockToken, { delayMs: t.lockMs });
        t.equal((await takeWork(provider)).item.id, 2, "the activity that is fetched right after the abandon");
        await t.wait(t.lockMs / 2);
        t.isNull(await fetchWork(provider), "the abandoned activity in the middle of its delay");

        await t.outlive(t.lockMs / 2);
        t.equal((await takeWork(provider)).item, act("a", 1), "the activity when the delay is over");
      },
    },
    {
      id: "delayed_abandon_of_work_voids_the_token",
      promise: "An activity that waits out its delay belongs to nobody: the token of its fetch is void",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);
        await provider.abandonWorkItem(lockToken, { delayMs: t.lockMs });

        const renewal = provider.renewWorkItemLock(lockToken, 10 * t.lockMs);
        await t.refused(renewal, "lock-lost", "a renewal during the delay");
        await t.refused(provider.ackWorkItem(lockToken, done("a", 1)), "lock-lost", "an ack during the delay");
        await provider.abandonWorkItem(lockToken);
        t.isNull(await fetchWork(provider), "the activity, which a second abandon does not release");
        await t.outlive(t.lockMs);
        t.found(await fetchWork(provider), "the activity when the delay is over");
      },
    },
    {
      id: "expired_work_lock_can_be_abandoned",
      promise: "An expired lock of an activity can still be abandoned while nobody has taken the activity",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        await provider.abandonWorkItem(lockToken, { delayMs: t.lockMs, ignoreAttempt: true });

        t.isNull(await fetchWork(provider), "the activity during the delay of the late abandon");
        await t.outlive(t.lockMs);
        t.equal((await takeWork(provider)).attemptCount, 1, "the attempts after the late abandon took one back");
      },
    },
    {
      id: "taken_over_work_lock_cannot_be_abandoned",
      promise: "When an activity is taken over, an abandon of the first worker does not disturb the second",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const late = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        const owner = await takeWork(provider);
        await provider.abandonWorkItem(late.lockToken, { ignoreAttempt: true });

        t.isNull(await fetchWork(provider), "the activity, which the second still holds");
        await provider.abandonWorkItem(owner.lockToken);
        t.equal((await takeWork(provider)).attemptCount, 3, "the attempts, of which the first has taken none back");
      },
    },
  ],
};
