import { describe, expect, test } from "vitest";
import { activity, orchestration } from "../../src/define.js";
import { ActivityCancelledError } from "../../src/errors.js";
import type { Fact } from "../../src/observer.js";
import { act } from "../../src/provider-tests/builders.js";
import { activityRef, CallContext, Cancellation } from "../../src/runtime/activity-call.js";
import type { ActivityContext } from "../../src/runtime/activity-context.js";
import { TestWorld } from "../../src/testing/test-world.js";

async function contextOf(): Promise<{
  readonly context: ActivityContext;
  readonly cancellation: Cancellation;
  readonly facts: readonly Fact[];
}> {
  const world = await TestWorld.open();
  const item = act("order-1", 4, { tag: "gpu", sessionId: "user-7", retryOf: 2 });
  const cancellation = new Cancellation();
  const facts: Fact[] = [];
  const emit = (fact: Fact): void => void facts.push(fact);
  const context = new CallContext(activityRef(item, 3, "worker-1"), item, {
    client: world.client,
    emit,
    cancellation,
  });
  await world[Symbol.asyncDispose]();
  return { context, cancellation, facts };
}

describe("the signal of an activity", () => {
  const reason = new ActivityCancelledError("cancelled", "not wanted any more");

  test("that is first looked at after the end was asked for is aborted already, with the reason", async () => {
    const { context, cancellation } = await contextOf();
    cancellation.abort(reason);

    expect(context.signal.aborted).toBe(true);
    expect(context.signal.reason).toBe(reason);
    expect(() => context.signal.throwIfAborted()).toThrow(reason);
  });

  test("that somebody listens to fires when the end is asked for", async () => {
    const { context, cancellation } = await contextOf();
    const heard: unknown[] = [];
    context.signal.addEventListener("abort", () => heard.push(context.signal.reason));
    expect(context.signal.aborted).toBe(false);
    cancellation.abort(reason);

    expect(heard).toEqual([reason]);
  });

  test("is the same one however often it is asked for, before and after", async () => {
    const { context, cancellation } = await contextOf();
    const { signal } = context;
    expect(context.signal).toBe(signal);
    cancellation.abort(reason);

    expect(context.signal).toBe(signal);
    expect(signal.aborted).toBe(true);
  });
});

describe("the context of an activity", () => {
  test("can be taken apart: everything in it works by itself", async () => {
    const { context, cancellation, facts } = await contextOf();
    const { instanceId, executionId, activityName, activityId, idempotencyKey, attempt, workerId, tag, sessionId } =
      context;
    const { signal, trace, client } = context;
    const { warn, info } = trace;

    expect({ instanceId, executionId, activityName, activityId, attempt, workerId, tag, sessionId }).toEqual({
      instanceId: "order-1",
      executionId: 1,
      activityName: "Activity4",
      activityId: 4,
      attempt: 3,
      workerId: "worker-1",
      tag: "gpu",
      sessionId: "user-7",
    });
    expect(idempotencyKey).toBe("order-1:1:2");
    expect(client).toBe(context.client);
    warn("careful");
    info("fine");
    expect(facts).toMatchObject([
      { type: "trace", source: "activity", level: "warn", message: "careful", ref: { activityId: 4 } },
      { type: "trace", source: "activity", level: "info", message: "fine", ref: { instanceId: "order-1" } },
    ]);
    cancellation.abort(new ActivityCancelledError("shutdown", "over"));
    expect(signal.aborted).toBe(true);
  });

  test("traces by one object, however often it is asked for", async () => {
    const { context } = await contextOf();
    expect(context.trace).toBe(context.trace);
  });
});

describe("an activity that looks at its signal only after it was cancelled", () => {
  test("finds it aborted, and why", async () => {
    await using world = await TestWorld.open();
    let look!: () => void;
    const looks = new Promise<void>((resolve) => {
      look = resolve;
    });
    const found: unknown[] = [];
    const late = activity("Late", async (ctx) => {
      await looks;
      found.push(ctx.signal.aborted, ctx.signal.reason);
    });
    const giveUp = orchestration("GiveUp", async (ctx) => {
      await ctx.race([ctx.scheduleActivity(late), ctx.scheduleTimer("1m")]);
      return "given up";
    });
    await world.start({ orchestrations: [giveUp], activities: [late], activityCancellationGraceMs: 3_600_000 });

    expect(await world.run(giveUp)).toBe("given up");
    await world.advance("1m");
    look();
    await world.advance(0);
    expect(found).toEqual([true, expect.objectContaining({ name: "ActivityCancelledError", reason: "cancelled" })]);
  });
});
