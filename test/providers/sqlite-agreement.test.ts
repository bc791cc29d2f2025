// The memory provider is the contract in its plainest form. Whatever one does, SQLite answers as it does.

import fc from "fast-check";
import { expect, test } from "vitest";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { anyStep } from "./agreement-steps.js";
import { outcomes } from "./agreement-world.js";

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
