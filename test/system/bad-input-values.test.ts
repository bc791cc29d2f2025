// Values that JSON cannot carry: refused where they are passed, with the place where the trouble is. What JSON merely
// changes (`undefined`) is changed as documented.

import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { echo, expectRefused, STORES, World } from "./bad-input-world.js";

function cycle(): object {
  const value: Record<string, unknown> = { name: "a" };
  value.self = [value];
  return value;
}

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function nested(depth: number): unknown {
  let value: unknown = null;
  for (let n = 0; n < depth; n += 1) value = [value];
  return value;
}

const UNENCODABLE: Readonly<Record<string, readonly [value: unknown, problem: string]>> = {
  BigInt: [{ order: { amount: 12n } }, "$.order.amount is a BigInt, which JSON cannot carry; send it as a string"],
  "a cycle": [cycle(), "$.self[0] refers back to $, which JSON cannot carry"],
  "a function": [{ callback: () => 1 }, "$.callback is a function, which JSON cannot carry"],
  "a symbol": [Symbol("s"), "$ is a symbol, which JSON cannot carry"],
  NaN: [[1, Number.NaN], "$[1] is NaN, which JSON cannot carry"],
  Infinity: [{ "a b": Number.NEGATIVE_INFINITY }, '$["a b"] is -Infinity, which JSON cannot carry'],
  "a Map": [{ items: new Map([[1, 2]]) }, "$.items is a Map, which JSON cannot carry; send an array of its entries"],
  "a Set": [new Set([1]), "$ is a Set, which JSON cannot carry; send an array of its members"],
  "a promise": [{ later: Promise.resolve(1) }, "$.later is a Promise, which JSON cannot carry; await it first"],
  "a toJSON that throws": [
    {
      when: {
        toJSON: () => {
          throw new Error("not today");
        },
      },
    },
    "$.when cannot be encoded: not today",
  ],
  "a revoked proxy": [{ inside: revokedProxy() }, "$.inside cannot be encoded"],
  "a tower of arrays": [nested(1_001), "is nested more than 1000 levels deep"],
};
const NAMES = Object.keys(UNENCODABLE);

