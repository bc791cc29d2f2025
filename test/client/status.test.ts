import { describe, expect, expectTypeOf, test } from "vitest";
import type { OrchestrationStatus } from "../../src/client/status.js";
import { ProviderError } from "../../src/errors.js";
import { cancelled, type ErrorDetails, orchestrationFailed } from "../../src/history/error-details.js";
import { commitTurn, completing, continuing, failing, openClient, STARTED, wakeAndCommit } from "./driver.js";

async function openRunning() {
  const opened = openClient();
  const handle = await opened.client.start("Test", { instanceId: "i" });
  await commitTurn(opened.provider, { events: [STARTED] });
  return { ...opened, handle };
}

const facts = {
  orchestrationName: "Test",
  orchestrationVersion: "1.0.0",
  executionId: 1,
  customStatus: null,
  customStatusVersion: 0,
};

describe("the status of an instance", () => {
  test("is NotFound for one that nobody has started", async () => {
    const { client } = openClient();
    expect(await client.getStatus("nobody")).toEqual({ status: "NotFound" });
  });

  test("is NotFound for one that was only sent a message", async () => {
    const { client } = openClient();
    await client.raiseEvent("nobody", "hello");
    expect(await client.getStatus("nobody")).toEqual({ status: "NotFound" });
  });

  test("is Pending from the start to the first turn", async () => {
    const { client } = openClient();
    await client.start("Test", { instanceId: "i", version: "1.0.0" });
    expect(await client.getStatus("i")).toEqual({ status: "Pending", ...facts });
  });

  test("is Running from the first turn on", async () => {
    const { client } = await openRunning();
    expect(await client.getStatus("i")).toEqual({ status: "Running", ...facts });
  });

  test("is Running between two executions and in the next one", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", continuing("i", "2"));
    expect(await client.getStatus("i")).toEqual({ status: "Running", ...facts });

    await commitTurn(provider, { executionId: 2, events: [STARTED] });
    expect(await client.getStatus("i")).toEqual({ status: "Running", ...facts, executionId: 2 });
  });

  test("is Completed with the decoded output", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", completing({ total: 7 }));
    expect(await client.getStatus("i")).toEqual({ status: "Completed", ...facts, output: { total: 7 } });
  });

  test("gives an output that is no JSON, as other runtimes write it, as the text it is", async () => {
    const { client, provider } = await openRunning();
    const output = "plain text";
    const events = [{ type: "OrchestrationCompleted", output } as const];
    await wakeAndCommit(provider, "i", { events, metadata: { status: "Completed", output } });
    expect(await client.getStatus("i")).toMatchObject({ status: "Completed", output: "plain text" });
  });

  test("carries the custom status, also after the end", async () => {
    const { client, provider, handle } = await openRunning();
    await wakeAndCommit(provider, "i", { events: [{ type: "CustomStatusUpdated", status: "half way" }] });
    expect(await client.getStatus("i")).toMatchObject({ customStatus: "half way", customStatusVersion: 1 });

    await wakeAndCommit(provider, "i", completing(null));
    expect(await handle.status()).toMatchObject({
      status: "Completed",
      customStatus: "half way",
      customStatusVersion: 1,
    });
  });

  test("never costs a history, except for a failure", async () => {
    const { client, store, provider } = await openRunning();
    await client.getStatus("i");
    await wakeAndCommit(provider, "i", completing(null));
    await client.getStatus("i");

    expect(store.calls.get("getInstanceStatus")).toBe(2);
    expect(store.reads).toBe(2);
  });

  test("is a union that narrows by its status", () => {
    const read = (status: OrchestrationStatus) => {
      if (status.status === "NotFound") return;
      expectTypeOf(status.customStatusVersion).toEqualTypeOf<number>();
      if (status.status === "Failed") expectTypeOf(status.details).toEqualTypeOf<ErrorDetails>();
      if (status.status === "Completed") expectTypeOf(status.output).toEqualTypeOf<unknown>();
      // @ts-expect-error only a completed instance has an output
      if (status.status === "Running") status.output;
    };
    expect(read).toBeTypeOf("function");
  });
});

