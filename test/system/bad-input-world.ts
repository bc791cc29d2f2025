// test/system/bad-input-world.ts — a world with a control orchestration, and how refusals are looked at.

import { expect, onTestFinished } from "vitest";
import type { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { DuroxideError, type ErrorCode } from "../../src/errors.js";
import type { Provider } from "../../src/provider/provider.js";
import type { Runtime } from "../../src/runtime/runtime.js";
import type { TestRuntimeStart } from "../../src/testing/test-runtime.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import type { VirtualClock } from "../../src/testing/virtual-clock.js";
import { STORES as ALL_STORES, type Store } from "../behaviours/stores.js";

export type OpenStore = Store["world"];

export const STORES: readonly (readonly [name: string, open: OpenStore])[] = ALL_STORES.map(({ name, world }) => [
  name,
  world,
]);

export const echo = activity("Echo", async (_ctx, value: unknown) => value);
const control = orchestration("Control", async (ctx, word: string) => ctx.scheduleActivity(echo, word));

export class World {
  readonly clock: VirtualClock;
  readonly provider: Provider;
  readonly client: Client;
  readonly #world: TestWorld;

  static async open(open: OpenStore): Promise<World> {
    const world = await open();
    onTestFinished(() => world[Symbol.asyncDispose]());
    return new World(world);
  }

  private constructor(world: TestWorld) {
    this.#world = world;
    this.clock = world.clock;
    this.provider = world.provider;
    this.client = world.client;
  }

  /** A runtime that knows the control orchestration and what else is given. */
  async run(given: TestRuntimeStart = {}): Promise<Runtime> {
    const { orchestrations = [], activities = [], ...options } = given;
    const { runtime } = await this.#world.start({
      orchestrations: [control, ...orchestrations],
      activities: [echo, ...activities],
      ...options,
    });
    return runtime;
  }

  /** Lets time pass until the promise settles. */
  settled<T>(promise: PromiseLike<T>): Promise<T> {
    return this.#world.settle(promise);
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
