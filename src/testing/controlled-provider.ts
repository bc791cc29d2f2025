// testing/controlled-provider.ts — a provider whose calls can be stopped on their way, failed, and counted.
//
//   C1. The way of a call: entering → failBefore → the store → committing → failAfter → returning → the caller.
//   C2. A call passes `committing` only where the store did what it was asked; every call passes the other two.
//   C3. A gate holds every call that comes to its point until it is released; then it is open for good.
//   C4. What nobody holds, fails or shortens behaves as the store does.

import { type Clock, systemClock } from "../clock.js";
import { InvalidOptionsError, ProviderError } from "../errors.js";
import { checkOptions, isClock, oneOf } from "../options.js";
import { type ProviderOperation, ProviderWrapper } from "../provider/kit/provider-wrapper.js";
import type {
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
} from "../provider/provider.js";
import { checkedProvider } from "./checked-provider.js";

/**
 * Where a call can be held. `entering`: nothing has happened yet. `committing`: the store has done it, nobody has heard
 * of it. `returning`: the answer, or the error, is on its way to the caller.
 */
export type GatePoint = "entering" | "committing" | "returning";

/** Holds calls until it is released. */
export interface Gate extends Disposable {
  /** Resolves when the first call has come to it. */
  readonly reached: Promise<void>;
  /**
   * How many calls it holds now. An ack that is held at `committing` has released its instance in the store: the next turn
   * may be on its way, and be held too.
   */
  readonly held: number;
  /** Lets everybody through, now and later. */
  release(): void;
}

/** Whether a fetch waits for work as long as it may, or answers at once whatever it was told. */
export type Polling = "honour" | "ignore";

/** How a provider is controlled from its beginning. */
export interface ControlledProviderOptions {
  /** @default "honour" */
  readonly polling?: Polling;
  /** Measures the windows. @default the system's clock */
  readonly clock?: Clock;
}

/** One fetch, from its call to its answer. */
export interface FetchWindow {
  readonly operation: "fetchOrchestrationItem" | "fetchWorkItem";
  /** What the caller allowed. */
  readonly pollTimeoutMs: number;
  readonly durationMs: number;
  readonly outcome: "found" | "nothing" | "failed";
}

/**
 * Stops, fails and counts the calls of a provider: to see what a runtime does while the store is on its way to an
 * answer, or when the answer never comes.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a provider that is none, an option that is wrong, an operation or a point that
 *   does not exist
 * @example
 * const provider = new ControlledProvider(new MemoryProvider({ clock }), { clock });
 * using ack = provider.hold("ackOrchestrationItem", "committing"); // released at the latest when the test ends
 * await clock.run(ack.reached); // the turn is in the store, and the runtime does not know
 * ack.release();
 */
export class ControlledProvider extends ProviderWrapper {
  readonly #clock: Clock;
  readonly #gates = new Set<HeldGate>();
  readonly #failures: Failure[] = [];
  readonly #inFlight = new Map<ProviderOperation, number>();
  readonly #calls = new Map<ProviderOperation, number>();
  readonly #windows: FetchWindow[] = [];
  #polling: Polling;

  constructor(inner: Provider, options: ControlledProviderOptions = {}) {
    super(checkedProvider("new ControlledProvider", inner));
    checkOptions("new ControlledProvider", options, { polling: isPolling, clock: isClock });
    this.#polling = options.polling ?? "honour";
    this.#clock = options.clock ?? systemClock;
  }

  // Control

