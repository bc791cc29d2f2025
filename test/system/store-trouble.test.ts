// A store in trouble never fails an orchestration that could have gone on: what is broken is told, what is full or locked is
// waited for, and everybody else goes on.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import type { OrchestrationHandle } from "../../src/client/handle.js";
import type { Clock } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { ProviderError } from "../../src/errors.js";
import { checkHistory } from "../../src/history/valid-history.js";
import type { Fact, FactType } from "../../src/observer.js";
import type { SqliteOptions } from "../../src/providers/sqlite/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import type { RuntimeOptions } from "../../src/runtime/options.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { ChildProgram } from "../providers/sqlite-child.js";
import { openConnection } from "../providers/sqlite-connection.js";

const QUARTER_HOUR_MS = 900_000;
const STEPS = 5;
const CHAINS = 20;
const PAYLOAD_CHARS = 20_000;
const LETTERS = 80_000;
const MiB = 1_048_576;

/** How many chains are still to come to their third step, and what keeps them there. */
let held: { chains: number; readonly until: Promise<unknown> } = { chains: 0, until: Promise.resolve() };

const produce = activity("Produce", async (ctx, { chain, step }: { chain: number; step: number }) => {
  if (step === 2) {
    held.chains -= 1;
    ctx.trace.info("at the third step");
    await held.until;
  }
  return `${chain}/${step} `.padEnd(PAYLOAD_CHARS, ".");
});

/** Every step adds a page or more to the store. */
const chain = orchestration("Chain", async (ctx, number: number) => {
  const marks: string[] = [];
  for (let step = 0; step < STEPS; step += 1) {
    marks.push((await ctx.scheduleActivity(produce, { chain: number, step })).split(" ")[0]!);
  }
  return marks;
});
const marksOf = (number: number): string[] => Array.from({ length: STEPS }, (_, step) => `${number}/${step}`);

const length = activity("Length", async (_ctx, text: string) => text.length);

/** Runs to its wait; what the event brings is small, and what it then asks for is large. */
const twoSteps = orchestration("TwoSteps", async (ctx) => {
  ctx.setCustomStatus("waiting");
  const letters = await ctx.waitForEvent<number>("go");
  return ctx.scheduleActivity(length, "x".repeat(letters));
});

describe("a history that cannot be read", () => {
  test("is tried again and again, then fails its instance and no other", async () => {
    const shop = new Shop();
    await shop.waitingInstances("sick", "healthy");
    await shop.spoil("sick");
    const { client, runtime } = await shop.open();

    await client.raiseEvent("sick", "go", 1);
    await client.raiseEvent("healthy", "go", 2);
    expect(await shop.settled(client.getHandle("healthy").result())).toBe(2);
    expect(await client.getStatus("sick")).toMatchObject({ status: "Running" });
    const sick = await shop.settled(client.waitForOrchestration("sick"));

    const text = /poison: orchestration sick history deserialization failed after 11 attempts \(max 10\): .*not JSON/;
    expect(sick).toMatchObject({ status: "Failed", error: expect.stringMatching(text) });
    expect(shop.factsOf("turn-abandoned").map(({ instanceId, why }) => `${instanceId}: ${why}`)).toEqual(
      Array(10).fill("sick: corrupt-history"),
    );
    expect(shop.factsOf("orchestration-poisoned")).toEqual([
      expect.objectContaining({
        instanceId: "sick",
        details: expect.objectContaining({
          category: "poison",
          attemptCount: 11,
          messageType: expect.objectContaining({ type: "FailedDeserialization", instance: "sick", executionId: 1 }),
        }),
      }),
    ]);
    expect(await shop.settled(runtime.shutdown())).toBe("drained");
  });

  test("that is repaired in time has harmed nobody", async () => {
    const shop = new Shop();
    await shop.waitingInstances("sick");
    const repair = await shop.spoil("sick");
    const { client } = await shop.open();
    await client.raiseEvent("sick", "go", 1);
    await shop.clock.advance(5_000);
    expect(shop.factsOf("turn-abandoned").length).toBeGreaterThan(0);
    repair();

    expect(await shop.settled(client.getHandle("sick").result())).toBe(1);
    checkHistory(await client.readHistory("sick"));
  });
});

