// Code against recorded histories: what is found, in which words, and what is rightly not.

import { describe, expect, test } from "vitest";
import { exportHistory } from "../../src/testing/exported-history.js";
import { replay } from "../../src/testing/replay.js";
import type { Replayed } from "../../src/testing/replay-check.js";
import {
  activityFailed,
  type Code,
  cancel,
  completed,
  fired,
  historyOf,
  NOW,
  raised,
  scheduled,
  started,
} from "../engine/drive.js";
import { histories, orchestrations, startOf } from "../engine/golden.js";
import { interpret } from "../engine/random-program.js";
import { randomRun } from "../engine/random-run.js";
import { codeOf, recorded, replayed } from "./recorded.js";

describe("code that fits its history", () => {
  const timerOrShipped: Code = async (ctx) => {
    const charged = await ctx.scheduleActivity("Charge", 12);
    ctx.setCustomStatus("charged");
    ctx.kv.set("receipt", charged);
    return ctx.race({ late: ctx.scheduleTimer("3d"), shipped: ctx.waitForEvent("shipped") });
  };

  test("waits for what it waited for", async () => {
    const history = await recorded(timerOrShipped, [[completed(2, "receipt")]]);

    expect(await replayed(history.slice(0, 2), timerOrShipped)).toEqual({
      status: "waiting",
      events: 2,
      waitingFor: ["activity 'Charge'"],
    });
    expect(await replayed(history, timerOrShipped)).toEqual({
      status: "waiting",
      events: 7,
      waitingFor: ["a timer", "event 'shipped'"],
    });
  });

  test("does not wait for what it has dropped or forgotten", async () => {
    const code: Code = async (ctx) => {
      ctx.scheduleActivity("Forgotten");
      await ctx.race([ctx.scheduleTimer("1s"), ctx.waitForEvent("go")]);
      return ctx.all([ctx.scheduleSubOrchestration("Child"), ctx.dequeueEvent("inbox")]);
    };
    const history = await recorded(code, [[raised("go", 1)]]);

    expect(await replayed(history, code)).toMatchObject({
      waitingFor: ["sub-orchestration 'Child'", "a message in 'inbox'"],
    });
  });

  test.each<[string, Code, Parameters<typeof recorded>[1], Partial<Replayed>]>([
    [
      "completed",
      timerOrShipped,
      [[completed(2, "r")], [raised("shipped", "P-7")]],
      { status: "completed", output: { winner: "shipped", value: "P-7" } },
    ],
    [
      "failed",
      async (ctx) => ctx.scheduleActivity("A"),
      [[activityFailed(2, "declined")]],
      {
        status: "failed",
        details: {
          category: "application",
          kind: { type: "OrchestrationFailed" },
          message: "declined",
          retryable: false,
        },
      },
    ],
    [
      "cancelled",
      timerOrShipped,
      [[completed(2, "r")], [cancel("no longer needed")]],
      { status: "cancelled", reason: "no longer needed" },
    ],
    [
      "continued as new",
      async (ctx) => ctx.continueAsNew({ page: 2 }),
      [],
      { status: "continuedAsNew", input: { page: 2 } },
    ],
  ])("ends as it ended: %s", async (_, code, batches, ending) => {
    const history = await recorded(code, batches);

    expect(await replayed(history, code)).toMatchObject({ ...ending, events: history.length });
  });

  test("is found in exported text as well", async () => {
    const history = await recorded(timerOrShipped);

    expect(await replay(exportHistory(history), codeOf(timerOrShipped))).toMatchObject({ status: "waiting" });
  });

  test("may have other timers, and system calls get what they got", async () => {
    const code =
      (seconds: number): Code =>
      async (ctx) => {
        await ctx.scheduleTimer(`${seconds}s`);
        return { at: await ctx.utcNow(), id: await ctx.newGuid() };
      };
    const history = await recorded(code(1), [[fired(2)]]);

    expect(await replayed(history, code(5))).toMatchObject({ status: "completed", output: { at: NOW + 2 } });
  });

  test("is led through its history without doing anything: no activity, no trace, no rejection that ends the process", async () => {
    const traces: string[] = [];
    const code: Code = async (ctx) => {
      const helper = (async () => {
        await ctx.scheduleActivity("A");
        throw new Error("before anybody awaits it");
      })();
      ctx.trace.info("once");
      await ctx.scheduleTimer("1s");
      return helper;
    };
    const history = await recorded(code, [[completed(2, 1)]], { traces });

    expect(await replayed(history, code)).toMatchObject({ waitingFor: ["a timer"] });
    expect(traces).toEqual(["info: once"]);
  });

  test("sees the values that it found when the execution began", async () => {
    const code: Code = async (ctx) => {
      await ctx.scheduleActivity("A", ctx.kv.get("count"));
      return ctx.kv.pruneUpdatedBefore(5);
    };
    const history = await recorded(code, [[completed(2, null)]], { kv: { count: "7" } });

    await expect(replayed(history, code)).rejects.toThrow(
      'but the code now decides ActivityScheduled(name="A", input="null")',
    );
    expect(await replayed(history, code, { kv: { count: 7 } })).toMatchObject({ status: "completed", output: 1 });
    const recent = new Map([["count", { value: "7", lastUpdatedAtMs: 6 }]]);
    await expect(replayed(history, code, { kv: recent })).rejects.toThrow(
      'history records KeyValueCleared(key="count")',
    );
  });

  test.each<[string, unknown]>([
    ["a value", new Map([["count", 7]])],
    ["nothing", new Map([["count", null]])],
    ["a time that is none", new Map([["count", { value: "7", lastUpdatedAtMs: Number.NaN }]])],
    ["a key that is none", new Map([[1, { value: "7", lastUpdatedAtMs: 0 }]])],
  ])("is not told of values by a map with %s for an entry", async (_, kv) => {
    await expect(replayed(await recorded(async () => 1), async () => 1, { kv: kv as never })).rejects.toMatchObject({
      code: "DUROXIDE_INVALID_INPUT",
      message: expect.stringContaining("in a Map, an entry { value, lastUpdatedAtMs } is expected"),
    });
  });

  test.each(histories.filter(({ file }) => !file.startsWith("boom")))(
    "is found in what the original recorded: $file",
    async ({ events }) => {
      const { name } = startOf(events);
      const definition = { ...codeOf(orchestrations[name]!), name };

      expect(await replay(events, definition)).toMatchObject({ events: events.length });
    },
  );

  test("is found in what random programs recorded", async () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const { program, history } = await randomRun(seed);
      const definition = { ...codeOf((ctx) => interpret(ctx, program)), name: "Random" };
      expect(await replay(history, definition), `seed ${seed}`).toMatchObject({ events: history.length });
    }
  });
});

