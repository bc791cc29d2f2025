// cases/warm-history.ts — a dispatcher that remembers a part of the history may be given only the rest.
//
// A provider may ignore what the dispatcher remembers. Then it says so (`isWarm` is false) and hands out everything; what
// it must never do is to leave out something that the dispatcher does not have.

import type { Event } from "../../history/event.js";
import type { OrchestrationItem, Provider, WarmMark } from "../../provider/provider.js";
import { kvSet, raised, scheduled, start, started, turn } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { continueExecution, create, runTurn, takeTurn } from "../steps.js";

export const warmHistory: Category = {
  name: "warm_history",
  about: "A dispatcher that remembers a part of the history may be given only the rest.",
  cases: [
    {
      id: "remembers_all",
      promise: "Who remembers the whole history gets its last event again, or everything",
      async run(t) {
        const { provider } = await t.open();
        const history = [started("a"), scheduled("a", 2), scheduled("a", 3)];
        await create(provider, "a", { events: history });

        const item = await fetchWarm(provider, "a", { executionId: 1, lastEventId: 3 });
        t.matches(item, { executionId: 1, messages: [raised("a")], historyError: null }, "what is fetched");
        checkHistory(t, item, history, 3);
      },
    },
    {
      id: "remembers_a_part",
      promise: "Who remembers a part of the history gets all that others have added since",
      async run(t) {
        const { provider } = await t.open();
        const remembered = [started("a"), scheduled("a", 2)];
        const added = [scheduled("a", 5), scheduled("a", 9)];
        await create(provider, "a", { events: remembered });
        await runTurn(provider, "a", { events: added });

        const item = await fetchWarm(provider, "a", { executionId: 1, lastEventId: 2 });
        checkHistory(t, item, [...remembered, ...added], 2);
      },
    },
    {
      id: "warm_needs_no_values",
      promise: "Who is given only the end of the history is given no values: it has them",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [started("a"), kvSet("a", 2, "k", "v", 7)] });
        await continueExecution(provider, "a", 2);

        const item = await fetchWarm(provider, "a", { executionId: 2, lastEventId: 1 });
        checkHistory(t, item, [started("a", { executionId: 2 })], 1);
        const values = item.isWarm ? new Map() : new Map([["k", { value: "v", lastUpdatedAtMs: 7 }]]);
        t.equal(item.kvSnapshot, values, "the values");
      },
    },
    {
      id: "remembers_more_than_there_is",
      promise: "Who remembers an event that the history does not have gets everything",
      async run(t) {
        const { provider } = await t.open();
        const history = [started("a"), scheduled("a", 2), scheduled("a", 5)];
        await create(provider, "a", { events: history });
        for (const lastEventId of [3, 6]) {
          const { item, lockToken } = await lockWarm(provider, "a", { executionId: 1, lastEventId });
          checkEverything(t, item, history, `with a mark at event ${lastEventId}`);
          await provider.ackOrchestrationItem(lockToken, turn());
        }
      },
    },
    {
      id: "remembers_another_execution",
      promise: "Who remembers another execution than the current one gets everything, with its values",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [started("a"), kvSet("a", 2, "k", "v", 7)] });
        await continueExecution(provider, "a", 2);
        await runTurn(provider, "a", { executionId: 2, events: [scheduled("a", 2)] });

        for (const executionId of [1, 3]) {
          const { item, lockToken } = await lockWarm(provider, "a", { executionId, lastEventId: 2 });
          const where = `with a mark in execution ${executionId}`;
          t.equal(item.executionId, 2, `the execution ${where}`);
          checkEverything(t, item, [started("a", { executionId: 2 }), scheduled("a", 2)], where);
          t.equal(item.kvSnapshot, new Map([["k", { value: "v", lastUpdatedAtMs: 7 }]]), `the values ${where}`);
          await provider.ackOrchestrationItem(lockToken, turn({ executionId: 2 }));
        }
      },
    },
    {
      id: "remembers_other_instances",
      promise: "What is remembered of one instance says nothing of another",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) {
          await create(provider, instance, { events: [started(instance), scheduled(instance, 2)] });
        }
        const warm = new Map([["b", { executionId: 1, lastEventId: 2 }]]);
        for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(raised(instance));

        checkEverything(t, (await takeTurn(provider, { warm })).item, [started("a"), scheduled("a", 2)], "of 'a'");
        checkHistory(t, (await takeTurn(provider, { warm })).item, [started("b"), scheduled("b", 2)], 2);
      },
    },
    {
      id: "remembers_what_has_not_begun",
      promise: "Of an instance that has not begun nothing can be remembered: it is fetched as any new one",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const warm = new Map([["a", { executionId: 1, lastEventId: 1 }]]);
        const { item } = await takeTurn(provider, { warm });
        checkEverything(t, item, [], "of the new instance");
        t.equal(item.messages, [start("a")], "the messages");
      },
    },
    {
      id: "remembers_nothing",
      promise: "Who remembers nothing gets everything",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [started("a"), scheduled("a", 2)] });
        for (const warm of [undefined, new Map<string, WarmMark>()]) {
          await provider.enqueueForOrchestrator(raised("a"));
          const { item, lockToken } = await takeTurn(provider, warm === undefined ? {} : { warm });
          checkEverything(t, item, [started("a"), scheduled("a", 2)], "without a mark");
          await provider.ackOrchestrationItem(lockToken, turn());
        }
      },
    },
    {
      id: "warm_turn_commits",
      promise: "A turn of a dispatcher that remembers is committed like any other",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const { item, lockToken } = await lockWarm(provider, "a", { executionId: 1, lastEventId: 1 });
        checkHistory(t, item, [started("a")], 1);
        await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
        t.equal(await provider.read("a"), [started("a"), scheduled("a", 2)], "the history after the turn");
      },
    },
  ],
};

/** Wakes the instance, and fetches it with what the dispatcher remembers. */
async function lockWarm(provider: Provider, instance: string, mark: WarmMark) {
  await provider.enqueueForOrchestrator(raised(instance));
  return takeTurn(provider, { warm: new Map([[instance, mark]]) });
}

async function fetchWarm(provider: Provider, instance: string, mark: WarmMark): Promise<OrchestrationItem> {
  return (await lockWarm(provider, instance, mark)).item;
}

/** Everything, or from the remembered event on: as the item itself says. */
function checkHistory(t: CaseContext, item: OrchestrationItem, history: readonly Event[], lastEventId: number): void {
  const expected = item.isWarm ? history.filter(({ eventId }) => eventId >= lastEventId) : history;
  t.equal(item.history, expected, `the history of a ${item.isWarm ? "warm" : "cold"} fetch`);
}

function checkEverything(t: CaseContext, item: OrchestrationItem, history: readonly Event[], where: string): void {
  t.equal(item.isWarm, false, `whether only the end of the history is handed out ${where}`);
  t.equal(item.history, history, `the history ${where}`);
}
