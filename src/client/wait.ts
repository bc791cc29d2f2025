// client/wait.ts — waits until something is true of an instance: woken where the store can tell, polling where it cannot.
//
//   W1. It listens before it looks: what changes between the look and the pause is not lost.
//   W2. One look at a time. Wakes that come during a look are answered by one more look, however many they are.
//   W3. A wake is a hint. A slow timer looks again even if none comes.
//   W4. A wait holds at most one timer, one watch and one listener on the caller's signal, and none once it is over.
//   W5. The deadline never cuts a look short, so that a timeout of 0 still looks once. An abort does.
//   W6. A look that fails with a transient error is repeated; any other error ends the wait.
//   W7. Whoever is told that the instance has completed need not look for that, nor wait for a look that is under way.
//   W8. Whoever has just started the instance, and has been told of nothing since, has nothing to look for yet: the first look comes
//       a moment later. Mostly the end has been told by then.

import { setMaxListeners } from "node:events";
import type { Clock } from "../clock.js";
import { AbortedError, ProviderError, TimeoutError, unreachable } from "../errors.js";
import { isAbortSignal, type OptionCheck, shown } from "../options.js";
import type { InstanceChange, InstanceCompletion, WakeSource } from "../provider/provider.js";
import type { OrchestrationStatus } from "./status.js";

/** How long to wait, and how to give up. */
export interface WaitOptions {
  /** 0 looks once. @default none: waits for ever */
  readonly timeoutMs?: number;
  /** Gives up the wait; the instance is not touched. */
  readonly signal?: AbortSignal;
}

/** What may stand in WaitOptions, for `checkOptions`. */
export const WAIT_OPTION_CHECKS: Readonly<Record<keyof WaitOptions, OptionCheck>> = Object.freeze({
  timeoutMs: (value: unknown) =>
    typeof value === "number" && value >= 0 ? null : `must be a number of milliseconds, 0 or more, not ${shown(value)}`,
  signal: isAbortSignal,
});

/** What every wait of one client has in common. */
export interface Waiting {
  readonly wake: WakeSource | null;
  readonly clock: Clock;
  /** The longest pause between two looks where there is no `wake`. */
  readonly pollIntervalMs: number;
  /** The longest pause between two looks where there is one. W3 */
  readonly recheckIntervalMs: number;
}

/** When something was so. */
export interface Moment {
  readonly timeMs: number;
  /** All that the wake source had told. */
  readonly changes: number;
}

/** This moment. Null: nobody counts what is told, so that nobody will know whether it has passed. */
export function thisMoment({ wake, clock }: Waiting): Moment | null {
  const changes = wake?.changes;
  return changes === undefined ? null : { timeMs: clock.now(), changes };
}

export interface Wait<T> extends WaitOptions {
  readonly instanceId: string;
  /** What is waited for, as it stands in messages: `the end of instance 'order-1'`. */
  readonly what: string;
  /** Looks once. Null: not yet. */
  readonly look: () => Promise<T | null>;
  /** What a completion answers without a look. W7 @default nothing */
  readonly told?: (completion: InstanceCompletion) => T;
  /** When there was nothing to find, for certain. W8 @default nobody knows */
  readonly startedAt?: Moment | null;
  /** Whether it looks after every turn, too: for those who look at the history. @default false: what clients can ask for */
  readonly watchesTurns?: boolean;
  /** Where the instance stood at the last look, for the message of a timeout. @default not known */
  readonly lastSeen?: () => OrchestrationStatus | null | Promise<OrchestrationStatus | null>;
}

/** Pauses between looks double from the first to the longest. */
interface Pace {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** Beside a wake source, at first. */
const WOKEN_FIRST_MS = 1_000;
/** Before the first look of those who have nothing to look for. Where a wake is lost, it is how late they are. W8 */
const FRESH_MS = 250;
/** For how long a moment counts as this one. Sources that are not told everything hear of others when somebody waits. */
const MOMENT_MS = 10;
/** Without one: a short run is noticed at once, a long one costs ten looks a second at most. */
const POLLING_FIRST_MS = 5;
/** After a transient error: soon, because the wake may have been the last one; then ever more patient with the store. */
const TROUBLED: Pace = { firstMs: 50, longestMs: 5_000 };

/**
 * Resolves to what `look` finds.
 *
 * @throws DUROXIDE_TIMEOUT; its cause is the store's error if the last look failed
 * @throws DUROXIDE_ABORTED; its cause is the signal's reason
 * @throws DUROXIDE_PROVIDER if the store fails for good
 */
export async function waitUntil<T>(waiting: Waiting, wait: Wait<T>): Promise<T> {
  const { wake, clock } = waiting;
  if (wait.signal instanceof AbortSignal) setMaxListeners(0, wait.signal); // One for each of any number of waits (W4).
  const deadline = clock.now() + (wait.timeoutMs ?? Number.POSITIVE_INFINITY);
  const pace: Pace =
    wake === null
      ? { firstMs: POLLING_FIRST_MS, longestMs: waiting.pollIntervalMs }
      : { firstMs: WOKEN_FIRST_MS, longestMs: waiting.recheckIntervalMs };
  const bell = new Bell(clock);
  let quietLooks = 0;
  let failedLooks = 0;
  const completion = wait.told === undefined ? null : new ToldCompletion(wait.told);
  const hear = (change?: InstanceChange): void => {
    if (typeof change === "object") completion?.tell(change);
    if (change !== "turn" || wait.watchesTurns === true) bell.ring();
  };
  const stopWatching = wake?.watchInstance(wait.instanceId, hear); // W1
  try {
    const freshMs = isStill(waiting, wait.startedAt) ? Math.min(FRESH_MS, deadline - clock.now()) : 0;
    if (freshMs > 0) await unlessAborted(wait, () => bell.rung(freshMs)); // W8
    for (;;) {
      bell.reset();
      const seen = await unlessAborted(wait, () => completion?.orElse(() => lookOnce(wait)) ?? lookOnce(wait));
      if (seen.kind === "found") return seen.value;
      const leftMs = deadline - clock.now();
      if (leftMs <= 0) throw await unlessAborted(wait, () => timedOut(wait, seen));
      failedLooks = seen.kind === "failed" ? failedLooks + 1 : 0;
      const pauseMs = seen.kind === "failed" ? pauseOf(TROUBLED, failedLooks - 1) : pauseOf(pace, quietLooks++);
      await unlessAborted(wait, () => bell.rung(Math.min(pauseMs, leftMs))); // W3
    }
  } finally {
    stopWatching?.();
    bell.ring(); // W4: clears the timer of a pause that was given up.
  }
}

/** Whether it is the same moment yet. */
function isStill(waiting: Waiting, moment: Moment | null | undefined): boolean {
  if (moment == null) return false;
  const now = thisMoment(waiting);
  return now?.changes === moment.changes && Math.abs(now.timeMs - moment.timeMs) < MOMENT_MS;
}

/** What is told of a completion. W7 */
class ToldCompletion<T> {
  readonly #answer: (completion: InstanceCompletion) => T;
  #completion: InstanceCompletion | null = null;
  #onTold: (completion: InstanceCompletion) => void = () => {};

