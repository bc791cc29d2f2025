// The memory provider is the contract in its plainest form. Whatever one does, SQLite answers as it does.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { anyStep } from "./agreement-steps.js";
import { outcomes } from "./agreement-world.js";

const steps = fc.array(anyStep, { minLength: 20, maxLength: 80, size: "max" });

test("whatever is done to them, SQLite and memory give the same answers", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const expected = await outcomes(async (clock) => new MemoryProvider({ clock }), given);
      expect(await outcomes((clock) => SqliteProvider.open(":memory:", { clock }), given)).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

test("and so does SQLite where a thread of its own writes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "duroxide-agreement-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  let files = 0;
  const open = (clock: Clock) => {
    files += 1;
    const options = { clock, durability: "process-crash", writerThread: "always" } as const;
    return SqliteProvider.open(join(folder, `${files}.db`), options);
  };
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const expected = await outcomes(async (clock) => new MemoryProvider({ clock }), given);
      expect(await outcomes(open, given)).toEqual(expected);
    }),
    { numRuns: 30 },
  );
});
