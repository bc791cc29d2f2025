// The stress suite in short: everything that is launched ends up counted, under the right heading, and nothing is left behind.

import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import { InvalidOptionsError, ProviderError } from "../../src/errors.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";
import { ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type {
  EnqueueOptions,
  EnqueueOutcome,
  FetchOrchestrationOptions,
  LockedOrchestrationItem,
  Provider,
  TurnCommit,
} from "../../src/provider/provider.js";
import {
  formatStressReport,
  formatStressTable,
  LARGE_PAYLOAD_DEFAULTS,
  PARALLEL_DEFAULTS,
  type ProviderFactory,
  runStress,
  runStressSuite,
  STRESS_CONFIGURATIONS,
  type StressConfigurationName,
  type StressResult,
} from "../../src/provider-tests/index.js";
import { memoryStore, sqliteFileStore, sqliteMemoryStore } from "../../src/provider-tests/own-stores.js";
import { judged } from "../../src/provider-tests/stress/stress-suite.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { ControlledProvider, FailingProvider, PoisonInjectingProvider } from "../../src/testing/index.js";

const STORES: Readonly<Record<string, ProviderFactory>> = {
  memory: memoryStore,
  "sqlite-memory": sqliteMemoryStore,
  "sqlite-file": sqliteFileStore(),
};
const QUICK: readonly StressConfigurationName[] = ["infra-check", "infra-check-large-payload", "ci-quick"];
const SHORT_MS = 300;
const BRIEF = { maxConcurrent: 2, durationMs: 100, tasksPerInstance: 1, activityDelayMs: 0 };

/** Hands in something else than what the activities have returned, which fails their orchestrations. */
class StrayResultsProvider extends ProviderWrapper {
  override ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    const isResult = completion?.type === "ActivityCompleted";
    return super.ackWorkItem(lockToken, isResult ? { ...completion, result: '"astray"' } : completion);
  }
}

/** Refuses every turn. */
class RefusingProvider extends FailingProvider {
  override ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    this.failNextAckOrchestrationItem();
    return super.ackOrchestrationItem(lockToken, turn);
  }
}

/** Keeps in mind how many instances were under way at once, at most. */
class WatchfulProvider extends ProviderWrapper {
  readonly #underWay = new Set<string>();
  most = 0;

  override async enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome> {
    if (item.type === "StartOrchestration") this.#underWay.add(item.instance);
    this.most = Math.max(this.most, this.#underWay.size);
    return super.enqueueForOrchestrator(item, options);
  }

  override ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    if (turn.metadata.status === "Completed") this.#underWay.delete(turn.events[0]!.instanceId);
    return super.ackOrchestrationItem(lockToken, turn);
  }
}

/** Remembers other activities than those that were scheduled. */
class ForgetfulProvider extends ProviderWrapper {
  override async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const { warm: _forgotten, ...cold } = options;
    const locked = await super.fetchOrchestrationItem(cold);
    if (locked === null) return null;
    const history = locked.item.history.map((event) =>
      event.type === "ActivityScheduled" ? { ...event, name: "AnotherTask" } : event,
    );
    return { ...locked, item: { ...locked.item, history } };
  }
}

describe.each(Object.entries(STORES))("on %s", (store, factory) => {
  test.each(QUICK)("%s passes", async (configuration) => {
    const open = () => factory.open({ clock: systemClock });
    const report = await runStressSuite([{ store, open, configuration, durationMs: SHORT_MS }]);

    const [{ result, verdicts }] = report.runs as [(typeof report.runs)[0]];
    expect(verdicts.filter(({ isMet }) => !isMet)).toEqual([]);
    expect(report.isPassed).toBe(true);
    expect(result).toMatchObject({ launched: result.completed, failed: 0, successRate: 100 });
    expect(result.completed).toBeGreaterThan(0);
  });
});

