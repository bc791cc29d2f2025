// test/providers/agreement-world.ts — a provider to which things are done step by step, and all that one can see of it.
//
// The memory provider is the contract in its plainest form: whatever one does, another provider answers as it does.

import fc from "fast-check";
import type { Clock, Timer } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import type { ProviderAdmin } from "../../src/provider/admin.js";
import type { LockedOrchestrationItem, LockedWorkItem, Provider } from "../../src/provider/provider.js";

export const INSTANCES = ["a", "b", "c", "d"];

export interface TurnLock {
  readonly instance: string;
  readonly executionId: number;
  readonly lockToken: string;
}

/** One provider under test and its clock, with the locks that it has given out. Step by step, both worlds are alike. */
export class World implements Clock {
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

  /** Answers what can be compared. */
  rememberTurn(locked: LockedOrchestrationItem | null): unknown {
    if (locked === null) return null;
    this.turns.push({ ...locked.item, lockToken: locked.lockToken });
    return { ...locked, lockToken: null, item: { ...locked.item, warmAsOf: locked.item.warmAsOf !== null } };
  }

  rememberWork(locked: LockedWorkItem | null): unknown {
    if (locked !== null) this.work.push(locked.lockToken);
    return locked && { ...locked, lockToken: null };
  }
}

export type Generated<A> = A extends fc.Arbitrary<infer T> ? T : never;

/** Does one thing in a world, and answers with what came of it. */
export interface Step {
  run(world: World): Promise<unknown>;
}

/** `how` is for the report of a failure. */
export function step(what: string, how: unknown, run: Step["run"]): Step {
  return Object.assign({ run }, { [fc.toStringMethod]: () => `${what} ${fc.stringify(how)}` });
}

/** What one could see on the way: the answer of every step, and after it everything that a client can read. */
export async function outcomes(open: (clock: Clock) => Promise<Provider>, steps: readonly Step[]): Promise<unknown[]> {
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

export function kindOf(error: unknown): string {
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

export async function whatOperatorsSee(admin: ProviderAdmin): Promise<unknown> {
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
