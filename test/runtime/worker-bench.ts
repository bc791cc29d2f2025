// test/runtime/worker-bench.ts — a store in virtual time, workers on it, and a look at what they hand in.

import { onTestFinished } from "vitest";
import { Client } from "../../src/client/client.js";
import { type ActivityDefinition, activity } from "../../src/define.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { type Fact, type FactType, type Observer, ObserverStream } from "../../src/observer.js";
import type { Provider, ScheduledId } from "../../src/provider/provider.js";
import { create, fetchTurn, runTurn } from "../../src/provider-tests/steps.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { type RuntimeOptions, resolveRuntimeOptions } from "../../src/runtime/options.js";
import { Registry } from "../../src/runtime/registry.js";
import type { RuntimeServices } from "../../src/runtime/services.js";
import { WorkerDispatcher } from "../../src/runtime/worker-dispatcher.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

export interface WorkerSetup {
  readonly name?: string;
  readonly activities?: readonly ActivityDefinition[];
  readonly options?: RuntimeOptions;
  /** What the worker sees instead of the store itself. */
  readonly provider?: Provider;
  readonly observers?: readonly Observer[];
}

export interface Worker {
  readonly dispatcher: WorkerDispatcher;
  readonly facts: readonly Fact[];
  factsOf<T extends FactType>(type: T): Extract<Fact, { type: T }>[];
}

export class Bench {
  readonly clock = new VirtualClock();
  readonly provider = new MemoryProvider({ clock: this.clock });

  services(setup: WorkerSetup, facts: Fact[] = []): RuntimeServices {
    const { clock } = this;
    const stream = new ObserverStream([...(setup.observers ?? []), (fact) => void facts.push(fact)]);
    return {
      runtimeId: setup.name ?? "test",
      provider: setup.provider ?? this.provider,
      clock,
      newId: () => "id",
      options: resolveRuntimeOptions({ clock, ...setup.options }),
      registry: Registry.of({ activities: setup.activities ?? [activity("Unrelated", () => null)] }),
      emit: stream.emit,
    };
  }

  startWorker(setup: WorkerSetup): Worker {
    const facts: Fact[] = [];
    const services = this.services(setup, facts);
    const client = new Client(services.provider, { clock: this.clock });
    const dispatcher = new WorkerDispatcher(services, { client });
    onTestFinished(() => this.clock.run(dispatcher.abort()));
    dispatcher.start();
    const factsOf = <T extends FactType>(type: T) =>
      facts.filter((fact): fact is Extract<Fact, { type: T }> => fact.type === type);
    return { dispatcher, facts, factsOf };
  }

  /** Lets everything that needs no time happen. */
  settle(): Promise<void> {
    return this.clock.advance(0);
  }

  /** The instance exists and runs. */
  async createInstance(instance: string): Promise<void> {
    await create(this.provider, instance);
  }

  /** A turn of the instance removes these activities from the queue. */
  async cancelInStore(instance: string, ...ids: readonly number[]): Promise<void> {
    const cancelledActivities = ids.map((id): ScheduledId => ({ instance, executionId: 1, id }));
    await runTurn(this.provider, instance, { cancelledActivities });
  }

  /** The instance ends, and leaves its activities in the queue. */
  async endInstance(instance: string): Promise<void> {
    await runTurn(this.provider, instance, { metadata: { status: "Completed", output: "null" } });
  }

  /** The messages that wait for the instance, which must exist. */
  async messages(): Promise<readonly OrchestratorItem[]> {
    const locked = await fetchTurn(this.provider);
    if (locked === null) return [];
    await this.provider.abandonOrchestrationItem(locked.lockToken, { ignoreAttempt: true });
    return locked.item.messages;
  }
}

/** The provider with some of its methods replaced. */
export function replacing(provider: Provider, methods: Partial<Provider>): Provider {
  return new Proxy(provider, {
    get(target, key) {
      if (Object.hasOwn(methods, key)) return Reflect.get(methods, key);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A promise that the test settles. */
export class Gate<T = void> {
  readonly #resolvers: { resolve: (value: T) => void; reject: (error: unknown) => void };
  readonly opened: Promise<T>;

  constructor() {
    let resolvers: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined;
    this.opened = new Promise<T>((resolve, reject) => {
      resolvers = { resolve, reject };
    });
    this.#resolvers = resolvers!;
  }

  open(value: T): void {
    this.#resolvers.resolve(value);
  }

  fail(error: unknown): void {
    this.#resolvers.reject(error);
  }
}
