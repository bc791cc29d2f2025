// Whole stories from real deployments: actors that live for ever, chats, conversations that stay with their worker.

import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.js";
import { activity, event, orchestration } from "../../src/define.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { eventsOf } from "./events-of.js";
import { onEveryStore } from "./stores.js";

/** How each execution of the instance begins and ends. */
async function outline(world: TestWorld, instanceId: string): Promise<string[]> {
  const executions = await world.client.listExecutions(instanceId);
  const types = await Promise.all(executions.map((executionId) => world.eventTypes(instanceId, executionId)));
  return types.map((each) => `${each[0]} … ${each.at(-1)}`);
}

const FOUR_AND_A_LAST = [
  ...Array(4).fill("OrchestrationStarted … OrchestrationContinuedAsNew"),
  "OrchestrationStarted … OrchestrationCompleted",
];

onEveryStore((store) => {
  describe("a chain of executions", () => {
    const counter = orchestration("Counter", async (ctx, n: number): Promise<string> => {
      return n < 4 ? ctx.continueAsNew(n + 1) : `completed at ${n}`;
    });

    test("has a history of its own for each, and the last one ends it", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [counter] });

      expect(await world.run(counter, { instanceId: "c", input: 0 })).toBe("completed at 4");
      expect(await outline(world, "c")).toEqual(FOUR_AND_A_LAST);
      for (const executionId of [1, 2, 3, 4, 5]) {
        const [first] = await world.history("c", executionId);
        expect(first).toMatchObject({ version: "1.0.0", input: String(executionId - 1), executionId });
      }
    });

    test("is not disturbed by others beside it", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [counter] });
      const ids = ["c-1", "c-2", "c-3", "c-4", "c-5"];
      const handles = await Promise.all(ids.map((instanceId) => world.client.start(counter, { instanceId, input: 0 })));

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual(
        Array(5).fill("completed at 4"),
      );
      for (const instanceId of ids) expect(await outline(world, instanceId)).toEqual(FOUR_AND_A_LAST);
    });
  });

  describe("an actor that watches over a database", () => {
    interface Watch {
      readonly database: string;
      readonly round: number;
    }

    const getConnection = activity("GetConnection", (_ctx, database: string) => ({ url: `postgres://${database}` }));
    const testConnection = activity("TestConnection", (_ctx, { url }: { url: string }) => ({ url, isHealthy: true }));
    const recordHealth = activity("RecordHealth", (_ctx, health: { url: string; isHealthy: boolean }) => health.url);
    const updateHealth = activity("UpdateHealth", (_ctx, url: string) => `${url} is healthy`);
    const activities = [getConnection, testConnection, recordHealth, updateHealth];

    const actor = orchestration("Actor", async (ctx, { database, round }: Watch): Promise<string> => {
      const connection = await ctx.scheduleActivity(getConnection, database);
      const health = await ctx.scheduleActivity(testConnection, connection);
      const recorded = await ctx.scheduleActivity(recordHealth, health);
      const summary = await ctx.scheduleActivity(updateHealth, recorded);
      if (round === 4) return `${summary} after ${ctx.executionId} executions`;
      await ctx.scheduleTimer("50ms");
      return ctx.continueAsNew({ database, round: round + 1 });
    });

    test("looks after it round by round, beside others of its kind", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [actor], activities });
      const startMs = world.clock.now();
      const databases = ["a", "b", "c"];
      const handles = await Promise.all(
        databases.map((database) => world.client.start(actor, { instanceId: database, input: { database, round: 0 } })),
      );

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual(
        databases.map((database) => `postgres://${database} is healthy after 5 executions`),
      );
      expect(world.clock.now() - startMs).toBe(200);
      for (const database of databases) {
        expect(await outline(world, database)).toEqual(FOUR_AND_A_LAST);
        for (const executionId of [1, 2, 3, 4, 5]) {
          const history = await world.history(database, executionId);
          expect(eventsOf(history, "ActivityScheduled").map(({ name }) => name)).toEqual(
            activities.map(({ name }) => name),
          );
          expect(eventsOf(history, "TimerFired")).toHaveLength(executionId === 5 ? 0 : 1);
        }
      }
    });
  });

  describe("a timer after other waits", () => {
    test("counts from when it is set, not from the timer before it", async () => {
      await using world = await store.world();
      const work = activity("Work", async (_ctx, ms: number) => {
        await sleep(world.clock, ms);
        return `worked ${ms} ms`;
      });
      const story = orchestration("Story", async (ctx) => {
        await ctx.scheduleTimer("100ms");
        await ctx.scheduleActivity(work, 2_000);
        return ctx.race({ worked: ctx.scheduleActivity(work, 100), timeout: ctx.scheduleTimer("1s") });
      });
      await world.start({ orchestrations: [story], activities: [work] });
      const startMs = world.clock.now();

      expect(await world.run(story, { instanceId: "s" })).toEqual({ winner: "worked", value: "worked 100 ms" });
      expect(eventsOf(await world.history("s"), "TimerCreated").map(({ fireAtMs }) => fireAtMs - startMs)).toEqual([
        100,
        100 + 2_000 + 1_000,
      ]);
    });
  });

  describe("a chat", () => {
    const inbox = event<{ readonly seq: number; readonly text: string }>("inbox");
    const generate = activity("GenerateResponse", (_ctx, text: string) => `Echo: ${text}`);
    const chat = orchestration("Chat", async (ctx, answered: number): Promise<string> => {
      const { seq, text } = await ctx.dequeueEvent(inbox);
      const response = await ctx.scheduleActivity(generate, text);
      ctx.setCustomStatus(JSON.stringify({ state: "replied", last_response: response, msg_seq: seq }));
      if (text.includes("Bye")) return `Chat ended after ${answered + 1} messages`;
      return ctx.continueAsNew(answered + 1);
    });

    test("answers message by message, each in an execution of its own, and its status outlives them", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [chat], activities: [generate] });
      await world.client.start(chat, { instanceId: "chat-42", input: 0 });
      const replies: unknown[] = [];
      let version = 0;
      for (const [index, text] of ["Hello!", "How are you?", "Bye!"].entries()) {
        await world.client.enqueueEvent("chat-42", inbox, { seq: index + 1, text });
        const seen = await world.settle(world.client.waitForStatusChange("chat-42", { lastSeenVersion: version }));
        version = seen.customStatusVersion;
        replies.push(JSON.parse(seen.customStatus ?? "null"));
      }

      expect(replies).toEqual([
        { state: "replied", last_response: "Echo: Hello!", msg_seq: 1 },
        { state: "replied", last_response: "Echo: How are you?", msg_seq: 2 },
        { state: "replied", last_response: "Echo: Bye!", msg_seq: 3 },
      ]);
      expect(await world.settle(world.client.waitForOrchestration("chat-42"))).toMatchObject({
        status: "Completed",
        output: "Chat ended after 3 messages",
        executionId: 3,
        customStatusVersion: 3,
        customStatus: JSON.stringify(replies[2]),
      });
    });

    test("loses no message that comes faster than it answers", async () => {
      await using world = await store.world();
      await world.start({ orchestrations: [chat], activities: [generate] });
      await world.client.start(chat, { instanceId: "chat-42", input: 0 });
      for (const [index, text] of ["Hello!", "How are you?", "Bye!"].entries()) {
        await world.client.enqueueEvent("chat-42", inbox, { seq: index + 1, text });
      }

      expect((await world.ending("chat-42")).output).toBe('"Chat ended after 3 messages"');
      expect((await world.client.listExecutions("chat-42")).length).toBe(3);
      expect(await world.client.getStatus("chat-42")).toMatchObject({
        customStatus: JSON.stringify({ state: "replied", last_response: "Echo: Bye!", msg_seq: 3 }),
      });
    });
  });

  describe("conversations on two workers", () => {
    interface Turn {
      readonly prompt: string;
      readonly turn: number;
    }
    type Reply =
      | { readonly kind: "completed"; readonly text: string }
      | { readonly kind: "wait"; readonly seconds: number };

    const runAgentTurn = activity<Turn, Reply>("RunAgentTurn");
    const conversation = orchestration("Conversation", async (ctx, { prompt, turn }: Turn): Promise<string> => {
      const sessionId = `session-${ctx.instanceId}`;
      const reply = await ctx.scheduleActivity(runAgentTurn, { prompt, turn }, { sessionId });
      if (reply.kind === "completed") return `${reply.text} in turn ${turn}`;
      await ctx.scheduleTimer(`${reply.seconds}s`);
      return ctx.continueAsNew({ prompt: "go on", turn: turn + 1 });
    });

    /** What a worker keeps in memory, by session: created when it first meets one. */
    function agent(world: TestWorld) {
      const messages = new Map<string, string[]>();
      let created = 0;
      const run = activity("RunAgentTurn", async (ctx, { prompt, turn }: Turn): Promise<Reply> => {
        const session = ctx.sessionId ?? "none";
        if (!messages.has(session)) {
          messages.set(session, []);
          created += 1;
        }
        await sleep(world.clock, 500);
        const isToWait = prompt.startsWith("wait");
        messages.get(session)?.push(prompt, isToWait ? "I will be back" : "done");
        return isToWait && turn === 0 ? { kind: "wait", seconds: 10 } : { kind: "completed", text: "done" };
      });
      return { run, messages, created: () => created };
    }

    test("stay with the worker that remembers them, over timers and continue-as-new", async () => {
      await using world = await store.world();
      const agents = [agent(world), agent(world)];
      for (const [index, { run }] of agents.entries()) {
        await world.start({
          orchestrations: [conversation],
          activities: [run],
          workerNodeId: `node-${index}`,
          workerConcurrency: 2,
        });
      }
      const prompts = { a: "short", b: "wait for it", c: "short", d: "wait for it" };
      const handles = await Promise.all(
        Object.entries(prompts).map(([instanceId, prompt]) =>
          world.client.start(conversation, { instanceId, input: { prompt, turn: 0 } }),
        ),
      );

      expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual([
        "done in turn 0",
        "done in turn 1",
        "done in turn 0",
        "done in turn 1",
      ]);
      for (const { messages, created } of agents) {
        expect(created()).toBe(messages.size);
        expect(messages.size).toBeGreaterThan(0);
      }
      const sessions = agents.flatMap(({ messages }) => [...messages]);
      expect(Object.fromEntries(sessions)).toEqual({
        "session-a": ["short", "done"],
        "session-b": ["wait for it", "I will be back", "go on", "done"],
        "session-c": ["short", "done"],
        "session-d": ["wait for it", "I will be back", "go on", "done"],
      });
      expect(sessions).toHaveLength(4);
    });
  });
});
