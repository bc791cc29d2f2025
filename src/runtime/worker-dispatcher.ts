// runtime/worker-dispatcher.ts — runs activities: many small loops, each one fetch → run → ack.
//
//   D1. Whatever is fetched is acked, abandoned, or taken away from us; nothing is dropped.
//   D2. The order of the questions: is it still wanted (terminated)? can we run it (unregistered)? is it hopeless
//       (poison)? So an unwanted item never counts as poison, and only who can run it judges by its attempts.
//   D3. After `stopFetching` nothing new is begun: an item that a late fetch still brings is given back, uncounted.
//   D4. An activity occupies its slot until it ends, is detached, or `abort` gives its item back.
//   D5. Where there is room for a session, every slot that waits waits for sessions too, because its owner may be any of
//       them; where there is none, none does, for it would claim a session that another worker has room for.
//   D6. A slot asks for the next item together with handing in the outcome of the last one: one commit for both. It begins
//       nothing before that outcome is in.

import { setMaxListeners } from "node:events";
import type { Client } from "../client/client.js";
import { encodeWorkItem } from "../history/codec.js";
import type { ErrorDetails } from "../history/error-details.js";
import { cutFailure } from "../history/failure-size.js";
import type { ActivityExecute } from "../history/work-item.js";
import type { FetchWorkOptions, LockedWorkItem, ScheduledId, SessionFetch } from "../provider/provider.js";
import { activityRef } from "./activity-call.js";
import { ActivityRun } from "./activity-run.js";
import { HeldWorkItem } from "./held-work-item.js";
import type { RuntimeServices } from "./services.js";
import { SessionKeeper, SessionTracker } from "./sessions.js";
import { runSlot } from "./slot-loop.js";
import { GivenBack, unregisteredDelayMs } from "./unregistered-backoff.js";

interface Slot {
  readonly id: string;
  /** For the sessions that this slot claims. */
  readonly session: SessionFetch;
  /** Ends its wait for work. Used for one wait after the other, until it has ended one. */
  interruption: AbortController;
  /** What it asks for. Null: it has not asked yet. */
  options: FetchWorkOptions | null;
  isWaiting: boolean;
  /** Whether it waits for sessions too. */
  takesSessions: boolean;
  /** The activity that it runs. */
  run: ActivityRun | null;
  /** The outcome of its last activity, as long as it may be on its way. */
  delivery: Promise<void> | null;
}

/** Before a session item that is one session too many is offered again. */
const NO_ROOM_DELAY_MS = 100;

export class WorkerDispatcher {
  readonly #services: RuntimeServices;
  readonly #client: Client;
  readonly #slots: readonly Slot[];
  readonly #sessions: SessionTracker;
  readonly #sessionKeeper: SessionKeeper;
  readonly #givenBack = new GivenBack();
  readonly #stopping = new AbortController();
  readonly #aborting = new AbortController();
  #drained: Promise<void> = Promise.resolve();

