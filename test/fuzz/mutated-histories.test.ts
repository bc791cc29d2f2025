// Histories that were damaged: whoever replays them ends in a typed error or a typed failure, or decides as the code would
// have decided on what arrived. Never a hang, a crash, or a success that is none.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import { isInlineCall } from "../../src/engine/system-calls.js";
import type { TurnResult } from "../../src/engine/turn.js";
import { type Event, type EventOf, isTerminal } from "../../src/history/event.js";
import { natureOf } from "../../src/history/nature.js";
import { assertDeterministic } from "../../src/testing/assert-deterministic.js";
import type { History } from "../../src/testing/exported-history.js";
import { importInstance } from "../../src/testing/import-instance.js";
import { lockInstance } from "../../src/testing/locked-instance.js";
import { keepingRejections, replay } from "../../src/testing/replay.js";
import type { Replayed } from "../../src/testing/replay-check.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { handlerOf, INSTANCE, NOW } from "../engine/drive.js";
import { interpret, type Program } from "../engine/random-program.js";
import { executionOf, type RandomRun, randomRun } from "../engine/random-run.js";
import { type GoldenExecution, goldenExecutions } from "../golden/recorded.js";
import { tries } from "./budget.js";
import { codeOf } from "./junk.js";
import { decisionsIn, dropsIn, type Live, liveOn } from "./live-oracle.js";
import { anyDamage, damaged } from "./mutation.js";

interface DamagedRun {
  readonly program: Program;
  readonly events: readonly Event[];
}

const anySeed = fc.nat(5_000);

/** Real time: what hangs is not to hang the tests. */
const LONGEST_RUN_MS = 60_000;

/** Tries damage of all kinds to the histories of random orchestrations. */
async function onDamagedRuns(runs: number, property: (run: DamagedRun) => Promise<void>): Promise<void> {
  await keepingRejections(() =>
    fc.assert(
      fc.asyncProperty(anySeed, anySeed, anyDamage, async (seed, otherSeed, damage) => {
        const { program, history } = await comparableRun(seed);
        const other = (await randomRun(otherSeed)).history;
        // Half of the time as it was before its end: what has ended is led through nothing any more.
        const before = seed % 2 === 0 ? history : history.slice(0, endOf(history));
        await property({ program, events: damaged(before, damage, other) });
      }),
      { ...tries(runs), timeout: LONGEST_RUN_MS },
    ),
  );
}

/** The run of that seed; mostly of the next one in which the clock has no say, so that there is something to compare with. */
async function comparableRun(seed: number): Promise<RandomRun> {
  for (let next = seed; ; next += 1) {
    const run = await randomRun(next);
    const asksTheClock = run.history.some((event) => event.type === "ActivityScheduled" && isInlineCall(event.name));
    if (!asksTheClock || seed % 10 === 0) return run;
  }
}

describe("the engine, led through a damaged history", () => {
  test("fails it, or goes on as the code would have on what arrived", async () => {
    const seen = new Set<string>();
    await onDamagedRuns(500, async ({ program, events }) => {
      const { result, events: added } = await executionOf(program, events).turn({ nowMs: NOW + 99, messages: [] });
      const live = await liveOn(handler(program), events);
      seen.add(`${result.kind}, ${live.kind}`);

      if (events.some(isTerminal)) return expect(added, "an ended history takes no turn").toEqual([]);
      if (isRefusal(result) || live.kind === "unknown" || live.kind === "hidden") return;
      expect(live.kind, "what cannot have come is noticed").toBe("possible");
      if (live.kind !== "possible") return;
      expect(areIdsAscending(events)).toBe(true);
      expect([...decisionsIn(events), ...decisionsIn(added)]).toEqual(live.decisions);
      expectDropsRepeated(events, live);
      expect(comparable(result)).toEqual(comparable(live.result));
    });
    // A generator whose damage was always seen, or never, would prove little.
    const expected = ["failed, impossible", "failed, possible", "waiting, possible", "completed, possible"];
    expect([...seen]).toEqual(expect.arrayContaining(expected));
  });
});

