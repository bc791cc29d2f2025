// test/engine/drive.ts — runs the engine by hand: a history, some messages, a turn.

import type { OrchestrationDefinition } from "../../src/define.js";
import { orchestration } from "../../src/define.js";
import { Execution } from "../../src/engine/execution.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import type { OrchestrationHandler, TurnOutcome } from "../../src/engine/turn.js";
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
  readonly traces?: string[];
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
            },
      kvSnapshot: new Map<string, KvEntry>(
        Object.entries(drive.kv ?? {}).map(([key, value]) => [key, { value, lastUpdatedAtMs: 1 }]),
      ),
      newGuid: () => "00000000-0000-4000-8000-000000000000",
      trace: (level, message) => drive.traces?.push(`${level}: ${message}`),
    });
  }

  async turn(...messages: OrchestratorItem[]): Promise<TurnOutcome> {
    this.#nowMs += 1;
    const outcome = await this.execution.turn({ nowMs: this.#nowMs, messages });
    this.history.push(...outcome.events);
    return outcome;
  }
}

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

export const completed = (id: number, result: unknown, executionId = 1): OrchestratorItem => ({
  type: "ActivityCompleted",
  instance: INSTANCE,
  executionId,
  id,
  result: JSON.stringify(result),
});

export const activityFailed = (id: number, message: string): OrchestratorItem => ({
  type: "ActivityFailed",
  instance: INSTANCE,
  executionId: 1,
  id,
  details: { category: "application", kind: { type: "ActivityFailed" }, message, retryable: false },
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

export const cancel = (reason: string): OrchestratorItem => ({ type: "CancelInstance", instance: INSTANCE, reason });

/** The delta in a few words: `ActivityScheduled(2)`, `ActivityCompleted(3<2)`. */
export function summary(events: readonly Event[]): string[] {
  return events.map(({ type, eventId, sourceEventId }) =>
    sourceEventId === null ? `${type}(${eventId})` : `${type}(${eventId}<${sourceEventId})`,
  );
}
