// What falls due is looked for, whenever that is: also while a transaction is open, and between two that follow each other at once.

import { expect, onTestFinished, test } from "vitest";
import type { LockedOrchestrationItem, Provider } from "../../src/provider/provider.js";
import {
  act,
  completed,
  done,
  NAMED,
  raised,
  scheduled,
  start,
  started,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import { fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { HandClock } from "./hand-clock.js";
import { running, type Warm } from "./running-instance.js";

const FOR_EVER = { pollTimeoutMs: 1_000_000_000 };
/** Of another group of fetches than those that say nothing. */
const OTHER_GROUP = {
  capability: { supportedVersions: [{ min: { major: 0, minor: 0, patch: 0 }, max: { major: 9, minor: 0, patch: 0 } }] },
};
/** More than this many calls are two transactions, one right after the other. */
const CALLS_IN_A_BATCH = 200;

async function open() {
  const clock = new HandClock();
  const provider = await SqliteProvider.open(":memory:", { clock, crossProcessPollMs: 0 });
  onTestFinished(() => provider.close());
  const warm: Warm = new Map();
  const heard: string[] = [];
  const beganAt = clock.time;
  /** Waits for a turn, and tells what it got and when. */
  const slot = async (name: string, options: object = {}): Promise<LockedOrchestrationItem> => {
    const locked = (await fetchTurn(provider, { ...FOR_EVER, warm, ...options }))!;
    const types = locked.item.messages.map(({ type }) => type).join();
    heard.push(`${name}: ${locked.item.instance} ${types} after ${clock.time - beganAt}`);
    return locked;
  };
  return { clock, provider, warm, heard, slot };
}

const setsTimer = (fireAtMs: number) =>
  turn({ events: [completed("a", 3)], orchestratorItems: [timer("a", 4, fireAtMs)] });

/** Calls that do nothing, so that what comes next is in another transaction. */
function fillBatch(provider: Provider): void {
  for (let calls = 1; calls < CALLS_IN_A_BATCH; calls += 1) void provider.abandonWorkItem("x:1");
}

test("a timer that fell due while the transaction of its turn was open goes to a fetch that came with it", async () => {
  const { clock, provider, warm, heard, slot } = await open();
  const held = await running(provider, "a", warm);
  await provider.enqueueForOrchestrator(start("b"), { ifAbsent: true });
  const b = await takeTurn(provider, { lockTimeoutMs: 1_000 });
  const ahead = slot("first").then(({ lockToken }) => {
    const acked = provider.ackOrchestrationItem(lockToken, setsTimer(clock.time + 3));
    clock.time += 5;
    return acked;
  });
  await clock.rounds(5);
  await provider.ackOrchestrationItem(b.lockToken, turn({ events: [started("b")], metadata: NAMED }));
  clock.time += 1_000;
  const handedIn = provider.ackWorkItem(held.lockToken, done("a", 2));
  void slot("second", OTHER_GROUP);
  await Promise.all([handedIn, ahead]);
  await clock.rounds();
  await clock.seconds(60);

  expect(heard).toEqual(["first: a ActivityCompleted after 1000", "second: a TimerFired after 1005"]);
});

test("a timer that fell due while the transaction of its turn was open goes to a slot that came meanwhile", async () => {
  const { clock, provider, warm, heard, slot } = await open();
  const held = await running(provider, "a", warm);
  const heldC = await running(provider, "c", warm);
  const next = turn({ events: [completed("c", 3), scheduled("c", 4)], workerItems: [act("c", 4)] });
  const alone = slot("alone").then(async ({ lockToken }) => {
    await provider.ackOrchestrationItem(lockToken, next); // One has gone ahead: now two may.
    warm.set("c", lockToken);
  });
  await clock.rounds(5);
  await Promise.all([provider.ackWorkItem(heldC.lockToken, done("c", 2)), alone]);
  const heldC4 = await takeWork(provider);
  await clock.rounds(5);

  const take = async (name: string): Promise<void> => {
    const { item, lockToken } = await slot(name);
    if (item.instance === "a") {
      void slot("third");
      return provider.ackOrchestrationItem(lockToken, setsTimer(clock.time + 3));
    }
    await new Promise((resolve) => setImmediate(resolve)); // A turn that takes a round of the event loop.
    clock.time += 5;
    return provider.ackOrchestrationItem(lockToken, turn({ events: [completed("c", 5)] }));
  };
  const turns = [take("first"), take("second")];
  await clock.rounds(5);
  const outcomes = [
    provider.ackWorkItem(held.lockToken, done("a", 2)),
    provider.ackWorkItem(heldC4.lockToken, done("c", 4)),
  ];
  await Promise.all([...outcomes, ...turns]);
  await clock.rounds();
  await clock.seconds(60);

  expect(heard.at(-1)).toBe("third: a TimerFired after 5");
});

test("a delayed message that fell due between its transaction and the next goes to a fetch that looked in that", async () => {
  const { clock, provider, heard, slot } = await open();
  for (const name of ["a", "b"]) {
    await provider.enqueueForOrchestrator(start(name), { ifAbsent: true });
    const { lockToken } = await takeTurn(provider);
    await provider.ackOrchestrationItem(lockToken, turn({ events: [started(name)], metadata: NAMED }));
  }
  await provider.enqueueForOrchestrator(raised("b"));
  await takeTurn(provider, { lockTimeoutMs: 86_400_000 });
  await provider.enqueueForOrchestrator(raised("b")); // Waits behind the lock: so fetches look.
  const giveUp = new AbortController();
  const before = fetchTurn(provider, { ...FOR_EVER, signal: giveUp.signal });
  await clock.rounds(3);
  giveUp.abort();
  await before;

  void provider.enqueueForOrchestrator(raised("a"), { delayMs: 1 });
  fillBatch(provider);
  void slot("first");
  const first = clock.reads;
  clock.onRead = (reads) => {
    if (reads === first + 4) clock.time += 2; // The first transaction has read the time three times. Its commit takes 2 ms.
  };
  await clock.rounds();
  await clock.seconds(60);

  expect(heard).toEqual(["first: a ExternalRaised after 2"]);
});

test("a session whose lock ended after the look of a fetch, before somebody else saw to what had fallen due, is taken over", async () => {
  const { clock, provider } = await open();
  const inSession = (ownerId: string) => ({ session: { ownerId, lockTimeoutMs: 100 }, lockTimeoutMs: 60_000 });
  const endsAt = clock.time + 100;
  await provider.enqueueForWorker({ ...act("i", 2), sessionId: "s" });
  await takeWork(provider, inSession("A"));
  await provider.enqueueForWorker({ ...act("i", 3), sessionId: "s" });
  clock.time = endsAt - 1;

  const got = fetchWork(provider, { ...FOR_EVER, ...inSession("B") });
  fillBatch(provider);
  void fetchWork(provider, { tagFilter: { kind: "tags", tags: ["other"] } });
  const first = clock.reads;
  clock.onRead = (reads) => {
    if (reads >= first + 4) clock.time = Math.max(clock.time, endsAt);
  };
  await clock.rounds();

  expect((await got)?.item.id).toBe(3);
});

test.each([
  ["taken", { lockTimeoutMs: 0 }, false],
  ["renewed", {}, true],
])("an activity that is %s for no time at all goes to who waits", async (_, options, isRenewed) => {
  const { clock, provider } = await open();
  await provider.enqueueForWorker(act("i", 2));
  const waiting = fetchWork(provider, { ...FOR_EVER, tagFilter: { kind: "tags", tags: ["other"] } });
  await clock.rounds(3);
  const first = await takeWork(provider, options);
  const next = fetchWork(provider, FOR_EVER);
  await clock.rounds(3);
  if (isRenewed) await provider.renewWorkItemLock(first.lockToken, 0);
  await clock.rounds();

  expect((await next)?.item.id).toBe(2);
  await provider.enqueueForWorker({ ...act("i", 3), tag: "other" });
  expect((await waiting)?.item.id).toBe(3);
});