describe("replay of a damaged history", () => {
  test("is refused with an error of ours, or agrees with the code run live on what arrived", async () => {
    const seen = new Set<string>();
    await onDamagedRuns(400, async ({ program, events }) => {
      const code = orchestration("Random", async (ctx) => interpret(ctx, program));
      const outcome = await replayed(events, [code]);
      seen.add(typeof outcome === "string" ? outcome : outcome.status);
      if (typeof outcome === "string") return;
      const live = await liveOn(handler(program), events);
      if (live.kind === "unknown" || !isEndOfCode(events)) return;
      if (live.kind === "hidden") {
        // Replay lets pass what only comes earlier than recorded, as runtimes do; the stricter check does not.
        const check = assertDeterministic(events, code).catch(codeOf);
        return expect(await check).toBe("DUROXIDE_REPLAY_DIVERGED");
      }
      expect(live.kind, "what cannot have come is noticed").toBe("possible");
      if (live.kind !== "possible") return;
      expect(decisionsIn(events)).toEqual(live.decisions);
      expectDropsRepeated(events, live);
      expect(withoutIds({ ...outcome, waitingFor: null })).toEqual(withoutIds(expectedOf(live.result, events)));
    });
    expect([...seen]).toEqual(
      expect.arrayContaining(["DUROXIDE_INVALID_HISTORY", "DUROXIDE_REPLAY_DIVERGED", "waiting", "completed"]),
    );
  });

  test("of the golden ones ends in an error of ours, or as recorded", async () => {
    const executions = goldenExecutions();
    const anyGolden = fc.constantFrom(...executions);
    await keepingRejections(() =>
      fc.assert(
        fc.asyncProperty(anyGolden, anyGolden, anyDamage, async (execution, other, damage) => {
          const events = damaged(execution.events, damage, other.events);
          const outcome = await replayed(events, execution.golden.orchestrations, execution.kv);
          if (typeof outcome === "string" || outcome.status !== "completed") return;
          const end = events.at(-1) as EventOf<"OrchestrationCompleted">;
          expect(JSON.stringify(outcome.output)).toBe(JSON.stringify(JSON.parse(end.output)));
        }),
        { ...tries(300), timeout: LONGEST_RUN_MS },
      ),
    );
  });
});

describe("a runtime on a store with a damaged history", () => {
  const answers = {
    orchestrations: ["a", "b", "Detached"].map((name) => orchestration(name, async () => name)),
    maxAttempts: 3,
  };

  test("that was imported goes on with the instance, or was refused it", async () => {
    await onDamagedRuns(60, async ({ program, events }) => {
      await using world = await TestWorld.open({ patienceMs: 0 });
      const refusal = await importInstance(world.provider, [events]).then(() => null, codeOf);
      if (refusal === null) await expectBounded(world, program, events[0]!.instanceId);
    });
  });

  test("that was written there by others fails the instance, or goes on with it", async () => {
    await onDamagedRuns(60, async ({ program, events }) => {
      await using world = await TestWorld.open({ patienceMs: 0 });
      const refusal = await writeAsIs(world, events).then(() => null, codeOf);
      if (refusal === null) await expectBounded(world, program, INSTANCE);
    });
  });

  /** Events arrive, time passes: the instance ends or waits, and no turn is tried over and over. */
  async function expectBounded(world: TestWorld, program: Program, instance: string): Promise<void> {
    // Some programs would continue as new for ever.
    const random = orchestration("Random", async (ctx) => (ctx.executionId === 1 ? interpret(ctx, program) : []));
    await world.start({ ...answers, orchestrations: [random, ...answers.orchestrations] });
    for (const name of ["a", "b"]) await world.client.raiseEvent(instance, name, 1);
    for (const name of ["a", "b"]) await world.client.enqueueEvent(instance, name, 1);
    await world.advance("1h");

    const strangers = world.factsOf("loop-failed").map(({ error }) => error);
    expect(strangers).toEqual([]);
    const abandoned = world.factsOf("turn-abandoned").filter((fact) => fact.why === "store-failed");
    expect(abandoned).toEqual([]);
    const status = await world.client.getStatus(instance);
    expect(status.status).toMatch(/^(Running|Completed|Failed)$/);
  }
});

