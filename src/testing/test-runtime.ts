// testing/test-runtime.ts — a runtime that a test can stop, kill and start again.

import type { Clock } from "../clock.js";
import { AbortedError, InvalidOptionsError, MisuseError } from "../errors.js";
import { DEFAULT_LIMITS, type Limits } from "../history/limits.js";
import type { Fact, Observer } from "../observer.js";
import { checkOptions, integerBetween, isString, oneOf } from "../options.js";
import type { Provider } from "../provider/provider.js";
import type { Metrics } from "../runtime/metrics.js";
import { Registry } from "../runtime/registry.js";
import { Runtime, type RuntimeStart, type ShutdownOutcome } from "../runtime/runtime.js";
import {
  CRASH_POINTS,
  type CrashOptions,
  type CrashPoint,
  LONGEST_POLL_MS,
  MortalClock,
  MortalProvider,
} from "./mortality.js";

/** What a test runtime runs, and how: as `Runtime.start`, but the store and the time are the world's. */
export interface TestRuntimeStart extends Omit<RuntimeStart, "provider" | "clock" | "newId"> {
  /** In front of the world's store: a wrapper that fails, counts or holds calls. @default the world's store itself */
  readonly provider?: Provider;
}

/** What a world gives to each of its runtimes. */
export interface RuntimeSurroundings {
  readonly provider: Provider;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly note: (fact: Fact, isAlive: () => boolean) => void;
  /** @throws DUROXIDE_MISUSE if the world has ended */
  readonly checkOpen: (what: string) => void;
  /** Lets time pass until the promise settles. */
  readonly settle: <T>(promise: Promise<T>) => Promise<T>;
}

interface Life {
  readonly runtime: Runtime;
  readonly provider: MortalProvider;
  readonly clock: MortalClock;
}

/** Long, so that an idle world passes through years in a few steps. */
const TEST_DEFAULTS = Object.freeze({
  longPollTimeoutMs: LONGEST_POLL_MS,
  sessionCleanupIntervalMs: 86_400_000,
});

const CRASH_CHECKS = { nth: integerBetween(1, 1_000_000_000), instanceId: isString, activity: isString };

/**
 * One worker process of a `TestWorld`: a real `Runtime` that can be killed as `kill -9` would, at any moment or at a chosen
 * point, and started again. `TestWorld.start` makes one.
 *
 * @example
 * const runtime = await world.start({ orchestrations: [checkout], activities: [charge] });
 * const handle = await world.client.start(checkout, { input: order });
 * runtime.kill();
 * await runtime.restart();
 * const receipt = await world.settle(handle.result()); // once its locks have lapsed
 */
export class TestRuntime implements AsyncDisposable {
  readonly #surroundings: RuntimeSurroundings;
  #start: TestRuntimeStart;
  #life: Life | null = null;
  readonly #dead: Life[] = [];
  /** Those that were not reached, in words, by what was promised. */
  readonly #crashPoints = new Map<unknown, { readonly words: string; readonly life: Life }>();

  /** Made by `TestWorld.start`. */
  constructor(surroundings: RuntimeSurroundings, start: TestRuntimeStart) {
    this.#surroundings = surroundings;
    this.#start = start;
  }

  /** The runtime itself. @throws DUROXIDE_MISUSE while it is stopped or dead */
  get runtime(): Runtime {
    return this.#living("runtime").runtime;
  }

  /** Counts since the last start. @throws DUROXIDE_MISUSE while it is stopped or dead */
  get metrics(): Metrics {
    return this.#living("metrics").runtime.metrics;
  }

  /** @internal What it runs, or ran last. */
  get deployed(): { readonly registry: Registry; readonly limits: Limits } {
    const { orchestrations = [], registry = Registry.of({}), limits = {} } = this.#start;
    return { registry: registry.merge({ orchestrations }), limits: { ...DEFAULT_LIMITS, ...limits } };
  }

  /** Whether it takes work now. */
  get isRunning(): boolean {
    return this.#life !== null && !this.#life.provider.isDead;
  }

  /**
   * Dies on the spot: nothing more is committed, nothing is given back, and its locks stay until they lapse. What an
   * activity does meanwhile goes on, because no function can be killed, but nobody hears of it.
   *
   * @throws DUROXIDE_MISUSE while it is stopped or dead
   */
  kill(): void {
    this.#living("kill").provider.die();
  }

