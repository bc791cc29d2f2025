import { describe, expect, test } from "vitest";
import { Execution } from "../../src/engine/execution.js";
import { ExecutionLedger } from "../../src/runtime/execution-ledger.js";
import { type LiveExecution, WarmInstances } from "../../src/runtime/warm-instances.js";

/** Far more than what is reckoned for the instance itself. */
const INPUT_BYTES = 100_000;

/** An execution that waits, of about the size of its input. */
async function waiting(instance: string, inputBytes = INPUT_BYTES): Promise<LiveExecution> {
  const execution = new Execution({
    instance,
    executionId: 1,
    handler: async (ctx) => ctx.waitForEvent<string>("never"),
    history: [],
    started: {
      type: "OrchestrationStarted",
      name: "Wait",
      version: "1.0.0",
      input: "x".repeat(inputBytes),
      parentInstance: null,
      parentId: null,
    },
    kvSnapshot: new Map(),
    newGuid: () => "guid",
    trace: () => {},
  });
  const { events } = await execution.turn({ nowMs: 0, messages: [] });
  return { execution, ledger: new ExecutionLedger(instance, events) };
}

describe("warm instances", () => {
  test("tell fetches as of which commit they are known", async () => {
    const warm = new WarmInstances(1_000_000);
    warm.put(await waiting("a"), "token");

    expect([...warm.marks]).toEqual([["a", "token"]]);
  });

  test("belong to whoever takes them", async () => {
    const warm = new WarmInstances(1_000_000);
    const live = await waiting("a");
    warm.put(live, "token");

    expect(warm.take("a", "token")).toMatchObject({ execution: live.execution, ledger: live.ledger });
    expect(warm.take("a", "token")).toBeNull();
    expect(warm.marks.size).toBe(0);
    expect(warm.bytes).toBe(0);
  });

  test("are taken only as of the commit that the store has named, and are gone either way", async () => {
    const warm = new WarmInstances(1_000_000);
    warm.put(await waiting("a"), "newer");
    expect(warm.take("a", "older")).toBeNull();
    expect(warm.marks.size).toBe(0);
    warm.put(await waiting("a"), "newer");
    expect(warm.take("a", null)).toBeNull();
    expect(warm.bytes).toBe(0);
  });

  test("are dropped by whose commit has failed, but not those that somebody has put there since", async () => {
    const warm = new WarmInstances(1_000_000);
    warm.put(await waiting("a"), "newer");
    warm.discard("a", "older");
    expect([...warm.marks]).toEqual([["a", "newer"]]);
    warm.discard("a", "newer");
    expect(warm.marks.size).toBe(0);
  });

  test("that were used longest ago go first when room is needed", async () => {
    const warm = new WarmInstances(2.5 * INPUT_BYTES);
    warm.put(await waiting("a"), "token");
    warm.put(await waiting("b"), "token");
    warm.put(warm.take("a", "token")!, "token");
    warm.put(await waiting("c"), "token");

    expect([...warm.marks.keys()]).toEqual(["a", "c"]);
    expect(warm.bytes).toBeLessThanOrEqual(2.5 * INPUT_BYTES);
  });

  test("that are larger than all the room are not kept, and push nobody out", async () => {
    const warm = new WarmInstances(2 * INPUT_BYTES);
    warm.put(await waiting("small"), "token");
    warm.put(await waiting("large", 3 * INPUT_BYTES), "token");

    expect([...warm.marks.keys()]).toEqual(["small"]);
  });

  test("are not kept at all without room", async () => {
    const warm = new WarmInstances(0);
    warm.put(await waiting("a"), "token");

    expect(warm.marks.size).toBe(0);
  });

  test("are replaced, not doubled", async () => {
    const warm = new WarmInstances(1_000_000);
    warm.put(await waiting("a"), "token");
    const { bytes } = warm;
    warm.put(await waiting("a"), "token");

    expect(warm.bytes).toBe(bytes);
  });
});
