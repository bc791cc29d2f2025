// Values that their schema refuses: told to whoever sends them, and caught by whoever receives them from a sender that
// did not ask. With zod, whose schemas are Standard Schemas.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity, event, orchestration } from "../../src/define.js";
import { expectRefused, STORES, World } from "./bad-input-world.js";

const Order = z.object({ id: z.string(), items: z.array(z.object({ price: z.number().positive() })) });
const Receipt = z.object({ total: z.number() });
type Order = z.infer<typeof Order>;

const good: Order = { id: "order-1", items: [{ price: 12 }] };
const bad = { id: 7, items: [{ price: -1 }] } as unknown as Order;
/** Both problems of `bad`, each with its place. */
const PROBLEMS = /id: .*expected string.*; items\[0\]\.price: Too small/;

const approval = event("approval", { schema: z.object({ ok: z.boolean() }) });
const orders = event("orders", { schema: Order });

const charge = activity({ name: "Charge", input: Order, output: Receipt }, async (_ctx, order) => ({
  total: order.items.reduce((sum, { price }) => sum + price, 0),
}));
const cheat = activity({ name: "Cheat", output: Receipt }, async () => ({ total: "a lot" }) as never);

const checkout = orchestration({ name: "Checkout", input: Order, output: Receipt }, async (ctx, order) =>
  ctx.scheduleActivity(charge, order),
);
const boast = orchestration({ name: "Boast", output: Receipt }, async () => ({ total: "a lot" }) as never);

