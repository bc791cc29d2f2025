import { describe, expect, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { ActivityCancelledError, InstanceNotFoundError, ProviderError } from "../../src/errors.js";
import type { InstanceFilter } from "../../src/provider/admin.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { altered } from "../altered.js";
import { STORES, World } from "../system/bad-input-world.js";

const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent<string>("go"));
const sleeps = orchestration("Sleeps", async (ctx) => void (await ctx.scheduleTimer("1h")));
const says = orchestration("Says", async (_ctx, word: string) => word);
const fails = orchestration("Fails", async () => {
  throw new Error("no stock");
});

const grandchild = orchestration("Grandchild", async (_ctx, word: string) => word.toUpperCase());
const child = orchestration("Child", async (ctx, word: string) => ctx.scheduleSubOrchestration(grandchild, word));
const family = orchestration("Family", async (ctx, words: string[]) =>
  ctx.all(words.map((word) => ctx.scheduleSubOrchestration(child, word))),
);
const delegates = orchestration("Delegates", async (ctx) => ctx.scheduleSubOrchestration(waits));

/** A minute for each execution, to the hundredth. */
const rounds = orchestration("Rounds", async (ctx, round: number) => {
  ctx.kv.set(`round-${round % 3}`, round);
  await ctx.scheduleTimer("1m");
  return round === 100 ? round : ctx.continueAsNew(round + 1);
});
const MINUTE = 60_000;

const ALL = [waits, sleeps, says, fails, grandchild, child, family, delegates, rounds];

