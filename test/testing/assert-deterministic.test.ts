// Code that must decide the same however often, from wherever and whenever it is replayed.

import nodeCrypto, { randomUUID } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import { activity, event, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { Event } from "../../src/history/event.js";
import { assertDeterministic } from "../../src/testing/assert-deterministic.js";
import { replay } from "../../src/testing/replay.js";
import { onEveryStore } from "../behaviours/stores.js";
import { type Code, completed, fired, raised } from "../engine/drive.js";
import { histories, orchestrations, startOf } from "../engine/golden.js";
import { interpret } from "../engine/random-program.js";
import { randomRun } from "../engine/random-run.js";
import { codeOf, recorded } from "./recorded.js";

const INSTANCE = "Instance 'test-instance', execution 1";

/** Asks for `steps` activities, one after the other. */
const chain =
  (steps: number, step: (ctx: OrchestrationContext, n: number) => PromiseLike<unknown>): Code =>
  async (ctx) => {
    for (let n = 0; n < steps; n += 1) await step(ctx, n);
    return ctx.waitForEvent("next");
  };
const answers = (steps: number) => Array.from({ length: steps }, (_, n) => [completed(2 + 2 * n, n)]);

describe("deterministic code", () => {
  test("passes, whatever it uses that is recorded", async () => {
    const code: Code = async (ctx) => {
      const at = new Date(await ctx.utcNow()).toISOString();
      const first = await ctx.race([ctx.scheduleActivity("A", at), ctx.scheduleTimer("1s")]);
      return { first, id: await ctx.newGuid(), epoch: Date.UTC(1970, 0), day: Date.parse("2024-01-01") };
    };
    const history = await recorded(code, [[completed(4, 1)]]);

    expect(history.at(-1)).toMatchObject({ type: "OrchestrationCompleted" });
    await assertDeterministic(history, codeOf(code));
  });

  test("passes with dates that tell no time, and may ask what a date is", async () => {
    const code: Code = async (ctx) => {
      class Day extends Date {}
      const [date, day] = [new Date(5), new Day(2024, 0, 1)];
      Object.assign(new Date(6), { constructor: Day });
      const isDate = [date instanceof Date, day instanceof Date, date.constructor === Date, day.constructor === Day];
      return ctx.scheduleActivity("A", { isDate, at: new (date.constructor as DateConstructor)(7) });
    };
    const history = await recorded(code);

    expect(history[1]).toMatchObject({ input: expect.stringContaining("[true,true,true,true]") });
    await assertDeterministic(history, codeOf(code));
  });

  test("may write to a console that notes the time", async () => {
    using written = vi.spyOn(console, "info").mockImplementation(() => void Date.now());
    const code: Code = async (ctx) => {
      console.info("before");
      await ctx.scheduleActivity("A");
      console.info("after");
    };
    const history = await recorded(code, [[completed(2, 1)]]);
    written.mockClear();

    await assertDeterministic(history, codeOf(code));
    expect(written).toHaveBeenCalledWith("after");
  });

  test.each(histories.filter(({ file }) => !file.startsWith("boom")))(
    "is what the original recorded: $file",
    async ({ events }) => {
      const { name } = startOf(events);

      await assertDeterministic(events, { ...codeOf(orchestrations[name]!), name });
    },
  );

  test("is what random programs are", async () => {
    for (let seed = 1_000; seed < 1_100; seed += 1) {
      const { program, history } = await randomRun(seed);
      const definition = { ...codeOf((ctx) => interpret(ctx, program)), name: "Random" };
      await assertDeterministic(history, definition).catch((error: unknown) => {
        throw new Error(`seed ${seed}`, { cause: error });
      });
    }
  });

  test("is replayed whole, and to the end of every turn, of two hundred, or of fewer if the history is long", async () => {
    let runs = 0;
    const counted = (steps: number): Code =>
      chain(steps, (ctx, n) => {
        if (n === 0) runs += 1;
        return ctx.scheduleActivity("A", n);
      });
    const short = await recorded(counted(5), answers(5));
    const long = await recorded(counted(500), answers(500));
    const longer = await recorded(counted(2_500), answers(2_500));

    runs = 0;
    await assertDeterministic(short, codeOf(counted(5)));
    expect(runs).toBe(3 + 5);
    runs = 0;
    await assertDeterministic(long, codeOf(counted(500)));
    expect(runs).toBe(3 + 200);
    runs = 0;
    await assertDeterministic(longer, codeOf(counted(2_500)));
    expect(runs).toBe(3 + 79);
  });
});

describe("code that looks at what no history records", () => {
  test.each<[string, string, () => unknown]>([
    ["Date.now", "ctx.utcNow", () => Date.now()],
    ["new Date", "ctx.utcNow", () => new Date().getFullYear()],
    ["new Date", "ctx.utcNow", () => Date()],
    ["performance.now", "ctx.utcNow", () => performance.now()],
    ["Math.random", "ctx.newGuid", () => Math.random()],
    ["crypto.randomUUID", "ctx.newGuid", () => crypto.randomUUID()],
    ["crypto.randomUUID", "ctx.newGuid", () => randomUUID()],
    ["crypto.getRandomValues", "ctx.newGuid", () => [...crypto.getRandomValues(new Uint32Array(2))]],
    ["crypto.randomBytes", "ctx.newGuid", () => nodeCrypto.randomBytes(8).toString("hex")],
    ["crypto.randomInt", "ctx.newGuid", () => nodeCrypto.randomInt(1_000_000_000)],
    ["crypto.randomFillSync", "ctx.newGuid", () => nodeCrypto.randomFillSync(Buffer.alloc(8)).toString("hex")],
  ])("is found with certainty: %s, instead of %s, in %s", async (what, instead, look) => {
    const decides: Code = async (ctx) => ctx.scheduleActivity("A", look());
    const looksOnly: Code = async (ctx) => {
      const first = ctx.scheduleActivity("A");
      look();
      return first;
    };
    const uses = `uses ${what}, which no history records; use ${instead} instead.`;

    await expect(assertDeterministic(await recorded(looksOnly), codeOf(looksOnly))).rejects.toMatchObject({
      code: "DUROXIDE_REPLAY_DIVERGED",
      message: `${INSTANCE}: the code ${uses}`,
    });
    const history = await recorded(decides);
    const error = await assertDeterministic(history, codeOf(decides)).catch((caught: Error) => caught);
    expect(error).toMatchObject({ divergences: [{ eventId: 2, remedy: `The code ${uses}` }] });
  });

  test.each<[string, string, () => unknown]>([
    ["setTimeout", "ctx.scheduleTimer", () => setTimeout(() => {}, 0)],
    ["fetch", "an activity", () => fetch("data:,x")],
  ])("is found: %s, instead of %s", async (what, instead, look) => {
    const code: Code = async (ctx) => {
      look();
      return ctx.scheduleActivity("A");
    };

    await expect(assertDeterministic(await recorded(code), codeOf(code))).rejects.toThrow(
      `the code uses ${what}, which no history records; use ${instead} instead.`,
    );
  });

  test("is found in a schema", async () => {
    const stamped = event("e", {
      schema: { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value: [value, Date.now()] }) } },
    });
    const code: Code = async (ctx) => {
      await ctx.waitForEvent(stamped);
    };
    const history = await recorded(code, [[raised("e", 1)]]);

    await expect(assertDeterministic(history, codeOf(code))).rejects.toThrow("the code uses Date.now");
  });

  test("is told everything that it looks at, after an await too, and in a branch", async () => {
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A");
      return ctx.race([
        async () => ctx.scheduleTimer(Math.random()),
        async () => ctx.waitForEvent(`E${Date.now() % 2}`),
      ]);
    };
    const history = await recorded(code, [[completed(2, 1)]]);

    await expect(assertDeterministic(history, codeOf(code))).rejects.toThrow(
      "uses Math.random, Date.now, which no history records; use ctx.newGuid and ctx.utcNow instead",
    );
  });
});

