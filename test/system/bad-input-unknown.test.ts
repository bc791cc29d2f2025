// What does not exist, and what exists already.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { AlreadyExistsError } from "../../src/errors.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { expectRefused, STORES, World } from "./bad-input-world.js";

const v1 = orchestration({ name: "Checkout", version: "1.0.0" }, async () => "v1");
const v2 = orchestration({ name: "Checkout", version: "2.0.0" }, async () => "v2");
const MINUTE_MS = 60_000;

describe.each(STORES)("on the %s store", (_, open) => {
  describe("an orchestration that nobody has registered", () => {
    test("is left for others for some minutes, then fails, naming itself", async () => {
      const world = await World.open(open);
      await world.run();
      const handle = await world.client.start("Missing", { instanceId: "i", input: { secret: 1 } });
      const startedAt = world.clock.now();
      const result = world.settled(handle.result());

      await expectRefused(
        () => result,
        "DUROXIDE_ORCHESTRATION_FAILED",
        /^poison: orchestration i exceeded 11 attempts \(max 10\): The orchestration 'Missing' \(latest version\) is not registered here\. Register it/,
      );
      expect(world.clock.now() - startedAt).toBeGreaterThan(3 * MINUTE_MS);
      expect(await handle.status()).toMatchObject({
        status: "Failed",
        details: { category: "poison", maxAttempts: 10 },
      });
      await world.expectAlive();
    });

    test("in the version that is asked for fails, naming the version", async () => {
      const world = await World.open(open);
      await world.run({ orchestrations: [v1] });
      const wrong = await world.client.start("Checkout", { version: "2.0.0" });
      const right = await world.client.start("Checkout", { version: "1.0.0" });

      expect(await world.settled(right.result())).toBe("v1");
      const message = "The orchestration 'Checkout' version 2.0.0 is not registered here. Register it";
      await expectRefused(() => world.settled(wrong.result()), "DUROXIDE_ORCHESTRATION_FAILED", message);
    });

    test("is run when a worker that knows it takes over in time", async () => {
      const world = await World.open(open);
      const old = await world.run({ orchestrations: [v1] });
      const handle = await world.client.start("Checkout", { version: "2.0.0" });
      await world.clock.advance(MINUTE_MS);
      await world.settled(old.shutdown());
      await world.run({ orchestrations: [v1, v2] });

      expect(await world.settled(handle.result())).toBe("v2");
    });

    test("fails its parent with it, naming itself", async () => {
      const world = await World.open(open);
      const parent = orchestration("Parent", async (ctx) => {
        await ctx.scheduleSubOrchestration("Missing", null, { instanceId: "child" }).catch(() => {});
        return "caught";
      });
      await world.run({ orchestrations: [parent] });
      const handle = await world.client.start(parent);

      const message = "The orchestration 'Missing' (latest version) is not registered here";
      await expectRefused(() => world.settled(handle.result()), "DUROXIDE_ORCHESTRATION_FAILED", message);
    });
  });

  describe("an activity that nobody has registered", () => {
    const calls = orchestration("Calls", async (ctx) => {
      await ctx.scheduleActivity("Missing", 7).catch(() => {});
      return "caught";
    });

    test("fails its orchestration after some minutes, naming itself and what to do", async () => {
      const world = await World.open(open);
      await world.run({ orchestrations: [calls] });
      const handle = await world.client.start(calls, { instanceId: "i" });
      const startedAt = world.clock.now();
      const result = world.settled(handle.result());

      await expectRefused(
        () => result,
        "DUROXIDE_ORCHESTRATION_FAILED",
        /^poison: activity Missing#2 exceeded 11 attempts \(max 10\): The activity 'Missing' is not registered here\. Register it/,
      );
      expect(world.clock.now() - startedAt).toBeGreaterThan(3 * MINUTE_MS);
      await world.expectAlive();
    });

    test("is run when a worker that knows it takes over in time", async () => {
      const world = await World.open(open);
      const old = await world.run({ orchestrations: [calls] });
      const handle = await world.client.start(calls);
      await world.clock.advance(MINUTE_MS);
      await world.settled(old.shutdown());
      await world.run({ orchestrations: [calls], activities: [activity("Missing", async () => "found")] });

      expect(await world.settled(handle.result())).toBe("caught");
    });
  });

  describe("an instance that exists already", () => {
    test("is used, whatever the second input, or refused where the caller asks to be told", async () => {
      const world = await World.open(open);
      await world.run();
      const { client } = world;
      const first = await client.start("Control", { instanceId: "i", input: "first" });

      const refused = "Instance 'i' exists already. Choose another instanceId, or start with ifExists: \"use\".";
      const again = () => client.start("Control", { instanceId: "i", input: "second", ifExists: "fail" });
      await expectRefused(again, "DUROXIDE_ALREADY_EXISTS", refused);
      expect(await world.settled(first.result())).toBe("first");
      await expectRefused(again, "DUROXIDE_ALREADY_EXISTS", refused);
      const second = await client.start("Control", { instanceId: "i", input: "second" });
      expect(await world.settled(second.result())).toBe("first");
    });

    test("has one winner among twenty starts at once", async () => {
      const world = await World.open(open);
      await world.run();
      const clients = [world.client, new Client(world.provider, { clock: world.clock })];
      const starts = await world.settled(
        Promise.allSettled(
          Array.from({ length: 20 }, (_, n) =>
            clients[n % 2]!.start("Control", { instanceId: "i", input: n, ifExists: "fail" }),
          ),
        ),
      );

      const winners = starts.flatMap((start, n) => (start.status === "fulfilled" ? [n] : []));
      const losses = starts.flatMap((start) => (start.status === "rejected" ? [start.reason as unknown] : []));
      expect(winners.length).toBe(1);
      expect(losses.every((reason) => reason instanceof AlreadyExistsError && reason.instanceId === "i")).toBe(true);
      expect(await world.settled(world.client.getHandle("i").result())).toBe(winners[0]);
    });
  });

  describe("an instance that does not exist", () => {
    test("is not found, has no history and no values, and a wait for it ends at its deadline", async () => {
      const world = await World.open(open);
      const { client } = world;

      expect(await client.getStatus("nobody")).toEqual({ status: "NotFound" });
      expect(await client.readHistory("nobody")).toEqual([]);
      expect(await client.getKvValue("nobody", "key")).toBeUndefined();
      const wait = world.settled(client.waitForOrchestration("nobody", { timeoutMs: 1_000 }));
      await expect(wait).rejects.toMatchObject({
        code: "DUROXIDE_TIMEOUT",
        message: expect.stringMatching(
          /^Waited 1000 ms in vain for the end of instance 'nobody'\. It does not exist in this store: check/,
        ),
      });
      await world.expectNothingWritten();
    });
  });
});

test("twenty starts at once over two connections to one file have one winner too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-starts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await using first = await SqliteProvider.open(join(folder, "app.db"));
  await using second = await SqliteProvider.open(join(folder, "app.db"));
  const clients = [new Client(first), new Client(second)];
  const starts = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) => clients[n % 2]!.start("Any", { instanceId: "i", input: n, ifExists: "fail" })),
  );

  const codes = starts.map((start) => (start.status === "rejected" ? (start.reason as { code: string }).code : "won"));
  expect(codes.sort()).toEqual([...Array(19).fill("DUROXIDE_ALREADY_EXISTS"), "won"]);
  const fetched = await second.fetchOrchestrationItem({ lockTimeoutMs: 1_000 });
  expect(fetched?.item.messages.length).toBe(1);
});
