// The examples that do one thing after the other: hello, fan-out, saga, retry-and-timeout, agent-loop.

import { describe, expect, test } from "vitest";
import * as agentLoop from "../../examples/agent-loop.js";
import * as fanOut from "../../examples/fan-out.js";
import { greet, hello } from "../../examples/hello.js";
import * as retry from "../../examples/retry-and-timeout.js";
import * as saga from "../../examples/saga.js";
import { sleep } from "../../src/clock.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import type { TestRuntime } from "../../src/testing/test-runtime.js";
import { TestWorld } from "../../src/testing/test-world.js";

describe("hello", () => {
  test("makes a greeting that is recorded only once, although the process dies before the next", async () => {
    await using world = await TestWorld.open();
    const greeted = mockActivity(greet, (_ctx, name) => `Hello, ${name}!`);
    const runtime = await world.start({ orchestrations: [hello], activities: [greeted] });
    const crashed = runtime.crashAt("before-activity", { activity: greet.name, nth: 2 });
    const handle = await world.client.start(hello, { instanceId: "hello-1", input: ["Ada", "Grace"] });
    await world.settle(crashed);
    await runtime.restart();

    expect(await world.settle(handle.result())).toBe("Hello, Ada! Hello, Grace!");
    expect(greeted.calls.map(({ input }) => input)).toEqual(["Ada", "Grace"]);
  });
});

describe("fan-out", () => {
  const tender = { item: "printer", suppliers: ["Acme", "Nobody", "Globex", "Initech"] };

  async function startMarket(world: TestWorld, prices: Readonly<Record<string, number>>) {
    const requested = mockActivity(fanOut.requestOffer, async (_ctx, inquiry) => {
      await sleep(world.clock, 1_000);
      const price = prices[inquiry.supplier];
      if (price === undefined) throw new Error("does not answer");
      return { ...inquiry, price };
    });
    const declined = mockActivity(fanOut.decline, () => {});
    await world.start({
      orchestrations: [fanOut.buyFromCheapest],
      activities: [requested, fanOut.placeOrder, declined],
    });
    return { requested, declined };
  }

  test("asks all at once, buys from the cheapest that answers and declines the other offers", async () => {
    await using world = await TestWorld.open();
    const { requested, declined } = await startMarket(world, { Acme: 120, Globex: 95, Initech: 140 });
    const startedAt = world.clock.now();

    expect(await world.run(fanOut.buyFromCheapest, { input: tender })).toMatch(/: a printer from Globex for 95$/);
    expect(world.clock.now() - startedAt).toBe(1_000); // as long as one of them takes
    expect(requested.calls.map(({ input }) => input.supplier)).toEqual(tender.suppliers);
    expect(declined.calls.map(({ input }) => input.supplier)).toEqual(["Acme", "Initech"]);
  });

  test("fails where nobody answers, and orders nothing", async () => {
    await using world = await TestWorld.open();
    await startMarket(world, {});

    await expect(world.run(fanOut.buyFromCheapest, { input: tender })).rejects.toThrow("nobody offers printer");
    expect(world.factsOf("activity-ended").map(({ ref }) => ref.activityName)).not.toContain(fanOut.placeOrder.name);
  });
});

describe("saga", () => {
  /** The bookings of one trip, the last of which fails, and what was done in which order. */
  async function startAgency(world: TestWorld, fails: string) {
    const done: string[] = [];
    const book = (what: string) => () => {
      if (what === fails) throw new Error(`no ${what}`);
      done.push(`booked ${what}`);
      return what;
    };
    const cancel = (_ctx: unknown, booking: string) => void done.push(`cancelled ${booking}`);
    const cancelled = mockActivity(saga.cancelFlight, cancel);
    const runtime = await world.start({
      orchestrations: [saga.bookTrip],
      activities: [
        mockActivity(saga.bookFlight, book("flight")),
        mockActivity(saga.bookHotel, book("hotel")),
        mockActivity(saga.bookCar, book("car")),
        mockActivity(saga.cancelHotel, cancel),
        cancelled,
      ],
    });
    return { runtime, done, cancelled };
  }
  const trip = { input: { traveller: "Ada", city: "Venice" } };

  test("undoes what was booked, newest first, and fails with the reason", async () => {
    await using world = await TestWorld.open();
    const { done } = await startAgency(world, "car");

    await expect(world.run(saga.bookTrip, trip)).rejects.toThrow("no car");
    expect(done).toEqual(["booked flight", "booked hotel", "cancelled hotel", "cancelled flight"]);
  });

  test("undoes only what was booked", async () => {
    await using world = await TestWorld.open();
    const { done } = await startAgency(world, "hotel");

    await expect(world.run(saga.bookTrip, trip)).rejects.toThrow("no hotel");
    expect(done).toEqual(["booked flight", "cancelled flight"]);
  });

  test("undoes nothing where all goes well", async () => {
    await using world = await TestWorld.open();
    const { done } = await startAgency(world, "nothing");

    expect(await world.run(saga.bookTrip, trip)).toEqual(["flight", "hotel", "car"]);
    expect(done).toEqual(["booked flight", "booked hotel", "booked car"]);
  });

  test("does not give up undoing, for days", async () => {
    await using world = await TestWorld.open();
    const { done, cancelled } = await startAgency(world, "car");
    for (let failure = 0; failure < 50; failure += 1) cancelled.failNext("the airline is closed");

    await expect(world.run(saga.bookTrip, trip)).rejects.toThrow("no car");
    expect(done.at(-1)).toBe("cancelled flight");
    expect(cancelled.calls.length).toBe(51);
  });

  test("knows what to undo after the process has died", async () => {
    await using world = await TestWorld.open();
    const { runtime, done } = await startAgency(world, "car");
    const crashed = runtime.crashAt("before-activity", { activity: saga.bookCar.name });
    const handle = await world.client.start(saga.bookTrip, trip);
    await world.settle(crashed);
    await runtime.restart();

    await expect(world.settle(handle.result())).rejects.toThrow("no car");
    expect(done).toEqual(["booked flight", "booked hotel", "cancelled hotel", "cancelled flight"]);
  });
});

