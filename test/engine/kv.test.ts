// The instance's key-value store, as its own code sees it. Catalogue A18; R§4.12.

import { describe, expect, test } from "vitest";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { EventPayload } from "../../src/history/event.js";
import {
  activityDone,
  type Code,
  completed,
  DoubtedDriver,
  Driver,
  expectNondeterminism,
  fired,
  historyOf,
  keySet,
  NOW,
  outputOf,
  runTurn,
  scheduled,
  started,
  summary,
} from "./drive.js";

const read = (ctx: OrchestrationContext, ...keys: string[]) =>
  keys.map((key) => `${key}=${ctx.kv.getText(key) ?? "none"}`).join(",");

describe("writes", () => {
  test("are seen at once, recorded in order and without a source, and never suspend", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.kv.setText("X", "Y");
        ctx.kv.delete("Z");
        ctx.kv.clear();
        ctx.kv.setText("A", "1");
        return read(ctx, "X", "A");
      },
    }).turn();

    expect(outputOf(outcome)).toBe("X=none,A=1");
    expect(summary(outcome.events)).toEqual([
      "OrchestrationStarted(1)",
      "KeyValueSet(2)",
      "KeyValueCleared(3)",
      "KeyValuesCleared(4)",
      "KeyValueSet(5)",
      "OrchestrationCompleted(6)",
    ]);
    expect(outcome.events[1]).toMatchObject({ key: "X", value: "Y", lastUpdatedAtMs: NOW + 1 });
    expect(outcome.kvKeyCount).toBe(1);
  });

  test("of values go through JSON, of texts go as they are", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.kv.set("json", { n: 1 });
        ctx.kv.set("text", "quoted");
        ctx.kv.set("nothing", undefined);
        ctx.kv.setText("raw", "not json");
        return [
          ctx.kv.get("json"),
          ctx.kv.getText("text"),
          ctx.kv.get("nothing"),
          ctx.kv.get("raw"),
          ctx.kv.get("absent") ?? "absent",
        ];
      },
    }).turn();

    expect(outputOf(outcome)).toEqual([{ n: 1 }, '"quoted"', null, "not json", "absent"]);
  });

  test("of a value that changes afterwards keep what was written", async () => {
    const outcome = await runTurn({
      code: async (ctx) => {
        const value = { n: 1 };
        ctx.kv.set("k", value);
        value.n = 2;
        return ctx.kv.get("k");
      },
    });

    expect(outputOf(outcome)).toEqual({ n: 1 });
  });

  test("are rebuilt by replay: the last one wins", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.kv.setText("A", "1");
        ctx.kv.setText("A", "2");
        ctx.kv.setText("B", "1");
        await ctx.scheduleActivity("act");
        ctx.kv.clear();
        ctx.kv.setText("B", "2");
        await ctx.scheduleActivity("act");
        return read(ctx, "A", "B");
      },
    });
    await driver.turn();
    await driver.turn(completed(5, 1));

    expect(outputOf(await driver.turn(completed(9, 1)))).toBe("A=none,B=2");
  });

  test.each<[string, (ctx: OrchestrationContext) => void, EventPayload[], string]>([
    ["one set", (ctx) => ctx.kv.setText("A", "1"), [keySet("A", "1")], "A=1,B=none"],
    [
      "two of one key",
      (ctx) => {
        ctx.kv.setText("A", "1");
        ctx.kv.setText("A", "2");
      },
      [keySet("A", "1"), keySet("A", "2")],
      "A=2,B=none",
    ],
    [
      "a clear between two",
      (ctx) => {
        ctx.kv.setText("A", "1");
        ctx.kv.clear();
        ctx.kv.setText("B", "2");
      },
      [keySet("A", "1"), { type: "KeyValuesCleared" }, keySet("B", "2")],
      "A=none,B=2",
    ],
  ])("that history records are read again, and not recorded again: %s", async (_, write, events, values) => {
    const outcome = await runTurn({
      code: async (ctx) => {
        write(ctx);
        return read(ctx, "A", "B");
      },
      history: historyOf(started, ...events),
    });

    expect(outputOf(outcome)).toBe(values);
    expect(summary(outcome.events)).toEqual([`OrchestrationCompleted(${events.length + 2})`]);
  });

  test.each<[string, Code, EventPayload]>([
    ["a set", async (ctx) => ctx.kv.setText("A", "1"), keySet("A", "1")],
    ["a delete", async (ctx) => ctx.kv.delete("A"), { type: "KeyValueCleared", key: "A" }],
    ["a clear", async (ctx) => ctx.kv.clear(), { type: "KeyValuesCleared" }],
  ])("match what history records, whatever their time: %s", async (_, write, event) => {
    const outcome = await runTurn({
      code: async (ctx, input) => {
        await write(ctx, input);
        return ctx.scheduleActivity("act");
      },
      history: historyOf(started, event, scheduled("act"), [activityDone("ok"), 3]),
    });

    expect(outputOf(outcome)).toBe("ok");
    expect(summary(outcome.events)).toEqual(["OrchestrationCompleted(5)"]);
  });

  test("that history records and code does not make are nondeterminism", async () => {
    const code: Code = async (ctx) => ctx.scheduleActivity("act");

    expectNondeterminism(
      await runTurn({ code, history: historyOf(started, keySet("A", "1"), scheduled("act")) }),
      "kv set",
    );
    const cleared = historyOf(started, { type: "KeyValueCleared", key: "A" }, scheduled("act"));
    expectNondeterminism(await runTurn({ code, history: cleared }), "kv clear");
  });
});

