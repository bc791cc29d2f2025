// cases/warm-history.ts — a dispatcher that still has an instance in memory may be spared its history.
//
// A provider may ignore what the dispatcher remembers. Then it says so (`warmAsOf` is null) and hands out everything; what
// it must never do is to call a memory up to date that is not.

import type { Event } from "../../history/event.js";
import type { OrchestrationItem, Provider, TurnCommit } from "../../provider/provider.js";
import { kvSet, NAMED, raised, scheduled, start, started, turn } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { continueExecution, create, runTurn, takeTurn } from "../steps.js";

export const warmHistory: Category = {
  name: "warm_history",
  about: "A dispatcher that still has an instance in memory may be spared its history.",
  cases: [
    {
      id: "last_turn_was_its_own",
      promise: "Who committed the last turn gets no history and no values, or everything",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [started("a"), kvSet("a", 2, "k", "v", 7)] });
        await continueExecution(provider, "a", 2);
        const lastCommit = await commit(provider, "a", { executionId: 2, events: [scheduled("a", 2)] });

        const { item } = await lockWarm(provider, "a", lastCommit);
        t.matches(item, { executionId: 2, messages: [raised("a")], historyError: null }, "what is fetched");
        const everything = [started("a", { executionId: 2 }), scheduled("a", 2)];
        const isWarm = checkWarmth(t, item, lastCommit);
        t.equal(item.history, isWarm ? [] : everything, `the history, where warmAsOf is ${item.warmAsOf}`);
        const values = isWarm ? new Map() : new Map([["k", { value: "v", lastUpdatedAtMs: 7 }]]);
        t.equal(item.kvSnapshot, values, `the values, where warmAsOf is ${item.warmAsOf}`);
      },
    },
    {
      id: "warm_turns_commit",
      promise: "Turns of a dispatcher that remembers are committed like any other, one after the other",
      async run(t) {
        const { provider } = await t.open();
        const events = [started("a")];
        await create(provider, "a");
        let lastCommit = await commit(provider, "a", {});
        for (const eventId of [2, 3, 4]) {
          const { item, lockToken } = await lockWarm(provider, "a", lastCommit);
          t.equal(item.history, checkWarmth(t, item, lastCommit) ? [] : events, `the history before event ${eventId}`);
          events.push(scheduled("a", eventId));
          await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", eventId)], metadata: NAMED }));
          lastCommit = lockToken;
        }
        t.equal(await provider.read("a"), events, "the history after all turns");
      },
    },
    {
      id: "somebody_else_has_committed",
      promise: "Who committed a turn, but not the last, gets everything: even if the last one decided nothing",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const lastCommit = await commit(provider, "a", { events: [scheduled("a", 2)] });
        await runTurn(provider, "a", { events: [scheduled("a", 3)] });
        const { item, lockToken } = await lockWarm(provider, "a", lastCommit);
        checkEverything(t, item, [started("a"), scheduled("a", 2), scheduled("a", 3)], "after somebody's turn");
        await provider.ackOrchestrationItem(lockToken, turn());

        const again = await lockWarm(provider, "a", lastCommit);
        checkEverything(t, again.item, [started("a"), scheduled("a", 2), scheduled("a", 3)], "after an empty turn");
      },
    },
    {
      id: "something_was_appended",
      promise: "Who committed the last turn gets everything when events were appended since",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const lastCommit = await commit(provider, "a", {});
        await provider.appendWithExecution("a", 1, [scheduled("a", 2)]);
        const { item } = await lockWarm(provider, "a", lastCommit);
        checkEverything(t, item, [started("a"), scheduled("a", 2)], "after an append");
      },
    },
    {
      id: "given_back_is_not_committed",
      promise: "What was fetched and given back, refused or lost is no turn: the one before is still the last",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const lastCommit = await commit(provider, "a", {});
        await provider.enqueueForOrchestrator(raised("a"));
        const abandoned = await takeTurn(provider);
        const ack = provider.ackOrchestrationItem(abandoned.lockToken, turn({ events: [started("a")] }));
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");
        await provider.abandonOrchestrationItem(abandoned.lockToken);
        const lost = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        for (const token of [abandoned.lockToken, lost.lockToken]) {
          const { item, lockToken } = await takeTurn(provider, { warm: new Map([["a", token]]) });
          checkEverything(t, item, [started("a")], "for a token that committed nothing");
          await provider.abandonOrchestrationItem(lockToken);
        }
        const { item } = await takeTurn(provider, { warm: new Map([["a", lastCommit]]) });
        const history = checkWarmth(t, item, lastCommit) ? [] : [started("a")];
        t.equal(item.history, history, `the history, where warmAsOf is ${item.warmAsOf}`);
      },
    },
    {
      id: "deleted_and_begun_again",
      promise: "Who remembers an instance that was deleted gets everything of the new one, however alike they are",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a", { events: [started("a", { input: "old" })] });
        const lastCommit = await commit(provider, "a", { events: [scheduled("a", 2)] });
        await admin.deleteInstance("a", true);
        await create(provider, "a", { events: [started("a", { input: "new" })] });
        await commit(provider, "a", { events: [scheduled("a", 2)] });

        const { item } = await lockWarm(provider, "a", lastCommit);
        checkEverything(t, item, [started("a", { input: "new" }), scheduled("a", 2)], "of the new instance");
      },
    },
    {
      id: "remembers_other_instances",
      promise: "What is remembered of one instance says nothing of another",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await create(provider, "b");
        const lastCommit = await commit(provider, "b", {});
        const warm = new Map([
          ["a", lastCommit],
          ["c", lastCommit],
        ]);
        for (const instance of ["a", "b"]) {
          await provider.enqueueForOrchestrator(raised(instance));
          checkEverything(t, (await takeTurn(provider, { warm })).item, [started(instance)], `of '${instance}'`);
        }
      },
    },
    {
      id: "remembers_what_has_not_begun",
      promise: "Of an instance that has not begun nothing can be remembered: it is fetched as any new one",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { item } = await takeTurn(provider, { warm: new Map([["a", "no-such-token"]]) });
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
        for (const warm of [undefined, new Map<string, string>()]) {
          await provider.enqueueForOrchestrator(raised("a"));
          const { item, lockToken } = await takeTurn(provider, warm === undefined ? {} : { warm });
          checkEverything(t, item, [started("a"), scheduled("a", 2)], "without a memory");
          await provider.ackOrchestrationItem(lockToken, turn());
        }
      },
    },
  ],
};

