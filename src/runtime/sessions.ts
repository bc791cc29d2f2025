// runtime/sessions.ts — worker affinity: how many sessions this runtime works on at once, and keeping them its own.
//
//   S1. A session counts while at least one of its activities is in flight in this runtime.
//   S2. At the limit, slots fetch only work without a session. The contract cannot say "only sessions that I own
//       already", and to fetch and refuse would claim sessions that somebody else has room for; so a session that is
//       already ours waits too, until one of those in flight comes to rest.
//   S3. Sessions are kept by renewing them and let go by not renewing them: the store tells the idle ones apart.
//   S4. Where nothing is claimed, nothing is renewed: an idle runtime is silent.

import type { Timer } from "../clock.js";
import { renewalIntervalMs } from "./lock-renewal.js";
import type { RuntimeServices } from "./services.js";

/** Counts the sessions in flight (S1). */
export class SessionTracker {
  readonly #limit: number;
  readonly #inFlight = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#inFlight.size >= this.#limit;
  }

  /** False, and nothing is counted, where the session would be one too many. */
  enter(sessionId: string): boolean {
    const activities = this.#inFlight.get(sessionId) ?? 0;
    if (activities === 0 && this.isFull) return false;
    this.#inFlight.set(sessionId, activities + 1);
    return true;
  }

  leave(sessionId: string): void {
    const activities = this.#inFlight.get(sessionId) ?? 0;
    if (activities > 1) this.#inFlight.set(sessionId, activities - 1);
    else this.#inFlight.delete(sessionId);
  }
}

/** How soon a renewal that failed is tried again. */
const RETRY_AFTER_MS = 1_000;

/** Renews the sessions of one runtime, and sweeps those that nobody owns. */
export class SessionKeeper {
  readonly #services: RuntimeServices;
  readonly #ownerIds: readonly string[];
  readonly #intervalMs: number;
  readonly #calls = new Set<Promise<void>>();
  #renewal: Timer | null = null;
  #cleanup: Timer | null = null;
  #claims = 0;
  #isStopped = false;

  constructor(services: RuntimeServices, ownerIds: readonly string[]) {
    const { sessionLockTimeoutMs, sessionLockRenewalBufferMs } = services.options;
    this.#services = services;
    this.#ownerIds = ownerIds;
    this.#intervalMs = renewalIntervalMs(sessionLockTimeoutMs, sessionLockRenewalBufferMs);
  }

  /** Renews from the beginning: a runtime with a stable node id may own sessions from before. */
  start(): void {
    this.#renewIn(this.#intervalMs);
    this.#cleanUpIn(this.#services.options.sessionCleanupIntervalMs);
  }

  /** A session item was fetched, and with it a session claimed. */
  claimed(): void {
    this.#claims += 1;
    if (this.#renewal === null) this.#renewIn(this.#intervalMs);
  }

  /** Ends the timers and awaits the calls that are under way. The sessions themselves expire. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#renewal?.clear();
    this.#cleanup?.clear();
    await Promise.all(this.#calls);
  }

  #renewIn(delayMs: number): void {
    if (this.#isStopped) return;
    this.#renewal = this.#services.clock.setTimer(delayMs, () => this.#track(this.#renew()));
  }

  async #renew(): Promise<void> {
    const { provider, options } = this.#services;
    const claimsBefore = this.#claims;
    try {
      const renewed = await provider.renewSessionLock(this.#ownerIds, {
        extendForMs: options.sessionLockTimeoutMs,
        idleTimeoutMs: options.sessionIdleTimeoutMs,
      });
      if (renewed > 0 || this.#claims !== claimsBefore) this.#renewIn(this.#intervalMs);
      else this.#renewal = null; // S4
    } catch (error) {
      const retryInMs = Math.min(RETRY_AFTER_MS, this.#intervalMs);
      this.#report(error, retryInMs);
      this.#renewIn(retryInMs);
    }
  }

  #cleanUpIn(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cleanup = this.#services.clock.setTimer(delayMs, () => this.#track(this.#cleanUp()));
  }

  async #cleanUp(): Promise<void> {
    const { provider, options } = this.#services;
    try {
      await provider.cleanupOrphanedSessions({ idleTimeoutMs: options.sessionIdleTimeoutMs });
    } catch (error) {
      this.#report(error, options.sessionCleanupIntervalMs);
    }
    this.#cleanUpIn(options.sessionCleanupIntervalMs);
  }

  #track(call: Promise<void>): void {
    this.#calls.add(call);
    void call.finally(() => this.#calls.delete(call));
  }

  #report(error: unknown, retryInMs: number): void {
    this.#services.emit({ type: "loop-failed", loop: "sessions", error, retryInMs });
  }
}
