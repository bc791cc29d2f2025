// What is pending at one moment shares a transaction on SQLite, in which new work is handed to those who wait for it. Nobody
// can tell: everything happens as if the writes came one by one, then those who wait, then those who have just come.

import { inspect } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { FetchWorkOptions } from "../../src/provider/provider.js";
import { act } from "../../src/provider-tests/builders.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import {
  ack,
  anyInstance,
  anyStep,
  decisionsTo,
  enqueueTo,
  pass,
  smallId,
  someInstances,
  sometimes,
  turnFetch,
  turnOf,
  turnOptions,
  useTurnFor,
  useWorkFor,
  wholeTurn,
  workFetch,
} from "./agreement-steps.js";
import { type Generated, kindOf, outcomes, type Step, step, type World } from "./agreement-world.js";

const RUNS = Number(process.env.DUROXIDE_AGREEMENT_RUNS ?? 150);
const SEED = Number(process.env.DUROXIDE_AGREEMENT_SEED ?? 6);

/** A write of one call. `prepare` may look around before; the call is then made at once. */
interface Write {
  /** Whether it sends what is kept apart from the rest: a timer, a delay. See `writesOf`. */
  readonly isLate?: boolean;
  /** `mayFail`: also after it has written something. Then each of the moment is run by itself, and serves those who wait. */
  prepare(world: World, mayFail: boolean): Promise<() => Promise<unknown>>;
}

/** The steps that are one call need no preparation. */
function written(one: Step): Write {
  return { ...one, prepare: async (world) => () => one.run(world) };
}

const enqueueWork = fc
  .record({
    of: anyInstance,
    id: smallId,
    executionId: fc.integer({ min: 1, max: 2 }),
    isSession: sometimes,
    isTagged: sometimes,
  })
  .map((how) =>
    step("enqueue work", how, ({ provider }) => {
      const { executionId } = how;
      const place = { ...(how.isSession ? { sessionId: "s" } : {}), ...(how.isTagged ? { tag: "x" } : {}) };
      return provider.enqueueForWorker(act(how.of, how.id, { executionId, ...place }));
    }),
  );

const ackTo = (to: fc.Arbitrary<string>) =>
  fc.record({ which: fc.nat(), turn: decisionsTo(to) }).map((how): Write => {
    const named = step("ack", how, async () => {});
    return {
      ...named,
      async prepare(world, mayFail) {
        const lock = world.turnLock(how.which);
        const commit = await turnOf(world, lock, { ...how.turn, isDuplicate: mayFail && how.turn.isDuplicate });
        return () => world.provider.ackOrchestrationItem(lock.lockToken, commit);
      },
    };
  });

/** Not by nothing: the lock would end then and there, as by the passing of time, and of that nobody is told at once. */
const EXTENSION = fc.integer({ min: 1, max: 300 });

const writeTo = (to: fc.Arbitrary<string>): fc.Arbitrary<Write> =>
  fc.oneof(
    { arbitrary: enqueueTo(to).map(written), weight: 5 },
    { arbitrary: ackTo(to), weight: 5 },
    { arbitrary: useTurnFor(EXTENSION).map(written), weight: 2 },
    { arbitrary: useWorkFor(EXTENSION, to).map(written), weight: 3 },
  );

const removeAtomic = fc.record({ among: someInstances, force: fc.boolean() });

/** What is asked of both queues at one moment, while somebody waits for each. */
const meanwhile = (write: fc.Arbitrary<Write>) =>
  fc.record({
    poll: fc.option(turnFetch),
    workPoll: fc.option(workFetch),
    writes: fc.array(write, { minLength: 1, maxLength: 6 }),
    removal: fc.oneof({ arbitrary: fc.constant(null), weight: 6 }, { arbitrary: removeAtomic, weight: 1 }),
    fetches: fc.array(turnFetch, { maxLength: 2 }),
    workFetches: fc.array(workFetch, { maxLength: 2 }),
  });

type Meanwhile = Generated<ReturnType<typeof meanwhile>>;

interface Moment {
  readonly writes: readonly unknown[];
  readonly polled: readonly unknown[];
  readonly fetched: readonly unknown[];
}

/** Anything to anybody. */
const moment = meanwhile(
  fc.oneof({ arbitrary: writeTo(anyInstance), weight: 8 }, { arbitrary: enqueueWork.map(written), weight: 1 }),
).map(asStep);

/** All messages go to one instance, and nothing is scheduled but by its turn. */
const momentOfOne = anyInstance.chain((to) => meanwhile(writeTo(fc.constant(to)))).map(asStep);

function asStep(how: Meanwhile): Step {
  return step("at one moment", how, (world) =>
    world.provider.name === "memory" ? oneByOne(world, how) : atOneMoment(world, how),
  );
}

/** Those who wait have looked before, and come right after the writes; then those who fetch. */
async function oneByOne(world: World, how: Meanwhile): Promise<Moment> {
  const calls = await writesOf(world, how);
  const { polls, fetches } = fetchesOf(world, how);
  const early = await inTurn(polls, (poll) => poll({}));
  const writes = await inTurn(calls, (call) => call());
  const late = await inTurn(polls, (poll, place) =>
    early[place]?.hasFound ? Promise.resolve(early[place]) : poll({}),
  );
  const fetched = await inTurn(fetches, (fetch) => fetch({}));
  return { writes, polled: late.map(remembered), fetched: fetched.map(remembered) };
}