describe("the status of a failed instance", () => {
  test("has the recorded details and the text of them", async () => {
    const { client, provider } = await openRunning();
    const details = orchestrationFailed("no stock");
    await wakeAndCommit(provider, "i", failing(details));
    expect(await client.getStatus("i")).toEqual({ status: "Failed", ...facts, details, error: "no stock" });
  });

  test("tells a cancellation by its kind", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", failing(cancelled("changed my mind")));
    expect(await client.getStatus("i")).toMatchObject({
      details: { category: "application", kind: { type: "Cancelled", reason: "changed my mind" } },
      error: "canceled: changed my mind",
    });
  });

  test("has the details of the execution that failed", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", continuing("i", "2"));
    await commitTurn(provider, { executionId: 2, events: [STARTED] });
    await wakeAndCommit(provider, "i", failing(orchestrationFailed("second time")));
    expect(await client.getStatus("i")).toMatchObject({ executionId: 2, error: "second time" });
  });

  const unreadable: ErrorDetails = {
    category: "infrastructure",
    operation: "read_history",
    message: "no stock",
    retryable: false,
  };

  test("blames the infrastructure where the history is corrupt, and keeps the text of the metadata", async () => {
    const { client, provider, store } = await openRunning();
    await wakeAndCommit(provider, "i", failing(orchestrationFailed("no stock")));
    store.failNext("readWithExecution", new ProviderError("corrupt", "readWithExecution", "event 2 is no JSON"));
    expect(await client.getStatus("i")).toMatchObject({ status: "Failed", details: unreadable });
  });

  test("does so too where the failure was never recorded as an event", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", { metadata: { status: "Failed", output: "no stock" } });
    expect(await client.getStatus("i")).toMatchObject({ status: "Failed", details: unreadable });
  });

  test("rejects where the store cannot be read just now", async () => {
    const { client, provider, store } = await openRunning();
    await wakeAndCommit(provider, "i", failing(orchestrationFailed("no stock")));
    store.failNext("readWithExecution", new ProviderError("transient", "readWithExecution", "busy"));
    await expect(client.getStatus("i")).rejects.toMatchObject({ code: "DUROXIDE_PROVIDER", kind: "transient" });
  });
});

describe("a wait for a change of the status", () => {
  test("resolves at once where the status is newer than the one last seen", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", { events: [{ type: "CustomStatusUpdated", status: "one" }] });
    expect(await client.waitForStatusChange("i")).toMatchObject({ status: "Running", customStatus: "one" });
  });

  test("is woken by the next change, not by turns that change nothing", async () => {
    const { client, clock, provider } = await openRunning();
    await wakeAndCommit(provider, "i", { events: [{ type: "CustomStatusUpdated", status: "one" }] });
    const waiting = client.waitForStatusChange("i", { lastSeenVersion: 1 });
    let isSettled = false;
    void waiting.finally(() => {
      isSettled = true;
    });

    await wakeAndCommit(provider, "i");
    await clock.advance(0);
    expect(isSettled).toBe(false);

    await wakeAndCommit(provider, "i", { events: [{ type: "CustomStatusUpdated", status: "two" }] });
    expect(await waiting).toMatchObject({ customStatus: "two", customStatusVersion: 2 });
  });

  test("counts a status that is cleared as a change", async () => {
    const { handle, provider } = await openRunning();
    await wakeAndCommit(provider, "i", { events: [{ type: "CustomStatusUpdated", status: "one" }] });
    const waiting = handle.waitForStatusChange({ lastSeenVersion: 1 });
    await wakeAndCommit(provider, "i", { events: [{ type: "CustomStatusUpdated", status: null }] });
    expect(await waiting).toMatchObject({ customStatus: null, customStatusVersion: 2 });
  });

  test("resolves when the instance ends, changed or not", async () => {
    const { client, provider } = await openRunning();
    const waiting = client.waitForStatusChange("i", { lastSeenVersion: 0 });
    await wakeAndCommit(provider, "i", completing("done"));
    expect(await waiting).toMatchObject({ status: "Completed", output: "done", customStatusVersion: 0 });
  });

  test("waits for an instance that nobody has started yet", async () => {
    const { client, provider } = openClient();
    const waiting = client.waitForStatusChange("i");
    await client.start("Test", { instanceId: "i" });
    await commitTurn(provider, { events: [STARTED, { type: "CustomStatusUpdated", status: "hello" }] });
    expect(await waiting).toMatchObject({ customStatus: "hello" });
  });

  test("times out, and refuses a version that is none", async () => {
    const { client, clock } = await openRunning();
    await expect(clock.run(client.waitForStatusChange("i", { timeoutMs: 50 }))).rejects.toMatchObject({
      code: "DUROXIDE_TIMEOUT",
    });
    await expect(client.waitForStatusChange("i", { lastSeenVersion: -1 })).rejects.toMatchObject({
      code: "DUROXIDE_INVALID_OPTIONS",
    });
  });
});

describe("the history of an instance", () => {
  test("is read by execution, by default the latest", async () => {
    const { client, provider } = await openRunning();
    await wakeAndCommit(provider, "i", continuing("i", "2"));
    await commitTurn(provider, { executionId: 2, events: [STARTED] });

    expect((await client.readHistory("i")).map((event) => event.type)).toEqual(["OrchestrationStarted"]);
    expect((await client.readHistory("i", 1)).map((event) => event.type)).toEqual([
      "OrchestrationStarted",
      "OrchestrationContinuedAsNew",
    ]);
  });

  test("is empty where there is none", async () => {
    const { client } = openClient();
    expect(await client.readHistory("nobody")).toEqual([]);
    expect(await client.readHistory("nobody", 3)).toEqual([]);
  });
});
