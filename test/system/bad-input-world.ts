// test/system/bad-input-world.ts — a store in virtual time, with a client and a runtime, and how refusals are looked at.

import { expect, onTestFinished } from "vitest";
import { Client } from "../../src/client/client.js";
import type { Clock } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { DuroxideError, type ErrorCode } from "../../src/errors.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { Runtime, type RuntimeStart } from "../../src/runtime/runtime.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

export type OpenStore = (clock: Clock) => Promise<Provider>;

export const STORES: readonly (readonly [name: string, open: OpenStore])[] = [
  ["memory", async (clock) => new MemoryProvider({ clock })],
  ["SQLite", (clock) => SqliteProvider.open(":memory:", { clock })],
];

export const echo = activity("Echo", async (_ctx, value: unknown) => value);
const control = orchestration("Control", async (ctx, word: string) => ctx.scheduleActivity(echo, word));

export class World {
  readonly clock: VirtualClock;
  readonly provider: Provider;
  readonly client: Client;

  static async open(open: OpenStore): Promise<World> {
    const clock = new VirtualClock();
    const world = new World(clock, await open(clock));
    onTestFinished(() => world.provider[Symbol.asyncDispose]());
    return world;
  }

  private constructor(clock: VirtualClock, provider: Provider) {
    this.clock = clock;
    this.provider = provider;
    this.client = new Client(provider, { clock });
  }

  /** A runtime that knows the control orchestration and what else is given. */
  async run(given: Partial<RuntimeStart> = {}): Promise<Runtime> {
    const { orchestrations = [], activities = [], ...options } = given;
    const runtime = await Runtime.start({
      provider: this.provider,
      clock: this.clock,
      longPollTimeoutMs: 3_600_000,
      orchestrations: [control, ...orchestrations],
      activities: [echo, ...activities],
      ...options,
    });
    onTestFinished(async () => void (await this.clock.run(runtime.shutdown({ graceMs: 0 }))));
    return runtime;
  }

  /** Lets time pass until the promise settles. */
  settled<T>(promise: PromiseLike<T>): Promise<T> {
    return this.clock.run(promise);
  }

  /** No message waits for anybody. */
  async expectNothingWritten(): Promise<void> {
    expect(await this.provider.fetchOrchestrationItem({ lockTimeoutMs: 1 })).toBeNull();
  }

  /** Whatever was refused before, work goes on. */
  async expectAlive(): Promise<void> {
    const handle = await this.client.start(control, { input: "alive" });
    expect(await this.settled(handle.result())).toBe("alive");
  }
}

/** The error that the call is refused with, thrown or rejected. */
export async function refusalOf(call: () => unknown): Promise<Error> {
  try {
    await call();
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return error as Error;
  }
  throw new Error("it was accepted");
}

const NAMES: Partial<Record<ErrorCode, string>> = {
  DUROXIDE_INVALID_INPUT: "InvalidInputError",
  DUROXIDE_INVALID_OPTIONS: "InvalidOptionsError",
  DUROXIDE_REGISTRATION: "RegistrationError",
  DUROXIDE_ALREADY_EXISTS: "AlreadyExistsError",
  DUROXIDE_ORCHESTRATION_FAILED: "OrchestrationFailedError",
  DUROXIDE_PROVIDER: "ProviderError",
};

/** The call is refused with an error of ours: of that code, and the class that belongs to it. */
export async function expectRefused(call: () => unknown, code: ErrorCode, message: string | RegExp): Promise<void> {
  const error = await refusalOf(call);
  expect(error).toBeInstanceOf(DuroxideError);
  expect(error).toMatchObject({ code, name: NAMES[code] });
  if (typeof message === "string") expect(error.message).toContain(message);
  else expect(error.message).toMatch(message);
}