describe("a full disk", () => {
  const fewSlots = { orchestrationConcurrency: 2, workerConcurrency: 2 };

  /** Longer than all attempts together take. */
  const pass = (shop: Shop): Promise<void> => shop.clock.advance(QUARTER_HOUR_MS);

  async function expectPaused(shop: Shop, handles: readonly OrchestrationHandle[], operation: string): Promise<void> {
    const stands = (await Promise.all(handles.map((handle) => handle.status()))).map(({ status }) => status);
    expect(stands.filter((status) => status === "Failed")).toEqual([]);
    expect(stands.filter((status) => status !== "Completed").length).toBeGreaterThan(0);
    expect(shop.failedCalls(operation).length).toBeGreaterThan(20);
    expect(shop.storeErrors()).toEqual([expect.stringMatching(/^disk full: .* cannot grow\. Free space or raise/)]);
  }

  test("pauses activities whose results do not fit, for as long as it takes, and loses nothing", async () => {
    const shop = new Shop();
    const limited = await shop.open({ maxDatabaseBytes: MiB }, fewSlots);
    const handles: OrchestrationHandle<string[]>[] = [];
    for (let number = 0; number < CHAINS; number += 1) {
      handles.push(await limited.client.start(chain, { instanceId: `chain-${number}`, input: number }));
    }
    await pass(shop);
    await expectPaused(shop, handles, "ack_work_item");
    await shop.close(limited);

    const { client } = await shop.open();
    const results = handles.map(({ instanceId }) => shop.settled(client.getHandle(chain, instanceId).result()));
    expect(await Promise.all(results)).toEqual(handles.map((_, number) => marksOf(number)));
    for (const { instanceId } of handles) checkHistory(await client.readHistory(instanceId));
  });

  test("pauses orchestrations whose turns do not fit, for as long as it takes, and loses nothing", async () => {
    const shop = new Shop();
    const ids = Array.from({ length: CHAINS }, (_, number) => `two-${number}`);
    await shop.waitingInstances(...ids);
    const limited = await shop.open({ maxDatabaseBytes: MiB }, fewSlots);
    for (const id of ids) await limited.client.raiseEvent(id, "go", LETTERS);
    await pass(shop);
    await expectPaused(
      shop,
      ids.map((id) => limited.client.getHandle(id)),
      "ack_orchestration_item",
    );
    await shop.close(limited);

    const { client } = await shop.open();
    const results = ids.map((id) => shop.settled(client.getHandle(id).result()));
    expect(await Promise.all(results)).toEqual(ids.map(() => LETTERS));
    for (const id of ids) checkHistory(await client.readHistory(id));
  });

  test("refuses what is new, and the client is told that nothing was written", async () => {
    const shop = new Shop();
    const { client } = await shop.open({ maxDatabaseBytes: MiB });
    const tooLarge = { instanceId: "large", input: "x".repeat(2 * MiB) };

    await expect(client.start("Chain", tooLarge)).rejects.toMatchObject({
      name: "ProviderError",
      kind: "transient",
      message: expect.stringMatching(/^enqueueForOrchestrator: disk full: .* cannot grow\. Free space or raise/),
    });
    expect(await client.getStatus("large")).toEqual({ status: "NotFound" });
    const small = await client.start(chain, { input: 1 });
    expect(await shop.settled(small.result())).toEqual(marksOf(1));
  });
});

describe("a file that another process keeps locked", () => {
  test("is waited for: everything is finished afterwards, and nothing has failed", async () => {
    const shop = new Shop(null);
    const locks = { orchestratorLockTimeoutMs: 1_000, orchestratorLockRenewalBufferMs: 500 };
    const { client } = await shop.open({ busyTimeoutMs: 100 }, locks);
    const isLocked = new AbortController();
    held = { chains: CHAINS, until: new Promise((resolve) => isLocked.signal.addEventListener("abort", resolve)) };
    const handles: OrchestrationHandle<string[]>[] = [];
    for (let number = 0; number < CHAINS; number += 1) {
      handles.push(await client.start(chain, { instanceId: `chain-${number}`, input: number }));
    }
    const results = Promise.all(handles.map((handle) => handle.result()));
    await shop.until(() => held.chains === 0);

    const holder = new ChildProgram("lock", shop.file);
    expect(await holder.line()).toBe("locked");
    isLocked.abort();
    await expect(client.start(chain, { input: 0 })).rejects.toMatchObject({ name: "ProviderError", kind: "transient" });
    await shop.until(() => shop.failedCalls("ack_work_item").length >= 4 * CHAINS);
    holder.send("let go");
    expect(await holder.line()).toBe("released");

    expect(await results).toEqual(handles.map((_, number) => marksOf(number)));
    for (const { instanceId } of handles) checkHistory(await client.readHistory(instanceId));
    expect(shop.storeErrors()).toEqual([
      expect.stringMatching(/is locked by another process and was not free within 100 ms/),
    ]);
    expect(shop.factsOf("orchestration-poisoned")).toEqual([]);
    expect(shop.factsOf("activity-poisoned")).toEqual([]);
  }, 60_000);
});

