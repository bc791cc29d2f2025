// testing/replay-check.ts — leads code through a recorded history, as a runtime would after a crash, and compares.
//
//   RC1. Code must take every decision that history records, in order, and no other. What replay forgives in production, such
//        as another custom status, is told here. Not compared: times.
//   RC2. Between two turns code waits: led to the end of any turn, it decides nothing that is not recorded.
//   RC3. Led to the end, it ends as recorded: with the same output, failure or next input, and giving up the same work.
//   RC4. Where the runtime ended the execution (poison, a broken limit, nondeterminism, the failure of a store), code was
//        not asked. What it had decided before must fit; a turn that was cut short proves nothing.

import { isDeepStrictEqual } from "node:util";
import { type Action, isDecision, payloadOf } from "../engine/action.js";
import { Execution, FOREIGN_AWAIT } from "../engine/execution.js";
import { DROPPED_FUTURE } from "../engine/history-index.js";
import { compare, describeEvent, describePayload } from "../engine/matching.js";
import type { OrchestrationHandler, TurnOutcome } from "../engine/turn.js";
import type { CallWatch } from "../engine/watched-calls.js";
import { messageOf, ReplayDivergedError, unreachable } from "../errors.js";
import { type ErrorDetails, nondeterminism } from "../history/error-details.js";
import { type Event, type EventOf, type EventPayload, isTerminal } from "../history/event.js";
import { failureText } from "../history/failure-size.js";
import type { KvEntry } from "../history/kv-entry.js";
import type { Limits } from "../history/limits.js";
import { natureOf } from "../history/nature.js";
import { decodePayload } from "../history/payload.js";
import { throughTurnGate } from "../runtime/turn-gate.js";
import { findBreach } from "../runtime/turn-limits.js";
import { turnStarts } from "./turn-starts.js";
import { waitInWords } from "./wait-words.js";

/** What a history and the code that was led through it came to. */
export type Replayed =
  | {
      readonly status: "waiting";
      /** How long the history is. */
      readonly events: number;
      /** In words, oldest first: `activity 'Charge'`, `a timer`. */
      readonly waitingFor: readonly string[];
    }
  | { readonly status: "completed"; readonly events: number; readonly output: unknown }
  | { readonly status: "failed"; readonly events: number; readonly details: ErrorDetails }
  | {
      readonly status: "cancelled";
      readonly events: number;
      readonly reason: string;
      readonly details: ErrorDetails;
    }
  | { readonly status: "continuedAsNew"; readonly events: number; readonly input: unknown };

/** A valid history, and what is led through it. */
export interface ReplaySubject {
  readonly events: readonly Event[];
  readonly handler: OrchestrationHandler;
  /** As of the start of the execution. */
  readonly kv: ReadonlyMap<string, KvEntry>;
  readonly limits: Limits;
  /** Asked once for each execution: who is told of calls whose answers no history records. */
  readonly watch?: () => CallWatch;
}

/** How an execution ended: its terminal event, and where what it wrote for its end begins. */
interface RecordedEnd {
  readonly event: EventOf<"OrchestrationCompleted" | "OrchestrationFailed" | "OrchestrationContinuedAsNew">;
  readonly from: number;
}

interface Led {
  readonly outcome: TurnOutcome;
  readonly execution: Execution;
  readonly code: WatchedCode;
}

/** The code, and how it failed, if it did: an execution tells only what comes of it. */
class WatchedCode {
  /** In words. Null: it has not thrown. */
  failure: string | null = null;
  readonly run: OrchestrationHandler;

  constructor(handler: OrchestrationHandler) {
    this.run = (ctx, input) => {
      const running = handler(ctx, input);
      running.catch((error: unknown) => {
        this.failure = `fails with '${messageOf(error)}'`;
      });
      return running;
    };
  }
}

export class ReplayCheck {
  readonly #subject: ReplaySubject;
  readonly #events: readonly Event[];

  constructor(subject: ReplaySubject) {
    this.#subject = subject;
    this.#events = subject.events;
  }

  /** Where turns begin, the first one left out: up to there code can be led, and waits. */
  get waits(): readonly number[] {
    return turnStarts(this.#events).slice(1);
  }

  /** @throws ReplayDivergedError */
  async whole(): Promise<Replayed> {
    const events = this.#events.length;
    const end = this.#recordedEnd();
    if (end === null) return { status: "waiting", events, waitingFor: await this.waitsAfter(events) };
    await this.#checkDrops();
    await this.#checkEnd(end);
    return resultOf(end.event, events);
  }

  /** Leads the code through that many events, where it must wait; answers what for. RC2 @throws ReplayDivergedError */
  async waitsAfter(count: number): Promise<readonly string[]> {
    const led = await this.#lead(count);
    this.#refuseToGoOn(led);
    return waitsOf(led.execution);
  }

  /** An execution that is cancelled, or continues as new, is not asked what it has dropped. Before its last turn it is. */
  async #checkDrops(): Promise<void> {
    const lastTurn = this.waits.at(-1);
    if (lastTurn !== undefined) this.#refuseNondeterminism((await this.#lead(lastTurn)).outcome);
  }

