// runtime/held-work-item.ts — a work item that is ours: from its fetch until it is given back, done or taken away.
//
//   H1. The lock is kept alive until the item is released, whatever is being waited for.
//   H2. What was computed is not thrown away: an ack that fails for a passing reason is repeated while the lock is ours.
//   H3. Whoever gives the item back tells the store whether the attempt counts.

import { sleep } from "../clock.js";
import { ProviderError } from "../errors.js";
import type { ActivityCompleted, ActivityExecute, ActivityFailed } from "../history/work-item.js";
import type { AbandonOptions, ExecutionState, LockedWorkItem } from "../provider/provider.js";
import { KeptLock, type LockHolder } from "./lock-renewal.js";
import type { RuntimeServices } from "./services.js";
import { isStoreTrouble } from "./store-trouble.js";

/** How the outcome of an activity travels back to its orchestration. */
export type ActivityCompletion = ActivityCompleted | ActivityFailed;

/**
 * Why the item is no longer wanted. `terminated`: its execution is over, but the item is still ours. `cancelled`: it was
 * removed. `lock-lost`: it may have been taken over.
 */
export type Withdrawal = "terminated" | "cancelled" | "lock-lost";

/** Who works on it. */
export interface WithdrawalListener {
  interrupt(why: Withdrawal): void;
}

/** `abandoned`: the store refuses the completion for good, or the runtime is being shut down; it will be run again. */
export type AckEnd = "acked" | "cancelled" | "lock-lost" | "abandoned";

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 3_000;
/** Before the next try of an activity whose completion the store refused. */
const REFUSED_DELAY_MS = 100;

export class HeldWorkItem implements LockHolder<ExecutionState> {
  readonly item: ActivityExecute;
  readonly attempt: number;
  readonly executionState: ExecutionState;
  readonly #services: RuntimeServices;
  readonly #lockToken: string;
  readonly #holder: string;
  readonly #aborting: AbortSignal;
  readonly #lock: KeptLock<ExecutionState>;
  #liveUntil: number;
  #isLost = false;
  #listener: WithdrawalListener | null = null;

  /** `aborting` ends the patience with a failing store: the item is then given back instead. */
  constructor(services: RuntimeServices, locked: LockedWorkItem, holder: string, aborting: AbortSignal) {
    const { clock, options } = services;
    this.item = locked.item;
    this.attempt = locked.attemptCount;
    this.executionState = locked.executionState;
    this.#services = services;
    this.#lockToken = locked.lockToken;
    this.#holder = holder;
    this.#aborting = aborting;
    const now = clock.now();
    this.#liveUntil = now + options.workerLockTimeoutMs;
    this.#lock = new KeptLock(this, clock, now, options.workerLockTimeoutMs, options.workerLockRenewalBufferMs); // H1
  }

  /** Tells one listener, perhaps more than once, that nobody wants the result any more. */
  listen(listener: WithdrawalListener): void {
    this.#listener = listener;
  }

  /** Hands in the completion; `null` only for what is known to be unwanted. */
  async ack(completion: ActivityCompletion | null): Promise<AckEnd> {
    for (let failures = 0; ; failures += 1) {
      let retryInMs: number;
      try {
        await this.#services.provider.ackWorkItem(this.#lockToken, completion);
        return "acked";
      } catch (error) {
        const kind = failureKind(error);
        if (kind === "lock-lost") return failures === 0 ? this.#howLost() : "lock-lost";
        if (this.#isLost) return "lock-lost";
        if (kind === "refused") return this.#abandoned({ delayMs: REFUSED_DELAY_MS }, error);
        if (this.#aborting.aborted) return this.#abandoned({ ignoreAttempt: true }, error);
        retryInMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);
        this.#report(error, retryInMs);
      }
      await sleep(this.#services.clock, retryInMs, this.#aborting); // H2
    }
  }

  /** Gives the item back. If not even that succeeds, others get it when the lock expires. */
  async abandon(options: AbandonOptions): Promise<void> {
    this.release();
    try {
      await this.#services.provider.abandonWorkItem(this.#lockToken, options);
    } catch (error) {
      this.#report(error, Math.max(0, this.#liveUntil - this.#services.clock.now()));
    }
  }

  /** Stops keeping the lock. */
  release(): void {
    this.#lock.stop();
  }

  async renewLock(): Promise<ExecutionState> {
    const { clock, options, provider } = this.#services;
    const askedAt = clock.now();
    const state = await provider.renewWorkItemLock(this.#lockToken, options.workerLockTimeoutMs);
    this.#liveUntil = askedAt + options.workerLockTimeoutMs;
    return state;
  }

  lockRenewed(state: ExecutionState): void {
    if (state === "terminated") this.#listener?.interrupt("terminated");
  }

  lockLost(): void {
    this.#isLost = true;
    this.#listener?.interrupt(this.#howLost());
  }

  /** Nobody can take over a lock that is live, so where ours is gone before its time, the item itself is gone. */
  #howLost(): "cancelled" | "lock-lost" {
    return this.#services.clock.now() < this.#liveUntil ? "cancelled" : "lock-lost";
  }

  async #abandoned(options: AbandonOptions, error: unknown): Promise<"abandoned"> {
    this.#report(error, options.delayMs ?? 0);
    await this.abandon(options); // H3
    return "abandoned";
  }

  #report(error: unknown, retryInMs: number): void {
    this.#services.emit({ type: "loop-failed", loop: this.#holder, error, retryInMs });
  }
}

function failureKind(error: unknown): "lock-lost" | "refused" | "transient" {
  if (!(error instanceof ProviderError) || isStoreTrouble(error)) return "transient";
  return error.kind === "lock-lost" ? "lock-lost" : "refused";
}