interface Opened {
  readonly provider: SqliteProvider;
  readonly client: Client;
  readonly runtime: Runtime;
}

/** A store on a file, and who works on it: in virtual time, or, where other processes take part, in real time. */
class Shop {
  readonly file: string;
  readonly facts: Fact[] = [];
  readonly #clock: VirtualClock | null;
  readonly #waiters = new Set<() => void>();
  readonly #opened = new Set<Opened>();

  constructor(clock: VirtualClock | null = new VirtualClock()) {
    this.#clock = clock;
    const folder = mkdtempSync(join(tmpdir(), "duroxide-trouble-"));
    this.file = join(folder, "shop.db");
    onTestFinished(async () => {
      for (const opened of this.#opened) await this.close(opened);
      rmSync(folder, { recursive: true, force: true });
    });
  }

  get clock(): VirtualClock {
    return this.#clock!;
  }

  async open(sqlite: SqliteOptions = {}, options: RuntimeOptions = {}): Promise<Opened> {
    const time: { clock?: Clock } = this.#clock === null ? {} : { clock: this.#clock };
    const provider = await SqliteProvider.open(this.file, { durability: "process-crash", ...time, ...sqlite });
    const runtime = await Runtime.start({
      provider,
      orchestrations: [chain, twoSteps],
      activities: [produce, length],
      observers: [(fact) => this.#note(fact)],
      ...time,
      ...options,
    });
    const opened = { provider, client: new Client(provider, time), runtime };
    this.#opened.add(opened);
    return opened;
  }

  async close(opened: Opened): Promise<void> {
    this.#opened.delete(opened);
    await this.settled(opened.runtime.shutdown({ graceMs: 0 }));
    await opened.provider.close();
  }

  settled<T>(promise: Promise<T>): Promise<T> {
    return this.#clock === null ? promise : this.#clock.run(promise);
  }

  /** Instances that wait for their event, and are in nobody's memory. */
  async waitingInstances(...instanceIds: readonly string[]): Promise<void> {
    const opened = await this.open();
    for (const instanceId of instanceIds) {
      const handle = await opened.client.start(twoSteps, { instanceId });
      await this.settled(handle.waitForStatusChange());
    }
    await this.close(opened);
    this.facts.length = 0;
  }

  /** Makes the second event of the instance unreadable. Returns the way to repair it. */
  async spoil(instanceId: string): Promise<() => void> {
    const connection = await openConnection(this.file);
    onTestFinished(() => connection.close());
    const where = "WHERE instance_id = ? AND event_id = 2";
    const { event_data } = connection.prepare(`SELECT event_data FROM duroxide_history ${where}`).get(instanceId) as {
      event_data: string;
    };
    const write = connection.prepare(`UPDATE duroxide_history SET event_data = ? ${where}`);
    write.run(event_data.slice(0, -10), instanceId);
    return () => void write.run(event_data, instanceId);
  }

  factsOf<T extends FactType>(type: T): Extract<Fact, { type: T }>[] {
    return this.facts.filter((fact): fact is Extract<Fact, { type: T }> => fact.type === type);
  }

  /** What the store said when it failed, each text once; a lost lock is nobody's trouble. */
  storeErrors(): string[] {
    const texts = this.failedCalls().map(({ message }) => message.replace(/^\w+: /, ""));
    return [...new Set(texts)];
  }

  failedCalls(operation?: string): ProviderError[] {
    return this.factsOf("provider-call")
      .filter((call) => operation === undefined || call.operation === operation)
      .flatMap(({ error }) => (error instanceof ProviderError && error.kind !== "lock-lost" ? [error] : []));
  }

  /** Resolves when it is true: looked at after every fact. */
  until(isTrue: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!isTrue()) return;
        this.#waiters.delete(look);
        resolve();
      };
      this.#waiters.add(look);
      look();
    });
  }

  #note(fact: Fact): void {
    this.facts.push(fact);
    for (const waiter of this.#waiters) waiter();
  }
}