describe("retry-and-timeout", () => {
  const invoice = { input: { id: "invoice-1", amount: 12 } };

  async function startShop(world: TestWorld) {
    const chargedAt: number[] = [];
    const startedAt = world.clock.now();
    const charged = mockActivity(retry.chargeCard, () => "receipt-1");
    await world.start({
      orchestrations: [retry.payInvoice],
      activities: [charged],
      observers: [(fact) => void (fact.type === "activity-started" && chargedAt.push(world.clock.now() - startedAt))],
    });
    return { charged, chargedAt };
  }

  test("tries again after growing pauses, each time under the same key", async () => {
    await using world = await TestWorld.open();
    const { charged, chargedAt } = await startShop(world);
    for (const _ of [1, 2]) charged.failNext("503");

    expect(await world.run(retry.payInvoice, invoice)).toEqual({ status: "paid", receipt: "receipt-1" });
    expect(chargedAt).toEqual([0, 100, 300]);
    expect(charged.calls.map(({ idempotencyKey }) => idempotencyKey)).toEqual(Array(3).fill("instance-1:1:2"));
  });

  test("gives up after five attempts, with the last reason", async () => {
    await using world = await TestWorld.open();
    const { charged } = await startShop(world);
    for (const n of [1, 2, 3, 4, 5]) charged.failNext(`503, ${n}`);

    expect(await world.run(retry.payInvoice, invoice)).toEqual({ status: "refused", reason: "503, 5" });
  });

  test("does not try again what is declined", async () => {
    await using world = await TestWorld.open();
    const { charged } = await startShop(world);
    charged.failNext("declined: stolen");

    expect(await world.run(retry.payInvoice, invoice)).toEqual({ status: "refused", reason: "declined: stolen" });
    expect(charged.calls.length).toBe(1);
  });

  test("gives up an attempt that takes longer than two seconds, and tells it so", async () => {
    await using world = await TestWorld.open();
    const { charged } = await startShop(world);
    let isTold = false;
    charged.implement(async (ctx) => {
      await sleep(world.clock, 60_000, ctx.signal);
      isTold = ctx.signal.aborted;
      return "too late";
    });
    const startedAt = world.clock.now();

    expect(await world.run(retry.payInvoice, invoice)).toEqual({ status: "unclear" });
    expect(world.clock.now() - startedAt).toBe(2_000);
    await world.rest();
    expect(isTold).toBe(true);
    expect(charged.calls.length).toBe(1);
  });
});

describe("agent-loop", () => {
  const { askModel, readOrder, refund, supportAgent, trackParcel } = agentLoop;
  const tools = [readOrder, trackParcel, refund];

  async function startDesk(world: TestWorld, model: (conversation: readonly agentLoop.Message[]) => agentLoop.Reply) {
    const asked = mockActivity(askModel, (_ctx, conversation) => model(conversation));
    const runtime: TestRuntime = await world.start({ orchestrations: [supportAgent], activities: [asked, ...tools] });
    return { runtime, asked };
  }
  const use = (...names: readonly string[]): agentLoop.Reply => ({
    kind: "tools",
    calls: names.map((tool) => ({ tool, argument: "order-1" })),
  });
  const done: agentLoop.Reply = { kind: "answer", text: "done" };

  test("asks the model once for each step, although the process dies between two", async () => {
    const script = [use("trackParcel"), use("refund"), done];
    await using world = await TestWorld.open();
    const { runtime, asked } = await startDesk(world, (conversation) => script[conversation.length - 1]!);
    const crashed = runtime.crashAt("before-activity", { activity: refund.name });
    const handle = await world.client.start(supportAgent, { input: "Where is it?" });
    await world.settle(crashed);
    await runtime.restart();

    expect(await world.settle(handle.result())).toBe("done");
    expect(asked.calls.map(({ input }) => input.length)).toEqual([1, 2, 3]);
  });

  test("tells the model what its tools say, in the order of its calls, and what they cannot do", async () => {
    const script = [use("readOrder", "teleport", "trackParcel"), done];
    await using world = await TestWorld.open();
    const { asked } = await startDesk(world, (conversation) => script[conversation.length === 1 ? 0 : 1]!);

    await world.run(supportAgent, { input: "Where is it?" });
    expect(asked.calls.at(-1)?.input.map(({ text }) => text)).toEqual([
      "Where is it?",
      "order-1: a book, 12 EUR",
      "there is no such tool",
      "order-1: lost in Utrecht",
    ]);
  });

  test("tells the model of a tool that fails", async () => {
    await using world = await TestWorld.open();
    const refunded = mockActivity(refund, () => "");
    refunded.failNext("the bank is closed");
    const asked = mockActivity(askModel, (_ctx, { length }) => (length === 1 ? use("refund") : done));
    await world.start({ orchestrations: [supportAgent], activities: [asked, refunded] });

    await world.run(supportAgent, { input: "Money!" });
    expect(asked.calls.at(-1)?.input.at(-1)?.text).toBe("failed: the bank is closed");
  });

  test("ends a model that never comes to an end", async () => {
    await using world = await TestWorld.open();
    const { asked } = await startDesk(world, () => use("trackParcel"));

    await expect(world.run(supportAgent, { input: "Where is it?" })).rejects.toThrow("no answer after 10 steps");
    expect(asked.calls.length).toBe(10);
  });
});
