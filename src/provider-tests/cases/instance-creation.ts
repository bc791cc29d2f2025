// cases/instance-creation.ts — an instance comes into being with its first committed turn, and not before.

import { completed, continueAsNew, NAMED, raised, scheduled, start, started, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, create, runTurn, takeTurn } from "../steps.js";

export const instanceCreation: Category = {
  name: "instance_creation",
  about: "An instance comes into being with its first committed turn, and not before.",
  cases: [
    {
      id: "instance_creation_via_metadata",
      promise: "The first turn says what the instance is a run of, and no later start can change that",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { item, lockToken } = await takeTurn(provider);
        const asStarted = { orchestrationName: "TestOrch", version: "1.0.0", executionId: 1, history: [] };
        t.matches(item, asStarted, "the instance at its first fetch");
        const metadata = { orchestrationName: "TestOrch", orchestrationVersion: "2.0.0" };
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata }));
        await provider.enqueueForOrchestrator(start("a", { orchestration: "Other", version: "1.0.0" }));

        t.matches(
          (await takeTurn(provider)).item,
          { orchestrationName: "TestOrch", version: "2.0.0", executionId: 1, history: [started("a")] },
          "the instance at its second fetch",
        );
      },
    },
    {
      id: "no_instance_creation_on_enqueue",
      promise: "A start alone creates nothing: the instance is pending until its first turn is committed",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const before = await provider.getInstanceStatus("a");
        t.matches(before, { status: "Pending", orchestrationName: "TestOrch" }, "the status before the first turn");
        t.isNull(await provider.getInstanceStats("a"), "the stats before the first turn");
        t.equal(await provider.read("a"), [], "the history before the first turn");

        await commitNext(provider, "a", { events: [started("a")], metadata: NAMED });
        t.matches(await provider.getInstanceStatus("a"), { status: "Running" }, "the status after it");
        t.matches(await provider.getInstanceStats("a"), { historyEventCount: 1 }, "the stats after it");
      },
    },
    {
      id: "no_listing_before_first_turn",
      promise: "An instance is listed from its first turn on, not from its start on",
      async run(t) {
        const { provider, admin } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        t.equal(await admin.listInstances(), [], "the instances before the first turn");
        await commitNext(provider, "a", { events: [started("a")], metadata: NAMED });
        t.equal(await admin.listInstances(), ["a"], "the instances after it");
      },
    },
    {
      id: "null_version_handling",
      promise: "An instance whose start names no version has an unknown one, until its first turn names it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a", { version: null }));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.version, "unknown", "the version at the first fetch");
        const metadata = { ...NAMED, orchestrationVersion: "3.0.0" };
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata }));
        await provider.enqueueForOrchestrator(start("a", { version: "1.0.0" }));

        const again = (await takeTurn(provider)).item;
        t.matches(again, { version: "3.0.0", executionId: 1, history: [started("a")] }, "the second fetch");
      },
    },
    {
      id: "sub_orchestration_instance_creation",
      promise: "A child can be fetched as soon as the turn that starts it is committed, and is created by its own",
      async run(t) {
        const { provider } = await t.open();
        const id = "parent-instance::child-instance";
        const child = start(id, {
          orchestration: "ChildOrch",
          version: null,
          parentInstance: "parent-instance",
          parentId: 2,
        });
        const parent = { orchestrationName: "ParentOrch", orchestrationVersion: "1.0.0" };
        await create(provider, "parent-instance", { orchestratorItems: [child], metadata: parent });

        const { item, lockToken } = await takeTurn(provider);
        t.matches(item, { instance: id, orchestrationName: "ChildOrch", messages: [child] }, "the next instance");
        const metadata = {
          orchestrationName: "ChildOrch",
          orchestrationVersion: "1.5.0",
          parentInstanceId: "parent-instance",
        };
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started(id)], metadata }));
        await provider.enqueueForOrchestrator(child);

        const again = (await takeTurn(provider)).item;
        t.matches(
          again,
          { instance: id, orchestrationName: "ChildOrch", version: "1.5.0" },
          "the child's second fetch",
        );
      },
    },
    {
      id: "new_instance_item",
      promise: "A new instance is fetched with what its start says, without history and without values",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        t.equal(
          (await takeTurn(provider)).item,
          {
            instance: "a",
            orchestrationName: "TestOrch",
            version: "1.0.0",
            executionId: 1,
            history: [],
            warmAsOf: null,
            historyError: null,
            messages: [start("a")],
            kvSnapshot: new Map(),
          },
          "the instance as it is fetched",
        );
      },
    },
    {
      id: "continue_as_new_starts_instance",
      promise: "A continue-as-new alone is as good a start as any",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        t.matches(
          (await takeTurn(provider)).item,
          { orchestrationName: "TestOrch", version: "1.0.0", executionId: 1, history: [] },
          "the instance as it is fetched",
        );
      },
    },
    {
      id: "first_of_several_starts_names_instance",
      promise: "Of several starts that are queued the oldest says what the instance is a run of",
      async run(t) {
        const { provider } = await t.open();
        const starts = ["First", "Second", "Third"].map((orchestration) => start("a", { orchestration }));
        for (const item of starts) await provider.enqueueForOrchestrator(item);
        t.matches(await provider.getInstanceStatus("a"), { orchestrationName: "First" }, "the status");
        const { item } = await takeTurn(provider);
        t.matches(item, { orchestrationName: "First", messages: starts }, "the instance at its first fetch");
      },
    },
    {
      id: "half_named_instance",
      promise:
        "A turn that names only one of orchestration and version creates no instance: its history tells what it is",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a", { metadata: { orchestrationName: "OnlyAName" } });
        t.isNull(await provider.getInstanceStats("a"), "the stats of an instance that is not known");
        await runTurn(provider, "a", { metadata: { orchestrationVersion: "9.9.9" } });
        t.isNull(await provider.getInstanceStats("a"), "the stats after a turn that names only a version");
        await provider.enqueueForOrchestrator(start("a", { orchestration: "Other", version: "2.0.0" }));

        t.matches(
          (await takeTurn(provider)).item,
          { orchestrationName: "TestOrch", version: "1.0.0", history: [started("a")] },
          "the instance as it is fetched",
        );
      },
    },
    {
      id: "unnamed_instance_has_name_of_latest_start",
      promise: "An instance that nobody has named is what its latest start event says, wherever in its history that is",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        const again = { ...started("a", { name: "Again", version: "2.0.0", executionId: 2 }), eventId: 2 };
        await provider.appendWithExecution("a", 2, [scheduled("a", 1), again]);
        await provider.appendWithExecution("a", 3, [scheduled("a", 1)]);

        const named = { orchestrationName: "Again", executionId: 3 };
        const status = { ...named, orchestrationVersion: "2.0.0", status: "Running" } as const;
        t.matches(await provider.getInstanceStatus("a"), status, "the status");
        await provider.enqueueForOrchestrator(start("a", { orchestration: "Other" }));
        const item = { ...named, version: "2.0.0", history: [scheduled("a", 1)] };
        t.matches((await takeTurn(provider)).item, item, "the instance at its next fetch");
      },
    },
    {
      id: "nameless_turn_keeps_name",
      promise: "A later turn that names nothing leaves the name as it is, and one that names both renames",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [scheduled("a", 2)] });
        const kept = { orchestrationName: "TestOrch", orchestrationVersion: "1.0.0" };
        t.matches(await provider.getInstanceStatus("a"), kept, "the instance after the nameless turn");

        const renamed = { orchestrationName: "Renamed", orchestrationVersion: "2.0.0" };
        await runTurn(provider, "a", { events: [completed("a", 3)], metadata: renamed });
        t.matches(await provider.getInstanceStatus("a"), renamed, "the instance after the turn that renames it");
      },
    },
    {
      id: "messages_create_nothing",
      promise: "A message to an instance does not create it, whether a client sends it or a turn",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(raised("b"));
        await create(provider, "a", { orchestratorItems: [raised("c")] });
        for (const instance of ["b", "c"]) {
          t.isNull(await provider.getInstanceStatus(instance), `the status of '${instance}'`);
          t.isNull(await provider.getInstanceStats(instance), `the stats of '${instance}'`);
          t.equal(await provider.read(instance), [], `the history of '${instance}'`);
        }
      },
    },
  ],
};
