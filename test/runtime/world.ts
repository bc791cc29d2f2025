// test/runtime/world.ts — a store, a client and runtimes in virtual time: what the end-to-end tests play in.

import { Client } from "../../src/client/client.js";
import type { Event, EventType } from "../../src/history/event.js";
import type { Fact, FactType } from "../../src/observer.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { Runtime, type RuntimeStart } from "../../src/runtime/runtime.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

export class World implements AsyncDisposable {
  readonly clock = new VirtualClock();
  readonly provider: MemoryProvider;
  readonly client: Client;
  readonly facts: Fact[] = [];
  readonly #runtimes: Runtime[] = [];
  #ids = 0;

  constructor() {
    this.provider = new MemoryProvider({ clock: this.clock, newId: () => this.newId() });
    this.client = new Client(this.provider, { clock: this.clock });
  }

  newId(): string {
    this.#ids += 1;
    return `${String(this.#ids).padStart(8, "0")}-id`;
  }

  /** A runtime on this world's store, or on another view of it. */
  async runtime(given: Partial<RuntimeStart> & { readonly provider?: Provider } = {}): Promise<Runtime> {
    const runtime = await Runtime.start({
      provider: this.provider,
      clock: this.clock,
      newId: () => this.newId(),
      observers: [(fact) => this.facts.push(fact)],
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