describe("reads", () => {
  test("see the values of the previous execution", async () => {
    const kv = { X: "from_prev_exec", Y: "too" };
    const outcome = await new DoubtedDriver({ code: async (ctx) => read(ctx, "X", "Y", "Z"), kv }).turn();

    expect(outputOf(outcome)).toBe("X=from_prev_exec,Y=too,Z=none");
  });

  test("see this execution's writes over those", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        ctx.kv.setText("X", "new");
        ctx.kv.delete("Y");
        return read(ctx, "X", "Y");
      },
      kv: { X: "old", Y: "old" },
    }).turn();

    expect(outputOf(outcome)).toBe("X=new,Y=none");
  });

  test("see the writes of earlier turns", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.kv.setText("progress", "step_1");
        await ctx.scheduleActivity("act");
        return ctx.kv.getText("progress");
      },
    });
    await driver.turn();

    expect(outputOf(await driver.turn(completed(3, 1)))).toBe("step_1");
  });

  test("list, count and ask, in sorted order", async () => {
    const outcome = await new DoubtedDriver({
      code: async (ctx) => {
        for (const key of ["b", "c", "a"]) ctx.kv.set(key, 1);
        return [ctx.kv.keys(), ctx.kv.size, ctx.kv.has("a"), ctx.kv.has("z")];
      },
      kv: { "0": "1" },
    }).turn();

    expect(outputOf(outcome)).toEqual([["0", "a", "b", "c"], 4, true, false]);
  });
});

