// runtime/activity-run.ts — one run of an activity: started, perhaps interrupted, delivered or given up.
//
//   A1. Once interrupted, whatever the activity still does or answers is ignored for good.
//   A2. The activity hears of it through its signal, and has the grace period to come to an end; then it is detached:
//       JavaScript cannot stop it, but its slot is free.
//   A3. An item is removed without a completion only where the store has said that its execution is over.
//   A4. An activity that has answered is no longer interrupted: its result is on its way.

import type { Client } from "../client/client.js";
import type { ActivityDefinition } from "../define.js";
import { ActivityCancelledError, unreachable } from "../errors.js";
import type { ErrorDetails } from "../history/error-details.js";
import type { ActivityExecute } from "../history/work-item.js";
import type { ActivityRef, Fact } from "../observer.js";
import { type ActivityAnswer, activityRef, CallContext, Cancellation, callActivity } from "./activity-call.js";
import type { AckEnd, HeldWorkItem, Withdrawal, WithdrawalListener } from "./held-work-item.js";
import type { RuntimeServices } from "./services.js";

export type Interruption = Withdrawal | "shutdown";

const NOT_STORED: ErrorDetails = Object.freeze({
  category: "infrastructure",
  operation: "ackWorkItem",
  message: "the store did not take the completion; the activity will be run again",
  retryable: true,
});

type RunEnd = Pick<Extract<Fact, { type: "activity-ended" }>, "outcome" | "details" | "error">;

const nothing = (): void => {};

export class ActivityRun implements WithdrawalListener {
  readonly #services: RuntimeServices;
  readonly #held: HeldWorkItem;
  readonly #ref: ActivityRef;
  readonly #cancellation = new Cancellation();
  readonly #startedAt: number;
  #onInterrupted = nothing;
  #interruption: Interruption | null = null;
  #hasAnswered = false;
  #hasGrace = true;
  #endGrace = nothing;
  #delivery: Promise<void> | null = null;

  constructor(services: RuntimeServices, held: HeldWorkItem, workerId: string) {
    this.#services = services;
    this.#held = held;
    this.#ref = activityRef(held.item, held.attempt, workerId);
    this.#startedAt = services.clock.now();
    held.listen(this);
  }

  get item(): ActivityExecute {
    return this.#held.item;
  }

  /** The outcome on its way to the store, once the activity is over; the item is then released. Never rejects. Null: there is none. */
  get delivery(): Promise<void> | null {
    return this.#delivery;
  }

  /** Resolves when the activity is over. Its outcome may then still be on its way. */
  async run(definition: ActivityDefinition, client: Client): Promise<void> {
    const { emit, options } = this.#services;
    emit({ type: "activity-started", ref: this.#ref });
    const context = new CallContext(this.#ref, this.item, { client, emit, cancellation: this.#cancellation });
    const call = callActivity(definition, context, this.item, options.limits.maxPayloadBytes);
    const answer = await this.#unlessInterrupted(call);
    if (answer === null) return this.#giveUp(call); // A1
    this.#hasAnswered = true;
    this.#delivery = this.#deliver(answer, this.#durationMs());
  }

  /** Null: it was interrupted first. */
  #unlessInterrupted(call: Promise<ActivityAnswer>): Promise<ActivityAnswer | null> {
    return new Promise((resolve) => {
      this.#onInterrupted = () => resolve(null);
      if (this.#interruption !== null) this.#onInterrupted();
      else void call.then(resolve);
    });
  }

  #deliver(answer: ActivityAnswer, durationMs: number): Promise<void> {
    return this.#held.ack(answer.completion).then((ackEnd) => {
      this.#tellEnd(runEnd(answer, ackEnd), durationMs);
      this.#held.release();
    });
  }

  async #giveUp(call: Promise<unknown>): Promise<void> {
    const end = await this.#windDown(call);
    this.#tellEnd(end, this.#durationMs());
  }

  #durationMs(): number {
    return this.#services.clock.now() - this.#startedAt;
  }

  #tellEnd(end: RunEnd, durationMs: number): void {
    this.#services.emit({ type: "activity-ended", ref: this.#ref, durationMs, ...end });
  }

  /** The first interruption counts. A shutdown also cuts the grace period of an earlier one short. */
  interrupt(why: Interruption): void {
    if (this.#hasAnswered) return; // A4
    if (why === "shutdown") {
      this.#hasGrace = false;
      this.#endGrace();
    }
    if (this.#interruption !== null) return;
    this.#interruption = why;
    this.#cancellation.abort(cancellationError(this.#ref, why)); // A2
    this.#onInterrupted();
  }

  async #windDown(call: Promise<unknown>): Promise<RunEnd> {
    if (this.#interruption === "shutdown") {
      await this.#held.abandon({ ignoreAttempt: true });
      return { outcome: "abandoned", details: null };
    }
    const hasEnded = this.#hasGrace && (await this.#endsWithinGrace(call));
    if (!hasEnded) {
      const graceMs = this.#services.options.activityCancellationGraceMs;
      this.#services.emit({ type: "activity-detached", ref: this.#ref, graceMs });
    }
    if (this.#interruption === "terminated") await this.#held.ack(null); // A3
    return { outcome: this.#interruption === "lock-lost" ? "lock-lost" : "cancelled", details: null };
  }

  #endsWithinGrace(call: Promise<unknown>): Promise<boolean> {
    const { clock, options } = this.#services;
    return new Promise((resolve) => {
      const end = (hasEnded: boolean): void => {
        timer.clear();
        resolve(hasEnded);
      };
      const timer = clock.setTimer(options.activityCancellationGraceMs, () => end(false));
      this.#endGrace = () => end(false);
      void call.then(() => end(true));
    });
  }
}

function runEnd({ completion, error }: ActivityAnswer, ackEnd: AckEnd): RunEnd {
  if (ackEnd === "abandoned") return { outcome: "abandoned", details: NOT_STORED };
  if (ackEnd !== "acked") return { outcome: ackEnd, details: null };
  return completion.type === "ActivityCompleted"
    ? { outcome: "success", details: null }
    : { outcome: "failed", details: completion.details, error };
}

function cancellationError(ref: ActivityRef, why: Interruption): ActivityCancelledError {
  const activity = `Activity '${ref.activityName}' of instance '${ref.instanceId}'`;
  switch (why) {
    case "terminated":
      return new ActivityCancelledError("cancelled", `${activity} is not wanted any more: its execution is over.`);
    case "cancelled":
      return new ActivityCancelledError(
        "cancelled",
        `${activity} is no longer wanted: its orchestration has cancelled it, or was deleted.`,
      );
    case "lock-lost":
      return new ActivityCancelledError("lock-lost", `${activity} has lost its lock: another worker may run it again.`);
    case "shutdown":
      return new ActivityCancelledError("shutdown", `${activity} is given back: this runtime is shutting down.`);
    default:
      return unreachable(why);
  }
}