describe.each(STORES)("on the %s store", (_, open) => {
  test("what fits goes through every door", async () => {
    const world = await World.open(open);
    await world.run({ orchestrations: [checkout], activities: [charge] });
    const handle = await world.client.start(checkout, { input: good });

    expect(await world.settled(handle.result())).toEqual({ total: 12 });
  });

  describe("a sender is told, and nothing is written", () => {
    test.each([
      ["client.start", "The input of orchestration 'Checkout' is invalid: ", PROBLEMS],
      ["client.raiseEvent", "The data of event 'approval' is invalid: ", /ok: .*expected boolean/],
      ["client.enqueueEvent", "The data of event 'orders' is invalid: ", PROBLEMS],
    ])("%s", async (door, what, problems) => {
      const world = await World.open(open);
      const { client } = world;
      const send = async (): Promise<unknown> => {
        if (door === "client.start") return client.start(checkout, { instanceId: "i", input: bad });
        if (door === "client.raiseEvent") return client.raiseEvent("i", approval, { ok: "yes" } as never);
        return client.enqueueEvent("i", orders, bad);
      };

      await expectRefused(send, "DUROXIDE_INVALID_INPUT", what);
      await expectRefused(send, "DUROXIDE_INVALID_INPUT", problems);
      await world.expectNothingWritten();
      expect(await client.getStatus("i")).toEqual({ status: "NotFound" });
    });

    test("ctx, which throws where the call is", async () => {
      const world = await World.open(open);
      const calls = orchestration("Calls", async (ctx) => {
        const refusals: string[] = [];
        const note = (error: unknown): unknown =>
          refusals.push(`${(error as Error).name}: ${(error as Error).message}`);
        await (async () => ctx.scheduleActivity(charge, bad))().catch(note);
        await (async () => ctx.scheduleActivity(charge, bad, { retry: { maxAttempts: 5 } }))().catch(note);
        await (async () => ctx.scheduleSubOrchestration(checkout, bad))().catch(note);
        await (async () => ctx.startOrchestration(checkout, { instanceId: "detached", input: bad }))().catch(note);
        return refusals;
      });
      await world.run({ orchestrations: [calls, checkout], activities: [charge] });
      const handle = await world.client.start(calls, { instanceId: "calls" });

      const refused = (what: string) =>
        expect.stringMatching(new RegExp(`^InvalidInputError: The input of ${what} is invalid: ${PROBLEMS.source}`));
      expect(await world.settled(handle.result())).toEqual([
        refused("activity 'Charge'"),
        refused("activity 'Charge'"),
        refused("sub-orchestration 'Checkout'"),
        refused("orchestration 'Checkout'"),
      ]);
      expect((await world.client.readHistory("calls")).length).toBe(2);
      expect(await world.client.getStatus("detached")).toEqual({ status: "NotFound" });
    });
  });

  describe("a receiver refuses what a sender without the schema has sent", () => {
    test("an activity fails on its input and on its output", async () => {
      const world = await World.open(open);
      const calls = orchestration("Calls", async (ctx) => {
        const failures: string[] = [];
        const note = (error: unknown): unknown => failures.push((error as Error).message);
        await ctx.scheduleActivity("Charge", bad).catch(note);
        await ctx.scheduleActivity("Cheat").catch(note);
        await ctx.scheduleActivity(cheat).catch(note);
        return failures;
      });
      await world.run({ orchestrations: [calls], activities: [charge, cheat] });
      const handle = await world.client.start(calls);

      const noReceipt = expect.stringMatching(/^The output of activity 'Cheat' is invalid: total: .*expected number/);
      expect(await world.settled(handle.result())).toEqual([
        expect.stringMatching(new RegExp(`^The input of activity 'Charge' is invalid: ${PROBLEMS.source}`)),
        noReceipt,
        noReceipt,
      ]);
      await world.expectAlive();
    });

    test("an orchestration fails on its input and on its output, before it has decided anything", async () => {
      const world = await World.open(open);
      await world.run({ orchestrations: [checkout, boast], activities: [charge] });
      const fed = await world.client.start("Checkout", { instanceId: "fed", input: bad });
      const boasting = await world.client.start(boast, { instanceId: "boasting" });

      const noOrder = new RegExp(`^The input of orchestration 'Checkout' is invalid: ${PROBLEMS.source}`);
      await expectRefused(() => world.settled(fed.result()), "DUROXIDE_ORCHESTRATION_FAILED", noOrder);
      const noReceipt = /^The output of orchestration 'Boast' is invalid: total: .*expected number/;
      await expectRefused(() => world.settled(boasting.result()), "DUROXIDE_ORCHESTRATION_FAILED", noReceipt);
      expect((await world.client.readHistory("fed")).map(({ type }) => type)).toEqual([
        "OrchestrationStarted",
        "OrchestrationFailed",
      ]);
    });

    test("a child's bad output is thrown into its parent", async () => {
      const world = await World.open(open);
      const parent = orchestration("Parent", async (ctx) =>
        ctx.scheduleSubOrchestration("Boast").catch((error: Error) => `${error.name}: ${error.message}`),
      );
      await world.run({ orchestrations: [parent, boast] });
      const handle = await world.client.start(parent);

      expect(await world.settled(handle.result())).toMatch(
        /^OrchestrationFailedError: The output of orchestration 'Boast' is invalid/,
      );
    });

    test("an event or a message is thrown where it is awaited, and the next one is welcome", async () => {
      const world = await World.open(open);
      const waits = orchestration("Waits", async (ctx) => {
        const seen: unknown[] = [];
        const note = (error: unknown): unknown => `${(error as Error).name}: ${(error as Error).message}`;
        for (let n = 0; n < 2; n += 1) seen.push(await ctx.waitForEvent(approval).catch(note));
        for (let n = 0; n < 2; n += 1) seen.push(await ctx.dequeueEvent(orders).catch(note));
        return seen;
      });
      await world.run({ orchestrations: [waits] });
      const handle = await world.client.start(waits, { instanceId: "waits" });
      await world.clock.advance(0);
      for (const data of [{ ok: "yes" }, { ok: true }]) {
        await handle.raiseEvent("approval", data);
        await world.clock.advance(0);
      }
      for (const data of [bad, good]) await handle.enqueueEvent("orders", data);

      expect(await world.settled(handle.result())).toEqual([
        expect.stringMatching(/^InvalidInputError: The event 'approval' is invalid: ok: .*expected boolean/),
        { ok: true },
        expect.stringMatching(new RegExp(`^InvalidInputError: The message of 'orders' is invalid: ${PROBLEMS.source}`)),
        good,
      ]);
    });

    test("a client whose idea of the result differs is told so", async () => {
      const world = await World.open(open);
      await world.run();
      const declared = orchestration<string, { total: number }>({ name: "Control", output: Receipt });
      const handle = await world.client.start(declared, { instanceId: "i", input: "not a receipt" });

      const message = /^The output of instance 'i' is invalid: .*expected object/;
      await expectRefused(() => world.settled(handle.result()), "DUROXIDE_INVALID_INPUT", message);
      expect(await world.client.getStatus("i")).toMatchObject({ status: "Completed", output: "not a receipt" });
    });
  });

  describe("a schema that takes its time", () => {
    const Even = z.number().refine(async (n) => n % 2 === 0, "must be even");

    test("is waited for by the client and by activities", async () => {
      const world = await World.open(open);
      const half = activity({ name: "Half", input: Even, output: z.number() }, async (_ctx, n) => n / 2);
      const halves = orchestration("Halves", async (ctx, n: number) => ctx.scheduleActivity(half, n));
      const halved = orchestration<number, number>({ name: "Halves", input: Even });
      await world.run({ orchestrations: [halves], activities: [half] });

      const even = await world.client.start(halves, { input: 4 });
      expect(await world.settled(even.result())).toBe(2);
      const odd = await world.client.start(halves, { input: 3 });
      const message = "The input of activity 'Half' is invalid: must be even";
      await expectRefused(() => world.settled(odd.result()), "DUROXIDE_ORCHESTRATION_FAILED", message);
      const refused = "The input of orchestration 'Halves' is invalid: must be even";
      await expectRefused(() => world.client.start(halved, { input: 3 }), "DUROXIDE_INVALID_INPUT", refused);
    });

    test("cannot be waited for inside an orchestration, which fails and says what to do", async () => {
      const world = await World.open(open);
      const numbers = event("numbers", { schema: Even });
      const takes = orchestration({ name: "Takes", input: Even }, async () => 1);
      const gives = orchestration({ name: "Gives", output: Even }, async () => 2);
      const waits = orchestration("Waits", async (ctx) => ctx.dequeueEvent(numbers));
      await world.run({ orchestrations: [takes, gives, waits] });
      const taking = await world.client.start(takes, { input: 4 });
      const giving = await world.client.start(gives);
      const waiting = await world.client.start(waits);
      await waiting.enqueueEvent(numbers, 4);

      for (const [handle, what] of [
        [taking, "input of orchestration 'Takes'"],
        [giving, "output of orchestration 'Gives'"],
        [waiting, "message of 'numbers'"],
      ] as const) {
        const message = `The schema for the ${what} validates asynchronously, which would not replay. Use a synchronous schema here, and do the rest in an activity.`;
        await expectRefused(() => world.settled(handle.result()), "DUROXIDE_ORCHESTRATION_FAILED", message);
      }
      await world.expectAlive();
    });
  });
});