describe.each(STORES)("on %s", (_name, open) => {
  async function openRunning(): Promise<World> {
    const world = await World.open(open);
    await world.run({ orchestrations: ALL });
    return world;
  }

  /** Starts it and lets everything run that needs no time. */
  async function begin(world: World, name: string, instanceId: string, input?: unknown): Promise<void> {
    await world.client.start(name, { instanceId, input });
    await world.clock.advance(0);
  }

  async function openFamily(): Promise<World> {
    const world = await openRunning();
    await begin(world, "Family", "f", ["a", "b"]);
    expect(await world.client.getStatus("f")).toMatchObject({ status: "Completed", output: ["A", "B"] });
    return world;
  }

  describe("lists", () => {
    test("have the newest instance first, and know none before its first turn", async () => {
      const world = await World.open(open);
      await world.client.start(says, { instanceId: "one", input: "1" });
      expect(await world.client.listAllInstances()).toEqual([]);

      await world.run({ orchestrations: ALL });
      await world.clock.advance(0);
      await begin(world, "Waits", "two");
      await begin(world, "Fails", "three");
      await begin(world, "Says", "four", "4");
      expect(await world.client.listAllInstances()).toEqual(["four", "three", "two", "one"]);
    });

    test("can be had by the status of the current execution", async () => {
      const world = await openRunning();
      await begin(world, "Waits", "w");
      await begin(world, "Fails", "f");
      await begin(world, "Says", "s", "word");
      await begin(world, "Rounds", "r", 1);
      await world.clock.advance(2 * MINUTE);

      expect(await world.client.listInstancesByStatus("Running")).toEqual(["r", "w"]);
      expect(await world.client.listInstancesByStatus("Failed")).toEqual(["f"]);
      expect(await world.client.listInstancesByStatus("Completed")).toEqual(["s"]);
      expect(await world.client.listInstancesByStatus("ContinuedAsNew")).toEqual([]);
    });

    test("have the executions ascending, and none of an unknown instance", async () => {
      const world = await openRunning();
      await begin(world, "Rounds", "r", 1);
      await world.clock.advance(3 * MINUTE);
      expect(await world.client.listExecutions("r")).toEqual([1, 2, 3, 4]);
      expect(await world.client.listExecutions("nobody")).toEqual([]);
    });
  });

  describe("the details of an instance", () => {
    test("are those of its current execution, with the times of its first and its last turn", async () => {
      const world = await openRunning();
      const createdAtMs = world.clock.now();
      await begin(world, "Rounds", "r", 98);
      await world.clock.advance(5 * MINUTE);

      expect(await world.client.getInstanceInfo("r")).toEqual({
        instanceId: "r",
        orchestrationName: "Rounds",
        orchestrationVersion: "1.0.0",
        currentExecutionId: 3,
        status: "Completed",
        output: "100",
        createdAtMs,
        updatedAtMs: createdAtMs + 3 * MINUTE,
        parentInstanceId: null,
      });
    });

    test("have the text of a failure", async () => {
      const world = await openRunning();
      await begin(world, "Fails", "f");
      expect(await world.client.getInstanceInfo("f")).toMatchObject({ status: "Failed", output: "no stock" });
    });

    test("can be had of every execution", async () => {
      const world = await openRunning();
      const startedAtMs = world.clock.now();
      await begin(world, "Rounds", "r", 1);
      await world.clock.advance(MINUTE + 1);

      expect(await world.client.getExecutionInfo("r", 1)).toEqual({
        executionId: 1,
        status: "ContinuedAsNew",
        output: "2",
        startedAtMs,
        completedAtMs: startedAtMs + MINUTE,
        eventCount: (await world.client.readHistory("r", 1)).length,
      });
      expect(await world.client.getExecutionInfo("r", 2)).toMatchObject({
        status: "Running",
        output: null,
        startedAtMs: startedAtMs + MINUTE,
        completedAtMs: null,
      });
    });

    test("tell the size of its history and its values, and nothing of an unknown one", async () => {
      const world = await openRunning();
      await begin(world, "Rounds", "r", 1);
      const stats = await world.client.getInstanceStats("r");
      expect(stats).toMatchObject({ kvUserKeyCount: 1, kvTotalValueBytes: 1 });
      expect(stats?.historyEventCount).toBe((await world.client.readHistory("r")).length);
      expect(await world.client.getInstanceStats("nobody")).toBeNull();
    });
  });

  describe("a tree", () => {
    test("is the root and all its descendants, every parent before its children", async () => {
      const { client } = await openFamily();
      const [first, second] = await client.listChildren("f");
      const [firstBorn] = await client.listChildren(first!);
      const { rootId, allIds } = await client.getInstanceTree("f");

      expect(rootId).toBe("f");
      expect(allIds).toHaveLength(5);
      expect(allIds.slice(0, 3)).toEqual(["f", first, second]);
      expect(allIds).toContain(firstBorn);
      expect(await client.getInstanceTree(firstBorn!)).toEqual({ rootId: firstBorn, allIds: [firstBorn] });
    });

    test("is known from both ends", async () => {
      const { client } = await openFamily();
      const [first] = await client.listChildren("f");
      expect(await client.getParentId("f")).toBeNull();
      expect(await client.getParentId(first!)).toBe("f");
      expect(await client.getInstanceInfo(first!)).toMatchObject({ parentInstanceId: "f" });
      expect(await client.listChildren("nobody")).toEqual([]);
    });
  });

  describe("counts", () => {
    test("look at the current execution of every instance", async () => {
      const world = await openRunning();
      await begin(world, "Waits", "w");
      await begin(world, "Fails", "f");
      await begin(world, "Says", "s", "word");
      await begin(world, "Rounds", "r", 1);
      await world.clock.advance(2 * MINUTE);

      let totalEvents = 0;
      for (const [id, executionId] of [
        ["w", 1],
        ["f", 1],
        ["s", 1],
        ["r", 1],
        ["r", 2],
        ["r", 3],
      ] as const) {
        totalEvents += (await world.client.readHistory(id, executionId)).length;
      }
      expect(await world.client.getSystemMetrics()).toEqual({
        totalInstances: 4,
        totalExecutions: 6,
        runningInstances: 2,
        completedInstances: 1,
        failedInstances: 1,
        totalEvents,
      });
    });

    test("of the queues have what nobody works on, and timers before their time", async () => {
      const world = await World.open(open);
      await world.client.start(sleeps, { instanceId: "s" });
      await world.client.raiseEvent("s", "hello");
      expect(await world.client.getQueueDepths()).toEqual({ orchestratorQueue: 2, workerQueue: 0, timerQueue: 0 });

      const work = blocking();
      await world.run({
        orchestrations: [...ALL, work.orchestration],
        activities: [work.activity],
        workerConcurrency: 1,
      });
      await begin(world, "Work", "busy", "1");
      await begin(world, "Work", "waiting", "2");
      expect(work.runs).toHaveLength(1);
      expect(await world.client.getQueueDepths()).toEqual({ orchestratorQueue: 1, workerQueue: 1, timerQueue: 0 });
    });
  });

  describe("deleting an instance", () => {
    test("removes the whole tree, and counts it", async () => {
      const { client } = await openFamily();
      const { totalEvents } = await client.getSystemMetrics();
      expect(await client.deleteInstance("f")).toEqual({
        instancesDeleted: 5,
        executionsDeleted: 5,
        eventsDeleted: totalEvents,
        queueMessagesDeleted: 0,
      });
      expect(await client.listAllInstances()).toEqual([]);
      expect(await client.getSystemMetrics()).toMatchObject({ totalInstances: 0, totalExecutions: 0, totalEvents: 0 });
      expect(await client.getStatus("f")).toEqual({ status: "NotFound" });
      expect(await client.readHistory("f")).toEqual([]);
    });

    test("removes its key-values and its messages, and frees its id", async () => {
      const world = await openRunning();
      await begin(world, "Rounds", "r", 1);
      expect(await world.client.deleteInstance("r", { force: true })).toMatchObject({ queueMessagesDeleted: 1 });
      expect(await world.client.getKvAllValues("r")).toEqual(new Map());
      expect(await world.client.getQueueDepths()).toMatchObject({ orchestratorQueue: 0 });

      await world.clock.advance(10 * MINUTE);
      expect(await world.client.getStatus("r")).toEqual({ status: "NotFound" });
      await begin(world, "Says", "r", "again");
      expect(await world.client.getStatus("r")).toMatchObject({ output: "again", executionId: 1 });
    });

    test("leaves the others alone", async () => {
      const world = await openFamily();
      await begin(world, "Waits", "w");
      await world.client.deleteInstance("f");
      await world.client.raiseEvent("w", "go", "now");
      await world.clock.advance(0);
      expect(await world.client.getStatus("w")).toMatchObject({ status: "Completed", output: "now" });
    });

    test("is refused while it runs, and nothing is gone", async () => {
      const world = await openRunning();
      await begin(world, "Waits", "w");
      await expect(world.client.deleteInstance("w")).rejects.toMatchObject({
        code: "DUROXIDE_STILL_RUNNING",
        instanceId: "w",
        message: expect.stringContaining("force: true"),
        cause: expect.objectContaining({ kind: "still-running" }),
      });
      expect(await world.client.getStatus("w")).toMatchObject({ status: "Running" });
    });

    test("takes a running tree by force, and no part of it comes back", async () => {
      const world = await openRunning();
      await begin(world, "Delegates", "d");
      const [delegate] = await world.client.listChildren("d");
      expect(await world.client.deleteInstance("d", { force: true })).toMatchObject({ instancesDeleted: 2 });

      await world.client.raiseEvent(delegate!, "go", "now");
      await world.clock.advance(MINUTE);
      expect(await world.client.getStatus("d")).toEqual({ status: "NotFound" });
      expect(await world.client.getStatus(delegate!)).toEqual({ status: "NotFound" });
    });

    test("in the middle of its turn makes the turn void", async () => {
      const world = await World.open(open);
      const { provider } = world;
      let hasDeleted = false;
      const ackOrchestrationItem: Provider["ackOrchestrationItem"] = async (lockToken, turn) => {
        if (turn.metadata.status === "Completed" && !hasDeleted) {
          hasDeleted = true;
          await world.client.deleteInstance("w", { force: true });
        }
        return provider.ackOrchestrationItem(lockToken, turn);
      };
      await world.run({ provider: altered(provider, { ackOrchestrationItem }), orchestrations: ALL });
      await begin(world, "Waits", "w");
      await world.client.raiseEvent("w", "go", "too late");
      await world.clock.advance(MINUTE);
      expect(hasDeleted).toBe(true);
      expect(await world.client.getStatus("w")).toEqual({ status: "NotFound" });

      await begin(world, "Says", "w", "again");
      expect(await world.client.getStatus("w")).toMatchObject({ status: "Completed", output: "again" });
    });

    test("is refused for a sub-orchestration, forced or not", async () => {
      const { client } = await openFamily();
      const [first] = await client.listChildren("f");
      const refused = {
        code: "DUROXIDE_SUB_ORCHESTRATION",
        instanceId: first,
        cause: expect.objectContaining({ kind: "sub-orchestration" }),
      };
      await expect(client.deleteInstance(first!)).rejects.toMatchObject(refused);
      await expect(client.deleteInstance(first!, { force: true })).rejects.toMatchObject(refused);
      expect(await client.listAllInstances()).toHaveLength(5);
    });

    test("is a method of its handle", async () => {
      const world = await openRunning();
      const handle = await world.client.start(says, { input: "word" });
      await world.settled(handle.result());
      expect(await handle.delete()).toMatchObject({ instancesDeleted: 1 });
      await expect(handle.delete({ force: true })).rejects.toMatchObject({ code: "DUROXIDE_NOT_FOUND" });
    });

    test("lets whoever waits for it wait for the next one of that id", async () => {
      const world = await openRunning();
      await begin(world, "Waits", "w");
      const waiting = world.client.waitForOrchestration("w");
      await world.client.deleteInstance("w", { force: true });
      await world.clock.advance(MINUTE);

      await world.client.start(says, { instanceId: "w", input: "the next one" });
      expect(await world.settled(waiting)).toMatchObject({ status: "Completed", output: "the next one" });
    });
  });

  describe("deleting an instance by force while its activity runs", () => {
    async function openBlocked() {
      const world = await World.open(open);
      const work = blocking();
      await world.run({ orchestrations: [work.orchestration], activities: [work.activity] });
      await begin(world, "Work", "order-1", "first");
      expect(work.runs).toHaveLength(1);
      await world.client.deleteInstance("order-1", { force: true });
      return { client: world.client, clock: world.clock, work, stale: work.runs[0]! };
    }

    test("brings nothing back when the activity is done", async () => {
      const { client, clock, stale } = await openBlocked();
      stale.finish("too late");
      await clock.advance(10 * MINUTE);

      expect(await client.getStatus("order-1")).toEqual({ status: "NotFound" });
      expect(await client.listAllInstances()).toEqual([]);
      expect(await client.getQueueDepths()).toEqual({ orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 });
    });

    test("tells the activity when it looks after its lock next", async () => {
      const { clock, stale } = await openBlocked();
      expect(stale.signal.aborted).toBe(false);
      await clock.advance(MINUTE);
      expect(stale.signal.reason).toBeInstanceOf(ActivityCancelledError);
      expect(stale.signal.reason).toMatchObject({ reason: "cancelled" });
    });

    test("keeps its result from a new instance of that id", async () => {
      const { client, clock, work, stale } = await openBlocked();
      await client.start(work.orchestration, { instanceId: "order-1", input: "second" });
      await clock.advance(0);
      expect(work.runs.map(({ input }) => input)).toEqual(["first", "second"]);

      stale.finish("stale");
      await clock.advance(1_000);
      expect(await client.getStatus("order-1")).toMatchObject({ status: "Running" });

      work.runs[1]!.finish("fresh");
      await clock.advance(0);
      expect(await client.getStatus("order-1")).toMatchObject({ status: "Completed", output: "fresh" });
      expect((await client.readHistory("order-1")).filter(({ type }) => type === "ActivityCompleted")).toHaveLength(1);
    });
  });

  describe("deleting in bulk", () => {
    test("takes those that ended before a time, exclusive, each with its descendants", async () => {
      const world = await openRunning();
      await begin(world, "Family", "early", ["a"]);
      await world.clock.advance(MINUTE);
      const completedBeforeMs = world.clock.now();
      await begin(world, "Says", "later", "word");

      expect(await world.client.deleteInstanceBulk({ completedBeforeMs })).toMatchObject({ instancesDeleted: 3 });
      expect(await world.client.listAllInstances()).toEqual(["later"]);
      expect(await world.client.deleteInstanceBulk({ completedBeforeMs })).toMatchObject({ instancesDeleted: 0 });
      await world.client.deleteInstanceBulk({ completedBeforeMs: completedBeforeMs + 1 });
      expect(await world.client.listAllInstances()).toEqual([]);
    });

    test("passes over what runs and over sub-orchestrations, named or not", async () => {
      const world = await openFamily();
      await begin(world, "Waits", "w");
      const children = await world.client.listChildren("f");
      const instanceIds = ["w", "nobody", ...children];
      expect(await world.client.deleteInstanceBulk({ instanceIds })).toMatchObject({ instancesDeleted: 0 });
      expect(await world.client.deleteInstanceBulk({})).toMatchObject({ instancesDeleted: 5 });
      expect(await world.client.listAllInstances()).toEqual(["w"]);
    });

    test("takes the oldest first, as many trees as the limit says", async () => {
      const world = await openFamily();
      for (const id of ["one", "two", "three"]) await begin(world, "Says", id, id);

      expect(await world.client.deleteInstanceBulk({ limit: 0 })).toMatchObject({ instancesDeleted: 0 });
      expect(await world.client.deleteInstanceBulk({ limit: 2 })).toMatchObject({ instancesDeleted: 6 });
      expect(await world.client.listAllInstances()).toEqual(["three", "two"]);
    });

    test("takes nothing for an empty list of ids", async () => {
      const world = await openFamily();
      expect(await world.client.deleteInstanceBulk({ instanceIds: [] })).toMatchObject({ instancesDeleted: 0 });
      expect(await world.client.listAllInstances()).toHaveLength(5);
    });
  });

  describe("pruning", () => {
    test("shortens a chain of executions while it goes on", async () => {
      const world = await openRunning();
      const handle = await world.client.start(rounds, { instanceId: "r", input: 1 });
      await world.clock.advance(50 * MINUTE);

      let eventsDeleted = 0;
      for (let id = 1; id <= 48; id += 1) eventsDeleted += (await world.client.readHistory("r", id)).length;
      expect(await world.client.pruneExecutions("r", { keepLast: 3 })).toEqual({
        instancesProcessed: 1,
        executionsDeleted: 48,
        eventsDeleted,
      });
      expect(await world.client.listExecutions("r")).toEqual([49, 50, 51]);
      expect(await world.client.getKvAllValues("r")).toEqual(
        new Map([
          ["round-0", 51],
          ["round-1", 49],
          ["round-2", 50],
        ]),
      );

      await world.client.pruneExecutions("r");
      expect(await world.client.listExecutions("r")).toEqual([51]);
      expect(await world.settled(handle.result())).toBe(100);
      expect(await world.client.listExecutions("r")).toHaveLength(50);
    });

    test("takes what is old and ended before a time, exclusive", async () => {
      const world = await openRunning();
      const startedAt = world.clock.now();
      await begin(world, "Rounds", "r", 1);
      await world.clock.advance(5 * MINUTE);

      await world.client.pruneExecutions("r", { completedBeforeMs: startedAt + 3 * MINUTE });
      expect(await world.client.listExecutions("r")).toEqual([3, 4, 5, 6]);
      await world.client.pruneExecutions("r", { keepLast: 3, completedBeforeMs: world.clock.now() });
      expect(await world.client.listExecutions("r")).toEqual([4, 5, 6]);
    });

    test("in bulk goes for running instances too, and only for those that the filter names", async () => {
      const world = await openRunning();
      for (const id of ["a", "b", "c"]) await begin(world, "Rounds", id, 1);
      await world.clock.advance(3 * MINUTE);

      const result = await world.client.pruneExecutionsBulk({ instanceIds: ["a", "b", "nobody"] }, { keepLast: 2 });
      expect(result).toMatchObject({ instancesProcessed: 2, executionsDeleted: 4 });
      expect(await world.client.listExecutions("a")).toEqual([3, 4]);
      expect(await world.client.listExecutions("c")).toEqual([1, 2, 3, 4]);
    });
  });

  describe("what is not known", () => {
    test.each<[string, (client: Client) => Promise<unknown>]>([
      ["getInstanceInfo", (client) => client.getInstanceInfo("nobody")],
      ["getInstanceTree", (client) => client.getInstanceTree("nobody")],
      ["getParentId", (client) => client.getParentId("nobody")],
      ["deleteInstance", (client) => client.deleteInstance("nobody")],
      ["pruneExecutions", (client) => client.pruneExecutions("nobody")],
    ])("makes %s say so", async (_method, call) => {
      const { client } = await World.open(open);
      const refused = await call(client).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(InstanceNotFoundError);
      expect(refused).toMatchObject({ code: "DUROXIDE_NOT_FOUND", instanceId: "nobody", executionId: null });
      expect((refused as Error).cause).toBeInstanceOf(ProviderError);
    });

    test("may be an execution of an instance that is", async () => {
      const world = await openRunning();
      await begin(world, "Says", "s", "word");
      await expect(world.client.getExecutionInfo("s", 7)).rejects.toMatchObject({
        code: "DUROXIDE_NOT_FOUND",
        instanceId: "s",
        executionId: 7,
        message: expect.stringContaining("Execution 7 of instance 's'"),
      });
    });
  });
});

