// What holds of every history, whatever the names and the inputs: seeded random orchestrations, run to their ends.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { isTerminal } from "../../src/history/event.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore, type Store } from "./stores.js";

/** A world for each run: names may come twice. */
const FEW_RUNS = { seed: 20_260_801, numRuns: 25 };

interface Chain {
  readonly name: string;
  readonly instanceId: string;
  readonly input: string;
  readonly activities: readonly string[];
}

const aName = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,19}$/);

const aChain = (range: { minLength: number; maxLength: number }): fc.Arbitrary<Chain> =>
  fc.record({
    name: aName,
    instanceId: aName,
    input: fc.string({ maxLength: 50, unit: "grapheme" }),
    activities: fc.uniqueArray(aName, range),
  });

/** Runs the activities one after the other, each with what the one before returned, and answers with the history. */
async function historyOf(store: Store, { name, instanceId, input, activities }: Chain) {
  await using world = await store.world();
  const defined = activities.map((each) => activity(each, (_ctx, text: string) => `${text}.`));
  const chain = orchestration(name, async (ctx, text: string) => {
    let result = text;
    for (const each of defined) result = await ctx.scheduleActivity(each, result);
    return result;
  });
  await world.start({
    orchestrations: [chain],
    activities: defined,
    orchestrationConcurrency: 1,
    workerConcurrency: 1,
  });
  const output = await world.run(chain, { instanceId, input });
  expect(output).toBe(input + ".".repeat(activities.length));
  return await world.history(instanceId); // Before its world ends.
}

onEveryStore((store) => {
  describe("the history of any orchestration", () => {
    test("has one terminal event, and it is the last", async () => {
      await fc.assert(
        fc.asyncProperty(aChain({ minLength: 0, maxLength: 3 }), async (chain) => {
          const history = await historyOf(store, chain);
          expect(history.filter(isTerminal)).toEqual([history.at(-1)]);
        }),
        FEW_RUNS,
      );
    });

    test("has a result for each activity that it has scheduled, and for no other", async () => {
      await fc.assert(
        fc.asyncProperty(aChain({ minLength: 1, maxLength: 3 }), async (chain) => {
          const history = await historyOf(store, chain);
          const scheduled = eventsOf(history, "ActivityScheduled");
          expect(scheduled.map(({ name }) => name)).toEqual(chain.activities);
          const answered = eventsOf(history, "ActivityCompleted").map(({ sourceEventId }) => sourceEventId);
          expect(answered).toEqual(scheduled.map(({ eventId }) => eventId));
        }),
        FEW_RUNS,
      );
    });

    test("has two events, and two more for each activity", async () => {
      await fc.assert(
        fc.asyncProperty(aChain({ minLength: 0, maxLength: 3 }), async (chain) => {
          expect(await historyOf(store, chain)).toHaveLength(2 + 2 * chain.activities.length);
        }),
        FEW_RUNS,
      );
    });
  });
});
