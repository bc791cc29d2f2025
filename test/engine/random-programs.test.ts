// Random orchestrations in a random world: warm, cold and evicted-at-random runs must take the very same decisions.

import { expect, test } from "vitest";
import { Execution } from "../../src/engine/execution.js";
import type { StartedPayload, TurnOutcome } from "../../src/engine/turn.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { handlerOf, INSTANCE, NOW } from "./drive.js";
import { interpret, type Program, pick, type Random, randomProgram, seeded } from "./random-program.js";

const PROGRAMS = Number(process.env.DUROXIDE_RANDOM_PROGRAMS ?? 3_000);
const FIRST_SEED = Number(process.env.DUROXIDE_RANDOM_SEED ?? 1);
const MOST_TURNS = 40;

test(`${PROGRAMS} random orchestrations decide the same live, replayed from scratch and continued`, async () => {
  process.on("unhandledRejection", ignoreHelperRejections);
  const endings = new Map<string, number>();
  for (let seed = FIRST_SEED; seed < FIRST_SEED + PROGRAMS; seed += 1) {
    const ending = await compareRuns(seed);
    endings.set(ending, (endings.get(ending) ?? 0) + 1);
  }
  // A generator that only ever produced one kind of ending would prove little.
  expect([...endings.keys()].sort()).toEqual(["completed", "continuedAsNew", "failed", "waiting"]);
}, 300_000);

/** Helper promises that fail before they are awaited are part of the game; the guard for them has tests of its own. */
function ignoreHelperRejections(): void {}

async function compareRuns(seed: number): Promise<string> {
  const random = seeded(seed);
  const program = randomProgram(random);
  const world = new World(random);
  const warm = executionOf(program, []);
  const history: Event[] = [];
  let evicted = warm;
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const input = { nowMs: NOW + turn, messages: world.nextBatch() };
    const live = await warm.turn(input);
    const cold = await executionOf(program, history).turn(input);
    if (random() < 0.3) evicted = executionOf(program, history);
    const continued = evicted === warm ? live : await evicted.turn(input);
    expect(shape(cold), `seed ${seed}, turn ${turn}: replayed from scratch`).toEqual(shape(live));
    expect(shape(continued), `seed ${seed}, turn ${turn}: continued`).toEqual(shape(live));
    history.push(...live.events);
    if (live.result.kind !== "waiting") {
      await assertNothingNew(program, history, seed);
      return live.result.kind;
    }
    world.learn(live);
  }
  return "waiting";
}

/** A finished history, cut before its terminal decisions, leads to the same ones again. */
async function assertNothingNew(program: Program, history: readonly Event[], seed: number): Promise<void> {
  const last = history.at(-1)!;
  const outcome = await executionOf(program, history).turn({ nowMs: last.timestampMs, messages: [] });
  expect(outcome.events, `seed ${seed}: a finished history takes no further turn`).toEqual([]);
}

function shape(outcome: TurnOutcome): unknown {
  return { ...outcome, events: outcome.events };
}

function executionOf(program: Program, history: readonly Event[]): Execution {
  const started: StartedPayload = {
    type: "OrchestrationStarted",
    name: "Random",
    version: "1.0.0",
    input: "null",
    parentInstance: null,
    parentId: null,
  };
  return new Execution({
    instance: INSTANCE,
    executionId: 1,
    handler: handlerOf((ctx) => interpret(ctx, program)),
    history: [...history],
    started: history.length === 0 ? started : null,
    kvSnapshot: new Map(),
    newGuid: () => "recorded-guid",
    trace: () => {},
  });
}

/** Everything outside: answers what was asked for, in any order, and sends events whenever it likes. */
class World {
  readonly #random: Random;
  #pending: OrchestratorItem[] = [];
  #sent = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  learn({ activities, timers, children, cancelledActivities, cancelledTimers }: TurnOutcome): void {
    for (const { id } of activities) this.#pending.push(this.#activityAnswer(id));
    for (const { id, fireAtMs } of timers) {
      this.#pending.push({ type: "TimerFired", instance: INSTANCE, executionId: 1, id, fireAtMs });
    }
    for (const { id } of children) this.#pending.push(this.#childAnswer(id));
    // A cancelled activity's answer may have won the race all the same.
    const isGone = (id: number): boolean =>
      this.#random() < 0.5 && [...cancelledActivities, ...cancelledTimers].includes(id);
    this.#pending = this.#pending.filter((item) => !("id" in item && isGone(item.id)));
  }

  nextBatch(): OrchestratorItem[] {
    const batch: OrchestratorItem[] = [];
    const size = Math.floor(this.#random() * 4);
    for (let n = 0; n < size; n += 1) {
      const message = this.#next();
      if (message !== null) batch.push(message);
      if (message !== null && this.#random() < 0.05) batch.push(message); // delivered twice
    }
    return batch;
  }

  #next(): OrchestratorItem | null {
    const roll = this.#random();
    const name = pick(this.#random, ["a", "b"]);
    this.#sent += 1;
    if (roll < 0.15) return { type: "ExternalRaised", instance: INSTANCE, name, data: `"event ${this.#sent}"` };
    if (roll < 0.35) return { type: "QueueMessage", instance: INSTANCE, name, data: `"message ${this.#sent}"` };
    if (this.#pending.length === 0) return null;
    return this.#pending.splice(Math.floor(this.#random() * this.#pending.length), 1)[0] ?? null;
  }

  #activityAnswer(id: number): OrchestratorItem {
    const common = { instance: INSTANCE, executionId: 1, id };
    if (this.#random() < 0.7) return { type: "ActivityCompleted", ...common, result: `"result ${id}"` };
    const details = failure(`activity ${id} failed`);
    return { type: "ActivityFailed", ...common, details };
  }

  #childAnswer(id: number): OrchestratorItem {
    const common = { parentInstance: INSTANCE, parentExecutionId: 1, parentId: id };
    if (this.#random() < 0.7) return { type: "SubOrchCompleted", ...common, result: `"child ${id}"` };
    return { type: "SubOrchFailed", ...common, details: failure(`child ${id} failed`) };
  }
}

function failure(message: string) {
  return { category: "application", kind: { type: "ActivityFailed" }, message, retryable: false } as const;
}
