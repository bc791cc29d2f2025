// Instances of another store: they are seen as they were, and go on.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { GET_KV_VALUE } from "../../src/engine/system-calls.js";
import type { Event, EventPayload } from "../../src/history/event.js";
import { exportHistory, type History } from "../../src/testing/exported-history.js";
import { type ImportOptions, importInstance } from "../../src/testing/import-instance.js";
import { type MockedActivity, mockActivity } from "../../src/testing/mock-activity.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "../behaviours/stores.js";
import { historyOf, scheduled, started } from "../engine/drive.js";

const charge = activity("Charge", async (_, amount: number) => `charged ${amount}`);
const mail = activity<string, void>("Mail", async () => {});
const order = orchestration("Order", async (ctx, amount: number) => {
  ctx.kv.set("amount", amount);
  const receipt = await ctx.scheduleActivity(charge, amount);
  ctx.setCustomStatus("charged");
  const first = await ctx.race({ late: ctx.scheduleTimer("1h"), mailed: ctx.scheduleActivity(mail, receipt) });
  const parcel = await ctx.dequeueEvent<string>("parcels");
  return { receipt, winner: first.winner, parcel, amount: ctx.kv.get("amount") };
});
const rounds = orchestration("Rounds", async (ctx, n: number): Promise<unknown> => {
  ctx.kv.set(`round ${n}`, n);
  if (n === 2) ctx.setCustomStatus("second round");
  const message = await ctx.dequeueEvent<string>("inbox");
  return n < 3 ? ctx.continueAsNew(n + 1) : { message, keys: ctx.kv.keys() };
});
const child = orchestration("Child", async (ctx) => ctx.waitForEvent<string>("go"));
const parent = orchestration("Parent", async (ctx) =>
  ctx.all([
    ctx.scheduleSubOrchestration(child),
    ctx.scheduleSubOrchestration(child, undefined, { instanceId: "named" }),
  ]),
);
const orchestrations = [order, rounds, child, parent];

/** Mails that nobody ever finishes sending. */
const stuck = () =>
  mockActivity(mail, (ctx) => new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve())));

/** A world to take histories from. */
async function elsewhere(mailing: MockedActivity<string, void> = stuck()): Promise<TestWorld> {
  const world = await TestWorld.open();
  await world.start({ orchestrations, activities: [charge, mailing] });
  return world;
}

/** All executions of an instance, as text. */
async function exported(world: TestWorld, instanceId: string): Promise<string[]> {
  const executions = (await world.provider.admin?.listExecutions(instanceId)) ?? [];
  return Promise.all(executions.map(async (id) => exportHistory(await world.history(instanceId, id))));
}

/** An order whose mail is on its way. */
async function halfAnOrder(): Promise<string[]> {
  await using source = await elsewhere();
  await source.client.start(order, { instanceId: "o", input: 12 });
  await source.rest();
  return await exported(source, "o");
}

/** Three executions, of which the last waits for its message. */
async function twoRounds(): Promise<string[]> {
  await using source = await elsewhere();
  await source.client.start(rounds, { instanceId: "r", input: 1 });
  await source.rest();
  for (const message of ["m1", "m2"]) await source.client.enqueueEvent("r", "inbox", message);
  await source.rest();
  return await exported(source, "r");
}

