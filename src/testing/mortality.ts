// testing/mortality.ts — the death of a process, without one: what a runtime asks of the world, until it is killed.
//
//   M1. What is dead is not told: no call of it is answered, no timer of it fires, and a call on its way to the store
//       may have arrived. Its locks stay until they lapse.
//   M2. A point is passed by every call that comes to it, counted from the moment it was set; the one that is meant dies
//       there, before anything else happens.
//   M3. Burial: when the test is over, what still waits is told that the process is dead, so that nothing outlives it.

import { type Clock, holding, type Timer } from "../clock.js";
import type { ActivityDefinition } from "../define.js";
import { ProviderError } from "../errors.js";
import type { ProviderAdmin } from "../provider/admin.js";
import { type ProviderOperation, ProviderWrapper } from "../provider/kit/provider-wrapper.js";
import type {
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
} from "../provider/provider.js";
import type { ActivityContext } from "../runtime/activity-context.js";

/**
 * Where a runtime can be made to die.
 *
 * - `before-turn`: an instance is locked, its code has not run.
 * - `before-turn-commit`: its code has decided, the store has not heard of it.
 * - `after-turn-commit`: the store has it, the runtime has not heard of it.
 * - `before-activity`: an activity is locked, it has not run.
 * - `before-activity-commit`: it has run, its outcome is not recorded. It will run again.
 * - `after-activity-commit`: its outcome is recorded.
 */
export type CrashPoint =
  | "before-turn"
  | "before-turn-commit"
  | "after-turn-commit"
  | "before-activity"
  | "before-activity-commit"
  | "after-activity-commit";

/** Which of the calls that come to a crash point is meant. */
export interface CrashOptions {
  /** 1: the first from now on. @default 1 */
  readonly nth?: number;
  /** Only what concerns this instance. */
  readonly instanceId?: string;
  /** Only activities of this name; for the points of activities. */
  readonly activity?: string;
}

export const CRASH_POINTS: readonly CrashPoint[] = [
  "before-turn",
  "before-turn-commit",
  "after-turn-commit",
  "before-activity",
  "before-activity-commit",
  "after-activity-commit",
];

/** As long as a runtime may be told to wait for work. Where it is, there is no reason to look again at all. */
export const LONGEST_POLL_MS = 86_400_000;
/** Longer than any test. */
const ENDLESS_POLL_MS = 1_000 * 366 * 86_400_000;

/** What is held under a lock token. */
interface Held {
  readonly instance: string;
  readonly activity: string | null;
}

interface MortalTimer {
  readonly callback: () => void;
  armed: Timer | null;
}

interface Trap {
  readonly point: CrashPoint;
  readonly options: CrashOptions;
  left: number;
  readonly spring: () => void;
}

/** Time as one process sees it: it ends with the process. */
export class MortalClock implements Clock {
  readonly #clock: Clock;
  readonly #timers = new Set<MortalTimer>();
  #isDead = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const timer: MortalTimer = { callback, armed: null };
    this.#timers.add(timer);
    if (!this.#isDead) this.#arm(timer, delayMs);
    return {
      clear: () => {
        this.#timers.delete(timer);
        timer.armed?.clear();
      },
    };
  }

  /** A call on its way to the store may arrive (M1): time waits for it, whoever has died. */
  holdWhile<T>(work: Promise<T>): Promise<T> {
    return holding(this.#clock, work);
  }

  /** M1 */
  die(): void {
    this.#isDead = true;
    for (const { armed } of this.#timers) armed?.clear();
  }

  /** M3: what waited for a time when the process died waits no longer, and whoever is told of the death may need time. */
  bury(): void {
    this.#isDead = false;
    for (const timer of this.#timers) this.#arm(timer, 0);
  }

  #arm(timer: MortalTimer, delayMs: number): void {
    timer.armed = this.#clock.setTimer(delayMs, () => {
      this.#timers.delete(timer);
      timer.callback();
    });
  }
}

/** The store as one process sees it: it falls silent with the process. */
export class MortalProvider extends ProviderWrapper {
  /** Resolves at its death. */
  readonly died: Promise<void>;
  readonly #onDeath: () => void;
  readonly #held = new Map<string, Held>();
  readonly #death = new AbortController();
  #traps: Trap[] = [];
  #silenced: ((error: Error) => void)[] = [];
  #isBuried = false;

