// The examples that live long: actor, request-response, scheduled-job, batch-progress.

import { describe, expect, test } from "vitest";
import * as actor from "../../examples/actor.js";
import * as batches from "../../examples/batch-progress.js";
import * as desk from "../../examples/request-response.js";
import * as job from "../../examples/scheduled-job.js";
import { sleep } from "../../src/clock.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { TestWorld } from "../../src/testing/test-world.js";

const DAY_MS = 86_400_000;

describe("actor", () => {
  async function open(world: TestWorld) {
    const notified = mockActivity(actor.notifyHolder, () => {});
    const runtime = await world.start({ orchestrations: [actor.account], activities: [notified] });
    const handle = await world.client.start(actor.account, { instanceId: "account-1", input: 100 });
    const send = async (...commands: actor.Command[]) => {
      for (const command of commands) await handle.enqueueEvent(actor.commands, command);
    };
    return { notified, runtime, handle, send };
  }
  const deposit = (amount: number): actor.Command => ({ kind: "deposit", amount });
  const withdraw = (amount: number): actor.Command => ({ kind: "withdraw", amount });

  test("handles commands in order, tells its balance, and refuses what it does not have", async () => {
    await using world = await TestWorld.open();
    const { notified, handle, send } = await open(world);
    await send(withdraw(150), deposit(100));
    await world.rest();
    expect(await handle.status()).toMatchObject({ status: "Running", customStatus: "balance 200" });

    await send(withdraw(150), { kind: "close" });
    expect(await world.settle(handle.result())).toBe(50);
    expect(notified.calls.map(({ input }) => input)).toEqual(["150 refused, the balance is 100"]);
  });

  test("takes its balance and its unread commands along from execution to execution, and keeps histories short", async () => {
    await using world = await TestWorld.open();
    const { handle, send } = await open(world);
    await send(...Array.from({ length: 30 }, () => deposit(1)), { kind: "close" });

    expect(await world.settle(handle.result())).toBe(130);
    const executions = await world.client.listExecutions(handle.instanceId);
    expect(executions.length).toBe(11);
    const lengths = await Promise.all(executions.map(async (id) => (await world.history("account-1", id)).length));
    expect(Math.max(...lengths.slice(1))).toBeLessThan(50);
  });

  test("loses no command when its process dies", async () => {
    await using world = await TestWorld.open();
    const { runtime, handle, send } = await open(world);
    const crashed = runtime.crashAt("before-turn-commit", { nth: 2 });
    await world.rest();
    await send(deposit(1), deposit(2), { kind: "close" });
    await world.settle(crashed);
    await runtime.restart();

    expect(await world.settle(handle.result())).toBe(103);
  });
});

describe("request-response", () => {
  async function open(world: TestWorld, inStock: number) {
    await world.start({ orchestrations: [desk.stockDesk] });
    await world.client.start(desk.stockDesk, { instanceId: "bicycle", input: inStock });
    return (orderId: string, quantity: number) => desk.reserve(world.client, "bicycle", { orderId, quantity });
  }

  test("sells the last piece once, however many ask at the same time", async () => {
    await using world = await TestWorld.open();
    const reserve = await open(world, 3);
    const answers = await world.settle(Promise.all(["a", "b", "c", "d", "e"].map((order) => reserve(order, 1))));

    expect(answers.map(({ isReserved }) => isReserved)).toEqual([true, true, true, false, false]);
    expect(answers.at(-1)).toEqual({ isReserved: false, reason: "0 left of bicycle" });
  });

  test("answers a question that is asked again as it did before, and reserves nothing more", async () => {
    await using world = await TestWorld.open();
    const reserve = await open(world, 3);
    for (const _ of [1, 2, 3]) expect(await world.settle(reserve("ada", 2))).toEqual({ isReserved: true });

    expect(await world.settle(reserve("grace", 1))).toEqual({ isReserved: true });
    expect(await world.settle(reserve("edsger", 1))).toMatchObject({ isReserved: false });
  });

  test("goes on for any number of questions, and keeps the latest answers", async () => {
    await using world = await TestWorld.open();
    const reserve = await open(world, 1_000);
    for (let n = 1; n <= 400; n += 1) await world.settle(reserve(`order-${n}`, 1));

    const answers = await world.client.getKvAllValues("bicycle");
    expect(answers.size).toBeLessThan(150);
    for (let n = 331; n <= 400; n += 1) expect(answers.get(`answer:order-${n}`)).toEqual({ isReserved: true });
    expect(await world.settle(reserve("too-much", 601))).toEqual({ isReserved: false, reason: "600 left of bicycle" });
  });

  test("tells an asker that nobody answers", async () => {
    await using world = await TestWorld.open();
    const reserving = desk.reserve(world.client, "bicycle", { orderId: "ada", quantity: 1 });

    await expect(world.settle(reserving)).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
  });
});

