import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { WaitOptions } from "../../src/client/wait.js";
import { orchestration } from "../../src/define.js";
import { OrchestrationFailedError, ProviderError } from "../../src/errors.js";
import { cancelled, orchestrationFailed } from "../../src/history/error-details.js";
import { commitTurn, completing, continuing, failing, openClient, STARTED, wakeAndCommit } from "./driver.js";

const HOUR_MS = 3_600_000;

async function openRunning(options: Parameters<typeof openClient>[0] = {}) {
  const opened = openClient(options);
  const handle = await opened.client.start("Test", { instanceId: "i" });
  await commitTurn(opened.provider, { events: [STARTED] });
  opened.store.calls.clear();
  return { ...opened, handle };
}

/** The same promise, and whether it is settled. */
function watched<T>(promise: Promise<T>) {
  const state = { isSettled: false, promise };
  promise.then(
    () => {
      state.isSettled = true;
    },
    () => {
      state.isSettled = true;
    },
  );
  return state;
}

function transient(): ProviderError {
  return new ProviderError("transient", "getInstanceStatus", "the connection was lost");
}

describe("the result of an instance", () => {
  test("is what it returned", async () => {
    const { handle, provider } = await openRunning();
    await wakeAndCommit(provider, "i", completing({ total: 7 }));
    expect(await handle.result()).toEqual({ total: 7 });
  });

  test("is the same for every handle and every time it is asked for", async () => {
    const { client, handle, provider } = await openRunning();
    const early = handle.result();
    await wakeAndCommit(provider, "i", completing(1));
    expect(await Promise.all([early, handle.result(), client.getHandle("i").result()])).toEqual([1, 1, 1]);
  });

  test("that is told with the commit is not looked for again", async () => {
    const { client, handle, provider, store, clock } = await openRunning();
    const results = [handle.result(), client.waitForOrchestration("i")];
    await clock.advance(0);
    store.calls.clear();
    await wakeAndCommit(provider, "i", completing({ total: 7 }));

    expect(await results[0]).toEqual({ total: 7 });
    expect(await results[1]).toMatchObject({ status: "Completed", output: { total: 7 }, customStatus: null });
    expect(store.calls.get("getInstanceStatus")).toBe(1); // For all that is known of it.
  });

  test("that is told while somebody looks is what was told, though the look saw it running", async () => {
    const { handle, provider, store, clock } = await openRunning();
    const release = store.holdAnswer("getInstanceStatus");
    const result = handle.result();
    await clock.advance(0);
    await wakeAndCommit(provider, "i", completing("done"));
    release();

    expect(await result).toBe("done");
    expect(store.calls.get("getInstanceStatus")).toBe(1);
  });

  test("that is told does not wait for a look that is under way: one that takes too long, or never ends, or fails", async () => {
    const { client, provider, store, clock } = await openRunning();
    const results: Promise<unknown>[] = [];
    const waitWhile = async (options?: WaitOptions): Promise<void> => {
      results.push(client.getHandle("i").result(options));
      await clock.advance(0);
    };
    const releaseLate = store.holdAnswer("getInstanceStatus");
    await waitWhile({ timeoutMs: 100 });
    store.holdNext("getInstanceStatus");
    await waitWhile();
    const releaseBroken = store.holdNext("getInstanceStatus");
    store.failNext("getInstanceStatus", new ProviderError("invalid", "getInstanceStatus", "the disk is gone"));
    await waitWhile();
    await wakeAndCommit(provider, "i", completing(7));
    expect(await Promise.all(results)).toEqual([7, 7, 7]);

    await clock.advance(150);
    releaseLate();
    releaseBroken();
    await clock.advance(HOUR_MS);
    expect([store.watches, clock.pendingTimers]).toEqual([0, 0]);
  });

  test("that is told fits the output schema, or is refused", async () => {
    const { client, provider, clock } = await openRunning();
    const dated = orchestration<void, Date>({ name: "Test", output: z.coerce.date() });
    const counted = orchestration<void, number>({ name: "Test", output: z.number() });
    const date = client.getHandle(dated, "i").result();
    const refused = client
      .getHandle(counted, "i")
      .result()
      .catch((error: unknown) => error);
    await clock.advance(0);
    await wakeAndCommit(provider, "i", completing("2026-01-02T00:00:00.000Z"));

    expect(await date).toEqual(new Date("2026-01-02T00:00:00.000Z"));
    expect(await refused).toMatchObject({ code: "DUROXIDE_INVALID_INPUT" });
  });

  test("is what the output schema makes of it", async () => {
    const { client, provider } = await openRunning();
    const dated = orchestration<void, Date>({ name: "Test", output: z.coerce.date() });
    await wakeAndCommit(provider, "i", completing("2026-01-02T00:00:00.000Z"));
    expect(await client.getHandle(dated, "i").result()).toEqual(new Date("2026-01-02T00:00:00.000Z"));
  });

  test("is refused where it does not fit the output schema", async () => {
    const { client, provider } = await openRunning();
    const counted = orchestration<void, number>({ name: "Test", output: z.number() });
    await wakeAndCommit(provider, "i", completing("seven"));
    const result = client.getHandle(counted, "i").result();
    await expect(result).rejects.toMatchObject({ code: "DUROXIDE_INVALID_INPUT" });
    await expect(result).rejects.toThrow("output of instance 'i'");
  });

  test("of a failed instance is thrown, with the recorded details", async () => {
    const { handle, provider } = await openRunning();
    const details = orchestrationFailed("no stock");
    await wakeAndCommit(provider, "i", failing(details));
    const failure = await handle.result().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OrchestrationFailedError);
    expect(failure).toMatchObject({
      code: "DUROXIDE_ORCHESTRATION_FAILED",
      instanceId: "i",
      message: "no stock",
      details,
    });
  });

  test("of a cancelled instance is thrown, and its details tell the kind", async () => {
    const { handle, provider } = await openRunning();
    await wakeAndCommit(provider, "i", failing(cancelled("too late")));
    await expect(handle.result()).rejects.toMatchObject({
      message: "canceled: too late",
      details: { kind: { type: "Cancelled" } },
    });
  });

  test("as an answer that never throws for a failure is waitForOrchestration", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", failing(orchestrationFailed("no stock")));
    expect(await client.waitForOrchestration("i")).toMatchObject({ status: "Failed", error: "no stock" });
  });

  test("is that of the last execution: continue-as-new is followed", async () => {
    const { handle, provider, clock } = await openRunning();
    const result = watched(handle.result());
    await wakeAndCommit(provider, "i", continuing("i", "2"));
    await clock.advance(0);
    await commitTurn(provider, { executionId: 2, events: [STARTED] });
    await clock.advance(0);
    expect(result.isSettled).toBe(false);

    await wakeAndCommit(provider, "i", completing("second"));
    expect(await result.promise).toBe("second");
  });

  test("can be waited for before anybody has started the instance", async () => {
    const { client, provider } = openClient();
    const result = client.getHandle("i").result();
    await client.start("Test", { instanceId: "i" });
    await commitTurn(provider, { ...completing("done"), events: [STARTED] });
    expect(await result).toBe("done");
  });
});

