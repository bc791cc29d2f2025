// The memory provider is the contract in its plainest form. Whatever one does, SQLite answers as it does.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Clock, Timer } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { ProviderAdmin } from "../../src/provider/admin.js";
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

const INSTANCES = ["a", "b", "c", "d"];

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

  static async open(open: (clock: Clock) => Promise<Provider>): Promise<World> {
    const world = new World();
    world.provider = await open(world);
    return world;
  }

  now(): number {
    return this.time;
  }

  get admin(): ProviderAdmin {
    return this.provider.admin!;
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
const sometimes = fc.integer({ min: 0, max: 2 }).map((number) => number === 0);
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
        start(how.to, { parentInstance: INSTANCES[how.id - 1]!, parentId: 2 }),
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
    isWarm: fc.boolean(),
  })
  .map((how) =>
    step("fetch", how, async ({ provider, turns }) => {
      const { range, isWarm } = how;
      const remembered = turns.map(({ instance, lockToken }) => [instance, lockToken] as const);
      const locked = await provider.fetchOrchestrationItem({
        lockTimeoutMs: how.lockTimeoutMs + 1,
        ...(range === null ? {} : { capability: supports(range) }),
        ...(isWarm ? { warm: new Map(remembered) } : {}),
      });
      if (locked !== null) turns.push({ ...locked.item, lockToken: locked.lockToken });
      if (locked === null) return null;
      return { ...locked, lockToken: null, item: { ...locked.item, warmAsOf: locked.item.warmAsOf !== null } };
    }),
  );

/** What a turn decides. */
const decisions = fc.record({
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
  parent: fc.option(anyInstance),
  isNext: sometimes,
  isDuplicate: seldom,
  activity: fc.option(fc.record({ tag: fc.constant("x"), sessionId: fc.constantFrom("s", "t") }, { requiredKeys: [] })),
  id: smallId,
  to: fc.option(anyInstance),
  isCancelling: fc.boolean(),
});

const ack = fc
  .record({ which: fc.nat(), turn: decisions })
  .map((how) => step("ack", how, async (world) => commitTurn(world, world.turnLock(how.which), how.turn)));

/** From the message to the commit, without anything that could come in between. */
const wholeTurn = fc.record({ of: anyInstance, turn: decisions }).map((how) =>
  step("whole turn", how, async (world) => {
    await world.provider.enqueueForOrchestrator(start(how.of));
    const locked = await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 1 });
    if (locked === null) return null;
    return commitTurn(world, { ...locked.item, lockToken: locked.lockToken }, { ...how.turn, isNamed: true });
  }),
);

async function commitTurn(
  world: World,
  { instance, executionId: current, lockToken }: TurnLock,
  how: typeof decisions extends fc.Arbitrary<infer Decisions> ? Decisions : never,
): Promise<TurnCommit> {
  const executionId = how.isNext ? current + 1 : current;
  const parent = how.parent === null ? {} : { parentInstanceId: how.parent };
  const commit: TurnCommit = turn({
    executionId,
    events: await eventsOf(world, instance, executionId, how.kinds, how.isDuplicate),
    metadata: { ...(how.isNamed ? NAMED : {}), ...parent, ...how.metadata },
    workerItems: how.activity === null ? [] : [act(instance, how.id, how.activity)],
    orchestratorItems: how.to === null ? [] : [start(how.to), timer(how.to, how.id, world.time + 50)],
    cancelledActivities: how.isCancelling ? [{ instance, executionId: 1, id: 1 }] : [],
    cancelledTimers: how.isCancelling ? [{ instance, executionId: 1, id: how.id }] : [],
  });
  await world.provider.ackOrchestrationItem(lockToken, commit);
  return commit;
}