  constructor(services: RuntimeServices, deps: { readonly client: Client }) {
    this.#services = services;
    this.#client = deps.client;
    setMaxListeners(0, this.#stopping.signal, this.#aborting.signal); // One for every slot that waits.
    this.#slots = slotsOf(services);
    this.#sessions = new SessionTracker(services.options.maxSessionsPerRuntime);
    this.#sessionKeeper = new SessionKeeper(services, [...new Set(this.#slots.map((slot) => slot.session.ownerId))]);
  }

  start(): void {
    if (this.#slots.length === 0) return;
    this.#sessionKeeper.start();
    const loops = this.#slots.map((slot) => this.#runLoop(slot));
    this.#drained = Promise.all(loops).then(() => this.#sessionKeeper.stop());
  }

  /** Ends the waits for work. What is in progress goes on, its locks and sessions kept. */
  stopFetching(): void {
    this.#stopping.abort();
    for (const { isWaiting, interruption } of this.#slots) if (isWaiting) interruption.abort();
  }

  /** Resolves when, after `stopFetching`, the last activity in progress is over. */
  drained(): Promise<void> {
    return this.#drained;
  }

  /** Tells what still runs to stop, and gives it back at once for others to take; the attempt does not count. */
  async abort(): Promise<void> {
    this.stopFetching();
    this.#aborting.abort();
    for (const { run } of this.#slots) run?.interrupt("shutdown");
    await this.#drained;
  }

  /** A turn of this process has cancelled these. Those that run here hear of it now, not at their next renewal. */
  cancelLocal(ids: readonly ScheduledId[]): void {
    if (ids.length === 0) return;
    const cancelled = new Set(ids.map(scheduledKey));
    for (const { run } of this.#slots) {
      if (run !== null && cancelled.has(scheduledKey(run.item))) run.interrupt("cancelled");
    }
  }

  #runLoop(slot: Slot): Promise<void> {
    return runSlot({
      name: slot.id,
      clock: this.#services.clock,
      emit: this.#services.emit,
      stopping: this.#stopping.signal,
      minPollIntervalMs: this.#services.options.minPollIntervalMs,
      step: () => this.#step(slot),
    }).then(() => slot.delivery ?? undefined);
  }

  async #step(slot: Slot): Promise<"worked" | "idle"> {
    slot.options = this.#fetchOptions(slot);
    slot.isWaiting = true;
    let locked: LockedWorkItem | null;
    try {
      locked = await this.#services.provider.fetchWorkItem(slot.options);
    } finally {
      slot.isWaiting = false;
    }
    const held = locked && new HeldWorkItem(this.#services, locked, slot.id, this.#aborting.signal);
    if (slot.delivery !== null) await slot.delivery; // D6
    slot.delivery = null;
    if (held === null) return slot.interruption.signal.aborted ? "worked" : "idle";
    try {
      await this.#admit(slot, held);
      slot.delivery = slot.run?.delivery ?? null;
    } finally {
      slot.run = null;
      if (slot.delivery === null) held.release();
    }
    return "worked";
  }

  /** As the last time, as long as nobody has ended a wait and there is room for sessions as there was. D5 */
  #fetchOptions(slot: Slot): FetchWorkOptions {
    const takesSessions = !this.#sessions.isFull;
    const isInterrupted = slot.interruption.signal.aborted;
    if (slot.options !== null && !isInterrupted && slot.takesSessions === takesSessions) return slot.options;
    if (isInterrupted) slot.interruption = new AbortController();
    slot.takesSessions = takesSessions;
    const { options } = this.#services;
    return Object.freeze({
      lockTimeoutMs: options.workerLockTimeoutMs,
      pollTimeoutMs: options.longPollTimeoutMs,
      tagFilter: options.tagFilter,
      dispatcherId: slot.id,
      signal: slot.interruption.signal,
      ...(takesSessions ? { session: slot.session } : {}),
    });
  }

  #admit(slot: Slot, held: HeldWorkItem): Promise<void> {
    if (this.#stopping.signal.aborted) return held.abandon({ ignoreAttempt: true }); // D3
    const { sessionId } = held.item;
    return sessionId === undefined ? this.#handle(slot, held) : this.#handleOfSession(slot, held, sessionId);
  }

  async #handleOfSession(slot: Slot, held: HeldWorkItem, sessionId: string): Promise<void> {
    this.#sessionKeeper.claimed();
    if (!this.#sessions.enter(sessionId)) return held.abandon({ delayMs: NO_ROOM_DELAY_MS, ignoreAttempt: true });
    this.#adjustWaits();
    try {
      await this.#handle(slot, held);
      if (slot.run !== null) await slot.run.delivery;
    } finally {
      this.#sessions.leave(sessionId);
      this.#adjustWaits();
    }
  }

  /** D5: a slot says once, as it begins to wait, whether it looks for sessions; one that is wrong by now begins anew. */
  #adjustWaits(): void {
    for (const { isWaiting, takesSessions, interruption } of this.#slots) {
      if (isWaiting && takesSessions === this.#sessions.isFull) interruption.abort();
    }
  }

  #handle(slot: Slot, held: HeldWorkItem): Promise<void> {
    const { options, registry } = this.#services;
    if (held.executionState === "terminated") return this.#skip(slot, held); // D2
    const definition = registry.activity(held.item.name);
    if (definition === null) return this.#postpone(slot, held);
    if (held.attempt > options.maxAttempts) return this.#poison(slot, held, held.attempt, null);

    slot.run = new ActivityRun(this.#services, held, slot.id);
    return slot.run.run(definition, this.#client);
  }

  async #skip(slot: Slot, held: HeldWorkItem): Promise<void> {
    await held.ack(null);
    const ref = activityRef(held.item, held.attempt, slot.id);
    this.#services.emit({ type: "activity-ended", ref, outcome: "skipped", durationMs: 0, details: null });
  }

  async #poison(slot: Slot, held: HeldWorkItem, times: number, obstacle: string | null): Promise<void> {
    const { instance, executionId, id } = held.item;
    const { maxAttempts, limits } = this.#services.options;
    const details = cutFailure(poisonDetails(held.item, times, maxAttempts, obstacle), limits.maxPayloadBytes);
    const end = await held.ack({ type: "ActivityFailed", instance, executionId, id, details });
    if (end !== "acked") return;
    const ref = activityRef(held.item, held.attempt, slot.id);
    this.#services.emit({ type: "activity-poisoned", ref, details });
  }

  /** Not an attempt at it: others may have what is missing here. What nobody ever registers ends as poison. */
  async #postpone(slot: Slot, held: HeldWorkItem): Promise<void> {
    const { unregisteredBackoff, maxAttempts } = this.#services.options;
    const work = scheduledKey(held.item);
    const times = this.#givenBack.count(work);
    if (times > maxAttempts) {
      this.#givenBack.forget(work);
      return this.#poison(slot, held, times, unregistered(held.item.name));
    }
    const delayMs = unregisteredDelayMs(unregisteredBackoff, times);
    await held.abandon({ delayMs, ignoreAttempt: true });
    const ref = activityRef(held.item, held.attempt, slot.id);
    this.#services.emit({ type: "activity-unregistered", ref, delayMs });
  }
}

