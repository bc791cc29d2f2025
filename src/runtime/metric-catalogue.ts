// runtime/metric-catalogue.ts — the metrics that exist: their names, labels and buckets. What feeds them is in metrics.ts.
//
// Names end in `_total` for counters and in the unit for durations; the dispatcher metrics are the historic exception.

import { Counter, Gauge, Histogram } from "./metric-family.js";

const ORCHESTRATION_SECONDS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600];
const SUBORCHESTRATION_SECONDS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 600];
const ACTIVITY_SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const PROVIDER_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];
const DISPATCHER_MILLISECONDS = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 30_000, 60_000, 300_000];
const HISTORY_EVENTS = [10, 50, 100, 500, 1_000, 5_000, 10_000];
const TURNS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** Every metric of the runtime, in the order in which they are printed. */
export class MetricCatalogue {
  readonly starts = new Counter("duroxide_orchestration_starts_total", "Executions whose start was committed.", [
    "orchestration_name",
    "version",
    "initiated_by",
  ]);
  readonly completions = new Counter(
    "duroxide_orchestration_completions_total",
    "Executions that came to an end, by how they did.",
    ["orchestration_name", "version", "status", "final_turn_count"],
  );
  readonly failures = new Counter(
    "duroxide_orchestration_failures_total",
    "Executions that failed or were cancelled, by who is to blame.",
    ["orchestration_name", "version", "error_type", "error_category"],
  );
  readonly orchestrationInfrastructureErrors = new Counter(
    "duroxide_orchestration_infrastructure_errors_total",
    "Executions that failed for reasons of infrastructure.",
    ["orchestration_name", "error_category"],
  );
  readonly orchestrationConfigurationErrors = new Counter(
    "duroxide_orchestration_configuration_errors_total",
    "Executions that failed for reasons of code or configuration.",
    ["orchestration_name", "error_category"],
  );
  readonly durationSeconds = new Histogram(
    "duroxide_orchestration_duration_seconds",
    "From the start of an execution to its end.",
    ["orchestration_name", "version", "status"],
    ORCHESTRATION_SECONDS,
  );
  readonly turns = new Histogram(
    "duroxide_orchestration_turns",
    "Turns of an execution when it ended.",
    ["orchestration_name"],
    TURNS,
  );
  readonly historySize = new Histogram(
    "duroxide_orchestration_history_size",
    "Events of an execution when it ended.",
    ["orchestration_name"],
    HISTORY_EVENTS,
  );
  readonly continueAsNew = new Counter(
    "duroxide_orchestration_continue_as_new_total",
    "Executions that continued as new.",
    ["orchestration_name"],
  );
  readonly orchestrationPoison = new Counter(
    "duroxide_orchestration_poison_total",
    "Executions failed because messages, an activity or the history could not be processed.",
    [],
  );
  readonly messagesDropped = new Counter(
    "duroxide_orchestration_messages_dropped_total",
    "Messages to instances that nobody could receive.",
    ["reason"],
  );
  readonly limitViolations = new Counter(
    "duroxide_limit_violations_total",
    "Executions failed for exceeding a limit.",
    ["resource"],
  );
  readonly limitWarnings = new Counter("duroxide_limit_warnings_total", "Executions that have used half of a limit.", [
    "limit",
  ]);
  readonly activeOrchestrations = new Gauge(
    "duroxide_active_orchestrations",
    "Instances that have started and not ended: as the store last told, and as this process saw since.",
  );
  readonly orchestratorQueueDepth = new Gauge(
    "duroxide_orchestrator_queue_depth",
    "Messages to instances, as the store last told.",
  );
  readonly workerQueueDepth = new Gauge("duroxide_worker_queue_depth", "Activities to run, as the store last told.");
  readonly suborchestrationCalls = new Counter(
    "duroxide_suborchestration_calls_total",
    "Sub-orchestrations that came to an end.",
    ["parent_orchestration", "child_orchestration", "outcome"],
  );
  readonly suborchestrationSeconds = new Histogram(
    "duroxide_suborchestration_duration_seconds",
    "From the scheduling of a sub-orchestration to its answer.",
    ["parent_orchestration", "child_orchestration", "outcome"],
    SUBORCHESTRATION_SECONDS,
  );
  readonly activityExecutions = new Counter(
    "duroxide_activity_executions_total",
    "Runs of activities that came to an end.",
    ["activity_name", "outcome", "retry_attempt", "tag"],
  );
  readonly activitySeconds = new Histogram(
    "duroxide_activity_duration_seconds",
    "Wall time of a run of an activity.",
    ["activity_name", "outcome", "tag"],
    ACTIVITY_SECONDS,
  );
  readonly activityInfrastructureErrors = new Counter(
    "duroxide_activity_infrastructure_errors_total",
    "Runs of activities whose result could not be handed in.",
    ["activity_name"],
  );
  readonly activityConfigurationErrors = new Counter(
    "duroxide_activity_configuration_errors_total",
    "Fetches of activities that are not registered here.",
    ["activity_name"],
  );
  readonly activityPoison = new Counter(
    "duroxide_activity_poison_total",
    "Activities given up after too many attempts.",
    [],
  );
  readonly providerSeconds = new Histogram(
    "duroxide_provider_operation_duration_seconds",
    "Duration of storage calls; of a fetch, with its wait for work.",
    ["operation", "status"],
    PROVIDER_SECONDS,
  );
  readonly providerErrors = new Counter("duroxide_provider_errors_total", "Storage calls that failed.", [
    "operation",
    "error_type",
  ]);
  readonly orchestrationItemsFetched = new Counter(
    "duroxide_orchestration_dispatcher_items_fetched",
    "Orchestration items fetched.",
    [],
  );
  readonly turnMilliseconds = new Histogram(
    "duroxide_orchestration_dispatcher_processing_duration_ms",
    "Duration of a turn, its commit included.",
    [],
    DISPATCHER_MILLISECONDS,
  );
  readonly workerItemsFetched = new Counter("duroxide_worker_dispatcher_items_fetched", "Work items fetched.", []);
  readonly activityMilliseconds = new Histogram(
    "duroxide_worker_dispatcher_execution_duration_ms",
    "Wall time of a run of an activity, over all activities.",
    [],
    DISPATCHER_MILLISECONDS,
  );
}
