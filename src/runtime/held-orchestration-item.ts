// runtime/held-orchestration-item.ts — an instance that is ours: from its fetch until its turn is committed, given back
// or taken away.
//
//   H1. The lock is kept alive until the item is released.
//   H2. A storage problem never fails an orchestration: what cannot be committed is given back, and tried again later.
//   H3. An ack that fails after it took effect is repeated too, and then finds the lock gone: that is the end of it.

import { sleep } from "../clock.js";
import { ProviderError } from "../errors.js";
import type { AbandonOptions, LockedOrchestrationItem, OrchestrationItem, TurnCommit } from "../provider/provider.js";
import { KeptLock, type LockHolder } from "./lock-renewal.js";
import type { RuntimeServices } from "./services.js";

export type AckEnd =
  | { readonly kind: "acked" }
  | { readonly kind: "lock-lost" }
  | { readonly kind: "failed"; readonly error: unknown };

const ACKED: AckEnd = { kind: "acked" };
const LOCK_LOST: AckEnd = { kind: "lock-lost" };

const ACK_RETRIES = 5;
const FIRST_RETRY_MS = 10;

export class HeldOrchestrationItem implements LockHolder<void> {
  readonly item: OrchestrationItem;
  readonly attempt: number;
  readonly lockToken: string;
  readonly #services: RuntimeServices;
  readonly #holder: string;
  /** When it was fetched. */
  readonly since: number;
  readonly #lock: KeptLock<void>;
  #isLost = false;

  constructor(services: RuntimeServices, locked: LockedOrchestrationItem, holder: string) {
    const { clock, options } = services;
    this.item = locked.item;
    this.attempt = locked.attemptCount;
    this.#services = services;
    this.lockToken = locked.lockToken;
    this.#holder = holder;
    this.since = clock.now();
    const { orchestratorLockTimeoutMs, orchestratorLockRenewalBufferMs } = options;
    this.#lock = new KeptLock(this, clock, this.since, orchestratorLockTimeoutMs, orchestratorLockRenewalBufferMs); // H1
  }

  /**
   * Commits the turn; what may pass by itself is tried a few times more. `onAcked` is called at once: what the turn has
   * made possible may begin at the same time.
   */
  async ack(commit: TurnCommit, onAcked: () => void): Promise<AckEnd> {
    for (let retries = 0; ; retries += 1) {
      try {
        await this.#services.provider.ackOrchestrationItem(this.lockToken, commit);
      } catch (error) {
        if (error instanceof ProviderError && error.kind === "lock-lost") return LOCK_LOST;
        if (!mayPass(error) || retries === ACK_RETRIES) return { kind: "failed", error };
        if (this.#isLost) return LOCK_LOST;
        await sleep(this.#services.clock, FIRST_RETRY_MS * 2 ** retries);
        continue;
      }
      onAcked();
      return ACKED;
    }
  }

  /** Gives the item back. If not even that succeeds, others get it when the lock expires. */
  async abandon(options: AbandonOptions): Promise<void> {
    const { provider, emit, options: runtime } = this.#services;
    this.release();
    try {
      await provider.abandonOrchestrationItem(this.lockToken, options);
    } catch (error) {
      emit({ type: "loop-failed", loop: this.#holder, error, retryInMs: runtime.orchestratorLockTimeoutMs });
    }
  }

  /** Stops keeping the lock. */
  release(): void {
    this.#lock.stop();
  }

  renewLock(): Promise<void> {
    const { provider, options } = this.#services;
    return provider.renewOrchestrationItemLock(this.lockToken, options.orchestratorLockTimeoutMs);
  }

  lockRenewed(): void {}

  lockLost(): void {
    this.#isLost = true;
  }
}

/** What a provider did not classify may pass, too. */
function mayPass(error: unknown): boolean {
  return !(error instanceof ProviderError) || error.retryable;
}