describe("code that decides by what it keeps to itself", () => {
  test("is found, if it counts its own runs", async () => {
    let runs = 0;
    const code: Code = async (ctx) => {
      runs += 1;
      return ctx.scheduleActivity("A", runs === 4 ? "tired" : "fresh");
    };
    const history = await recorded(code);

    expect(await replay(history, codeOf(code))).toMatchObject({ status: "waiting" });
    await expect(assertDeterministic(history, codeOf(code))).rejects.toThrow(
      'decides ActivityScheduled(name="A", input="\\"tired\\"")',
    );
  });

  test("is found, if it gives something up in another turn than it did", async () => {
    const dropping =
      (inTurn: number): Code =>
      async (ctx) => {
        const slow = ctx.scheduleActivity("Slow");
        for (const turn of [1, 2]) {
          await ctx.scheduleTimer("1s");
          if (turn === inTurn) slow.cancel();
        }
        return ctx.waitForEvent("next");
      };
    const history = await recorded(dropping(1), [[fired(3)], [fired(5)]]);

    await assertDeterministic(history, codeOf(dropping(1)));
    expect(await replay(history, codeOf(dropping(2)))).toMatchObject({ status: "waiting" });
    await expect(assertDeterministic(history, codeOf(dropping(2)))).rejects.toThrow(
      `history records ActivityCancelRequested(reason="dropped_future"), but the code now keeps event 2`,
    );
  });
});

