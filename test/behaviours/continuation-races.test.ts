// What arrives while one execution has ended and the next has not begun, and second starts that meet a running instance.
// R§2.4, R§2.7, R§2.12, R§2.13.

import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import { ENGINE_VERSION } from "../../src/history/event.js";
import type { ContinueAsNew, OrchestratorItem, StartOrchestration } from "../../src/history/work-item.js";
import type { Provider } from "../../src/provider/provider.js";
import { createExecution, seedHistoryTurn, seedInstanceWithPinnedVersion } from "../../src/testing/seeds.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

const CONTINUATION: ContinueAsNew = {
  type: "ContinueAsNew",
  instance: "t",
  orchestration: "Transition",
  input: '"next"',
  version: null,
  carryForwardEvents: [["q", '"carried"']],
};

const late: OrchestratorItem = { type: "QueueMessage", instance: "t", name: "q", data: '"late"' };
const staleResult: OrchestratorItem = {
  type: "ActivityCompleted",
  instance: "t",
  executionId: 1,
  id: 2,
  result: '"stale"',
};

/** Engines whose histories this one goes on with. */
const VERSIONS = ["0.1.26", ENGINE_VERSION];

/** Takes two messages, or what comes within half a minute. */
const transition = orchestration("Transition", async (ctx, input: string) => {
  const taken: string[] = [];
  for (let n = 0; n < 2; n += 1) {
    const first = await ctx.race({ message: ctx.dequeueEvent<string>("q"), silence: ctx.scheduleTimer("30s") });
    taken.push(first.winner === "message" ? first.value : "silence");
  }
  return [input, ...taken];
});
const other = orchestration("Other", async () => "other");

/** An instance whose first execution has continued as new; what it sent stands in the turn's messages. */
async function seedContinuedAsNew(
  provider: Provider,
  engineVersion: string,
  orchestratorItems: readonly OrchestratorItem[],
): Promise<void> {
  const first = { orchestration: "Transition", input: '"first"' };
  await seedInstanceWithPinnedVersion(provider, "t", engineVersion, first);
  await seedHistoryTurn(provider, "t", [{ type: "OrchestrationContinuedAsNew", input: '"next"' }], {
    orchestratorItems,
    metadata: { status: "ContinuedAsNew", output: '"next"' },
  });
}

