// test/engine/drive.ts — runs the engine by hand: a history, some messages, a turn.

import { expect } from "vitest";
import type { OrchestrationDefinition } from "../../src/define.js";
import { orchestration } from "../../src/define.js";
import { Execution } from "../../src/engine/execution.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { ExecutionInit, OrchestrationHandler, TurnOutcome } from "../../src/engine/turn.js";
import { activityFailed as applicationFailure, type ErrorDetails } from "../../src/history/error-details.js";
import type { Event, EventPayload } from "../../src/history/event.js";
import type { KvEntry } from "../../src/history/kv-entry.js";
import { decodePayload, encodePayload } from "../../src/history/payload.js";
import type { OrchestratorItem } from "../../src/history/work-item.js";

export const INSTANCE = "test-instance";
export const NOW = 1_700_000_000_000;

export type Code = (ctx: OrchestrationContext, input: never) => Promise<unknown>;

export interface Drive {
  readonly code: Code;
  readonly history?: readonly Event[];
  readonly messages?: readonly OrchestratorItem[];
  readonly kv?: Readonly<Record<string, string>>;
  readonly nowMs?: number;
  readonly executionId?: number;
  readonly input?: string;
  readonly customStatus?: string;
  readonly traces?: string[];
  readonly onForeignAwait?: (message: string) => void;
  readonly watch?: ExecutionInit["watch"];
}

/** An execution in memory: `turn` goes on where the last turn ended. */
export class Driver {
  readonly execution: Execution;
  readonly history: Event[];
  #nowMs: number;

  constructor(drive: Drive) {
    this.history = [...(drive.history ?? [])];
    this.#nowMs = drive.nowMs ?? NOW;
    this.execution = new Execution({
      instance: INSTANCE,
      executionId: drive.executionId ?? 1,
      handler: handlerOf(drive.code),
      history: [...this.history],
      started:
        this.history.length > 0
          ? null
          : {
              type: "OrchestrationStarted",
              name: "TestOrch",
              version: "1.0.0",
              input: drive.input ?? '"test-input"',
              parentInstance: null,
              parentId: null,
              ...(drive.customStatus === undefined ? {} : { initialCustomStatus: drive.customStatus }),
            },
      kvSnapshot: new Map<string, KvEntry>(
        Object.entries(drive.kv ?? {}).map(([key, value]) => [key, { value, lastUpdatedAtMs: 1 }]),
      ),
      newGuid: () => "00000000-0000-4000-8000-000000000000",
      trace: (level, message) => drive.traces?.push(`${level}: ${message}`),
      ...(drive.onForeignAwait === undefined ? {} : { onForeignAwait: drive.onForeignAwait }),
      ...(drive.watch === undefined ? {} : { watch: drive.watch }),
    });
  }

