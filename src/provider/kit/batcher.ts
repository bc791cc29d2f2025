// provider/kit/batcher.ts — gathers the calls that are pending at one moment, so that a store executes them as one.
//
//   B1. What is pending when the event loop comes round goes together, in the order of submission. Not earlier: a flush by
//       microtask would starve timers. Not later, unless somebody is known to come (B10): waiting for more costs more than it gathers.
//   B2. Each call has its own outcome: a refused one does not touch its neighbours.
//   B3. A batch that fails as a whole is run call by call where the fault may be one call's alone, so that only that one
//       fails. What is transient fails all alike.
//   B4. Calls with one key never share a batch, and one begins only when the one before it has ended. Others may overtake
//       them. Nothing else changes the order in which calls begin.
//   B5. Every call is answered: also when what it is run by is wrong.
//   B6. Calls of one lane begin in the order in which they came: they may share a batch, and are never in two at once.
//   B7. A call may be answered before its batch is over. That answer counts, and leaves its key and its place in its lane to the next.
//   B8. Where more is pending than one batch takes, the next begins when the event loop comes round again, if it need not wait (B10): it is
//       put together while the one before is executed.
//   B9. A batch takes no more than its share, and at least one call where no other batch is on its way: else nobody would begin it.
//  B10. Calls may wait for others some rounds of the event loop longer, which are short where there is nothing else to do. As soon as one has waited
//       enough, or there are as many as a batch takes, they go. Rounds count while another batch may begin: those who are known to come do so
//       after an answer.

import { InvalidOptionsError, MisuseError, ProviderError } from "../../errors.js";
import { checkOptions, integerBetween, isFunction } from "../../options.js";

/**
 * How one call of a batch ended.
 *
 * @example
 * const outcomes: readonly Outcome<string>[] = [{ value: "written" }, { error: lockLost("ackWorkItem", "token-7") }];
 */
export type Outcome<R> = { readonly value: R } | { readonly error: unknown };

/**
 * How a `Batcher` gathers, and what it does with what it has gathered.
 *
 * @example
 * const options: BatcherOptions<string, number> = {
 *   run: (texts) => texts.map((text) => ({ value: text.length })),
 *   maxCalls: 50,
 *   keyOf: (text) => text,
 * };
 */
export interface BatcherOptions<Call, R> {
  /**
   * Executes the calls as one; answers for each, in their order. A rejection means: none of them took effect, or nobody
   * knows. Whoever knows the outcome of one call before that of the others may tell it by `answer`, with its place; that one
   * counts, and is not run again.
   */
  readonly run: (
    calls: readonly Call[],
    answer: (place: number, outcome: Outcome<R>) => void,
  ) => Promise<readonly Outcome<R>[]> | readonly Outcome<R>[];
  /** @default 200 */
  readonly maxCalls?: number;
  /** How many batches may be on their way at once. @default 1 */
  readonly maxInFlight?: number;
  /**
   * How many calls the next batch takes at the most, where so many wait and so many are on their way. 0: none, until one that is on its way has
   * ended. @default (waiting, inFlight) => Infinity
   */
  readonly shareOf?: (waiting: number, inFlight: number) => number;
  /**
   * How many rounds of the event loop this call waits for others that are about to come, once a batch may begin, beside the one that all
   * wait; 100 at the most. It goes sooner with one that waits less long, or where `maxCalls` wait. @default (call) => 0
   */
  readonly roundsOf?: (call: Call) => number;
  /** Sum of `sizeOf` in one batch; a single larger call goes alone. @default no limit */
  readonly maxBytes?: number;
  readonly sizeOf?: (call: Call) => number;
  /** Calls with the same key never share a batch and run in the order in which they came. Null: no key. @default no keys */
  readonly keyOf?: (call: Call) => string | null;
  /**
   * Calls of the same lane take effect in the order in which they came, and may share a batch. It matters where several
   * batches may be on their way. Null: no lane. @default no lanes
   */
  readonly laneOf?: (call: Call) => string | null;
  /**
   * Whether, after a rejection of a batch of several, its calls are to be run one by one (the fault may be one call's
   * alone). Not for what is transient. @default (error) => !(error instanceof ProviderError && error.retryable)
   */
  readonly runsSingly?: (error: unknown) => boolean;
  /** What the caller is told instead of an error that concerns its call. @default the error itself */
  readonly errorOf?: (call: Call, error: unknown) => unknown;
  /** Called after calls were answered. @default nothing */
  readonly onAnswered?: () => void;
}

interface Pending<Call, R> {
  readonly call: Call;
  readonly key: string | null;
  readonly lane: string | null;
  readonly bytes: number;
  /** How many more it waits for others. B10 */
  rounds: number;
  readonly resolve: (value: R) => void;
  /** Tells the caller this very error: see `#refuse`. */
  readonly reject: (error: unknown) => void;
  isAnswered: boolean;
}

