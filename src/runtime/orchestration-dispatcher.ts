// runtime/orchestration-dispatcher.ts — runs orchestrations: many small loops, each one fetch → turn → commit.
//
//   D1. Whatever is fetched is committed, given back, or taken away from us. Nothing that user code does ends a loop.
//   D2. An execution is offered to fetches before its turn is committed, because the next turn may be fetched before this
//       one's ack has come back. The store knows whether it was; where the ack fails, the execution is forgotten.
//   D3. Facts are told after the commit. Activities of this process that a turn cancelled hear of it then, too.
//   D4. After `stopFetching` no new turn is begun: what a late fetch still brings is given back, uncounted.
//   D5. What cannot be committed for a reason that may pass is given back uncounted, with pauses that grow until the store
//       takes something again: an outage of any length fails no instance.

import { setMaxListeners } from "node:events";
import { messageOf, ProviderError } from "../errors.js";
import type { FetchOrchestrationOptions, ScheduledId } from "../provider/provider.js";
import { type AckEnd, HeldOrchestrationItem } from "./held-orchestration-item.js";
import { MissingActivities } from "./missing-activities.js";
import { OrchestrationTurn, type TurnDecision } from "./orchestration-turn.js";
import type { RuntimeServices } from "./services.js";
import { runSlot } from "./slot-loop.js";
import { isStoreTrouble } from "./store-trouble.js";
import { unregisteredDelayMs } from "./unregistered-backoff.js";
import { WarmInstances } from "./warm-instances.js";

export interface OrchestrationDispatcherHooks {
  /** A committed turn has cancelled these. */
  readonly onActivitiesCancelled: (ids: readonly ScheduledId[]) => void;
}

type Commit = Extract<TurnDecision, { kind: "commit" }>;
type Abandon = Extract<TurnDecision, { kind: "abandon" }>;

export class OrchestrationDispatcher {
  readonly #services: RuntimeServices;
  readonly #hooks: OrchestrationDispatcherHooks;
  readonly #warm: WarmInstances;
  readonly #turn: OrchestrationTurn;
  readonly #missing: MissingActivities;
  readonly #stopping = new AbortController();
  /** Turns in a row, of any instance, that could not be committed for a reason that may pass. */
  #storeFailures = 0;
  #drained: Promise<void> = Promise.resolve();

  constructor(services: RuntimeServices, hooks: OrchestrationDispatcherHooks) {
    this.#services = services;
    this.#hooks = hooks;
    this.#warm = new WarmInstances(services.options.warmCacheBytes);
    this.#turn = new OrchestrationTurn(services, this.#warm);
    this.#missing = new MissingActivities(services);
    setMaxListeners(0, this.#stopping.signal); // One for every slot that waits.
  }

  start(): void {
    const { options, runtimeId, registry } = this.#services;
    // Whoever knows none would only be in the way of those who do.
    const count = registry.orchestrationNames().length === 0 ? 0 : options.orchestrationConcurrency;
    const slots = Array.from({ length: count }, (_, index) => `orch-${index}-${runtimeId}`);
    this.#drained = Promise.all(slots.map((slot) => this.#runLoop(slot))).then(() => {});
  }

  /** Ends the waits for work. Turns in progress are finished, their locks kept. */
  stopFetching(): void {
    this.#stopping.abort();
  }

  /** Resolves when, after `stopFetching`, the last turn in progress is over. */
  drained(): Promise<void> {
    return this.#drained;
  }

  #runLoop(slot: string): Promise<void> {
    const options = this.#fetchOptions(slot);
    return runSlot({
      name: slot,
      clock: this.#services.clock,
      emit: this.#services.emit,
      stopping: this.#stopping.signal,
      minPollIntervalMs: this.#services.options.minPollIntervalMs,
      step: () => this.#step(slot, options),
    });
  }

