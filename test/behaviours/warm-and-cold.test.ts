// Whether an orchestration goes on from memory, is replayed from its history for every turn, or is thrown out of memory now
// and then: it takes the same decisions. Random orchestrations, each in several worlds that differ in nothing else.
//
// Time is what keeps the worlds alike. Everything from outside comes at a time of its own, one slot runs all turns, and time
// stands still while it does: so every turn finds the same messages, however long turns take.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import type { Event } from "../../src/history/event.js";
import type { ActivityContext } from "../../src/runtime/activity-context.js";
import type { TestRuntime } from "../../src/testing/test-runtime.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import {
  interpret,
  type Program,
  pick,
  type Random,
  randomProgram,
  type Step,
  seeded,
} from "../engine/random-program.js";
import { STORES, type Store } from "./stores.js";

const RUNS = Number(process.env.DUROXIDE_WARM_AND_COLD_RUNS ?? 30);
const SEED = Number(process.env.DUROXIDE_WARM_AND_COLD_SEED ?? 6);

/** A millisecond of the programs. Long, so that hardly two things ever happen at one time. */
const TICK_MS = 10_007;
/** Far longer than any program goes on by itself. */
const END_MS = 3_000 * TICK_MS;

/** So many that programs rarely come to rest before their end, and in a time in which they go on by themselves, too. */
const MOST_MESSAGES = 30;
const SPAN_MS = 200 * TICK_MS;

const INSTANCE = "random";

/** One life of a program, and what comes to it from outside. */
interface Script {
  readonly first: Program;
  /** What it continues as. */
  readonly next: Program;
  readonly children: Readonly<Record<string, Program>>;
  readonly messages: readonly Message[];
}

interface Message {
  readonly atMs: number;
  send(client: Client): Promise<void>;
}

/** What a world does with the memory of its runtime. */
interface Memory {
  readonly name: string;
  readonly warmCacheBytes?: number;
  /** Whether the runtime that takes the turns dies before this message, and another begins with nothing. */
  readonly dies: (random: Random) => boolean;
}

const NEVER = (): boolean => false;

/** Room for one instance or two, of the many that a program makes. */
const FEW_BYTES = 25_000;

const WARM: Memory = { name: "warm", dies: NEVER };
const OTHERS: readonly Memory[] = [
  { name: "replayed for every turn", warmCacheBytes: 0, dies: NEVER },
  { name: "with room for few", warmCacheBytes: FEW_BYTES, dies: NEVER },
  { name: "killed now and then", dies: (random) => random() < 0.5 },
  { name: "killed all the time, with room for few", warmCacheBytes: FEW_BYTES, dies: () => true },
];

function scriptOf(seed: number): Script {
  const random = seeded(seed);
  const finite = (depth: number): Program => randomProgram(random, depth).flatMap(withoutContinuation);
  return {
    first: randomProgram(random),
    next: finite(0),
    children: { a: finite(1).flatMap(withoutChildren), b: finite(2).flatMap(withoutChildren) },
    messages: Array.from({ length: Math.floor(random() * MOST_MESSAGES) }, (_, place) =>
      randomMessage(random, place),
    ).sort((one, other) => one.atMs - other.atMs),
  };
}

function randomMessage(random: Random, place: number): Message {
  const atMs = Math.floor(random() * SPAN_MS);
  const name = pick(random, ["a", "b"]);
  const roll = random();
  return {
    atMs,
    send(client) {
      if (roll < 0.4) return client.raiseEvent(INSTANCE, name, `event ${place}`);
      if (roll < 0.95) return client.enqueueEvent(INSTANCE, name, `message ${place}`);
      return client.cancel(INSTANCE, `reason ${place}`);
    },
  };
}

/** What a program does in its second life, so that it ends some time. */
function withoutContinuation(step: Step): readonly Step[] {
  return step.op === "continueAsNew" ? [] : [within(step, withoutContinuation)];
}

/** What a child does, so that it has no children of its own. */
function withoutChildren(step: Step): readonly Step[] {
  if (step.op === "detached") return [];
  if ("leaf" in step && step.leaf.op === "child") return [];
  if (step.op === "cancel" && step.after?.op === "child") return [{ ...step, after: null }];
  return [within(step, withoutChildren)];
}

function within(step: Step, change: (step: Step) => readonly Step[]): Step {
  const all = (program: Program): Program => program.flatMap(change);
  switch (step.op) {
    case "hold":
      return { ...step, meanwhile: change(step.meanwhile)[0] ?? NOTHING };
    case "helper":
      return { ...step, body: all(step.body), meanwhile: change(step.meanwhile)[0] ?? NOTHING };
    case "combine":
      return {
        ...step,
        branches: step.branches.map((branch) => {
          if (branch.kind === "code") return { ...branch, body: all(branch.body) };
          const [kept] = change({ op: "forget", leaf: branch.leaf });
          return kept === undefined ? { kind: "task", leaf: { op: "now" } } : branch;
        }),
      };
    default:
      return step;
  }
}

const NOTHING: Step = { op: "status", text: "nothing" };

/** Everything that is left of a life: each execution of each instance, and what a client sees of them. */
type Remains = Readonly<Record<string, unknown>>;

interface Life {
  readonly remains: Remains;
  readonly warmTurns: number;
  readonly coldTurns: number;
}