/** Past every check: as somebody may who writes into the database by hand. */
async function writeAsIs(world: TestWorld, events: readonly Event[]): Promise<void> {
  const { provider, client } = world;
  await client.start("Random", { instanceId: INSTANCE });
  const { lockToken } = await lockInstance(provider, INSTANCE);
  await provider.ackOrchestrationItem(lockToken, {
    executionId: 1,
    events,
    workerItems: [],
    orchestratorItems: [],
    metadata: { orchestrationName: "Random", orchestrationVersion: "1.0.0" },
    cancelledActivities: [],
    cancelledTimers: [],
  });
}

/** Where what it wrote for its end begins. */
function endOf(history: readonly Event[]): number {
  const end = history.findIndex(isTerminal);
  if (end < 0) return history.length;
  return history.findLastIndex((event, place) => place < end && natureOf(event) !== "breadcrumb") + 1;
}

/** What the history says was given up, code gives up. Who continues as new is not asked any more. */
function expectDropsRepeated(events: readonly Event[], { drops, result }: Extract<Live, { kind: "possible" }>): void {
  if (result.kind === "continuedAsNew") return;
  expect([...drops]).toEqual(expect.arrayContaining([...dropsIn(events)]));
}

function areIdsAscending(events: readonly Event[]): boolean {
  return events.every(({ eventId }, place) => place === 0 || eventId > events[place - 1]!.eventId);
}

function handler(program: Program) {
  return handlerOf((ctx) => interpret(ctx, program));
}

/** The engine has noticed, or somebody has asked to cancel: either way, no success. */
function isRefusal(result: TurnResult): boolean {
  if (result.kind === "cancelled") return true;
  return result.kind === "failed" && result.details.category === "configuration";
}

/** Errors are made anew each time; and what arrived after the live run had ended is carried over by the other one. */
function comparable(result: TurnResult): unknown {
  return withoutIds({ ...result, error: null, carried: null });
}

/** Children are called after their events, whose ids differ. */
function withoutIds(value: object): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll(/sub::\d+/g, "sub::")) as unknown;
}

/** What it came to, or the code of the error. @throws for an error that is none of ours */
async function replayed(
  history: History,
  orchestrations: GoldenExecution["golden"]["orchestrations"],
  kv: GoldenExecution["kv"] = new Map(),
): Promise<Replayed | string> {
  try {
    return await replay(history, orchestrations, { kv });
  } catch (error) {
    return codeOf(error);
  }
}

/** Whether it was the code that ended the execution, if anybody did. */
function isEndOfCode(events: readonly Event[]): boolean {
  const end = events.find(isTerminal);
  if (end?.type !== "OrchestrationFailed") return true;
  return end.details.category === "application" && end.details.kind.type === "OrchestrationFailed";
}

function expectedOf(result: TurnResult, events: readonly Event[]): object {
  const length = { events: events.length, waitingFor: null };
  switch (result.kind) {
    case "waiting":
      return { status: "waiting", ...length };
    case "completed":
      return { status: "completed", ...length, output: JSON.parse(result.output) };
    case "continuedAsNew":
      return { status: "continuedAsNew", ...length, input: JSON.parse(result.input) };
    case "failed":
      return { status: "failed", ...length, details: result.details };
    case "cancelled":
      return { status: "cancelled", ...length, reason: result.reason, details: result.details };
  }
}
