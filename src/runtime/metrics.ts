// runtime/metrics.ts — counters, gauges and histograms of one process, fed by the facts and by nothing else.
//
//   M1. Every failure is counted once, where it was committed; a start when its `OrchestrationStarted` was.
//   M2. Durations of orchestrations run from their start to their end, not over their last turn.
//   M3. No label names an instance or an execution: the number of series is bounded (see metric-family.ts).

import { ProviderError, unreachable } from "../errors.js";
import type { ErrorDetails } from "../history/error-details.js";
import type { Fact, Observer } from "../observer.js";
import { MetricCatalogue } from "./metric-catalogue.js";

/** Totals since the metrics were made, over all names. */
export interface MetricsSnapshot {
  readonly orchestrationStarts: number;
  /** Executions that returned. Failed and continued ones are counted apart. */
  readonly orchestrationCompletions: number;
  /** Cancelled ones included. By category: the four below. */
  readonly orchestrationFailures: number;
  readonly orchestrationApplicationErrors: number;
  readonly orchestrationInfrastructureErrors: number;
  readonly orchestrationConfigurationErrors: number;
  /** Fetched too often, or failed with an activity or a child that was, or of a history that cannot be read. */
  readonly orchestrationPoison: number;
  readonly orchestrationContinueAsNew: number;
  /** Messages that nobody could receive. */
  readonly messagesDropped: number;
  /** Executions that have used half of a limit, one for each limit. */
  readonly limitWarnings: number;
  /** Counted when the child has ended. */
  readonly suborchestrationCalls: number;
  readonly activitySuccess: number;
  readonly activityApplicationErrors: number;
  /** The lock was lost, or the store did not take the outcome: the activity runs again. */
  readonly activityInfrastructureErrors: number;
  /** Given back, because nobody here can run it. */
  readonly activityConfigurationErrors: number;
  readonly activityCancelled: number;
  readonly activityPoison: number;
  readonly orchestrationDispatcherItemsFetched: number;
  readonly workerDispatcherItemsFetched: number;
  readonly providerErrors: number;
  /** As of the last `Runtime.refreshGauges`, and reckoned on from there by what happens in this process. */
  readonly activeOrchestrations: number;
  /** As of the last `Runtime.refreshGauges`; so the next. */
  readonly orchestratorQueueDepth: number;
  readonly workerQueueDepth: number;
}

type Counts = { -readonly [K in Exclude<keyof MetricsSnapshot, keyof Gauges>]: number };
type Gauges = Pick<MetricsSnapshot, "activeOrchestrations" | "orchestratorQueueDepth" | "workerQueueDepth">;
type FactOf<T extends Fact["type"]> = Extract<Fact, { readonly type: T }>;

/**
 * Keeps the metrics of one process in memory. Every runtime has its own: `runtime.metrics`.
 *
 * @example
 * import { createServer } from "node:http";
 *
 * createServer((_request, response) => response.end(runtime.metrics.toPrometheus())).listen(9_464);
 */
export class Metrics {
  readonly #counts = noCounts();
  readonly #families = new MetricCatalogue();

  /** Hand it to the runtime. */
  readonly observer: Observer = (fact) => this.#record(fact);

  /** The totals as they are now. */
  snapshot(): MetricsSnapshot {
    const { activeOrchestrations, orchestratorQueueDepth, workerQueueDepth } = this.#families;
    return {
      ...this.#counts,
      activeOrchestrations: activeOrchestrations.value,
      orchestratorQueueDepth: orchestratorQueueDepth.value,
      workerQueueDepth: workerQueueDepth.value,
    };
  }

