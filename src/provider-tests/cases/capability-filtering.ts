// cases/capability-filtering.ts — a dispatcher is given only what it can replay.

import { displayMessage, type ErrorDetails } from "../../history/error-details.js";
import { CORRUPT_HISTORY_EVENT_ID } from "../../history/event.js";
import type { LockedOrchestrationItem, Provider } from "../../provider/provider.js";
import { continueAsNew, event, kvSet, NAMED, raised, semver, start, started, supports, turn } from "../builders.js";
import type { CaseContext, CaseStore } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, continueExecution, create, fetchTurn, LONG_LOCK_MS, runTurn, takeTurn } from "../steps.js";

/** More than any case has, so that a provider which hands out the same instance for ever is found out. */
const MOST_INSTANCES = 50;

export const capabilityFiltering: Category = {
  name: "capability_filtering",
  about: "A dispatcher is given only what it can replay.",
  cases: [
    {
      id: "fetch_with_filter_none_returns_any_item",
      promise: "A fetch without a filter takes an instance of any version",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.2.3", b: "0.0.0", c: "2147483647.0.0", d: "0.0.1" });
        t.equal(instancesOf(await drain(provider)), ["a", "b", "c", "d"], "the instances for fetches without a filter");
      },
    },
    {
      id: "fetch_with_compatible_filter_returns_item",
      promise: "A filter takes an instance whose version is within its range",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.2.3" });
        const { item } = await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
        t.equal(item.instance, "a", "the instance");
        t.equal(item.messages, [raised("a")], "its messages");
        t.equal(item.history, [started("a", { duroxideVersion: "1.2.3" })], "its history");
      },
    },
    {
      id: "fetch_with_incompatible_filter_skips_item",
      promise: "A filter leaves an instance whose version is outside its range",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.2.3" });
        t.isNull(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }), "an instance of 1.2.3");
      },
    },
    {
      id: "fetch_filter_skips_incompatible_selects_compatible",
      promise: "An instance that cannot be replayed does not stand in the way of one behind it that can",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { v1: "1.0.0", v2: "2.0.0" });
        const second = await takeTurn(provider, { capability: supports("2.0.0..2.9.9") });
        t.equal(second.item.instance, "v2", "the instance for a dispatcher of version 2");
        await provider.abandonOrchestrationItem(second.lockToken);

        const first = await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
        t.equal(first.item.instance, "v1", "the instance for a dispatcher of version 1");
      },
    },
    {
      id: "fetch_filter_does_not_lock_skipped_instances",
      promise: "An instance that a filter leaves is neither locked nor counted",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        for (let n = 0; n < 3; n += 1) {
          t.isNull(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }), "an instance of 1.0.0");
        }
        const locked = await takeTurn(provider, { capability: supports("0.0.0..1.9.9") });
        t.equal(locked.item.instance, "a", "the instance for a dispatcher that can replay it");
        t.equal(locked.attemptCount, 1, "its attempts");
      },
    },
    {
      id: "fetch_filter_null_pinned_version_always_compatible",
      promise: "Every filter with a range takes a new instance, and one of which no turn has said a version",
      async run(t) {
        const { provider } = await t.open();
        const capability = supports("99.0.0..99.9.9");
        await provider.enqueueForOrchestrator(start("a"));
        const { item, lockToken } = await takeTurn(provider, { capability });
        t.equal(item.instance, "a", "the new instance");
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], metadata: NAMED }));
        await provider.enqueueForOrchestrator(raised("a"));

        t.equal((await takeTurn(provider, { capability })).item.instance, "a", "the instance without a version");
      },
    },
    {
      id: "fetch_filter_boundary_versions",
      promise: "Both ends of the range belong to it, and what is next to them does not",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, {
          tooLow: "0.9.9",
          lowest: "1.0.0",
          between: "1.2.3",
          highest: "1.9.99",
          tooHigh: "1.9.100",
          next: "2.0.0",
        });
        const within = await drain(provider, { capability: supports("1.0.0..1.9.99") });
        t.equal(instancesOf(within), ["between", "highest", "lowest"], "the instances within 1.0.0 and 1.9.99");
        const others = await drain(provider);
        t.equal(instancesOf(others), ["next", "tooHigh", "tooLow"], "the instances that are left");
      },
    },
    {
      id: "versions_are_compared_as_numbers",
      promise: "Versions are compared as numbers, part by part from the left",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { ten: "1.10.0", far: "10.0.0", patch: "1.9.10", major: "2.0.999" });
        const capability = supports("1.2.0..1.9.9");
        t.isNull(await fetchTurn(provider, { capability }), "an instance of 1.10.0, 10.0.0, 1.9.10 or 2.0.999");
        const minor = await drain(provider, { capability: supports("1.9.500..1.10.0") });
        t.equal(instancesOf(minor), ["ten"], "the instances within 1.9.500 and 1.10.0");
        const major = await drain(provider, { capability: supports("2.0.0..10.0.0") });
        t.equal(instancesOf(major), ["far", "major"], "the instances within 2.0.0 and 10.0.0");
      },
    },
    {
      id: "pinned_version_stored_via_ack_metadata",
      promise: "The version that a turn pins its execution to is stored with the turn",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "3.1.4" });
        t.isNull(await fetchTurn(provider, { capability: supports("3.1.5..3.9.9") }), "an instance of 3.1.4");
        t.isNull(await fetchTurn(provider, { capability: supports("3.0.0..3.1.3") }), "an instance of 3.1.4");
        const { item } = await takeTurn(provider, { capability: supports("3.0.0..3.9.9") });
        t.equal(item.instance, "a", "the instance within 3.0.0 and 3.9.9");
      },
    },
    {
      id: "pinned_version_immutable_across_ack_cycles",
      promise: "A pinned version stays until a turn says otherwise",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        const capability = supports("0.0.0..1.9.9");
        const { lockToken } = await takeTurn(provider, { capability });
        await provider.ackOrchestrationItem(lockToken, turn({ metadata: NAMED }));
        await provider.enqueueForOrchestrator(raised("a"));

        t.isNull(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }), "an instance of 1.0.0");
        t.equal((await takeTurn(provider, { capability })).item.instance, "a", "the instance for the same dispatcher");
      },
    },
    {
      id: "continue_as_new_execution_gets_own_pinned_version",
      promise: "A pinned version belongs to its execution: the next one has its own",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        await commitNext(provider, "a", {
          events: [event("a", 2, { type: "OrchestrationContinuedAsNew", input: "{}" })],
          orchestratorItems: [continueAsNew("a")],
          metadata: { ...NAMED, status: "ContinuedAsNew" },
        });
        t.isNull(
          await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }),
          "the instance while its first execution, of 1.0.0, is the current one",
        );
        await commitNext(provider, "a", {
          executionId: 2,
          events: [started("a", { executionId: 2 })],
          metadata: { ...NAMED, pinnedVersion: semver("2.0.0") },
        });
        await provider.enqueueForOrchestrator(raised("a"));

        const { item, lockToken } = await takeTurn(provider, { capability: supports("2.0.0..2.9.9") });
        t.equal(item.executionId, 2, "the execution for a dispatcher of version 2");
        await provider.abandonOrchestrationItem(lockToken);
        t.isNull(await fetchTurn(provider, { capability: supports("1.0.0..1.9.9") }), "an execution of 2.0.0");
      },
    },
    {
      id: "next_execution_without_a_version",
      promise: "An execution does not inherit the pinned version of the one before",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("1.0.0") } });
        await continueExecution(provider, "a", 2);
        await provider.enqueueForOrchestrator(raised("a"));

        const { item } = await takeTurn(provider, { capability: supports("99.0.0..99.9.9") });
        t.equal(item.executionId, 2, "the execution of which no turn has said a version");
      },
    },
    {
      id: "unnamed_instance_suits_every_filter",
      promise: "Every filter with a range takes an instance that nobody has named, whatever its turns have pinned",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a", { metadata: { pinnedVersion: semver("9.0.0") } });
        await provider.enqueueForOrchestrator(raised("a"));
        const capability = supports("1.0.0..1.9.9");
        const { item, lockToken } = await takeTurn(provider, { capability });
        t.equal(item.instance, "a", "the instance without a name");

        await provider.ackOrchestrationItem(lockToken, turn({ metadata: NAMED }));
        await provider.enqueueForOrchestrator(raised("a"));
        t.isNull(await fetchTurn(provider, { capability }), "the instance when it has a name");
      },
    },
    {
      id: "filter_with_empty_supported_versions_returns_nothing",
      promise: "A filter without a range takes nothing, not even a new instance, and does not wait for it",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        await provider.enqueueForOrchestrator(start("new"));
        const fetch = fetchTurn(provider, { capability: supports(), pollTimeoutMs: LONG_LOCK_MS });
        t.isNull(await t.soon(fetch, "the answer to a fetch that supports nothing"), "the instance for it");
        t.equal(instancesOf(await drain(provider)), ["a", "new"], "the instances for another dispatcher");
      },
    },
    {
      id: "concurrent_filtered_fetch_no_double_lock",
      promise: "An instance is handed out once, with a filter as without",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        const capability = supports("1.0.0..1.9.9");
        const found = await Promise.all([fetchTurn(provider, { capability }), fetchTurn(provider, { capability })]);
        t.equal(found.filter((locked) => locked !== null).length, 1, "how many of two fetches at once got it");
        t.isNull(await fetchTurn(provider, { capability }), "the instance for a third fetch");
        t.isNull(await fetchTurn(provider), "the instance for a fetch without a filter");
      },
    },
    {
      id: "ack_stores_pinned_version_via_metadata_update",
      promise: "The version may come with a later turn that has no events",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { metadata: { pinnedVersion: semver("1.2.3") } });
        await provider.enqueueForOrchestrator(raised("a"));

        t.isNull(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }), "an instance of 1.2.3");
        const { item } = await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
        t.equal(item.instance, "a", "the instance within 1.0.0 and 1.9.9");
      },
    },
    {
      id: "provider_updates_pinned_version_when_told",
      promise: "A pinned version is overwritten when a turn says so",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        await commitNext(provider, "a", { metadata: { pinnedVersion: semver("2.0.0") } });
        await provider.enqueueForOrchestrator(raised("a"));

        const { item, lockToken } = await takeTurn(provider, { capability: supports("2.0.0..2.0.0") });
        t.equal(item.instance, "a", "the instance for a dispatcher of version 2.0.0");
        await provider.abandonOrchestrationItem(lockToken);
        t.isNull(await fetchTurn(provider, { capability: supports("1.0.0..1.0.0") }), "an instance of 2.0.0");
      },
    },
    {
      id: "refused_turn_pins_no_version",
      promise: "A refused turn does not change the pinned version",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0" });
        const { lockToken } = await takeTurn(provider);
        const refused = turn({ events: [started("a")], metadata: { ...NAMED, pinnedVersion: semver("2.0.0") } });
        const ack = provider.ackOrchestrationItem(lockToken, refused);
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");
        await provider.abandonOrchestrationItem(lockToken);

        t.isNull(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }), "an instance of 1.0.0");
        const { item } = await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
        t.equal(item.instance, "a", "the instance for a dispatcher of version 1");
      },
    },
    {
      id: "fetch_single_range_only_uses_first_range",
      promise: "Only the first range of a filter counts",
      async run(t) {
        const { provider } = await t.open();
        await seed(provider, { a: "1.0.0", b: "3.0.0" });
        const capability = supports("1.0.0..1.5.0", "3.0.0..3.5.0");
        const { item, lockToken } = await takeTurn(provider, { capability });
        t.equal(item.instance, "a", "the instance within the first range");
        t.isNull(await fetchTurn(provider, { capability }), "the instance within the second range");
        await provider.abandonOrchestrationItem(lockToken);
        t.equal((await takeTurn(provider, { capability })).item.instance, "a", "the instance after an abandon");
      },
    },
    {
      id: "fetch_corrupted_history_filtered_vs_unfiltered",
      promise: "A history that cannot be decoded is handed out as such, and only to a dispatcher for its version",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await seedCorrupt(store, "1.0.0");
        t.isNull(await fetchTurn(provider, { capability: supports("2.0.0..2.9.9") }), "an instance of 1.0.0");

        const locked = await takeCorrupt(t, provider);
        t.equal(locked.attemptCount, 1, "its attempts");
        t.equal(locked.item.messages, [raised("a")], "its messages");
        t.isNull(await fetchTurn(provider), "the instance under its lock");
        await provider.abandonOrchestrationItem(locked.lockToken);
        const { item } = await takeTurn(provider, { capability: supports("1.0.0..1.9.9") });
        t.equal(item.instance, "a", "the instance for a dispatcher of version 1, after an abandon");
      },
    },
    {
      id: "corrupted_history_comes_without_values",
      promise: "With a history that cannot be decoded no key-values are handed out",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a", { events: [started("a"), kvSet("a", 2, "k", "v")] });
        await continueExecution(provider, "a", 2);
        await provider.enqueueForOrchestrator(raised("a"));
        await store.corruptHistory("a");

        await takeCorrupt(t, provider);
      },
    },
    {
      id: "fetch_deserialization_error_increments_attempt_count",
      promise: "A fetch that finds a history that cannot be decoded counts as an attempt, and the count is stored",
      async run(t) {
        const store = await t.open();
        await seedCorrupt(store, "1.0.0");
        for (const attempt of [1, 2]) {
          const { attemptCount, lockToken } = await takeCorrupt(t, store.provider);
          t.equal(attemptCount, attempt, "the attempts that the fetch tells");
          await store.provider.abandonOrchestrationItem(lockToken);
          t.equal(await store.maxAttemptCount("a"), attempt, "the stored attempts after an abandon");
        }
      },
    },
    {
      id: "fetch_deserialization_error_eventually_reaches_poison",
      promise: "The attempts on a history that cannot be decoded grow with every fetch, abandoned or left to expire",
      async run(t) {
        const store = await t.open();
        await seedCorrupt(store, "1.0.0");
        for (const attempt of [1, 2, 3, 4, 5]) {
          const { attemptCount, lockToken } = await takeCorrupt(t, store.provider, t.lockMs);
          t.equal(attemptCount, attempt, "the attempts");
          if (attempt === 3) await t.outlive(t.lockMs);
          else await store.provider.abandonOrchestrationItem(lockToken);
        }
      },
    },
    {
      id: "fetch_filter_applied_before_history_deserialization",
      promise: "A filter that leaves an instance does not look into its history",
      async run(t) {
        const store = await t.open();
        await seedCorrupt(store, "99.0.0");
        const capability = supports("1.0.0..2.0.0");
        t.isNull(await fetchTurn(store.provider, { capability }), "an instance of 99.0.0 with a corrupt history");
        const { attemptCount } = await takeCorrupt(t, store.provider);
        t.equal(attemptCount, 1, "the attempts on it, which the filter has not counted");
      },
    },
    {
      id: "ack_appends_event_to_corrupted_history",
      promise: "An instance whose history cannot be decoded can be ended with a failure, which leaves the rest alone",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await seedCorrupt(store, "1.0.0");
        const { item, lockToken } = await takeCorrupt(t, provider);
        const details: ErrorDetails = {
          category: "poison",
          attemptCount: 4,
          maxAttempts: 3,
          messageType: { type: "FailedDeserialization", instance: "a", executionId: 1, error: "no event" },
          message: "",
        };
        const output = displayMessage(details);
        await provider.ackOrchestrationItem(
          lockToken,
          turn({
            events: [event("a", CORRUPT_HISTORY_EVENT_ID, { type: "OrchestrationFailed", details })],
            metadata: {
              status: "Failed",
              output,
              orchestrationName: item.orchestrationName,
              orchestrationVersion: item.version,
            },
          }),
        );

        const status = await provider.getInstanceStatus("a");
        t.matches(status, { status: "Failed", output, ...NAMED }, "the status of the instance");
        await t.refused(provider.read("a"), "corrupt", "a read of the history, which is as corrupt as before");
        t.isNull(await fetchTurn(provider), "the instance, whose messages are consumed");
      },
    },
  ],
};