const DEFAULTS = Object.freeze({
  /** A few hundred calls share the price of a commit as well as thousands do, and the others wait less long. */
  maxCalls: 200,
  /** Whoever can execute several at once says so. */
  maxInFlight: 1,
  shareOf: () => Number.POSITIVE_INFINITY,
  roundsOf: () => 0,
  maxBytes: Number.POSITIVE_INFINITY,
  sizeOf: () => 0,
  keyOf: () => null,
  laneOf: () => null,
  runsSingly: (error: unknown) => !(error instanceof ProviderError && error.retryable),
  errorOf: (_call: unknown, error: unknown) => error,
  onAnswered: () => {},
});

/** Whatever is said: nobody waits for ever. B10 */
const MOST_ROUNDS = 100;

const isPositive = integerBetween(1, Number.MAX_SAFE_INTEGER);

// Captured at load, so that the fake timers of a test framework do not keep calls waiting.
const immediate = setImmediate;

/**
 * Executes calls that are pending at one moment as one transaction or one round trip: hundreds of concurrent calls then
 * cost one commit. Each caller waits for, and hears of, its own call only.
 *
 * @example
 * const batcher = new Batcher<string, number>({
 *   run: async (texts) => texts.map((text) => ({ value: text.length })), // one transaction, one commit
 * });
 * const [first, second] = await Promise.all([batcher.submit("one"), batcher.submit("three")]);
 * report([first, second]);
 * await batcher.idle(); // before the store is closed
 */
export class Batcher<Call, R> {
  readonly #options: Required<BatcherOptions<Call, R>>;
  /** In the order of submission. */
  #waiting: Pending<Call, R>[] = [];
  #inFlight = 0;
  #callsInFlight = 0;
  readonly #keysInFlight = new Set<string>();
  /** How many calls of each are on their way. */
  readonly #lanesInFlight = new Map<string, number>();
  #isScheduled = false;
  readonly #idleListeners: (() => void)[] = [];

  /** @throws DUROXIDE_INVALID_OPTIONS */
  constructor(options: BatcherOptions<Call, R>) {
    checkBatcherOptions(options);
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    this.#options = { ...DEFAULTS, ...Object.fromEntries(given), run: options.run };
  }

  /** Resolves to the value of the call's outcome, once its batch has come back; rejects with its error. */
  submit(call: Call): Promise<R> {
    return new Promise((resolve, reject) => {
      const { keyOf, laneOf, sizeOf, roundsOf } = this.#options;
      const [key, lane, bytes] = [keyOf(call), laneOf(call), sizeOf(call)];
      const rounds = Math.min(roundsOf(call), MOST_ROUNDS);
      this.#waiting.push({ call, key, lane, bytes, rounds, resolve, reject, isAnswered: false });
      this.#schedule();
    });
  }

  /** Whether a batch is on its way. */
  get isBusy(): boolean {
    return this.#inFlight > 0;
  }

  /** Resolves when nothing is pending. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idleListeners.push(resolve);
      this.#reportIdle();
    });
  }

  /** After a batch has come back, too: whoever it answered may have more to ask, and joins. B1 */
  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#inFlight >= this.#options.maxInFlight) return;
    this.#isScheduled = true;
    immediate(() => this.#comesRound());
  }

  #comesRound(): void {
    if (this.#waitsForOthers()) {
      immediate(() => this.#comesRound());
      return;
    }
    this.#isScheduled = false;
    this.#flush();
  }