describe("the other world", () => {
  const looking: Code = async (ctx) => ctx.scheduleActivity("A", Math.random());
  const fine = chain(20, (ctx, n) => ctx.scheduleActivity("A", n));
  const places: readonly [object, string][] = [
    [globalThis, "Date"],
    [Date, "now"],
    [Date.prototype, "constructor"],
    [performance, "now"],
    [console, "log"],
    [Math, "random"],
    [crypto, "randomUUID"],
    [crypto, "getRandomValues"],
    [nodeCrypto, "randomUUID"],
    [nodeCrypto, "randomBytes"],
    [nodeCrypto, "randomInt"],
    [nodeCrypto, "randomFillSync"],
  ];
  const real = () => places.map(([owner, key]) => Object.getOwnPropertyDescriptor(owner, key));

  test("is gone afterwards, however many calls there were at once, and however they ended", async () => {
    const before = real();
    const { randomUUID: imported } = await import("node:crypto");
    const [lookingHistory, fineHistory] = [await recorded(looking), await recorded(fine, answers(20))];

    const calls = Array.from({ length: 6 }, (_, n) =>
      n % 2 === 0
        ? assertDeterministic(fineHistory, codeOf(fine))
        : assertDeterministic(lookingHistory, codeOf(looking)),
    );
    const outcomes = await Promise.allSettled(calls);

    expect(outcomes.map(({ status }) => status)).toEqual(
      [0, 1, 2, 3, 4, 5].map((n) => (n % 2 === 0 ? "fulfilled" : "rejected")),
    );
    expect(real()).toEqual(before);
    expect((await import("node:crypto")).randomUUID).toBe(imported);
  });

  describe("leaves fake timers alone", () => {
    /** A visit that has come to the replayed code. */
    const underWay = async (history: readonly Event[]): Promise<{ readonly visit: Promise<void> }> => {
      let visit = Promise.resolve();
      await new Promise<void>((begun) => {
        const code: Code = async (ctx, input) => {
          begun();
          return fine(ctx, input);
        };
        visit = assertDeterministic(history, codeOf(code));
      });
      return { visit };
    };

    test("that begin meanwhile", async () => {
      const [before, history] = [real(), await recorded(fine, answers(20))];
      const { visit } = await underWay(history);

      vi.useFakeTimers({ now: 1_000 });
      await visit;
      const seen = [Date.now(), Date.parse(new Date().toISOString())];
      vi.useRealTimers();

      expect(seen).toEqual([1_000, 1_000]);
      expect(real()).toEqual(before);
    });

    test("that end meanwhile", async () => {
      const [before, history] = [real(), await recorded(fine, answers(20))];
      vi.useFakeTimers({ now: 1_000 });
      const { visit } = await underWay(history);

      vi.useRealTimers();
      await visit;

      expect(Date.now()).toBeGreaterThan(1_000_000);
      expect(real()).toEqual(before);
    });
  });

  test("is nobody else's: whoever is not replayed sees the real one", async () => {
    const history = await recorded(fine, answers(20));
    const begin = Date.now();
    const RealDate = Date;
    const seen: number[] = [];
    let isOver = false;
    const bystander = async (): Promise<void> => {
      while (!isOver) {
        seen.push(Date.now() - begin, Date.parse(new Date().toISOString()) - begin);
        expect([Date, new Date(0).constructor]).toEqual([RealDate, RealDate]);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const watching = bystander();
    await assertDeterministic(history, codeOf(fine));
    isOver = true;
    await watching;

    expect(seen.length).toBeGreaterThan(2);
    expect(Math.max(...seen)).toBeLessThan(600_000);
    expect(new Date(0)).toBeInstanceOf(Date);
  });
});

onEveryStore((store) => {
  describe("a world", () => {
    const work = activity("Work", async (_, n: number) => n + 1);
    const counts = orchestration("Counts", async (ctx, n: number): Promise<number> => {
      const total = (ctx.kv.get<number>("total") ?? 0) + n;
      ctx.kv.set("total", total);
      ctx.setCustomStatus(`at ${total}`);
      await ctx.scheduleActivity(work, total);
      return n < 3 ? ctx.continueAsNew(n + 1) : total;
    });
    const waits = (event: string) =>
      orchestration("Waits", async (ctx, n: number) => {
        await ctx.scheduleActivity(work, n);
        return ctx.waitForEvent<string>(event);
      });
    const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(counts, 1));

    test("in which all code fits passes: values, children and all executions included", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [counts, waits("go"), parent], activities: [work] });

      expect(await world.run(parent, { instanceId: "p" })).toBe(6);
      await world.client.start(waits("go"), { instanceId: "w", input: 1 });
      await world.rest();

      expect(await world.provider.admin?.listExecutions("p::sub::2")).toEqual([1, 2, 3]);
      await world.assertDeterministic();
    });

    test("in which code was changed lists all executions that no longer fit", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits("go"), counts], activities: [work] });
      for (const id of ["w1", "w2"]) {
        await world.client.start(waits("go"), { instanceId: id, input: 1 });
        await world.rest(); // Instances are listed in the order in which they began.
      }
      await world.run(counts, { instanceId: "c", input: 1 });
      await runtime.restart({ orchestrations: [waits("stop"), counts] });

      const error = await world.assertDeterministic().catch((caught: unknown) => caught);

      expect(error).toMatchObject({
        code: "DUROXIDE_REPLAY_DIVERGED",
        divergences: [
          { instanceId: "w1", executionId: 1, eventId: 4, recorded: 'records ExternalSubscribed(name="go")' },
          { instanceId: "w2", executionId: 1, eventId: 4, decided: 'decides ExternalSubscribed(name="stop")' },
        ],
      });
      expect((error as Error).message.split("\n").length).toBe(2);
    });

    test("in which executions were pruned checks the other instances", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [waits("go"), counts], activities: [work] });
      await world.run(counts, { instanceId: "c", input: 1 });
      await world.provider.admin?.pruneExecutions("c", {});
      await world.assertDeterministic();
      await world.client.start(waits("go"), { instanceId: "w", input: 1 });
      await world.rest();
      await runtime.restart({ orchestrations: [waits("stop"), counts] });

      await expect(world.assertDeterministic()).rejects.toMatchObject({ divergences: [{ instanceId: "w" }] });
    });

    test("in which nobody has the code of an instance says whose", async () => {
      await using world = await store.world();
      const runtime = await world.start({ orchestrations: [counts], activities: [work] });
      await world.run(counts, { instanceId: "c", input: 3 });
      await runtime.restart({ orchestrations: [] });

      await expect(world.assertDeterministic()).rejects.toThrow(
        "Instance 'c' is of orchestration 'Counts' 1.0.0, which no runtime of this world has.",
      );
    });
  });
});
