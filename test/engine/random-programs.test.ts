// Random orchestrations in a random world: warm, cold and evicted-at-random runs must take the very same decisions.

import { expect, test } from "vitest";
import type { TurnOutcome } from "../../src/engine/turn.js";
import type { Event } from "../../src/history/event.js";
import { checkHistory } from "../../src/history/valid-history.js";
import { NOW } from "./drive.js";
import { type Program, randomProgram, seeded } from "./random-program.js";
import { executionOf, MOST_TURNS, World } from "./random-run.js";

const PROGRAMS = Number(process.env.DUROXIDE_RANDOM_PROGRAMS ?? 3_000);
const FIRST_SEED = Number(process.env.DUROXIDE_RANDOM_SEED ?? 1);

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
      checkHistory(history);
      return live.result.kind;
    }
    world.learn(live);
  }
  checkHistory(history);
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