onEveryStore((store) => {
  test("a read of another instance's value that was open goes on where only orchestrations run", async () => {
    const reads = orchestration("TestOrch", async (ctx) => ctx.readKv<string>("other", "key"));
    const open = historyOf(started, scheduledRead("other", "key"));
    await using here = await store.world();
    await importInstance(here.provider, [open]);
    await here.start({ orchestrations: [reads] });

    expect(await here.settle(here.client.getHandle(reads, open[0]!.instanceId).result())).toBeNull();
  });

  test("an instance that is imported where a runtime works already is not run anew", async () => {
    await using there = await store.world();
    await there.start({ orchestrations: [order], activities: [mockActivity(charge, () => "charged")] });
    await there.client.start(order, { instanceId: "o", input: 12 });
    await there.rest();
    const history = await there.client.readHistory("o");

    await using here = await store.world();
    const charged = mockActivity(charge, () => "charged twice");
    await here.start({ orchestrations: [order], activities: [charged] });
    await Promise.allSettled([here.settle(importInstance(here.provider, [history]))]); // Who is first, is open.
    await here.advance("1h");
    expect(charged.calls).toEqual([]);
  });

  describe("an instance that was half done", () => {
    test("is seen as it was", async () => {
      const histories = await halfAnOrder();
      await using world = await store.world();

      expect(await importInstance(world.provider, histories)).toBe("o");

      expect(await world.client.getStatus("o")).toMatchObject({ status: "Running", customStatus: "charged" });
      expect(await world.client.getKvValue("o", "amount")).toBe(12);
      expect(await world.provider.admin?.getInstanceInfo("o")).toMatchObject({
        orchestrationName: "Order",
        orchestrationVersion: "1.0.0",
        currentExecutionId: 1,
        status: "Running",
      });
      expect(await exported(world, "o")).toEqual(histories);
      expect(await world.provider.admin?.getQueueDepths()).toMatchObject({ orchestratorQueue: 1, workerQueue: 1 });
    });

    test("goes on: what was open is done here, what was done is not done again, and the output is the same", async () => {
      const histories = await halfAnOrder();
      await using source = await elsewhere(mockActivity(mail, () => {}));
      const there = await source.client.start(order, { instanceId: "o", input: 12 });
      await source.client.enqueueEvent("o", "parcels", "P-7");
      await using world = await store.world();
      const [charged, mailed] = [mockActivity(charge, () => "charged twice"), mockActivity(mail, () => {})];

      await importInstance(world.provider, histories);
      await world.start({ orchestrations, activities: [charged, mailed] });
      await world.client.enqueueEvent("o", "parcels", "P-7");

      const output = { receipt: "charged 12", winner: "mailed", parcel: "P-7", amount: 12 };
      expect(await world.settle(world.client.getHandle("o").result())).toEqual(output);
      expect(await source.settle(there.result())).toEqual(output);
      expect(charged.calls).toEqual([]);
      expect(mailed.calls.map(({ input }) => input)).toEqual(["charged 12"]);
      await world.assertDeterministic();
    });

    test("goes on by its timers, which fire when they would have", async () => {
      const histories = await halfAnOrder();
      await using world = await store.world();
      const begin = world.clock.now();

      await importInstance(world.provider, histories);
      await world.start({ orchestrations, activities: [charge, stuck()] });
      await world.client.enqueueEvent("o", "parcels", "P-8");

      expect(await world.settle(world.client.getHandle("o").result())).toMatchObject({ winner: "late", parcel: "P-8" });
      expect(world.clock.now() - begin).toBe(3_600_000);
    });
  });

  describe("an instance of several executions", () => {
    test("is seen as it was, and goes on, with the values of all", async () => {
      const histories = await twoRounds();
      await using world = await store.world();
      await importInstance(world.provider, histories);

      expect(await world.provider.admin?.listExecutions("r")).toEqual([1, 2, 3]);
      expect(await exported(world, "r")).toEqual(histories);
      expect(await world.client.getStatus("r")).toMatchObject({ status: "Running", customStatus: "second round" });
      expect(await world.provider.admin?.getExecutionInfo("r", 2)).toMatchObject({
        status: "ContinuedAsNew",
        output: "3",
      });

      await world.start({ orchestrations });
      await world.client.enqueueEvent("r", "inbox", "m3");
      expect(await world.settle(world.client.getHandle("r").result())).toEqual({
        message: "m3",
        keys: ["round 1", "round 2", "round 3"],
      });
    });

    test("may come with its last alone: its custom status is kept, and what is said of its values", async () => {
      const [, , last] = await twoRounds();
      await using world = await store.world();
      await importInstance(world.provider, [last!], { kv: { "round 1": 1, "round 2": "two" } });

      expect(await world.provider.admin?.listExecutions("r")).toEqual([3]);
      expect(await exported(world, "r")).toEqual([last]);
      expect(await world.client.getStatus("r")).toMatchObject({ status: "Running", customStatus: "second round" });
      expect(await world.client.getKvValue("r", "round 2")).toBe("two");

      await world.start({ orchestrations });
      await world.client.enqueueEvent("r", "inbox", "m3");
      expect(await world.settle(world.client.getHandle("r").result())).toEqual({
        message: "m3",
        keys: ["round 1", "round 2", "round 3"],
      });
    });
  });

  describe("an instance that has ended", () => {
    test.each<[string, (world: TestWorld) => Promise<unknown>]>([
      ["completed", (world) => world.client.raiseEvent("c", "go", "done")],
      ["cancelled", (world) => world.client.cancel("c", "enough")],
    ])("is seen as it ended, and is left alone: %s", async (_, end) => {
      await using source = await elsewhere();
      await source.client.start(child, { instanceId: "c" });
      await source.rest();
      await end(source);
      const ending = await source.ending("c");
      const histories = await exported(source, "c");
      await using world = await store.world();

      await importInstance(world.provider, histories);
      await world.start({ orchestrations });
      await world.rest();

      expect(await world.ending("c")).toEqual(ending);
      expect(await exported(world, "c")).toEqual(histories);
      expect(world.factsOf("turn-committed")).toEqual([]);
    });
  });

  describe("a family", () => {
    /** The parent before it heard of either child; one child has ended, the other has not. */
    async function family(): Promise<readonly History[]> {
      await using source = await elsewhere();
      await source.client.start(parent, { instanceId: "p" });
      await source.rest();
      const before = await source.history("p");
      const waiting = await source.history("named");
      await source.client.raiseEvent("p::sub::2", "go", "first");
      await source.rest();
      return [before, await source.history("p::sub::2"), waiting];
    }

    test.each([
      ["the parent first", [0, 1, 2]],
      ["the children first", [2, 1, 0]],
    ])("finds together again, whoever comes first: %s", async (_, places) => {
      const histories = await family();
      await using world = await store.world();
      for (const place of places) await importInstance(world.provider, [histories[place]!]);

      await world.start({ orchestrations });
      await world.rest();
      await world.client.raiseEvent("named", "go", "second");

      expect(await world.settle(world.client.getHandle("p").result())).toEqual(["first", "second"]);
      expect(await world.provider.admin?.listChildren("p")).toEqual(expect.arrayContaining(["p::sub::2", "named"]));
    });
  });

  describe("what cannot be imported", () => {
    test("an instance that is there already, begun or not, is left as it is", async () => {
      const histories = await halfAnOrder();
      await using world = await store.world();
      await importInstance(world.provider, histories);
      const before = await exported(world, "o");

      await expect(importInstance(world.provider, histories)).rejects.toMatchObject({
        code: "DUROXIDE_ALREADY_EXISTS",
      });
      expect(await exported(world, "o")).toEqual(before);

      await using other = await store.world();
      await other.client.start(order, { instanceId: "o", input: 1 });
      await expect(importInstance(other.provider, histories)).rejects.toMatchObject({ instanceId: "o" });
      expect(await other.client.getStatus("o")).toMatchObject({ status: "Pending" });
    });

    const ran = (executionId: number, instanceId = "x"): Event[] =>
      historyOf(started, scheduled("A")).map((event) => ({ ...event, executionId, instanceId }));
    const went = (executionId: number): Event[] =>
      historyOf(started, { type: "OrchestrationContinuedAsNew", input: "1" }).map((event) => ({
        ...event,
        executionId,
        instanceId: "x",
      }));

    test.each<[string, readonly History[], ImportOptions, string]>([
      ["nothing", [], {}, "give the history of one execution at least"],
      [
        "some executions in the middle",
        [went(2), ran(3)],
        {},
        "the first history is of execution 2; give all from the first on, or only the last",
      ],
      ["executions with a gap", [went(1), ran(3)], {}, "execution 3 stands where 2 is expected"],
      ["executions of two instances", [went(1), ran(2, "y")], {}, "a history of instance 'y' is among its executions"],
      ["an execution between two", [went(1)], {}, "execution 1 has continued as new; give execution 2, too"],
      [
        "executions of two lives",
        [went(1), ran(2)],
        {},
        "execution 2 does not begin with the input that execution 1 continued with",
      ],
      [
        "values that are no entries",
        [ran(2)],
        { kv: new Map([["a", 5]]) as never },
        "key 'a': in a Map, an entry { value, lastUpdatedAtMs } is expected",
      ],
      ["executions after the last", [ran(1), ran(2)], {}, "execution 1 has not continued as new, but others follow it"],
      ["values for what is complete", [ran(1)], { kv: { a: 1 } }, "option 'kv' is for the last execution alone"],
    ])("histories that do not belong together leave nothing behind: %s", async (_, histories, options, message) => {
      await using world = await store.world();

      await expect(importInstance(world.provider, histories, options)).rejects.toMatchObject({
        code: "DUROXIDE_INVALID_INPUT",
        message: expect.stringContaining(message),
      });
      expect(await world.provider.getInstanceStatus("x")).toBeNull();
    });

    test.each<[string, Parameters<typeof importInstance>[1], string]>([
      ["a damaged history", [historyOf(scheduled("A"))], "DUROXIDE_INVALID_HISTORY"],
      ["a text that is none", ["{"], "DUROXIDE_CODEC"],
      ["no list", undefined as never, "DUROXIDE_INVALID_INPUT"],
    ])("is refused: %s", async (_, histories, code) => {
      await using world = await store.world();

      await expect(importInstance(world.provider, histories)).rejects.toMatchObject({ code });
    });
  });
});

/** As the engine records a read of another instance's value. */
function scheduledRead(instance: string, key: string): EventPayload {
  return scheduled(GET_KV_VALUE, JSON.stringify({ instance_id: instance, key }));
}