async function live(store: Store, script: Script, memory: Memory, seed: number): Promise<Life> {
  await using world = await store.world();
  const activities = ["a", "b"].map((name) => activity(name, (ctx) => answerInTime(world, ctx)));
  await world.start({ activities, orchestrationConcurrency: 0, workerConcurrency: 100 });
  const turns = await world.start({
    orchestrations: orchestrationsOf(script),
    orchestrationConcurrency: 1,
    workerConcurrency: 0,
    ...(memory.warmCacheBytes === undefined ? {} : { warmCacheBytes: memory.warmCacheBytes }),
  });
  await world.client.start("Random", { instanceId: INSTANCE, input: "begin" });
  await sendAll(world, turns, script, memory, seeded(seed + 1));
  await world.advance(END_MS);
  const decided = world.facts.flatMap((fact) => (fact.type === "turn-committed" ? [fact] : []));
  return {
    remains: await remainsOf(world),
    warmTurns: decided.filter(({ isWarm }) => isWarm).length,
    coldTurns: decided.filter(({ isWarm }) => !isWarm).length,
  };
}

function orchestrationsOf({ first, next, children }: Script) {
  return [
    orchestration("Random", (ctx, input: string) => interpret(ctx, input === "again" ? next : first, TICK_MS)),
    ...Object.entries(children).map(([name, program]) =>
      orchestration(name, async (ctx) => (await interpret(ctx, program, TICK_MS)).length),
    ),
    orchestration("Detached", async (ctx) => {
      await ctx.scheduleTimer(TICK_MS);
      ctx.setCustomStatus("done");
    }),
  ];
}

/** How long it takes, and how it ends, depends on nothing but which one it is. */
async function answerInTime(world: TestWorld, { idempotencyKey, activityId }: ActivityContext): Promise<string> {
  const [fate, ...length] = createHash("sha256").update(`${idempotencyKey}/${activityId}`).digest();
  const tookMs = 1 + (length.slice(0, 4).reduce((sum, byte) => sum * 256 + byte, 0) % (90 * TICK_MS));
  await new Promise<void>((resolve) => void world.clock.setTimer(tookMs, resolve));
  if (fate! < 80) throw new Error(`activity ${activityId} failed`);
  return `result ${activityId}`;
}

async function sendAll(
  world: TestWorld,
  turns: TestRuntime,
  { messages }: Script,
  { dies }: Memory,
  random: Random,
): Promise<void> {
  const began = world.clock.now();
  await world.advance(0);
  for (const { atMs, send } of messages) {
    await world.advance(Math.max(0, began + atMs - world.clock.now()));
    if (dies(random)) await turns.restart();
    await send(world.client);
    await world.advance(0); // Who dies in the middle of a turn keeps its lock, and that takes time.
  }
  if (dies(random)) await turns.restart();
}

async function remainsOf({ provider }: TestWorld): Promise<Remains> {
  const remains: Record<string, unknown> = {};
  const instances = (await provider.admin!.listInstances()).toSorted();
  for (const instance of instances) {
    remains[instance] = await provider.getInstanceStatus(instance);
    remains[`${instance}: values`] = [...(await provider.getKvAllValues(instance))].sort();
    for (const executionId of await provider.admin!.listExecutions(instance)) {
      remains[`${instance}: execution ${executionId}`] = await provider.readWithExecution(instance, executionId);
    }
  }
  return withoutGuids(remains);
}

/** Every world makes its own: they are recorded, and not decided. */
function withoutGuids<T>(value: T): T {
  return JSON.parse(JSON.stringify(value).replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "guid")) as T;
}

function eventTypesOf({ remains }: Life): readonly string[] {
  const executions = Object.entries(remains).filter(([key]) => key.includes(": execution "));
  return executions.flatMap(([, events]) => (events as readonly Event[]).map(({ type }) => type));
}

for (const store of STORES.filter(({ name }) => name === "memory" || name === "sqlite")) {
  describe(`on ${store.name}`, () => {
    test("random orchestrations decide the same, whatever is in memory", async () => {
      const seen = new Set<string>();
      let [warmTurns, coldTurns] = [0, 0];
      await fc.assert(
        fc.asyncProperty(fc.nat(), async (seed) => {
          const script = scriptOf(seed);
          const warm = await live(store, script, WARM, seed);
          for (const type of eventTypesOf(warm)) seen.add(type);
          warmTurns += warm.warmTurns;
          for (const memory of OTHERS) {
            const other = await live(store, script, memory, seed);
            expect(other.remains, `${memory.name}, seed ${seed}`).toEqual(warm.remains);
            coldTurns += other.coldTurns;
            if (memory.warmCacheBytes === 0) expect(other.warmTurns).toBe(0);
          }
        }),
        { numRuns: RUNS, seed: SEED },
      );

      // Worlds in which nothing happens are all alike.
      expect(warmTurns).toBeGreaterThan(3 * RUNS);
      expect(coldTurns).toBeGreaterThan(10 * RUNS);
      expect([...seen].sort()).toEqual(expect.arrayContaining(EVERY_KIND));
    }, 300_000);
  });
}

/** What random orchestrations must have come across. */
const EVERY_KIND = [
  "ActivityCancelRequested",
  "ActivityCompleted",
  "ActivityFailed",
  "ActivityScheduled",
  "CustomStatusUpdated",
  "ExternalEvent",
  "ExternalEventPersistent",
  "ExternalSubscribed",
  "ExternalSubscribedPersistent",
  "KeyValueSet",
  "OrchestrationCompleted",
  "OrchestrationContinuedAsNew",
  "OrchestrationFailed",
  "OrchestrationStarted",
  "SubOrchestrationCompleted",
  "SubOrchestrationScheduled",
  "TimerCreated",
  "TimerFired",
];
