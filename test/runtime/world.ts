// test/runtime/world.ts — a store, a client and runtimes in virtual time: what the end-to-end tests play in.

import { Client } from "../../src/client/client.js";
import type { Event, EventType } from "../../src/history/event.js";
import type { Fact, FactType } from "../../src/observer.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { Runtime, type RuntimeStart } from "../../src/runtime/runtime.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

function counter(prefix: string): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count}`;
  };
}

/** The same store, with some of its methods replaced: to lose answers, to forge them, to be slow. */
export function altered(provider: Provider, changes: Partial<Provider>): Provider {
  return new Proxy(provider, {
    get(target, name) {
      const member: unknown = Reflect.get(name in changes ? changes : target, name);
      return typeof member === "function" && !(name in changes) ? member.bind(target) : member;
    },
  });
}

export class World implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly provider: MemoryProvider;
  readonly client: Client;
  readonly facts: Fact[] = [];
  readonly #runtimes: Runtime[] = [];

  constructor() {
    this.provider = new MemoryProvider({ clock: this.clock, newId: counter("token") });
    this.client = new Client(this.provider, { clock: this.clock });
  }

  /** A runtime on this world's store, or on another view of it. */
  async runtime(given: Partial<RuntimeStart> = {}): Promise<Runtime> {
    const runtime = await Runtime.start({
      provider: this.provider,
      clock: this.clock,
      newId: counter("id"),
      observers: [(fact) => this.facts.push(fact)],
      orchestrationConcurrency: 2,
      workerConcurrency: 2,
      longPollTimeoutMs: 3_600_000,
      ...given,
    });
    this.#runtimes.push(runtime);
    return runtime;
  }

  /** Lets time pass until the promise settles. */
  settled<T>(promise: Promise<T>): Promise<T> {
    return this.clock.run(promise);
  }

  /** How the instance ended. */
  async ending(instance: string): Promise<{ readonly status: string; readonly output: string | null }> {
    await this.settled(this.client.waitForOrchestration(instance));
    const status = await this.provider.getInstanceStatus(instance);
    return { status: status!.status, output: status!.output };
  }

  async eventTypes(instance: string, executionId = 1): Promise<EventType[]> {
    return (await this.history(instance, executionId)).map((event) => event.type);
  }

  async history(instance: string, executionId = 1): Promise<readonly Event[]> {
    return this.provider.readWithExecution(instance, executionId);
  }

  factsOf<T extends FactType>(type: T): Extract<Fact, { type: T }>[] {
    return this.facts.filter((fact): fact is Extract<Fact, { type: T }> => fact.type === type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const runtime of this.#runtimes) await this.settled(runtime.shutdown({ graceMs: 0 }));
    await this.provider[Symbol.asyncDispose]();
  }
}
