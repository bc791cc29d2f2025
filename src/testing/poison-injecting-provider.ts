// testing/poison-injecting-provider.ts — a provider that claims that work was fetched more often than it was.

import { InvalidOptionsError } from "../errors.js";
import { integerBetween } from "../options.js";
import { ProviderWrapper } from "../provider/kit/provider-wrapper.js";
import type {
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
} from "../provider/provider.js";
import { checkedProvider } from "./checked-provider.js";

/**
 * Reports an attempt count of your choice, so that a runtime takes work for poison at once. The store itself counts on
 * as ever. A fetch that brings nothing, or fails, uses nothing up. An injection replaces the one before it; 0 is none.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a provider that is none, or a count that is no integer from 0
 * @example
 * const provider = new PoisonInjectingProvider(new MemoryProvider({ clock }));
 * provider.injectOrchestrationPoison(99);
 * await using runtime = await Runtime.start({ provider, clock, orchestrations, activities });
 */
export class PoisonInjectingProvider extends ProviderWrapper {
  #orchestrations: Injection | null = null;
  #activities: Injection | null = null;

  constructor(inner: Provider) {
    super(checkedProvider("new PoisonInjectingProvider", inner));
  }

  /** The next orchestration item is reported as fetched `attemptCount` times; those after it as they are. */
  injectOrchestrationPoison(attemptCount: number): void {
    this.#orchestrations = injection("injectOrchestrationPoison", attemptCount, "once", 0);
  }

  /** Every orchestration item, until the injections are cleared. */
  injectOrchestrationPoisonPersistent(attemptCount: number): void {
    this.#orchestrations = injection("injectOrchestrationPoisonPersistent", attemptCount, "always", 0);
  }

  /** The first `skip` orchestration items are reported as they are, the one after them is not. */
  injectOrchestrationPoisonAfterSkip(skip: number, attemptCount: number): void {
    this.#orchestrations = injection("injectOrchestrationPoisonAfterSkip", attemptCount, "once", skip);
  }

  /** The next work item is reported as fetched `attemptCount` times; those after it as they are. */
  injectActivityPoison(attemptCount: number): void {
    this.#activities = injection("injectActivityPoison", attemptCount, "once", 0);
  }

  /** Every work item, until the injections are cleared. */
  injectActivityPoisonPersistent(attemptCount: number): void {
    this.#activities = injection("injectActivityPoisonPersistent", attemptCount, "always", 0);
  }

  /** From now on everything is reported as it is. */
  clearInjections(): void {
    this.#orchestrations = null;
    this.#activities = null;
  }

  override async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const locked = await super.fetchOrchestrationItem(options);
    const injected = this.#orchestrations;
    if (locked === null || injected === null) return locked;
    this.#orchestrations = afterUse(injected);
    return reported(locked, injected);
  }

  override async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    const locked = await super.fetchWorkItem(options);
    const injected = this.#activities;
    if (locked === null || injected === null) return locked;
    this.#activities = afterUse(injected);
    return reported(locked, injected);
  }
}

interface Injection {
  readonly attemptCount: number;
  readonly lasts: "once" | "always";
  /** Items that are still let through. */
  readonly skip: number;
}

const isCount = integerBetween(0, Number.MAX_SAFE_INTEGER);

function injection(what: string, attemptCount: number, lasts: Injection["lasts"], skip: number): Injection | null {
  const [wrongCount, wrongSkip] = [isCount(attemptCount), isCount(skip)];
  if (wrongCount !== null) throw new InvalidOptionsError(`${what}: the attempt count ${wrongCount}.`);
  if (wrongSkip !== null) throw new InvalidOptionsError(`${what}: the number to skip ${wrongSkip}.`);
  return attemptCount === 0 ? null : { attemptCount, lasts, skip };
}

function afterUse(injected: Injection): Injection | null {
  if (injected.skip > 0) return { ...injected, skip: injected.skip - 1 };
  return injected.lasts === "always" ? injected : null;
}

function reported<T extends { readonly attemptCount: number }>(locked: T, { attemptCount, skip }: Injection): T {
  return skip > 0 ? locked : { ...locked, attemptCount };
}
