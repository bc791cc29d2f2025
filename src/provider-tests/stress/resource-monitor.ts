// provider-tests/stress/resource-monitor.ts — what a run costs its process: memory and processor time, sampled.

import { type Clock, sleep } from "../../clock.js";

/** Over all samples. The processor in percent of one core. */
export interface ResourceUse {
  readonly samples: number;
  readonly rssAverageBytes: number;
  readonly rssPeakBytes: number;
  readonly cpuAveragePercent: number;
  readonly cpuPeakPercent: number;
}

interface Sample {
  readonly rssBytes: number;
  readonly cpuPercent: number;
}

const SAMPLE_EVERY_MS = 500;
const MICROSECONDS_PER_MS = 1_000;

/** Samples from its making until `stop`, which takes the last sample and answers with all of them. */
export class ResourceMonitor {
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #samples: Sample[] = [];
  readonly #sampling: Promise<void>;
  #sampledAt: number;
  #cpu = process.cpuUsage();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sampledAt = clock.now();
    this.#sampling = this.#sample();
  }

  async stop(): Promise<ResourceUse> {
    this.#stopping.abort();
    await this.#sampling;
    const [rss, cpu] = [this.#samples.map(({ rssBytes }) => rssBytes), this.#samples.map((taken) => taken.cpuPercent)];
    return {
      samples: this.#samples.length,
      rssAverageBytes: Math.round(average(rss)),
      rssPeakBytes: peak(rss),
      cpuAveragePercent: average(cpu),
      cpuPeakPercent: peak(cpu),
    };
  }

  async #sample(): Promise<void> {
    const { signal } = this.#stopping;
    do {
      await sleep(this.#clock, SAMPLE_EVERY_MS, signal);
      this.#take();
    } while (!signal.aborted);
  }

  #take(): void {
    const now = this.#clock.now();
    const elapsedMs = Math.max(1, now - this.#sampledAt);
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpuPercent = ((user + system) / MICROSECONDS_PER_MS / elapsedMs) * 100;
    this.#samples.push({ rssBytes: process.memoryUsage.rss(), cpuPercent });
    this.#sampledAt = now;
    this.#cpu = process.cpuUsage();
  }
}

function peak(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