describe("a question that cannot be right", () => {
  const client = new Client(new MemoryProvider());
  const misspelled = { completedBefore: 1 } as InstanceFilter;
  const nothing = undefined as unknown as InstanceFilter;

  test.each<[string, () => Promise<unknown>, string]>([
    ["an unknown filter", () => client.deleteInstanceBulk(misspelled), "Did you mean 'completedBeforeMs'?"],
    ["no filter at all", () => client.deleteInstanceBulk(nothing), "must be an object"],
    ["no filter for pruning", () => client.pruneExecutionsBulk(nothing), "must be an object"],
    ["a negative limit", () => client.deleteInstanceBulk({ limit: -1 }), "'limit'"],
    ["half a limit", () => client.pruneExecutionsBulk({ limit: 0.5 }), "'limit'"],
    ["a time that is none", () => client.deleteInstanceBulk({ completedBeforeMs: Number.NaN }), "'completedBeforeMs'"],
    ["one id for a list", () => client.deleteInstanceBulk({ instanceIds: "a" as unknown as string[] }), "an array"],
    ["a negative number to keep", () => client.pruneExecutions("i", { keepLast: -1 }), "'keepLast'"],
    ["an unknown option", () => client.deleteInstance("i", { forced: true } as object), "Did you mean 'force'?"],
    ["force that is no boolean", () => client.deleteInstance("i", { force: 1 } as object), "must be true or false"],
  ])("is refused as a wrong option: %s", async (_what, call, message) => {
    const refused = { code: "DUROXIDE_INVALID_OPTIONS", message: expect.stringContaining(message) };
    await expect(call()).rejects.toMatchObject(refused);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["an id", () => client.getInstanceInfo("")],
    ["an id in a filter", () => client.deleteInstanceBulk({ instanceIds: ["a", ""] })],
    ["a status", () => client.listInstancesByStatus("Done" as "Completed")],
    ["an execution", () => client.getExecutionInfo("i", 0)],
    ["an execution to read", () => client.readHistory("i", 1.5)],
  ])("is refused as a wrong input: %s", async (_what, call) => {
    await expect(call()).rejects.toMatchObject({ code: "DUROXIDE_INVALID_INPUT" });
  });
});