describe("a wait on a store that can wake it", () => {
  test("resolves on the wake, without time passing", async () => {
    const { handle, provider, clock } = await openRunning();
    const before = clock.now();
    const result = handle.result();
    await clock.advance(0);
    await wakeAndCommit(provider, "i", completing("done"));
    expect(await result).toBe("done");
    expect(clock.now()).toBe(before);
  });

  test("reads little while nothing happens: in an hour less than polling does in two minutes", async () => {
    const { handle, provider, clock, store } = await openRunning();
    const result = handle.result();
    await clock.advance(HOUR_MS);

    expect(store.reads).toBeLessThanOrEqual(HOUR_MS / 5_000 + 5);
    expect([...store.calls.keys()]).toEqual(["getInstanceStatus"]);
    await wakeAndCommit(provider, "i", completing("done"));
    expect(await result).toBe("done");
  });

  test("looks again by itself within five seconds, in case the wake was lost", async () => {
    const { clock, store, provider, client } = await openRunning();
    const deaf = watched(client.waitForOrchestration("i"));
    await clock.advance(HOUR_MS);
    store.dropWakes = true;
    await wakeAndCommit(provider, "i", completing("done"));
    await clock.advance(0);
    expect(deaf.isSettled).toBe(false);
    await clock.advance(5_000);
    expect(deaf.isSettled).toBe(true);
  });

  test("answers many wakes during one look with one more look", async () => {
    const { handle, clock, store } = await openRunning();
    const release = store.holdNext("getInstanceStatus");
    const result = watched(handle.result());
    await clock.advance(0);

    for (let wakes = 0; wakes < 10; wakes += 1) store.wakeWatchers();
    expect(store.calls.get("getInstanceStatus")).toBe(1);
    release();
    await clock.advance(0);

    expect(store.calls.get("getInstanceStatus")).toBe(2);
    expect(result.isSettled).toBe(false);
  });

  test("misses no change that is committed while it looks", async () => {
    const { handle, provider, clock, store } = await openRunning();
    const before = clock.now();
    const answerLate = store.holdAnswer("getInstanceStatus");
    const result = handle.result();
    await clock.advance(0);
    await wakeAndCommit(provider, "i", completing("done"));
    answerLate();
    expect(await result).toBe("done");
    expect(clock.now()).toBe(before);
  });

  test("holds one timer and one watch, and none when it is over", async () => {
    const { handle, provider, clock, store } = await openRunning();
    const { signal } = new AbortController();
    const result = handle.result({ timeoutMs: HOUR_MS, signal });
    await clock.advance(60_000);
    expect([clock.pendingTimers, store.watches, getEventListeners(signal, "abort").length]).toEqual([1, 1, 1]);

    await wakeAndCommit(provider, "i", completing("done"));
    await result;
    await clock.advance(0);
    expect([clock.pendingTimers, store.watches, getEventListeners(signal, "abort").length]).toEqual([0, 0, 0]);
  });
});

