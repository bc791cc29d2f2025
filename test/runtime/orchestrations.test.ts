import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { TestWorld } from "../../src/testing/test-world.js";

const echo = activity("Echo", (_ctx, text: string) => text);
/** Never ends by itself. */
const hang = activity(
  "Hang",
  (ctx) =>
    new Promise<void>((_resolve, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
);
const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));

describe("an orchestration", () => {
  const greet = orchestration("Greet", async (ctx, name: string) => {
    const text = await ctx.scheduleActivity(echo, `Hello, ${name}`);
    await ctx.scheduleTimer("1h");
    return `${text}!`;
  });

  test("runs its steps one after the other, and its result is what it returned", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [greet], activities: [echo] });
    const handle = await world.client.start(greet, { instanceId: "g", input: "Ada" });

    expect(await world.settle(handle.result())).toBe("Hello, Ada!");
    expect(await world.eventTypes("g")).toEqual([
      "OrchestrationStarted",
      "ActivityScheduled",
      "ActivityCompleted",
      "TimerCreated",
      "TimerFired",
      "OrchestrationCompleted",
    ]);
  });

  test("is reported once when it starts and once when it ends", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [greet], activities: [echo] });
    const handle = await world.client.start(greet, { instanceId: "g", input: "Ada" });
    await world.settle(handle.result());

    const ref = { instanceId: "g", executionId: 1, orchestrationName: "Greet", orchestrationVersion: "1.0.0" };
    expect(world.factsOf("orchestration-started")).toEqual([
      { type: "orchestration-started", ref, initiatedBy: "client" },
    ]);
    expect(world.factsOf("orchestration-ended")).toEqual([
      {
        type: "orchestration-ended",
        ref,
        ending: "completed",
        details: null,
        durationMs: 3_600_000,
        historyEvents: 6,
        turns: 3,
      },
    ]);
    expect(world.factsOf("turn-committed").map(({ newEvents, isWarm }) => [newEvents, isWarm])).toEqual([
      [2, false],
      [2, true],
      [2, true],
    ]);
  });

  test("that fails passes its message on", async () => {
    await using world = await TestWorld.open();
    const fails = orchestration("Fails", async () => {
      throw new Error("no stock");
    });
    await world.start({ orchestrations: [fails] });
    await world.client.start(fails, { instanceId: "f" });

    expect(await world.ending("f")).toEqual({ status: "Failed", output: "no stock" });
  });

  test("ignores a second start while it runs, whatever that asks for", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [waits, greet] });
    const handle = await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.provider.enqueueForOrchestrator({
      type: "StartOrchestration",
      instance: "w",
      orchestration: "Greet",
      input: '"Eve"',
      version: "7.0.0",
      parentInstance: null,
      parentId: null,
      executionId: 1,
    });
    await world.client.raiseEvent("w", "go", "on");

    expect(await world.settle(handle.result())).toBe("on");
    expect(world.factsOf("messages-dropped")).toMatchObject([{ instanceId: "w", why: "duplicate-start", count: 1 }]);
  });

  test("that has ended consumes what still arrives, without effect", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [waits] });
    await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.client.raiseEvent("w", "go", "on");
    await world.ending("w");
    const before = await world.history("w");
    await world.client.cancel("w", "too late");
    await world.clock.advance(10);

    expect(await world.history("w")).toEqual(before);
    expect(world.factsOf("messages-dropped")).toMatchObject([{ instanceId: "w", why: "instance-ended", count: 1 }]);
  });
});