describe("a run", () => {
  test("works out its rates from what was completed, and what it cost", async () => {
    const result = await runStress(onMemory(), { ...BRIEF, tasksPerInstance: 3 });
    const { completed, totalTimeMs } = result;
    expect(result.config).toEqual({ ...PARALLEL_DEFAULTS, ...BRIEF, tasksPerInstance: 3 });
    expect(result.orchPerSec).toBeCloseTo(completed / (totalTimeMs / 1_000));
    expect(result.activitiesPerSec).toBeCloseTo(3 * result.orchPerSec);
    expect(result.avgLatencyMs).toBeCloseTo(totalTimeMs / completed);
    const { samples, rssAverageBytes, rssPeakBytes, cpuAveragePercent, cpuPeakPercent } = result.resources;
    expect(samples).toBeGreaterThan(0);
    expect(rssPeakBytes).toBeGreaterThanOrEqual(rssAverageBytes);
    expect(cpuPeakPercent).toBeGreaterThanOrEqual(cpuAveragePercent);
  });

  test("never has more instances under way than it may", async () => {
    const provider = new WatchfulProvider(new MemoryProvider());
    const config = { ...BRIEF, maxConcurrent: 3, activityDelayMs: 5 };
    const { completed } = await runStress(async () => ({ provider }), config);
    expect(completed).toBeGreaterThan(0);
    expect(provider.most).toBeLessThanOrEqual(3);
  });

  test("counts what fails in the application as such", async () => {
    const open = onMemory((inner) => new StrayResultsProvider(inner));
    const result = await runStress(open, BRIEF);
    expect(result.launched).toBeGreaterThan(0);
    expect(result).toMatchObject({ completed: 0, failed: result.launched, failedApplication: result.launched });
    expect([result.failedInfrastructure, result.failedConfiguration, result.successRate]).toEqual([0, 0, 0]);
    expect([result.orchPerSec, result.avgLatencyMs]).toEqual([0, 0]);
  });

  test("counts poison as a failure of the infrastructure", async () => {
    const open = onMemory((inner) => {
      const provider = new PoisonInjectingProvider(inner);
      provider.injectOrchestrationPoisonPersistent(99);
      return provider;
    });
    const result = await runStress(open, BRIEF);
    expect(result).toMatchObject({ completed: 0, failed: result.launched, failedInfrastructure: result.launched });
    expect([result.failedConfiguration, result.failedApplication]).toEqual([0, 0]);
  });

  test("counts a failure whose history became unreadable as one of the infrastructure", async () => {
    const open = onMemory(
      (inner) =>
        new (class extends StrayResultsProvider {
          override async readWithExecution(): Promise<never> {
            throw new ProviderError("corrupt", "readWithExecution", "not JSON");
          }
        })(inner),
    );
    const result = await runStress(open, BRIEF);
    expect(result).toMatchObject({ completed: 0, failed: result.launched, failedInfrastructure: result.launched });
  });

  test("counts an execution that replays otherwise as a failure of the configuration", async () => {
    const open = onMemory((inner) => new ForgetfulProvider(inner));
    const result = await runStress(open, BRIEF);
    expect(result).toMatchObject({ completed: 0, failed: result.launched, failedConfiguration: result.launched });
  });

  test("counts a start that fails in failed only", async () => {
    const open = onMemory((inner) => {
      const provider = new ControlledProvider(inner);
      provider.failBefore("enqueueForOrchestrator");
      return provider;
    });
    const result = await runStress(open, BRIEF);
    expect(result).toMatchObject({ failed: 1, completed: result.launched - 1 });
    expect([result.failedInfrastructure, result.failedConfiguration, result.failedApplication]).toEqual([0, 0, 0]);
    expect(result.failures).toEqual([expect.stringMatching(/^stress-test-1: .*simulated failure/)]);
  });

  test("counts instances that do not end in time in failed only, and comes to its end without them", async () => {
    let isClosed = false;
    const open = async () => ({
      provider: new RefusingProvider(new MemoryProvider()),
      close: async () => {
        isClosed = true;
      },
    });
    const result = await runStress(open, { ...BRIEF, waitTimeoutMs: 100 });
    expect(result).toMatchObject({ completed: 0, failed: result.launched, failedInfrastructure: 0 });
    expect(isClosed).toBe(true);
  });

  test("refuses what is unknown or out of range before it opens anything, and closes what it opened when it fails", async () => {
    const never = async () => expect.unreachable("opened");
    await expect(runStress(never, { maxConcurent: 3 } as object)).rejects.toThrow(/Did you mean 'maxConcurrent'/);
    await expect(runStress(never, { durationMs: 0 })).rejects.toThrow(InvalidOptionsError);
    await expect(runStress(never, { workload: "large-payload", smallBytes: -1 })).rejects.toThrow(InvalidOptionsError);

    let isClosed = false;
    const close = async (): Promise<void> => {
      isClosed = true;
    };
    const none = { [Symbol.asyncDispose]: async () => {} } as unknown as Provider;
    await expect(runStress(async () => ({ provider: none, close }), BRIEF)).rejects.toThrow(InvalidOptionsError);
    expect(isClosed).toBe(true);
  });
});

describe("the named configurations", () => {
  test("are those of the catalogue", () => {
    const shown = Object.entries(STRESS_CONFIGURATIONS).map(([name, { config }]) => {
      const { maxConcurrent, durationMs, activityDelayMs, orchestrationConcurrency, workerConcurrency } = config;
      const tasks = "tasksPerInstance" in config ? config.tasksPerInstance : "-";
      return `${name}: ${maxConcurrent} / ${durationMs} / ${tasks} / ${activityDelayMs} / ${orchestrationConcurrency}:${workerConcurrency}`;
    });
    expect(shown).toEqual([
      "infra-check: 1 / 1000 / 2 / 5 / 1:1",
      "infra-check-large-payload: 2 / 1000 / - / 5 / 1:1",
      "ci-quick: 5 / 2000 / 2 / 5 / 1:1",
      "baseline: 20 / 10000 / 5 / 10 / 1:1",
      "concurrency: 20 / 10000 / 5 / 10 / 2:2",
      "large-payload: 5 / 10000 / - / 5 / 1:1",
      "sqlite-suite-1-1: 20 / 30000 / 5 / 10 / 1:1",
      "sqlite-suite-2-2: 20 / 30000 / 5 / 10 / 2:2",
      "pg-light: 10 / 5000 / 3 / 5 / 2:2",
      "pg-standard: 20 / 10000 / 5 / 10 / 2:2",
      "pg-high-concurrency: 50 / 30000 / 10 / 10 / 4:4",
      "pg-pool-limits: 30 / 10000 / 5 / 10 / 4:4",
      "pg-long: 20 / 300000 / 5 / 10 / 2:2",
      "pg-stress: 20 / 10000 / 5 / 10 / 8:8",
    ]);
    expect(LARGE_PAYLOAD_DEFAULTS).toMatchObject({ waitTimeoutMs: 120_000, activityCount: 20, subOrchestrations: 5 });
  });
});