describe("a wait for what the client has just started", () => {
  async function openStarted(options: Parameters<typeof openClient>[0] = {}) {
    const opened = openClient(options);
    const handle = await opened.client.start("Test", { instanceId: "i" });
    return { ...opened, handle };
  }

  test("asks the store nothing where the end is told soon", async () => {
    const { handle, provider, store, clock } = await openStarted();
    const result = handle.result();
    await clock.advance(249);
    await commitTurn(provider, completing("done"));

    expect(await result).toBe("done");
    expect(store.reads).toBe(0);
    expect([clock.pendingTimers, store.watches]).toEqual([0, 0]);
  });

  test("looks after a moment, in case the wake was lost", async () => {
    const { handle, provider, store, clock } = await openStarted();
    store.dropWakes = true;
    const result = watched(handle.result());
    await clock.advance(0);
    await commitTurn(provider, completing("done"));
    await clock.advance(249);
    expect([result.isSettled, store.reads]).toEqual([false, 0]);
    await clock.advance(1);
    expect(await result.promise).toBe("done");
  });

  test("looks at once where a failure is told: that is all that is told of it", async () => {
    const { handle, provider, store, clock } = await openStarted();
    const result = watched(handle.result());
    await clock.advance(0);
    await commitTurn(provider, failing(orchestrationFailed("no")));
    await clock.advance(0);
    expect(store.calls.get("getInstanceStatus")).toBe(1);
    await expect(result.promise).rejects.toBeInstanceOf(OrchestrationFailedError);
  });

  test("looks at once where anything was told since, of whichever instance", async () => {
    const { client, handle, provider, store } = await openStarted();
    await commitTurn(provider, completing("done"));
    expect(await handle.result()).toBe("done");

    const other = await client.start("Test", { instanceId: "other" });
    await client.start("Test", { instanceId: "third" });
    store.calls.clear();
    const controller = new AbortController();
    const result = other.result({ signal: controller.signal });
    expect(store.calls.get("getInstanceStatus")).toBe(1);
    controller.abort();
    await expect(result).rejects.toMatchObject({ code: "DUROXIDE_ABORTED" });
  });

  test("looks at once where time has passed since: what others did is told to those who wait", async () => {
    const { handle, store, clock } = await openStarted();
    await clock.advance(10);
    const result = watched(handle.result({ timeoutMs: 1 }));
    expect(store.calls.get("getInstanceStatus")).toBe(1);
    await clock.advance(1);
    await expect(result.promise).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
  });

  test("looks at once where the instance was there before", async () => {
    const { client, provider } = await openStarted();
    await commitTurn(provider, completing("done"));
    const handle = await client.start("Test", { instanceId: "i" });
    expect(await handle.result()).toBe("done");
  });

  test("looks at once where nobody can wake it, or counts what is told", async () => {
    const { handle, store, clock } = await openStarted({ canWake: false });
    await expect(clock.run(handle.result({ timeoutMs: 3 }))).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
    expect(store.calls.get("getInstanceStatus")).toBe(2); // At once, and when the time was up.
  });

  for (const timeoutMs of [0, 100]) {
    test(`looks before it gives up after ${timeoutMs} ms, and says where the instance stood`, async () => {
      const { handle, store, clock } = await openStarted();
      const result = clock.run(handle.result({ timeoutMs }));
      await expect(result).rejects.toThrow(`Waited ${timeoutMs} ms in vain for the end of instance 'i'. It is pending`);
      expect(store.calls.get("getInstanceStatus")).toBe(1);
      expect([clock.pendingTimers, store.watches]).toEqual([0, 0]);
    });
  }

  test("can be given up, and leaves nothing behind", async () => {
    const { handle, store, clock } = await openStarted();
    const controller = new AbortController();
    const result = handle.result({ signal: controller.signal });
    await clock.advance(100);
    controller.abort();
    await expect(result).rejects.toMatchObject({ code: "DUROXIDE_ABORTED" });
    expect([store.reads, clock.pendingTimers, store.watches]).toEqual([0, 0, 0]);
  });
});

