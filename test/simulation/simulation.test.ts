// A few seeds on every store, and what makes the many seeds of `npm run simulate` worth something: the same seed is the same
// run, everything happens in some of them, and what is wrong is seen.

import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Client } from "../../src/client/client.js";
import type { Event } from "../../src/history/event.js";
import { MemoryProvider } from "../../src/providers/memory/memory-provider.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { firstTask, orchestrations, ROOT, workActivity } from "./interpreter.js";
import { modelProblems, type Remains } from "./model.js";
import { leavesOf, scriptOf } from "./program.js";
import { simulate } from "./simulation.js";
import { STORES } from "./store.js";

/** Seeds that once went wrong because of us, each with what it was. None so far: what seeds have found were faults of the simulation. */
const REGRESSIONS: readonly { readonly seed: number; readonly store: (typeof STORES)[number]; readonly why: string }[] =
  [];

const SEEDS = { memory: 25, "sqlite-shared": 10, sqlite: 4 } as const;

for (const store of STORES) {
  describe(`on ${store}`, () => {
    test("all is well after some seeds, and everything has happened", async () => {
      const seen = new Map<string, number>();
      for (let seed = 1; seed <= SEEDS[store]; seed += 1) {
        const result = await simulate({ seed, store });
        expect(result.problems, `seed ${seed}`).toEqual([]);
        for (const [what, count] of result.seen) seen.set(what, (seen.get(what) ?? 0) + count);
      }

      expect([...seen.keys()]).toEqual(expect.arrayContaining(store === "memory" ? EVERYTHING : MUCH));
    }, 300_000);

    test("the same seed gives the same run, byte for byte", async () => {
      expect(await traceOf(7, store)).toBe(await traceOf(7, store));
      expect(await traceOf(7, store)).not.toBe(await traceOf(8, store));
    }, 300_000);
  });
}

for (const { seed, store, why } of REGRESSIONS) {
  test(`seed ${seed} on ${store}: ${why}`, async () => {
    expect((await simulate({ seed, store })).problems).toEqual([]);
  }, 60_000);
}

describe("the model", () => {
  test("finds nothing wrong with what a runtime makes of a script", async () => {
    expect(modelProblems(await remainsOf(QUIET_SEED))).toEqual([]);
  });

  test("sees every kind of harm", async () => {
    const remains = await remainsOf(QUIET_SEED);
    for (const [kind, harm] of Object.entries(HARMS)) {
      const executions = remains.executions.map((events) => events.flatMap(harm));
      expect(JSON.stringify(executions), `${kind} changes something`).not.toBe(JSON.stringify(remains.executions));
      expect(modelProblems({ ...remains, executions }), kind).not.toEqual([]);
    }
    expect(modelProblems({ ...remains, kv: new Map([["a", "17"]]) })).toHaveLength(1);
    expect(modelProblems({ ...remains, customStatus: "something else" })).toHaveLength(1);
  });
});

/** What must have come up in a handful of seeds. */
const MUCH = [
  "turn-committed",
  "warm turn",
  "orchestration-ended",
  "activity-ended",
  "ActivityCompleted",
  "TimerFired",
];
const EVERYTHING = [
  ...MUCH,
  "turn-lock-lost",
  "turn-abandoned",
  "messages-dropped",
  "loop-failed",
  "ActivityFailed",
  "ActivityCancelRequested",
  "CustomStatusUpdated",
  "ExternalEvent",
  "ExternalEventPersistent",
  "ExternalSubscribed",
  "ExternalSubscribedCancelled",
  "ExternalSubscribedPersistent",
  "ExternalSubscribedPersistentCancelled",
  "KeyValueCleared",
  "KeyValueSet",
  "OrchestrationCancelRequested",
  "OrchestrationChained",
  "OrchestrationCompleted",
  "OrchestrationContinuedAsNew",
  "OrchestrationFailed",
  "OrchestrationStarted",
  "SubOrchestrationCancelRequested",
  "SubOrchestrationCompleted",
  "SubOrchestrationFailed",
  "SubOrchestrationScheduled",
  "TimerCreated",
];

async function traceOf(seed: number, store: (typeof STORES)[number]): Promise<string> {
  const hash = createHash("sha256");
  await simulate({ seed, store, trace: (line) => void hash.update(`${line}\n`) });
  return hash.digest("hex");
}

/** The first whose script waits for nobody, and does enough. */
const QUIET_SEED = (() => {
  for (let seed = 1; ; seed += 1) {
    const { executions } = scriptOf(seed);
    const leaves = executions.flatMap(({ program }) => leavesOf(program));
    const isQuiet = leaves.every((leaf) => leaf.op === "activity" && leaf.tag === undefined && !leaf.fails);
    const counts = executions.some(({ program }) => program.some(({ op }) => op === "count"));
    if (isQuiet && counts && leaves.length >= 2 && executions.length >= 2 && executions.at(-1)?.ending === "return") {
      return seed;
    }
  }
})();

/** What could have happened to a history. */
const HARMS: Readonly<Record<string, (event: Event) => readonly Event[]>> = {
  "another result": (event) => [event.type === "ActivityCompleted" ? { ...event, result: '"another"' } : event],
  "another output": (event) => [event.type === "OrchestrationCompleted" ? { ...event, output: "[]" } : event],
  "another continuation": (event) => {
    return [event.type === "OrchestrationContinuedAsNew" ? { ...event, input: '{"seed":0}' } : event];
  },
  "a lost result": (event) => (event.type === "ActivityCompleted" ? [] : [event]),
  "an end that is missing": (event) => (event.type === "OrchestrationCompleted" ? [] : [event]),
  "another version": (event) => [event.type === "OrchestrationStarted" ? { ...event, version: "3.0.0" } : event],
};

async function remainsOf(seed: number): Promise<Remains> {
  await using provider = new MemoryProvider();
  const activities = [workActivity(async () => {})];
  await using _runtime = await Runtime.start({ provider, orchestrations: Object.values(orchestrations()), activities });
  const instanceId = "quiet";
  const handle = await new Client(provider).start(ROOT, { instanceId, input: firstTask(seed) });
  await handle.result();
  const status = await provider.getInstanceStatus(instanceId);
  const executions = await Promise.all(
    (await provider.admin.listExecutions(instanceId)).map((id) => provider.readWithExecution(instanceId, id)),
  );
  return {
    instanceId,
    executions,
    kv: await provider.getKvAllValues(instanceId),
    customStatus: status?.customStatus ?? null,
    mayBeCancelled: false,
  };
}
