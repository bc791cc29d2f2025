import { describe, expect, test } from "vitest";
import { ProviderError } from "../../src/errors.js";
import { type Fact, ObserverStream } from "../../src/observer.js";
import { instrument } from "../../src/provider/kit/instrumented-provider.js";
import type { Provider } from "../../src/provider/provider.js";
import { act, done, start } from "../../src/provider-tests/builders.js";
import { create, fetchWork, LONG_LOCK_MS } from "../../src/provider-tests/steps.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

function openInstrumented() {
  const clock = new VirtualClock();
  const inner = new MemoryProvider({ clock });
  const facts: Fact[] = [];
  const provider = instrument(inner, clock, (fact) => void facts.push(fact));
  return { clock, inner, provider, facts };
}

describe("an instrumented provider", () => {
  test("tells of the operations that the metrics name, and of no others", async () => {
    const { provider, facts } = openInstrumented();
    await create(provider, "order-1");
    await provider.enqueueForWorker(act("order-1", 2));
    const work = await fetchWork(provider);
    await provider.renewWorkItemLock(work!.lockToken, LONG_LOCK_MS);
    await provider.ackWorkItem(work!.lockToken, done("order-1", 2));
    await provider.renewSessionLock(["me"], { extendForMs: 1, idleTimeoutMs: 1 });
    await provider.cleanupOrphanedSessions({ idleTimeoutMs: 1 });
    await provider.read("order-1");
    await provider.getInstanceStatus("order-1");

    expect(facts.map((fact) => fact.type === "provider-call" && fact.operation)).toEqual([
      "enqueue_orchestrator",
      "fetch_orchestration_item",
      "ack_orchestration_item",
      "fetch_work_item",
      "ack_work_item",
      "renew_session_lock",
      "cleanup_orphaned_sessions",
      "read",
    ]);
    expect(facts.every((fact) => fact.type === "provider-call" && fact.provider === "memory")).toBe(true);
  });

  test("tells whether a fetch brought something, and how long it took", async () => {
    const { clock, provider, facts } = openInstrumented();
    const waiting = provider.fetchWorkItem({ lockTimeoutMs: LONG_LOCK_MS, pollTimeoutMs: 5_000 });
    await clock.advance(1_200);
    await provider.enqueueForWorker(act("order-1", 2));
    expect(await waiting).toMatchObject({ item: { id: 2 } });
    expect(await fetchWork(provider)).toBeNull();

    expect(facts).toMatchObject([
      { operation: "fetch_work_item", items: 1, durationMs: 1_200, error: null },
      { operation: "fetch_work_item", items: 0, durationMs: 0, error: null },
    ]);
  });

  test("hands on the very error that the store threw, and tells of it", async () => {
    const { inner, provider, facts } = openInstrumented();
    const error: unknown = await provider.ackWorkItem("unknown", null).catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toEqual(await inner.ackWorkItem("unknown", null).catch((thrown: unknown) => thrown));
    expect(facts).toMatchObject([{ operation: "ack_work_item", error }]);
  });

  test("tells of what is no Error as one", async () => {
    const clock = new VirtualClock();
    const facts: Fact[] = [];
    const rude = { name: "rude", read: () => Promise.reject("no") } as unknown as Provider;
    const provider = instrument(rude, clock, (fact) => void facts.push(fact));

    await expect(provider.read("order-1")).rejects.toBe("no");
    expect(facts).toMatchObject([{ operation: "read", error: new Error("no") }]);
  });

  test("is its provider in name, version and wake, and closes it", async () => {
    const { inner, provider } = openInstrumented();
    expect([provider.name, provider.version]).toEqual([inner.name, inner.version]);
    expect(provider.wake).toBe(inner.wake);

    let isWoken = false;
    provider.wake?.watchInstance("order-1", () => {
      isWoken = true;
    });
    await provider.enqueueForOrchestrator(start("order-1"));
    expect(isWoken).toBe(true);

    const waiting = provider.fetchWorkItem({ lockTimeoutMs: LONG_LOCK_MS, pollTimeoutMs: 5_000 });
    await provider[Symbol.asyncDispose]();
    expect(await waiting).toBeNull();
  });

  test("works although an observer throws", async () => {
    const clock = new VirtualClock();
    const stream = new ObserverStream([
      () => {
        throw new Error("broken");
      },
    ]);
    const provider = instrument(new MemoryProvider({ clock }), clock, stream.emit);

    expect(await provider.read("order-1")).toEqual([]);
  });
});
