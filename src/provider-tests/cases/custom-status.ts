// cases/custom-status.ts — the custom status is what the last turn that spoke of it said, one version a turn.

import type { Provider } from "../../provider/provider.js";
import { NAMED, raised, started, statusSet, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, continueExecution, create, runTurn, takeTurn } from "../steps.js";

export const customStatus: Category = {
  name: "custom_status",
  about: "The custom status is what the last turn that spoke of it said, one version a turn.",
  cases: [
    {
      id: "custom_status_set",
      promise: "A custom status is stored by the turn that sets it, be it the first or a later one",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "progress");
        t.equal(await provider.getCustomStatus("a", 0), { status: "progress", version: 1 }, "set by a later turn");

        await create(provider, "b", { events: [statusSet("b", 1, "from the start")] });
        const first = await provider.getCustomStatus("b", 0);
        t.equal(first, { status: "from the start", version: 1 }, "set by the turn that makes the instance");
      },
    },
    {
      id: "custom_status_clear",
      promise: "A custom status of null removes the text, and is a new version",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "temp");
        await say(provider, "a", 101, null);

        t.equal(await provider.getCustomStatus("a", 0), { status: null, version: 2 }, "the cleared status");
        const status = await provider.getInstanceStatus("a");
        t.matches(status, { customStatus: null, customStatusVersion: 2 }, "the instance status");
      },
    },
    {
      id: "custom_status_none_preserves",
      promise: "A turn that says nothing of the custom status leaves it as it is, even the last turn",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "keep-me");
        await runTurn(provider, "a");
        t.equal(await provider.getCustomStatus("a", 0), { status: "keep-me", version: 1 }, "after an empty turn");
        await runTurn(provider, "a", { metadata: { ...NAMED, status: "Completed", output: "done" } });
        t.equal(await provider.getCustomStatus("a", 0), { status: "keep-me", version: 1 }, "after the last turn");
      },
    },
    {
      id: "custom_status_version_increments",
      promise: "Every turn that speaks of the custom status is one new version, whatever it says",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        for (const [index, status] of ["one", "two", "two", null].entries()) {
          await say(provider, "a", 100 + index, status);
          const expected = { status, version: index + 1 };
          t.equal(await provider.getCustomStatus("a", 0), expected, `the status after turn ${index + 1}`);
        }
      },
    },
    {
      id: "custom_status_polling_no_change",
      promise: "A custom status is news only to whoever has not seen its version",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "news");

        t.isNull(await provider.getCustomStatus("a", 1), "the status for whoever has seen version 1");
        t.isNull(await provider.getCustomStatus("a", 2), "the status for whoever claims to have seen version 2");
        const unseen = await provider.getCustomStatus("a", 0);
        t.equal(unseen, { status: "news", version: 1 }, "the status for whoever has seen none");
        await say(provider, "a", 101, "more");
        const next = await provider.getCustomStatus("a", 1);
        t.equal(next, { status: "more", version: 2 }, "the next status for whoever has seen version 1");
      },
    },
    {
      id: "custom_status_nonexistent_instance",
      promise: "An instance that the store does not know has no custom status",
      async run(t) {
        const { provider } = await t.open();
        t.isNull(await provider.getCustomStatus("unknown", 0), "the custom status of an unknown instance");
      },
    },
    {
      id: "custom_status_default_on_new_instance",
      promise: "A new instance has no custom status, in version 0",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");

        t.isNull(await provider.getCustomStatus("a", 0), "the custom status of a new instance");
        const status = await provider.getInstanceStatus("a");
        t.matches(status, { customStatus: null, customStatusVersion: 0 }, "its instance status");
      },
    },
    {
      id: "two_updates_in_one_turn",
      promise: "Of several updates in one turn the last counts, and readers see one new version",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [statusSet("a", 100, "lost"), statusSet("a", 101, "last")] });
        t.equal(await provider.getCustomStatus("a", 0), { status: "last", version: 1 }, "after two texts");

        await runTurn(provider, "a", { events: [statusSet("a", 102, "lost"), statusSet("a", 103, null)] });
        t.equal(await provider.getCustomStatus("a", 0), { status: null, version: 2 }, "after a text and a null");
        await runTurn(provider, "a", { events: [statusSet("a", 104, null), statusSet("a", 105, "back")] });
        t.equal(await provider.getCustomStatus("a", 0), { status: "back", version: 3 }, "after a null and a text");
      },
    },
    {
      id: "custom_status_in_the_instance_status",
      promise: "The instance status tells the same custom status and version",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await create(provider, "b");
        await say(provider, "a", 100, "one");
        await say(provider, "a", 101, "two");

        const spoken = await provider.getInstanceStatus("a");
        t.matches(spoken, { customStatus: "two", customStatusVersion: 2 }, "the status of the instance");
        const silent = await provider.getInstanceStatus("b");
        t.matches(silent, { customStatus: null, customStatusVersion: 0 }, "the status of another instance");
      },
    },
    {
      id: "custom_status_survives_continue_as_new",
      promise: "The custom status and its version go over into the next execution",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "from the first");
        await continueExecution(provider, "a", 2);
        const inherited = await provider.getCustomStatus("a", 0);
        t.equal(inherited, { status: "from the first", version: 1 }, "the status in the second execution");

        await runTurn(provider, "a", { executionId: 2, events: [statusSet("a", 100, "from the second")] });
        const next = await provider.getCustomStatus("a", 1);
        t.equal(next, { status: "from the second", version: 2 }, "the status that the second execution sets");
      },
    },
    {
      id: "refused_turn_sets_no_custom_status",
      promise: "A refused turn changes neither the custom status nor its version",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "before");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const refused = turn({ events: [statusSet("a", 101, "never"), statusSet("a", 100, "never")] });
        const ack = provider.ackOrchestrationItem(lockToken, refused);
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");

        t.equal(await provider.getCustomStatus("a", 0), { status: "before", version: 1 }, "the status after it");
      },
    },
    {
      id: "custom_status_of_unnamed_instance",
      promise: "A turn of an instance that nobody has named may set a custom status: only its history keeps it",
      async run(t) {
        const { provider } = await t.open();
        const events = [started("a"), statusSet("a", 2, "busy")];
        await begin(provider, "a", { events });
        t.equal(await provider.read("a"), events, "the history");
        t.isNull(await provider.getCustomStatus("a", 0), "the custom status");
        const none = { customStatus: null, customStatusVersion: 0 };
        t.matches(await provider.getInstanceStatus("a"), none, "the instance status");

        await runTurn(provider, "a", { metadata: NAMED });
        t.matches(await provider.getInstanceStatus("a"), none, "the instance status when it has a name");
      },
    },
    {
      id: "custom_status_empty_text",
      promise: "An empty custom status is a text, not the absence of one",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await say(provider, "a", 100, "");
        t.equal(await provider.getCustomStatus("a", 0), { status: "", version: 1 }, "the empty status");
      },
    },
    {
      id: "custom_status_as_long_as_allowed",
      promise: "A custom status of 256 KiB comes back as it was written",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const status = "é".repeat(128 * 1024);
        await say(provider, "a", 100, status);
        t.equal(await provider.getCustomStatus("a", 0), { status, version: 1 }, "the long status");
      },
    },
  ],
};

/** A turn that sets the custom status, and does nothing else. */
function say(provider: Provider, instance: string, eventId: number, status: string | null): Promise<void> {
  return runTurn(provider, instance, { events: [statusSet(instance, eventId, status)] });
}