async function eventsOf(
  world: World,
  instance: string,
  executionId: number,
  kinds: readonly number[],
  isDuplicate: boolean,
): Promise<readonly Event[]> {
  let id = (await world.provider.readWithExecution(instance, executionId)).at(-1)?.eventId ?? 0;
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

const someInstances = fc.subarray([...INSTANCES, "unknown"]);
const ago = fc.option(ms, { nil: undefined });

const remove = fc
  .record({
    what: fc.constantFrom("tree", "atomic", "bulk"),
    from: anyInstance,
    force: fc.boolean(),
    among: fc.option(someInstances, { nil: undefined }),
    limit: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
    ago,
  })
  .map((how) =>
    step("remove", how, async ({ admin, time }) => {
      if (how.what === "tree") return admin.deleteInstance(how.from, how.force);
      if (how.what === "atomic") return admin.deleteInstancesAtomic(how.among ?? [how.from], how.force);
      return admin.deleteInstanceBulk(filterOf(how, time));
    }),
  );

const prune = fc
  .record({
    of: fc.option(anyInstance),
    among: fc.option(someInstances, { nil: undefined }),
    limit: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
    ago,
    keepLast: fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined }),
    endedAgo: ago,
  })
  .map((how) =>
    step("prune", how, async ({ admin, time }) => {
      const { keepLast, endedAgo } = how;
      const options = endedAgo === undefined ? { keepLast } : { keepLast, completedBeforeMs: time - endedAgo };
      if (how.of !== null) return admin.pruneExecutions(how.of, options);
      return admin.pruneExecutionsBulk(filterOf(how, time), options);
    }),
  );

function filterOf(
  how: { readonly among?: readonly string[]; readonly limit?: number; readonly ago?: number },
  time: number,
) {
  return {
    ...(how.among === undefined ? {} : { instanceIds: how.among }),
    limit: how.limit,
    completedBeforeMs: how.ago === undefined ? undefined : time - how.ago,
  };
}

const look = fc.constant(step("look", "as an operator", async ({ admin }) => whatOperatorsSee(admin)));

const pass = ms.map((delayMs) =>
  step("pass", delayMs, async (world) => {
    world.time += delayMs;
  }),
);

const anyStep = fc.oneof(
  { arbitrary: enqueue, weight: 4 },
  { arbitrary: fetchTurn, weight: 4 },
  { arbitrary: ack, weight: 4 },
  { arbitrary: wholeTurn, weight: 4 },
  { arbitrary: useTurn, weight: 2 },
  { arbitrary: fetchWork, weight: 3 },
  { arbitrary: useWork, weight: 3 },
  { arbitrary: keepSessions, weight: 1 },
  { arbitrary: pass, weight: 2 },
  { arbitrary: remove, weight: 2 },
  { arbitrary: prune, weight: 2 },
  { arbitrary: look, weight: 4 },
);

/** What one could see on the way: the answer of every step, and after it everything that a client can read. */
async function outcomes(open: (clock: Clock) => Promise<Provider>, steps: readonly Step[]): Promise<unknown[]> {
  const world = await World.open(open);
  const seen: unknown[] = [];
  for (const { run } of steps) {
    seen.push(await run(world).catch(kindOf));
    for (const instance of INSTANCES) seen.push(await everythingOf(world.provider, instance));
  }
  seen.push(await whatOperatorsSee(world.admin));
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

async function whatOperatorsSee(admin: ProviderAdmin): Promise<unknown> {
  return {
    instances: await admin.listInstances(),
    running: await admin.listInstancesByStatus("Running"),
    completed: await admin.listInstancesByStatus("Completed"),
    failed: await admin.listInstancesByStatus("Failed"),
    continuedAsNew: await admin.listInstancesByStatus("ContinuedAsNew"),
    metrics: await admin.getSystemMetrics(),
    depths: await admin.getQueueDepths(),
    details: await Promise.all(INSTANCES.map((instance) => detailsOf(admin, instance))),
  };
}

async function detailsOf(admin: ProviderAdmin, instance: string): Promise<unknown> {
  const executions = await admin.listExecutions(instance);
  return {
    info: await admin.getInstanceInfo(instance).catch(kindOf),
    parent: await admin.getParentId(instance).catch(kindOf),
    children: await admin.listChildren(instance),
    tree: await admin.getInstanceTree(instance).catch(kindOf),
    latest: await admin.latestExecutionId(instance),
    executions: await Promise.all(executions.map((executionId) => admin.getExecutionInfo(instance, executionId))),
    missing: await admin.getExecutionInfo(instance, 99).catch(kindOf),
    history: await admin.readHistory(instance),
    first: await admin.readHistoryWithExecutionId(instance, 1),
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
