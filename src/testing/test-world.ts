// testing/test-world.ts — a store, a client and runtimes in virtual time: what tests of orchestrations play in.
//
//   W1. Time passes only in `settle`, `advance` and `run`, from timer to timer: three days take a millisecond. It waits a
//       little for activities that do something real.
//   W2. Everything else is real: the same runtime, client and store as in production.
//   W3. Whatever was started in a world ends with it.

import { Client, type StartArguments } from "../client/client.js";
import type { Clock } from "../clock.js";
import type { OrchestrationDefinition } from "../define.js";
import { type Duration, durationMs } from "../duration.js";
import { InvalidOptionsError, MisuseError, TimeoutError } from "../errors.js";
import type { Event, EventType } from "../history/event.js";
import type { StartOrchestration } from "../history/work-item.js";
import type { Fact, FactType } from "../observer.js";
import { checkOptions, integerBetween, isFunction } from "../options.js";
import { isProvider } from "../provider/is-provider.js";
import type { InstanceStatus, Provider } from "../provider/provider.js";
import { MemoryProvider } from "../providers/memory/index.js";
import { checkWorld } from "./check-world.js";
import { PatientClock } from "./patient-clock.js";
import { StartedInstances } from "./started-instances.js";
import { TestRuntime, type TestRuntimeStart } from "./test-runtime.js";
import { StillPendingError, type VirtualClock } from "./virtual-clock.js";
import { waitInWords } from "./wait-words.js";

/** What a store needs to live in virtual time: hand both to the provider's options. */
export interface StoreTools {
  /** The time of the world. */
  readonly clock: Clock;
  /** Makes ids that are the same in every run of a test. */
  readonly newId: () => string;
}

/** How far a world has come. */
interface Progress {
  readonly nowMs: number;
  readonly timers: number;
  readonly turns: number;
}

/** What a world is made of. */
export interface TestWorldOptions {
  /** Opens the store; the world closes it. @default a MemoryProvider */
  readonly provider?: (tools: StoreTools) => Provider | Promise<Provider>;
  /** When the world begins, in milliseconds since the epoch. @default 1_700_000_000_000 */
  readonly startMs?: number;
  /**
   * How many real milliseconds each run of an activity gets before virtual time moves on without it. For activities that
   * do real I/O, give more than they take; where all are mocked, 0 is fastest. @default 100
   */
  readonly patienceMs?: number;
}

/**
 * A world of its own for a test: a store, a client, and as many runtimes as you start, in virtual time.
 *
 * @example
 * const reminder = orchestration("Reminder", async (ctx, inDays: number) => {
 *   await ctx.scheduleTimer(`${inDays}d`);
 *   return "time to water the plants";
 * });
 * await using world = await TestWorld.open();
 * await world.start({ orchestrations: [reminder] });
 * const text = await world.run(reminder, { input: 3 }); // three days pass in a millisecond
 */
export class TestWorld implements AsyncDisposable {
  readonly clock: VirtualClock;
  /** The store. Wrap it to make it misbehave: `world.start({ provider: new FailingProvider(world.provider) })`. */
  readonly provider: Provider;
  readonly client: Client;
  /** Everything that the runtimes told, in order. */
  readonly facts: Fact[] = [];
  readonly #runtimes: TestRuntime[] = [];
  readonly #started: StartedInstances;
  readonly #newId = guids();
  readonly #patience: PatientClock;
  #turns = 0;
  #hasEnded = false;