describe("a wait on a store that cannot wake it", () => {
  test("looks after 5, 10, 20, 40, 80 and from then on every 100 ms", async () => {
    const { handle, clock, store } = await openRunning({ canWake: false });
    watched(handle.result());
    const looks: number[] = [];
    const before = clock.now();
    for (let seen = 0; clock.now() - before < 500; ) {
      await clock.advance(looks.length === 0 ? 0 : 1);
      for (; seen < store.reads; seen += 1) looks.push(clock.now() - before);
    }
    expect(looks).toEqual([0, 5, 15, 35, 75, 155, 255, 355, 455]);
  });

  test("sees the end at the next look", async () => {
    const { handle, provider, clock } = await openRunning({ canWake: false });
    const result = watched(handle.result());
    await clock.advance(60_000);
    await wakeAndCommit(provider, "i", completing("done"));
    await clock.advance(100);
    expect(result.isSettled).toBe(true);
    expect(await result.promise).toBe("done");
    expect(clock.pendingTimers).toBe(0);
  });

  test("pauses no longer than pollIntervalMs", async () => {
    const { handle, clock, store } = await openRunning({ canWake: false, pollIntervalMs: 2 });
    watched(handle.result());
    await clock.advance(20);
    expect(store.reads).toBe(11);
  });
});