  /**
   * Dies when it comes to that point; resolves when that has happened. For `TestWorld.settle`. Forgotten when it dies or
   * stops otherwise.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for a point or an option that does not exist
   * @throws DUROXIDE_MISUSE while it is stopped or dead
   * @example
   * const runtime = await world.start({ orchestrations: [checkout], activities: [charge] });
   * const crashed = runtime.crashAt("before-activity-commit", { activity: "Charge" });
   * await world.client.start(checkout, { instanceId: "order-1", input: order });
   * await world.settle(crashed); // the card is charged, and nobody knows
   * await runtime.restart();
   */
  crashAt(point: CrashPoint, options: CrashOptions = {}): Promise<void> {
    const wrong = oneOf(...CRASH_POINTS)(point);
    if (wrong !== null) throw new InvalidOptionsError(`TestRuntime.crashAt: the point ${wrong}.`);
    checkOptions("TestRuntime.crashAt", options, CRASH_CHECKS);
    if (options.activity !== undefined && !point.includes("activity")) {
      throw new InvalidOptionsError(`TestRuntime.crashAt: option 'activity' means nothing for '${point}'.`);
    }
    const life = this.#living("crashAt");
    const crashed = life.provider.trap(point, options).then(() => void this.#crashPoints.delete(crashed));
    this.#crashPoints.set(crashed, { words: crashPointInWords(point, options, life.runtime.registry), life });
    return crashed;
  }

  /** @internal What is to be said of a promise of `crashAt` that does not settle. Null: it is none. */
  unreachedCrashPoint(promise: unknown): string | null {
    const unreached = this.#crashPoints.get(promise);
    if (unreached === undefined) return null;
    const isForgotten = this.#life !== unreached.life || !this.isRunning;
    const why = isForgotten ? ", and no longer can be: its runtime has died or stopped otherwise" : "";
    return `The crash point ${unreached.words} was not reached${why}.`;
  }

  /**
   * Starts again, after `kill`, `crashAt` or `shutdown`; one that runs is killed first. Nothing of the former life is
   * left but what is in the store. `changes`: what is deployed differently, such as other code.
   *
   * @throws as `Runtime.start`
   */
  async restart(changes: Partial<TestRuntimeStart> = {}): Promise<void> {
    if (this.isRunning) this.kill();
    const before = this.#start;
    this.#start = { ...before, ...changes };
    try {
      await this.begin();
    } catch (error) {
      this.#start = before;
      throw error;
    }
  }

  /**
   * Stops as a deployment would: see `Runtime.shutdown`. Time passes as long as it takes.
   *
   * @throws DUROXIDE_ABORTED if it is killed meanwhile
   * @throws DUROXIDE_MISUSE while it is stopped or dead
   */
  async shutdown(options: { readonly graceMs?: number } = {}): Promise<ShutdownOutcome> {
    const life = this.#living("shutdown");
    const killed = life.provider.died.then(() => null);
    const outcome = await this.#surroundings.settle(Promise.race([life.runtime.shutdown(options), killed]));
    if (outcome === null) throw new AbortedError("TestRuntime.shutdown: the runtime was killed before it had stopped.");
    if (this.#life === life) this.#life = null;
    return outcome;
  }

  /** Ends it, dead or alive. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) await this.shutdown({ graceMs: 0 });
    if (this.#life !== null) this.#dead.push(this.#life);
    this.#life = null;
    for (const life of this.#dead.splice(0)) await this.#bury(life);
  }

  /** @internal What `TestWorld.start` and `restart` do. */
  async begin(): Promise<void> {
    const { provider: store, clock: time, newId, note, checkOpen } = this.#surroundings;
    checkOpen("TestRuntime.restart");
    if (this.#life !== null) this.#dead.push(this.#life);
    this.#life = null;
    const clock = new MortalClock(time);
    const provider = new MortalProvider(this.#start.provider ?? store, () => clock.die());
    const isAlive = (): boolean => !provider.isDead;
    const { observers = [], activities = [] } = this.#start;
    const runtime = await Runtime.start({
      ...TEST_DEFAULTS,
      ...this.#start,
      observers: changed(observers, (given) =>
        [(fact: Fact) => note(fact, isAlive), ...given].map(whoHearsWhile(isAlive)),
      ),
      activities: changed(activities, (given) => given.map((definition) => provider.mortal(definition))),
      provider,
      clock,
      newId,
    });
    this.#life = { runtime, provider, clock };
  }

  async #bury({ runtime, provider, clock }: Life): Promise<void> {
    clock.bury();
    const stopped = runtime.shutdown({ graceMs: 0 });
    provider.bury();
    await this.#surroundings.settle(stopped);
  }

  #living(what: string): Life {
    if (this.#life !== null && this.isRunning) return this.#life;
    throw new MisuseError(`TestRuntime.${what}: the runtime does not run. Call restart() first.`);
  }
}

function crashPointInWords(point: CrashPoint, options: CrashOptions, registry: Registry): string {
  const { activity, instanceId, nth } = options;
  const stranger = activity === undefined || registry.hasActivity(activity) ? "" : ", which this runtime does not have";
  const which = [
    ...(activity === undefined ? [] : [`activity '${activity}'${stranger}`]),
    ...(instanceId === undefined ? [] : [`instance '${instanceId}'`]),
    ...(nth === undefined ? [] : [`nth: ${nth}`]),
  ];
  return `'${point}'${which.length === 0 ? "" : ` (${which.join("; ")})`}`;
}

/** What is no list is left as it is, for `Runtime.start` to refuse. */
function changed<T>(list: readonly T[], change: (list: readonly T[]) => readonly T[]): readonly T[] {
  return Array.isArray(list) ? change(list) : list;
}

function whoHearsWhile(isAlive: () => boolean): (observer: Observer) => Observer {
  return (observer) => {
    if (typeof observer !== "function") return observer;
    return (fact) => (isAlive() ? observer(fact) : undefined);
  };
}