  /** A slot asks for the same all its life. */
  #fetchOptions(slot: string): FetchOrchestrationOptions {
    const { options } = this.#services;
    return Object.freeze({
      lockTimeoutMs: options.orchestratorLockTimeoutMs,
      pollTimeoutMs: options.longPollTimeoutMs,
      capability: Object.freeze({ supportedVersions: Object.freeze([options.supportedReplayVersions]) }),
      dispatcherId: slot,
      warm: this.#warm.marks,
      signal: this.#stopping.signal,
    });
  }

  async #step(slot: string, options: FetchOrchestrationOptions): Promise<"worked" | "idle"> {
    const locked = await this.#services.provider.fetchOrchestrationItem(options);
    if (locked === null) return "idle";
    const held = new HeldOrchestrationItem(this.#services, locked, slot);
    try {
      let decision: TurnDecision;
      try {
        decision = this.#stopping.signal.aborted ? SHUTTING_DOWN : await this.#turn.decide(held.item, held.attempt); // D4
      } catch (error) {
        decision = this.#undecided(slot, held, error);
      }
      if (decision.kind === "abandon") await this.#abandon(held, decision);
      else {
        const end = await this.#commit(held, decision);
        if (end.kind !== "acked") await this.#notCommitted(held, end);
      }
    } finally {
      held.release();
    }
    return "worked";
  }

  /** What fails here is the store, or a bug of ours: given back either way, and poison if it never passes. D1 */
  #undecided(slot: string, held: HeldOrchestrationItem, error: unknown): Abandon {
    const decision = this.#storeFailed(held.attempt, error);
    if (!(error instanceof ProviderError)) {
      this.#services.emit({ type: "loop-failed", loop: slot, error, retryInMs: decision.delayMs });
    }
    return decision;
  }

  #commit(held: HeldOrchestrationItem, decision: Commit): Promise<AckEnd> {
    const { live } = decision;
    if (live !== null) this.#warm.put(live, held.lockToken); // D2
    return held.ack(decision.commit, () => this.#committed(held, decision));
  }

  async #notCommitted(held: HeldOrchestrationItem, end: Exclude<AckEnd, { kind: "acked" }>): Promise<void> {
    this.#warm.discard(held.item.instance, held.lockToken); // D2
    if (end.kind === "failed") return this.#abandon(held, this.#storeFailed(held.attempt, end.error));
    this.#services.emit({ type: "turn-lock-lost", instanceId: held.item.instance });
  }

  #committed(held: HeldOrchestrationItem, decision: Commit): void {
    const { emit, clock } = this.#services;
    const { commit, turn, facts } = decision;
    const durationMs = clock.now() - held.since;
    this.#storeFailures = 0;
    if (commit.cancelledActivities.length > 0) this.#hooks.onActivitiesCancelled(commit.cancelledActivities); // D3
    if (turn !== null) {
      const { ref, isWarm, initiatedBy } = turn;
      if (initiatedBy !== null) emit({ type: "orchestration-started", ref, initiatedBy });
      const newEvents = commit.events.length;
      const messages = held.item.messages.length;
      emit({ type: "turn-committed", ref, durationMs, newEvents, messages, isWarm });
      for (const fact of this.#missing.among(commit.workerItems, ref)) emit(fact);
    }
    for (const fact of facts) emit(fact);
  }

  async #abandon(held: HeldOrchestrationItem, decision: Abandon): Promise<void> {
    const { why, message, delayMs, countsAttempt } = decision;
    await held.abandon({ ...(delayMs > 0 ? { delayMs } : {}), ...(countsAttempt ? {} : { ignoreAttempt: true }) });
    const { item, attempt } = held;
    this.#services.emit({ type: "turn-abandoned", instanceId: item.instance, why, attempt, delayMs, message });
  }

  /** D5: a store that is full or out of reach, or a key that is missing, may be so for hours, and no instance is to blame. */
  #storeFailed(attempt: number, error: unknown): Abandon {
    const isPassing = isStoreTrouble(error);
    if (isPassing) this.#storeFailures += 1;
    const failures = isPassing ? this.#storeFailures : attempt;
    const delayMs = unregisteredDelayMs(this.#services.options.unregisteredBackoff, failures);
    return { kind: "abandon", why: "store-failed", message: messageOf(error), delayMs, countsAttempt: !isPassing };
  }
}

const SHUTTING_DOWN: Abandon = {
  kind: "abandon",
  why: "shutdown",
  message: "This runtime is shutting down.",
  delayMs: 0,
  countsAttempt: false,
};