  /** B10 */
  #waitsForOthers(): boolean {
    if (this.#waiting.length === 0 || this.#waiting.length >= this.#options.maxCalls) return false;
    if (!this.#waiting.every(({ rounds }) => rounds > 0)) return false;
    for (const pending of this.#waiting) pending.rounds -= 1;
    return true;
  }

  /** B8 */
  #flush(): void {
    const batch = this.#gather();
    if (batch.length === 0) return;
    this.#start(batch);
    this.#schedule();
  }

  /** Takes what goes next: the oldest, as many as fit, but for those whose key (B4) or lane (B6) somebody has. */
  #gather(): readonly Pending<Call, R>[] {
    const { maxBytes } = this.#options;
    const maxCalls = this.#share();
    if (maxCalls < 1) return [];
    const batch: Pending<Call, R>[] = [];
    const left: Pending<Call, R>[] = [];
    const lanesLeft = new Set<string>();
    let bytes = 0;
    let isFull = false;
    for (const pending of this.#waiting) {
      const { key, lane } = pending;
      const isHeld =
        (key !== null && this.#keysInFlight.has(key)) ||
        (lane !== null && (this.#lanesInFlight.has(lane) || lanesLeft.has(lane)));
      // What does not fit ends the batch, lest smaller ones overtake it for ever.
      const fits = batch.length === 0 || (batch.length < maxCalls && bytes + pending.bytes <= maxBytes);
      isFull ||= !isHeld && !fits;
      if (isHeld || isFull) {
        left.push(pending);
        if (lane !== null) lanesLeft.add(lane);
        continue;
      }
      batch.push(pending);
      bytes += pending.bytes;
      if (key !== null) this.#keysInFlight.add(key);
    }
    for (const { lane } of batch) {
      if (lane !== null) this.#lanesInFlight.set(lane, (this.#lanesInFlight.get(lane) ?? 0) + 1);
    }
    this.#waiting = left;
    return batch;
  }

  /** How many calls the next batch may take. B9 */
  #share(): number {
    const { maxCalls, shareOf } = this.#options;
    let share: number;
    try {
      share = shareOf(this.#waiting.length, this.#callsInFlight);
    } catch {
      return maxCalls; // B5: nobody is to blame, and all of them are to be answered.
    }
    if (!(share < maxCalls)) return maxCalls; // Nor is it a number, perhaps.
    return this.#inFlight > 0 ? share : Math.max(1, share);
  }

  #start(batch: readonly Pending<Call, R>[]): void {
    this.#inFlight += 1;
    this.#callsInFlight += batch.length;
    void this.#execute(batch)
      .catch((bug: unknown) => this.#refuseAll(batch, bug)) // B5
      .finally(() => {
        this.#inFlight -= 1;
        this.#callsInFlight -= batch.length;
        this.#schedule();
        this.#reportIdle();
      });
  }

  /** Whoever comes next may begin. B4, B6 */
  #leave({ key, lane }: Pending<Call, R>): void {
    if (key !== null) this.#keysInFlight.delete(key);
    if (lane === null) return;
    const left = this.#lanesInFlight.get(lane)! - 1;
    if (left > 0) this.#lanesInFlight.set(lane, left);
    else this.#lanesInFlight.delete(lane);
  }

  async #execute(batch: readonly Pending<Call, R>[]): Promise<void> {
    let outcomes: readonly Outcome<R>[];
    try {
      const answer = (place: number, outcome: Outcome<R>): void => {
        this.#settle(batch[place]!, outcome);
        this.#schedule(); // B7
      };
      outcomes = await this.#options.run(
        batch.map(({ call }) => call),
        answer,
      );
    } catch (error) {
      if (batch.length === 1 || !this.#options.runsSingly(error)) return this.#refuseAll(batch, error);
      for (const pending of batch) if (!pending.isAnswered) await this.#execute([pending]); // B3
      return;
    }
    if (outcomes.length !== batch.length) throw wrongNumber(batch.length, outcomes.length);
    for (let place = 0; place < batch.length; place += 1) this.#settle(batch[place]!, outcomes[place]!); // B2
    this.#options.onAnswered();
  }

  #settle(pending: Pending<Call, R>, outcome: Outcome<R>): void {
    if (pending.isAnswered) return;
    if ("error" in outcome) return this.#refuse(pending, outcome.error);
    pending.isAnswered = true;
    this.#leave(pending);
    pending.resolve(outcome.value);
  }

  #refuseAll(batch: readonly Pending<Call, R>[], error: unknown): void {
    for (const pending of batch) this.#refuse(pending, error);
  }

  #refuse(pending: Pending<Call, R>, error: unknown): void {
    if (pending.isAnswered) return;
    pending.isAnswered = true;
    this.#leave(pending);
    let told = error;
    try {
      told = this.#options.errorOf(pending.call, error);
    } catch {
      // B5: then it is told as it is.
    }
    pending.reject(told);
  }

  #reportIdle(): void {
    if (this.#waiting.length > 0 || this.#inFlight > 0) return;
    for (const listener of this.#idleListeners.splice(0)) listener();
  }
}

function checkBatcherOptions<Call, R>(options: BatcherOptions<Call, R>): void {
  checkOptions("Batcher", options, {
    run: isFunction,
    maxCalls: isPositive,
    maxInFlight: isPositive,
    shareOf: isFunction,
    roundsOf: isFunction,
    maxBytes: isPositive,
    sizeOf: isFunction,
    keyOf: isFunction,
    laneOf: isFunction,
    runsSingly: isFunction,
    errorOf: isFunction,
    onAnswered: isFunction,
  });
  if (options?.run === undefined) throw new InvalidOptionsError("Batcher: option 'run' is missing.");
  if (options.maxBytes !== undefined && options.sizeOf === undefined) {
    throw new InvalidOptionsError("Batcher: 'maxBytes' says nothing without 'sizeOf'.");
  }
}

/** They may all have taken effect, and nobody can tell which outcome is whose. */
function wrongNumber(calls: number, outcomes: number): MisuseError {
  return new MisuseError(`Batcher: 'run' was handed ${calls} calls and answered with ${outcomes} outcomes.`);
}
