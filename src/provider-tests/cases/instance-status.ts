// cases/instance-status.ts — where an instance stands can be read without its history.

import type { ExecutionStatus } from "../../provider/provider.js";
import { completed, continueAsNew, NAMED, raised, start, started, statusSet } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, commitNext, create, createEnded, runTurn, takeTurn } from "../steps.js";

export const instanceStatus: Category = {
  name: "instance_status",
  about: "Where an instance stands can be read without its history.",
  cases: [
    {
      id: "unknown_without_start",
      promise: "An instance that nobody has started has no status, even when a message waits for it",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(raised("a"));
        t.isNull(await provider.getInstanceStatus("a"), "the status of an instance with a message and no start");
        t.isNull(await provider.getInstanceStatus("unknown"), "the status of an instance without anything");
      },
    },
    {
      id: "pending_while_start_is_queued",
      promise: "An instance is pending while its start is queued, delayed or being worked on",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a", { version: null }));
        await provider.enqueueForOrchestrator(start("b"), { delayMs: 10 * t.lockMs });

        const pending = {
          status: "Pending",
          orchestrationName: "TestOrch",
          orchestrationVersion: "unknown",
          executionId: 1,
          output: null,
          customStatus: null,
          customStatusVersion: 0,
        } as const;
        t.equal(await provider.getInstanceStatus("a"), pending, "the status while the start is queued");
        const delayed = await provider.getInstanceStatus("b");
        t.equal(delayed, { ...pending, orchestrationVersion: "1.0.0" }, "the status while the start is delayed");
        t.equal((await takeTurn(provider)).item.instance, "a", "the instance that can be fetched");
        t.equal(await provider.getInstanceStatus("a"), pending, "the status while the first turn is being worked on");
      },
    },
    {
      id: "running_after_first_turn",
      promise: "An instance is running from its first turn on",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        t.equal(
          await provider.getInstanceStatus("a"),
          {
            status: "Running",
            orchestrationName: "TestOrch",
            orchestrationVersion: "1.0.0",
            executionId: 1,
            output: null,
            customStatus: null,
            customStatusVersion: 0,
          },
          "the status after the first turn",
        );
      },
    },
    {
      id: "ended_with_output",
      promise: "An instance that has completed, failed or continued as new tells so, with its output",
      async run(t) {
        const { provider } = await t.open();
        for (const status of ["Completed", "Failed", "ContinuedAsNew"] satisfies ExecutionStatus[]) {
          await create(provider, status);
          await runTurn(provider, status, {
            events: [completed(status, 2)],
            metadata: { status, output: "the output" },
          });
          const expected = { status, output: "the output", executionId: 1 };
          t.matches(
            await provider.getInstanceStatus(status),
            expected,
            `the status after the turn that says ${status}`,
          );
        }
      },
    },
    {
      id: "kept_by_turn_that_says_nothing",
      promise: "A turn that says nothing of the status leaves it, and the output, as they are",
      async run(t) {
        const { provider } = await t.open();
        await createEnded(provider, "a");
        await runTurn(provider, "a", { metadata: NAMED });
        const expected = { status: "Completed", output: "done" } as const;
        t.matches(await provider.getInstanceStatus("a"), expected, "the status after a turn that names no status");
        await runTurn(provider, "a");
        t.matches(await provider.getInstanceStatus("a"), expected, "the status after a turn without metadata");
      },
    },
    {
      id: "that_of_current_execution",
      promise: "The status is that of the current execution, under its name and version",
      async run(t) {
        const { provider } = await t.open();
        await createEnded(provider, "a", { status: "ContinuedAsNew", output: "next input" });
        await provider.enqueueForOrchestrator(continueAsNew("a"));
        const metadata = { orchestrationName: "TestOrch", orchestrationVersion: "2.0.0" };
        await commitNext(provider, "a", { executionId: 2, events: [started("a", { executionId: 2 })], metadata });
        t.matches(
          await provider.getInstanceStatus("a"),
          { status: "Running", executionId: 2, output: null, orchestrationVersion: "2.0.0" },
          "the status while execution 2 runs",
        );

        await runTurn(provider, "a", { executionId: 2, metadata: { status: "Failed", output: "broken" } });
        t.matches(
          await provider.getInstanceStatus("a"),
          { status: "Failed", executionId: 2, output: "broken", orchestrationVersion: "2.0.0" },
          "the status when execution 2 has failed",
        );
      },
    },
    {
      id: "with_custom_status",
      promise: "The status carries the custom status and its version",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [started("a"), statusSet("a", 2, "half")] });
        const first = { customStatus: "half", customStatusVersion: 1 };
        t.matches(await provider.getInstanceStatus("a"), first, "the status after the first custom status");
        await runTurn(provider, "a", { events: [statusSet("a", 3, null)] });
        const second = { customStatus: null, customStatusVersion: 2 };
        t.matches(await provider.getInstanceStatus("a"), second, "the status after the custom status was cleared");
      },
    },
    {
      id: "unnamed_instance_has_its_own",
      promise: "An instance that nobody has named has a status of its own, whatever others have",
      async run(t) {
        const { provider } = await t.open();
        await createEnded(provider, "A", { status: "Failed", output: "broken" });
        for (const instance of ["a", "b", "c"]) await begin(provider, instance);
        await runTurn(provider, "b", { metadata: { status: "Completed", output: "done" } });
        const running = { status: "Running", output: null } as const;
        t.matches(await provider.getInstanceStatus("a"), running, "the status of 'a', which runs");
        const over = { status: "Completed", output: "done" } as const;
        t.matches(await provider.getInstanceStatus("b"), over, "the status of 'b', which has completed");
        t.matches(await provider.getInstanceStatus("c"), running, "the status of 'c', which runs");
      },
    },
    {
      id: "of_its_own_instance",
      promise: "The end of one instance leaves the status of another as it is",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await createEnded(provider, "A");
        await createEnded(provider, "ab", { status: "Failed", output: "broken" });
        const running = { status: "Running", output: null } as const;
        t.matches(await provider.getInstanceStatus("a"), running, "the status of 'a' after 'A' and 'ab' have ended");
        t.matches(await provider.getInstanceStatus("A"), { status: "Completed" }, "the status of 'A'");
        t.matches(await provider.getInstanceStatus("ab"), { status: "Failed" }, "the status of 'ab'");
      },
    },
  ],
};