  constructor(inner: Provider, onDeath: () => void) {
    super(inner);
    this.#onDeath = onDeath;
    this.died = new Promise((resolve) => {
      this.#death.signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  get isDead(): boolean {
    return this.#death.signal.aborted;
  }

  /** Management is a matter of the store, too. M1 */
  override get admin(): ProviderAdmin | null {
    if (this.inner.admin === null) return null;
    return new Proxy(this.inner.admin, {
      get: (admin, name) => {
        const member: unknown = Reflect.get(admin, name);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => this.#unlessDead(async () => Reflect.apply(member, admin, args));
      },
    });
  }

  /** An activity that does not begin in a dead process. M1 */
  mortal(definition: ActivityDefinition): ActivityDefinition {
    if (definition?.kind !== "activity") return definition;
    return Object.freeze({
      ...definition,
      run: (ctx: ActivityContext, input: unknown) => (this.isDead ? this.#silence() : definition.run(ctx, input)),
    });
  }

  /** Resolves when the process has died there. */
  trap(point: CrashPoint, options: CrashOptions): Promise<void> {
    return new Promise((spring) => {
      this.#traps.push({ point, options, left: options.nth ?? 1, spring });
    });
  }

  /** M1 */
  die(): void {
    if (this.isDead) return;
    this.#death.abort();
    this.#onDeath();
  }

  /** M3 */
  bury(): void {
    this.#isBuried = true;
    for (const tell of this.#silenced) tell(killed());
    this.#silenced = [];
  }

  override async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const locked = await super.fetchOrchestrationItem({ ...options, ...this.#whileAlive(options) });
    if (locked === null) return null;
    this.#held.set(locked.lockToken, { instance: locked.item.instance, activity: null });
    return this.#passed("before-turn", locked.lockToken) ? this.#silence() : locked;
  }

  override async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    const locked = await super.fetchWorkItem({ ...options, ...this.#whileAlive(options) });
    if (locked === null) return null;
    this.#held.set(locked.lockToken, { instance: locked.item.instance, activity: locked.item.name });
    return this.#passed("before-activity", locked.lockToken) ? this.#silence() : locked;
  }

  override async ackOrchestrationItem(...args: Parameters<Provider["ackOrchestrationItem"]>): Promise<void> {
    if (this.#passed("before-turn-commit", args[0])) return this.#silence();
    await super.ackOrchestrationItem(...args);
    if (this.#passed("after-turn-commit", args[0])) return this.#silence();
    this.#held.delete(args[0]);
  }

  override async ackWorkItem(...args: Parameters<Provider["ackWorkItem"]>): Promise<void> {
    if (this.#passed("before-activity-commit", args[0])) return this.#silence();
    await super.ackWorkItem(...args);
    if (this.#passed("after-activity-commit", args[0])) return this.#silence();
    this.#held.delete(args[0]);
  }

  /** M1 */
  protected override around<T>(_operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    return this.#unlessDead(call);
  }

  async #unlessDead<T>(call: () => Promise<T>): Promise<T> {
    if (this.isDead) return this.#silence();
    const [answer] = await Promise.allSettled([call()]);
    if (this.isDead) return this.#silence();
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  }

  /** Nobody claims work for the dead: a fetch that waits ends with them. */
  #whileAlive(options: Pick<FetchWorkOptions, "pollTimeoutMs" | "signal">): typeof options {
    const { pollTimeoutMs = 0, signal } = options;
    return {
      pollTimeoutMs: pollTimeoutMs < LONGEST_POLL_MS ? pollTimeoutMs : ENDLESS_POLL_MS,
      signal: signal === undefined ? this.#death.signal : AbortSignal.any([signal, this.#death.signal]),
    };
  }

  /** Whether this was the end. M2 */
  #passed(point: CrashPoint, lockToken: string): boolean {
    const held = this.#held.get(lockToken);
    const sprung = this.#traps.filter((trap) => trap.point === point && isMeant(trap.options, held)).filter(countDown);
    if (sprung.length === 0) return false;
    this.#traps = this.#traps.filter((trap) => !sprung.includes(trap));
    this.die();
    for (const trap of sprung) trap.spring();
    return true;
  }

  #silence(): Promise<never> {
    return new Promise((_resolve, reject) => {
      if (this.#isBuried) reject(killed());
      else this.#silenced.push(reject);
    });
  }
}

function isMeant({ instanceId, activity }: CrashOptions, held: Held | undefined): boolean {
  if (instanceId !== undefined && held?.instance !== instanceId) return false;
  return activity === undefined || held?.activity === activity;
}

/** Whether this was the last one to be let through. */
function countDown(trap: Trap): boolean {
  trap.left -= 1;
  return trap.left <= 0;
}

function killed(): ProviderError {
  return new ProviderError("lock-lost", "provider", "this runtime was killed by its test");
}