  constructor(answer: (completion: InstanceCompletion) => T) {
    this.#answer = answer;
  }

  tell(completion: InstanceCompletion): void {
    this.#completion ??= completion;
    this.#onTold(completion);
  }

  /** What it says, as soon as it is told; or what the look finds before. */
  orElse(look: () => Promise<Seen<T>>): Promise<Seen<T>> {
    if (this.#completion !== null) return this.#found(this.#completion);
    const told = new Promise<Seen<T>>((resolve) => {
      this.#onTold = (completion) => resolve(this.#found(completion));
    });
    return Promise.race([told, look()]);
  }

  async #found(completion: InstanceCompletion): Promise<Seen<T>> {
    return { kind: "found", value: this.#answer(completion) };
  }
}

type Seen<T> =
  | { readonly kind: "found"; readonly value: T }
  | { readonly kind: "nothing" }
  | { readonly kind: "failed"; readonly error: ProviderError };

async function lookOnce<T>(wait: Wait<T>): Promise<Seen<T>> {
  try {
    const value = await wait.look();
    return value === null ? { kind: "nothing" } : { kind: "found", value };
  } catch (error) {
    if (error instanceof ProviderError && error.retryable) return { kind: "failed", error }; // W6
    throw error;
  }
}

function pauseOf(pace: Pace, earlierPauses: number): number {
  return Math.min(pace.firstMs * 2 ** earlierPauses, pace.longestMs);
}

/** Wakes one sleeper. A ring that comes while nobody sleeps is kept for the next one (W2). */
class Bell {
  readonly #clock: Clock;
  #isRung = false;
  #wakeSleeper: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#isRung = true;
    this.#wakeSleeper?.();
    this.#wakeSleeper = null;
  }

  reset(): void {
    this.#isRung = false;
  }

  /** Resolves when it rings, at once if it rang already, or when the time is up. */
  rung(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isRung) return resolve();
      const timer = this.#clock.setTimer(timeoutMs, () => this.ring());
      this.#wakeSleeper = () => {
        timer.clear();
        resolve();
      };
    });
  }
}

/** As `step` does, or AbortedError as soon as the caller's signal fires. */
function unlessAborted<R>(wait: Wait<unknown>, step: () => Promise<R>): Promise<R> {
  const { signal } = wait;
  if (signal === undefined) return step();
  return new Promise((resolve, reject) => {
    const giveUp = (): void =>
      reject(new AbortedError(`Gave up waiting for ${wait.what}: the signal was aborted.`, { cause: signal.reason }));
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    step()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener("abort", giveUp));
  });
}

async function timedOut(wait: Wait<unknown>, seen: Seen<unknown>): Promise<TimeoutError> {
  const text = `Waited ${wait.timeoutMs} ms in vain for ${wait.what}.`;
  if (seen.kind === "failed") {
    return new TimeoutError(`${text} The store failed at the last look. Wait again once it answers.`, {
      cause: seen.error,
    });
  }
  const status = await lastSeen(wait);
  return new TimeoutError(
    `${text} ${status === null ? "Wait again, or look at the status of the instance." : standing(status)}`,
  );
}

/** Null also where the store cannot tell: that the time is up is the news. */
async function lastSeen(wait: Wait<unknown>): Promise<OrchestrationStatus | null> {
  try {
    return (await wait.lastSeen?.()) ?? null;
  } catch {
    return null;
  }
}

/** Where the instance stands, and what to do about it. */
function standing(status: OrchestrationStatus): string {
  switch (status.status) {
    case "NotFound":
      return "It does not exist in this store: check the id, and that client and runtime use the same store.";
    case "Pending":
      return `It is pending: no runtime has taken it yet. Is one running that has registered '${status.orchestrationName}'?`;
    case "Running":
      return "It is running. Wait again, or look at its status and history.";
    case "Completed":
      return "It has completed.";
    case "Failed":
      return `It has failed: ${status.error}`;
    default:
      return unreachable(status);
  }
}