describe("the version of an orchestration", () => {
  const v1 = orchestration({ name: "Job", version: "1.0.0" }, async (ctx) => {
    await ctx.waitForEvent("go");
    return "one";
  });
  const v2 = orchestration({ name: "Job", version: "2.0.0" }, async () => "two");

  test("is the newest, the policy's, or the one that the start names", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [v1, v2] });
    await world.client.start("Job", { instanceId: "newest" });
    await world.client.start("Job", { instanceId: "named", version: "1.0.0" });
    await world.clock.advance(10);
    await world.client.raiseEvent("named", "go");

    expect((await world.ending("newest")).output).toBe('"two"');
    expect((await world.ending("named")).output).toBe('"one"');
  });

  test("stays the same for the whole execution, even when a newer one is registered meanwhile", async () => {
    await using world = await TestWorld.open();
    const old = await world.start({ orchestrations: [v1] });
    await world.client.start("Job", { instanceId: "j" });
    await world.clock.advance(10);
    await world.settle(old.shutdown());
    await world.start({ orchestrations: [v1, v2] });
    await world.client.raiseEvent("j", "go");

    expect((await world.ending("j")).output).toBe('"one"');
    expect(await world.provider.getInstanceStatus("j")).toMatchObject({ orchestrationVersion: "1.0.0" });
  });

  test("follows the policy at continue-as-new, the point of upgrade", async () => {
    await using world = await TestWorld.open();
    const looping = orchestration({ name: "Job", version: "1.0.0" }, async (ctx) => ctx.continueAsNew());
    await world.start({ orchestrations: [looping, v2] });
    await world.client.start("Job", { instanceId: "j", version: "1.0.0" });

    expect((await world.ending("j")).output).toBe('"two"');
    expect((await world.history("j", 2))[0]).toMatchObject({ type: "OrchestrationStarted", version: "2.0.0" });
  });

  test("can be held back by a policy", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [v1, v2], versionPolicies: { Job: "1.0.0" } });
    await world.client.start("Job", { instanceId: "j" });
    await world.clock.advance(10);

    expect((await world.history("j"))[0]).toMatchObject({ version: "1.0.0" });
  });
});