  private constructor(clock: PatientClock, provider: Provider) {
    this.clock = clock;
    this.#patience = clock;
    this.provider = provider;
    this.#started = new StartedInstances(provider);
    this.client = new Client(this.#started, {
      clock: clock.housekeeping,
      newId: counter("instance"),
      recheckIntervalMs: DAY_MS,
    });
  }

  /** @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown, or a store that is none */
  static async open(options: TestWorldOptions = {}): Promise<TestWorld> {
    checkOptions("TestWorld.open", options, WORLD_CHECKS);
    const clock = new PatientClock(options.startMs, options.patienceMs ?? DEFAULT_PATIENCE_MS);
    const tools = { clock: clock.housekeeping, newId: counter("token") };
    const provider = await (options.provider?.(tools) ?? new MemoryProvider(tools));
    const wrong = isProvider(provider);
    if (wrong !== null) throw new InvalidOptionsError(`TestWorld.open: what option 'provider' opens ${wrong}.`);
    return new TestWorld(clock, provider);
  }

  /**
   * Starts a runtime in this world. Start several to see how they share the work.
   *
   * @throws as `Runtime.start`
   * @throws DUROXIDE_MISUSE if the world has ended
   */
  async start(start: TestRuntimeStart = {}): Promise<TestRuntime> {
    this.#checkOpen("TestWorld.start");
    const runtime = new TestRuntime(
      {
        provider: this.provider,
        clock: this.#patience.housekeeping,
        newId: this.#newId,
        note: (fact, isAlive) => this.#note(fact, isAlive),
        checkOpen: (what) => this.#checkOpen(what),
        settle: (promise) => this.clock.run(promise),
      },
      start,
    );
    await runtime.begin();
    this.#runtimes.push(runtime);
    return runtime;
  }

  /**
   * Lets time pass until the promise settles, and answers as it does.
   *
   * @throws DUROXIDE_TIMEOUT if it never does; the message names what the instances of this world wait for
   * @example
   * const handle = await world.client.start(checkout, { instanceId: "order-1", input: order });
   * const receipt = await world.settle(handle.result());
   */
  async settle<T>(promise: PromiseLike<T>): Promise<T> {
    const begin: Progress = { nowMs: this.clock.now(), timers: 0, turns: this.#turns };
    let timers = 0;
    let lastTurn = begin;
    for (;;) {
      const { turns } = lastTurn;
      try {
        return await this.clock.run(promise, { maxSteps: STEPS_AT_A_TIME });
      } catch (error) {
        if (!(error instanceof StillPendingError)) throw error;
        timers += error.timers;
        const reached: Progress = { nowMs: this.clock.now(), timers, turns: this.#turns };
        if (reached.turns !== turns) lastTurn = reached;
        const isStuck = lastTurn !== reached && error.timers < STEPS_AT_A_TIME;
        if (!isStuck && (await this.#isWorthWaiting(begin, lastTurn, reached))) continue;
        const { message } = new StillPendingError(timers, reached.nowMs - begin.nowMs);
        const isOutOfReach = lastTurn !== reached && (await this.#nextNewsAt()) < Number.POSITIVE_INFINITY;
        const words = [
          message,
          ...this.#runtimes.map((runtime) => runtime.unreachedCrashPoint(promise)),
          await this.#whatIsWaitedFor(),
          isOutOfReach ? OUT_OF_REACH : null,
        ];
        throw new TimeoutError(words.filter((each) => each !== null).join(" "));
      }
    }
  }

  /** Lets that much time pass, and everything that falls due in it happen. */
  async advance(duration: Duration): Promise<void> {
    await this.clock.advance(durationMs(duration, "TestWorld.advance"));
  }

  /** Lets everything happen that needs no time. */
  async rest(): Promise<void> {
    await this.clock.advance(0);
  }

  /**
   * Starts an orchestration, lets time pass until it has ended, and answers with what it returned.
   *
   * @throws DUROXIDE_ORCHESTRATION_FAILED if it failed
   * @throws DUROXIDE_TIMEOUT if it never ends
   */
  async run<I, O>(orchestration: OrchestrationDefinition<I, O>, ...options: StartArguments<I>): Promise<O> {
    const handle = await this.client.start(orchestration, ...options);
    return this.settle(handle.result());
  }

  /** How the instance ended, as the store has it. Lets time pass until it has. */
  async ending(instanceId: string): Promise<{ readonly status: string; readonly output: string | null }> {
    await this.settle(this.client.waitForOrchestration(instanceId));
    const { status, output } = (await this.provider.getInstanceStatus(instanceId)) as InstanceStatus;
    return { status, output };
  }

  /** The events of an execution, by default of the first. */
  async history(instanceId: string, executionId = 1): Promise<readonly Event[]> {
    return this.client.readHistory(instanceId, executionId);
  }

  /** The kinds of its events, in order. */
  async eventTypes(instanceId: string, executionId = 1): Promise<EventType[]> {
    return (await this.history(instanceId, executionId)).map((event) => event.type);
  }

  /** All facts of a kind that the runtimes told. */
  factsOf<T extends FactType>(type: T): Extract<Fact, { type: T }>[] {
    return this.facts.filter((fact): fact is Extract<Fact, { type: T }> => fact.type === type);
  }

  /**
   * Replays every execution in the store with the code of the runtimes, as they were started last: see `assertDeterministic`.
   * Only instances of which something was pruned are left out: what the rest found in the key-value store is not known.
   *
   * @throws DUROXIDE_REPLAY_DIVERGED with all executions that diverge
   * @throws DUROXIDE_INVALID_HISTORY for a history that is damaged
   * @throws DUROXIDE_INVALID_INPUT for an instance whose orchestration no runtime has
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE if the store cannot list its instances
   * @example
   * await world.run(checkout, { input: order });
   * await world.assertDeterministic();
   */
  async assertDeterministic(): Promise<void> {
    await checkWorld(
      this.provider,
      this.#runtimes.map(({ deployed }) => deployed),
    );
  }

  /** Ends the runtimes, dead or alive, and closes the store. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#hasEnded = true;
    try {
      for (const runtime of this.#runtimes) await runtime[Symbol.asyncDispose]();
    } finally {
      await this.provider[Symbol.asyncDispose]();
    }
  }

  #checkOpen(what: string): void {
    if (this.#hasEnded) throw new MisuseError(`${what}: this world has ended. Open another one.`);
  }

  #note(fact: Fact, isAlive: () => boolean): void {
    this.facts.push(fact);
    this.#patience.note(fact, isAlive);
    if (fact.type === "turn-committed") this.#turns += 1;
  }

  /** There are turns, there were some not long ago, or all that happens are renewals of locks on the way to a timer. */
  async #isWorthWaiting(begin: Progress, lastTurn: Progress, reached: Progress): Promise<boolean> {
    if (reached.turns - begin.turns > MOST_TURNS || reached.timers > MOST_TIMERS) return false;
    const timers = reached.timers - lastTurn.timers;
    if (timers < TIMERS_WITHOUT_A_TURN) return true;
    const passedMs = reached.nowMs - lastTurn.nowMs;
    const newsInMs = (await this.#nextNewsAt()) - reached.nowMs;
    return newsInMs / passedMs < MOST_TIMERS / timers;
  }

  /** When time brings something to those who wait, as far as one can know. */
  async #nextNewsAt(): Promise<number> {
    const times = [this.#patience.nextTimerOfTheTest];
    if (this.#hasEnded || !this.#runtimes.some(({ isRunning }) => isRunning)) return times[0]!;
    for (const instance of await this.#runningInstances()) {
      for (const event of await this.#openWaitsOf(instance)) {
        if (event.type === "TimerCreated" && event.fireAtMs > this.clock.now()) times.push(event.fireAtMs);
      }
    }
    return times.reduce((first, time) => Math.min(first, time), Number.POSITIVE_INFINITY);
  }

  async #whatIsWaitedFor(): Promise<string> {
    if (this.#hasEnded) return "This world has ended: await the promise before it does.";
    if (!this.#runtimes.some(({ isRunning }) => isRunning)) return "No runtime is running in this world: start one.";
    const running = await this.#runningInstances();
    const pending = await this.#started.pending();
    if (running.length + pending.length === 0) return "No instance is running.";
    const waits = await Promise.all(running.slice(0, SHOWN_INSTANCES).map((instance) => this.#waitsOf(instance)));
    const starts = pending.slice(0, SHOWN_INSTANCES).map((start) => this.#whyPending(start));
    return [...(waits.length === 0 ? [] : [`Running: ${waits.join("; ")}.`]), ...starts].join(" ");
  }

  #whyPending({ instance, orchestration, version }: StartOrchestration): string {
    const name = `orchestration '${orchestration}'${version === null ? "" : ` ${version}`}`;
    const isKnown = this.#runtimes.some((each) => {
      return each.isRunning && each.runtime.registry.hasOrchestration(orchestration, version);
    });
    if (!isKnown) return `'${instance}' is pending: no runtime here has ${name}.`;
    return `'${instance}' is pending: ${name} is registered, but no runtime has taken its first turn (a delay that is not over, a lock that is held, orchestrationConcurrency: 0?).`;
  }

  async #runningInstances(): Promise<readonly string[]> {
    return (await this.provider.admin?.listInstancesByStatus("Running")) ?? [];
  }

  async #waitsOf(instanceId: string): Promise<string> {
    const waits = (await this.#openWaitsOf(instanceId)).map((event) => this.#inWords(event));
    return `'${instanceId}' waits for ${waits.length === 0 ? "its next turn" : waits.join(", ")}`;
  }

  /** What was asked for and not answered, in order. */
  async #openWaitsOf(instanceId: string): Promise<readonly Event[]> {
    const open = new Map<number, Event>();
    for (const event of await this.provider.read(instanceId)) {
      if (waitOf(event) !== null) open.set(event.eventId, event);
      else if (event.sourceEventId !== null) open.delete(event.sourceEventId);
    }
    return [...open.values()];
  }

  #inWords(event: Event): string {
    const wait = String(waitOf(event));
    if (event.type !== "ActivityScheduled") return wait;
    const isKnown = this.#runtimes.some((each) => each.isRunning && each.runtime.registry.hasActivity(event.name));
    return isKnown ? wait : `${wait} (which no runtime has registered)`;
  }
}

/** So that an idle world passes through years in a few steps. */
const DAY_MS = 86_400_000;
/** Between two looks at what has become of it. */
const STEPS_AT_A_TIME = 1_000;
/** Renewals of locks and looks into empty queues: after so many of them nothing else is to be expected by itself. */
const TIMERS_WITHOUT_A_TURN = 10_000;
/** Orchestrations may go on for ever; tests may not. Some seconds for a computer. */
const MOST_TURNS = 100_000;
/** What an activity that hangs for two months takes to renew its lock. A minute or two for a computer. */
const MOST_TIMERS = 1_000_000;
const OUT_OF_REACH =
  "A timer is still to come, but out of reach: something polls or renews all the time. Tell it to do so less often (for a SqliteProvider on a file: crossProcessPollMs: 0).";
/** Enough to see what is the matter. */
const SHOWN_INSTANCES = 5;

/** Enough for a query or a call on the own machine, and not noticed where an activity hangs on purpose. */
const DEFAULT_PATIENCE_MS = 100;

const WORLD_CHECKS = {
  provider: isFunction,
  startMs: integerBetween(0, Number.MAX_SAFE_INTEGER),
  patienceMs: integerBetween(0, 3_600_000),
};

function waitOf(event: Event): string | null {
  switch (event.type) {
    case "ActivityScheduled":
      return waitInWords("activity", event.name);
    case "TimerCreated":
      return waitInWords("timer", "");
    case "SubOrchestrationScheduled":
      return waitInWords("subOrchestration", event.name);
    case "ExternalSubscribed":
      return waitInWords("event", event.name);
    case "ExternalSubscribedPersistent":
      return waitInWords("queue", event.name);
    default:
      return null;
  }
}

function counter(prefix: string): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count}`;
  };
}

/** The same in every run, yet UUIDs; and different from the first digits on, because runtimes are named by those. */
function guids(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `${count.toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`;
  };
}