describe.each(STORES)("on the %s store, a value that JSON cannot carry", (_, open) => {
  describe("is refused by the client, and nothing is written", () => {
    const doors: readonly [door: string, what: string, send: (client: Client, value: unknown) => unknown][] = [
      [
        "start",
        "input of orchestration 'Control'",
        (client, input) => client.start("Control", { instanceId: "i", input }),
      ],
      ["raiseEvent", "data of event 'approval'", (client, data) => client.raiseEvent("i", "approval", data)],
      ["enqueueEvent", "data of event 'orders'", (client, data) => client.enqueueEvent("i", "orders", data)],
    ];
    test.each(doors)("%s", async (_door, what, send) => {
      const world = await World.open(open);
      for (const [value, problem] of Object.values(UNENCODABLE)) {
        await expectRefused(() => send(world.client, value), "DUROXIDE_INVALID_INPUT", `${what}: `);
        await expectRefused(() => send(world.client, value), "DUROXIDE_INVALID_INPUT", problem);
      }
      await world.expectNothingWritten();
      expect(await world.client.getStatus("i")).toEqual({ status: "NotFound" });
      await world.run();
      await world.expectAlive();
    });
  });

  describe("is refused by ctx, and nothing is recorded", () => {
    const doors: Readonly<
      Record<string, readonly [what: string, send: (c: OrchestrationContext, v: unknown) => unknown]>
    > = {
      scheduleActivity: ["input of activity 'Echo'", (ctx, value) => ctx.scheduleActivity(echo, value)],
      scheduleSubOrchestration: [
        "input of sub-orchestration 'Control'",
        (ctx, value) => ctx.scheduleSubOrchestration("Control", value),
      ],
      startOrchestration: [
        "input of orchestration 'Control'",
        (ctx, input) => ctx.startOrchestration("Control", { instanceId: "detached", input }),
      ],
      continueAsNew: ["input of orchestration 'Doors'", (ctx, value) => ctx.continueAsNew(value)],
      "kv.set": ["value of key 'k'", (ctx, value) => ctx.kv.set("k", value)],
    };

    const tries = orchestration("Doors", async (ctx, { door, isCaught }: { door: string; isCaught: boolean }) => {
      const refusals: { code: string; message: string }[] = [];
      for (const name of NAMES) {
        try {
          await doors[door]![1](ctx, UNENCODABLE[name]![0]);
        } catch (error) {
          if (!isCaught) throw error;
          const { code, message } = error as Error & { code: string };
          refusals.push({ code, message });
        }
      }
      return refusals;
    });

    test.each(Object.keys(doors))("%s", async (door) => {
      const world = await World.open(open);
      await world.run({ orchestrations: [tries] });
      const caught = await world.client.start(tries, { instanceId: "caught", input: { door, isCaught: true } });
      const fatal = await world.client.start(tries, { instanceId: "fatal", input: { door, isCaught: false } });

      const [what] = doors[door]!;
      expect(await world.settled(caught.result())).toEqual(
        NAMES.map((name) => ({
          code: "DUROXIDE_INVALID_INPUT",
          message: expect.stringMatching(new RegExp(`^${what}: .*${escaped(UNENCODABLE[name]![1])}`)),
        })),
      );
      expect((await world.client.readHistory("caught")).length).toBe(2);
      const failure = `${what}: ${UNENCODABLE.BigInt![1]}`;
      await expectRefused(() => world.settled(fatal.result()), "DUROXIDE_ORCHESTRATION_FAILED", failure);
      expect(await world.client.getStatus("detached")).toEqual({ status: "NotFound" });
      await world.expectAlive();
    });
  });

  test("fails the activity that returns it, which the orchestration may catch", async () => {
    const world = await World.open(open);
    const bad = activity("Bad", async (_ctx, name: string) => UNENCODABLE[name]![0]);
    const calls = orchestration("Calls", async (ctx) => {
      const messages: string[] = [];
      for (const name of NAMES) {
        await ctx.scheduleActivity(bad, name).catch((error: Error) => messages.push(`${error.name}: ${error.message}`));
      }
      return messages;
    });
    await world.run({ orchestrations: [calls], activities: [bad] });
    const handle = await world.client.start(calls);

    expect(await world.settled(handle.result())).toEqual(
      NAMES.map((name) =>
        expect.stringMatching(
          new RegExp(`^ActivityFailedError: output of activity 'Bad': .*${escaped(UNENCODABLE[name]![1])}`),
        ),
      ),
    );
    await world.expectAlive();
  });

  test("fails the orchestration that returns it", async () => {
    const world = await World.open(open);
    const bad = orchestration("Bad", async (_ctx, name: string) => UNENCODABLE[name]![0]);
    await world.run({ orchestrations: [bad] });
    for (const name of NAMES) {
      const handle = await world.client.start(bad, { input: name });
      const result = () => world.settled(handle.result());
      await expectRefused(result, "DUROXIDE_ORCHESTRATION_FAILED", "output of orchestration 'Bad': ");
      await expectRefused(result, "DUROXIDE_ORCHESTRATION_FAILED", UNENCODABLE[name]![1]);
    }
    await world.expectAlive();
  });
});

describe.each(STORES)("on the %s store, undefined", (_, open) => {
  test("is null wherever it is the whole value", async () => {
    const world = await World.open(open);
    const nothing = activity("Nothing", async (_ctx, _input: unknown) => undefined);
    const passes = orchestration("Passes", async (ctx, input: unknown) => {
      if (ctx.executionId === 1) return ctx.continueAsNew();
      const seen: unknown[] = [input];
      seen.push(await ctx.scheduleActivity(echo, undefined));
      seen.push(await ctx.scheduleActivity(nothing, 1));
      seen.push(await ctx.scheduleSubOrchestration("Control"));
      ctx.kv.set("k", undefined);
      seen.push(ctx.kv.get("k"));
      seen.push(await ctx.waitForEvent("approval"));
      seen.push(await ctx.dequeueEvent("orders"));
      return seen;
    });
    await world.run({ orchestrations: [passes], activities: [nothing] });
    const handle = await world.client.start(passes, { instanceId: "i", input: undefined });
    await world.settled(handle.waitForKv("k"));
    await handle.raiseEvent("approval");
    await handle.enqueueEvent("orders");

    expect(await world.settled(handle.result())).toEqual([null, null, null, null, null, null, null]);
    expect(await world.client.getKvValue("i", "k")).toBeNull();
  });

  test("is left out of objects and null in arrays, and dates are texts, as JSON has it", async () => {
    const world = await World.open(open);
    await world.run();
    const input = { gone: undefined, list: [undefined, 1], when: new Date(0), bytes: Buffer.from("a") };
    const handle = await world.client.start("Control", { input });

    expect(await world.settled(handle.result())).toEqual({
      list: [null, 1],
      when: "1970-01-01T00:00:00.000Z",
      bytes: { type: "Buffer", data: [97] },
    });
  });
});

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