describe("what cannot be replayed", () => {
  const code: Code = async (ctx) => ctx.scheduleActivity("A");

  test("a history of another orchestration", async () => {
    const history = await recorded(code);

    await expect(replay(history, { ...codeOf(code), name: "Other" })).rejects.toThrow(
      expect.objectContaining({
        code: "DUROXIDE_INVALID_INPUT",
        message:
          "The history of instance 'test-instance' is of orchestration 'TestOrch' 1.0.0, but given is 'Other' 1.0.0. Give the code that has this name and version.",
      }),
    );
  });

  test("a history of another version; of several versions its own is taken", async () => {
    const history = await recorded(code);
    const newer = codeOf(async (ctx) => ctx.scheduleActivity("B"), "2.0.0");

    await expect(replay(history, newer)).rejects.toThrow("but given is 'TestOrch' 2.0.0");
    await expect(replay(history, [])).rejects.toThrow("but given is none");
    expect(await replay(history, [newer, codeOf(code)])).toMatchObject({ status: "waiting" });
  });

  test.each<[string, Parameters<typeof replay>, string]>([
    ["events that are no history", [historyOf(scheduled("A")), codeOf(code)], "DUROXIDE_INVALID_HISTORY"],
    ["no events at all", [undefined as never, codeOf(code)], "DUROXIDE_INVALID_HISTORY"],
    ["text that is no history", ["{", codeOf(code)], "DUROXIDE_CODEC"],
    ["code that is none", [historyOf(started), undefined as never], "DUROXIDE_REGISTRATION"],
    ["an unknown option", [historyOf(started), codeOf(code), { limit: {} } as never], "DUROXIDE_INVALID_OPTIONS"],
    [
      "an unknown limit",
      [historyOf(started), codeOf(code), { limits: { maxKeys: 1 } as never }],
      "DUROXIDE_INVALID_OPTIONS",
    ],
    ["values that JSON cannot carry", [historyOf(started), codeOf(code), { kv: { a: 1n } }], "DUROXIDE_INVALID_INPUT"],
  ])("%s", async (_, args, errorCode) => {
    await expect(replay(...args)).rejects.toMatchObject({ code: errorCode });
  });

  test("a failure of the original's, whose text was a stack trace", async () => {
    const { events } = histories.find(({ file }) => file.startsWith("boom"))!;
    const definition = { ...codeOf(orchestrations.Boom!), name: "Boom" };

    await expect(replay(events, definition)).rejects.toThrow("golden.cjs");
  });
});
