// Small programs as users write them, from a client's start to the result. R§4.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, event, orchestration } from "../../src/define.js";
import { ActivityFailedError } from "../../src/errors.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { onEveryStore } from "./stores.js";

onEveryStore((store) => {
  describe("plain control flow", () => {
    test.each([
      ["yes", "picked_yes"],
      ["no", "picked_no"],
    ])("branches on what an activity answers: %s", async (flag, output) => {
      await using world = await store.world();
      const getFlag = activity("GetFlag", () => flag);
      const sayYes = mockActivity<void, string>("SayYes", () => "picked_yes");
      const sayNo = mockActivity<void, string>("SayNo", () => "picked_no");
      const branches = orchestration("Branches", async (ctx) =>
        (await ctx.scheduleActivity(getFlag)) === "yes" ? ctx.scheduleActivity(sayYes) : ctx.scheduleActivity(sayNo),
      );
      await world.start({ orchestrations: [branches], activities: [getFlag, sayYes, sayNo] });

      expect(await world.run(branches)).toBe(output);
      expect([sayYes.calls.length, sayNo.calls.length]).toEqual(flag === "yes" ? [1, 0] : [0, 1]);
    });

    test("loops, and hands each result to the next call", async () => {
      await using world = await store.world();
      const append = mockActivity<string, string>("Append", (_ctx, text) => `${text}x`);
      const loops = orchestration("Loops", async (ctx, text: string) => {
        let result = text;
        for (let round = 0; round < 3; round += 1) result = await ctx.scheduleActivity(append, result);
        return result;
      });
      await world.start({ orchestrations: [loops], activities: [append] });

      expect(await world.run(loops, { input: "start" })).toBe("startxxx");
      expect(append.calls.map(({ input }) => input)).toEqual(["start", "startx", "startxx"]);
    });

    test("fans out to activities, and in again in the order of the call", async () => {
      await using world = await store.world();
      const greetings = activity("Greetings", async (_ctx, { name, takesMs }: { name: string; takesMs: number }) => {
        await sleep(world.clock, takesMs);
        return `Hello, ${name}!`;
      });
      const greetsAll = orchestration("GreetsAll", async (ctx) => {
        const greeted = await ctx.all([
          ctx.scheduleActivity(greetings, { name: "Gabbar", takesMs: 20 }),
          ctx.scheduleActivity(greetings, { name: "Samba", takesMs: 10 }),
        ]);
        return greeted.join(", ");
      });
      await world.start({ orchestrations: [greetsAll], activities: [greetings] });

      expect(await world.run(greetsAll)).toBe("Hello, Gabbar!, Hello, Samba!");
    });

    test("ends while a client waits, with a deadline that it keeps", async () => {
      await using world = await store.world();
      const slow = orchestration("Slow", async (ctx) => {
        await ctx.scheduleTimer("20ms");
        return "done";
      });
      await world.start({ orchestrations: [slow] });
      await world.client.start(slow, { instanceId: "s" });
      await world.rest();

      expect(await world.client.getStatus("s")).toMatchObject({ status: "Running" });
      const ended = await world.settle(world.client.waitForOrchestration("s", { timeoutMs: 2_000 }));
      expect(ended).toMatchObject({ status: "Completed", output: "done" });
      expect(await world.client.getStatus("s")).toEqual(ended);
    });
  });

  describe("a failed activity", () => {
    test("can be caught, and another one called instead", async () => {
      await using world = await store.world();
      const fragile = mockActivity<string, string>("Fragile", () => "fine");
      const recover = activity("Recover", (_ctx, reason: string) => `recovered from ${reason}`);
      const careful = orchestration("Careful", async (ctx) => {
        try {
          return await ctx.scheduleActivity(fragile, "bad");
        } catch (error) {
          if (!(error instanceof ActivityFailedError)) throw error;
          return ctx.scheduleActivity(recover, error.message);
        }
      });
      fragile.failNext("boom");
      await world.start({ orchestrations: [careful], activities: [fragile, recover] });

      expect(await world.run(careful, { instanceId: "c" })).toBe("recovered from boom");
      expect(await world.eventTypes("c")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ActivityFailed",
        "ActivityScheduled",
        "ActivityCompleted",
        "OrchestrationCompleted",
      ]);
    });

    test("that nobody catches fails the orchestration with its message", async () => {
      await using world = await store.world();
      const validate = activity("ValidateInput", (_ctx, input: string) => {
        if (input === "") throw new Error("Input cannot be empty");
        return `Valid: ${input}`;
      });
      const validates = orchestration("Validates", async (ctx, input: string) => ctx.scheduleActivity(validate, input));
      await world.start({ orchestrations: [validates], activities: [validate] });

      expect(await world.run(validates, { input: "test" })).toBe("Valid: test");
      await expect(world.run(validates, { instanceId: "empty", input: "" })).rejects.toThrow("Input cannot be empty");
      expect(await world.ending("empty")).toEqual({ status: "Failed", output: "Input cannot be empty" });
    });

    test("in a helper function of the orchestration is thrown through it", async () => {
      await using world = await store.world();
      const processData = activity("ProcessData", (_ctx, data: string) => {
        if (data === "error") throw new Error("Processing failed");
        return `Processed: ${data}`;
      });
      const formatOutput = mockActivity<string, string>("FormatOutput", (_ctx, data) => `Final: ${data}`);
      const nested = orchestration("Nested", async (ctx, data: string) => {
        const processAndFormat = async () => {
          const processed = await ctx.scheduleActivity(processData, data);
          return ctx.scheduleActivity(formatOutput, processed);
        };
        return processAndFormat();
      });
      await world.start({ orchestrations: [nested], activities: [processData, formatOutput] });

      expect(await world.run(nested, { input: "test" })).toBe("Final: Processed: test");
      await expect(world.run(nested, { input: "error" })).rejects.toThrow(/^Processing failed$/);
      expect(formatOutput.calls.length).toBe(1);
    });

    test("can be logged, and thrown on as an error of the orchestration's own", async () => {
      await using world = await store.world();
      const processData = activity("ProcessData", (_ctx, data: string) => {
        if (data === "error") throw new Error("disk on fire");
        return `Processed: ${data}`;
      });
      const logError = mockActivity<string, void>("LogError", () => {});
      const recovers = orchestration("Recovers", async (ctx, data: string) => {
        try {
          return await ctx.scheduleActivity(processData, data);
        } catch (error) {
          const message = `Failed to process '${data}': ${(error as Error).message}`;
          await ctx.scheduleActivity(logError, message);
          throw new Error(message);
        }
      });
      await world.start({ orchestrations: [recovers], activities: [processData, logError] });

      expect(await world.run(recovers, { input: "test" })).toBe("Processed: test");
      await world.client.start(recovers, { instanceId: "r", input: "error" });
      const message = "Failed to process 'error': disk on fire";
      expect(await world.ending("r")).toEqual({ status: "Failed", output: message });
      expect(logError.calls.map(({ input }) => input)).toEqual([message]);
    });
  });

  describe("a race", () => {
    test("against a timer gives an activity a deadline", async () => {
      await using world = await store.world();
      const slow = activity("Slow", async (ctx) => sleep(world.clock, 500, ctx.signal));
      const limited = orchestration("Limited", async (ctx) => {
        const { winner } = await ctx.race({ done: ctx.scheduleActivity(slow), timeout: ctx.scheduleTimer("100ms") });
        if (winner === "timeout") throw new Error("timeout");
      });
      await world.start({ orchestrations: [limited], activities: [slow] });
      const startMs = world.clock.now();
      await world.client.start(limited, { instanceId: "l" });

      expect(await world.ending("l")).toEqual({ status: "Failed", output: "timeout" });
      expect(world.clock.now()).toBe(startMs + 100);
    });

    test("of an activity and an event is won by the event that comes first, and says which it was", async () => {
      await using world = await store.world();
      const slow = activity("Slow", async (ctx) => sleep(world.clock, 300, ctx.signal));
      const either = orchestration("Either", async (ctx) => {
        const first = await ctx.race([ctx.scheduleActivity(slow), ctx.waitForEvent<string>("Go")]);
        return first.index === 1 ? `event:${first.value}` : "activity";
      });
      await world.start({ orchestrations: [either], activities: [slow] });
      const handle = await world.client.start(either, { instanceId: "e" });
      await world.rest();
      expect(await world.eventTypes("e")).toContain("ExternalSubscribed");
      await handle.raiseEvent("Go", "ok");

      expect(await world.settle(handle.result())).toBe("event:ok");
      expect(await world.eventTypes("e")).toEqual([
        "OrchestrationStarted",
        "ActivityScheduled",
        "ExternalSubscribed",
        "ExternalEvent",
        "ActivityCancelRequested",
        "OrchestrationCompleted",
      ]);
    });
  });

  describe("values", () => {
    interface Numbers {
      readonly a: number;
      readonly b: number;
    }
    const add = activity("Add", (_ctx, { a, b }: Numbers) => ({ sum: a + b }));

    test("keep their types from the start through the activity to the result", async () => {
      await using world = await store.world();
      const adds = orchestration("Adds", async (ctx, numbers: Numbers) => ctx.scheduleActivity(add, numbers));
      await world.start({ orchestrations: [adds], activities: [add] });

      const { sum }: { sum: number } = await world.run(adds, { instanceId: "a", input: { a: 2, b: 3 } });
      expect(sum).toBe(5);
      expect(await world.history("a")).toMatchObject([
        { type: "OrchestrationStarted", input: '{"a":2,"b":3}' },
        { type: "ActivityScheduled", input: '{"a":2,"b":3}' },
        { type: "ActivityCompleted", result: '{"sum":5}' },
        { type: "OrchestrationCompleted", output: '{"sum":5}' },
      ]);
    });

    test("of an event arrive as what they were sent as", async () => {
      await using world = await store.world();
      const ready = event<{ ok: boolean }>("Ready");
      const waits = orchestration("Waits", async (ctx) => {
        const message = await ctx.waitForEvent(ready);
        return `${message.ok}: ${JSON.stringify(message)}`;
      });
      await world.start({ orchestrations: [waits] });
      const handle = await world.client.start(waits);
      await world.rest();
      await handle.raiseEvent(ready, { ok: true });

      expect(await world.settle(handle.result())).toBe('true: {"ok":true}');
    });

    describe.each([
      ["objects", { a: 1, b: 2, text: "hello" }],
      ["text", "1,2,hello"],
    ])("may be of different kinds in the branches of a race, given %s", (_what, input) => {
      test.each([
        ["Add", "sum=3"],
        ["Upper", "up=HELLO"],
      ])("where %s is first", async (first, output) => {
        await using world = await store.world();
        const inTurn = (name: string) => sleep(world.clock, name === first ? 10 : 20);
        const slowAdd = mockActivity(add, async (_ctx, { a, b }) => {
          await inTurn("Add");
          return { sum: a + b };
        });
        const upper = activity("Upper", async (_ctx, text: string) => {
          await inTurn("Upper");
          return text.toUpperCase();
        });
        const mixed = orchestration("Mixed", async (ctx, given: typeof input) => {
          const { a, b, text } = typeof given === "string" ? parsed(given) : given;
          const { value } = await ctx.race([
            async () => `sum=${(await ctx.scheduleActivity(slowAdd, { a, b })).sum}`,
            async () => `up=${await ctx.scheduleActivity(upper, text)}`,
          ]);
          return value;
        });
        await world.start({ orchestrations: [mixed], activities: [slowAdd, upper] });

        expect(await world.run(mixed, { input })).toBe(output);
      });
    });

    function parsed(text: string): Numbers & { readonly text: string } {
      const [a, b, rest] = text.split(",");
      return { a: Number(a), b: Number(b), text: String(rest) };
    }
  });
});