describe("a wait with a deadline", () => {
  for (const canWake of [true, false]) {
    const where = canWake ? "woken" : "polling";

    test(`times out at that time, and not before (${where})`, async () => {
      const { handle, clock, store } = await openRunning({ canWake });
      const result = watched(handle.result({ timeoutMs: 7_777 }));
      await clock.advance(7_776);
      expect(result.isSettled).toBe(false);
      await clock.advance(1);
      expect(result.isSettled).toBe(true);
      await expect(result.promise).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
      await expect(result.promise).rejects.toThrow("Waited 7777 ms in vain for the end of instance 'i'");
      expect([clock.pendingTimers, store.watches]).toEqual([0, 0]);
    });

    test(`looks once more when the time is up (${where})`, async () => {
      const { handle, clock, store, provider } = await openRunning({ canWake });
      const result = watched(handle.result({ timeoutMs: 3_050 }));
      await clock.advance(3_049);
      store.dropWakes = true;
      await wakeAndCommit(provider, "i", completing("just in time"));
      await clock.advance(1);
      expect(result.isSettled).toBe(true);
      expect(await result.promise).toBe("just in time");
    });

    test(`of zero looks once (${where})`, async () => {
      const { handle, provider, clock, store } = await openRunning({ canWake });
      await expect(handle.result({ timeoutMs: 0 })).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
      expect(store.reads).toBe(1);
      await wakeAndCommit(provider, "i", completing("done"));
      expect(await handle.result({ timeoutMs: 0 })).toBe("done");
      expect([clock.pendingTimers, store.watches]).toEqual([0, 0]);
    });
  }

  test("times out for an instance that nobody has started", async () => {
    const { client, clock } = openClient();
    const result = clock.run(client.getHandle("nobody").result({ timeoutMs: 10_000 }));
    await expect(result).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
  });

  test("says where the instance stood: unknown, pending, running", async () => {
    const { client, clock, provider } = openClient();
    const said = (): Promise<string> =>
      clock.run(client.getHandle("i").result({ timeoutMs: 100 })).then(String, (error: Error) => error.message);

    expect(await said()).toContain("instance 'i'. It does not exist in this store: check the id, and that client and");
    await client.start("Test", { instanceId: "i" });
    expect(await said()).toContain(
      "It is pending: no runtime has taken it yet. Is one running that has registered 'Test'?",
    );
    await commitTurn(provider, { events: [STARTED] });
    expect(await said()).toContain("It is running. Wait again");
    const change = clock.run(client.waitForStatusChange("i", { timeoutMs: 100 }));
    await expect(change).rejects.toThrow("newer than version 0. It is running.");
  });

  test("lets the look in progress answer", async () => {
    const { handle, provider, clock, store } = await openRunning();
    await wakeAndCommit(provider, "i", completing("slow but sure"));
    const release = store.holdNext("getInstanceStatus");
    const result = watched(handle.result({ timeoutMs: 10 }));
    await clock.advance(1_000);
    expect(result.isSettled).toBe(false);
    release();
    expect(await result.promise).toBe("slow but sure");
  });

  test("leaves the instance alone: it can be waited for again", async () => {
    const { handle, provider, clock } = await openRunning();
    await expect(clock.run(handle.result({ timeoutMs: 100 }))).rejects.toMatchObject({ code: "DUROXIDE_TIMEOUT" });
    await wakeAndCommit(provider, "i", completing("done"));
    expect(await handle.result()).toBe("done");
  });

  for (const timeoutMs of [-1, Number.NaN, "5s" as unknown as number]) {
    test(`is refused where it is none: ${timeoutMs}`, async () => {
      const { handle, store } = await openRunning();
      await expect(handle.result({ timeoutMs })).rejects.toMatchObject({ code: "DUROXIDE_INVALID_OPTIONS" });
      await expect(handle.result({ timeoutMs })).rejects.toThrow(
        /^handle\.result: option 'timeoutMs' must be .*, not /,
      );
      await expect(handle.waitForKv("a", { timeoutMs })).rejects.toThrow(/^handle\.waitForKv: option 'timeoutMs'/);
      expect(store.reads).toBe(0);
    });
  }

  test("of Infinity waits for ever, as without one", async () => {
    const { handle, clock, provider } = await openRunning();
    const result = watched(handle.result({ timeoutMs: Number.POSITIVE_INFINITY }));
    await clock.advance(HOUR_MS);
    expect(result.isSettled).toBe(false);
    await wakeAndCommit(provider, "i", completing("done"));
    expect(await result.promise).toBe("done");
  });
});