/** Wakes the instance and commits a turn of it; answers with its token. */
async function commit(provider: Provider, instance: string, fields: Partial<TurnCommit>): Promise<string> {
  await provider.enqueueForOrchestrator(raised(instance));
  const { lockToken } = await takeTurn(provider);
  await provider.ackOrchestrationItem(lockToken, turn({ metadata: NAMED, ...fields }));
  return lockToken;
}

/** Wakes the instance, and fetches it with the token of the turn that the dispatcher remembers. */
async function lockWarm(provider: Provider, instance: string, lastCommit: string) {
  await provider.enqueueForOrchestrator(raised(instance));
  return takeTurn(provider, { warm: new Map([[instance, lastCommit]]) });
}

/** Whether the memory is called up to date; if so, as of the very turn that was named. */
function checkWarmth(t: CaseContext, { warmAsOf }: OrchestrationItem, lastCommit: string): boolean {
  if (warmAsOf !== null) t.equal(warmAsOf, lastCommit, "the turn as of which the memory is up to date");
  return warmAsOf !== null;
}

function checkEverything(t: CaseContext, item: OrchestrationItem, history: readonly Event[], where: string): void {
  t.isNull(item.warmAsOf, `the turn as of which the memory is up to date ${where}`);
  t.equal(item.history, history, `the history ${where}`);
}
