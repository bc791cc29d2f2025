// cases/multi-execution.ts — every execution has a history of its own, and the latest committed one is the current one.

import type { OrchestrationItem, Provider } from "../../provider/provider.js";
import { completed, continueAsNew, kvSet, NAMED, raised, scheduled, start, started, statusSet } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, continueExecution, create, fetchTurn, runTurn, takeTurn } from "../steps.js";

export const multiExecution: Category = {
  name: "multi_execution",
  about: "Every execution has a history of its own, and the latest committed one is the current one.",
  cases: [
    {
      id: "execution_isolation",
      promise: "Event ids begin anew with every execution: histories share nothing",
      async run(t) {
        const { provider } = await t.open();
        const first = [started("a"), scheduled("a", 2), completed("a", 3)];
        const second = [started("a", { executionId: 2 }), completed("a", 2)];
        await begin(provider, "a", { events: first });
        await provider.enqueueForOrchestrator(start("a", { executionId: 2 }));
        await commitNext(provider, "a", { executionId: 2, events: second });

        t.equal(await provider.readWithExecution("a", 1), first, "the first execution");
        t.equal(await provider.readWithExecution("a", 2), second, "the second execution");
        t.equal(await provider.read("a"), second, "the latest execution");
        t.equal(await provider.readWithExecution("a", 3), [], "an execution that there has not been");
      },
    },
    {
      id: "latest_execution_detection",
      promise: "Who reads an instance without naming an execution gets the latest",
      async run(t) {
        const { provider } = await t.open();
        for (const [executionId, name] of [
          [1, "A"],
          [2, "B"],
        ] as const) {
          await provider.enqueueForOrchestrator(start("a", { executionId }));
          await commitNext(provider, "a", { executionId, events: [scheduled("a", 1, name)] });
        }

        t.equal(await provider.read("a"), [scheduled("a", 1, "B")], "the latest execution");
        t.equal(await provider.readWithExecution("a", 1), [scheduled("a", 1, "A")], "the first execution");
      },
    },
    {
      id: "execution_id_sequencing",
      promise: "An execution is current because it was committed, not because a message speaks of it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        t.equal((await peek(provider)).executionId, 1, "the execution of the first fetch");
        await commitNext(provider, "a", { events: [started("a")], metadata: NAMED });

        await provider.enqueueForOrchestrator(start("a", { executionId: 2 }));
        t.equal((await peek(provider)).executionId, 1, "the execution while only a message speaks of the second");
        const events = [started("a", { executionId: 2 })];
        await commitNext(provider, "a", { executionId: 2, events, metadata: NAMED });

        await provider.enqueueForOrchestrator(start("a", { executionId: 3 }));
        const { item } = await takeTurn(provider);
        t.matches(
          item,
          { executionId: 2, history: events },
          "what is fetched while only a message speaks of the third",
        );
      },
    },
    {
      id: "continue_as_new_creates_new_execution",
      promise: "The turn that answers a continue-as-new begins the next execution, with a history of its own",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        await provider.enqueueForOrchestrator(continueAsNew("a", { input: "new-input" }));
        const next = [started("a", { executionId: 2, input: "new-input" })];
        await commitNext(provider, "a", { executionId: 2, events: next });

        t.isNull(await fetchTurn(provider), "the instance, whose messages are consumed");
        await provider.enqueueForOrchestrator(raised("a"));
        const { item } = await takeTurn(provider);
        t.matches(item, { executionId: 2, history: next }, "the instance when it is next fetched");
        t.equal(await provider.readWithExecution("a", 1), [started("a")], "the first execution");
      },
    },
    {
      id: "execution_history_persistence",
      promise: "An execution keeps its history when others follow",
      async run(t) {
        const { provider } = await t.open();
        for (const executionId of [1, 2, 3]) {
          await provider.enqueueForOrchestrator(start("a", { executionId }));
          await commitNext(provider, "a", { executionId, events: [scheduled("a", 1, `Activity-${executionId}`)] });
        }

        for (const executionId of [1, 2, 3]) {
          const history = await provider.readWithExecution("a", executionId);
          t.equal(history, [scheduled("a", 1, `Activity-${executionId}`)], `execution ${executionId}`);
        }
        t.equal(await provider.read("a"), [scheduled("a", 1, "Activity-3")], "the latest execution");
      },
    },
    {
      id: "unnamed_instance_has_latest_execution",
      promise: "An instance whose turns never named it is fetched with its latest execution all the same",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        const second = [started("a", { executionId: 2 })];
        await runTurn(provider, "a", { executionId: 2, events: second });
        await provider.enqueueForOrchestrator(continueAsNew("a"));

        const { item } = await takeTurn(provider);
        t.matches(item, { executionId: 2, history: second }, "the instance as it is fetched");
      },
    },
    {
      id: "current_execution_never_goes_back",
      promise: "A late turn of an earlier execution is written to that one, and the current one stays current",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const second = [started("a", { executionId: 2 })];
        await runTurn(provider, "a", { executionId: 2, events: second, metadata: NAMED });
        await runTurn(provider, "a", { executionId: 1, events: [completed("a", 9)], metadata: NAMED });
        await provider.enqueueForOrchestrator(continueAsNew("a"));

        const { item } = await takeTurn(provider);
        t.matches(item, { executionId: 2, history: second }, "the instance as it is fetched");
        t.equal(await provider.readWithExecution("a", 1), [started("a"), completed("a", 9)], "the first execution");
        t.matches(await provider.getInstanceStatus("a"), { executionId: 2, status: "Running" }, "the status");
      },
    },
    {
      id: "nameless_turn_begins_execution",
      promise: "A turn that begins the next execution without naming the instance makes it the current one",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { executionId: 2, events: [started("a", { executionId: 2 })] });
        await provider.enqueueForOrchestrator(raised("a"));

        t.equal((await takeTurn(provider)).item.executionId, 2, "the execution that is fetched");
        t.matches(await provider.getInstanceStatus("a"), { executionId: 2 }, "the status");
      },
    },
    {
      id: "append_adds_to_execution",
      promise: "An append adds to the history of the execution that it names, and to nothing else",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await continueExecution(provider, "a", 2);
        const added = [scheduled("a", 2), completed("a", 3)];
        await provider.appendWithExecution("a", 1, added);

        t.equal(await provider.readWithExecution("a", 1), [started("a"), ...added], "the first execution");
        t.equal(await provider.read("a"), [started("a", { executionId: 2 })], "the second execution");
        t.isNull(await fetchTurn(provider), "the instance, to which nobody has sent anything");
        t.matches(await provider.getInstanceStatus("a"), { status: "Running", executionId: 2 }, "the status");
      },
    },
    {
      id: "append_makes_no_execution_current",
      promise: "An append of a later execution makes it the latest to read, and not the current one",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const later = [started("a", { executionId: 2 }), scheduled("a", 2)];
        await provider.appendWithExecution("a", 2, later);

        t.equal(await provider.read("a"), later, "the latest history");
        t.matches(await provider.getInstanceStatus("a"), { executionId: 1 }, "the status");
        t.matches(await provider.getInstanceStats("a"), { historyEventCount: 1 }, "the statistics");
        await provider.enqueueForOrchestrator(raised("a"));
        const current = { executionId: 1, history: [started("a")] };
        t.matches((await takeTurn(provider)).item, current, "the instance at its next fetch");
      },
    },
    {
      id: "append_writes_history_only",
      promise: "What appended events say of values and of the custom status is history, and nothing more",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const added = [kvSet("a", 2, "key", "value"), statusSet("a", 3, "busy")];
        await provider.appendWithExecution("a", 1, added);

        t.equal(await provider.read("a"), [started("a"), ...added], "the history");
        t.equal((await provider.getKvAllValues("a")).size, 0, "the number of values");
        t.isNull(await provider.getCustomStatus("a", 0), "the custom status");
      },
    },
    {
      id: "executions_in_any_order",
      promise: "Executions are listed by their ids and the highest is the latest, in whatever order they came",
      async run(t) {
        const { provider, admin } = await t.open();
        for (const executionId of [3, 1, 12, 2]) {
          await provider.appendWithExecution("a", executionId, [started("a", { executionId })]);
        }
        t.equal(await admin.listExecutions("a"), [1, 2, 3, 12], "the executions");
        t.equal(await admin.latestExecutionId("a"), 12, "the latest execution");
        t.equal(await provider.read("a"), [started("a", { executionId: 12 })], "the latest history");
      },
    },
  ],
};

/** What a fetch would get; it can then be fetched again. */
async function peek(provider: Provider): Promise<OrchestrationItem> {
  const { item, lockToken } = await takeTurn(provider);
  await provider.abandonOrchestrationItem(lockToken);
  return item;
}
