import { describe, expect, test } from "vitest";
import { ProviderError } from "../../src/errors.js";
import { activityFailed, cancelled, type ErrorDetails, nondeterminism } from "../../src/history/error-details.js";
import type { ActivityRef, Fact, OrchestrationRef } from "../../src/observer.js";
import { Counter } from "../../src/runtime/metric-family.js";
import { Metrics, type MetricsSnapshot } from "../../src/runtime/metrics.js";

const checkout: OrchestrationRef = {
  instanceId: "order-1",
  executionId: 1,
  orchestrationName: "Checkout",
  orchestrationVersion: "1.0.0",
};

const charge: ActivityRef = {
  ...checkout,
  activityName: "Charge",
  activityId: 2,
  workerId: "work-0-test",
  attempt: 1,
  tag: null,
  sessionId: null,
};

type FactOf<T extends Fact["type"]> = Extract<Fact, { type: T }>;

function started(initiatedBy: FactOf<"orchestration-started">["initiatedBy"] = "client"): Fact {
  return { type: "orchestration-started", ref: checkout, initiatedBy };
}

function ended(fields: Partial<FactOf<"orchestration-ended">> = {}): Fact {
  return {
    type: "orchestration-ended",
    ref: checkout,
    ending: "completed",
    details: null,
    durationMs: 4_000,
    historyEvents: 60,
    turns: 7,
    ...fields,
  };
}

function failed(details: ErrorDetails): Fact {
  return ended({ ending: "failed", details });
}

function activityEnded(fields: Partial<FactOf<"activity-ended">> = {}): Fact {
  return { type: "activity-ended", ref: charge, outcome: "success", durationMs: 250, details: null, ...fields };
}

function called(fields: Partial<FactOf<"provider-call">> = {}): Fact {
  const call = { provider: "memory", operation: "fetch_work_item", durationMs: 3, items: 0, error: null };
  return { type: "provider-call", ...call, ...fields };
}

function metricsOf(...facts: readonly Fact[]): Metrics {
  const metrics = new Metrics();
  for (const fact of facts) metrics.observer(fact);
  return metrics;
}