  async turn(...messages: OrchestratorItem[]): Promise<TurnOutcome> {
    this.#nowMs += 1;
    const outcome = await this.execution.turn({ nowMs: this.#nowMs, messages });
    this.history.push(...outcome.events);
    return outcome;
  }
}

/**
 * An execution that nobody believes. Every turn is taken by the warm execution, by one replayed from scratch and by one
 * that was evicted at each earlier turn: all must decide the same. And history as it then is must ask for nothing new.
 */
export class DoubtedDriver {
  readonly history: Event[] = [];
  readonly #drive: Drive;
  readonly #drivers: Driver[] = [];
  #nowMs = NOW;

  constructor(drive: Omit<Drive, "history" | "messages" | "nowMs">) {
    this.#drive = drive;
  }

  async turn(...messages: OrchestratorItem[]): Promise<TurnOutcome> {
    this.#drivers.push(new Driver({ ...this.#drive, history: this.history, nowMs: this.#nowMs }));
    const outcomes: TurnOutcome[] = [];
    for (const driver of this.#drivers) outcomes.push(await driver.turn(...messages));
    this.#nowMs += 1;
    const [live, ...replayed] = outcomes as [TurnOutcome, ...TurnOutcome[]];
    for (const [place, outcome] of replayed.entries()) {
      expect(outcome, `turn ${this.#drivers.length}, evicted before turn ${place + 2}`).toEqual(live);
    }
    this.history.push(...live.events);
    await this.#assertNothingNew();
    return live;
  }

  async #assertNothingNew(): Promise<void> {
    const idle = await runTurn({ ...this.#drive, history: this.history, nowMs: this.#nowMs });
    const { kvKeyCount, ...decisions } = idle;
    expect(decisions, `replay of ${summary(this.history).join(" ")}`).toEqual(NOTHING);
  }
}

const NOTHING: Omit<TurnOutcome, "kvKeyCount"> = {
  result: { kind: "waiting" },
  events: [],
  activities: [],
  timers: [],
  children: [],
  detached: [],
  cancelledActivities: [],
  cancelledTimers: [],
  cancelledChildren: [],
  droppedMessages: [],
};

/** One turn of a fresh execution over a history. */
export function runTurn(drive: Drive): Promise<TurnOutcome> {
  return new Driver(drive).turn(...(drive.messages ?? []));
}

export function handlerOf(code: Code): OrchestrationHandler {
  return async (ctx, input) => encodePayload(await code(ctx, decodePayload(input) as never), "output");
}

export function define(code: Code): OrchestrationDefinition<never, unknown> {
  return orchestration("TestOrch", code);
}

/** Events numbered from 1, in the shorthand of tests: `[payload, source]`, or a payload alone. */
export function historyOf(...entries: readonly (EventPayload | readonly [EventPayload, number])[]): Event[] {
  return entries.map((entry, place) => {
    const [payload, source] = Array.isArray(entry) ? entry : [entry, null];
    return eventOf(place + 1, payload as EventPayload, source as number | null);
  });
}

export function eventOf(eventId: number, payload: EventPayload, sourceEventId: number | null = null): Event {
  return {
    eventId,
    sourceEventId,
    instanceId: INSTANCE,
    executionId: 1,
    timestampMs: NOW,
    duroxideVersion: "0.1.30",
    ...payload,
  };
}

export const started: EventPayload = {
  type: "OrchestrationStarted",
  name: "TestOrch",
  version: "1.0.0",
  input: '"test-input"',
  parentInstance: null,
  parentId: null,
};

export const scheduled = (name: string, input = "null"): EventPayload => ({ type: "ActivityScheduled", name, input });

export const activityDone = (result: unknown): EventPayload => ({
  type: "ActivityCompleted",
  result: JSON.stringify(result),
});
export const timerCreated: EventPayload = { type: "TimerCreated", fireAtMs: 1_000 };
export const timerFired: EventPayload = { type: "TimerFired", fireAtMs: 1_000 };
export const subscribed = (name: string): EventPayload => ({ type: "ExternalSubscribed", name });
export const eventArrived = (name: string, data: unknown): EventPayload => ({
  type: "ExternalEvent",
  name,
  data: JSON.stringify(data),
});
export const queueSubscribed = (name: string): EventPayload => ({ type: "ExternalSubscribedPersistent", name });
export const childScheduled = (name: string, instance: string, input = "null"): EventPayload => ({
  type: "SubOrchestrationScheduled",
  name,
  instance,
  input,
});
export const childDone = (result: unknown): EventPayload => ({
  type: "SubOrchestrationCompleted",
  result: JSON.stringify(result),
});
export const keySet = (key: string, value: string): EventPayload => ({
  type: "KeyValueSet",
  key,
  value,
  lastUpdatedAtMs: 5,
});
export const activityDropped: EventPayload = { type: "ActivityCancelRequested", reason: "dropped_future" };

export const completed = (id: number, result: unknown, executionId = 1): OrchestratorItem => ({
  type: "ActivityCompleted",
  instance: INSTANCE,
  executionId,
  id,
  result: JSON.stringify(result),
});

export const activityFailed = (id: number, failure: string | ErrorDetails): OrchestratorItem => ({
  type: "ActivityFailed",
  instance: INSTANCE,
  executionId: 1,
  id,
  details: detailsOf(failure),
});

export const fired = (id: number): OrchestratorItem => ({
  type: "TimerFired",
  instance: INSTANCE,
  executionId: 1,
  id,
  fireAtMs: NOW,
});

export const raised = (name: string, data: unknown): OrchestratorItem => ({
  type: "ExternalRaised",
  instance: INSTANCE,
  name,
  data: JSON.stringify(data),
});

export const queued = (name: string, data: unknown): OrchestratorItem => ({
  type: "QueueMessage",
  instance: INSTANCE,
  name,
  data: JSON.stringify(data),
});

export const childCompleted = (id: number, result: unknown): OrchestratorItem => ({
  type: "SubOrchCompleted",
  parentInstance: INSTANCE,
  parentExecutionId: 1,
  parentId: id,
  result: JSON.stringify(result),
});

export const childFailed = (id: number, failure: string | ErrorDetails): OrchestratorItem => ({
  type: "SubOrchFailed",
  parentInstance: INSTANCE,
  parentExecutionId: 1,
  parentId: id,
  details: detailsOf(failure),
});

function detailsOf(failure: string | ErrorDetails): ErrorDetails {
  return typeof failure === "string" ? applicationFailure(failure) : failure;
}

export const cancel = (reason: string): OrchestratorItem => ({ type: "CancelInstance", instance: INSTANCE, reason });

/** The delta in a few words: `ActivityScheduled(2)`, `ActivityCompleted(3<2)`. */
export function summary(events: readonly Event[]): string[] {
  return events.map(({ type, eventId, sourceEventId }) =>
    sourceEventId === null ? `${type}(${eventId})` : `${type}(${eventId}<${sourceEventId})`,
  );
}

/** The parsed output of a completed turn. */
export function outputOf({ result }: TurnOutcome): unknown {
  if (result.kind !== "completed") throw new Error(`not completed: ${JSON.stringify(result)}`);
  return JSON.parse(result.output);
}

/** The recorded failure of a failed turn. */
export function failureOf({ result }: TurnOutcome): ErrorDetails {
  if (result.kind !== "failed") throw new Error(`not failed: ${JSON.stringify(result)}`);
  return result.details;
}

/** Asserts that code and history were found to disagree, and in which words. */
export function expectNondeterminism(outcome: TurnOutcome, ...words: readonly string[]): void {
  const details = failureOf(outcome);
  expect(details).toMatchObject({ category: "configuration", kind: "Nondeterminism", resource: "" });
  for (const word of words) expect(details).toMatchObject({ message: expect.stringContaining(word) });
}