describe("an orchestration that is not registered", () => {
  test("is left for others, a little longer each time", async () => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [waits] });
    await world.client.start("Job", { instanceId: "j" });
    await world.clock.advance(7_500);

    expect(world.factsOf("turn-abandoned").map(({ why, attempt, delayMs }) => [why, attempt, delayMs])).toEqual([
      ["unregistered", 1, 1_000],
      ["unregistered", 1, 2_000],
      ["unregistered", 1, 4_000],
      ["unregistered", 1, 8_000],
    ]);
    await world.start({ orchestrations: [orchestration("Job", async () => "done")] });
    expect(await world.ending("j")).toEqual({ status: "Completed", output: '"done"' });
  });

  test.each([
    ["under that name", "Nobody", undefined, "(latest version)"],
    ["under that version", "Waits", "9.9.9", "version 9.9.9"],
  ])("%s fails in the end, and the failure says what is missing", async (_how, name, version, text) => {
    await using world = await TestWorld.open();
    await world.start({ orchestrations: [waits], maxAttempts: 3, unregisteredBackoff: { baseMs: 10, maxMs: 50 } });
    await world.client.start(name, { instanceId: "j", ...(version === undefined ? {} : { version }) });
    const ended = await world.settle(world.client.waitForOrchestration("j"));

    expect(ended).toMatchObject({ status: "Failed", details: { category: "poison", attemptCount: 4, maxAttempts: 3 } });
    expect(ended).toMatchObject({
      details: { message: expect.stringContaining(`orchestration '${name}' ${text} is not registered`) },
    });
    expect(await world.eventTypes("j")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
    expect(world.factsOf("orchestration-poisoned")).toHaveLength(1);
  });

  test("as the next execution fails that one, and leaves the one before as it was", async () => {
    await using world = await TestWorld.open();
    const leaps = orchestration("Leaps", async (ctx) => ctx.continueAsNew(null, { version: "3.0.0" }));
    await world.start({ orchestrations: [leaps], maxAttempts: 3, unregisteredBackoff: { baseMs: 10, maxMs: 50 } });
    await world.client.start(leaps, { instanceId: "l" });

    expect(await world.ending("l")).toMatchObject({ status: "Failed" });
    expect(await world.eventTypes("l", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
    expect(await world.eventTypes("l", 2)).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
  });
});

describe("continue-as-new", () => {
  test("takes along what nobody took, the status and the values", async () => {
    await using world = await TestWorld.open();
    const actor = orchestration("Actor", async (ctx, taken: string[]): Promise<string[]> => {
      const message = await ctx.dequeueEvent<string>("inbox");
      ctx.kv.set("count", (ctx.kv.get<number>("count") ?? 0) + 1);
      const status = ctx.customStatus;
      ctx.setCustomStatus(`took ${message}`);
      const all = [...taken, `${message} after ${status}`];
      return all.length === 3 ? [...all, `${ctx.kv.get("count")}`] : ctx.continueAsNew(all);
    });
    await world.start({ orchestrations: [actor] });
    const handle = await world.client.start(actor, { instanceId: "a", input: [] });
    for (const message of ["m1", "m2", "m3"]) await world.client.enqueueEvent("a", "inbox", message);

    expect(await world.settle(handle.result())).toEqual(["m1 after null", "m2 after took m1", "m3 after took m2", "3"]);
    expect((await world.history("a", 2))[0]).toMatchObject({
      carryForwardEvents: [
        ["inbox", '"m2"'],
        ["inbox", '"m3"'],
      ],
      initialCustomStatus: "took m1",
    });
    expect(world.factsOf("orchestration-started").map(({ initiatedBy }) => initiatedBy)).toEqual([
      "client",
      "continueAsNew",
      "continueAsNew",
    ]);
  });

  test("loses no message that arrives before the next execution can start", async () => {
    await using world = await TestWorld.open();
    const first = orchestration({ name: "Two", version: "1.0.0" }, async (ctx) =>
      ctx.continueAsNew(null, { version: "2.0.0" }),
    );
    const second = orchestration({ name: "Two", version: "2.0.0" }, async (ctx) => ctx.dequeueEvent<string>("inbox"));
    await world.start({ orchestrations: [first] });
    await world.client.start("Two", { instanceId: "t", version: "1.0.0" });
    await world.clock.advance(500);
    await world.client.enqueueEvent("t", "inbox", "early");
    await world.clock.advance(10);
    expect(world.factsOf("turn-abandoned").at(-1)).toMatchObject({ why: "unregistered", attempt: 1 });
    await world.start({ orchestrations: [first, second] });

    expect(await world.ending("t")).toEqual({ status: "Completed", output: '"early"' });
  });

  test("fails where it would have to carry more than the limit, instead of losing messages", async () => {
    await using world = await TestWorld.open();
    const hoards = orchestration("Hoards", async (ctx) => {
      await ctx.waitForEvent("go");
      return ctx.continueAsNew();
    });
    await world.start({ orchestrations: [hoards], limits: { maxCarryForwardEvents: 2 } });
    await world.client.start(hoards, { instanceId: "h" });
    for (const message of ["a", "b", "c"]) await world.client.enqueueEvent("h", "inbox", message);
    await world.clock.advance(10);
    await world.client.raiseEvent("h", "go");

    expect(await world.ending("h")).toEqual({
      status: "Failed",
      output: expect.stringContaining("carry over 3 queue messages"),
    });
  });
});

describe("a sub-orchestration", () => {
  const child = orchestration("Child", async (ctx, text: string) => {
    await ctx.scheduleTimer("1s");
    return `${text}!`;
  });

  test("gives its result to the parent, and is reported as the parent's", async () => {
    await using world = await TestWorld.open();
    const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(child, "hi"));
    await world.start({ orchestrations: [parent, child] });
    const handle = await world.client.start(parent, { instanceId: "p" });

    expect(await world.settle(handle.result())).toBe("hi!");
    expect((await world.history("p::sub::2"))[0]).toMatchObject({
      parentInstance: "p",
      parentId: 2,
      parentExecutionId: 1,
    });
    expect(world.factsOf("suborchestration-ended")).toMatchObject([
      { ref: { instanceId: "p" }, childName: "Child", outcome: "success", durationMs: 1_000 },
    ]);
    expect(world.factsOf("orchestration-started").map(({ initiatedBy }) => initiatedBy)).toEqual([
      "client",
      "suborchestration",
    ]);
  });

  test("finds the execution that asked, after both parent and child have continued as new", async () => {
    await using world = await TestWorld.open();
    const looping = orchestration("Looping", async (ctx, left: number): Promise<string> => {
      await ctx.scheduleTimer("1s");
      return left > 0 ? ctx.continueAsNew(left - 1) : "counted down";
    });
    const parent = orchestration("Parent", async (ctx, left: number): Promise<string> => {
      const result = await ctx.scheduleSubOrchestration(looping, 2);
      return left > 0 ? ctx.continueAsNew(left - 1) : result;
    });
    await world.start({ orchestrations: [parent, looping] });
    const handle = await world.client.start(parent, { instanceId: "p", input: 2 });

    expect(await world.settle(handle.result())).toBe("counted down");
    expect((await world.history("p::sub::3_2", 3))[0]).toMatchObject({
      parentInstance: "p",
      parentId: 2,
      parentExecutionId: 3,
    });
  });

  test("finds the parent's current execution where old data names none", async () => {
    await using world = await TestWorld.open();
    const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration<string>("Elsewhere"));
    await world.start({ orchestrations: [parent, child] });
    const handle = await world.client.start(parent, { instanceId: "p" });
    await world.clock.advance(10);
    await world.provider.enqueueForOrchestrator({
      type: "StartOrchestration",
      instance: "old",
      orchestration: "Child",
      input: '"old"',
      version: null,
      parentInstance: "p",
      parentId: 2,
      executionId: 1,
    });

    expect(await world.settle(handle.result())).toBe("old!");
  });

  test("fails in the parent with its own message", async () => {
    await using world = await TestWorld.open();
    const fails = orchestration("Fails", async () => {
      throw new Error("no stock");
    });
    const parent = orchestration("Parent", async (ctx) => {
      try {
        return await ctx.scheduleSubOrchestration(fails);
      } catch (error) {
        return `caught ${(error as Error).message}`;
      }
    });
    await world.start({ orchestrations: [parent, fails] });
    await world.client.start(parent, { instanceId: "p" });

    expect(await world.ending("p")).toEqual({ status: "Completed", output: '"caught no stock"' });
  });

  test("under an id that is taken fails in the parent, whether that one runs or has ended", async () => {
    await using world = await TestWorld.open();
    const parent = orchestration("Parent", async (ctx, instanceId: string) =>
      ctx.scheduleSubOrchestration(child, "hi", { instanceId }),
    );
    await world.start({ orchestrations: [parent, child, waits] });
    await world.client.start(waits, { instanceId: "running" });
    await world.client.start(child, { instanceId: "ended", input: "x" });
    await world.ending("ended");
    await world.client.start(parent, { instanceId: "p1", input: "running" });
    await world.client.start(parent, { instanceId: "p2", input: "ended" });

    for (const instance of ["p1", "p2"]) {
      expect(await world.ending(instance)).toEqual({
        status: "Failed",
        output: expect.stringContaining("already exists"),
      });
    }
    expect(await world.provider.getInstanceStatus("running")).toMatchObject({ status: "Running" });
  });

  test("is cancelled with its parent, and so are its own", async () => {
    await using world = await TestWorld.open();
    const middle = orchestration("Middle", async (ctx) => ctx.scheduleSubOrchestration(waits));
    const top = orchestration("Top", async (ctx) => ctx.all([1, 2].map(() => ctx.scheduleSubOrchestration(middle))));
    await world.start({ orchestrations: [top, middle, waits] });
    await world.client.start(top, { instanceId: "t" });
    await world.clock.advance(10);
    await world.client.cancel("t", "enough");

    expect(await world.ending("t")).toEqual({ status: "Failed", output: "canceled: enough" });
    for (const instance of ["t::sub::2", "t::sub::3", "t::sub::2::sub::2", "t::sub::3::sub::2"]) {
      expect(await world.ending(instance)).toEqual({ status: "Failed", output: "canceled: parent canceled" });
    }
  });

  test("is cancelled when its parent fails", async () => {
    await using world = await TestWorld.open();
    const parent = orchestration("Parent", async (ctx) => {
      const open = ctx.scheduleSubOrchestration(waits);
      await ctx.scheduleTimer("1s");
      if (ctx.executionId > 0) throw new Error("gave up");
      return open;
    });
    await world.start({ orchestrations: [parent, waits] });
    await world.client.start(parent, { instanceId: "p" });

    expect(await world.ending("p")).toEqual({ status: "Failed", output: "gave up" });
    expect(await world.ending("p::sub::2")).toMatchObject({ output: expect.stringContaining("canceled: ") });
  });

  test("that is cancelled itself fails in the parent", async () => {
    await using world = await TestWorld.open();
    const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(waits));
    await world.start({ orchestrations: [parent, waits] });
    await world.client.start(parent, { instanceId: "p" });
    await world.clock.advance(10);
    await world.client.cancel("p::sub::2", "not needed");

    expect(await world.ending("p")).toEqual({ status: "Failed", output: "canceled: not needed" });
  });
});