describe("scheduled-job", () => {
  /** A job that is due in a day; a report takes ten seconds. Tells the days on which a report was begun. */
  async function open(world: TestWorld) {
    const startedAt = world.clock.now();
    const days: number[] = [];
    const sent = mockActivity(job.sendReport, async () => {
      days.push((world.clock.now() - startedAt) / DAY_MS);
      await sleep(world.clock, 10_000);
    });
    const runtime = await world.start({ orchestrations: [job.reportJob], activities: [sent] });
    const start = () =>
      world.client.start(job.reportJob, {
        instanceId: "nightly-report",
        input: { dueMs: startedAt + DAY_MS, everyMs: DAY_MS },
      });
    return { runtime, sent, days, start };
  }

  test("runs every day at the same time, however long a run takes", async () => {
    await using world = await TestWorld.open();
    const { days, start } = await open(world);
    await start();
    await world.advance("5.5d");

    expect(days).toEqual([1, 2, 3, 4, 5]);
  });

  test("is one job, however often it is started", async () => {
    await using world = await TestWorld.open();
    const { days, start } = await open(world);
    for (const _ of [1, 2, 3]) await start();
    await world.advance("2.5d");

    expect(days).toEqual([1, 2]);
  });

  test("goes on after a report that could not be sent", async () => {
    await using world = await TestWorld.open();
    const { sent, days, start } = await open(world);
    for (let failure = 0; failure < 5; failure += 1) sent.failNext("no network");
    const handle = await start();
    await world.advance("2.5d");

    expect(days).toEqual([2]);
    expect(await handle.status()).toMatchObject({ status: "Running", executionId: 3 });
  });

  test("after an outage makes up for one run, skips the others, and is punctual again", async () => {
    await using world = await TestWorld.open();
    const { runtime, days, start } = await open(world);
    await start();
    await world.advance("1.5d");
    await runtime.shutdown();
    await world.advance("3d");
    await runtime.restart();
    await world.advance("2d");

    expect(days).toEqual([1, 4.5, 5, 6]);
  });

  test("ends when it is cancelled", async () => {
    await using world = await TestWorld.open();
    const { days, start } = await open(world);
    const handle = await start();
    await world.advance("1.5d");
    await handle.cancel("nobody reads it");
    await world.advance("5d");

    expect(await handle.status()).toMatchObject({ status: "Failed", error: "canceled: nobody reads it" });
    expect(days).toEqual([1]);
  });

  test.each([
    [1_000, 1_000, 1_100],
    [1_000, 1_099, 1_100],
    [1_000, 1_100, 1_200],
    [1_000, 1_350, 1_400],
  ])("what was due at %i and ended at %i is next due at %i", (dueMs, nowMs, expected) => {
    expect(job.nextRun({ dueMs, everyMs: 100 }, nowMs)).toBe(expected);
  });
});

describe("batch-progress", () => {
  async function open(world: TestWorld) {
    const imported = mockActivity(batches.importBatch, async (_ctx, batch) => {
      await sleep(world.clock, 10_000);
      return batch.to - batch.from;
    });
    const runtime = await world.start({ orchestrations: [batches.importCustomers], activities: [imported] });
    const handle = await world.client.start(batches.importCustomers, { input: { file: "customers.csv", rows: 900 } });
    return { imported, runtime, handle };
  }

  async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = [];
    for await (const item of items) all.push(item);
    return all;
  }

  test("shows every batch to whoever watches, and ends with the job", async () => {
    await using world = await TestWorld.open();
    const { handle } = await open(world);
    const seen = await world.settle(collect(batches.progressOf(handle)));

    expect(seen).toEqual([250, 500, 750, 900].map((done) => ({ done, total: 900 })));
    expect(await handle.result()).toBe(900);
  });

  test("shows where it stands to whoever comes late", async () => {
    await using world = await TestWorld.open();
    const { handle } = await open(world);
    await world.advance("30s");
    const seen = await world.settle(collect(batches.progressOf(handle)));

    expect(seen.map(({ done }) => done)).toEqual([750, 900]);
  });

  test("counts no batch twice, although a crash makes one run twice", async () => {
    await using world = await TestWorld.open();
    const { imported, runtime, handle } = await open(world);
    const crashed = runtime.crashAt("before-activity-commit", { nth: 2 });
    await world.settle(crashed);
    await runtime.restart();

    expect(await world.settle(handle.result())).toBe(900);
    expect(imported.calls.map(({ input }) => input.from)).toEqual([0, 250, 250, 500, 750]);
  });

  test("ends the watch of a job that fails", async () => {
    await using world = await TestWorld.open();
    const { imported, handle } = await open(world);
    imported.implement((_ctx, batch) => {
      if (batch.from > 0) throw new Error("row 300 is broken");
      return 250;
    });
    const seen = await world.settle(collect(batches.progressOf(handle)));

    expect(seen).toEqual([{ done: 250, total: 900 }]);
    await expect(handle.result()).rejects.toThrow("row 300 is broken");
  });
});
