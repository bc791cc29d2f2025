// provider-tests/case-context.ts — what a case works with: fresh stores, time, and checks.
//
//   X1. Time is virtual where the provider takes our clock: `wait` and `outlive` then take none. In real time they wait.
//   X2. Everything opened for a case is closed after it, whatever the case came to.

import { type Clock, sleep, systemClock } from "../clock.js";
import type { ProviderAdmin } from "../provider/admin.js";
import type { Provider, WakeSource } from "../provider/provider.js";
import { VirtualClock } from "../testing/virtual-clock.js";
import { checkStore } from "./check-factory.js";
import { Checks } from "./checks.js";
import type { ProviderFactory, TestStore } from "./provider-case.js";

/** Thrown by a case that this provider, or this factory, gives no occasion for. */
export class NotApplicable extends Error {
  override readonly name = "NotApplicable";
}

/** How much later than its time something may happen where the time is real. */
const REAL_SLACK_MS = 100;

/** How long something that must happen may take, when it is not the time of the contract that passes. */
const PATIENCE_MS = 5_000;

const DEFAULTS = Object.freeze({ virtualLockMs: 5_000, realLockMs: 1_000, shortPollThresholdMs: 500 });

/** What a case works with: fresh stores, time that passes when it says so, and checks. The suite makes one a case. */
export class CaseContext extends Checks {
  /** The timeout of locks that are to expire in this case. Anything else that takes time is a part or a multiple of it. */
  readonly lockMs: number;
  /** Whether a fetch of this provider waits for work. */
  readonly polling: "long" | "short";
  /** How soon a fetch that may not wait must have answered. */
  readonly shortPollThresholdMs: number;
  readonly #factory: ProviderFactory;
  readonly #virtual: VirtualClock | null;
  readonly #toClose: Array<() => PromiseLike<void> | undefined> = [];
  #isClosed = false;

  constructor(factory: ProviderFactory) {
    super();
    const isVirtual = (factory.time ?? "virtual") === "virtual";
    this.#factory = factory;
    this.#virtual = isVirtual ? new VirtualClock() : null;
    this.lockMs = factory.lockTimeoutMs ?? (isVirtual ? DEFAULTS.virtualLockMs : DEFAULTS.realLockMs);
    this.polling = factory.polling ?? "long";
    this.shortPollThresholdMs = factory.shortPollThresholdMs ?? DEFAULTS.shortPollThresholdMs;
  }

  // Stores

  /** Opens an empty store. A second call opens another one, which shares nothing with the first. */
  async open(): Promise<CaseStore> {
    const store = await this.#factory.open({ clock: this.#clock });
    checkStore(store);
    this.#toClose.push(
      () => store.provider[Symbol.asyncDispose](),
      () => store.close?.(),
    );
    if (this.#isClosed) await this.close(); // The case was given up meanwhile (X2).
    const closeLater = (provider: Provider) => this.#toClose.unshift(() => provider[Symbol.asyncDispose]());
    return new CaseStore(store, store.provider, closeLater);
  }

  /** For the suite: closes all that the case has opened. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const closing = this.#toClose.splice(0);
    const errors: unknown[] = [];
    for (const close of closing) {
      try {
        await close();
      } catch (error) {
        errors.push(error); // The others are closed all the same.
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  // Time

  /** By the clock that the provider lives by. */
  now(): number {
    return this.#clock.now();
  }

  /** Lets this much time pass. In real time a little more may. */
  async wait(ms: number): Promise<void> {
    if (this.#virtual !== null) await this.#virtual.advance(ms);
    else await sleep(systemClock, ms);
  }

  /** Lets so much time pass that a lock or a delay of this length, begun before, is over: in virtual time exactly that. */
  async outlive(ms: number): Promise<void> {
    await this.wait(this.#virtual === null ? ms + REAL_SLACK_MS : ms);
  }

  /** The clock, for a case that is about single milliseconds. Such a case is skipped in real time. */
  get exactTime(): VirtualClock {
    return this.#virtual ?? this.skip("needs exact milliseconds, and this provider lives in real time");
  }

  /**
   * Waits for something that must happen without any more of the contract's time passing: a fetch that is awake, a wake-up
   * that is on its way.
   */
  async soon<T>(promise: Promise<T>, what: string): Promise<T> {
    const started = systemClock.now();
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => {});
    while (!isSettled) {
      if (systemClock.now() - started > PATIENCE_MS) this.fail(`${what}: it has not happened`);
      if (this.#virtual !== null) await this.#virtual.advance(0);
      else await sleep(systemClock, 5);
    }
    return settled;
  }

  /** Whether the promise is still pending after all that is on its way has come to rest. */
  async isPending(promise: Promise<unknown>): Promise<boolean> {
    let isPending = true;
    const over = () => {
      isPending = false;
    };
    promise.then(over, over);
    await this.wait(this.#virtual === null ? REAL_SLACK_MS / 2 : 0);
    return isPending;
  }

  // Skipping

  /** Ends the case: this provider gives no occasion for it. */
  skip(reason: string): never {
    throw new NotApplicable(reason);
  }

  get #clock(): Clock {
    return this.#virtual ?? systemClock;
  }
}

/** The store of a case. What the provider or its factory does not offer skips the case that asks for it. */
export class CaseStore {
  readonly provider: Provider;
  readonly #store: TestStore;
  readonly #closeLater: (provider: Provider) => void;
  readonly #others: Provider[] = [];

  constructor(store: TestStore, provider: Provider, closeLater: (provider: Provider) => void) {
    this.provider = provider;
    this.#store = store;
    this.#closeLater = closeLater;
  }

  get admin(): ProviderAdmin {
    return this.provider.admin ?? notOffered("the provider has no `admin`");
  }

  get wake(): WakeSource {
    return this.provider.wake ?? notOffered("the provider has no `wake`");
  }

  /** One more provider on the same store. */
  async openAnother(): Promise<Provider> {
    if (this.#store.openAnother === undefined) return notOffered("the factory has no `openAnother`");
    const provider = await this.#store.openAnother();
    this.#closeLater(provider);
    this.#others.push(provider);
    return provider;
  }

  /** Closes all providers on the store and opens it again: what this one finds is what was durable. */
  async reopen(): Promise<CaseStore> {
    const reopen = this.#store.reopen ?? this.#store.openAnother;
    if (reopen === undefined) return notOffered("the factory has no `reopen`");
    for (const provider of [this.provider, ...this.#others]) await provider[Symbol.asyncDispose]();
    const provider = await reopen.call(this.#store);
    this.#closeLater(provider);
    return new CaseStore(this.#store, provider, this.#closeLater);
  }

  /** As the factory's store does it: see `TestStore`. So the two below. */
  async corruptHistory(instance: string): Promise<void> {
    if (this.#store.corruptHistory === undefined) return notOffered("the factory has no `corruptHistory`");
    return this.#store.corruptHistory(instance);
  }

  async corruptQueues(instance: string): Promise<void> {
    if (this.#store.corruptQueues === undefined) return notOffered("the factory has no `corruptQueues`");
    return this.#store.corruptQueues(instance);
  }

  async maxAttemptCount(instance: string): Promise<number> {
    if (this.#store.maxAttemptCount === undefined) return notOffered("the factory has no `maxAttemptCount`");
    return this.#store.maxAttemptCount(instance);
  }
}

function notOffered(reason: string): never {
  throw new NotApplicable(reason);
}