/** No slots for a runtime that takes or knows no activities: it would only keep them from those that do. */
function slotsOf({ options, runtimeId, registry }: RuntimeServices): readonly Slot[] {
  const { workerNodeId, workerConcurrency, sessionLockTimeoutMs: lockTimeoutMs } = options;
  const count = options.tagFilter.kind === "none" || registry.activityNames().length === 0 ? 0 : workerConcurrency;
  return Array.from({ length: count }, (_, index) => {
    const id = `work-${index}-${workerNodeId ?? runtimeId}`;
    const session = Object.freeze({ ownerId: workerNodeId ?? id, lockTimeoutMs });
    const idle = { options: null, isWaiting: false, takesSessions: true, run: null, delivery: null };
    return { id, session, interruption: new AbortController(), ...idle };
  });
}

function scheduledKey({ instance, executionId, id }: ScheduledId): string {
  return `${executionId}:${id}:${instance}`;
}

function unregistered(name: string): string {
  return `The activity '${name}' is not registered here. Register it with a runtime on this store.`;
}

/** `obstacle`: what kept this runtime from running it; null where it tried and never came to an end. */
function poisonDetails(
  item: ActivityExecute,
  attemptCount: number,
  maxAttempts: number,
  obstacle: string | null,
): ErrorDetails {
  const { instance, executionId, name, id } = item;
  return {
    category: "poison",
    attemptCount,
    maxAttempts,
    messageType: { type: "Activity", instance, executionId, activityName: name, activityId: id },
    message: obstacle ?? encodeWorkItem(item),
  };
}
