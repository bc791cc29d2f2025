// test/engine/random-run.ts — runs a random program in a random world: whatever comes, in any order.

import { Execution } from "../../src/engine/execution.js";
import type { StartedPayload, TurnOutcome } from "../../src/engine/turn.js";
import type { Event } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { handlerOf, INSTANCE, NOW } from "./drive.js";
import { interpret, type Program, pick, type Random, randomProgram, seeded } from "./random-program.js";

export const MOST_TURNS = 40;

export interface RandomRun {
  readonly program: Program;
  readonly history: readonly Event[];
}

/** What becomes of the program of that seed, after so many turns at most. */
export async function randomRun(seed: number): Promise<RandomRun> {
  const random = seeded(seed);
  const program = randomProgram(random);
  const world = new World(random);
  const execution = executionOf(program, []);
  const history: Event[] = [];
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    const outcome = await execution.turn({ nowMs: NOW + turn, messages: world.nextBatch() });
    history.push(...outcome.events);
    if (outcome.result.kind !== "waiting") break;
    world.learn(outcome);
  }
  return { program, history };
}

export function executionOf(program: Program, history: readonly Event[]): Execution {
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
export class World {
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