  /** The text that Prometheus scrapes (exposition format 0.0.4). */
  toPrometheus(): string {
    const lines = Object.values(this.#families).flatMap((family) => family.lines());
    return `${lines.join("\n")}\n`;
  }

  #record(fact: Fact): void {
    switch (fact.type) {
      case "orchestration-started":
        return this.#orchestrationStarted(fact);
      case "turn-committed":
        return this.#families.turnMilliseconds.observe([], fact.durationMs);
      case "orchestration-ended":
        return this.#orchestrationEnded(fact);
      case "messages-dropped":
        this.#counts.messagesDropped += fact.count;
        return this.#families.messagesDropped.add([fact.why], fact.count);
      case "limit-near":
        this.#counts.limitWarnings += 1;
        return this.#families.limitWarnings.add([fact.limit]);
      case "suborchestration-ended":
        return this.#suborchestrationEnded(fact);
      case "activity-ended":
        return this.#activityEnded(fact);
      case "activity-unregistered":
        this.#counts.activityConfigurationErrors += 1;
        return this.#families.activityConfigurationErrors.add([fact.ref.activityName]);
      case "activity-poisoned":
        this.#counts.activityPoison += 1;
        return this.#families.activityPoison.add([]);
      case "provider-call":
        return this.#providerCalled(fact);
      case "queue-depths":
        return this.#queuesMeasured(fact);
      case "runtime-started":
      case "runtime-stopped":
      case "turn-abandoned":
      case "turn-lock-lost":
      case "orchestration-poisoned": // M1: its failure is told beside it.
      case "activity-started":
      case "unregistered-activity-scheduled": // A hint: what comes of it is told by whoever fetches it.
      case "activity-detached":
      case "trace":
      case "nondeterministic-call":
      case "rejection-kept":
      case "loop-failed":
      case "observer-failed":
        return;
      default:
        return unreachable(fact);
    }
  }

  #orchestrationStarted({ ref, initiatedBy }: FactOf<"orchestration-started">): void {
    const { starts, activeOrchestrations } = this.#families;
    this.#counts.orchestrationStarts += 1;
    starts.add([ref.orchestrationName, ref.orchestrationVersion, initiatedBy]);
    activeOrchestrations.set(activeOrchestrations.value + 1);
  }

  #orchestrationEnded(fact: FactOf<"orchestration-ended">): void {
    const { orchestrationName: name, orchestrationVersion: version } = fact.ref;
    const { completions, durationSeconds, turns, historySize, activeOrchestrations } = this.#families;
    const status = STATUS_OF[fact.ending];
    completions.add([name, version, status, turnCountRange(fact.turns)]);
    durationSeconds.observe([name, version, status], fact.durationMs / 1_000);
    turns.observe([name], fact.turns);
    historySize.observe([name], fact.historyEvents);
    activeOrchestrations.set(Math.max(0, activeOrchestrations.value - 1)); // It may have started in another process.
    switch (fact.ending) {
      case "completed":
        this.#counts.orchestrationCompletions += 1;
        return;
      case "continuedAsNew":
        this.#counts.orchestrationContinueAsNew += 1;
        return this.#families.continueAsNew.add([name]);
      case "failed":
      case "cancelled":
        return this.#orchestrationFailed(name, version, fact.details);
      default:
        return unreachable(fact.ending);
    }
  }

  #orchestrationFailed(name: string, version: string, details: ErrorDetails | null): void {
    const families = this.#families;
    const category = errorCategory(details);
    this.#counts.orchestrationFailures += 1;
    families.failures.add([name, version, details === null ? "unknown" : ERROR_TYPE_OF[details.category], category]);
    switch (details?.category) {
      case "application":
        this.#counts.orchestrationApplicationErrors += 1;
        return;
      case "infrastructure":
        this.#counts.orchestrationInfrastructureErrors += 1;
        return families.orchestrationInfrastructureErrors.add([name, category]);
      case "configuration":
        this.#counts.orchestrationConfigurationErrors += 1;
        families.orchestrationConfigurationErrors.add([name, category]);
        if (details.kind === "LimitExceeded") families.limitViolations.add([details.resource]);
        return;
      case "poison":
        this.#counts.orchestrationPoison += 1;
        return families.orchestrationPoison.add([]);
      case undefined:
        return;
      default:
        return unreachable(details);
    }
  }

  #suborchestrationEnded({ ref, childName, outcome, durationMs }: FactOf<"suborchestration-ended">): void {
    const labels = [ref.orchestrationName, childName, outcome];
    this.#counts.suborchestrationCalls += 1;
    this.#families.suborchestrationCalls.add(labels);
    this.#families.suborchestrationSeconds.observe(labels, durationMs / 1_000);
  }

  #activityEnded(fact: FactOf<"activity-ended">): void {
    const outcome = activityOutcome(fact);
    if (outcome === null) return;
    const { activityName: name, attempt, tag } = fact.ref;
    const families = this.#families;
    this.#counts[ACTIVITY_COUNT_OF[outcome]] += 1;
    families.activityExecutions.add([name, outcome, retryLabel(attempt), tag ?? "default"]);
    families.activitySeconds.observe([name, outcome, tag ?? "default"], fact.durationMs / 1_000);
    families.activityMilliseconds.observe([], fact.durationMs);
    if (outcome === "infra_error") families.activityInfrastructureErrors.add([name]);
  }

  #providerCalled({ operation, durationMs, items, error }: FactOf<"provider-call">): void {
    const families = this.#families;
    families.providerSeconds.observe([operation, error === null ? "success" : "error"], durationMs / 1_000);
    if (error !== null) {
      this.#counts.providerErrors += 1;
      families.providerErrors.add([operation, error instanceof ProviderError ? error.kind : "other"]);
    }
    if (items === 0) return;
    if (operation === "fetch_orchestration_item") {
      this.#counts.orchestrationDispatcherItemsFetched += items;
      families.orchestrationItemsFetched.add([], items);
    } else if (operation === "fetch_work_item") {
      this.#counts.workerDispatcherItemsFetched += items;
      families.workerItemsFetched.add([], items);
    }
  }

  #queuesMeasured({ orchestratorQueue, workerQueue, activeOrchestrations }: FactOf<"queue-depths">): void {
    this.#families.orchestratorQueueDepth.set(orchestratorQueue);
    this.#families.workerQueueDepth.set(workerQueue);
    if (activeOrchestrations !== undefined) this.#families.activeOrchestrations.set(activeOrchestrations);
  }
}