describe("the report", () => {
  test("compares the runs in one table", () => {
    const { runs } = judged([
      made("memory", "ci-quick", { orchPerSec: 123.45, activitiesPerSec: 246.9, avgLatencyMs: 8.1 }),
      made("sqlite-file", "large-payload", { launched: 40, completed: 37, failed: 3, failedApplication: 1 }),
    ]);
    expect(formatStressTable(runs).split("\n")).toEqual([
      "Provider     Config         Completed  Failed  Infra  Config  App  Success %  Orch/s  Activity/s  Avg latency",
      "-------------------------------------------------------------------------------------------------------------",
      "memory       ci-quick             100       0      0       0    0     100.00   123.5       246.9       8.1 ms",
      "sqlite-file  large-payload         37       3      0       0    1      92.50    20.0       100.0      50.0 ms",
    ]);
  });

  test("says which criteria were met, and closes with one line", () => {
    const report = judged([
      made("sqlite-file", "baseline", { orchPerSec: 20 }),
      made("sqlite-file", "concurrency", { orchPerSec: 26 }),
      made("sqlite-file", "pg-stress", { orchPerSec: 49 }),
    ]);
    const lines = formatStressReport(report).split("\n");
    expect(lines).toContain("sqlite-file baseline: orch/s at least 10: met (20)");
    expect(lines).toContain("sqlite-file pg-stress: target: orch/s at least 50: not met (49)");
    expect(lines).toContain("sqlite-file concurrency: orch/s at least 1.3 times that of baseline: met (26)");
    expect(lines.at(-1)).toBe("3 configurations, all at 100 %");
    expect(report.isPassed).toBe(true);
  });

  test("fails a run below 100 %, however little", () => {
    const report = judged([
      made("memory", "ci-quick", { launched: 30_000, completed: 29_999, failed: 1, failures: ["i-7: lost"] }),
      made("memory", "pg-standard", {}),
    ]);
    expect(report.isPassed).toBe(false);
    expect(formatStressReport(report)).toContain("memory ci-quick: i-7: lost");
    expect(lastLine(report)).toBe("2 configurations, 1 below 100 %: memory ci-quick (99.99 %)");
  });

  test("fails a run that misses what the catalogue calls a condition to pass, but not one that misses a target", () => {
    const slow = judged([
      made("memory", "baseline", { orchPerSec: 40 }),
      made("memory", "concurrency", { orchPerSec: 50 }),
    ]);
    expect(slow.runs.map(({ isPassed }) => isPassed)).toEqual([true, false]);
    expect(lastLine(slow)).toBe("2 configurations, all at 100 %; criteria not met by memory concurrency");
  });

  test("asks of a store only what is meant for it, and judges nothing against a run that was not made", () => {
    const report = judged([made("memory", "baseline", { orchPerSec: 6 })]);
    expect(report.isPassed).toBe(true);
    const alone = judged([made("memory", "concurrency", {})]);
    expect(alone.isPassed).toBe(true);
    expect(formatStressReport(alone)).toContain("times that of baseline: not judged: baseline was not run (20)");
    expect(lastLine(alone)).toBe("1 configuration, all at 100 %");
  });
});

function onMemory(wrapped: (inner: Provider) => Provider = (inner) => inner) {
  return async () => ({ provider: wrapped(new MemoryProvider()) });
}

function lastLine(report: Parameters<typeof formatStressReport>[0]): string | undefined {
  return formatStressReport(report).split("\n").at(-1);
}

/** A run that was made, if only here. */
function made(store: string, configuration: StressConfigurationName, fields: Partial<StressResult>) {
  const result: StressResult = {
    provider: "memory",
    config: PARALLEL_DEFAULTS,
    launched: 100,
    completed: 100,
    failed: 0,
    failedInfrastructure: 0,
    failedConfiguration: 0,
    failedApplication: 0,
    failures: [],
    totalTimeMs: 5_000,
    orchPerSec: 20,
    activitiesPerSec: 100,
    avgLatencyMs: 50,
    successRate: 100,
    resources: { samples: 1, rssAverageBytes: 1, rssPeakBytes: 1, cpuAveragePercent: 1, cpuPeakPercent: 1 },
    ...fields,
  };
  const successRate = (result.completed / result.launched) * 100;
  return { store, configuration, result: { ...result, successRate } };
}
