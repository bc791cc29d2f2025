// test/simulation/process.ts — a worker process that dies, stands still, and comes back with nothing but what the store has.

import type { OrchestrationDefinition } from "../../src/define.js";
import { ProviderError } from "../../src/errors.js";
import type { Fact } from "../../src/observer.js";
import type { Provider } from "../../src/provider/provider.js";
import type { ActivityContext } from "../../src/runtime/activity-context.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { MortalClock, MortalProvider } from "../../src/testing/mortality.js";
import { type ActivityTask, orchestrations, type Version, workActivity } from "./interpreter.js";
import { Link, type Troubles } from "./link.js";
import { TAG } from "./program.js";
import { DriftingClock, type Owner, type World } from "./world.js";

/** What all processes share. */
export interface Surroundings {
  readonly world: World;
  readonly troubles: Readonly<Troubles>;
  readonly newId: () => string;
  /** A connection to the store, for one life of a process. */
  readonly connect: () => Promise<Provider>;
  /** Whether each process has a time of its own. */
  readonly clocksDiffer: boolean;
  readonly report: (problem: string) => void;
  /** Told what has happened, for whoever wants to know whether enough did. */
  readonly count: (what: string) => void;
}

interface Life {
  readonly clock: MortalClock;
  readonly drift: DriftingClock;
  readonly provider: MortalProvider;
  readonly started: Promise<Runtime>;
}

/** Nothing is given up as poison because of what happens here. */
const ENDLESS_ATTEMPTS = 1_000_000;

export class SimulatedProcess {
  readonly owner: Owner;
  readonly #around: Surroundings;
  readonly #servesTag: boolean;
  #life: Life | null = null;
  readonly #dead: Life[] = [];

  constructor(name: string, around: Surroundings, servesTag: boolean) {
    this.owner = { name, pausedUntil: 0 };
    this.#around = around;
    this.#servesTag = servesTag;
  }

  get isAlive(): boolean {
    return this.#life !== null;
  }

  /** Begins a life, with the versions of the code that are deployed. */
  async start(versions: readonly Version[], isCalm = false): Promise<void> {
    const { world, troubles, newId, connect, clocksDiffer } = this.#around;
    world.note(`${this.owner.name}: starts with ${versions.join(" and ")}`);
    const aheadMs = isCalm || !clocksDiffer ? 0 : world.pick([0, 0, 0, 250, 4_000, -3_000, 20_000]);
    const rate = clocksDiffer ? world.pick([1, 1, 1.02, 0.97]) : 1;
    const drift = new DriftingClock(world, this.owner, { aheadMs, rate });
    const clock = new MortalClock(drift);
    const store = await connect();
    const provider = new MortalProvider(new Link(store, world, this.owner, troubles), () => clock.die());
    const code = orchestrations();
    const started = Runtime.start({
      provider,
      clock,
      newId,
      orchestrations: versions.map((version): OrchestrationDefinition => code[version]),
      activities: [provider.mortal(workActivity((ctx, task) => this.#work(clock, ctx, task)))],
      observers: [(fact) => this.#observe(fact)],
      orchestrationConcurrency: world.between(1, 3),
      workerConcurrency: world.between(1, 4),
      maxAttempts: ENDLESS_ATTEMPTS,
      orchestratorLockTimeoutMs: world.pick([1_000, 5_000]),
      orchestratorLockRenewalBufferMs: world.pick([300, 2_000]),
      workerLockTimeoutMs: world.pick([2_000, 30_000]),
      workerLockRenewalBufferMs: world.pick([500, 5_000]),
      sessionLockTimeoutMs: 10_000,
      sessionLockRenewalBufferMs: 2_000,
      sessionIdleTimeoutMs: 60_000,
      sessionCleanupIntervalMs: 30_000,
      warmCacheBytes: world.pick([0, 25_000, 64 * 1_048_576]),
      workerNodeId: world.chance(0.5) ? this.owner.name : null,
      tagFilter: this.#servesTag ? { kind: "default-and", tags: [TAG] } : { kind: "default-only" },
    });
    started.catch((error) => this.#around.report(`${this.owner.name} did not start: ${error}`));
    this.#life = { clock, drift, provider, started };
  }

  kill(): void {
    if (this.#life === null) return;
    this.#around.world.note(`${this.owner.name}: killed`);
    this.#life.provider.die();
    this.#dead.push(this.#life);
    this.#life = null;
    this.owner.pausedUntil = 0;
  }

  pause(forMs: number): void {
    const { world } = this.#around;
    world.note(`${this.owner.name}: stands still for ${forMs}`);
    this.owner.pausedUntil = world.now + forMs;
  }

  jump(byMs: number): void {
    if (!this.#around.clocksDiffer) return;
    this.#around.world.note(`${this.owner.name}: its clock jumps by ${byMs}`);
    this.#life?.drift.jump(byMs);
  }

  /** Ends all its lives for good. The world must go on meanwhile. */
  async bury(): Promise<void> {
    this.kill();
    for (const { clock, provider, started } of this.#dead.splice(0)) {
      clock.bury();
      provider.bury();
      const runtime = await started;
      const stopped = runtime.shutdown({ graceMs: 0 });
      provider.bury();
      await stopped;
    }
  }

  /** Takes as long as it takes; half of them hear when they are no longer wanted. */
  #work(clock: MortalClock, { signal, activityId }: ActivityContext, { tookMs }: ActivityTask): Promise<void> {
    if (tookMs === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = clock.setTimer(tookMs, resolve);
      if (activityId % 2 === 0) return;
      signal.addEventListener("abort", () => {
        timer.clear();
        resolve();
      });
    });
  }

  #observe(fact: Fact): void {
    this.#around.count(fact.type === "turn-committed" && fact.isWarm ? "warm turn" : fact.type);
    switch (fact.type) {
      case "orchestration-poisoned":
      case "activity-poisoned":
      case "activity-unregistered":
      case "observer-failed":
      case "rejection-kept":
        return this.#around.report(`${this.owner.name}: ${JSON.stringify(fact)}`);
      case "provider-call":
        if (fact.error === null || isExpected(fact.error)) return;
        return this.#around.report(`${this.owner.name}: ${fact.operation} failed: ${String(fact.error.stack)}`);
      case "loop-failed":
        if (isExpected(fact.error)) return;
        return this.#around.report(`${this.owner.name}: ${fact.loop} failed: ${String((fact.error as Error)?.stack)}`);
      default:
    }
  }
}

/** What a store says that is out of reach, or has given the work to somebody else. It refuses nothing that a runtime asks. */
function isExpected(error: unknown): boolean {
  return error instanceof ProviderError && (error.retryable || error.kind === "lock-lost");
}