describe("a detached orchestration", () => {
  const free = orchestration("Free", async () => "free");

  test.each([
    ["completes", async () => "done"],
    [
      "fails",
      async () => {
        throw new Error("boom");
      },
    ],
  ])("is started even if its creator %s in the same turn", async (_how, end) => {
    await using world = await TestWorld.open();
    const creator = orchestration("Creator", async (ctx) => {
      ctx.startOrchestration(free, { instanceId: "free" });
      return end();
    });
    await world.start({ orchestrations: [creator, free] });
    await world.client.start(creator, { instanceId: "c" });
    await world.ending("c");

    expect(await world.ending("free")).toEqual({ status: "Completed", output: '"free"' });
  });

  test("is started even if its creator continues as new or is cancelled in the same turn", async () => {
    await using world = await TestWorld.open();
    const creator = orchestration("Creator", async (ctx, n: number): Promise<void> => {
      ctx.startOrchestration(free, { instanceId: `free-${n}` });
      if (n === 1) return ctx.continueAsNew(2);
      await ctx.waitForEvent("never");
    });
    await world.client.start(creator, { instanceId: "c", input: 1 });
    await world.client.start(creator, { instanceId: "d", input: 3 });
    await world.client.cancel("d", "at once");
    await world.start({ orchestrations: [creator, free] });

    expect(await world.ending("d")).toEqual({ status: "Failed", output: "canceled: at once" });
    for (const instance of ["free-1", "free-2", "free-3"]) {
      expect(await world.ending(instance)).toMatchObject({ status: "Completed" });
    }
  });
});

