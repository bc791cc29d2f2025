// cases/poison-message.ts — every fetch counts as an attempt, so that work that cannot be done is found out.

import { act, done, start, timer, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "../steps.js";

export const poisonMessage: Category = {
  name: "poison_message",
  about: "Every fetch counts as an attempt, so that work that cannot be done is found out.",
  cases: [
    {
      id: "orchestration_attempt_count_starts_at_one",
      promise: "The first fetch of a message is its first attempt",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { attemptCount, lockToken } = await takeTurn(provider);
        t.equal(attemptCount, 1, "the attempts at the first fetch");
        await provider.ackOrchestrationItem(lockToken, turn());
        t.isNull(await fetchTurn(provider), "the instance after its ack");
      },
    },
    {
      id: "orchestration_attempt_count_increments_on_refetch",
      promise: "Every fetch of a message is one more attempt, after an abandon and after an expired lock",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        for (const attempt of [1, 2, 3]) {
          const { attemptCount, lockToken } = await takeTurn(provider);
          t.equal(attemptCount, attempt, `the attempts at fetch ${attempt}`);
          await provider.abandonOrchestrationItem(lockToken);
        }
        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).attemptCount, 5, "the attempts after the fourth lock has expired");
      },
    },
    {
      id: "worker_attempt_count_starts_at_one",
      promise: "The first fetch of an activity is its first attempt",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { attemptCount, lockToken } = await takeWork(provider);
        t.equal(attemptCount, 1, "the attempts at the first fetch");
        await provider.ackWorkItem(lockToken, done("a", 1));
        t.isNull(await fetchWork(provider), "the activity after its ack");
      },
    },
    {
      id: "worker_attempt_count_increments_on_lock_expiry",
      promise: "An activity whose lock has expired counts one more attempt when it is fetched again",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        t.equal(
          (await takeWork(provider, { lockTimeoutMs: t.lockMs })).attemptCount,
          1,
          "the attempts at the first fetch",
        );
        await t.outlive(t.lockMs);
        const { attemptCount, lockToken } = await takeWork(provider);
        t.equal(attemptCount, 2, "the attempts when the first lock has expired");
        await provider.ackWorkItem(lockToken, done("a", 1));
        t.isNull(await fetchWork(provider), "the activity after its ack");
      },
    },
    {
      id: "attempt_count_is_per_message",
      promise: "The attempts of one activity are not counted on another",
      async run(t) {
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
        const first = await takeWork(provider);
        t.matches(first, { item: { id: 1 }, attemptCount: 1 }, "the first activity");
        await provider.abandonWorkItem(first.lockToken);
        t.matches(await takeWork(provider), { item: { id: 1 }, attemptCount: 2 }, "the first activity again");
        t.matches(await takeWork(provider), { item: { id: 2 }, attemptCount: 1 }, "the second activity");
      },
    },
    {
      id: "attempt_count_is_per_instance",
      promise: "The attempts of one instance are not counted on another",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(start(instance));
        const first = await takeTurn(provider);
        t.matches(first, { item: { instance: "a" }, attemptCount: 1 }, "the first instance");
        await provider.abandonOrchestrationItem(first.lockToken);
        t.matches(await takeTurn(provider), { item: { instance: "a" }, attemptCount: 2 }, "the first instance again");
        t.matches(await takeTurn(provider), { item: { instance: "b" }, attemptCount: 1 }, "the second instance");
      },
    },
    {
      id: "abandon_work_item_ignore_attempt_decrements",
      promise: "An abandon takes back the attempt of an activity if it is asked to, and only then",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const first = await takeWork(provider);
        t.equal(first.attemptCount, 1, "the attempts at the first fetch");
        await provider.abandonWorkItem(first.lockToken, { ignoreAttempt: false });
        const second = await takeWork(provider);
        t.equal(second.attemptCount, 2, "the attempts after an abandon that counts");
        await provider.abandonWorkItem(second.lockToken, { ignoreAttempt: true });
        t.equal((await takeWork(provider)).attemptCount, 2, "the attempts after an abandon that does not");
      },
    },
    {
      id: "abandon_orchestration_item_ignore_attempt_decrements",
      promise: "An abandon takes back the attempt of an instance's messages if it is asked to, and only then",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const first = await takeTurn(provider);
        t.equal(first.attemptCount, 1, "the attempts at the first fetch");
        await provider.abandonOrchestrationItem(first.lockToken, { ignoreAttempt: false });
        const second = await takeTurn(provider);
        t.equal(second.attemptCount, 2, "the attempts after an abandon that counts");
        await provider.abandonOrchestrationItem(second.lockToken, { ignoreAttempt: true });
        t.equal((await takeTurn(provider)).attemptCount, 2, "the attempts after an abandon that does not");
      },
    },
    {
      id: "delayed_abandon_ignores_attempt_too",
      promise: "An abandon with a delay takes back the attempt as one without does",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        const options = { delayMs: t.lockMs, ignoreAttempt: true };
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken, options);
        await provider.abandonWorkItem((await takeWork(provider)).lockToken, options);
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).attemptCount, 1, "the attempts of the instance after the delay");
        t.equal((await takeWork(provider)).attemptCount, 1, "the attempts of the activity after the delay");
      },
    },
    {
      id: "ignore_attempt_never_goes_negative",
      promise: "However often an attempt is taken back, the next fetch is at least the first",
      async run(t) {
        const { provider } = await t.open();
        const ignoreAttempt = true;
        await provider.enqueueForWorker(act("a", 1));
        await provider.enqueueForOrchestrator(start("a"));
        for (let i = 1; i <= 3; i += 1) {
          const activity = await takeWork(provider);
          t.equal(activity.attemptCount, 1, `the attempts of the activity at fetch ${i}`);
          await provider.abandonWorkItem(activity.lockToken, { ignoreAttempt });
          await provider.abandonWorkItem(activity.lockToken, { ignoreAttempt });
          const instance = await takeTurn(provider);
          t.equal(instance.attemptCount, 1, `the attempts of the instance at fetch ${i}`);
          await provider.abandonOrchestrationItem(instance.lockToken, { ignoreAttempt });
          await provider.abandonOrchestrationItem(instance.lockToken, { ignoreAttempt });
        }
      },
    },
    {
      id: "max_attempt_count_across_message_batch",
      promise: "The attempts of an instance are those of its most often fetched message",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const first = await takeTurn(provider);
        t.equal(first.attemptCount, 1, "the attempts at the first fetch");
        await provider.abandonOrchestrationItem(first.lockToken);
        const second = await takeTurn(provider);
        t.equal(second.attemptCount, 2, "the attempts at the second fetch");
        await provider.enqueueForOrchestrator(done("a", 1));
        await provider.abandonOrchestrationItem(second.lockToken);

        const third = await takeTurn(provider);
        t.equal(third.item.messages, [start("a"), done("a", 1)], "the messages at the third fetch");
        t.equal(third.attemptCount, 3, "the attempts at the third fetch, which is the first of the second message");
      },
    },
    {
      id: "attempts_of_later_messages_are_their_own",
      promise: "A message that arrives under a lock has no part in the attempts of its batch",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 1));
        await provider.abandonOrchestrationItem((await takeTurn(provider)).lockToken);
        const second = await takeTurn(provider);
        await provider.enqueueForOrchestrator(done("a", 2));
        await provider.ackOrchestrationItem(second.lockToken, turn());

        const later = await takeTurn(provider);
        t.matches(
          later,
          { attemptCount: 1, item: { messages: [done("a", 2)] } },
          "the item that is left after the ack",
        );
      },
    },
    {
      id: "ignored_attempt_is_that_of_the_batch_only",
      promise: "An abandon takes back no attempt of a message that was not in its batch",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 1));
        const first = await takeTurn(provider);
        await provider.enqueueForOrchestrator(done("a", 2));
        await provider.abandonOrchestrationItem(first.lockToken, { ignoreAttempt: true });

        const second = await takeTurn(provider);
        t.equal(second.item.messages, [done("a", 1), done("a", 2)], "the messages after the abandon");
        t.equal(second.attemptCount, 1, "the attempts after the abandon");
        await provider.abandonOrchestrationItem(second.lockToken);
        t.equal((await takeTurn(provider)).attemptCount, 2, "the attempts of both one fetch later");
      },
    },
    {
      id: "ignored_attempt_is_that_of_the_instance_only",
      promise: "An abandon takes back no attempt of another instance or activity, with a delay or without",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) {
          await provider.enqueueForOrchestrator(start(instance));
          await provider.enqueueForWorker(act(instance, 1));
        }
        const turns = [await takeTurn(provider), await takeTurn(provider)] as const;
        const works = [await takeWork(provider), await takeWork(provider)] as const;
        await provider.abandonOrchestrationItem(turns[1].lockToken);
        await provider.abandonWorkItem(works[1].lockToken);
        await provider.abandonOrchestrationItem(turns[0].lockToken, { delayMs: t.lockMs, ignoreAttempt: true });
        await provider.abandonWorkItem(works[0].lockToken, { delayMs: t.lockMs, ignoreAttempt: true });

        const turnOfOther = await takeTurn(provider);
        const workOfOther = await takeWork(provider);
        t.matches(turnOfOther, { item: { instance: "b" }, attemptCount: 2 }, "the other instance");
        t.matches(workOfOther, { item: { instance: "b" }, attemptCount: 2 }, "the other activity");
        await t.outlive(t.lockMs);
        const first = await takeTurn(provider);
        t.matches(first, { item: { instance: "a" }, attemptCount: 1 }, "the first instance");
        t.matches(await takeWork(provider), { item: { instance: "a" }, attemptCount: 1 }, "the first activity");
        await provider.abandonOrchestrationItem(turnOfOther.lockToken, { ignoreAttempt: true });
        await provider.abandonOrchestrationItem(first.lockToken);
        const again = await takeTurn(provider);
        t.matches(
          again,
          { item: { instance: "a" }, attemptCount: 2 },
          "the first instance after another was abandoned",
        );
      },
    },
    {
      id: "ignored_attempt_of_a_batch_that_is_gone",
      promise: "An abandon takes back no attempt of what came under its lock, even where that alone is left",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) await create(provider, instance);
        await provider.enqueueForOrchestrator(timer("a", 2, 0));
        const first = await takeTurn(provider);
        await provider.enqueueForOrchestrator(done("a", 3));
        await provider.enqueueForOrchestrator(done("b", 3));
        await provider.abandonOrchestrationItem(first.lockToken, { delayMs: t.lockMs, ignoreAttempt: true });
        const cancelledTimers = [{ instance: "a", executionId: 1, id: 2 }];
        await provider.ackOrchestrationItem((await takeTurn(provider)).lockToken, turn({ cancelledTimers }));
        await t.outlive(t.lockMs);

        const left = { attemptCount: 1, item: { messages: [done("a", 3)] } };
        t.matches(await takeTurn(provider), left, "what came under the lock, at its first fetch");
      },
    },
    {
      id: "fetches_without_result_count_nothing",
      promise: "A fetch that finds work locked or delayed counts no attempt on it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        const instance = await takeTurn(provider);
        const activity = await takeWork(provider);
        for (let i = 0; i < 3; i += 1) {
          t.isNull(await fetchTurn(provider), "the instance under its lock");
          t.isNull(await fetchWork(provider), "the activity under its lock");
        }
        await provider.abandonOrchestrationItem(instance.lockToken, { delayMs: t.lockMs });
        await provider.abandonWorkItem(activity.lockToken, { delayMs: t.lockMs });
        t.isNull(await fetchTurn(provider), "the instance during its delay");
        t.isNull(await fetchWork(provider), "the activity during its delay");

        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).attemptCount, 2, "the attempts of the instance at its second fetch");
        t.equal((await takeWork(provider)).attemptCount, 2, "the attempts of the activity at its second fetch");
      },
    },
    {
      id: "renewal_counts_no_attempt",
      promise: "To renew a lock is no attempt",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        const instance = await takeTurn(provider);
        const activity = await takeWork(provider);
        for (let i = 0; i < 3; i += 1) {
          await provider.renewOrchestrationItemLock(instance.lockToken, 10 * t.lockMs);
          await provider.renewWorkItemLock(activity.lockToken, 10 * t.lockMs);
        }
        await provider.abandonOrchestrationItem(instance.lockToken);
        await provider.abandonWorkItem(activity.lockToken);
        t.equal((await takeTurn(provider)).attemptCount, 2, "the attempts of the instance at its second fetch");
        t.equal((await takeWork(provider)).attemptCount, 2, "the attempts of the activity at its second fetch");
      },
    },
    {
      id: "attempts_are_counted_across_processes",
      promise: "An attempt counts although the process that made it has died: another one goes on counting",
      async run(t) {
        const store = await t.open();
        const dying = await store.openAnother();
        await dying.enqueueForOrchestrator(start("a"));
        await dying.enqueueForWorker(act("a", 1));
        await takeTurn(dying, { lockTimeoutMs: t.lockMs });
        await takeWork(dying, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        t.equal((await takeTurn(store.provider)).attemptCount, 2, "the attempts of the instance in another process");
        t.equal((await takeWork(store.provider)).attemptCount, 2, "the attempts of the activity in another process");
      },
    },
  ],
};
