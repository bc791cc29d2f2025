// test/simulation/simulation.ts — one seed: a while in a cruel world, then calm, then everything must be well.
//
//   S1. The seed decides everything: how many processes and instances, what goes wrong and when, and the order of all that
//       happens. The same seed gives the same run, byte for byte; `trace` shows it.
//   S2. When it is calm nothing waits that could run: as soon as nothing is due, a look into the store finds nothing for those
//       who wait there.
//   S3. What is still to come when it is calm comes by itself, in bounded time.

import type { Clock } from "../../src/clock.js";
import type { Provider } from "../../src/provider/provider.js";
import { Driver, type Root } from "./driver.js";
import { VERSIONS, type Version } from "./interpreter.js";
import { Link, NO_TROUBLES, type Troubles } from "./link.js";
import { storeProblems } from "./oracles.js";
import { SimulatedProcess, type Surroundings } from "./process.js";
import { openStore, type SimulatedStore, type StoreKind } from "./store.js";
import { Books, Witness } from "./witness.js";
import { DriftingClock, EndlessError, type Owner, START_MS, World } from "./world.js";

export interface SimulationOptions {
  readonly seed: number;
  /** @default "memory" */
  readonly store?: StoreKind;
  /** Told every step. */
  readonly trace?: (line: string) => void;
}

export interface SimulationResult {
  readonly seed: number;
  readonly problems: readonly string[];
  readonly steps: number;
  readonly instances: number;
  readonly kills: number;
  readonly virtualMs: number;
  /** How often each kind of fact was told, and each kind of event recorded. */
  readonly seen: ReadonlyMap<string, number>;
}

const MOST_STEPS = 200_000;
/** Longer than all timers and activities of a seed together, one after the other. */
const MOST_CALM_MS = 3_600_000;
/** How long a client may take to hear of what has happened: longer than the slowest call that is still on its way. */
const MOST_HEARING_MS = 80_000;
const MOST_PROBLEMS = 20;
/** Longer than any lock, any backoff and any idle session: when nothing has run for so long, nothing will. */
const QUIET_MS = 180_000;

export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const { seed, store: kind = "memory", trace = () => {} } = options;
  const world = new World(seed, trace);
  const newId = ids();
  const time: Clock = {
    now: () => world.now,
    setTimer: (delayMs, callback) => world.after(delayMs, "store: timer", callback),
  };
  const startsGoAhead = seed % 2 === 0 ? "always" : "never";
  const store = await openStore(kind, { clock: time, newId, startsGoAhead });
  try {
    return await new Simulation(seed, world, store, time, newId).run();
  } finally {
    await store.close();
  }
}

function ids(): () => string {
  let made = 0;
  return () => {
    made += 1;
    return `${made.toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`;
  };
}

/** Something that must not happen has happened. */
class WrongError extends Error {}

class Simulation {
  readonly #seed: number;
  readonly #world: World;
  readonly #problems: string[] = [];
  readonly #books = new Books();
  readonly #troubles: Troubles;
  readonly #processes: readonly SimulatedProcess[];
  readonly #driver: Driver;
  readonly #store: Provider;
  readonly #witnesses: Witness[] = [];
  readonly #wakesAll: boolean;
  readonly #seen = new Map<string, number>();
  #kills = 0;
  #quietSince: number | null = null;

