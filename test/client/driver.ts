// client/driver.ts — a client on a store in virtual time, and turns committed by hand where a runtime would run them.

import { onTestFinished } from "vitest";
import { Client, type ClientOptions } from "../../src/client/client.js";
import type { ErrorDetails } from "../../src/history/error-details.js";
import { displayMessage } from "../../src/history/error-details.js";
import type { Event, EventPayload } from "../../src/history/event.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import type { ExecutionMetadata, InstanceChange, Provider, WakeSource } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

export type ProviderMethod = Exclude<keyof Provider, "name" | "version" | "wake" | typeof Symbol.asyncDispose>;

/** A store that counts what it is asked, fails when told to, and knows who still watches it. */
export class ObservedStore {
  /** The clock of the store. */
  readonly storeClock = new VirtualClock();
  readonly provider: Provider;
  /** How often each method was called. */
  readonly calls = new Map<ProviderMethod, number>();
  /** Loses every wake, as a store that only hints may do. */
  dropWakes = false;
  readonly #memory = new MemoryProvider({ clock: this.storeClock });
  readonly #failures = new Map<ProviderMethod, Error[]>();
  readonly #holds = new Map<ProviderMethod, { readonly when: "before" | "after"; readonly until: Promise<void> }>();
  readonly #listeners = new Set<(change?: InstanceChange) => void>();

  constructor({ canWake = true }: { readonly canWake?: boolean } = {}) {
    this.provider = new Proxy<Provider>(this.#memory, {
      get: (memory, property) => {
        if (property === "wake") return canWake ? this.#wake : null;
        const member: unknown = Reflect.get(memory, property, memory);
        return typeof member === "function" ? this.#observed(String(property) as ProviderMethod, member) : member;
      },
    });
  }

  get reads(): number {
    return [...this.calls].reduce((sum, [method, count]) => (/^(get|read)/.test(method) ? sum + count : sum), 0);
  }

  /** The next calls of that method fail with these errors. */
  failNext(method: ProviderMethod, ...errors: readonly Error[]): void {
    this.#failures.set(method, [...(this.#failures.get(method) ?? []), ...errors]);
  }

  /** The next call of that method does nothing until it is released. */
  holdNext(method: ProviderMethod): () => void {
    return this.#hold(method, "before");
  }

  /** The next call of that method is executed at once, but its answer comes only when it is released. */
  holdAnswer(method: ProviderMethod): () => void {
    return this.#hold(method, "after");
  }

  /** How many watches are open. */
  get watches(): number {
    return this.#listeners.size;
  }

  /** Wakes everybody about nothing. */
  wakeWatchers(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  #hold(method: ProviderMethod, when: "before" | "after"): () => void {
    let release = (): void => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#holds.set(method, { when, until });
    return release;
  }

  #observed(method: ProviderMethod, member: unknown): (...args: unknown[]) => Promise<unknown> {
    return async (...args) => {
      this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
      const hold = this.#holds.get(method);
      this.#holds.delete(method);
      if (hold?.when === "before") await hold.until;
      const failure = this.#failures.get(method)?.shift();
      if (failure !== undefined) throw failure;
      const answer: unknown = await Reflect.apply(member as (...args: unknown[]) => unknown, this.#memory, args);
      if (hold?.when === "after") await hold.until;
      return answer;
    };
  }

  /** Of one that counts what it tells. */
  get #wake(): WakeSource {
    const { wake } = this.#memory;
    return {
      watchInstance: this.#watchInstance,
      get changes() {
        return wake.changes;
      },
    };
  }

  readonly #watchInstance: WakeSource["watchInstance"] = (instance, listener) => {
    const hear = (change?: InstanceChange): void => {
      if (!this.dropWakes) listener(change);
    };
    this.#listeners.add(hear);
    const stop = this.#memory.wake.watchInstance(instance, hear);
    return () => {
      this.#listeners.delete(hear);
      stop();
    };
  };
}

/** A client with a clock of its own, so that every timer on it is one of the client's waits. */
export function openClient(options: { readonly canWake?: boolean } & Omit<ClientOptions, "clock"> = {}) {
  const { canWake, ...clientOptions } = options;
  const clock = new VirtualClock();
  const store = new ObservedStore({ canWake });
  const client = new Client(store.provider, { ...clientOptions, clock });
  onTestFinished(() => store.provider[Symbol.asyncDispose]());
  return { client, clock, store, provider: store.provider };
}

interface TurnByHand {
  readonly executionId?: number;
  readonly events?: readonly EventPayload[];
  readonly orchestratorItems?: readonly OrchestratorItem[];
  readonly metadata?: ExecutionMetadata;
}

/** Fetches the one instance that has messages and commits a turn of it; answers with the messages it took. */
export async function commitTurn(provider: Provider, turn: TurnByHand = {}): Promise<readonly OrchestratorItem[]> {
  const fetched = await provider.fetchOrchestrationItem({ lockTimeoutMs: 30_000 });
  if (fetched === null) throw new Error("no instance has messages");
  const { instance, orchestrationName, messages } = fetched.item;
  const executionId = turn.executionId ?? fetched.item.executionId;
  const lastEventId = executionId === fetched.item.executionId ? (fetched.item.history.at(-1)?.eventId ?? 0) : 0;
  await provider.ackOrchestrationItem(fetched.lockToken, {
    executionId,
    events: (turn.events ?? []).map((payload, place) =>
      numbered(payload, { instanceId: instance, executionId, eventId: lastEventId + 1 + place }),
    ),
    workerItems: [],
    orchestratorItems: turn.orchestratorItems ?? [],
    metadata: { orchestrationName, orchestrationVersion: "1.0.0", ...turn.metadata },
    cancelledActivities: [],
    cancelledTimers: [],
  });
  return messages;
}

/** Wakes the instance with a message and commits a turn of it. */
export async function wakeAndCommit(provider: Provider, instance: string, turn: TurnByHand = {}): Promise<void> {
  await provider.enqueueForOrchestrator({ type: "ExternalRaised", instance, name: "go", data: "null" });
  await commitTurn(provider, turn);
}

/** The turn that returns `value`. */
export function completing(value: unknown): TurnByHand {
  const output = JSON.stringify(value);
  return { events: [{ type: "OrchestrationCompleted", output }], metadata: { status: "Completed", output } };
}

/** The turn that fails. */
export function failing(details: ErrorDetails): TurnByHand {
  return {
    events: [{ type: "OrchestrationFailed", details }],
    metadata: { status: "Failed", output: displayMessage(details) },
  };
}

/** The turn that ends this execution and asks for the next. */
export function continuing(instance: string, input: string): TurnByHand {
  return {
    events: [{ type: "OrchestrationContinuedAsNew", input }],
    metadata: { status: "ContinuedAsNew", output: input },
    orchestratorItems: [
      { type: "ContinueAsNew", instance, orchestration: "Test", input, version: null, carryForwardEvents: [] },
    ],
  };
}

/** What an orchestration's first turn always records. */
export const STARTED: EventPayload = {
  type: "OrchestrationStarted",
  name: "Test",
  version: "1.0.0",
  input: "null",
  parentInstance: null,
  parentId: null,
};

function numbered(
  payload: EventPayload,
  place: { readonly instanceId: string; readonly executionId: number; readonly eventId: number },
): Event {
  return { ...payload, ...place, sourceEventId: null, timestampMs: 1_700_000_000_000, duroxideVersion: "0.1.30" };
}