/** Instances that run, pinned to these versions, with a message each. */
async function seed(provider: Provider, versions: Readonly<Record<string, string>>): Promise<void> {
  for (const [instance, version] of Object.entries(versions)) {
    await create(provider, instance, {
      events: [started(instance, { duroxideVersion: version })],
      metadata: { ...NAMED, pinnedVersion: semver(version) },
    });
  }
  for (const instance of Object.keys(versions)) await provider.enqueueForOrchestrator(raised(instance));
}

/** Instance `a`, pinned to this version, with a message and a history that cannot be decoded. */
async function seedCorrupt(store: CaseStore, version: string): Promise<void> {
  await seed(store.provider, { a: version });
  await store.corruptHistory("a");
}

/** Fetches instance `a`, whose history must be told to be corrupt. */
async function takeCorrupt(
  t: CaseContext,
  provider: Provider,
  lockTimeoutMs = LONG_LOCK_MS,
): Promise<LockedOrchestrationItem> {
  const locked = await takeTurn(provider, { lockTimeoutMs });
  const { instance, history, historyError, warmAsOf, kvSnapshot } = locked.item;
  t.equal(instance, "a", "the instance whose history cannot be decoded");
  t.ok(typeof historyError === "string" && historyError !== "", "its item says what is wrong with the history");
  t.equal(history, [], "the history of its item");
  t.isNull(warmAsOf, "the turn as of which a memory is up to date");
  t.equal(kvSnapshot.size, 0, "how many values its item has");
  return locked;
}

/** Every instance that can be fetched with these options. They stay locked. */
async function drain(
  provider: Provider,
  options: Parameters<typeof fetchTurn>[1] = {},
): Promise<readonly LockedOrchestrationItem[]> {
  const all: LockedOrchestrationItem[] = [];
  while (all.length < MOST_INSTANCES) {
    const locked = await fetchTurn(provider, options);
    if (locked === null) break;
    all.push(locked);
  }
  return all;
}

function instancesOf(locked: readonly LockedOrchestrationItem[]): readonly string[] {
  return locked.map(({ item }) => item.instance).sort();
}
