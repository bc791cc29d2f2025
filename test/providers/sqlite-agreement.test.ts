// The memory provider is the contract in its plainest form. Whatever one does, SQLite answers as it does.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Clock, Timer } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { FetchWorkOptions, Provider, TurnCommit } from "../../src/provider/provider.js";
import {
  act,
  cancel,
  continueAsNew,
  done,
  kvAllCleared,
  kvCleared,
  kvSet,
  NAMED,
  queued,
  raised,
  scheduled,
  semver,
  start,
  started,
  statusSet,
  supports,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";

const INSTANCES = ["a", "b", "c"];

interface TurnLock {
  readonly instance: string;
  readonly executionId: number;
  readonly lockToken: string;
}

/** One provider under test and its clock, with the locks that it has given out. Step by step, both worlds are alike. */
class World implements Clock {
  time = 1_000_000;
  provider!: Provider;
  readonly turns: TurnLock[] = [];
  readonly work: string[] = [];
  readonly lastEventId = new Map<string, number>();

  static async open(open: (clock: Clock) => Promise<Provider>): Promise<World> {
    const world = new World();
    world.provider = await open(world);
    return world;
  }

  now(): number {
    return this.time;
  }

  setTimer(): Timer {
    return { clear: () => {} };
  }

  turnLock(which: number): TurnLock {
    return this.turns[which % Math.max(1, this.turns.length)] ?? { instance: "a", executionId: 1, lockToken: "none" };
  }

  workLock(which: number): string {
    return this.work[which % Math.max(1, this.work.length)] ?? "none";
  }
}

/** Does one thing in a world, and answers with what came of it. */
interface Step {
  run(world: World): Promise<unknown>;
}

/** `how` is for the report of a failure. */
function step(what: string, how: unknown, run: Step["run"]): Step {
  return Object.assign({ run }, { [fc.toStringMethod]: () => `${what} ${fc.stringify(how)}` });
}

const ms = fc.integer({ min: 0, max: 300 });
const anyInstance = fc.constantFrom(...INSTANCES);
const smallId = fc.integer({ min: 1, max: 4 });
const seldom = fc.integer({ min: 0, max: 9 }).map((number) => number === 0);
const abandonment = fc.record({ delayMs: ms, ignoreAttempt: fc.boolean() }, { requiredKeys: [] });

const enqueue = fc
  .record({
    to: anyInstance,
    kind: fc.integer({ min: 0, max: 7 }),
    id: smallId,
    isDelayed: fc.boolean(),
    delayMs: ms,
    ifAbsent: fc.boolean(),
  })
  .map((how) =>
    step("enqueue", how, async ({ provider, time }) => {
      const items: readonly OrchestratorItem[] = [
        start(how.to),
        start(how.to),
        continueAsNew(how.to),
        timer(how.to, how.id, time + how.delayMs),
        raised(how.to),
        queued(how.to),
        cancel(how.to),
        done(how.to, how.id),
      ];
      const { ifAbsent, delayMs } = how;
      return provider.enqueueForOrchestrator(items[how.kind]!, { ifAbsent, delayMs: how.isDelayed ? delayMs : 0 });
    }),
  );

const fetchTurn = fc
  .record({
    lockTimeoutMs: ms,
    range: fc.option(fc.constantFrom("1.0.0..1.9.9", "2.0.0..2.5.0")),
    mark: fc.option(smallId),
  })
  .map((how) =>
    step("fetch", how, async ({ provider, turns }) => {
      const { range, mark } = how;
      const marks = INSTANCES.map((id) => [id, { executionId: 1, lastEventId: mark ?? 0 }] as const);
      const locked = await provider.fetchOrchestrationItem({
        lockTimeoutMs: how.lockTimeoutMs + 1,
        ...(range === null ? {} : { capability: supports(range) }),
        ...(mark === null ? {} : { warm: new Map(marks) }),
      });
      if (locked !== null) turns.push({ ...locked.item, lockToken: locked.lockToken });
      return locked && { ...locked, lockToken: null };
    }),
  );

const ack = fc
  .record({
    which: fc.nat(),
    kinds: fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 3 }),
    metadata: fc.record(
      {
        status: fc.constantFrom("Running", "Completed", "Failed", "ContinuedAsNew"),
        output: fc.constant("output"),
        pinnedVersion: fc.constantFrom("1.2.3", "2.0.0", "2.5.1").map(semver),
      },
      { requiredKeys: [] },
    ),
    isNamed: fc.boolean(),
    isNext: seldom,
    isDuplicate: seldom,
    activity: fc.option(
      fc.record({ tag: fc.constant("x"), sessionId: fc.constantFrom("s", "t") }, { requiredKeys: [] }),
    ),
    id: smallId,
    to: fc.option(anyInstance),
    isCancelling: fc.boolean(),
  })
  .map((how) =>
    step("ack", how, async (world) => {
      const { instance, executionId: current, lockToken } = world.turnLock(how.which);
      const executionId = how.isNext ? current + 1 : current;
      const events = eventsOf(world, instance, executionId, how.kinds, how.isDuplicate);
      const commit: TurnCommit = turn({
        executionId,
        events,
        metadata: { ...(how.isNamed ? NAMED : {}), ...how.metadata },
        workerItems: how.activity === null ? [] : [act(instance, how.id, how.activity)],
        orchestratorItems: how.to === null ? [] : [start(how.to), timer(how.to, how.id, world.time + 50)],
        cancelledActivities: how.isCancelling ? [{ instance, executionId: 1, id: 1 }] : [],
        cancelledTimers: how.isCancelling ? [{ instance, executionId: 1, id: how.id }] : [],
      });
      await world.provider.ackOrchestrationItem(lockToken, commit);
      for (const { eventId } of events) world.lastEventId.set(`${instance} ${executionId}`, eventId);
      return commit;
    }),
  );