  constructor(seed: number, world: World, store: SimulatedStore, time: Clock, newId: () => string) {
    this.#seed = seed;
    this.#world = world;
    this.#wakesAll = store.wakesAll;
    this.#troubles = {
      failBefore: world.pick([0, 0.01, 0.05]),
      loseAnswer: world.pick([0, 0.01, 0.05, 0.15]),
      twice: world.pick([0, 0.02, 0.1]),
      slow: world.pick([0, 0.01, 0.05]),
      forgetWarm: world.pick([0, 0.1, 0.5]),
    };
    this.#store = store.provider;
    const around: Surroundings = {
      world,
      troubles: this.#troubles,
      newId,
      connect: async () => this.#watched(await store.connect(), time),
      clocksDiffer: store.hasOwnClock,
      report: (problem) => this.#report(problem),
      count: (what) => this.#count(what),
    };
    const count = world.between(1, 3);
    this.#processes = Array.from({ length: count }, (_, place) => {
      return new SimulatedProcess(`worker-${place + 1}`, around, place === 0);
    });
    const owner: Owner = { name: "client", pausedUntil: 0 };
    const clock = new DriftingClock(world, owner, { aheadMs: 0, rate: 1 });
    const link = new Link(this.#watched(store.provider, time), world, owner, this.#troubles);
    this.#driver = new Driver(world, link, clock, seed, (problem) => this.#report(problem));
  }

  #watched(connection: Provider, time: Clock): Witness {
    const witness = new Witness(connection, this.#books, time);
    this.#witnesses.push(witness);
    return witness;
  }

  async run(): Promise<SimulationResult> {
    const world = this.#world;
    try {
      const chaosMs = world.between(2_000, 90_000);
      for (const process of this.#processes) await process.start(this.#deployed());
      this.#driver.begin(chaosMs);
      for (const process of this.#processes) this.#torment(process, world.now + chaosMs);
      await this.#pass(chaosMs);
      await this.#calm();
      this.#problems.push(...(await this.#finalProblems()));
    } catch (error) {
      this.#report(await this.#inWords(error));
    }
    await this.#bury();
    await this.#noteHistories();
    return {
      seed: this.#seed,
      problems: this.#problems.slice(0, MOST_PROBLEMS),
      steps: world.steps,
      instances: (await this.#store.admin!.listInstances()).length,
      kills: this.#kills,
      virtualMs: world.now - START_MS,
      seen: this.#seen,
    };
  }

  // Chaos

  #deployed(): readonly Version[] {
    return this.#world.pick([VERSIONS, VERSIONS, ["1.0.0"], ["2.0.0"]] as const);
  }

  /** Something happens to the process now and then, as long as it is not calm. */
  #torment(process: SimulatedProcess, untilMs: number): void {
    const world = this.#world;
    world.after(world.between(50, 15_000), `${process.owner.name}: fate`, () => {
      if (world.now >= untilMs) return;
      if (process.isAlive) this.#strike(process);
      this.#torment(process, untilMs);
    });
  }

  #strike(process: SimulatedProcess): void {
    const world = this.#world;
    const roll = world.random();
    if (roll < 0.6) {
      this.#kills += 1;
      process.kill();
      world.after(world.between(0, 8_000), `${process.owner.name}: back`, () => {
        if (!process.isAlive) process.start(this.#deployed()).catch((error) => this.#report(String(error)));
      });
    } else if (roll < 0.8) process.pause(world.pick([200, 1_500, 7_000, 40_000]));
    else process.jump(world.pick([10, 1_000, 6_000, 60_000]));
  }

  async #pass(ms: number): Promise<void> {
    const { now } = this.#world;
    await this.#go(() => this.#world.now >= now + ms);
  }

  // Calm

  /** No more trouble, everybody there with all the code: everything comes to its end. S3 */
  async #calm(): Promise<void> {
    const world = this.#world;
    world.note("calm");
    Object.assign(this.#troubles, NO_TROUBLES);
    for (const process of this.#processes) {
      process.kill();
      await process.start(VERSIONS, true);
    }
    let isDone = false;
    await this.#go(
      () => isDone,
      async () => {
        await this.#checkNobodyForgotten();
        isDone = await this.#hasEnded();
      },
    );
    this.#driver.end();
  }

  async #hasEnded(): Promise<boolean> {
    if (!(await this.#isQuiet())) this.#quietSince = null;
    else this.#quietSince ??= this.#world.now;
    if (this.#quietSince === null) return false;
    if (this.#world.now > this.#quietSince + MOST_HEARING_MS) this.#checkEverybodyHeard();
    return this.#world.now >= this.#quietSince + QUIET_MS;
  }

  async #isQuiet(): Promise<boolean> {
    const { admin } = this.#store;
    const { roots } = this.#driver;
    if (roots.some(({ isStarted }) => !isStarted)) return false;
    const running = await admin!.listInstancesByStatus("Running");
    const continued = await admin!.listInstancesByStatus("ContinuedAsNew");
    // A start that arrived twice, late, may bring back who was deleted: nobody writes to that one.
    if ([...running, ...continued].some((id) => this.#rootOf(id)?.isDeleted !== true)) return false;
    const { orchestratorQueue, workerQueue } = await admin!.getQueueDepths();
    // What was sent to somebody who is gone waits for one of that name.
    const isSomebodyGone = roots.some(({ isDeleted }) => isDeleted);
    return workerQueue === 0 && (orchestratorQueue === 0 || isSomebodyGone);
  }

  /** S2 */
  async #checkNobodyForgotten(): Promise<void> {
    if (!this.#wakesAll) return;
    const isHeard = ({ signal }: { readonly signal?: AbortSignal }): boolean => signal?.aborted !== true;
    const waiting = this.#witnesses.map((witness) => witness.waiting);
    if (waiting.some(({ turns }) => [...turns].some(isHeard))) {
      const found = await this.#store.fetchOrchestrationItem({ lockTimeoutMs: 1 });
      if (found !== null)
        throw new WrongError(`a turn of ${found.item.instance} is there, and nobody was woken for it`);
    }
    for (const { tagFilter, session } of waiting.flatMap(({ work }) => [...work].filter(isHeard))) {
      const found = await this.#store.fetchWorkItem({
        lockTimeoutMs: 1,
        ...(tagFilter === undefined ? {} : { tagFilter }),
        ...(session === undefined ? {} : { session }),
      });
      if (found !== null)
        throw new WrongError(`activity ${JSON.stringify(found.item)} is there, and nobody was woken for it`);
    }
  }

  /** Whoever waits for an instance hears of its end without asking again. */
  #checkEverybodyHeard(): void {
    const deaf = this.#driver.roots.filter(({ heard, isDeleted }) => heard === null && !isDeleted);
    if (deaf.length > 0)
      throw new WrongError(`nobody was told of the end of ${deaf.map(({ instanceId }) => instanceId)}`);
  }

  async #finalProblems(): Promise<readonly string[]> {
    const problems = await storeProblems(this.#store, {
      isCancelled: (id) => this.#rootOf(id)?.isCancelled ?? false,
      isDeleted: (id) => this.#rootOf(id)?.isDeleted ?? false,
    });
    const left = await this.#store.cleanupOrphanedSessions({ idleTimeoutMs: 1 });
    return [
      ...problems,
      ...(await this.#bookProblems()),
      ...(await this.#heardProblems()),
      ...(left === 0 ? [] : [`${left} sessions are left, and nobody has them`]),
    ];
  }

  #rootOf(id: string): Root | undefined {
    return this.#driver.roots.find(({ instanceId }) => id.split(/[.:]/)[0] === instanceId);
  }

  /** What the store has is what was committed. */
  async #bookProblems(): Promise<readonly string[]> {
    const problems: string[] = [];
    const { admin } = this.#store;
    for (const instance of await admin!.listInstances()) {
      for (const execution of await admin!.listExecutions(instance)) {
        const stored = JSON.stringify(await this.#store.readWithExecution(instance, execution));
        if (stored === JSON.stringify(this.#books.committed(instance, execution))) continue;
        problems.push(`${instance}/${execution}: the store has not what was committed`);
      }
    }
    return problems;
  }

  async #heardProblems(): Promise<readonly string[]> {
    const problems: string[] = [];
    for (const { instanceId, heard, isDeleted } of this.#driver.roots) {
      const status = await this.#store.getInstanceStatus(instanceId);
      if (heard === null || isDeleted) continue;
      const output = heard.status === "Completed" ? JSON.stringify(heard.output) : heard.error;
      if (status?.status === heard.status && status.output === output) continue;
      problems.push(`${instanceId} is ${status?.status}, and its client was told ${heard.status} (${output})`);
    }
    return problems;
  }

  async #inWords(error: unknown): Promise<string> {
    if (error instanceof WrongError) return error.message;
    if (!(error instanceof EndlessError)) return String((error as Error).stack);
    const running = await this.#store.admin!.listInstancesByStatus("Running");
    const depths = await this.#store.admin!.getQueueDepths();
    return `${error.message}: still running ${JSON.stringify(running)}, queues ${JSON.stringify(depths)}`;
  }

  // The rest

  #go(isOver: () => boolean, atRest?: () => Promise<void>): Promise<void> {
    return this.#world.run({
      isOver,
      afterStep: () => this.#enterBooks(),
      ...(atRest === undefined ? {} : { atRest }),
      untilMs: this.#world.now + MOST_CALM_MS,
      mostSteps: MOST_STEPS,
    });
  }

  /** So that a trace ends with what there is to look at. */
  async #noteHistories(): Promise<void> {
    const { admin } = this.#store;
    for (const instance of await admin!.listInstances()) {
      for (const execution of await admin!.listExecutions(instance)) {
        for (const event of await this.#store.readWithExecution(instance, execution)) {
          this.#count(event.type);
          const { eventId, instanceId, executionId, duroxideVersion, ...rest } = event;
          this.#world.note(`${instanceId}/${executionId} ${eventId} ${JSON.stringify(rest)}`);
        }
      }
    }
  }

  /** Ends with the first thing that is wrong: what comes after it is a consequence. */
  #enterBooks(): void {
    this.#books.enter();
    if (this.#books.problems.length > 0) throw new WrongError(this.#books.problems.join("; "));
  }

  async #bury(): Promise<void> {
    let isOver = false;
    const buried = Promise.all(this.#processes.map((process) => process.bury())).then(() => {
      isOver = true;
    });
    await Promise.all([
      buried,
      this.#world.run({
        isOver: () => isOver,
        afterStep: () => {},
        untilMs: Number.POSITIVE_INFINITY,
        mostSteps: 2 * MOST_STEPS,
      }),
    ]);
  }

  #count(what: string): void {
    this.#seen.set(what, (this.#seen.get(what) ?? 0) + 1);
  }

  #report(problem: string): void {
    this.#world.note(`PROBLEM ${problem}`);
    this.#problems.push(problem);
  }
}