  /** Holds every call of the operation at that point, until the gate is released. */
  hold(operation: ProviderOperation, point: GatePoint): Gate {
    checkOperation("ControlledProvider.hold", operation);
    const wrong = isPoint(point);
    if (wrong !== null) throw new InvalidOptionsError(`ControlledProvider.hold: the point ${wrong}.`);
    const gate: HeldGate = new HeldGate(operation, point, () => this.#gates.delete(gate));
    this.#gates.add(gate);
    return gate;
  }

  /** Releases every gate. */
  releaseAll(): void {
    for (const gate of [...this.#gates]) gate.release();
  }

  /** The next call of the operation fails without reaching the store; called twice, the next two do. */
  failBefore(operation: ProviderOperation, error: Error = simulated(operation, "the store was not reached")): void {
    checkOperation("ControlledProvider.failBefore", operation);
    this.#failures.push({ operation, when: "before", error });
  }

  /** The next call of the operation that the store does fails nevertheless: its reply is lost. */
  failAfter(operation: ProviderOperation, error: Error = simulated(operation, "the reply was lost")): void {
    checkOperation("ControlledProvider.failAfter", operation);
    this.#failures.push({ operation, when: "after", error });
  }

  /** From the next fetch on. */
  setPolling(polling: Polling): void {
    checkOptions("ControlledProvider.setPolling", { polling }, { polling: isPolling });
    this.#polling = polling;
  }

  // Measurement

  /** Calls of the operation that have begun and not ended. */
  inFlight(operation: ProviderOperation): number {
    checkOperation("ControlledProvider.inFlight", operation);
    return this.#inFlight.get(operation) ?? 0;
  }

  /** Calls of the operation that have begun, ever. */
  calls(operation: ProviderOperation): number {
    checkOperation("ControlledProvider.calls", operation);
    return this.#calls.get(operation) ?? 0;
  }

  /** Fetches that wait for work now. */
  get openFetchWindows(): number {
    return this.inFlight("fetchOrchestrationItem") + this.inFlight("fetchWorkItem");
  }

  /** The fetches that have ended, in the order of their ends. */
  get fetchWindows(): readonly FetchWindow[] {
    return [...this.#windows];
  }

  override fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    return this.#measured("fetchOrchestrationItem", options, () =>
      super.fetchOrchestrationItem(this.#shortened(options)),
    );
  }

  override fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    return this.#measured("fetchWorkItem", options, () => super.fetchWorkItem(this.#shortened(options)));
  }

  protected override async around<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    bump(this.#calls, operation, 1);
    bump(this.#inFlight, operation, 1);
    try {
      return await this.#controlled(operation, call);
    } finally {
      bump(this.#inFlight, operation, -1);
    }
  }

  /** C1 */
  async #controlled<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    try {
      await this.#pass(operation, "entering");
      this.#failIfTold(operation, "before");
      const answer = await call();
      await this.#pass(operation, "committing"); // C2
      this.#failIfTold(operation, "after");
      return answer;
    } finally {
      await this.#pass(operation, "returning");
    }
  }

  async #pass(operation: ProviderOperation, point: GatePoint): Promise<void> {
    for (const gate of [...this.#gates]) {
      if (gate.operation === operation && gate.point === point) await gate.passed();
    }
  }

  #failIfTold(operation: ProviderOperation, when: Failure["when"]): void {
    const place = this.#failures.findIndex((failure) => failure.operation === operation && failure.when === when);
    if (place === -1) return;
    const [failure] = this.#failures.splice(place, 1);
    throw failure!.error;
  }

  #shortened<O extends { readonly pollTimeoutMs?: number }>(options: O): O {
    return this.#polling === "ignore" ? { ...options, pollTimeoutMs: 0 } : options;
  }

  async #measured<T>(
    operation: FetchWindow["operation"],
    { pollTimeoutMs = 0 }: { readonly pollTimeoutMs?: number },
    fetch: () => Promise<T | null>,
  ): Promise<T | null> {
    const openedAt = this.#clock.now();
    const close = (outcome: FetchWindow["outcome"]): void => {
      const durationMs = this.#clock.now() - openedAt;
      this.#windows.push({ operation, pollTimeoutMs, durationMs, outcome });
    };
    try {
      const locked = await fetch();
      close(locked === null ? "nothing" : "found");
      return locked;
    } catch (error) {
      close("failed");
      throw error;
    }
  }
}

interface Failure {
  readonly operation: ProviderOperation;
  readonly when: "before" | "after";
  readonly error: Error;
}

/** C3 */
class HeldGate implements Gate {
  readonly reached: Promise<void>;
  readonly operation: ProviderOperation;
  readonly point: GatePoint;
  readonly #opened: Promise<void>;
  #tellReached: () => void = () => {};
  readonly #onRelease: () => void;
  #open: () => void = () => {};
  #held = 0;

  constructor(operation: ProviderOperation, point: GatePoint, onRelease: () => void) {
    this.operation = operation;
    this.point = point;
    this.#onRelease = onRelease;
    this.reached = new Promise((resolve) => {
      this.#tellReached = resolve;
    });
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  get held(): number {
    return this.#held;
  }

  release(): void {
    this.#onRelease();
    this.#open();
  }

  [Symbol.dispose](): void {
    this.release();
  }

  async passed(): Promise<void> {
    this.#held += 1;
    this.#tellReached();
    await this.#opened;
    this.#held -= 1;
  }
}

const isPolling = oneOf("honour", "ignore");
const isPoint = oneOf("entering", "committing", "returning");

/** Every operation, so that a name that is none is told as such also where no compiler looks. */
const OPERATIONS: Readonly<Record<ProviderOperation, true>> = Object.freeze({
  enqueueForOrchestrator: true,
  fetchOrchestrationItem: true,
  ackOrchestrationItem: true,
  abandonOrchestrationItem: true,
  renewOrchestrationItemLock: true,
  enqueueForWorker: true,
  fetchWorkItem: true,
  ackWorkItem: true,
  abandonWorkItem: true,
  renewWorkItemLock: true,
  renewSessionLock: true,
  cleanupOrphanedSessions: true,
  read: true,
  readWithExecution: true,
  appendWithExecution: true,
  getInstanceStatus: true,
  getCustomStatus: true,
  getKvValue: true,
  getKvAllValues: true,
  getInstanceStats: true,
});

function checkOperation(what: string, operation: ProviderOperation): void {
  if (Object.hasOwn(OPERATIONS, operation)) return;
  const known = Object.keys(OPERATIONS).join(", ");
  throw new InvalidOptionsError(`${what}: there is no operation '${operation}'. The operations are: ${known}.`);
}

function bump(counts: Map<ProviderOperation, number>, operation: ProviderOperation, by: number): void {
  counts.set(operation, (counts.get(operation) ?? 0) + by);
}

function simulated(operation: ProviderOperation, what: string): ProviderError {
  return new ProviderError("transient", operation, `simulated failure: ${what}`);
}