  /** RC3 */
  async #checkEnd(end: RecordedEnd): Promise<void> {
    const { event } = end;
    const details = event.type === "OrchestrationFailed" ? event.details : null;
    if (details !== null && details.category !== "application") return this.#checkCutShort(end, details);
    const { outcome, execution } = await this.#lead(end.from);
    const breach = findBreach(outcome, this.#subject.limits);
    if (details !== null && isDeepStrictEqual(details, breach)) return;
    if (details !== null && looksLikeBreach(details) && !endsWith(outcome, event)) {
      return this.#checkCutShort(end, details);
    }
    this.#refuseNondeterminism(outcome);
    const recorded = describeEvent(event);
    if (breach !== null) {
      const decided = describePayload({ type: "OrchestrationFailed", details: breach });
      throw this.#diverged(event.eventId, recorded, `ends with ${decided}`);
    }
    const next = outcome.events.find((decided) => isDecision(decided));
    if (next !== undefined) throw this.#diverged(next.eventId, recorded, this.#deed(next));
    const decided = outcome.events.find(isTerminal);
    if (decided === undefined) {
      throw this.#diverged(event.eventId, recorded, `waits for ${waitsOf(execution).join(", ")}`);
    }
    if (!isSamePayload(decided, event)) throw this.#diverged(event.eventId, recorded, this.#deed(decided));
    this.#checkGivenUp(end, outcome);
  }

  /** The same work is given up with the end. In whose name is not compared: the original has other habits. */
  #checkGivenUp({ event, from }: RecordedEnd, outcome: TurnOutcome): void {
    const answered = new Set(this.#events.filter(isAnswer).map(({ sourceEventId }) => sourceEventId));
    const recorded = breadcrumbs(this.#events.slice(from)).filter(({ sourceEventId }) => !answered.has(sourceEventId));
    const decided = breadcrumbs(outcome.events);
    const missing = recorded.find(isNotAmong(decided));
    if (missing !== undefined) {
      const kept = `keeps ${this.#named(missing.sourceEventId)}`;
      throw this.#diverged(missing.eventId, describeEvent(missing), kept);
    }
    const extra = decided.find(isNotAmong(recorded));
    if (extra !== undefined) throw this.#diverged(event.eventId, describeEvent(event), `first ${this.#deed(extra)}`);
  }

  /** RC4 */
  async #checkCutShort({ from }: RecordedEnd, details: ErrorDetails): Promise<void> {
    const last = this.#events[from - 1]!;
    const count = natureOf(last) === "arrival" ? (this.waits.at(-1) ?? 0) : from;
    if (count <= 1) return; // Code was never run, or nothing that it did was recorded.
    const led = await this.#lead(count);
    if (!isDeepStrictEqual(details, nondeterminism(FOREIGN_AWAIT))) this.#refuseToGoOn(led);
  }

  async #lead(count: number): Promise<Led> {
    const history = this.#events.slice(0, count);
    const { instanceId: instance, executionId, timestampMs } = history.at(-1)!;
    const { handler, kv, watch } = this.#subject;
    const code = new WatchedCode(handler);
    const execution = new Execution({
      instance,
      executionId,
      handler: code.run,
      history,
      started: null,
      kvSnapshot: kv,
      newGuid: () => NEW_GUID,
      trace: () => {},
      onMatch: (action, event) => this.#compare(action, event, code),
      ...(watch === undefined ? {} : { watch }),
    });
    const outcome = await throughTurnGate(() => execution.turn({ nowMs: timestampMs, messages: [] }));
    return { outcome, execution, code };
  }

  /** RC1 */
  #compare(action: Action | undefined, event: Event, code: WatchedCode): void {
    if (action !== undefined && compare(action, event) === null && !isOtherStatus(action, event)) return;
    const { eventId, executionId } = event;
    const decided =
      action === undefined
        ? (code.failure ?? "decides nothing")
        : `decides ${describePayload(payloadOf(action, eventId, executionId))}`;
    throw this.#diverged(eventId, describeEvent(event), decided);
  }

  #refuseToGoOn({ outcome, code }: Led): void {
    this.#refuseNondeterminism(outcome);
    const [next] = outcome.events;
    if (next === undefined) return;
    const deed = isDecision(next) ? this.#deed(next) : (code.failure ?? this.#deed(next));
    throw this.#diverged(next.eventId, "that the code waits", deed);
  }

  /** What the engine itself objects to, in our words where it is about an event. */
  #refuseNondeterminism({ result }: TurnOutcome): void {
    if (result.kind !== "failed" || result.details.category !== "configuration") return;
    const message = result.details.message ?? "";
    const dropped = /history cancelled event (\d+)/.exec(message)?.[1];
    const crumb = breadcrumbs(this.#events).find(({ sourceEventId }) => sourceEventId === Number(dropped));
    if (crumb === undefined) throw this.#diverged(null, null, message);
    throw this.#diverged(crumb.eventId, describeEvent(crumb), `keeps ${this.#named(crumb.sourceEventId)}`);
  }

  #recordedEnd(): RecordedEnd | null {
    const place = this.#events.findIndex(isTerminal);
    const event = this.#events[place] as RecordedEnd["event"] | undefined;
    if (event === undefined) return null;
    let from = place;
    while (fallsWithEnd(this.#events[from - 1]!)) from -= 1;
    return { event, from };
  }

  #deed(event: Event): string {
    switch (natureOf(event)) {
      case "breadcrumb":
        return `gives up ${this.#named(event.sourceEventId)}`;
      case "end":
        return `ends with ${describeEvent(event)}`;
      default:
        return `decides ${describeEvent(event)}`;
    }
  }

  #named(eventId: number | null): string {
    const event = this.#events.find((candidate) => candidate.eventId === eventId);
    return `event ${eventId}${event === undefined ? "" : `, ${describeEvent(event)}`}`;
  }

  #diverged(eventId: number | null, recorded: string | null, decided: string): ReplayDivergedError {
    const { instanceId, executionId } = this.#events[0]!;
    const records = recorded === null ? null : `records ${recorded}`;
    return new ReplayDivergedError([{ instanceId, executionId, eventId, recorded: records, decided, remedy: null }]);
  }
}

