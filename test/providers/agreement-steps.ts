// test/providers/agreement-steps.ts — everything that can be done to a provider, at random.

import fc from "fast-check";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { FetchOrchestrationOptions, FetchWorkOptions, TurnCommit } from "../../src/provider/provider.js";
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
import { type Generated, INSTANCES, step, type TurnLock, type World, whatOperatorsSee } from "./agreement-world.js";

const ms = fc.integer({ min: 0, max: 300 });
export const anyInstance = fc.constantFrom(...INSTANCES);
export const smallId = fc.integer({ min: 1, max: 4 });
export const sometimes = fc.integer({ min: 0, max: 2 }).map((number) => number === 0);
const seldom = fc.integer({ min: 0, max: 9 }).map((number) => number === 0);
const abandonment = fc.record({ delayMs: ms, ignoreAttempt: fc.boolean() }, { requiredKeys: [] });

/** Among the items below. */
const TIMER = 3;

export const enqueueTo = (to: fc.Arbitrary<string>) =>
  fc
    .record({
      to,
      kind: fc.integer({ min: 0, max: 7 }),
      id: smallId,
      isDelayed: fc.boolean(),
      delayMs: ms,
      ifAbsent: fc.boolean(),
    })
    .map((how) => ({
      isLate: how.kind === TIMER || (how.isDelayed && how.delayMs > 0),
      ...step("enqueue", how, async ({ provider, time }) => {
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
    }));

export const turnFetch = fc.record({
  lockTimeoutMs: ms,
  range: fc.option(fc.constantFrom("1.0.0..1.9.9", "2.0.0..2.5.0")),
  isWarm: fc.boolean(),
});

export function turnOptions({ turns }: World, { lockTimeoutMs, range, isWarm }: Generated<typeof turnFetch>) {
  const remembered = turns.map(({ instance, lockToken }) => [instance, lockToken] as const);
  const options: FetchOrchestrationOptions = {
    lockTimeoutMs: lockTimeoutMs + 1,
    ...(range === null ? {} : { capability: supports(range) }),
    ...(isWarm ? { warm: new Map(remembered) } : {}),
  };
  return options;
}

const fetchTurn = turnFetch.map((how) =>
  step("fetch", how, async (world) =>
    world.rememberTurn(await world.provider.fetchOrchestrationItem(turnOptions(world, how))),
  ),
);

/** What a turn decides. */
export const decisionsTo = (to: fc.Arbitrary<string>) =>
  fc.record({
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
    activity: fc.option(
      fc.record({ tag: fc.constant("x"), sessionId: fc.constantFrom("s", "t") }, { requiredKeys: [] }),
    ),
    id: smallId,
    to: fc.option(to),
    isCancelling: fc.boolean(),
  });

type Decisions = Generated<ReturnType<typeof decisionsTo>>;
const decisions = decisionsTo(anyInstance);

export const ack = fc
  .record({ which: fc.nat(), turn: decisions })
  .map((how) => step("ack", how, async (world) => commitTurn(world, world.turnLock(how.which), how.turn)));

/** From the message to the commit, without anything that could come in between. */
export const wholeTurn = fc.record({ of: anyInstance, turn: decisions }).map((how) =>
  step("whole turn", how, async (world) => {
    await world.provider.enqueueForOrchestrator(start(how.of));
    const locked = await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 1 });
    if (locked === null) return null;
    return commitTurn(world, { ...locked.item, lockToken: locked.lockToken }, { ...how.turn, isNamed: true });
  }),
);

async function commitTurn(world: World, lock: TurnLock, how: Decisions): Promise<TurnCommit> {
  const commit = await turnOf(world, lock, how);
  await world.provider.ackOrchestrationItem(lock.lockToken, commit);
  return commit;
}

export async function turnOf(
  world: World,
  { instance, executionId: current }: TurnLock,
  how: Decisions,
): Promise<TurnCommit> {
  const executionId = how.isNext ? current + 1 : current;
  const parent = how.parent === null ? {} : { parentInstanceId: how.parent };
  return turn({
    executionId,
    events: await eventsOf(world, instance, executionId, how.kinds, how.isDuplicate),
    metadata: { ...(how.isNamed ? NAMED : {}), ...parent, ...how.metadata },
    workerItems: how.activity === null ? [] : [act(instance, how.id, how.activity)],
    orchestratorItems: how.to === null ? [] : [start(how.to), timer(how.to, how.id, world.time + 50)],
    cancelledActivities: how.isCancelling ? [{ instance, executionId: 1, id: 1 }] : [],
    cancelledTimers: how.isCancelling ? [{ instance, executionId: 1, id: how.id }] : [],
  });
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

export const useTurnFor = (extendForMs: fc.Arbitrary<number>) =>
  fc.record({ which: fc.nat(), isRenewal: fc.boolean(), extendForMs, options: abandonment }).map((how) =>
    step("use turn", how, async (world) => {
      const { lockToken } = world.turnLock(how.which);
      if (how.isRenewal) return world.provider.renewOrchestrationItemLock(lockToken, how.extendForMs);
      return world.provider.abandonOrchestrationItem(lockToken, how.options);
    }),
  );

export const workFetch = fc.record(
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
);

const fetchWork = workFetch.map((options) =>
  step("fetch work", options, async (world) => world.rememberWork(await world.provider.fetchWorkItem(options))),
);

export const useWorkFor = (extendForMs: fc.Arbitrary<number>, to: fc.Arbitrary<string>) =>
  fc
    .record({
      which: fc.nat(),
      use: fc.constantFrom("ack", "abandon", "renew"),
      extendForMs,
      options: abandonment,
      to,
    })
    .map((how) =>
      step("use work", how, async (world) => {
        const lockToken = world.workLock(how.which);
        if (how.use === "ack") return world.provider.ackWorkItem(lockToken, done(how.to, 1));
        if (how.use === "abandon") return world.provider.abandonWorkItem(lockToken, how.options);
        return world.provider.renewWorkItemLock(lockToken, how.extendForMs);
      }),
    );

const enqueue = enqueueTo(anyInstance);
const useTurn = useTurnFor(ms);
const useWork = useWorkFor(ms, anyInstance);

const keepSessions = fc.boolean().map((isCleanup) =>
  step("keep sessions", { isCleanup }, async ({ provider }) => {
    if (isCleanup) return provider.cleanupOrphanedSessions({ idleTimeoutMs: 100 });
    return provider.renewSessionLock(["p", "q"], { extendForMs: 200, idleTimeoutMs: 150 });
  }),
);

export const someInstances = fc.subarray([...INSTANCES, "unknown"]);
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

export const pass = ms.map((delayMs) =>
  step("pass", delayMs, async (world) => {
    world.time += delayMs;
  }),
);

export const anyStep = fc.oneof(
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
