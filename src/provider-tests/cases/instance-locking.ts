// cases/instance-locking.ts — at most one dispatcher works on an instance, and at most one worker on an activity.

import type { LockedOrchestrationItem, Provider } from "../../provider/provider.js";
import { act, done, NAMED, raised, start, started, turn } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { create, fetchTurn, fetchWork, patiently, takeTurn, takeWork } from "../steps.js";

export const instanceLocking: Category = {
  name: "instance_locking",
  about: "At most one dispatcher works on an instance, and at most one worker on an activity.",
  cases: [
    {
      id: "exclusive_instance_lock",
      promise: "A locked instance is fetched by nobody else until its lock ends, and then under a new token",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const first = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchTurn(provider), "the instance under its lock");

        await t.outlive(t.lockMs);
        const second = await takeTurn(provider);
        t.equal(second.item.instance, "a", "the instance that is fetched when the lock has ended");
        t.ok(second.lockToken !== first.lockToken, "the second lock has a token of its own");
      },
    },
    {
      id: "lock_token_uniqueness",
      promise: "Locks that are held at the same time have different tokens",
      async run(t) {
        const { provider } = await t.open();
        const tokens = new Set<string>();
        for (let i = 0; i < 5; i += 1) {
          await provider.enqueueForOrchestrator(start(`i-${i}`));
          await provider.enqueueForWorker(act(`i-${i}`, 1));
        }
        for (let i = 0; i < 5; i += 1) {
          tokens.add((await takeTurn(provider)).lockToken);
          tokens.add((await takeWork(provider)).lockToken);
        }
        t.equal(tokens.size, 10, "the different tokens of five instances and five activities");
      },
    },
    {
      id: "tokens_never_come_back",
      promise: "No token is given out twice, however many fetches there are",
      async run(t) {
        const { provider } = await t.open();
        // One commit a token: few enough for a store that needs milliseconds for each.
        const instances = 500;
        const atATime = 10;
        const orchestratorItems = Array.from({ length: instances }, (_, i) => start(`i-${i}`));
        await create(provider, "a", { orchestratorItems });
        const tokens = new Set<string>();
        for (const fetches of [instances, 2 * instances]) {
          for (let fetched = 0; fetched < instances; fetched += atATime) {
            const taken = await fetchAtOnce(t, atATime, [provider], t.lockMs);
            for (const { lockToken } of taken) tokens.add(lockToken);
          }
          t.equal(tokens.size, fetches, `the different tokens of ${fetches} fetches`);
          await t.outlive(t.lockMs);
        }
      },
    },
    {
      id: "invalid_lock_token_rejection",
      promise: "An unknown token acks and renews nothing; to abandon it succeeds silently; locks are not touched",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);

        const ack = provider.ackOrchestrationItem("invalid-token", turn({ events: [started("a")] }));
        await t.refused(ack, "lock-lost", "an ack with an unknown token");
        const renewal = provider.renewOrchestrationItemLock("invalid-token", t.lockMs);
        await t.refused(renewal, "lock-lost", "a renewal with an unknown token");
        await provider.abandonOrchestrationItem("invalid-token");
        await provider.abandonOrchestrationItem("invalid-token", { delayMs: t.lockMs, ignoreAttempt: true });

        t.isNull(await fetchTurn(provider), "the instance, whose lock nobody has released");
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
        t.equal(await provider.read("a"), [started("a")], "the history after the ack of the owner");
      },
    },
    {
      id: "concurrent_instance_fetching",
      promise: "Ten fetches at once get ten instances: none comes away with nothing because another was quicker",
      async run(t) {
        const { provider } = await t.open();
        for (let i = 0; i < 10; i += 1) await provider.enqueueForOrchestrator(start(`i-${i}`));
        const fetched = await fetchAtOnce(t, 10, [provider]);
        t.equal(fetched.length, 10, "how many of ten fetches have got one of ten instances");
        t.equal(instancesOf(fetched).size, 10, "the different instances among them");
      },
    },
    {
      id: "completions_arriving_during_lock_blocked",
      promise:
        "Messages that arrive under a lock wait for its end, and then come behind the older ones, in their order",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        for (const id of [1, 2, 3]) await provider.enqueueForOrchestrator(done("a", id));
        t.isNull(await fetchTurn(provider), "the instance with new messages under its lock");

        await t.outlive(t.lockMs);
        const { messages } = (await takeTurn(provider)).item;
        t.equal(
          messages,
          [start("a"), done("a", 1), done("a", 2), done("a", 3)],
          "its messages when the lock has ended",
        );
      },
    },
    {
      id: "cross_instance_lock_isolation",
      promise: "The lock of one instance does not keep others waiting",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) await create(provider, instance);
        for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(start(instance));
        t.equal((await takeTurn(provider)).item.instance, "a", "the instance whose message came first");
        const b = await takeTurn(provider);
        t.equal(b.item.instance, "b", "the instance whose message came second");

        await provider.ackOrchestrationItem(b.lockToken, turn({ metadata: NAMED }));
        await provider.enqueueForOrchestrator(done("b", 1));
        const again = await takeTurn(provider);
        t.matches(again.item, { instance: "b", messages: [done("b", 1)] }, "the next item, while 'a' is still locked");
      },
    },
    {
      id: "message_tagging_during_lock",
      promise: "A message that arrives under a lock is no part of its batch: it is there after the ack",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        for (const id of [1, 2]) await provider.enqueueForOrchestrator(done("a", id));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [done("a", 1), done("a", 2)], "the batch");
        await provider.enqueueForOrchestrator(done("a", 3));
        await provider.ackOrchestrationItem(lockToken, turn());

        t.equal((await takeTurn(provider)).item.messages, [done("a", 3)], "the batch after the ack");
      },
    },
    {
      id: "ack_only_affects_locked_messages",
      promise: "An ack consumes the messages of its fetch and no others, and those can be fetched at once",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 1));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [done("a", 1)], "the batch");
        for (const id of [2, 3]) await provider.enqueueForOrchestrator(done("a", id));
        t.isNull(await fetchTurn(provider), "the instance with new messages under its lock");

        await provider.ackOrchestrationItem(lockToken, turn());
        const next = await takeTurn(provider);
        t.equal(next.item.messages, [done("a", 2), done("a", 3)], "the batch after the ack");
        await provider.ackOrchestrationItem(next.lockToken, turn());
        t.isNull(await fetchTurn(provider), "the instance when all is acked");
      },
    },
    {
      id: "multi_threaded_lock_contention",
      promise: "Of many fetches at once exactly one gets the only instance",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const fetched = await fetchAtOnce(t, 10, [provider]);
        t.equal(fetched.length, 1, "how many of ten fetches have got the instance");
        t.equal(fetched[0]?.attemptCount, 1, "the attempts that they have counted");
        t.isNull(await fetchTurn(provider), "the instance for one more");
      },
    },
    {
      id: "lock_contention_between_processes",
      promise:
        "Of the fetches of two processes exactly one gets the only instance, and the other process cannot touch it",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        const other = await store.openAnother();
        await provider.enqueueForOrchestrator(start("a"));
        const fetched = await fetchAtOnce(t, 10, [provider, other]);
        t.equal(fetched.length, 1, "how many of ten fetches have got the instance");
        t.isNull(await fetchTurn(provider), "the instance for one more fetch of the one process");
        t.isNull(await fetchTurn(other), "the instance for one more fetch of the other");
        await other.enqueueForOrchestrator(raised("a"));
        t.isNull(await fetchTurn(other), "the locked instance, to which the other process has sent a message");
      },
    },
    {
      id: "multi_threaded_no_duplicate_processing",
      promise: "Of more fetches than there are instances, each instance goes to one and the rest get nothing",
      async run(t) {
        const { provider } = await t.open();
        for (let i = 0; i < 20; i += 1) await provider.enqueueForOrchestrator(start(`i-${i}`));
        const fetched = await fetchAtOnce(t, 40, [provider]);
        t.equal(fetched.length, 20, "how many of forty fetches have got one of twenty instances");
        t.equal(instancesOf(fetched).size, 20, "the different instances among them");
      },
    },
    {
      id: "no_duplicate_processing_between_processes",
      promise: "Two processes that fetch at the same time never get the same instance",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        const other = await store.openAnother();
        for (let i = 0; i < 20; i += 1) await provider.enqueueForOrchestrator(start(`i-${i}`));
        const fetched = await fetchAtOnce(t, 40, [provider, other]);
        t.equal(fetched.length, 20, "how many of forty fetches have got one of twenty instances");
        t.equal(instancesOf(fetched).size, 20, "the different instances among them");
      },
    },
    {
      id: "concurrent_activity_fetching",
      promise: "Of more fetches than there are activities, each activity goes to one and the rest get nothing",
      async run(t) {
        const { provider } = await t.open();
        for (let id = 1; id <= 10; id += 1) await provider.enqueueForWorker(act("a", id));
        const fetches = Array.from({ length: 20 }, () => patiently(t, () => fetchWork(provider)));
        const fetched = (await Promise.all(fetches)).filter((locked) => locked !== null);
        t.equal(fetched.length, 10, "how many of twenty fetches have got one of ten activities");
        t.equal(new Set(fetched.map(({ item }) => item.id)).size, 10, "the different activities among them");
      },
    },
    {
      id: "multi_threaded_lock_expiration_recovery",
      promise: "What a dispatcher holds that never comes back is another one's when the lock has ended, and not before",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const fetched = await fetchAtOnce(t, 3, [provider], t.lockMs);
        t.equal(fetched.length, 1, "how many of three fetches have got the instance");
        await t.wait(t.lockMs / 4);
        t.isNull(await fetchTurn(provider), "the instance when a quarter of its lock has passed");

        await t.outlive((t.lockMs * 3) / 4);
        t.equal((await takeTurn(provider)).item.instance, "a", "what is fetched when the lock has ended");
      },
    },
    {
      id: "lock_expiration_recovery_between_processes",
      promise: "What a process holds that has died is another one's when the lock has ended, and not before",
      async run(t) {
        const store = await t.open();
        const dead = await store.openAnother();
        await dead.enqueueForOrchestrator(start("a"));
        await takeTurn(dead, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchTurn(store.provider), "the instance, for another process than the one that holds it");

        await t.outlive(t.lockMs);
        const taken = await takeTurn(store.provider);
        t.matches(taken, { attemptCount: 2, item: { messages: [start("a")] } }, "what another process takes over");
      },
    },
    {
      id: "ids_that_look_alike",
      promise: "Instance ids that differ only in case or in trailing space are different instances",
      async run(t) {
        const { provider } = await t.open();
        const ids = ["Order", "order", "order "];
        for (const id of ids) await create(provider, id);
        for (const id of ids) await provider.enqueueForOrchestrator(raised(id, "to", id));

        for (const id of ids) {
          const { item } = await takeTurn(provider);
          const expected = { instance: id, history: [started(id)], messages: [raised(id, "to", id)] };
          t.matches(item, expected, `the item of '${id}', while those before it are locked`);
        }
      },
    },
  ],
};

/** What so many fetches get that nobody coordinates, spread over the providers. */
async function fetchAtOnce(
  t: CaseContext,
  count: number,
  providers: readonly Provider[],
  lockTimeoutMs?: number,
): Promise<readonly LockedOrchestrationItem[]> {
  const options = lockTimeoutMs === undefined ? {} : { lockTimeoutMs };
  const fetches = Array.from({ length: count }, (_, n) =>
    patiently(t, () => fetchTurn(providers[n % providers.length]!, options)),
  );
  return (await Promise.all(fetches)).filter((locked) => locked !== null);
}

function instancesOf(fetched: readonly LockedOrchestrationItem[]): ReadonlySet<string> {
  return new Set(fetched.map(({ item }) => item.instance));
}