function eventsOf(
  world: World,
  instance: string,
  executionId: number,
  kinds: readonly number[],
  isDuplicate: boolean,
): readonly Event[] {
  let id = world.lastEventId.get(`${instance} ${executionId}`) ?? 0;
  return kinds.map((kind): Event => {
    if (!isDuplicate || id === 0) id += 1;
    const choices: readonly Event[] = [
      scheduled(instance, id),
      kvSet(instance, id, "k", String(id), world.time),
      kvSet(instance, id, "l\0", String(id), world.time),
      kvCleared(instance, id, "k"),
      kvAllCleared(instance, id),
      statusSet(instance, id, kinds.length > 1 ? "busy" : null),
    ];
    return id === 1 ? { ...started(instance), executionId } : choices[kind]!;
  });
}

const useTurn = fc
  .record({ which: fc.nat(), isRenewal: fc.boolean(), extendForMs: ms, options: abandonment })
  .map((how) =>
    step("use turn", how, async (world) => {
      const { lockToken } = world.turnLock(how.which);
      if (how.isRenewal) return world.provider.renewOrchestrationItemLock(lockToken, how.extendForMs);
      return world.provider.abandonOrchestrationItem(lockToken, how.options);
    }),
  );

const fetchWork = fc
  .record(
    {
      lockTimeoutMs: ms.map((timeoutMs) => timeoutMs + 1),
      tagFilter: fc.constantFrom<NonNullable<FetchWorkOptions["tagFilter"]>>(
        { kind: "any" },
        { kind: "tags", tags: ["x", "y"] },
        { kind: "default-and", tags: ["x"] },
      ),
      session: fc.record({ ownerId: fc.constantFrom("p", "q"), lockTimeoutMs: ms }),
    },
    { requiredKeys: ["lockTimeoutMs"] },
  )
  .map((options) =>
    step("fetch work", options, async ({ provider, work }) => {
      const locked = await provider.fetchWorkItem(options);
      if (locked !== null) work.push(locked.lockToken);
      return locked && { ...locked, lockToken: null };
    }),
  );

const useWork = fc
  .record({
    which: fc.nat(),
    use: fc.constantFrom("ack", "abandon", "renew"),
    extendForMs: ms,
    options: abandonment,
    to: anyInstance,
  })
  .map((how) =>
    step("use work", how, async (world) => {
      const lockToken = world.workLock(how.which);
      if (how.use === "ack") return world.provider.ackWorkItem(lockToken, done(how.to, 1));
      if (how.use === "abandon") return world.provider.abandonWorkItem(lockToken, how.options);
      return world.provider.renewWorkItemLock(lockToken, how.extendForMs);
    }),
  );

const keepSessions = fc.boolean().map((isCleanup) =>
  step("keep sessions", { isCleanup }, async ({ provider }) => {
    if (isCleanup) return provider.cleanupOrphanedSessions({ idleTimeoutMs: 100 });
    return provider.renewSessionLock(["p", "q"], { extendForMs: 200, idleTimeoutMs: 150 });
  }),
);

const pass = ms.map((delayMs) =>
  step("pass", delayMs, async (world) => {
    world.time += delayMs;
  }),
);

const anyStep = fc.oneof(
  { arbitrary: enqueue, weight: 4 },
  { arbitrary: fetchTurn, weight: 4 },
  { arbitrary: ack, weight: 4 },
  { arbitrary: useTurn, weight: 2 },
  { arbitrary: fetchWork, weight: 3 },
  { arbitrary: useWork, weight: 3 },
  { arbitrary: keepSessions, weight: 1 },
  { arbitrary: pass, weight: 2 },
);

/** What one could see on the way: the answer of every step, and after it everything that can be read. */
async function outcomes(open: (clock: Clock) => Promise<Provider>, steps: readonly Step[]): Promise<unknown[]> {
  const world = await World.open(open);
  const seen: unknown[] = [];
  for (const { run } of steps) {
    seen.push(await run(world).catch(kindOf));
    for (const instance of INSTANCES) seen.push(await everythingOf(world.provider, instance));
  }
  await world.provider[Symbol.asyncDispose]();
  return seen;
}

function kindOf(error: unknown): string {
  if (error instanceof ProviderError) return error.kind;
  throw error;
}

async function everythingOf(provider: Provider, instance: string): Promise<unknown> {
  return {
    history: await provider.read(instance),
    status: await provider.getInstanceStatus(instance),
    customStatus: await provider.getCustomStatus(instance, 1),
    values: [...(await provider.getKvAllValues(instance))].sort(),
    stats: await provider.getInstanceStats(instance),
  };
}

test("whatever is done to them, SQLite and memory give the same answers", async () => {
  const steps = fc.array(anyStep, { minLength: 20, maxLength: 80, size: "max" });
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const expected = await outcomes(async (clock) => new MemoryProvider({ clock }), given);
      expect(await outcomes((clock) => SqliteProvider.open(":memory:", { clock }), given)).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});