onEveryStore((store) => {
  describe("a second start", () => {
    const original = (version: string) =>
      orchestration({ name: "Original", version }, async (ctx, input: string) => {
        await ctx.scheduleActivity("Work");
        return `v${version[0]}:${input}`;
      });
    const wrong = orchestration("WrongHandler", async () => "wrong");

    test.each(["Original", "WrongHandler"])(
      "of '%s', in one batch with an answer, changes neither code, version nor input",
      async (name) => {
        await using world = await store.world();
        const start: StartOrchestration = {
          type: "StartOrchestration",
          instance: "o",
          orchestration: name,
          input: '"other-input"',
          version: null,
          parentInstance: null,
          parentId: null,
          executionId: 1,
        };
        await createExecution(world.provider, "o", { orchestration: "Original", input: '"original-input"' });
        await seedHistoryTurn(world.provider, "o", [{ type: "ActivityScheduled", name: "Work", input: "null" }], {
          orchestratorItems: [
            start,
            { type: "ActivityCompleted", instance: "o", executionId: 1, id: 2, result: "null" },
          ],
        });
        await world.start({ orchestrations: [original("1.0.0"), original("2.0.0"), wrong] });

        expect(await world.ending("o")).toEqual({ status: "Completed", output: '"v1:original-input"' });
        expect(world.factsOf("messages-dropped")).toMatchObject([{ why: "duplicate-start", count: 1 }]);
        expect(world.factsOf("turn-committed")).toMatchObject([{ messages: 2 }]);
      },
    );
  });

  describe("an execution that nobody here can run", () => {
    test("is left alone with its carried messages, and later ones line up behind them", async () => {
      await using world = await store.world();
      await world.provider.enqueueForOrchestrator({
        type: "StartOrchestration",
        instance: "t",
        orchestration: "Transition",
        input: '"first"',
        version: null,
        parentInstance: null,
        parentId: null,
        executionId: 1,
      });
      const { lockToken } = (await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 5_000 }))!;
      const envelope = {
        sourceEventId: null,
        instanceId: "t",
        executionId: 1,
        timestampMs: world.clock.now(),
        duroxideVersion: ENGINE_VERSION,
      };
      await world.provider.ackOrchestrationItem(lockToken, {
        executionId: 1,
        events: [
          {
            ...envelope,
            eventId: 1,
            type: "OrchestrationStarted",
            name: "Transition",
            version: "1.0.0",
            input: '"first"',
            parentInstance: null,
            parentId: null,
          },
          { ...envelope, eventId: 2, type: "OrchestrationContinuedAsNew", input: '"next"' },
        ],
        workerItems: [],
        orchestratorItems: [CONTINUATION],
        metadata: { status: "ContinuedAsNew", output: '"next"' },
        cancelledActivities: [],
        cancelledTimers: [],
      });
      const unaware = await world.start({
        orchestrations: [other],
        unregisteredBackoff: { baseMs: 2_000, maxMs: 2_000 },
      });
      await world.rest();
      expect(world.factsOf("turn-abandoned")).toMatchObject([{ why: "unregistered", delayMs: 2_000 }]);
      expect(await world.provider.fetchOrchestrationItem({ lockTimeoutMs: 5_000 })).toBeNull();
      expect((await world.history("t", 1)).length).toBe(2);

      await world.client.enqueueEvent("t", "q", "late");
      await world.advance("100ms");
      await unaware.shutdown();
      await world.start({ orchestrations: [transition] });

      expect(await world.ending("t")).toEqual({ status: "Completed", output: '["next","carried","late"]' });
      expect(await world.client.getStatus("t")).toMatchObject({ executionId: 2 });
      expect((await world.history("t", 1)).length).toBe(2);
    });
  });

  describe("a continuation", () => {
    const duplicate = (parent: Partial<StartOrchestration>): StartOrchestration => ({
      type: "StartOrchestration",
      instance: "t",
      orchestration: "Other",
      input: '"other"',
      version: null,
      parentInstance: null,
      parentId: null,
      executionId: 1,
      ...parent,
    });

    test.each(VERSIONS)("of a history of %s goes before a start that came earlier", async (engineVersion) => {
      await using world = await store.world();
      await seedContinuedAsNew(world.provider, engineVersion, [duplicate({}), CONTINUATION, late]);
      await world.start({ orchestrations: [transition, other] });

      expect(await world.ending("t")).toEqual({ status: "Completed", output: '["next","carried","late"]' });
      expect((await world.history("t", 1)).length).toBe(2);
      expect((await world.history("t", 2))[0]).toMatchObject({
        type: "OrchestrationStarted",
        name: "Transition",
        duroxideVersion: ENGINE_VERSION,
      });
      expect(world.factsOf("messages-dropped")).toMatchObject([{ why: "duplicate-start", count: 1 }]);
    });

    test.each(VERSIONS)(
      "of a history of %s goes before a parent that wants the id for its child, which is told",
      async (engineVersion) => {
        await using world = await store.world();
        const parent = orchestration("Parent", async (ctx) =>
          ctx.scheduleSubOrchestration(other, undefined, { instanceId: "t" }).catch((error: Error) => error.message),
        );
        const link = { parentInstance: "p", parentId: 2, parentExecutionId: 1 };
        await createExecution(world.provider, "p", { orchestration: "Parent", input: "null" });
        await seedHistoryTurn(world.provider, "p", [
          { type: "SubOrchestrationScheduled", name: "Other", instance: "t", input: "null" },
        ]);
        await seedContinuedAsNew(world.provider, engineVersion, [duplicate(link), CONTINUATION, late]);
        await world.start({ orchestrations: [transition, other, parent] });

        expect(await world.ending("t")).toEqual({ status: "Completed", output: '["next","carried","late"]' });
        expect((await world.ending("p")).output).toMatch(/already exists/);
        expect(eventsOf(await world.history("p"), "SubOrchestrationFailed")).toMatchObject([{ sourceEventId: 2 }]);
      },
    );
  });

  describe.each(VERSIONS)("what arrives before a history of %s can go on in the next execution", (engineVersion) => {
    const SHAPES: readonly [string, readonly OrchestratorItem[], unknown][] = [
      ["a message is taken after the carried one", [late], ["next", "carried", "late"]],
      [
        "of several messages the oldest are taken, once each",
        [late, { ...late, data: '"later"' }],
        ["next", "carried", "late"],
      ],
      [
        "an answer to the former execution is dropped, and the message beside it is not",
        [staleResult, late],
        ["next", "carried", "late"],
      ],
      ["an answer to the former execution alone is dropped", [staleResult], ["next", "carried", "silence"]],
      [
        "an answer to nothing that the next one has asked for is dropped",
        [{ ...staleResult, executionId: 2, id: 7 }, late],
        ["next", "carried", "late"],
      ],
    ];

    test.each(SHAPES)("%s", async (_what, arrivals, output) => {
      await using world = await store.world();
      await seedContinuedAsNew(world.provider, engineVersion, arrivals);
      await world.provider.enqueueForOrchestrator(CONTINUATION, { delayMs: 2_000 });
      const before = await world.history("t", 1);
      await world.start({ orchestrations: [transition] });
      await world.advance("1900ms");
      expect(world.factsOf("turn-committed")).toEqual([]);
      const given = world.factsOf("turn-abandoned");
      expect(given[0]).toMatchObject({ why: "awaiting-continuation", delayMs: 50 }); // Mostly it is a matter of clocks.
      expect(given[1]).toMatchObject({ why: "awaiting-continuation", delayMs: 1_000 });

      expect(await world.ending("t")).toEqual({ status: "Completed", output: JSON.stringify(output) });
      expect(await world.history("t", 1)).toEqual(before);
      const next = await world.history("t", 2);
      expect(next[0]?.duroxideVersion).toBe(ENGINE_VERSION);
      expect(eventsOf(next, "ActivityCompleted")).toEqual([]);
      const messages = arrivals.filter(({ type }) => type === "QueueMessage").length;
      expect(eventsOf(next, "ExternalEventPersistent").length).toBe(1 + messages);
      const answers = arrivals.length - messages;
      expect(world.factsOf("messages-dropped").reduce((sum, { count }) => sum + count, 0)).toBe(answers);
    });

    test("an event is recorded, and answers no wait that comes later", async () => {
      await using world = await store.world();
      const waits = orchestration("Transition", async (ctx) => {
        const first = await ctx.race({ event: ctx.waitForEvent("go"), silence: ctx.scheduleTimer("30s") });
        return first.winner;
      });
      await seedContinuedAsNew(world.provider, engineVersion, [
        { type: "ExternalRaised", instance: "t", name: "go", data: '"early"' },
      ]);
      await world.provider.enqueueForOrchestrator(CONTINUATION, { delayMs: 2_000 });
      await world.start({ orchestrations: [waits] });

      expect(await world.ending("t")).toEqual({ status: "Completed", output: '"silence"' });
      expect(eventsOf(await world.history("t", 2), "ExternalEvent")).toMatchObject([{ name: "go", data: '"early"' }]);
    });

    test("a cancel request reaches the next execution", async () => {
      await using world = await store.world();
      await seedContinuedAsNew(world.provider, engineVersion, [
        { type: "CancelInstance", instance: "t", reason: "in between" },
      ]);
      await world.provider.enqueueForOrchestrator(CONTINUATION, { delayMs: 2_000 });
      await world.start({ orchestrations: [transition] });

      expect(await world.ending("t")).toEqual({ status: "Failed", output: "canceled: in between" });
      expect(await world.eventTypes("t", 1)).toEqual(["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
      expect(eventsOf(await world.history("t", 2), "OrchestrationCancelRequested")).toMatchObject([
        { reason: "in between" },
      ]);
    });
  });
});
