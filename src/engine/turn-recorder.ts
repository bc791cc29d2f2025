// engine/turn-recorder.ts — collects what one turn decides: numbered, stamped events and the work they ask for.

import { ENGINE_VERSION, type Event, type EventPayload } from "../history/event.js";
import type { Action } from "./action.js";
import { childInstance, payloadOf } from "./action.js";
import type { HistoryIndex } from "./history-index.js";
import type {
  ActivityToStart,
  ChildToCancel,
  ChildToStart,
  DetachedToStart,
  DroppedMessage,
  TimerToStart,
  TurnOutcome,
  TurnResult,
} from "./turn.js";

/** What is to be started, by the event that asks for it. Most turns ask for one kind of thing, or for none. */
class Plans<T> {
  #byId: Map<number, T> | null = null;

  set(id: number, plan: T): void {
    this.#byId ??= new Map();
    this.#byId.set(id, plan);
  }

  has(id: number): boolean {
    return this.#byId?.has(id) ?? false;
  }

  delete(id: number): boolean {
    return this.#byId?.delete(id) ?? false;
  }

  clear(): void {
    this.#byId = null;
  }

  values(): T[] {
    return this.#byId === null ? [] : [...this.#byId.values()];
  }
}

export class TurnRecorder {
  readonly events: Event[] = [];
  readonly activities = new Plans<ActivityToStart>();
  readonly timers = new Plans<TimerToStart>();
  readonly children = new Plans<ChildToStart>();
  readonly detached: DetachedToStart[] = [];
  readonly cancelledActivities: number[] = [];
  readonly cancelledTimers: number[] = [];
  readonly cancelledChildren: ChildToCancel[] = [];
  readonly droppedMessages: DroppedMessage[] = [];

  constructor(
    readonly instance: string,
    readonly executionId: number,
    readonly nowMs: number,
    readonly index: HistoryIndex,
  ) {}

  append(payload: EventPayload, sourceEventId: number | null = null): Event {
    const event = this.#stamped(payload, sourceEventId);
    this.index.add(event);
    this.events.push(event);
    return event;
  }

  /** What most events are is written out: to add fields to a literal by spreading takes V8 several times as long. */
  #stamped(payload: EventPayload, sourceEventId: number | null): Event {
    const eventId = this.index.nextEventId;
    const { instance: instanceId, executionId, nowMs: timestampMs } = this;
    const duroxideVersion = ENGINE_VERSION;
    if (payload.type === "ActivityCompleted") {
      const { type, result } = payload;
      return { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, type, result };
    }
    if (payload.type === "ActivityScheduled" && payload.sessionId === undefined && payload.tag === undefined) {
      const { type, name, input } = payload;
      return { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, type, name, input };
    }
    return { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...payload };
  }

  /** Records a new decision and notes the work it asks for. */
  decide(action: Action): Event {
    const id = this.index.nextEventId;
    const event = this.append(payloadOf(action, id, this.executionId));
    switch (action.type) {
      case "CallActivity":
        this.activities.set(id, activityToStart(id, action));
        break;
      case "CreateTimer":
        this.timers.set(id, { id, fireAtMs: action.fireAtMs });
        break;
      case "StartSubOrchestration": {
        const recorded = event.type === "SubOrchestrationScheduled" ? event.instance : "";
        const { name, input, version } = action;
        this.children.set(id, { id, instance: childInstance(this.instance, recorded), name, input, version });
        break;
      }
      case "StartOrchestrationDetached": {
        const { instance, name, input, version } = action;
        this.detached.push({ instance, name, input, version });
        break;
      }
      default:
        break;
    }
    return event;
  }

  /** A turn that ends its execution starts nothing but what is meant to outlive it. */
  startNothing(): void {
    this.activities.clear();
    this.timers.clear();
    this.children.clear();
  }

  outcome(result: TurnResult, kvKeyCount: number): TurnOutcome {
    return {
      result,
      events: this.events,
      activities: this.activities.values(),
      timers: this.timers.values(),
      children: this.children.values(),
      detached: this.detached,
      cancelledActivities: this.cancelledActivities,
      cancelledTimers: this.cancelledTimers,
      cancelledChildren: this.cancelledChildren,
      droppedMessages: this.droppedMessages,
      kvKeyCount,
    };
  }
}

function activityToStart(id: number, action: Extract<Action, { readonly type: "CallActivity" }>): ActivityToStart {
  const { name, input, sessionId, tag, retryOf } = action;
  if (sessionId === undefined && tag === undefined && retryOf === undefined) return { id, name, input };
  return {
    id,
    name,
    input,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(tag === undefined ? {} : { tag }),
    ...(retryOf === undefined ? {} : { retryOf }),
  };
}