describe("a provider without management", () => {
  const client = new Client(altered(new MemoryProvider(), { admin: null }));

  test("is told from one with it", () => {
    expect(client.hasManagementCapability()).toBe(false);
    expect(new Client(new MemoryProvider()).hasManagementCapability()).toBe(true);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["listAllInstances", () => client.listAllInstances()],
    ["listInstancesByStatus", () => client.listInstancesByStatus("Running")],
    ["getInstanceInfo", () => client.getInstanceInfo("i")],
    ["getExecutionInfo", () => client.getExecutionInfo("i", 1)],
    ["listExecutions", () => client.listExecutions("i")],
    ["getSystemMetrics", () => client.getSystemMetrics()],
    ["getQueueDepths", () => client.getQueueDepths()],
    ["getInstanceTree", () => client.getInstanceTree("i")],
    ["getParentId", () => client.getParentId("i")],
    ["listChildren", () => client.listChildren("i")],
    ["deleteInstance", () => client.deleteInstance("i")],
    ["deleteInstanceBulk", () => client.deleteInstanceBulk({})],
    ["pruneExecutions", () => client.pruneExecutions("i")],
    ["pruneExecutionsBulk", () => client.pruneExecutionsBulk({})],
  ])("refuses %s", async (_method, call) => {
    await expect(call()).rejects.toMatchObject({
      code: "DUROXIDE_MANAGEMENT_NOT_AVAILABLE",
      providerName: "memory",
      message: expect.stringContaining("hasManagementCapability()"),
    });
  });

  test("tells the size of an instance all the same", async () => {
    expect(await client.getInstanceStats("nobody")).toBeNull();
  });
});

test("what else goes wrong in the store comes out as it is", async () => {
  const provider = new MemoryProvider();
  const busy = new ProviderError("transient", "getInstanceInfo", "busy");
  const getInstanceInfo = () => Promise.reject(busy);
  const client = new Client(altered(provider, { admin: { ...provider.admin, getInstanceInfo } }));
  await expect(client.getInstanceInfo("i")).rejects.toBe(busy);
});

interface BlockedRun {
  readonly input: string;
  readonly signal: AbortSignal;
  readonly finish: (result: string) => void;
}

/** An orchestration of one activity, which is done when the test says so. */
function blocking() {
  const runs: BlockedRun[] = [];
  const block = activity(
    "Block",
    (ctx, input: string) =>
      new Promise<string>((finish) => {
        runs.push({ input, signal: ctx.signal, finish });
      }),
  );
  const work = orchestration("Work", async (ctx, input: string) => ctx.scheduleActivity(block, input));
  return { runs, activity: block, orchestration: work };
}