describe("a wait that its caller gives up", () => {
  const reason = new Error("the user went home");

  for (const canWake of [true, false]) {
    test(`rejects at once and leaves nothing behind (${canWake ? "woken" : "polling"})`, async () => {
      const { handle, clock, store } = await openRunning({ canWake });
      const giveUp = new AbortController();
      const result = watched(handle.result({ signal: giveUp.signal, timeoutMs: HOUR_MS }));
      await clock.advance(1_234);

      giveUp.abort(reason);

      await expect(result.promise).rejects.toMatchObject({ code: "DUROXIDE_ABORTED", cause: reason });
      expect(clock.pendingTimers).toBe(0);
      expect(store.watches).toBe(0);
      expect(getEventListeners(giveUp.signal, "abort")).toEqual([]);
    });
  }

  test("asks the store nothing if it was given up before it began", async () => {
    const { handle, clock, store } = await openRunning();
    const result = handle.result({ signal: AbortSignal.abort(reason) });
    await expect(result).rejects.toMatchObject({ code: "DUROXIDE_ABORTED", cause: reason });
    expect([store.reads, store.watches, clock.pendingTimers]).toEqual([0, 0, 0]);
  });

  test("does not wait for a look that hangs, nor is hurt when that fails later", async () => {
    const { handle, clock, store } = await openRunning();
    const release = store.holdNext("getInstanceStatus");
    store.failNext("getInstanceStatus", new ProviderError("invalid", "getInstanceStatus", "closed"));
    const giveUp = new AbortController();
    const result = handle.result({ signal: giveUp.signal });
    const outcome = expect(result).rejects.toMatchObject({ code: "DUROXIDE_ABORTED" });
    await clock.advance(0);
    giveUp.abort(reason);
    await outcome;

    release();
    await clock.advance(0);
    expect([clock.pendingTimers, store.watches]).toEqual([0, 0]);
    expect(getEventListeners(giveUp.signal, "abort")).toEqual([]);
  });

  test("does not touch the waits of others", async () => {
    const { handle, provider } = await openRunning();
    const giveUp = new AbortController();
    const [given, kept] = [handle.result({ signal: giveUp.signal }), handle.result()];
    giveUp.abort(reason);
    await expect(given).rejects.toMatchObject({ code: "DUROXIDE_ABORTED" });
    await wakeAndCommit(provider, "i", completing("done"));
    expect(await kept).toBe("done");
  });
});

describe("a store that fails during a wait", () => {
  for (const canWake of [true, false]) {
    test(`for a moment is asked again (${canWake ? "woken" : "polling"})`, async () => {
      const { handle, provider, clock, store } = await openRunning({ canWake });
      await wakeAndCommit(provider, "i", completing("done"));
      store.failNext("getInstanceStatus", transient(), transient(), transient());
      const before = clock.now();
      expect(await clock.run(handle.result())).toBe("done");
      expect(clock.now() - before).toBe(50 + 100 + 200);
      expect(clock.pendingTimers).toBe(0);
    });
  }

  test("for a moment while the details of a failure are read is asked again", async () => {
    const { handle, provider, clock, store } = await openRunning();
    await wakeAndCommit(provider, "i", failing(orchestrationFailed("no stock")));
    store.failNext("readWithExecution", transient());
    await expect(clock.run(handle.result())).rejects.toMatchObject({ message: "no stock" });
  });

  test("until the deadline is the cause of the timeout", async () => {
    const { handle, clock, store } = await openRunning();
    const errors = Array.from({ length: 50 }, transient);
    store.failNext("getInstanceStatus", ...errors);
    await expect(clock.run(handle.result({ timeoutMs: 1_000 }))).rejects.toMatchObject({
      code: "DUROXIDE_TIMEOUT",
      cause: { kind: "transient" },
    });
  });

  test("for good ends the wait at once", async () => {
    const { handle, clock, store } = await openRunning();
    store.failNext("getInstanceStatus", new ProviderError("invalid", "getInstanceStatus", "no such table"));
    await expect(handle.result()).rejects.toMatchObject({ code: "DUROXIDE_PROVIDER", kind: "invalid" });
    expect([store.reads, clock.pendingTimers, store.watches]).toEqual([1, 0, 0]);
  });
});

describe("many waits at once", () => {
  test("are each woken by their own instance, and leave nothing behind", async () => {
    const { client, provider, clock, store } = openClient();
    const ids = Array.from({ length: 50 }, (_, place) => `i-${place}`);
    const results = ids.map((id) => client.getHandle<string>(id).result());
    await clock.advance(0);
    expect(store.watches).toBe(50);

    for (const id of ids) {
      await client.start("Test", { instanceId: id });
      await commitTurn(provider, { ...completing(id), events: [STARTED] });
    }

    expect(await Promise.all(results)).toEqual(ids);
    await clock.advance(0);
    expect([clock.pendingTimers, store.watches]).toEqual([0, 0]);
  });
});