describe("reading, adding and writing back", () => {
  const loop: Code = async (ctx) => {
    for (let round = 0; round < 4; round += 1) {
      ctx.kv.set("counter", (ctx.kv.get<number>("counter") ?? 0) + 1);
      await ctx.scheduleActivity("act");
    }
    return ctx.kv.get("counter");
  };

  test("in every turn replays over a snapshot that knows none of it", async () => {
    const driver = new DoubtedDriver({ code: loop });
    await driver.turn();
    for (let id = 3; id <= 9; id += 3) expect((await driver.turn(completed(id, 1))).result.kind).toBe("waiting");

    expect(outputOf(await driver.turn(completed(12, 1)))).toBe(4);
  });

  test("some turns after the value was written finds it, though the snapshot may know it already", async () => {
    const code: Code = async (ctx) => {
      ctx.kv.set("counter", 1);
      await ctx.scheduleActivity("act");
      const seen = ctx.kv.get("counter");
      await ctx.scheduleActivity("act");
      ctx.kv.set("counter", (ctx.kv.get<number>("counter") ?? 0) + 1);
      return [seen, ctx.kv.get("counter")];
    };
    const history = historyOf(
      started,
      keySet("counter", "1"),
      scheduled("act"),
      [activityDone(1), 3],
      scheduled("act"),
      [activityDone(1), 5],
    );
    const outcome = await runTurn({ code, history, kv: { counter: "1" } });

    expect(outputOf(outcome)).toEqual([1, 2]);
    expect(outcome.events[0]).toMatchObject({ type: "KeyValueSet", key: "counter", value: "2" });
  });

  test("that replays its first round goes on from there, over the previous execution's value", async () => {
    const code: Code = async (ctx) => {
      const add = () => ctx.kv.set("counter", (ctx.kv.get<number>("counter") ?? 0) + 1);
      add();
      await ctx.scheduleActivity("act");
      add();
      return ctx.kv.get("counter");
    };
    const history = historyOf(started, keySet("counter", "6"), scheduled("act"), [activityDone(1), 3]);

    expect(outputOf(await runTurn({ code, history, kv: { counter: "5" } }))).toBe(7);
  });

  test("goes on from the previous execution's value", async () => {
    const driver = new DoubtedDriver({ code: loop, kv: { counter: "5" } });
    await driver.turn();
    for (let id = 3; id <= 9; id += 3) await driver.turn(completed(id, 1));

    expect(outputOf(await driver.turn(completed(12, 1)))).toBe(9);
  });

  test("after clearing does not see what was cleared", async () => {
    const driver = new DoubtedDriver({
      code: async (ctx) => {
        ctx.kv.clear();
        ctx.kv.setText("x", "new");
        await ctx.scheduleActivity("act");
        return read(ctx, "x", "old");
      },
      kv: { old: "stale" },
    });
    await driver.turn();

    expect(outputOf(await driver.turn(completed(4, 1)))).toBe("x=new,old=none");
  });
});

describe("pruning", () => {
  const code: Code = async (ctx) => {
    for (const key of ["b", "a"]) ctx.kv.set(key, 1);
    await ctx.scheduleTimer(1);
    ctx.kv.set("young", 1);
    return [ctx.kv.pruneUpdatedBefore(NOW + 2), ctx.kv.keys()];
  };

  test("removes what was written before, in sorted order, by the time it was first written", async () => {
    const driver = new DoubtedDriver({ code, kv: { "from before": "1" } });
    await driver.turn();
    const outcome = await driver.turn(fired(4));

    expect(outputOf(outcome)).toEqual([3, ["young"]]);
    expect(outcome.events.slice(2, 5)).toMatchObject([{ key: "a" }, { key: "b" }, { key: "from before" }]);
    expect(outcome.kvKeyCount).toBe(1);
  });

  test("removes keys that this version would not accept any more", async () => {
    const outcome = await runTurn({
      code: async (ctx) => ctx.kv.pruneUpdatedBefore(2),
      kv: { ["x".repeat(300)]: "1" },
    });

    expect(outputOf(outcome)).toBe(1);
  });
});

test("the count of keys is of the store, not of the turn", async () => {
  const driver = new Driver({
    code: async (ctx) => {
      ctx.kv.set("a", 1);
      await ctx.scheduleTimer(1);
      ctx.kv.set("b", 1);
      ctx.kv.set("b", 2);
      await ctx.scheduleTimer(1);
    },
    kv: { z: "1" },
  });

  expect((await driver.turn()).kvKeyCount).toBe(2);
  expect((await driver.turn(fired(3))).kvKeyCount).toBe(3);
});
