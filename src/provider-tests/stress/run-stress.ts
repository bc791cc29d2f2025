// provider-tests/stress/run-stress.ts — one stress run: starts instances for a while, waits for all of them, counts.
//
//   S1. Never more than `maxConcurrent` instances are under way; a new one is started as soon as one has ended.
//   S2. Every instance that was launched ends up in exactly one of `completed` and `failed`.
//   S3. A run ends by itself, and leaves nothing behind: runtime, monitor and store are closed, also when it fails.

import { setMaxListeners } from "node:events";
import { Client } from "../../client/client.js";
import { type Clock, sleep, systemClock } from "../../clock.js";
import { messageOf } from "../../errors.js";
import type { ErrorCategory } from "../../history/error-details.js";
import type { Provider } from "../../provider/provider.js";
import { Runtime } from "../../runtime/runtime.js";
import { ResourceMonitor, type ResourceUse } from "./resource-monitor.js";
import { type ResolvedStressConfig, resolveStressConfig, type StressConfig } from "./stress-config.js";
import { type Workload, workloadOf } from "./workload.js";

/** A store that was opened for one run. Its provider is closed after the run. */
export interface StressStore {
  readonly provider: Provider;
  /** Cleans up after the run, when the provider is closed. */
  close?(): Promise<void>;
}

/** What a configuration asks of the store that it presses. */
export interface StressStoreOptions {
  /** How many connections it may have at most, where it has any. */
  readonly maxConnections?: number;
}

/** Opens an empty store that lives in real time. */
export type OpenStressStore = (options: StressStoreOptions) => Promise<StressStore>;

/** What one run came to. */
export interface StressResult {
  /** As the provider calls itself. */
  readonly provider: string;
  readonly config: ResolvedStressConfig;
  readonly launched: number;
  readonly completed: number;
  /** Launched and not completed: failed, not even started, or not ended in time. Only the first has a category. */
  readonly failed: number;
  /** Poison included. */
  readonly failedInfrastructure: number;
  readonly failedConfiguration: number;
  readonly failedApplication: number;
  /** Of the first that failed, which they were and why: the recorded failure, or what became of the wait. */
  readonly failures: readonly string[];
  /** From the first launch to the end of the last instance. */
  readonly totalTimeMs: number;
  readonly orchPerSec: number;
  readonly activitiesPerSec: number;
  /** Total time by completed instances: throughput, not the time that one instance takes. */
  readonly avgLatencyMs: number;
  /** In percent; 0 when nothing was launched. */
  readonly successRate: number;
  readonly resources: ResourceUse;
}

/**
 * Presses a store: starts instances for `durationMs`, waits for their ends, and tells how many there were, how they ended
 * and how fast. Closes everything it opened.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a configuration that is unknown or out of range
 * @example
 * const result = await runStress(async () => ({ provider: await SqliteProvider.open(":memory:") }), { durationMs: 2_000 });
 * if (result.successRate < 100) throw new Error(`${result.failed} of ${result.launched} failed`);
 */
export async function runStress(
  open: OpenStressStore,
  config: StressConfig,
  storeOptions: StressStoreOptions = {},
): Promise<StressResult> {
  const resolved = resolveStressConfig(config);
  const store = await open(storeOptions);
  try {
    await using provider = store.provider;
    return await pressed(provider, resolved);
  } finally {
    await store.close?.();
  }
}

const clock: Clock = systemClock;
const POLL_INTERVAL_MS = 100;
const BETWEEN_LAUNCHES_MS = 1;
const LONGEST_DRAIN_MS = 120_000;
/** Enough to see what is wrong. */
const MOST_FAILURES_TOLD = 5;

async function pressed(provider: Provider, config: ResolvedStressConfig): Promise<StressResult> {
  const workload = workloadOf(config);
  const runtime = await Runtime.start({
    provider,
    orchestrations: workload.orchestrations,
    activities: workload.activities,
    orchestrationConcurrency: config.orchestrationConcurrency,
    workerConcurrency: config.workerConcurrency,
    minPollIntervalMs: POLL_INTERVAL_MS,
  });
  const monitor = new ResourceMonitor(clock);
  try {
    const startedAt = clock.now();
    const counts = await press(new Client(provider), workload, config);
    const totalTimeMs = clock.now() - startedAt;
    const resources = await monitor.stop();
    return { provider: provider.name, config, ...counts, ...rates(counts, totalTimeMs, workload), resources };
  } finally {
    await monitor.stop();
    await runtime.shutdown();
  }
}

type Counts = Pick<
  StressResult,
  | "launched"
  | "completed"
  | "failed"
  | "failedInfrastructure"
  | "failedConfiguration"
  | "failedApplication"
  | "failures"
>;