/** The lines of one metric, without its comments. */
function linesOf(metrics: Metrics, name: string): string[] {
  const lines = metrics.toPrometheus().split("\n");
  return lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

const infrastructure: ErrorDetails = { category: "infrastructure", operation: "ack", message: "x", retryable: true };
const limit: ErrorDetails = { category: "configuration", kind: "LimitExceeded", resource: "kv_keys", message: "x" };
const poison: ErrorDetails = {
  category: "poison",
  attemptCount: 11,
  maxAttempts: 10,
  messageType: { type: "Orchestration", instance: "order-1", executionId: 1 },
  message: "[]",
};

describe("orchestrations", () => {
  test("count as started once, with who started them", () => {
    const metrics = metricsOf(started(), started("suborchestration"), started("continueAsNew"), started());

    expect(metrics.snapshot().orchestrationStarts).toBe(4);
    expect(linesOf(metrics, "duroxide_orchestration_starts_total")).toEqual([
      'duroxide_orchestration_starts_total{orchestration_name="Checkout",version="1.0.0",initiated_by="client"} 2',
      'duroxide_orchestration_starts_total{orchestration_name="Checkout",version="1.0.0",initiated_by="suborchestration"} 1',
      'duroxide_orchestration_starts_total{orchestration_name="Checkout",version="1.0.0",initiated_by="continueAsNew"} 1',
    ]);
  });

  test.each([
    { turns: 1, range: "1-5" },
    { turns: 5, range: "1-5" },
    { turns: 6, range: "6-10" },
    { turns: 11, range: "11-50" },
    { turns: 51, range: "50+" },
  ])("that took $turns turns are counted under $range", ({ turns, range }) => {
    const [line] = linesOf(metricsOf(ended({ turns })), "duroxide_orchestration_completions_total");
    expect(line).toContain(`status="success",final_turn_count="${range}"} 1`);
  });

  test("are measured from start to end, with their turns and their history", () => {
    const metrics = metricsOf(ended(), ended({ durationMs: 90_000_000 }));

    expect(linesOf(metrics, "duroxide_orchestration_duration_seconds_bucket").map(bucketOf)).toEqual([
      "0.1: 0",
      "0.5: 0",
      "1: 0",
      "2: 0",
      "5: 1",
      "10: 1",
      "30: 1",
      "60: 1",
      "300: 1",
      "600: 1",
      "1800: 1",
      "3600: 1",
      "+Inf: 2",
    ]);
    const labels = '{orchestration_name="Checkout",version="1.0.0",status="success"}';
    expect(linesOf(metrics, "duroxide_orchestration_duration_seconds_sum")).toEqual([
      `duroxide_orchestration_duration_seconds_sum${labels} 90004`,
    ]);
    expect(linesOf(metrics, "duroxide_orchestration_duration_seconds_count")[0]).toMatch(/ 2$/);
    expect(linesOf(metrics, "duroxide_orchestration_turns_sum")[0]).toMatch(/ 14$/);
    expect(linesOf(metrics, "duroxide_orchestration_history_size_sum")[0]).toMatch(/ 120$/);
  });

  test.each<[what: string, fact: Fact, moved: Partial<MetricsSnapshot>]>([
    ["starts", started(), { orchestrationStarts: 1, activeOrchestrations: 1 }],
    ["completes", ended(), { orchestrationCompletions: 1 }],
    ["continues as new", ended({ ending: "continuedAsNew" }), { orchestrationContinueAsNew: 1 }],
    [
      "fails by its own code",
      failed(activityFailed("no")),
      { orchestrationFailures: 1, orchestrationApplicationErrors: 1 },
    ],
    [
      "fails by the infrastructure",
      failed(infrastructure),
      { orchestrationFailures: 1, orchestrationInfrastructureErrors: 1 },
    ],
    [
      "fails by its configuration",
      failed(nondeterminism("changed")),
      { orchestrationFailures: 1, orchestrationConfigurationErrors: 1 },
    ],
    ["fails as poison", failed(poison), { orchestrationFailures: 1, orchestrationPoison: 1 }],
  ])("move the counters of what happened, and no others: one that %s", (_what, fact, moved) => {
    expect(metricsOf(fact).snapshot()).toEqual({ ...new Metrics().snapshot(), ...moved });
  });

  test("that fail are counted once each, by who is to blame", () => {
    const metrics = metricsOf(
      failed(activityFailed("no")),
      ended({ ending: "cancelled", details: cancelled("asked to") }),
      failed(infrastructure),
      failed(nondeterminism("changed")),
      failed(limit),
      failed(poison),
      { type: "orchestration-poisoned", instanceId: "order-1", details: poison },
    );

    expect(metrics.snapshot()).toMatchObject({
      orchestrationCompletions: 0,
      orchestrationFailures: 6,
      orchestrationApplicationErrors: 2,
      orchestrationInfrastructureErrors: 1,
      orchestrationConfigurationErrors: 2,
      orchestrationPoison: 1,
    });
    const blames = linesOf(metrics, "duroxide_orchestration_failures_total").map(
      (line) => line.match(/error_type.*/)?.[0],
    );
    expect(blames).toEqual([
      'error_type="app_error",error_category="ActivityFailed"} 1',
      'error_type="app_error",error_category="Cancelled"} 1',
      'error_type="infrastructure_error",error_category="ack"} 1',
      'error_type="config_error",error_category="Nondeterminism"} 1',
      'error_type="config_error",error_category="LimitExceeded"} 1',
      'error_type="poison",error_category="Orchestration"} 1',
    ]);
    expect(linesOf(metrics, "duroxide_limit_violations_total")).toEqual([
      'duroxide_limit_violations_total{resource="kv_keys"} 1',
    ]);
    expect(linesOf(metrics, "duroxide_orchestration_poison_total")).toEqual(["duroxide_orchestration_poison_total 1"]);
  });

  test("that fail as poison are counted by their failure, whosever message it was", () => {
    const ofActivity: ErrorDetails = {
      ...poison,
      messageType: { type: "Activity", instance: "order-1", executionId: 1, activityName: "Charge", activityId: 2 },
    };
    const metrics = metricsOf(
      failed(poison),
      { type: "orchestration-poisoned", instanceId: "order-1", details: poison },
      failed(ofActivity),
      { type: "activity-poisoned", ref: charge, details: ofActivity },
      failed(nondeterminism("another engine's")),
      { type: "orchestration-poisoned", instanceId: "order-2", details: nondeterminism("another engine's") },
    );

    expect(metrics.snapshot()).toMatchObject({
      orchestrationFailures: 3,
      orchestrationPoison: 2,
      orchestrationConfigurationErrors: 1,
      activityPoison: 1,
    });
  });

  test("that continue as new name no execution", () => {
    const metrics = metricsOf(ended({ ending: "continuedAsNew" }), ended({ ending: "continuedAsNew" }));

    expect(metrics.snapshot()).toMatchObject({ orchestrationContinueAsNew: 2, orchestrationCompletions: 0 });
    expect(linesOf(metrics, "duroxide_orchestration_continue_as_new_total")).toEqual([
      'duroxide_orchestration_continue_as_new_total{orchestration_name="Checkout"} 2',
    ]);
  });

  test("are active from start to end, and the store knows better", () => {
    const metrics = metricsOf(started(), started());
    expect(metrics.snapshot().activeOrchestrations).toBe(2);
    metrics.observer(ended());
    expect(metrics.snapshot().activeOrchestrations).toBe(1);

    metrics.observer({ type: "queue-depths", orchestratorQueue: 10, workerQueue: 5, activeOrchestrations: 100 });
    expect(metrics.snapshot()).toMatchObject({
      activeOrchestrations: 100,
      orchestratorQueueDepth: 10,
      workerQueueDepth: 5,
    });
    metrics.observer(ended());
    metrics.observer({ type: "queue-depths", orchestratorQueue: 0, workerQueue: 0 });
    expect(metrics.snapshot()).toMatchObject({
      activeOrchestrations: 99,
      orchestratorQueueDepth: 0,
      workerQueueDepth: 0,
    });
  });

  test("that started elsewhere never make the number of active ones negative", () => {
    expect(metricsOf(ended(), ended()).snapshot().activeOrchestrations).toBe(0);
  });

  test("count the children they called", () => {
    const call: Fact = {
      type: "suborchestration-ended",
      ref: checkout,
      childName: "Ship",
      outcome: "success",
      durationMs: 700,
    };
    const metrics = metricsOf(call, { ...call, outcome: "failed" });

    expect(metrics.snapshot().suborchestrationCalls).toBe(2);
    const labels = 'parent_orchestration="Checkout",child_orchestration="Ship",outcome="success"';
    expect(linesOf(metrics, "duroxide_suborchestration_calls_total")[0]).toBe(
      `duroxide_suborchestration_calls_total{${labels}} 1`,
    );
    expect(linesOf(metrics, "duroxide_suborchestration_duration_seconds_sum")[0]).toMatch(/ 0.7$/);
  });
});

describe("activities", () => {
  test("are counted by what became of them; what never ran is not counted", () => {
    const metrics = metricsOf(
      activityEnded(),
      activityEnded({ outcome: "failed", details: activityFailed("no") }),
      activityEnded({ outcome: "cancelled" }),
      activityEnded({ outcome: "lock-lost" }),
      activityEnded({ outcome: "abandoned" }),
      activityEnded({ outcome: "abandoned", details: infrastructure }),
      activityEnded({ outcome: "skipped" }),
    );

    expect(metrics.snapshot()).toMatchObject({
      activitySuccess: 1,
      activityApplicationErrors: 1,
      activityCancelled: 2,
      activityInfrastructureErrors: 2,
      activityConfigurationErrors: 0,
    });
    expect(linesOf(metrics, "duroxide_activity_infrastructure_errors_total")).toEqual([
      'duroxide_activity_infrastructure_errors_total{activity_name="Charge"} 2',
    ]);
    expect(linesOf(metrics, "duroxide_worker_dispatcher_execution_duration_ms_count")[0]).toMatch(/ 6$/);
  });

  test("say which retry they are, and their tag", () => {
    const metrics = metricsOf(
      activityEnded(),
      activityEnded({ ref: { ...charge, attempt: 3, tag: "gpu" } }),
      activityEnded({ ref: { ...charge, attempt: 500 } }),
    );

    expect(linesOf(metrics, "duroxide_activity_executions_total")).toEqual([
      'duroxide_activity_executions_total{activity_name="Charge",outcome="success",retry_attempt="0",tag="default"} 1',
      'duroxide_activity_executions_total{activity_name="Charge",outcome="success",retry_attempt="2",tag="gpu"} 1',
      'duroxide_activity_executions_total{activity_name="Charge",outcome="success",retry_attempt="10+",tag="default"} 1',
    ]);
  });

  test("that are unregistered or poisoned are counted apart", () => {
    const metrics = metricsOf(
      { type: "activity-unregistered", ref: charge, delayMs: 1_000 },
      { type: "activity-poisoned", ref: charge, details: poison },
    );

    expect(metrics.snapshot()).toMatchObject({ activityConfigurationErrors: 1, activityPoison: 1 });
  });
});

describe("storage calls", () => {
  test("are timed by how they ended, and their errors counted by kind", () => {
    const metrics = metricsOf(
      called({ items: 1 }),
      called(),
      called({ operation: "fetch_orchestration_item", items: 1 }),
      called({ error: new ProviderError("transient", "fetchWorkItem", "busy") }),
      called({ operation: "read", error: new Error("bug") }),
    );

    expect(metrics.snapshot()).toMatchObject({
      providerErrors: 2,
      workerDispatcherItemsFetched: 1,
      orchestrationDispatcherItemsFetched: 1,
    });
    expect(linesOf(metrics, "duroxide_provider_errors_total")).toEqual([
      'duroxide_provider_errors_total{operation="fetch_work_item",error_type="transient"} 1',
      'duroxide_provider_errors_total{operation="read",error_type="other"} 1',
    ]);
    expect(linesOf(metrics, "duroxide_provider_operation_duration_seconds_count")).toContain(
      'duroxide_provider_operation_duration_seconds_count{operation="fetch_work_item",status="success"} 2',
    );
  });
});

describe("what dispatchers do", () => {
  test("is measured in milliseconds, by turn and by activity", () => {
    const turn = { type: "turn-committed", ref: checkout, newEvents: 1, messages: 1, isWarm: true } as const;
    const metrics = metricsOf({ ...turn, durationMs: 7 }, { ...turn, durationMs: 5 }, activityEnded());

    const [turns, activities] = [
      "duroxide_orchestration_dispatcher_processing_duration_ms",
      "duroxide_worker_dispatcher_execution_duration_ms",
    ];
    expect(linesOf(metrics, `${turns}_sum`)).toEqual([`${turns}_sum 12`]);
    expect(linesOf(metrics, `${turns}_count`)).toEqual([`${turns}_count 2`]);
    expect(linesOf(metrics, `${activities}_sum`)).toEqual([`${activities}_sum 250`]);
  });
});

describe("what dispatchers fetch", () => {
  test("adds up, for each of them", () => {
    const turns = [3, 5].map((items) => called({ operation: "fetch_orchestration_item", items }));
    const metrics = metricsOf(...turns, called({ items: 4 }), called({ items: 6 }), called({ operation: "read" }));

    expect(metrics.snapshot()).toMatchObject({
      orchestrationDispatcherItemsFetched: 8,
      workerDispatcherItemsFetched: 10,
    });
    expect(linesOf(metrics, "duroxide_orchestration_dispatcher_items_fetched")).toEqual([
      "duroxide_orchestration_dispatcher_items_fetched 8",
    ]);
    expect(linesOf(metrics, "duroxide_worker_dispatcher_items_fetched")).toEqual([
      "duroxide_worker_dispatcher_items_fetched 10",
    ]);
  });
});

describe("messages that nobody can receive", () => {
  test("add up, by the reason", () => {
    const dropped = (why: string, count: number): Fact => ({ type: "messages-dropped", instanceId: "i", why, count });
    const metrics = metricsOf(dropped("duplicate", 2), dropped("instance-ended", 1), dropped("duplicate", 3));

    expect(metrics.snapshot().messagesDropped).toBe(6);
    expect(linesOf(metrics, "duroxide_orchestration_messages_dropped_total")).toEqual([
      'duroxide_orchestration_messages_dropped_total{reason="duplicate"} 5',
      'duroxide_orchestration_messages_dropped_total{reason="instance-ended"} 1',
    ]);
  });
});

describe("the text for Prometheus", () => {
  test("describes every metric that it holds, once, and ends with a line break", () => {
    const text = metricsOf(started(), ended(), activityEnded(), called({ items: 1 })).toPrometheus();
    const types = text.split("\n").filter((line) => line.startsWith("# TYPE"));

    expect(text.endsWith("\n")).toBe(true);
    expect(new Set(types).size).toBe(types.length);
    expect(types).toContain("# TYPE duroxide_orchestration_duration_seconds histogram");
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) duroxide_\w+ .+|duroxide_\w+(\{[^}]*\})? [\d.e+-]+)$/);
    }
  });

  test("escapes what users put into names", () => {
    const ref = { ...checkout, orchestrationName: 'a"b\\c\nd' };
    const metrics = metricsOf({ type: "orchestration-started", ref, initiatedBy: "client" });

    expect(metrics.toPrometheus()).toContain('orchestration_name="a\\"b\\\\c\\nd"');
  });

  test("of a process that did nothing has its gauges at zero", () => {
    const metrics = new Metrics();
    for (const gauge of ["active_orchestrations", "orchestrator_queue_depth", "worker_queue_depth"]) {
      expect(linesOf(metrics, `duroxide_${gauge}`)).toEqual([`duroxide_${gauge} 0`]);
    }
    expect(new Set(Object.values(metrics.snapshot()))).toEqual(new Set([0]));
  });
});

