// test/simulation/link.ts — the way from a process to the store, on which calls get lost, wait, and arrive twice.
//
//   L1. A call travels, is done, and its answer travels: at each of the three anything else may happen meanwhile.
//   L2. A call that fails was either never done, or done and its answer lost. Nobody can tell which.
//   L3. A call that arrives twice is done twice, and either answer may be the one that is heard.

import { ProviderError } from "../../src/errors.js";
import { type ProviderOperation, ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type { FetchOrchestrationOptions, LockedOrchestrationItem, Provider } from "../../src/provider/provider.js";
import type { Owner, World } from "./world.js";

/** How bad the way is. All of them probabilities. */
export interface Troubles {
  failBefore: number;
  loseAnswer: number;
  twice: number;
  slow: number;
  /** A fetch is told nothing of what is in memory. */
  forgetWarm: number;
}

export const NO_TROUBLES: Readonly<Troubles> = { failBefore: 0, loseAnswer: 0, twice: 0, slow: 0, forgetWarm: 0 };

const SLOW_MS = [50, 1_000, 6_000, 35_000] as const;

export class Link extends ProviderWrapper {
  readonly #world: World;
  readonly #owner: Owner;
  readonly #troubles: Readonly<Troubles>;

  constructor(inner: Provider, world: World, owner: Owner, troubles: Readonly<Troubles>) {
    super(inner);
    this.#world = world;
    this.#owner = owner;
    this.#troubles = troubles;
  }

  override fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const { warm, ...cold } = options;
    if (warm === undefined || !this.#world.chance(this.#troubles.forgetWarm))
      return super.fetchOrchestrationItem(options);
    return super.fetchOrchestrationItem(cold);
  }

  protected override async around<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    const world = this.#world;
    const troubles = this.#troubles;
    await this.#travel(`${operation} asked`);
    if (world.chance(troubles.failBefore)) throw this.#lost(operation, "the store was not reached");
    const isTwice = world.chance(troubles.twice) && mayBeRepeated(operation);
    const first = settled(call());
    const second = isTwice ? this.#travel(`${operation} asked again`).then(() => settled(call())) : first;
    const [firstAnswer, secondAnswer] =
      isTwice && world.chance(0.5) ? await Promise.all([first, second]) : [await first, null];
    await this.#travel(`${operation} answered`);
    if (world.chance(troubles.loseAnswer)) throw this.#lost(operation, "the answer was lost");
    const heard = secondAnswer ?? firstAnswer; // L3
    if (heard.status === "rejected") throw heard.reason;
    return heard.value;
  }

  #travel(label: string): Promise<void> {
    const world = this.#world;
    const slowMs = world.chance(this.#troubles.slow) ? world.pick(SLOW_MS) : 0;
    return world.pause(world.between(0, 2) + slowMs, `${this.#owner.name}: ${label}`, this.#owner);
  }

  #lost(operation: ProviderOperation, why: string): ProviderError {
    this.#world.note(`${this.#owner.name}: ${operation} fails: ${why}`);
    return new ProviderError("transient", operation, why);
  }
}

/** A fetch that waits would wait twice, and what it takes in vain is given back by time only: enough happens without. */
function mayBeRepeated(operation: ProviderOperation): boolean {
  return operation !== "fetchOrchestrationItem" && operation !== "fetchWorkItem";
}

async function settled<T>(work: Promise<T>): Promise<PromiseSettledResult<T>> {
  const [outcome] = await Promise.allSettled([work]);
  return outcome;
}