describe("a cancel request", () => {
  test("that is there before the start wins: the code runs once and is not listened to", async () => {
    await using world = await TestWorld.open();
    const quick = orchestration("Quick", async () => "done");
    await world.client.start(quick, { instanceId: "q" });
    await world.client.cancel("q", "never mind");
    await world.start({ orchestrations: [quick] });

    expect(await world.ending("q")).toEqual({ status: "Failed", output: "canceled: never mind" });
    expect(await world.eventTypes("q")).toEqual([
      "OrchestrationStarted",
      "OrchestrationCancelRequested",
      "OrchestrationFailed",
    ]);
    expect(world.factsOf("orchestration-ended")).toMatchObject([{ ending: "cancelled" }]);
  });

  test("counts once: the first reason stays", async () => {
    await using world = await TestWorld.open();
    await world.client.start(waits, { instanceId: "w" });
    for (const reason of ["first", "second", "third"]) await world.client.cancel("w", reason);
    await world.start({ orchestrations: [waits] });

    expect((await world.ending("w")).output).toBe("canceled: first");
    expect(world.factsOf("messages-dropped")).toMatchObject([{ why: "cancel-repeated", count: 2 }]);
  });

  test("reaches the next execution too", async () => {
    await using world = await TestWorld.open();
    const looping = orchestration("Looping", async (ctx) => {
      await ctx.scheduleTimer("1m");
      return ctx.continueAsNew();
    });
    await world.start({ orchestrations: [looping] });
    await world.client.start(looping, { instanceId: "l" });
    await world.clock.advance(150_000);
    await world.client.cancel("l", "stop");

    expect(await world.ending("l")).toMatchObject({ output: "canceled: stop" });
    expect(await world.provider.getInstanceStatus("l")).toMatchObject({ executionId: 3 });
  });

  test("stops the activities in flight at once where they run in the same process", async () => {
    await using world = await TestWorld.open();
    const hangs = orchestration("Hangs", async (ctx) => ctx.scheduleActivity(hang));
    await world.start({ orchestrations: [hangs], activities: [hang] });
    await world.client.start(hangs, { instanceId: "h" });
    await world.clock.advance(10);
    const before = world.clock.now();
    await world.client.cancel("h", "enough");
    await world.ending("h");

    expect(world.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
    expect(world.clock.now() - before).toBe(0);
    expect(await world.eventTypes("h")).toEqual([
      "OrchestrationStarted",
      "ActivityScheduled",
      "OrchestrationCancelRequested",
      "ActivityCancelRequested",
      "OrchestrationFailed",
    ]);
  });
});

describe("a turn that breaks a limit", () => {
  const greedy = orchestration("Greedy", async (ctx, bytes: number) => {
    const open = ctx.scheduleActivity(hang);
    const child = ctx.scheduleSubOrchestration(waits);
    await ctx.waitForEvent("go");
    ctx.setCustomStatus("about to");
    ctx.kv.setText("large", "x".repeat(bytes));
    ctx.startOrchestration(waits, { instanceId: "never" });
    return [await open, await child];
  });

  test("leaves nothing but the failure, and gives up what is in flight", async () => {
    await using world = await TestWorld.open();
    await world.start({
      orchestrations: [greedy, waits],
      activities: [hang],
      limits: { maxKvValueBytes: 10 },
    });
    await world.client.start(greedy, { instanceId: "g", input: 11 });
    await world.clock.advance(10);
    await world.client.raiseEvent("g", "go");

    expect(await world.ending("g")).toEqual({
      status: "Failed",
      output: "KV value for key 'large' (11 bytes) exceeds limit (10 bytes)",
    });
    const events = await world.history("g");
    expect(events.slice(4).map(({ eventId, type, sourceEventId }) => [eventId, type, sourceEventId])).toEqual([
      [5, "ActivityCancelRequested", 2],
      [6, "OrchestrationFailed", null],
    ]);
    expect(await world.ending("g::sub::3")).toMatchObject({ status: "Failed" });
    expect(await world.provider.getInstanceStatus("never")).toBeNull();
    expect(await world.provider.getKvValue("g", "large")).toBeNull();
    expect(world.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
  });

  test("tells the parent", async () => {
    await using world = await TestWorld.open();
    const child = orchestration("Child", async (ctx) => ctx.setCustomStatus("far too long"));
    const parent = orchestration("Parent", async (ctx) => ctx.scheduleSubOrchestration(child));
    await world.start({ orchestrations: [parent, child], limits: { maxCustomStatusBytes: 4 } });
    await world.client.start(parent, { instanceId: "p" });

    expect(await world.ending("p")).toEqual({
      status: "Failed",
      output: "Custom status size (12 bytes) exceeds limit (4 bytes)",
    });
    expect(await world.eventTypes("p::sub::2")).toEqual(["OrchestrationStarted", "OrchestrationFailed"]);
  });

  test("counts the keys of all turns", async () => {
    await using world = await TestWorld.open();
    const collects = orchestration("Collects", async (ctx) => {
      for (const key of ["a", "b", "c"]) {
        ctx.kv.set(key, 1);
        await ctx.scheduleTimer("1s");
      }
    });
    await world.start({ orchestrations: [collects], limits: { maxKvKeys: 2 } });
    await world.client.start(collects, { instanceId: "c" });

    expect(await world.ending("c")).toEqual({ status: "Failed", output: "KV key count (3) exceeds limit (2)" });
    expect(await world.provider.getKvValue("c", "b")).toBe("1");
  });
});

describe("whatever user code does", () => {
  test.each([
    ["throws before it waits", async () => Promise.reject(new Error("early"))],
    [
      "throws something that is no error",
      async () => {
        throw { odd: true };
      },
    ],
    ["returns what JSON cannot carry", async () => 1n as never],
    ["waits for something foreign", async () => new Promise<never>(() => {})],
  ])("the runtime goes on: it %s", async (_what, run) => {
    await using world = await TestWorld.open();
    const bad = orchestration("Bad", run);
    await world.start({ orchestrations: [bad, waits], orchestrationConcurrency: 1 });
    await world.client.start(bad, { instanceId: "b" });
    await world.client.start(waits, { instanceId: "w" });
    await world.clock.advance(10);
    await world.client.raiseEvent("w", "go", "on");

    expect(await world.ending("b")).toMatchObject({ status: "Failed" });
    expect(await world.ending("w")).toEqual({ status: "Completed", output: '"on"' });
    expect(world.factsOf("loop-failed")).toEqual([]);
  });

  test("an observer that throws harms nobody", async () => {
    await using world = await TestWorld.open();
    const quick = orchestration("Quick", async () => "done");
    const broken = () => {
      throw new Error("observer");
    };
    await world.start({ orchestrations: [quick], observers: [broken] });
    await world.client.start(quick, { instanceId: "q" });

    expect(await world.ending("q")).toMatchObject({ status: "Completed" });
  });
});

describe("a schema that throws", () => {
  test("fails the orchestration, not the runtime", async () => {
    await using world = await TestWorld.open();
    const fails = (): never => {
      throw new Error("schema bug");
    };
    const strict = orchestration(
      { name: "Strict", input: { "~standard": { version: 1, vendor: "test", validate: fails } } },
      async () => "done",
    );
    await world.start({ orchestrations: [strict] });
    await world.client.start("Strict", { instanceId: "s", input: 1 });

    expect(await world.ending("s")).toEqual({ status: "Failed", output: "schema bug" });
  });
});

describe("what the runtime itself provides", () => {
  test("reads another instance's values, as they are when they are read", async () => {
    await using world = await TestWorld.open();
    const producer = orchestration("Producer", async (ctx) => ctx.kv.set("answer", { n: 42 }));
    const consumer = orchestration("Consumer", async (ctx) => [
      await ctx.readKv("producer", "answer"),
      await ctx.readKv("producer", "question"),
      await ctx.readKv("nobody", "answer"),
    ]);
    await world.start({ orchestrations: [producer, consumer] });
    await world.client.start(producer, { instanceId: "producer" });
    await world.ending("producer");
    const handle = await world.client.start(consumer, { instanceId: "consumer" });

    expect(await world.settle(handle.result())).toEqual([{ n: 42 }, null, null]);
  });

  test.each([
    ["new_guid", "00000002-0000-4000-8000-000000000000"],
    ["utc_now_ms", "1700000000000"],
  ])("answers a %s that another runtime has queued", async (name, result) => {
    await using world = await TestWorld.open();
    await world.start({ activities: [activity("Other", () => "")] });
    const item = { instance: "other", executionId: 1, id: 2, name: `__duroxide_syscall:${name}`, input: "" };
    await world.provider.enqueueForWorker({ type: "ActivityExecute", ...item });
    await world.clock.advance(10);
    await world.client.start("Unknown", { instanceId: "other" });
    const fetched = await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 1_000 });

    expect(fetched?.item.messages[0]).toEqual({
      type: "ActivityCompleted",
      instance: "other",
      executionId: 1,
      id: 2,
      result,
    });
  });

  test("counts what happens", async () => {
    await using world = await TestWorld.open();
    const calls = orchestration("Calls", async (ctx) => ctx.scheduleActivity(echo, "x"));
    const { runtime } = await world.start({ orchestrations: [calls], activities: [echo] });
    await world.client.start(calls, { instanceId: "c" });
    await world.ending("c");

    expect(runtime.metrics.snapshot()).toMatchObject({
      orchestrationStarts: 1,
      orchestrationCompletions: 1,
      activitySuccess: 1,
      activeOrchestrations: 0,
    });
  });
});

describe("a runtime that takes over from another", () => {
  test("goes on where the history ends", async () => {
    await using world = await TestWorld.open();
    let runs = 0;
    const counted = activity("Counted", () => {
      runs += 1;
      return runs;
    });
    const story = orchestration("Story", async (ctx) => {
      const first = await ctx.scheduleActivity(counted);
      await ctx.scheduleTimer("1d");
      return [first, await ctx.scheduleActivity(counted)];
    });
    const before = await world.start({ orchestrations: [story], activities: [counted] });
    const handle = await world.client.start(story, { instanceId: "s" });
    await world.clock.advance(1_000);
    await world.settle(before.shutdown());
    await world.start({ orchestrations: [story], activities: [counted] });

    expect(await world.settle(handle.result())).toEqual([1, 2]);
    expect(world.factsOf("turn-committed").map(({ isWarm }) => isWarm)).toEqual([false, true, false, true]);
  });
});