describe("the number of series", () => {
  test("is bounded: what comes later is counted together", () => {
    const counter = new Counter("names_total", "Names.", ["name", "kind"]);
    for (let index = 0; index < 5_000; index += 1) counter.add([`name-${index}`, "x"]);
    counter.add(["name-7", "x"]);
    const lines = counter.lines();

    expect(lines.length).toBeLessThan(1_010);
    expect(lines).toContain('names_total{name="name-7",kind="x"} 2');
    expect(lines).toContain('names_total{name="other",kind="other"} 4000');
  });
});

describe("warnings of limits", () => {
  test("are counted by limit", () => {
    const near = { type: "limit-near", ref: checkout, value: 5, max: 10 } as const;
    const metrics = metricsOf({ ...near, limit: "maxKvKeys" }, { ...near, limit: "maxHistoryEvents" });
    expect(metrics.snapshot()).toEqual({ ...new Metrics().snapshot(), limitWarnings: 2 });
    expect(linesOf(metrics, "duroxide_limit_warnings_total")).toEqual([
      'duroxide_limit_warnings_total{limit="maxKvKeys"} 1',
      'duroxide_limit_warnings_total{limit="maxHistoryEvents"} 1',
    ]);
  });
});

describe("other facts", () => {
  test("are ignored", () => {
    const metrics = metricsOf(
      { type: "turn-lock-lost", instanceId: "order-1" },
      { type: "activity-started", ref: charge },
    );
    expect(metrics.snapshot()).toEqual(new Metrics().snapshot());
  });
});

/** `5: 1` of a bucket's line. */
function bucketOf(line: string): string {
  const [, bound, count] = line.match(/le="(.+)"} (\d+)$/) ?? [];
  return `${bound}: ${count}`;
}
