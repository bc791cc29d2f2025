// Whoever starts an instance knows where it stands without a look, until anything happens to it. What it says then is what
// the tables say, whoever has written them.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import type { ExecutionMetadata, Provider } from "../../src/provider/provider.js";
import { NAMED, raised, start, started, turn } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, takeTurn } from "../../src/provider-tests/steps.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { openStore } from "./sqlite-store.js";

const PENDING = { status: "Pending", executionId: 1, output: null, customStatus: null, customStatusVersion: 0 };
const ONCE = { ifAbsent: true } as const;

/** Two connections to one file. */
async function openTwo(): Promise<{ readonly one: Provider; readonly two: Provider; readonly clock: VirtualClock }> {
  const clock = new VirtualClock();
  const { provider: one, file } = await openStore({ clock });
  const two = await SqliteProvider.open(file, { durability: "process-crash", clock });
  onTestFinished(() => two.close());
  return { one, two, clock };
}

async function firstTurn(provider: Provider, metadata: ExecutionMetadata = {}): Promise<void> {
  const { lockToken } = await takeTurn(provider);
  const commit = turn({ events: [started("a")], metadata: { ...NAMED, ...metadata } });
  await provider.ackOrchestrationItem(lockToken, commit);
}

const LAST = { status: "Completed", output: '"done"' } as const;

type Story = (one: Provider, two: Provider) => Promise<unknown>;

const STORIES: Readonly<Record<string, readonly [story: Story, seen: object | null]>> = {
  "nothing happens to it": [async () => {}, { ...PENDING, orchestrationName: "Order" }],
  "others are started": [(one) => one.enqueueForOrchestrator(start("b"), ONCE), PENDING],
  "it is started a second time, in vain": [
    (one) => one.enqueueForOrchestrator(start("a", { orchestration: "Another" }), ONCE),
    { ...PENDING, orchestrationName: "Order" },
  ],
  "a message is sent to it": [(one) => one.enqueueForOrchestrator(raised("a")), PENDING],
  "it is fetched": [(one) => takeTurn(one), PENDING],
  "it is given back": [
    async (one) => one.abandonOrchestrationItem((await takeTurn(one)).lockToken, { delayMs: 5_000 }),
    PENDING,
  ],
  "it has its first turn": [(one) => firstTurn(one), { status: "Running" }],
  "it has its first turn in another process": [(_, two) => firstTurn(two), { status: "Running" }],
  "its only turn is its last": [(one) => firstTurn(one, LAST), LAST],
  "its only turn, in another process, is its last": [(_, two) => firstTurn(two, LAST), LAST],
  "its history is written beside all turns": [
    (one) => one.appendWithExecution("a", 1, [started("a")]),
    { status: "Running" },
  ],
  "another process writes its history": [
    (_, two) => two.appendWithExecution("a", 1, [started("a")]),
    { status: "Running" },
  ],
};

describe("what its starter says of an instance is what the tables say, after", () => {
  test.each(Object.entries(STORIES))("%s", async (_, [story, seen]) => {
    const { one, two } = await openTwo();
    expect(await one.enqueueForOrchestrator(start("a", { orchestration: "Order" }), ONCE)).toBe("enqueued");
    await story(one, two);

    const status = await one.getInstanceStatus("a");
    expect(status).toMatchObject(seen ?? {});
    expect(status).toEqual(await two.getInstanceStatus("a"));
  });
});

test("of two starts the first counts, also where it is held back", async () => {
  for (const starter of ["one", "two"] as const) {
    const stores = await openTwo();
    await stores.one.enqueueForOrchestrator(start("a", { orchestration: "Later" }), { ...ONCE, delayMs: 5_000 });
    await stores[starter].enqueueForOrchestrator(start("a", { orchestration: "Now" }));

    const status = await stores.one.getInstanceStatus("a");
    expect(status).toMatchObject({ orchestrationName: "Later" });
    expect(status).toEqual(await stores.two.getInstanceStatus("a"));
  }
});

test("a reader sees what another process had committed when it asked, however often it has asked before", async () => {
  const { one, two } = await openTwo();
  for (const instance of ["a", "b", "c"]) {
    expect(await Promise.all([one.getInstanceStatus(instance), one.read(instance)])).toEqual([null, []]);
    await create(two, instance);
    expect(await Promise.all([one.getInstanceStatus(instance), one.read(instance)])).toMatchObject([
      { status: "Running" },
      [started(instance)],
    ]);
  }
});

test("of two starts the one that is due first counts, also where a clock was set back in between", async () => {
  const now = { ms: 1_000_000 };
  const clock: Clock = { now: () => now.ms, setTimer: () => ({ clear: () => {} }) };
  const { provider: one, file } = await openStore({ clock });
  const two = await SqliteProvider.open(file, { clock });
  onTestFinished(() => two.close());
  await one.enqueueForOrchestrator(start("a", { orchestration: "First" }), ONCE);
  now.ms -= 10;
  await one.enqueueForOrchestrator(start("a", { orchestration: "Second" }));

  const seen = { orchestrationName: "Second" };
  expect([await one.getInstanceStatus("a"), await two.getInstanceStatus("a")]).toMatchObject([seen, seen]);
});

test("a reader sees what another connection has answered for, at the very moment of the answer", async () => {
  const { one, two } = await openTwo();
  await create(two, "h");
  const twice = two.appendWithExecution("h", 1, [started("h")]); // Refused: then each call of its commit is run alone.
  const readers = twice.catch(() => one.getInstanceStatus("s"));
  const seen = two.enqueueForOrchestrator(start("s"), ONCE).then(() => one.getInstanceStatus("s"));

  await readers; // It may have looked before or after the start.
  expect(await seen).toMatchObject(PENDING);
});

test("a start that went with its parent is nobody's", async () => {
  const { one, two } = await openTwo();
  await create(one, "p");
  await one.enqueueForOrchestrator(start("c", { parentInstance: "p", parentId: 2 }), ONCE);
  await one.admin?.deleteInstance("p", true);

  expect([await one.getInstanceStatus("c"), await two.getInstanceStatus("c")]).toEqual([null, null]);
});

test("a start that was refused by a full disk is none", async () => {
  const { provider } = await openStore({ clock: new VirtualClock(), maxDatabaseBytes: 1_048_576 });
  const full = provider.enqueueForOrchestrator(start("a", { input: JSON.stringify("x".repeat(2_000_000)) }), ONCE);
  await expect(full).rejects.toBeInstanceOf(ProviderError);

  expect(await provider.getInstanceStatus("a")).toBeNull();
  expect(await provider.enqueueForOrchestrator(start("a"), ONCE)).toBe("enqueued");
  expect(await provider.getInstanceStatus("a")).toMatchObject(PENDING);
});

test("its first turn is locked until it is committed, also where it came without a look", async () => {
  const { one, two } = await openTwo();
  const [, locked] = await Promise.all([one.enqueueForOrchestrator(start("a"), ONCE), fetchTurn(one)]);
  expect(locked).toMatchObject({ attemptCount: 1, item: { instance: "a", executionId: 1, messages: [start("a")] } });
  const late = await Promise.all([one.enqueueForOrchestrator(raised("a")), fetchTurn(one), fetchTurn(two)]);
  expect(late.slice(1)).toEqual([null, null]);

  await one.ackOrchestrationItem(locked!.lockToken, turn({ events: [started("a")], metadata: NAMED }));
  expect((await takeTurn(two)).item.messages).toEqual([raised("a")]);
});
