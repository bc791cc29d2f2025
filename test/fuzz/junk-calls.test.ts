// Whatever orchestration code passes to `ctx`: an error of ours, thrown at the call, or a decision that every store can keep.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { decodeEvent, encodeEvent } from "../../src/history/codec.js";
import { runTurn } from "../engine/drive.js";
import { tries } from "./budget.js";
import { anyJunk, codeOf, ODDITIES } from "./junk.js";

type Call = (ctx: OrchestrationContext, junk: never) => unknown;

const backoff = (part: string, kind: string, ctx: OrchestrationContext, junk: unknown): unknown => {
  const given = { kind, base: 1, delay: 1, [part]: junk };
  return ctx.scheduleActivity("A", 1, { retry: { backoff: given as never } });
};

const CALLS: Readonly<Record<string, Call>> = {
  "scheduleActivity: the activity": (ctx, junk) => ctx.scheduleActivity(junk),
  "scheduleActivity: the input": (ctx, junk) => ctx.scheduleActivity("A", junk),
  "scheduleActivity: the options": (ctx, junk) => ctx.scheduleActivity("A", 1, junk),
  "scheduleActivity: sessionId": (ctx, junk) => ctx.scheduleActivity("A", 1, { sessionId: junk }),
  "scheduleActivity: tag": (ctx, junk) => ctx.scheduleActivity("A", 1, { tag: junk }),
  "scheduleActivity: retry": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: junk }),
  "retry: maxAttempts": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: { maxAttempts: junk } }),
  "retry: timeout": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: { timeout: junk } }),
  "retry: retryOnTimeout": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: { retryOnTimeout: junk } }),
  "retry: shouldRetry": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: { shouldRetry: junk } }),
  "retry: backoff": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: { backoff: junk } }),
  "backoff: kind": (ctx, junk) => ctx.scheduleActivity("A", 1, { retry: { backoff: { kind: junk } } }),
  "backoff: delay": (ctx, junk) => backoff("delay", "fixed", ctx, junk),
  "backoff: base, linear": (ctx, junk) => backoff("base", "linear", ctx, junk),
  "backoff: max, linear": (ctx, junk) => backoff("max", "linear", ctx, junk),
  "backoff: base, exponential": (ctx, junk) => backoff("base", "exponential", ctx, junk),
  "backoff: max, exponential": (ctx, junk) => backoff("max", "exponential", ctx, junk),
  "backoff: multiplier": (ctx, junk) => backoff("multiplier", "exponential", ctx, junk),
  "scheduleTimer: the delay": (ctx, junk) => ctx.scheduleTimer(junk),
  "waitForEvent: the event": (ctx, junk) => ctx.waitForEvent(junk),
  "dequeueEvent: the queue": (ctx, junk) => ctx.dequeueEvent(junk),
  "scheduleSubOrchestration: the orchestration": (ctx, junk) => ctx.scheduleSubOrchestration(junk),
  "scheduleSubOrchestration: the input": (ctx, junk) => ctx.scheduleSubOrchestration("C", junk),
  "scheduleSubOrchestration: the options": (ctx, junk) => ctx.scheduleSubOrchestration("C", 1, junk),
  "scheduleSubOrchestration: instanceId": (ctx, junk) => ctx.scheduleSubOrchestration("C", 1, { instanceId: junk }),
  "scheduleSubOrchestration: version": (ctx, junk) => ctx.scheduleSubOrchestration("C", 1, { version: junk }),
  "startOrchestration: the orchestration": (ctx, junk) => ctx.startOrchestration(junk, { instanceId: "i" }),
  "startOrchestration: the options": (ctx, junk) => ctx.startOrchestration("C", junk),
  "startOrchestration: instanceId": (ctx, junk) => ctx.startOrchestration("C", { instanceId: junk }),
  "startOrchestration: the input": (ctx, junk) => ctx.startOrchestration("C", { instanceId: "i", input: junk }),
  "startOrchestration: version": (ctx, junk) => ctx.startOrchestration("C", { instanceId: "i", version: junk }),
  "continueAsNew: the input": (ctx, junk) => ctx.continueAsNew(junk),
  "continueAsNew: the options": (ctx, junk) => ctx.continueAsNew(1, junk),
  "continueAsNew: version": (ctx, junk) => ctx.continueAsNew(1, { version: junk }),
  "all: the branches": (ctx, junk) => ctx.all(junk),
  "all: a branch": (ctx, junk) => ctx.all([junk, ctx.scheduleTimer(1)]),
  "race: the branches": (ctx, junk) => ctx.race(junk),
  "race: a branch": (ctx, junk) => ctx.race([junk]),
  "setCustomStatus: the status": (ctx, junk) => ctx.setCustomStatus(junk),
  "kv.set: the key": (ctx, junk) => ctx.kv.set(junk, 1),
  "kv.set: the value": (ctx, junk) => ctx.kv.set("k", junk),
  "kv.setText: the key": (ctx, junk) => ctx.kv.setText(junk, "x"),
  "kv.setText: the text": (ctx, junk) => ctx.kv.setText("k", junk),
  "kv.setText: both": (ctx, junk) => ctx.kv.setText(junk, junk),
  "kv.get: the key": (ctx, junk) => ctx.kv.get(junk),
  "kv.has: the key": (ctx, junk) => ctx.kv.has(junk),
  "kv.delete: the key": (ctx, junk) => ctx.kv.delete(junk),
  "kv.pruneUpdatedBefore: the time": (ctx, junk) => ctx.kv.pruneUpdatedBefore(junk),
  "readKv: the id": (ctx, junk) => ctx.readKv(junk, "k"),
  "readKv: the key": (ctx, junk) => ctx.readKv("i", junk),
  "trace: the message": (ctx, junk) => ctx.trace.info(junk),
};

describe("junk in an orchestration", () => {
  test.each(Object.keys(CALLS))("%s: is refused at the call, or recorded as every store can keep it", async (name) => {
    const call = CALLS[name]!;
    for (const make of ODDITIES) await expectTypedOrStorable(call, make());
    await fc.assert(
      fc.asyncProperty(anyJunk, (junk) => expectTypedOrStorable(call, junk)),
      tries(60),
    );
  });
});

async function expectTypedOrStorable(call: Call, junk: unknown): Promise<void> {
  const thrown: unknown[] = [];
  const { events } = await runTurn({
    code: async (ctx) => {
      try {
        call(ctx, junk as never);
      } catch (error) {
        thrown.push(error);
      }
    },
  });
  for (const error of thrown) expect(codeOf(error)).toMatch(/^DUROXIDE_INVALID_(INPUT|OPTIONS)$/);
  for (const event of events) expect(decodeEvent(encodeEvent(event))).toEqual(event);
}