async function atOneMoment(world: World, how: Meanwhile): Promise<Moment> {
  const calls = await writesOf(world, how);
  const { polls, fetches } = fetchesOf(world, how);
  const caller = new AbortController();
  const waiting = polls.map((poll) => poll({ pollTimeoutMs: 60_000, signal: caller.signal }));
  await atRest();
  const answers = calls.map((call) => call());
  const fetching = fetches.map((fetch) => fetch({}));
  const [writes, fetched] = [await Promise.all(answers), await Promise.all(fetching)];
  await atRest();
  caller.abort();
  const polled = await Promise.all(waiting);
  return { writes, polled: polled.map(remembered), fetched: fetched.map(remembered) };
}

/**
 * As calls that need only be made, and never fail. What is late comes first: SQLite writes it first, and of messages of one
 * millisecond to different instances it takes the one that was written first.
 */
async function writesOf(world: World, how: Meanwhile): Promise<readonly (() => Promise<unknown>)[]> {
  const { writes, removal, poll, workPoll } = how;
  const mayFail = poll === null && workPoll === null;
  const inOrder = [...writes.filter(({ isLate }) => isLate), ...writes.filter(({ isLate }) => !isLate)];
  const calls = await Promise.all(inOrder.map((each) => each.prepare(world, mayFail)));
  if (removal !== null && mayFail) calls.push(() => world.admin.deleteInstancesAtomic(removal.among, removal.force));
  return calls.map((call) => () => call().catch(kindOf));
}

type Fetch = (wait: { readonly pollTimeoutMs?: number; readonly signal?: AbortSignal }) => Promise<Fetched>;

function fetchesOf(
  world: World,
  how: Meanwhile,
): { readonly polls: readonly Fetch[]; readonly fetches: readonly Fetch[] } {
  const ofTurn = (fetch: Generated<typeof turnFetch>): Fetch => {
    const options = turnOptions(world, fetch);
    return async (wait) => {
      const locked = await world.provider.fetchOrchestrationItem({ ...options, ...wait });
      return { hasFound: locked !== null, remember: () => world.rememberTurn(locked) };
    };
  };
  const ofWork =
    (options: FetchWorkOptions): Fetch =>
    async (wait) => {
      const locked = await world.provider.fetchWorkItem({ ...options, ...wait });
      return { hasFound: locked !== null, remember: () => world.rememberWork(locked) };
    };
  return {
    polls: [...(how.poll === null ? [] : [ofTurn(how.poll)]), ...(how.workPoll === null ? [] : [ofWork(how.workPoll)])],
    fetches: [...how.fetches.map(ofTurn), ...how.workFetches.map(ofWork)],
  };
}

/** What a fetch has brought. Remembered later, so that both worlds remember in the same order. */
interface Fetched {
  readonly hasFound: boolean;
  remember(): unknown;
}

function remembered(fetched: Fetched): unknown {
  return fetched.remember();
}

/** One after the other. */
async function inTurn<T, R>(all: readonly T[], act: (each: T, place: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const [place, each] of all.entries()) results.push(await act(each, place));
  return results;
}

/** Everybody has looked, and waits. */
async function atRest(): Promise<void> {
  for (let rounds = 0; rounds < 6; rounds += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** All that is left, once every lock has ended: as a set, because of those of one millisecond nobody promises an order. */
const drain: Step = step("drain", "all", async (world) => {
  world.time += 1_000;
  const left: unknown[] = [];
  const lockTimeoutMs = 1_000;
  for (let isMore = true; isMore; ) {
    const locked = await world.provider.fetchOrchestrationItem({ lockTimeoutMs });
    isMore = locked !== null;
    left.push(world.rememberTurn(locked));
  }
  const session = { ownerId: "r", lockTimeoutMs };
  for (let isMore = true; isMore; ) {
    const locked = await world.provider.fetchWorkItem({ lockTimeoutMs, tagFilter: { kind: "any" }, session });
    isMore = locked !== null;
    left.push(world.rememberWork(locked));
  }
  return left.map((each) => inspect(each, { depth: 9, sorted: true })).sort();
});

async function expectAgreement(steps: readonly Step[]): Promise<void> {
  const expected = await outcomes(async (clock) => new MemoryProvider({ clock }), steps);
  expect(await outcomes((clock) => SqliteProvider.open(":memory:", { clock }), steps)).toEqual(expected);
}

test("whatever has happened, and whatever comes at one moment, goes to those who wait and those who come as it would one by one", async () => {
  const before = fc.array(anyStep, { maxLength: 30, size: "max" });
  await fc.assert(
    fc.asyncProperty(before, moment, (steps, last) => expectAgreement([...steps, last, drain])),
    { numRuns: RUNS, seed: SEED },
  );
}, 120_000);

test("moment after moment it does so, for one instance at a time", async () => {
  const oneStep = fc.oneof(
    { arbitrary: momentOfOne, weight: 8 },
    { arbitrary: wholeTurn, weight: 2 },
    { arbitrary: ack, weight: 1 },
    { arbitrary: pass, weight: 3 },
  );
  const steps = fc.array(oneStep, { minLength: 5, maxLength: 25, size: "max" });
  await fc.assert(fc.asyncProperty(steps, expectAgreement), { numRuns: RUNS, seed: SEED });
}, 120_000);
