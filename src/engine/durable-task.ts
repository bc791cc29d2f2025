// engine/durable-task.ts — what `ctx` hands out: a thenable whose outcome comes from history, one delivery at a time.
//
//   T1. A task settles at most once, and only inside a turn of its execution.
//   T2. Nobody awaiting a failed task is no unhandled rejection: every promise derived here is born handled.
//   T3. `settle` tells its observers synchronously, before any reaction of user code runs: a race is decided, and its
//       losers are dropped, at the moment of delivery.
//   T4. A wait (`waitForEvent`, `dequeueEvent`) is delivered only once somebody listens: a value nobody observed
//       stays in its lane.

/**
 * Work that is recorded in the history. Await it, or combine it with `Promise.all` and friends; `ctx.all` and
 * `ctx.race` can also cancel.
 *
 * @example
 * const charging = ctx.scheduleActivity(charge, order); // scheduled here, not at the await
 * await ctx.scheduleTimer("1m");
 * charging.cancel();
 */
export interface DurableTask<T> extends Promise<T> {
  /**
   * Gives the work up: a queued activity never runs, a running one has its signal aborted, a child is cancelled, a
   * wait leaves its place. Does nothing once the task is done. Awaiting a cancelled task throws TaskCancelledError.
   */
  cancel(): void;
}

export type Outcome<T> =
  | { readonly status: "fulfilled"; readonly value: T }
  | { readonly status: "rejected"; readonly error: unknown };

/** What stands behind a task: told when somebody starts to listen, and when the task is given up. */
export interface TaskOwner {
  /** Somebody listens. Answers an error if that is not allowed now (outside a turn); the listener gets it. */
  onListen(): Error | null;
  /** Code gives the task up. Without effect where code may not run. */
  onDrop(): void;
}

export function isDurableTask(value: unknown): value is Task<unknown> {
  return Task.isOne(value);
}

export class Task<T> implements DurableTask<T> {
  readonly [Symbol.toStringTag] = "DurableTask";
  readonly #owner: TaskOwner;
  #outcome: Outcome<T> | null = null;
  #observers: ((outcome: Outcome<T>) => void)[] | null = null;
  #promise: Promise<T> | null = null;
  #resolve: ((value: T) => void) | null = null;
  #reject: ((error: unknown) => void) | null = null;

  constructor(owner: TaskOwner) {
    this.#owner = owner;
  }

  /** Whatever it says that it is: nobody else can have this field. */
  static isOne(value: unknown): value is Task<unknown> {
    return typeof value === "object" && value !== null && #owner in value;
  }

  get outcome(): Outcome<T> | null {
    return this.#outcome;
  }

  settle(outcome: Outcome<T>): void {
    if (this.#outcome !== null) return; // T1
    this.#outcome = outcome;
    const observers = this.#observers;
    this.#observers = null;
    for (const observer of observers ?? []) observer(outcome); // T3
    if (this.#promise !== null) this.#release(outcome);
  }

  /** Observes from within the engine, synchronously at delivery; at once if it is settled already. */
  observe(observer: (outcome: Outcome<T>) => void): void {
    if (this.#outcome !== null) return observer(this.#outcome);
    const refusal = this.#owner.onListen();
    if (refusal !== null) return observer({ status: "rejected", error: refusal });
    this.#observers ??= [];
    this.#observers.push(observer);
  }

  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const refusal = this.#owner.onListen();
    const source = refusal === null ? this.#native() : Promise.reject<T>(refusal);
    const derived = source.then(onFulfilled, onRejected);
    derived.then(undefined, ignore); // T2
    return derived;
  }

  catch<B = never>(onRejected?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then(
      async (value) => {
        await onFinally?.();
        return value;
      },
      async (error) => {
        await onFinally?.();
        throw error;
      },
    );
  }

  cancel(): void {
    if (this.#outcome === null) this.#owner.onDrop();
  }

  #native(): Promise<T> {
    if (this.#promise === null) {
      this.#promise = new Promise<T>((resolve, reject) => {
        this.#resolve = resolve;
        this.#reject = reject;
      });
      if (this.#outcome !== null) this.#release(this.#outcome);
    }
    return this.#promise;
  }

  #release(outcome: Outcome<T>): void {
    if (outcome.status === "fulfilled") this.#resolve?.(outcome.value);
    else this.#reject?.(outcome.error);
  }
}

function ignore(): void {}