/** Only a decision that no history records asks for one, and such a decision is told in any case. */
const NEW_GUID = "00000000-0000-4000-8000-000000000000";

type Breadcrumb = EventOf<
  | "ActivityCancelRequested"
  | "SubOrchestrationCancelRequested"
  | "ExternalSubscribedCancelled"
  | "ExternalSubscribedPersistentCancelled"
>;

function breadcrumbs(events: readonly Event[]): Breadcrumb[] {
  return events.filter((event): event is Breadcrumb => natureOf(event) === "breadcrumb");
}

/** What code drops itself is a decision like others, and led through. */
function fallsWithEnd(event: Event): boolean {
  return breadcrumbs([event]).some(({ reason }) => reason !== DROPPED_FUTURE);
}

function isNotAmong(crumbs: readonly Breadcrumb[]): (crumb: Breadcrumb) => boolean {
  const sources = new Set(crumbs.map(({ sourceEventId }) => sourceEventId));
  return ({ sourceEventId }) => !sources.has(sourceEventId);
}

function isAnswer(event: Event): boolean {
  return natureOf(event) === "arrival" && event.sourceEventId !== null;
}

function isOtherStatus(action: Action, event: Event): boolean {
  return action.type === "UpdateCustomStatus" && event.type === "CustomStatusUpdated" && action.status !== event.status;
}

function endsWith(outcome: TurnOutcome, recorded: Event): boolean {
  const decided = outcome.events.find(isTerminal);
  return decided !== undefined && isSamePayload(decided, recorded);
}

function isSamePayload(decided: Event, recorded: Event): boolean {
  return isDeepStrictEqual(payload(decided), payload(recorded));
}

function payload(event: Event): EventPayload {
  const { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion, ...rest } = event;
  return rest;
}

function waitsOf({ awaited }: Execution): readonly string[] {
  return awaited.map(({ kind, name }) => waitInWords(kind, name));
}

function resultOf(event: RecordedEnd["event"], events: number): Replayed {
  switch (event.type) {
    case "OrchestrationCompleted":
      return { status: "completed", events, output: decodePayload(event.output) };
    case "OrchestrationContinuedAsNew":
      return { status: "continuedAsNew", events, input: decodePayload(event.input) };
    case "OrchestrationFailed": {
      const { details } = event;
      return details.category === "application" && details.kind.type === "Cancelled"
        ? { status: "cancelled", events, reason: details.kind.reason, details }
        : { status: "failed", events, details };
    }
    default:
      return unreachable(event);
  }
}

/** The words of `findBreach`. Limits may have been other ones when it was recorded, so that it cannot be asked again. */
const BREACH =
  /^(Custom status size|KV value for key '.*'|KV key count|Continue-as-new would carry over|Input of .*|Output of the orchestration) .*exceeds limit \(\d+( bytes)?\)/s;
/** The words of `cutMessage`. */
const CUT = /… \(cut: \d+ bytes exceeds limit \(\d+ bytes\)\)$/;

/** Whether a recorded failure is one that the runtime gave for a broken limit. */
function looksLikeBreach(details: ErrorDetails): boolean {
  if (details.category === "configuration") return details.kind === "LimitExceeded";
  if (details.category !== "application") return false;
  const message = failureText(details);
  return BREACH.test(message) || CUT.test(message);
}