function rates({ launched, completed }: Counts, totalTimeMs: number, { activitiesPerInstance }: Workload) {
  const seconds = Math.max(1, totalTimeMs) / 1_000;
  return {
    totalTimeMs,
    orchPerSec: completed / seconds,
    activitiesPerSec: (completed * activitiesPerInstance) / seconds,
    avgLatencyMs: completed === 0 ? 0 : totalTimeMs / completed,
    successRate: launched === 0 ? 0 : (completed / launched) * 100,
  };
}

async function press(client: Client, workload: Workload, config: ResolvedStressConfig): Promise<Counts> {
  const launches = new Launches(client, workload, config);
  await within(config.durationMs, (timeIsUp) => launches.keepUp(timeIsUp));
  await within(LONGEST_DRAIN_MS, (timeIsUp) => launches.ended(timeIsUp));
  return launches.count();
}

/** Launches instances and counts how they end. */
class Launches {
  readonly #client: Client;
  readonly #workload: Workload;
  readonly #config: ResolvedStressConfig;
  readonly #underWay = new UnderWay();
  readonly #endings: Record<"completed" | ErrorCategory, number> = {
    completed: 0,
    infrastructure: 0,
    poison: 0,
    configuration: 0,
    application: 0,
  };
  /** Ends the waits for instances that have not ended when all is counted. */
  readonly #givingUp = new AbortController();
  readonly #failures: string[] = [];
  #launched = 0;

  constructor(client: Client, workload: Workload, config: ResolvedStressConfig) {
    this.#client = client;
    this.#workload = workload;
    this.#config = config;
    setMaxListeners(0, this.#givingUp.signal); // One for every instance that is waited for.
  }

  /** Keeps `maxConcurrent` instances under way until the time is up. S1 */
  async keepUp(timeIsUp: AbortSignal): Promise<void> {
    for (;;) {
      await this.#underWay.fewerThan(this.#config.maxConcurrent, timeIsUp);
      if (timeIsUp.aborted) return;
      this.#launched += 1;
      this.#underWay.add(this.#run(`stress-test-${this.#launched}`));
      await sleep(clock, BETWEEN_LAUNCHES_MS, timeIsUp);
    }
  }

  /** Resolves when none is under way any more, or the time is up. */
  ended(timeIsUp: AbortSignal): Promise<void> {
    return this.#underWay.fewerThan(1, timeIsUp);
  }

  /** The end of it: whatever has not completed by now has failed. S2 */
  count(): Counts {
    this.#givingUp.abort();
    const { completed, infrastructure, poison, configuration, application } = this.#endings;
    return {
      launched: this.#launched,
      completed,
      failed: this.#launched - completed,
      failedInfrastructure: infrastructure + poison,
      failedConfiguration: configuration,
      failedApplication: application,
      failures: this.#failures,
    };
  }

  /** Never rejects. What is not started, or does not end in time, has no category. */
  async #run(instanceId: string): Promise<void> {
    const { root, input } = this.#workload;
    const wait = { timeoutMs: this.#config.waitTimeoutMs, signal: this.#givingUp.signal };
    try {
      await this.#client.start(root, { instanceId, input });
      const ended = await this.#client.waitForOrchestration(instanceId, wait);
      this.#endings[ended.status === "Completed" ? "completed" : ended.details.category] += 1;
      if (ended.status === "Failed") this.#tell(instanceId, ended.error);
    } catch (error) {
      // Neither completed nor failed by itself: `count` finds it among the failed.
      this.#tell(instanceId, messageOf(error));
    }
  }

  #tell(instanceId: string, why: string): void {
    if (this.#failures.length < MOST_FAILURES_TOLD) this.#failures.push(`${instanceId}: ${why}`);
  }
}

/** How much is under way, and one who waits for it to become less. */
class UnderWay {
  #count = 0;
  #look: () => void = () => {};

  /** `work` must not reject. */
  add(work: Promise<void>): void {
    this.#count += 1;
    void work.then(() => {
      this.#count -= 1;
      this.#look();
    });
  }

  /** Resolves when fewer than so many are under way, or `signal` aborts. */
  fewerThan(limit: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.#count >= limit && !signal.aborted) return;
        signal.removeEventListener("abort", look);
        this.#look = () => {};
        resolve();
      };
      signal.addEventListener("abort", look);
      this.#look = look;
      look();
    });
  }
}

/** Hands `work` a signal that aborts when the time is up. */
async function within(timeoutMs: number, work: (timeIsUp: AbortSignal) => Promise<void>): Promise<void> {
  const timeIsUp = new AbortController();
  const timer = clock.setTimer(timeoutMs, () => timeIsUp.abort());
  try {
    await work(timeIsUp.signal);
  } finally {
    timer.clear();
  }
}
