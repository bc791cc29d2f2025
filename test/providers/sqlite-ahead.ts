// test/providers/sqlite-ahead.ts — stores from which turns go ahead, and who takes them.

import { isDeepStrictEqual } from "node:util";
import { expect, onTestFinished } from "vitest";
import type { Clock } from "../../src/clock.js";
import type { LockedOrchestrationItem, Provider, TurnCommit } from "../../src/provider/provider.js";
import { act, completed, NAMED, scheduled, started, turn } from "../../src/provider-tests/builders.js";
import { fetchTurn } from "../../src/provider-tests/steps.js";
import { type SqliteOptions, SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import type { Warm } from "./running-instance.js";
import { openConnection } from "./sqlite-connection.js";
import { commitsIn, openStore } from "./sqlite-store.js";

export const WAITS = { pollTimeoutMs: 60_000 };
export const ABSENT = { ifAbsent: true } as const;
export const LOST = { kind: "lock-lost" };
/** All starts may go ahead, so that a test need not prove an orchestration first. */
export const ALWAYS = { startsGoAhead: "always" } as const;

export async function open(options: SqliteOptions = {}) {
  const clock = new VirtualClock();
  const store = await openStore({ clock, ...options });
  const connection = await openConnection(store.file);
  onTestFinished(() => connection.close());
  const count = (table: string): unknown =>
    (connection.prepare(`SELECT COUNT(*) AS n FROM duroxide_${table}`).get() as { readonly n: number }).n;
  const commits = () => commitsIn(store.file);
  return { clock, ...store, connection, count, commits };
}

/** Waits for a turn, and does `take` with it as soon as it is there. */
export async function onTurn<T>(
  clock: VirtualClock,
  provider: Provider,
  warm: Warm,
  take: (locked: LockedOrchestrationItem) => T,
): Promise<{ readonly taken: Promise<Awaited<T>> }> {
  const taken = fetchTurn(provider, { ...WAITS, warm }).then((locked) => take(locked!));
  await clock.advance(0);
  return { taken: taken as Promise<Awaited<T>> };
}

/** A turn of the instance that answers an activity and asks for the next one. */
export const NEXT = (name: string, id = 2) =>
  turn({ events: [completed(name, id + 1), scheduled(name, id + 2)], workerItems: [act(name, id + 2)] });

/** The first turn of an instance, which asks for an activity. */
export const FIRST = (name: string) =>
  turn({ events: [started(name), scheduled(name, 2)], workerItems: [act(name, 2)], metadata: NAMED });

/** The only turn of an instance. */
export const ONLY = (name: string) =>
  turn({
    events: [started(name), completed(name, 2)],
    metadata: { ...NAMED, status: "Completed", output: '"done"' },
  });

/** Takes the next turn as soon as it is there, and acks it with this one. */
export function ackNext(clock: VirtualClock, provider: Provider, commit: (name: string) => TurnCommit) {
  return onTurn(clock, provider, new Map(), ({ lockToken, item }) =>
    provider.ackOrchestrationItem(lockToken, commit(item.instance)),
  );
}

/** A store whose time is what the test says: also in the middle of a turn. */
export async function openAt(options: SqliteOptions = {}) {
  const { file } = await openStore();
  const time = { now: 1_000_000 };
  const clock: Clock = { now: () => time.now, setTimer: () => ({ clear: () => {} }) };
  const provider = await SqliteProvider.open(`${file}-at`, { durability: "process-crash", clock, ...options });
  onTestFinished(() => provider.close());
  return { provider, time, commits: () => commitsIn(`${file}-at`) };
}

/** Those who have come to wait do. */
export async function waiting(): Promise<void> {
  for (let rounds = 0; rounds < 5; rounds += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Whether the turn was there before the commit of what it answers. */
export async function goesAhead(
  { clock, provider, connection }: Awaited<ReturnType<typeof open>>,
  warm: Warm,
  cause: () => Promise<unknown>,
): Promise<boolean> {
  const messages = connection.prepare("SELECT instance_id FROM duroxide_orchestrator_queue");
  const before = messages.all();
  const { taken } = await onTurn(clock, provider, warm, () => messages.all());
  await cause();
  expect(messages.all()).not.toEqual(before);
  return isDeepStrictEqual(await taken, before);
}
