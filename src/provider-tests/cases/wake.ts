// cases/wake.ts — whoever watches an instance hears of its commits.
//
// A wake is a hint: it may be late, doubled or about nothing. So the cases wait for the first one, and never count them.

import type { InstanceChange } from "../../provider/provider.js";
import { continueAsNew, NAMED, scheduled, start } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { create, runTurn } from "../steps.js";

export const wake: Category = {
  name: "wake",
  about: "Whoever watches an instance hears of its commits.",
  cases: [
    {
      id: "watcher_hears_of_commits",
      promise: "Whoever watches an instance hears of its first turn, and of every later one",
      async run(t) {
        const { wake, provider } = await t.open();
        const watcher = new Watcher();
        wake.watchInstance("a", watcher.listener);
        await create(provider, "a");
        await watcher.hears(t, "the wake after the first turn");
        await watcher.rest(t);
        await runTurn(provider, "a");
        await watcher.hears(t, "the wake after the second turn");
      },
    },
    {
      id: "watcher_hears_of_a_queued_start",
      promise: "Whoever watches an instance that nobody has started hears of its start",
      async run(t) {
        const { wake, provider } = await t.open();
        const watcher = new Watcher();
        wake.watchInstance("a", watcher.listener);
        await provider.enqueueForOrchestrator(start("a"));
        await watcher.hears(t, "the wake after the start was queued");
      },
    },
    {
      id: "watcher_hears_of_a_start_that_a_turn_queues",
      promise: "Whoever watches a child that has not begun hears that its parent has started it",
      async run(t) {
        const { wake, provider } = await t.open();
        const watcher = new Watcher();
        wake.watchInstance("child", watcher.listener);
        await create(provider, "a", { orchestratorItems: [start("child", { parentInstance: "a", parentId: 2 })] });
        await watcher.hears(t, "the wake after the turn that started it");
      },
    },
    {
      id: "watcher_hears_of_an_append_and_of_the_deletion",
      promise: "Whoever watches an instance hears that its history was appended to, and that it was deleted",
      async run(t) {
        const { wake, provider, admin } = await t.open();
        await create(provider, "a");
        const watcher = new Watcher();
        wake.watchInstance("a", watcher.listener);
        await watcher.rest(t);
        await provider.appendWithExecution("a", 1, [scheduled("a", 2)]);
        await watcher.hears(t, "the wake after the append");
        await watcher.rest(t);
        await admin.deleteInstance("a", true);
        await watcher.hears(t, "the wake after the deletion");
      },
    },
    {
      id: "watcher_hears_that_its_parent_was_deleted",
      promise: "Whoever watches a child that has not begun hears that it went with its parent",
      async run(t) {
        const { wake, provider, admin } = await t.open();
        await create(provider, "a", { orchestratorItems: [start("child", { parentInstance: "a", parentId: 2 })] });
        const watcher = new Watcher();
        wake.watchInstance("child", watcher.listener);
        await watcher.rest(t);
        await admin.deleteInstance("a", true);
        await watcher.hears(t, "the wake after the deletion of the parent");
      },
    },
    {
      id: "watcher_finds_the_new_state",
      promise: "Whoever looks when it is woken finds what was committed",
      async run(t) {
        const { wake, provider } = await t.open();
        await create(provider, "a");
        const found = new Promise<void>((resolve, reject) => {
          const look = async () => {
            if ((await provider.getInstanceStatus("a"))?.output === "done") resolve();
          };
          wake.watchInstance("a", () => void look().catch(reject));
        });
        await runTurn(provider, "a", { metadata: { status: "Completed", output: "done" } });
        await t.soon(found, "a look after a wake that finds the output");
        t.matches(await provider.getInstanceStatus("a"), { status: "Completed", output: "done" }, "the status");
      },
    },
    {
      id: "completion_that_is_told_is_true",
      promise: "Whoever is told that an instance has completed finds it so, with that output; nobody need be told",
      async run(t) {
        const { wake, provider } = await t.open();
        const watchers = new Map<string, Watcher>();
        for (const instance of ["a", "b"]) {
          const watcher = new Watcher();
          wake.watchInstance(instance, watcher.listener);
          watchers.set(instance, watcher);
          await create(provider, instance);
          await runTurn(provider, instance);
          await watcher.rest(t);
          t.equal(watcher.completions, [], `the completions that are told of '${instance}', which runs`);
        }
        await runTurn(provider, "a", { metadata: { status: "Completed", output: "done" } });
        await runTurn(provider, "b", { metadata: { status: "Failed", output: "broken" } });
        for (const [instance, watcher] of watchers) await watcher.hears(t, `the wake after the end of '${instance}'`);
        const told = watchers.get("a")!.completions;
        t.equal(told, told.length === 0 ? [] : ["done"], "what is told of the instance that has completed");
        t.equal(watchers.get("b")!.completions, [], "the completions that are told of the instance that has failed");
      },
    },
    {
      id: "completion_of_another_execution_is_not_told",
      promise: "That an execution has completed which is not the current one is not told of the instance",
      async run(t) {
        const { wake, provider } = await t.open();
        const metadata = { ...NAMED, status: "ContinuedAsNew" } as const;
        await create(provider, "a", { metadata, orchestratorItems: [continueAsNew("a")] });
        await runTurn(provider, "a", { executionId: 2, metadata: { ...NAMED, status: "Running" } });
        const watcher = new Watcher();
        wake.watchInstance("a", watcher.listener);
        await runTurn(provider, "a", { executionId: 1, metadata: { status: "Completed", output: "stale" } });
        await watcher.hears(t, "the wake after a turn of the execution before");
        await watcher.rest(t);
        t.equal(watcher.completions, [], "the completions that are told");
        t.matches(await provider.getInstanceStatus("a"), { status: "Running", executionId: 2 }, "the status");
      },
    },
    {
      id: "changes_that_are_counted",
      promise:
        "A source that counts what it tells has counted what was told, whether anybody watched or not; nobody need count",
      async run(t) {
        const { wake, provider } = await t.open();
        if (wake.changes === undefined) return;
        const watcher = new Watcher();
        wake.watchInstance("a", watcher.listener);
        const counts = [wake.changes];
        await create(provider, "a");
        await watcher.hears(t, "the wake after the first turn");
        counts.push(wake.changes);
        await watcher.rest(t);
        await runTurn(provider, "a", { metadata: { status: "Completed", output: "done" } });
        await watcher.hears(t, "the wake after the last turn");
        counts.push(wake.changes);
        await create(provider, "b");
        await watcher.rest(t);
        counts.push(wake.changes);
        t.equal(new Set(counts).size, counts.length, "the number of different counts");
      },
    },
    {
      id: "watcher_that_stopped_hears_nothing",
      promise: "Whoever has stopped to watch hears nothing more; to stop twice does nothing",
      async run(t) {
        const { wake, provider } = await t.open();
        const [stopped, other] = [new Watcher(), new Watcher()];
        const stop = wake.watchInstance("a", stopped.listener);
        wake.watchInstance("a", other.listener);
        await create(provider, "a");
        await stopped.hears(t, "the wake before it stops");

        stop();
        stop();
        const heard = stopped.count;
        await other.rest(t);
        await runTurn(provider, "a");
        await other.hears(t, "the wake of another one that still watches the instance");
        await other.rest(t);
        t.equal(stopped.count, heard, "the wakes that the one has heard that stopped");
      },
    },
    {
      id: "watcher_hears_of_another_process",
      promise: "Whoever watches an instance hears of what another process commits to it",
      async run(t) {
        const store = await t.open();
        const { wake } = store;
        const other = await store.openAnother();
        const watcher = new Watcher();
        wake.watchInstance("a", watcher.listener);
        await watcher.rest(t);
        await create(other, "a");
        await t.wait(t.lockMs);
        await watcher.hears(t, "the wake after the other process's commit");
        t.matches(await store.provider.getInstanceStatus("a"), { status: "Running" }, "the status that it then finds");
      },
    },
  ],
};

/** Someone who watches an instance. */
class Watcher {
  /** All wakes so far. */
  count = 0;
  #hasHeard = false;
  #tell = (): void => {};

  /** The outputs of the completions that it was told. */
  readonly completions: (string | null)[] = [];

  readonly listener = (change?: InstanceChange): void => {
    if (typeof change === "object") this.completions.push(change.output);
    this.count += 1;
    this.#hasHeard = true;
    this.#tell();
  };

  /** Waits for a wake since the last `rest`. */
  async hears(t: CaseContext, what: string): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      this.#tell = resolve;
      if (this.#hasHeard) resolve();
    });
    await t.soon(heard, what);
    t.ok(this.#hasHeard, what);
  }

  /** Lets all that is on its way arrive, and forgets it. */
  async rest(t: CaseContext): Promise<void> {
    await t.isPending(new Promise(() => {}));
    this.#hasHeard = false;
  }
}
