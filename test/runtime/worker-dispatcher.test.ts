import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity } from "../../src/define.js";
import { ActivityCancelledError, ProviderError } from "../../src/errors.js";
import { decodeWorkItem } from "../../src/history/codec.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { AbandonOptions, LockedWorkItem } from "../../src/provider/provider.js";
import { act } from "../../src/provider-tests/builders.js";
import { fetchWork } from "../../src/provider-tests/steps.js";
import type { ActivityContext } from "../../src/runtime/activity-context.js";
import { Bench, Gate, replacing } from "./worker-bench.js";

const DAY_MS = 86_400_000;

async function openBench(): Promise<Bench> {
  const bench = new Bench();
  await bench.createInstance("order-1");
  return bench;
}

function transient(operation: string): ProviderError {
  return new ProviderError("transient", operation, "the store is busy");
}

/** What the first completion in the queue says, in short. */
function answerOf(messages: readonly OrchestratorItem[]): unknown {
  const [message] = messages;
  if (message?.type === "ActivityCompleted") return JSON.parse(message.result);
  if (message?.type === "ActivityFailed") return message.details;
  return undefined;
}

describe("an activity", () => {
  test("gets its decoded input and hands in its encoded result", async () => {
    const bench = await openBench();
    const double = activity("Double", async (_ctx, input: { n: number }) => ({ twice: input.n * 2 }));
    const worker = bench.startWorker({ activities: [double] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Double", input: '{"n":21}' }));
    await bench.settle();

    expect(await bench.messages()).toEqual([
      { type: "ActivityCompleted", instance: "order-1", executionId: 1, id: 2, result: '{"twice":42}' },
    ]);
    expect(worker.facts.map((fact) => fact.type)).toEqual(["activity-started", "activity-ended"]);
    expect(worker.factsOf("activity-ended")[0]).toMatchObject({ outcome: "success", details: null });
  });

  test("knows whom it works for", async () => {
    const bench = await openBench();
    let seen: ActivityContext | undefined;
    const look = activity("Look", (ctx) => {
      seen = ctx;
    });
    bench.startWorker({ name: "r1", activities: [look], options: { tagFilter: { kind: "any" } } });
    const fields = { sessionId: "s", tag: "gpu", orchestrationName: "Checkout", orchestrationVersion: "1.2.0" };
    await bench.provider.enqueueForWorker(act("order-1", 7, { name: "Look", ...fields }));
    await bench.settle();

    expect(seen).toMatchObject({
      instanceId: "order-1",
      executionId: 1,
      orchestrationName: "Checkout",
      orchestrationVersion: "1.2.0",
      activityName: "Look",
      activityId: 7,
      idempotencyKey: "order-1:1:7",
      attempt: 1,
      sessionId: "s",
      tag: "gpu",
    });
    expect(seen?.workerId).toMatch(/^work-\d+-r1$/);
    expect(seen?.signal.aborted).toBe(false);
  });

  test("reaches the store through its client", async () => {
    const bench = await openBench();
    const spawn = activity("Spawn", async (ctx) => {
      await ctx.client.start("Child", { instanceId: "child-1" });
    });
    bench.startWorker({ activities: [spawn] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Spawn" }));
    await bench.settle();

    expect(await bench.provider.getInstanceStatus("child-1")).toMatchObject({ status: "Pending" });
  });

  test("traces with the call it belongs to", async () => {
    const bench = await openBench();
    const talk = activity("Talk", (ctx) => {
      const { info, error } = ctx.trace;
      info("hello");
      error("ouch");
    });
    const worker = bench.startWorker({ activities: [talk] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Talk" }));
    await bench.settle();

    expect(worker.factsOf("trace")).toMatchObject([
      { source: "activity", level: "info", message: "hello", ref: { activityName: "Talk", activityId: 2 } },
      { source: "activity", level: "error", message: "ouch" },
    ]);
  });

  test("of every slot runs at the same time as the others, and no more than those", async () => {
    const bench = await openBench();
    let running = 0;
    let most = 0;
    const gate = new Gate();
    const wait = activity("Wait", async () => {
      running += 1;
      most = Math.max(most, running);
      await gate.opened;
      running -= 1;
    });
    bench.startWorker({ activities: [wait], options: { workerConcurrency: 3 } });
    for (let id = 2; id < 7; id += 1) await bench.provider.enqueueForWorker(act("order-1", id, { name: "Wait" }));
    await bench.settle();
    gate.open();
    await bench.settle();

    expect(most).toBe(3);
    expect(await bench.messages()).toHaveLength(5);
  });
});

describe("an activity that fails", () => {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const circular: Record<string, unknown> = {};
  circular.self = circular;

  test.each([
    { thrown: new Error("card declined"), message: "card declined" },
    { thrown: new TypeError(""), message: "TypeError" },
    { thrown: "just text", message: "just text" },
    { thrown: undefined, message: "undefined" },
    { thrown: null, message: "null" },
    { thrown: 42, message: "42" },
    { thrown: { code: 7 }, message: '{"code":7}' },
    { thrown: circular, message: "[object Object]" },
    { thrown: { toJSON: () => undefined }, message: "[object Object]" },
    { thrown: revoked.proxy, message: "[object]" },
  ])("with $message records that text", async ({ thrown, message }) => {
    const bench = await openBench();
    const fail = activity("Fail", async () => {
      throw thrown;
    });
    const worker = bench.startWorker({ activities: [fail] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Fail" }));
    await bench.settle();

    const details = { category: "application", kind: { type: "ActivityFailed" }, message, retryable: false };
    expect(answerOf(await bench.messages())).toEqual(details);
    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "failed", details }]);
  });

  test("before its first await is no different", async () => {
    const bench = await openBench();
    const fail = activity("Fail", () => {
      throw new Error("at once");
    });
    bench.startWorker({ activities: [fail] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Fail" }));
    await bench.settle();

    expect(answerOf(await bench.messages())).toMatchObject({ message: "at once" });
  });

  test("to return what JSON can carry says which part it is", async () => {
    const bench = await openBench();
    const big = activity("Big", async () => ({ total: 10n }) as unknown as { total: number });
    bench.startWorker({ activities: [big] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Big" }));
    await bench.settle();

    expect(answerOf(await bench.messages())).toMatchObject({
      message: expect.stringMatching(/output of activity 'Big'.*total.*BigInt/) as string,
    });
  });

  test("frees its slot for the next", async () => {
    const bench = await openBench();
    const fail = activity("Fail", async (_ctx, ok: boolean) => {
      if (!ok) throw new Error("no");
      return "yes";
    });
    bench.startWorker({ activities: [fail], options: { workerConcurrency: 1 } });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Fail", input: "false" }));
    await bench.provider.enqueueForWorker(act("order-1", 3, { name: "Fail", input: "true" }));
    await bench.settle();

    expect((await bench.messages()).map((message) => message.type)).toEqual(["ActivityFailed", "ActivityCompleted"]);
  });
});

describe("a schema", () => {
  const order = z.object({ amount: z.coerce.number() });
  const charge = activity(
    { name: "Charge", input: order, output: z.string().min(3) },
    async (_ctx, input: { amount: number }) => (input.amount > 9 ? `paid ${input.amount + 1}` : "no"),
  );

  test.each([
    { input: '{"amount":"41"}', answer: "paid 42" },
    {
      input: '{"amount":{}}',
      answer: { message: expect.stringMatching(/input of activity 'Charge' is invalid: amount/) as string },
    },
    {
      input: '{"amount":1}',
      answer: { message: expect.stringMatching(/output of activity 'Charge' is invalid/) as string },
    },
  ])("turns $input into $answer", async ({ input, answer }) => {
    const bench = await openBench();
    bench.startWorker({ activities: [charge] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Charge", input }));
    await bench.settle();

    const given = answerOf(await bench.messages());
    if (typeof answer === "string") expect(given).toBe(answer);
    else expect(given).toMatchObject(answer);
  });
});

describe("the lock of a running activity", () => {
  test("is kept for as long as it runs, so that nobody else runs it", async () => {
    const bench = await openBench();
    let runs = 0;
    const gate = new Gate<string>();
    const slow = activity("Slow", () => {
      runs += 1;
      return gate.opened;
    });
    bench.startWorker({ name: "one", activities: [slow] });
    bench.startWorker({ name: "two", activities: [slow] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Slow" }));
    await bench.clock.advance(10 * 60_000);
    gate.open("done");
    await bench.settle();

    expect(runs).toBe(1);
    expect(answerOf(await bench.messages())).toBe("done");
  });

  test("survives renewals that fail for a passing reason", async () => {
    const bench = await openBench();
    let refusals = 0;
    const flaky = replacing(bench.provider, {
      renewWorkItemLock: async (token, ms) => {
        refusals += 1;
        if (refusals % 3 !== 0) throw transient("renewWorkItemLock");
        return bench.provider.renewWorkItemLock(token, ms);
      },
    });
    const gate = new Gate<string>();
    let signal: AbortSignal | undefined;
    const slow = activity("Slow", (ctx) => {
      signal = ctx.signal;
      return gate.opened;
    });
    bench.startWorker({ activities: [slow], provider: flaky });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Slow" }));
    await bench.clock.advance(5 * 60_000);
    expect(signal?.aborted).toBe(false);
    gate.open("done");
    await bench.settle();

    expect(refusals).toBeGreaterThan(10);
    expect(answerOf(await bench.messages())).toBe("done");
  });

  test("that the store cannot renew in time is lost: the activity hears so, and another worker runs it again", async () => {
    const bench = await openBench();
    const cutOff = replacing(bench.provider, {
      renewWorkItemLock: async () => {
        throw transient("renewWorkItemLock");
      },
    });
    const reasons: unknown[] = [];
    const gate = new Gate<string>();
    const slow = activity("Slow", (ctx) => {
      ctx.signal.addEventListener("abort", () => reasons.push(ctx.signal.reason));
      return ctx.attempt === 1 ? gate.opened : "second";
    });
    const cut = bench.startWorker({ name: "cut", activities: [slow], provider: cutOff });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Slow" }));
    await bench.settle();
    cut.dispatcher.stopFetching();
    bench.startWorker({ name: "other", activities: [slow] });
    await bench.clock.advance(30_200);
    gate.open("first");
    await bench.settle();

    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toBeInstanceOf(ActivityCancelledError);
    expect(reasons[0]).toMatchObject({ reason: "lock-lost" });
    expect(cut.factsOf("activity-ended")).toMatchObject([{ outcome: "lock-lost" }]);
    expect(answerOf(await bench.messages())).toBe("second");
  });
});

describe("a cancelled activity", () => {
  /** Runs until it is told to stop or to end, and says what it heard. */
  function patient() {
    const heard: unknown[] = [];
    const gate = new Gate<string>();
    let runs = 0;
    const definition = activity("Patient", (ctx) => {
      runs += 1;
      return new Promise<string>((resolve, reject) => {
        void gate.opened.then(resolve, reject);
        ctx.signal.addEventListener("abort", () => {
          heard.push((ctx.signal.reason as ActivityCancelledError).reason);
          reject(ctx.signal.reason as Error);
        });
      });
    });
    return { definition, heard, gate, runs: () => runs };
  }

  /** Runs until the test ends it, deaf to its signal. */
  function stubborn() {
    const gate = new Gate<string>();
    const signals: AbortSignal[] = [];
    const definition = activity("Stubborn", (ctx) => {
      signals.push(ctx.signal);
      return gate.opened;
    });
    return { definition, gate, signals };
  }

  test("that is still queued never runs", async () => {
    const bench = await openBench();
    const { definition, runs } = patient();
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.cancelInStore("order-1", 2);
    bench.startWorker({ activities: [definition] });
    await bench.clock.advance(60_000);

    expect(runs()).toBe(0);
  });

  test("hears of it with the next renewal, and its answer is not recorded", async () => {
    const bench = await openBench();
    const { definition, heard } = patient();
    const worker = bench.startWorker({ activities: [definition] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.settle();
    await bench.cancelInStore("order-1", 2);
    await bench.clock.advance(30_000);

    expect(heard).toEqual(["cancelled"]);
    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled", details: null }]);
    expect(worker.factsOf("activity-detached")).toEqual([]);
    expect(await bench.messages()).toEqual([]);
  });

  test("that has run for long is still told from one that lost its lock", async () => {
    const bench = await openBench();
    const { definition, heard } = patient();
    bench.startWorker({ activities: [definition] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.clock.advance(10 * 60_000);
    await bench.cancelInStore("order-1", 2);
    await bench.clock.advance(30_000);

    expect(heard).toEqual(["cancelled"]);
  });

  test("of the same process hears of it at once", async () => {
    const bench = await openBench();
    const { definition, heard } = patient();
    const worker = bench.startWorker({ activities: [definition] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.provider.enqueueForWorker(act("order-1", 3, { name: "Patient" }));
    await bench.settle();
    await bench.cancelInStore("order-1", 2);
    worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
    await bench.settle();

    expect(heard).toEqual(["cancelled"]);
    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled", ref: { activityId: 2 } }]);
  });

  test("is none of those of another instance or execution", async () => {
    const bench = await openBench();
    const { definition, heard } = patient();
    const worker = bench.startWorker({ activities: [definition] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.settle();
    worker.dispatcher.cancelLocal([
      { instance: "order-2", executionId: 1, id: 2 },
      { instance: "order-1", executionId: 2, id: 2 },
      { instance: "order-1", executionId: 1, id: 3 },
    ]);
    worker.dispatcher.cancelLocal([]);
    await bench.settle();

    expect(heard).toEqual([]);
  });

  test("whose execution is over is told so by the renewal, and its row is removed without a completion", async () => {
    const bench = await openBench();
    const { definition, heard } = patient();
    const worker = bench.startWorker({ activities: [definition] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.settle();
    worker.dispatcher.stopFetching();
    await bench.endInstance("order-1");
    await bench.clock.advance(90_000);

    expect(heard).toEqual(["cancelled"]);
    expect(await fetchWork(bench.provider)).toBeNull();
    expect(await bench.messages()).toEqual([]);
  });

  test("that does not listen is detached after the grace period, and frees its slot", async () => {
    const bench = await openBench();
    const { definition, gate, signals } = stubborn();
    const next = activity("Next", async () => "next");
    const worker = bench.startWorker({ activities: [definition, next], options: { workerConcurrency: 1 } });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Stubborn" }));
    await bench.settle();
    await bench.cancelInStore("order-1", 2);
    worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
    await bench.provider.enqueueForWorker(act("order-1", 3, { name: "Next" }));

    await bench.clock.advance(9_999);
    expect(signals[0]?.aborted).toBe(true);
    expect(worker.factsOf("activity-detached")).toEqual([]);
    expect(await bench.messages()).toEqual([]);

    await bench.clock.advance(1);
    expect(worker.factsOf("activity-detached")).toMatchObject([{ graceMs: 10_000, ref: { activityId: 2 } }]);
    expect(answerOf(await bench.messages())).toBe("next");
    gate.open("too late");
    await bench.settle();
    expect(await bench.messages()).toHaveLength(1);
  });

  test("that fails after it was detached harms nobody", async () => {
    const bench = await openBench();
    const { definition, gate } = stubborn();
    const worker = bench.startWorker({ activities: [definition], options: { activityCancellationGraceMs: 0 } });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Stubborn" }));
    await bench.settle();
    worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
    await bench.clock.advance(1);
    gate.fail(new Error("much later"));
    await bench.settle();

    expect(worker.factsOf("activity-detached")).toHaveLength(1);
    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
  });

  test("keeps its lock during the grace period", async () => {
    const bench = await openBench();
    const { definition } = stubborn();
    const options = { activityCancellationGraceMs: 300_000 };
    bench.startWorker({ activities: [definition], options });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Stubborn" }));
    await bench.settle();
    await bench.endInstance("order-1");
    await bench.clock.advance(200_000);

    expect(await fetchWork(bench.provider)).toBeNull();
  });

  test("that answers before it hears of it counts as cancelled, not as a failure of the store", async () => {
    const bench = await openBench();
    const { definition, gate } = patient();
    const worker = bench.startWorker({ activities: [definition] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Patient" }));
    await bench.settle();
    await bench.cancelInStore("order-1", 2);
    gate.open("unwanted");
    await bench.settle();

    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
    expect(await bench.messages()).toEqual([]);
  });
});

describe("an ack that fails", () => {
  function counting() {
    let runs = 0;
    const definition = activity("Count", async () => {
      runs += 1;
      return runs;
    });
    return { definition, runs: () => runs };
  }

  test.each([{ error: transient("ackWorkItem") }, { error: new Error("socket hang up") }])(
    "with '$error.message' is repeated, with the lock kept and the activity run once",
    async ({ error }) => {
      const bench = await openBench();
      const { definition, runs } = counting();
      const downUntil = bench.clock.now() + 5 * 60_000;
      const down = replacing(bench.provider, {
        ackWorkItem: async (token, completion) => {
          if (bench.clock.now() < downUntil) throw error;
          return bench.provider.ackWorkItem(token, completion);
        },
      });
      const worker = bench.startWorker({ activities: [definition], provider: down });
      await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Count" }));
      await bench.clock.advance(6 * 60_000);

      expect(runs()).toBe(1);
      expect(answerOf(await bench.messages())).toBe(1);
      expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "success", durationMs: 0 }]);
      expect(
        worker
          .factsOf("loop-failed")
          .map((fact) => fact.retryInMs)
          .slice(0, 7),
      ).toEqual([100, 200, 400, 800, 1_600, 3_000, 3_000]);
    },
  );

  test("although the store has committed it does no harm", async () => {
    const bench = await openBench();
    const { definition, runs } = counting();
    let isFirst = true;
    const forgetful = replacing(bench.provider, {
      ackWorkItem: async (token, completion) => {
        await bench.provider.ackWorkItem(token, completion);
        if (isFirst) {
          isFirst = false;
          throw transient("ackWorkItem");
        }
      },
    });
    bench.startWorker({ activities: [definition], provider: forgetful });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Count" }));
    await bench.clock.advance(60_000);

    expect(runs()).toBe(1);
    expect(await bench.messages()).toHaveLength(1);
  });

  test("leaves the activity in peace, which has done its part", async () => {
    const bench = await openBench();
    let signal: AbortSignal | undefined;
    const quick = activity("Quick", (ctx) => {
      signal = ctx.signal;
    });
    const down = replacing(bench.provider, {
      ackWorkItem: async () => {
        throw transient("ackWorkItem");
      },
    });
    const worker = bench.startWorker({ activities: [quick], provider: down });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Quick" }));
    await bench.settle();
    worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
    await worker.dispatcher.abort();

    expect(signal?.aborted).toBe(false);
  });

  test("until the lock is lost is given up", async () => {
    const bench = await openBench();
    const { definition } = counting();
    const deaf = replacing(bench.provider, {
      ackWorkItem: async () => {
        throw transient("ackWorkItem");
      },
      renewWorkItemLock: async () => {
        throw transient("renewWorkItemLock");
      },
    });
    const worker = bench.startWorker({ activities: [definition], provider: deaf });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Count" }));
    await bench.settle();
    worker.dispatcher.stopFetching();
    await bench.clock.advance(35_000);
    await worker.dispatcher.drained();

    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "lock-lost" }]);
    expect(await fetchWork(bench.provider)).toMatchObject({ attemptCount: 2 });
  });

  test("for good has the activity run again, and every attempt counts", async () => {
    const bench = await openBench();
    const { definition, runs } = counting();
    const picky = replacing(bench.provider, {
      ackWorkItem: async (token, completion) => {
        if (completion?.type === "ActivityCompleted") throw new ProviderError("invalid", "ackWorkItem", "too large");
        return bench.provider.ackWorkItem(token, completion);
      },
    });
    const worker = bench.startWorker({ activities: [definition], provider: picky, options: { maxAttempts: 3 } });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Count" }));
    await bench.clock.advance(10_000);

    expect(runs()).toBe(3);
    expect(worker.factsOf("activity-ended")[0]).toMatchObject({
      outcome: "abandoned",
      details: { category: "infrastructure" },
    });
    expect(answerOf(await bench.messages())).toMatchObject({ category: "poison" });
  });
});

describe("an activity that was tried too often", () => {
  test("is failed as poison, unrun, with the work item as its message", async () => {
    const bench = await openBench();
    let runs = 0;
    const crash = activity("Crash", () => {
      runs += 1;
    });
    const item = act("order-1", 2, { name: "Crash", input: '"x"' });
    await bench.provider.enqueueForWorker(item);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const locked = await fetchWork(bench.provider);
      await bench.provider.abandonWorkItem(locked!.lockToken);
    }
    const worker = bench.startWorker({ activities: [crash], options: { maxAttempts: 3 } });
    await bench.settle();

    const details = answerOf(await bench.messages()) as { message: string };
    expect(details).toMatchObject({
      category: "poison",
      attemptCount: 4,
      maxAttempts: 3,
      messageType: { type: "Activity", instance: "order-1", executionId: 1, activityName: "Crash", activityId: 2 },
    });
    expect(decodeWorkItem(details.message)).toEqual(item);
    expect(runs).toBe(0);
    expect(worker.factsOf("activity-poisoned")).toMatchObject([{ ref: { attempt: 4 } }]);
  });

  test("still gets its last try at the limit", async () => {
    const bench = await openBench();
    const crash = activity("Crash", (ctx) => ctx.attempt);
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Crash" }));
    await bench.provider.abandonWorkItem((await fetchWork(bench.provider))!.lockToken);
    bench.startWorker({ activities: [crash], options: { maxAttempts: 2 } });
    await bench.settle();

    expect(answerOf(await bench.messages())).toBe(2);
  });
});

describe("an activity that is not registered", () => {
  test("comes back after 1, 2, 4 … 60 seconds and ends as poison", async () => {
    const bench = await openBench();
    const worker = bench.startWorker({});
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Missing" }));
    await bench.clock.advance(10 * 60_000);

    const delays = worker.factsOf("activity-unregistered").map((fact) => fact.delayMs / 1_000);
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    expect(answerOf(await bench.messages())).toMatchObject({ category: "poison", attemptCount: 11, maxAttempts: 10 });
  });

  test("runs where it is registered in the meantime", async () => {
    const bench = await openBench();
    const old = bench.startWorker({ name: "old" });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "New" }));
    await bench.settle();
    old.dispatcher.stopFetching();
    bench.startWorker({ name: "new", activities: [activity("New", (ctx) => ctx.attempt)] });
    await bench.clock.advance(1_000);

    expect(answerOf(await bench.messages())).toBe(1);
  });
});

describe("giving back what is not registered", () => {
  test("is no attempt at it: it never becomes poison for those who can run it", async () => {
    const bench = await openBench();
    const options = { maxAttempts: 1, unregisteredBackoff: { baseMs: 1, maxMs: 1 } };
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "New" }));
    for (const name of ["one", "two", "three"]) {
      const other = bench.startWorker({ name, options });
      await bench.settle();
      other.dispatcher.stopFetching();
      await bench.clock.advance(1);
    }
    bench.startWorker({ name: "new", options, activities: [activity("New", () => "done")] });
    await bench.clock.advance(1);

    expect(answerOf(await bench.messages())).toBe("done");
  });

  test("does not happen to those who know no activity at all: they leave everything to others", async () => {
    const bench = await openBench();
    const worker = bench.startWorker({ activities: [] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "New" }));
    await bench.clock.advance(60_000);

    expect(worker.facts).toEqual([]);
    expect((await fetchWork(bench.provider))?.attemptCount).toBe(1);
  });
});

describe("an activity whose execution is over", () => {
  test("is removed unrun, even if it would be poison", async () => {
    const bench = await openBench();
    let runs = 0;
    const count = activity("Count", () => {
      runs += 1;
    });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Count" }));
    await bench.provider.abandonWorkItem((await fetchWork(bench.provider))!.lockToken);
    await bench.endInstance("order-1");
    const worker = bench.startWorker({ activities: [count], options: { maxAttempts: 1 } });
    await bench.settle();

    expect(runs).toBe(0);
    expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "skipped" }]);
    expect(await bench.messages()).toEqual([]);
    await bench.clock.advance(60_000);
    expect(await fetchWork(bench.provider)).toBeNull();
  });
});

describe("a shutdown", () => {
  test("ends the wait for work at once", async () => {
    const bench = await openBench();
    const worker = bench.startWorker({ options: { longPollTimeoutMs: DAY_MS } });
    await bench.settle();
    const before = bench.clock.now();
    worker.dispatcher.stopFetching();
    await bench.clock.run(worker.dispatcher.drained());

    expect(bench.clock.now()).toBe(before);
  });

  test("lets what runs come to its end, with its lock kept, and begins nothing new", async () => {
    const bench = await openBench();
    const gate = new Gate<string>();
    const slow = activity("Slow", () => gate.opened);
    const worker = bench.startWorker({ activities: [slow], options: { workerConcurrency: 1 } });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Slow" }));
    await bench.settle();
    worker.dispatcher.stopFetching();
    await bench.provider.enqueueForWorker(act("order-1", 3, { name: "Slow" }));
    await bench.clock.advance(5 * 60_000);
    gate.open("done");
    await bench.clock.run(worker.dispatcher.drained());

    expect(await bench.messages()).toMatchObject([{ type: "ActivityCompleted", id: 2 }]);
    expect(await fetchWork(bench.provider)).toMatchObject({ item: { id: 3 }, attemptCount: 1 });
  });

  test("that must wait no longer hands an activity that never ends to another worker, uncounted", async () => {
    const bench = await openBench();
    const reasons: unknown[] = [];
    const stuck = activity("Stuck", (ctx) => {
      ctx.signal.addEventListener("abort", () => reasons.push(ctx.signal.reason));
      return ctx.workerId.endsWith("-one") ? new Promise<number>(() => {}) : ctx.attempt;
    });
    const one = bench.startWorker({ name: "one", activities: [stuck] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Stuck" }));
    await bench.settle();
    bench.startWorker({ name: "two", activities: [stuck] });
    await bench.settle();
    const before = bench.clock.now();
    await one.dispatcher.abort();
    await bench.settle();

    expect(bench.clock.now()).toBe(before);
    expect(reasons).toMatchObject([{ name: "ActivityCancelledError", reason: "shutdown" }]);
    expect(one.factsOf("activity-ended")).toMatchObject([{ outcome: "abandoned", details: null }]);
    expect(answerOf(await bench.messages())).toBe(1);
  });

  test.each(["later", "in the same moment"])(
    "that comes %s cuts the grace period of a cancelled activity short",
    async (when) => {
      const bench = await openBench();
      const stuck = activity("Stuck", () => new Promise<void>(() => {}));
      const worker = bench.startWorker({ activities: [stuck] });
      await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Stuck" }));
      await bench.settle();
      await bench.cancelInStore("order-1", 2);
      worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
      if (when === "later") await bench.settle();
      await worker.dispatcher.abort();

      expect(worker.factsOf("activity-ended")).toMatchObject([{ outcome: "cancelled" }]);
    },
  );

  test("does not wait for a store that takes no completions", async () => {
    const bench = await openBench();
    const quick = activity("Quick", async () => "result");
    const down = replacing(bench.provider, {
      ackWorkItem: async () => {
        throw transient("ackWorkItem");
      },
    });
    const worker = bench.startWorker({ activities: [quick], provider: down });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Quick" }));
    await bench.clock.advance(10_000);
    await worker.dispatcher.abort();

    expect(await fetchWork(bench.provider)).toMatchObject({ attemptCount: 1 });
  });

  test("does not fail when nothing can be given back", async () => {
    const bench = await openBench();
    const stuck = activity("Stuck", () => new Promise<void>(() => {}));
    const down = replacing(bench.provider, {
      abandonWorkItem: async () => {
        throw transient("abandonWorkItem");
      },
    });
    const worker = bench.startWorker({ activities: [stuck], provider: down });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Stuck" }));
    await bench.settle();
    await worker.dispatcher.abort();
    await bench.clock.advance(30_000);

    expect(worker.factsOf("loop-failed")).toMatchObject([{ retryInMs: 30_000 }]);
    expect(await fetchWork(bench.provider)).toMatchObject({ attemptCount: 2 });
  });

  test("gives back, uncounted, what a fetch brings too late", async () => {
    const bench = await openBench();
    let runs = 0;
    const count = activity("Count", () => {
      runs += 1;
    });
    const answer = new Gate<LockedWorkItem | null>();
    const abandoned: (AbandonOptions | undefined)[] = [];
    const late = replacing(bench.provider, {
      fetchWorkItem: () => answer.opened,
      abandonWorkItem: async (_token, options) => {
        abandoned.push(options);
      },
    });
    const options = { workerConcurrency: 1 };
    const worker = bench.startWorker({ activities: [count], provider: late, options });
    await bench.settle();
    worker.dispatcher.stopFetching();
    answer.open({
      item: act("order-1", 2, { name: "Count" }),
      lockToken: "t",
      attemptCount: 1,
      executionState: "running",
    });
    await worker.dispatcher.drained();

    expect(runs).toBe(0);
    expect(abandoned).toEqual([{ ignoreAttempt: true }]);
  });

  test("leaves no timer behind", async () => {
    const bench = await openBench();
    const gate = new Gate();
    const quick = activity("Quick", () => gate.opened);
    const worker = bench.startWorker({ activities: [quick] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Quick" }));
    await bench.provider.enqueueForWorker(act("order-1", 3, { name: "Quick" }));
    await bench.clock.advance(60_000);
    worker.dispatcher.cancelLocal([{ instance: "order-1", executionId: 1, id: 2 }]);
    gate.open();
    await bench.settle();
    worker.dispatcher.stopFetching();
    await worker.dispatcher.drained();
    await bench.provider[Symbol.asyncDispose]();

    expect(bench.clock.pendingTimers).toBe(0);
  });
});

describe("a worker's tag filter", () => {
  const where = activity("Where", (ctx) => ctx.workerId);

  test("decides what it takes", async () => {
    const bench = await openBench();
    bench.startWorker({ name: "plain", activities: [where] });
    bench.startWorker({ name: "gpu", activities: [where], options: { tagFilter: { kind: "tags", tags: ["gpu"] } } });
    for (const [id, tag] of [
      [2, undefined],
      [3, "gpu"],
      [4, "tpu"],
    ] as const) {
      const fields = tag === undefined ? {} : { tag };
      await bench.provider.enqueueForWorker(act("order-1", id, { name: "Where", ...fields }));
    }
    await bench.clock.advance(60_000);

    const answers = (await bench.messages()).map((message) => message.type === "ActivityCompleted" && message.result);
    expect(answers).toEqual([expect.stringMatching(/plain/), expect.stringMatching(/gpu/)]);
    expect(await fetchWork(bench.provider, { tagFilter: { kind: "any" } })).toMatchObject({ item: { tag: "tpu" } });
  });

  test.each([{ options: { tagFilter: { kind: "none" } } as const }, { options: { workerConcurrency: 0 } }])(
    "or concurrency of nothing asks the store for nothing ($options)",
    async ({ options }) => {
      const bench = await openBench();
      let calls = 0;
      const counted = new Proxy(bench.provider, {
        get(target, key) {
          const member: unknown = Reflect.get(target, key, target);
          if (typeof member !== "function") return member;
          return (...args: unknown[]): unknown => {
            calls += 1;
            return Reflect.apply(member, target, args);
          };
        },
      });
      const worker = bench.startWorker({ provider: counted, options });
      await bench.clock.advance(DAY_MS);
      await worker.dispatcher.drained();

      expect(calls).toBe(0);
    },
  );
});

describe("a store that fails", () => {
  test("is asked again with ever more patience, and the worker goes on", async () => {
    const bench = await openBench();
    const upAt = bench.clock.now() + 60_000;
    const down = replacing(bench.provider, {
      fetchWorkItem: async (options) => {
        if (bench.clock.now() < upAt) throw transient("fetchWorkItem");
        return bench.provider.fetchWorkItem(options);
      },
    });
    const hello = activity("Hello", () => "hello");
    const worker = bench.startWorker({ activities: [hello], provider: down, options: { workerConcurrency: 1 } });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Hello" }));
    await bench.clock.advance(70_000);

    const pauses = worker.factsOf("loop-failed").map((fact) => fact.retryInMs);
    expect(pauses.slice(0, 6)).toEqual([200, 400, 800, 1_600, 3_000, 3_000]);
    expect(answerOf(await bench.messages())).toBe("hello");
  });
});

describe("an observer that throws", () => {
  test("harms neither the activity nor the other observers", async () => {
    const bench = await openBench();
    const hello = activity("Hello", (ctx) => {
      ctx.trace.info("here");
      return "hello";
    });
    const broken = () => {
      throw new Error("broken");
    };
    const worker = bench.startWorker({ activities: [hello], observers: [broken] });
    await bench.provider.enqueueForWorker(act("order-1", 2, { name: "Hello" }));
    await bench.settle();

    expect(answerOf(await bench.messages())).toBe("hello");
    expect(worker.facts.map((fact) => fact.type)).toEqual([
      "observer-failed",
      "activity-started",
      "trace",
      "activity-ended",
    ]);
  });
});
