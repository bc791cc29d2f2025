// cases/conditional-start.ts — a start can be made once, however many try.

import type { EnqueueOutcome, Provider } from "../../provider/provider.js";
import { continueAsNew, NAMED, raised, scheduled, start, started, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, create, fetchTurn, takeTurn } from "../steps.js";

export const conditionalStart: Category = {
  name: "conditional_start",
  about: "A start can be made once, however many try.",
  cases: [
    {
      id: "starts_what_is_absent_once",
      promise:
        "The first conditional start of an instance is enqueued, a second has no effect, and others do not matter",
      async run(t) {
        const { provider } = await t.open();
        t.equal(await startIfAbsent(provider, "a"), "enqueued", "the first start");
        t.equal(await startIfAbsent(provider, "a", "other"), "exists", "the second start");
        t.equal(await startIfAbsent(provider, "b"), "enqueued", "the start of another instance");

        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages of the first instance");
        t.equal((await takeTurn(provider)).item.messages, [start("b")], "the messages of the other one");
      },
    },
    {
      id: "one_winner_among_concurrent_starts",
      promise: "Of many conditional starts at the same time exactly one is enqueued",
      async run(t) {
        const { provider } = await t.open();
        const outcomes = await Promise.all(Array.from({ length: 10 }, () => startIfAbsent(provider, "a")));
        t.equal(outcomes.filter((outcome) => outcome === "enqueued").length, 1, "how many were enqueued");
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages");
      },
    },
    {
      id: "one_winner_among_processes",
      promise: "Of many conditional starts by several processes exactly one is enqueued",
      async run(t) {
        const store = await t.open();
        const providers = [store.provider, await store.openAnother(), await store.openAnother()];
        const outcomes = await Promise.all(
          [...providers, ...providers].map((provider) => startIfAbsent(provider, "a")),
        );
        t.equal(outcomes.filter((outcome) => outcome === "enqueued").length, 1, "how many were enqueued");
        t.equal((await takeTurn(store.provider)).item.messages, [start("a")], "the messages");
      },
    },
    {
      id: "finds_delayed_start",
      promise: "A conditional start finds one that is delayed",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"), { delayMs: t.lockMs });
        t.equal(await startIfAbsent(provider, "a"), "exists", "a start beside one that is delayed");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages after the delay");
      },
    },
    {
      id: "finds_start_under_lock",
      promise: "A conditional start finds one that is being worked on, and afterwards the instance that came of it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        t.equal(await startIfAbsent(provider, "a"), "exists", "a start while the first is being worked on");
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata: NAMED }));

        t.equal(await startIfAbsent(provider, "a"), "exists", "a start of an instance that runs");
        t.isNull(await fetchTurn(provider), "the instance, to which no start was sent");
      },
    },
    {
      id: "finds_ended_instance",
      promise: "A conditional start finds an instance that is over",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "completed", { metadata: { ...NAMED, status: "Completed", output: "done" } });
        await create(provider, "failed", { metadata: { ...NAMED, status: "Failed", output: "no" } });
        for (const instance of ["completed", "failed"]) {
          t.equal(await startIfAbsent(provider, instance), "exists", `a start of an instance that has ${instance}`);
        }
        t.isNull(await fetchTurn(provider), "an instance, to which no start was sent");
      },
    },
    {
      id: "finds_unnamed_instance",
      promise: "A conditional start finds an instance that only its history knows",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        t.equal(await startIfAbsent(provider, "a"), "exists", "a start of an instance that was never named");
        await provider.appendWithExecution("imported", 1, [started("imported"), scheduled("imported", 2)]);
        t.equal(await startIfAbsent(provider, "imported"), "exists", "a start of an instance that was imported");
      },
    },
    {
      id: "finds_queued_continue_as_new",
      promise: "A conditional start finds a continue-as-new that is queued",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        t.equal(await startIfAbsent(provider, "a"), "exists", "a start beside a continue-as-new");
      },
    },
    {
      id: "early_messages_do_not_hinder",
      promise: "Messages that came before it do not hinder a conditional start, and wait for it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(raised("a"));
        t.equal(await startIfAbsent(provider, "a"), "enqueued", "a start after a message");
        t.equal((await takeTurn(provider)).item.messages, [raised("a"), start("a")], "the messages");
      },
    },
    {
      id: "conditional_start_may_be_delayed",
      promise: "A conditional start may be delayed like any other message, and a second one finds it",
      async run(t) {
        const { provider } = await t.open();
        const delayed = { ifAbsent: true, delayMs: t.lockMs };
        t.equal(await provider.enqueueForOrchestrator(start("a"), delayed), "enqueued", "the delayed start");
        t.equal(await startIfAbsent(provider, "a"), "exists", "a start beside it");
        t.isNull(await fetchTurn(provider), "the instance at once");
        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages after the delay");
      },
    },
    {
      id: "deleted_instance_starts_again",
      promise: "What was deleted is absent: a conditional start starts it again",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { metadata: { ...NAMED, status: "Completed", output: "done" } });
        await admin.deleteInstance("a", false);
        t.equal(await startIfAbsent(provider, "a"), "enqueued", "a start after the deletion");
        const { item } = await takeTurn(provider);
        t.matches(item, { history: [], messages: [start("a")] }, "the new instance");
      },
    },
    {
      id: "condition_is_for_starts_only",
      promise: "The condition means nothing for a message that is no start: it is enqueued whatever exists",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const outcome = await provider.enqueueForOrchestrator(raised("a"), { ifAbsent: true });
        t.equal(outcome, "enqueued", "a message to an instance that exists");
        t.equal((await takeTurn(provider)).item.messages, [raised("a")], "the messages");
      },
    },
    {
      id: "unconditional_start_is_always_enqueued",
      promise: "A start without the condition is enqueued whatever exists",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        t.equal(await provider.enqueueForOrchestrator(start("a")), "enqueued", "a start of an instance that runs");
        const plain = await provider.enqueueForOrchestrator(start("a"), { ifAbsent: false });
        t.equal(plain, "enqueued", "a start beside one that is queued");
        t.equal((await takeTurn(provider)).item.messages, [start("a"), start("a")], "the messages");
      },
    },
  ],
};

function startIfAbsent(provider: Provider, instance: string, input = "{}"): Promise<EnqueueOutcome> {
  return provider.enqueueForOrchestrator(start(instance, { input }), { ifAbsent: true });
}
