// test/providers/postgres-slots.ts — instances that have begun, and fetches that wait for what they do next, while time stands still.

import { expect, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import type { FetchOrchestrationOptions, TurnCommit } from "../../src/provider/provider.js";
import { act, event, NAMED, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { takeTurn } from "../../src/provider-tests/steps.js";
import type { PostgresProvider } from "../../src/providers/postgres/index.js";

/** Longer than any test. */
export const POLL = { lockTimeoutMs: 60_000, pollTimeoutMs: 600_000 };

/** What somebody has found empty stays so until there is news. */
export const STOPPED: Clock = {
  now: () => 1_000_000,
  setTimer: (delayMs, callback) => systemClock.setTimer(delayMs, callback),
};

export interface Beginning {
  readonly activities?: readonly number[];
  readonly sessionId?: string | undefined;
  readonly metadata?: TurnCommit["metadata"];
  readonly wants?: Partial<FetchOrchestrationOptions>;
}

/** An instance whose first turn has asked for these activities. Answers the token of that turn. */
export async function begin(provider: PostgresProvider, id: string, beginning: Beginning = {}): Promise<string> {
  const { activities = [], sessionId, metadata = {}, wants = {} } = beginning;
  const session = sessionId === undefined ? {} : { sessionId };
  await provider.enqueueForOrchestrator(start(id));
  const { lockToken } = await takeTurn(provider, wants);
  await provider.ackOrchestrationItem(
    lockToken,
    turn({
      events: [started(id), ...activities.map((n) => scheduled(id, n))],
      workerItems: activities.map((n) => act(id, n, session)),
      metadata: { ...NAMED, ...metadata },
    }),
  );
  return lockToken;
}

/** A turn that answers the outcome of activity 2 with nothing but its event. */
export function doneEvent(instance: string, eventId = 3): Partial<TurnCommit> {
  return { events: [event(instance, eventId, { type: "ActivityCompleted", result: "1" }, { sourceEventId: 2 })] };
}

/** Once round the event loop. */
export function round(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

type Fetch<Found> = (signal: AbortSignal) => Promise<Found | null>;

/** So many fetches, all of which wait when it resolves: after a look that found nothing, the next ones wait at once. */
export async function waiting<Found>(
  fetch: Fetch<Found>,
  ended: AbortSignal,
  count: number,
): Promise<readonly Promise<Found | null>[]> {
  const onlyLooks = new AbortController();
  const looked = fetch(onlyLooks.signal);
  onlyLooks.abort();
  expect(await looked).toBeNull();
  const found = Array.from({ length: count }, () => fetch(ended));
  await round();
  return found;
}

/** What has become of what a slot was handed. */
export interface SlotEnd {
  readonly instance: string;
  readonly lockToken: string;
}

/**
 * Fetches that wait, and commit this of whatever they get. Each resolves when that is committed, and rejects if it is refused;
 * whoever gets nothing until the test ends resolves to null.
 */
export async function slots(
  provider: PostgresProvider,
  count: number,
  warm: ReadonlyMap<string, string>,
  commitOf: (instance: string) => Partial<TurnCommit> = () => ({}),
  wants: Partial<FetchOrchestrationOptions> = {},
): Promise<readonly Promise<SlotEnd | null>[]> {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const fetch = (signal: AbortSignal) => provider.fetchOrchestrationItem({ ...POLL, warm, ...wants, signal });
  const ends = (await waiting(fetch, ended.signal, count)).map(async (found) => {
    const locked = await found;
    if (locked === null) return null;
    const { item, lockToken } = locked;
    await provider.ackOrchestrationItem(lockToken, turn(commitOf(item.instance)));
    return { instance: item.instance, lockToken };
  });
  for (const end of ends) end.catch(() => {}); // Some are refused, and not every test asks.
  return ends;
}