const STATUS_OF = {
  completed: "success",
  failed: "failed",
  cancelled: "failed",
  continuedAsNew: "continuedAsNew",
} as const;

const ERROR_TYPE_OF = {
  application: "app_error",
  infrastructure: "infrastructure_error",
  configuration: "config_error",
  poison: "poison",
} as const;

type ActivityOutcomeLabel = "success" | "app_error" | "infra_error" | "cancelled";

const ACTIVITY_COUNT_OF = {
  success: "activitySuccess",
  app_error: "activityApplicationErrors",
  infra_error: "activityInfrastructureErrors",
  cancelled: "activityCancelled",
} as const;

/** Null for what never ran. */
function activityOutcome({ outcome, details }: FactOf<"activity-ended">): ActivityOutcomeLabel | null {
  switch (outcome) {
    case "success":
      return "success";
    case "failed":
      return "app_error";
    case "cancelled":
      return "cancelled";
    case "lock-lost":
      return "infra_error";
    case "abandoned":
      return details === null ? "cancelled" : "infra_error";
    case "skipped":
      return null;
    default:
      return unreachable(outcome);
  }
}

/** The word within an error's category that tells most: its kind, or the operation that failed. */
function errorCategory(details: ErrorDetails | null): string {
  switch (details?.category) {
    case "application":
      return details.kind.type;
    case "configuration":
      return details.kind;
    case "infrastructure":
      return details.operation;
    case "poison":
      return details.messageType.type;
    case undefined:
      return "unknown";
    default:
      return unreachable(details);
  }
}

function turnCountRange(turns: number): string {
  if (turns <= 5) return "1-5";
  if (turns <= 10) return "6-10";
  return turns <= 50 ? "11-50" : "50+";
}

/** Attempts before this one. */
function retryLabel(attempt: number): string {
  return attempt > 10 ? "10+" : String(Math.max(0, attempt - 1));
}

function noCounts(): Counts {
  return {
    orchestrationStarts: 0,
    orchestrationCompletions: 0,
    orchestrationFailures: 0,
    orchestrationApplicationErrors: 0,
    orchestrationInfrastructureErrors: 0,
    orchestrationConfigurationErrors: 0,
    orchestrationPoison: 0,
    orchestrationContinueAsNew: 0,
    messagesDropped: 0,
    limitWarnings: 0,
    suborchestrationCalls: 0,
    activitySuccess: 0,
    activityApplicationErrors: 0,
    activityInfrastructureErrors: 0,
    activityConfigurationErrors: 0,
    activityCancelled: 0,
    activityPoison: 0,
    orchestrationDispatcherItemsFetched: 0,
    workerDispatcherItemsFetched: 0,
    providerErrors: 0,
  };
}
