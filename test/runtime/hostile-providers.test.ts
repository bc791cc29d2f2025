// What a runtime makes of providers that do not keep to their types, and what it leaves as it is for those that do.

import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import type { Fact } from "../../src/observer.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { replacing } from "./worker-bench.js";

const one = activity("One", async () => 1);
const three = orchestration("Three", async (ctx) => {
  for (let n = 0; n < 3; n += 1) await ctx.scheduleActivity(one);
});

/** Three activities, one after the other, on a store that `wrap` has changed. */
async function runThree(wrap: (provider: Provider) => Provider): Promise<readonly Fact[]> {
  const clock = new VirtualClock();
  const provider = new MemoryProvider({ clock });
  const facts: Fact[] = [];
  const slots = { workerConcurrency: 1, orchestrationConcurrency: 1 };
  const observers = [(fact: Fact) => void facts.push(fact)];
  const runtime = await Runtime.start({
    provider: wrap(provider),
    clock,
    orchestrations: [three],
    activities: [one],
    ...slots,
    observers,
  });
  await new Client(provider, { clock }).start(three, { instanceId: "x" });
  await clock.advance(60_000);
  await clock.run(runtime.shutdown());
  return facts;
}

describe("the options of a fetch", () => {
  test("cannot be changed, because the next fetch has the same", async () => {
    const errors: unknown[] = [];
    const facts = await runThree((provider) =>
      replacing(provider, {
        fetchWorkItem: (options) => {
          try {
            (options as { lockTimeoutMs: number }).lockTimeoutMs += 1_000;
          } catch (error) {
            errors.push(error);
          }
          return provider.fetchWorkItem(options);
        },
      }),
    );
    expect(errors[0]).toBeInstanceOf(TypeError);
    expect(facts.filter(({ type }) => type === "activity-ended")).toHaveLength(3);
  });
});

describe("a call that answers with nothing", () => {
  test("has failed, and is made again", async () => {
    let calls = 0;
    const facts = await runThree((provider) =>
      replacing(provider, {
        ackWorkItem: (lockToken, completion) => {
          calls += 1;
          return calls === 1 ? (undefined as never) : provider.ackWorkItem(lockToken, completion);
        },
      }),
    );
    const [first] = facts.filter((fact) => fact.type === "provider-call" && fact.operation === "ack_work_item");
    expect(first).toMatchObject({ error: expect.any(TypeError) });
    expect(facts.filter(({ type }) => type === "activity-ended")).toHaveLength(3);
  });
});

describe("an activity that is interrupted", () => {
  test("comes to its end where its runtime was started, and not where it was interrupted", async () => {
    const where = new AsyncLocalStorage<string>();
    const clock = new VirtualClock();
    const provider = new MemoryProvider({ clock });
    const seen: unknown[] = [];
    const endless = activity("Endless", () => new Promise<never>(() => {}));
    const waits = orchestration("Waits", async (ctx) => ctx.scheduleActivity(endless));
    const observers = [(fact: Fact) => void (fact.type === "activity-ended" && seen.push(where.getStore()))];
    const runtime = await where.run("start", () =>
      Runtime.start({ provider, clock, orchestrations: [waits], activities: [endless], observers }),
    );
    await new Client(provider, { clock }).start(waits, { instanceId: "x" });
    await clock.advance(100);
    await clock.run(where.run("shutdown", () => runtime.shutdown({ graceMs: 0 })));
    expect(seen).toEqual(["start"]);
  });
});
