// test/engine/golden.ts — the original's recorded histories, and the same orchestrations written in TypeScript.

import { readdirSync, readFileSync } from "node:fs";
import { ActivityFailedError } from "../../src/errors.js";
import { decodeEvent } from "../../src/history/codec.js";
import type { Event, EventOf } from "../../src/history/event.js";
import type { Code } from "./drive.js";

const GOLDEN = new URL("../golden-original/", import.meta.url);

const child: Code = async (ctx, input: never) => ctx.scheduleActivity("Echo", input);

export const orchestrations: Readonly<Record<string, Code>> = {
  Chain: async (ctx) => [
    await ctx.scheduleActivity("Echo", { n: 1, s: 'ü"\n' }),
    await ctx.scheduleActivity("Echo", "two"),
  ],
  FanOut: async (ctx) => {
    const results = await Promise.all([1, 2, 3].map((n) => ctx.scheduleActivity("Echo", n)));
    return results.map((ok) => ({ ok }));
  },
  TimerRace: async (ctx) => {
    const first = await ctx.race([ctx.scheduleActivity("Slow"), ctx.scheduleTimer(50)]);
    return { index: first.index, value: first.value ?? null };
  },
  Catch: async (ctx) => {
    try {
      return await ctx.scheduleActivity("Fail", 1);
    } catch (error) {
      return `caught: ${error instanceof ActivityFailedError ? error.message : "?"}`;
    }
  },
  Retry: async (ctx) => {
    try {
      const retry = { maxAttempts: 3, backoff: { kind: "fixed", delay: 20 } } as const;
      return await ctx.scheduleActivity("Fail", 1, { retry });
    } catch {
      return "gave up";
    }
  },
  Boom: async () => {
    throw new Error("orchestration failed");
  },
  Wait: async (ctx) => ctx.waitForEvent("approval"),
  Parent: async (ctx) => {
    const auto = await ctx.scheduleSubOrchestration("Child", "auto");
    const explicit = await ctx.scheduleSubOrchestration("Child", "explicit", { instanceId: "explicit-child" });
    ctx.startOrchestration("Child", { instanceId: "detached-1", input: "detached" });
    return [auto, explicit];
  },
  Child: child,
  Can: async (ctx, n: number) => {
    const message = await ctx.dequeueEvent("inbox");
    ctx.setCustomStatus(`seen ${n}`);
    return n < 3 ? ctx.continueAsNew(n + 1) : message;
  },
  Kv: async (ctx) => {
    ctx.kv.setText("a", "1");
    await ctx.scheduleActivity("Echo", 1);
    ctx.kv.setText("a", "2");
    ctx.kv.setText("b", "x");
    ctx.kv.delete("b");
    ctx.kv.clear();
    ctx.kv.setText("z", "end");
    return ctx.kv.getText("z");
  },
  Sys: async (ctx) => ({ g: typeof (await ctx.newGuid()), t: typeof (await ctx.utcNow()) }),
  Session: async (ctx) => ctx.scheduleActivity("Echo", 1, { sessionId: "sess-1" }),
  Hang: async (ctx) => ctx.waitForEvent("never"),
};

export const histories = readdirSync(GOLDEN)
  .filter((file) => file.endsWith(".jsonl") && file !== "work-items.jsonl")
  .map((file) => ({ file, events: readHistory(file) }));

export function readHistory(file: string): Event[] {
  const lines = readFileSync(new URL(file, GOLDEN), "utf8").trim().split("\n");
  return lines.map(decodeEvent);
}

export function startOf(events: readonly Event[]): EventOf<"OrchestrationStarted"> {
  const [first] = events;
  if (first?.type !== "OrchestrationStarted") throw new Error("no start");
  return first;
}
