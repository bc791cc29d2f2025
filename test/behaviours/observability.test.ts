// What a runtime tells of itself and of the code that it runs: traces, log records, the facts of its life. R§4.13, R§5.1, R§8.

import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { ENGINE_VERSION } from "../../src/history/event.js";
import { formatLogLine, type LogRecord, logTo } from "../../src/runtime/log.js";
import { onEveryStore } from "./stores.js";

const LEVELS = ["debug", "info", "warn", "error"] as const;

const speaks = activity("Speaks", ({ trace }) => {
  for (const level of LEVELS) trace[level](`${level} of the activity`);
});
const tells = orchestration({ name: "Tells", version: "1.2.0" }, async (ctx) => {
  for (const level of LEVELS) ctx.trace[level](`${level} of the orchestration`);
  await ctx.scheduleActivity(speaks);
  ctx.trace.info("the end");
});

/** A log that keeps what it is given. */
function keptLog() {
  const records: LogRecord[] = [];
  const log = logTo((record) => void records.push(record), { level: "debug" });
  const of = (target: string) => records.filter((record) => record.target === target);
  return { log, records, of };
}

onEveryStore((store) => {
  describe("what an activity traces", () => {
    test("is logged at its level, with the call that it belongs to", async () => {
      await using world = await store.world();
      const { log, of } = keptLog();
      await world.start({ orchestrations: [tells], activities: [speaks], observers: [log] });
      await world.run(tells, { instanceId: "t" });

      expect(of("duroxide::activity")).toEqual(
        LEVELS.map((level) => ({
          level,
          target: "duroxide::activity",
          message: `${level} of the activity`,
          fields: {
            instance_id: "t",
            execution_id: 1,
            orchestration_name: "Tells",
            orchestration_version: "1.2.0",
            activity_name: "Speaks",
            activity_id: 2,
            worker_id: expect.any(String),
            attempt: 1,
          },
        })),
      );
    });
  });

  describe("what an orchestration traces", () => {
    test("is logged at its level, with the execution that it belongs to, and speaks of no activity", async () => {
      await using world = await store.world();
      const { log, of } = keptLog();
      await world.start({ orchestrations: [tells], activities: [speaks], observers: [log] });
      await world.run(tells, { instanceId: "t" });

      const fields = {
        instance_id: "t",
        execution_id: 1,
        orchestration_name: "Tells",
        orchestration_version: "1.2.0",
      };
      expect(of("duroxide::orchestration")).toEqual([
        ...LEVELS.map((level) => ({
          level,
          target: "duroxide::orchestration",
          message: `${level} of the orchestration`,
          fields,
        })),
        { level: "info", target: "duroxide::orchestration", message: "the end", fields },
      ]);
    });

    test("is logged once, however often the code is replayed", async () => {
      await using world = await store.world();
      const { log, of } = keptLog();
      await world.start({ orchestrations: [tells], activities: [speaks], observers: [log], warmCacheBytes: 0 });
      await world.run(tells);

      expect(of("duroxide::orchestration").map(({ message }) => message)).toEqual([
        ...LEVELS.map((level) => `${level} of the orchestration`),
        "the end",
      ]);
    });
  });

  describe("what user code throws", () => {
    test("is in the facts as it was thrown, in the log with its stack, and in the history as its message alone", async () => {
      await using world = await store.world();
      const { log, of } = keptLog();
      const declined = new Error("card declined");
      const lost = new TypeError("no such order");
      const charge = activity("Charge", async () => {
        throw declined;
      });
      const checkout = orchestration("Checkout", async (ctx) => {
        await ctx.scheduleActivity(charge).catch(() => {});
        throw lost;
      });
      await world.start({ orchestrations: [checkout], activities: [charge], observers: [log] });
      await world.client.start(checkout, { instanceId: "t" });
      await world.ending("t");

      expect(world.factsOf("activity-ended").map(({ error }) => error)).toEqual([declined]);
      expect(world.factsOf("activity-ended")[0]?.error).toBe(declined);
      expect(world.factsOf("orchestration-ended")[0]?.error).toBe(lost);
      const stacks = of("duroxide::runtime").flatMap(({ fields }) => fields.stack ?? []);
      expect(stacks).toEqual([declined.stack, lost.stack]);
      expect(JSON.stringify(await world.history("t"))).not.toContain("observability.test");
    });

    test("is told of no orchestration that fails without its code, nor of what goes well", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => {
        await ctx.scheduleActivity(speaks);
        await ctx.waitForEvent("never");
      });
      await world.start({ orchestrations: [waits], activities: [speaks] });
      await world.client.start(waits, { instanceId: "w" });
      await world.client.cancel("w");
      await world.ending("w");

      const ends = [...world.factsOf("orchestration-ended"), ...world.factsOf("activity-ended")];
      expect(ends.length).toBeGreaterThan(0);
      expect(ends.filter((fact) => "error" in fact && fact.error !== undefined)).toEqual([]);
    });
  });

  describe("the life of a runtime", () => {
    test("is told from start to stop, and what it counted can still be read afterwards", async () => {
      await using world = await store.world();
      const { log, of } = keptLog();
      const runtime = await world.start({ orchestrations: [tells], activities: [speaks], observers: [log] });
      const { metrics } = runtime;
      await world.run(tells);

      expect(metrics.snapshot()).toMatchObject({ orchestrationStarts: 1, orchestrationCompletions: 1 });
      expect(await runtime.shutdown()).toBe("drained");
      const told = of("duroxide::runtime").map(({ message }) => message);
      expect(told[0]).toContain(`duroxide runtime (${ENGINE_VERSION}) starting with provider ${world.provider.name}`);
      expect(told).toEqual(
        expect.arrayContaining(["orchestration started", "activity completed", "orchestration completed"]),
      );
      expect(told.at(-1)).toBe("duroxide runtime stopped (drained)");
      expect(metrics.snapshot()).toMatchObject({ orchestrationStarts: 1, activeOrchestrations: 0 });
    });

    test("is logged from info on where no level is asked for: nothing of what goes well", async () => {
      await using world = await store.world();
      const records: LogRecord[] = [];
      const log = logTo((record) => void records.push(record));
      const quiet = orchestration("Quiet", async (ctx) => {
        ctx.trace.debug("not told");
        ctx.trace.info("told");
      });
      const runtime = await world.start({ orchestrations: [quiet], observers: [log] });
      await world.run(quiet);
      await runtime.shutdown();

      expect(records.map(({ level, message }) => [level, message])).toEqual([
        ["info", expect.stringMatching(/^duroxide runtime .+ starting with provider/)],
        ["info", "told"],
        ["info", "duroxide runtime stopped (drained)"],
      ]);
    });

    test("can be written as lines for people and as JSON for machines, with the same content", async () => {
      await using world = await store.world();
      const { log, records } = keptLog();
      const runtime = await world.start({ orchestrations: [tells], activities: [speaks], observers: [log] });
      await world.run(tells, { instanceId: "t" });
      await runtime.shutdown();

      for (const record of records) {
        expect(JSON.parse(JSON.stringify(record))).toEqual(record);
        const line = formatLogLine(record);
        expect(line).not.toContain("\n");
        for (const name of Object.keys(record.fields)) expect(line).toContain(` ${name}=`);
      }
      const spoken = records.find(({ message }) => message === "warn of the orchestration");
      expect(formatLogLine(spoken!)).toBe(
        "WARN  duroxide::orchestration: warn of the orchestration instance_id=t execution_id=1 orchestration_name=Tells orchestration_version=1.2.0",
      );
    });
  });
});
