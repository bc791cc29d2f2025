// engine/execution.ts — one execution of one instance: history in, decisions out.
//
//   X1. Requests match history in order (matching.ts). Completions are delivered one at a time, in history order, and
//       after each one user code runs until it rests (drain.ts): live, replayed and continued alike.
//   X2. Arrivals of a batch come first; what code asks for meanwhile stays unbound until the batch is exhausted. Then all
//       of it is bound together, in order of emission, and so on until nothing new is asked for.
//   X3. A wait that has a value and a listener is delivered after every drain and after every complete group of
//       bindings, lowest schedule id first: replay cannot see where a batch ended.
//   X4. Once the function has returned, or asked to continue as new, nothing more is delivered.
//   X5. No clock, no randomness, no I/O: time and guids are handed in and recorded.
//   X6. Every event costs O(1), but for waits that become ready together: they are sorted.

import { MisuseError } from "../errors.js";
import { nondeterminism } from "../history/error-details.js";
import { type Event, INITIAL_EXECUTION_ID, isTerminal } from "../history/event.js";
import type { Action } from "./action.js";
import { childInstance, isDecision } from "./action.js";
import { drained, yieldToEventLoop } from "./drain.js";
import { abort, conclude, type Ending } from "./ending.js";
import { Fifo } from "./fifo.js";
import { HistoryIndex } from "./history-index.js";
import { KvState } from "./kv-state.js";
import { PositionalLane, QueueLane } from "./lanes.js";
import { assertMatches } from "./matching.js";
import { prepareMessages } from "./message-preparation.js";
import { NondeterminismError } from "./nondeterminism.js";
import { Orchestration } from "./orchestration.js";
import { ReadySlots } from "./ready-slots.js";
import { codeLocation, outsideCode, Scope } from "./scope.js";
import type { Slot, SlotHost } from "./slot.js";
import { inlineResult, isInlineCall } from "./system-calls.js";
import type { ExecutionInit, TurnInput, TurnOutcome, TurnResult } from "./turn.js";
import { TurnRecorder } from "./turn-recorder.js";
import { type CallWatch, type WatchedExecution, watchDates } from "./watched-calls.js";

/** A decision that no event records yet. */
interface Unbound {
  readonly action: Action;
  readonly slot: Slot | null;
}

/** How the user's function ended. */
export type Finish =
  | { readonly status: "returned"; readonly output: string }
  | { readonly status: "threw"; readonly error: unknown };

export interface Continuation {
  readonly input: string;
  readonly version: string | null;
}

/** Deliveries after which a long replay lets the event loop have its turn. */
const DELIVERIES_PER_SLICE = 1_000;

/** System calls answered within one turn; further ones wait for the next, so that no turn is endless. */
const INLINE_CALLS_PER_TURN = 1_000;

export const FOREIGN_AWAIT =
  "the orchestration awaits something that is not durable. Only what ctx returns may be awaited: " +
  "put I/O in an activity, use ctx.scheduleTimer instead of setTimeout, ctx.waitForEvent instead of a callback";

export class Execution implements SlotHost, WatchedExecution {
  readonly instance: string;
  readonly executionId: number;
  readonly rootScope = new Scope(null);
  readonly kv: KvState;
  customStatus: string | null = null;

  readonly #init: ExecutionInit;
  readonly #watch: CallWatch | null;
  readonly #index: HistoryIndex;
  /** What history records but code has not been led through yet: only before the first turn. */
  #unplayed: readonly Event[] | null;
  /** The decisions of `#unplayed`, so that code can be told what was recorded for its n-th request. */
  #recordedDecisions: readonly Event[] = [];
  #emitted = 0;

  readonly #unbound = new Fifo<Unbound>();
  readonly #open = new Map<number, Slot>();
  readonly #openWaits = new Map<number, Slot>();
  /** By name. Null: none yet. Most executions wait for no message. */
  #queues: Map<string, QueueLane> | null = null;
  #events: Map<string, PositionalLane> | null = null;
  readonly #ready = new ReadySlots();
  #arrivalCount = 0;

  #recorder: TurnRecorder;
  #newDrops: Slot[] = [];
  #inlineCalls: Slot[] = [];
  #inlineCallsLeft = 0;
  #awaited = 0;
  #deliveries = 0;

  #isInTurn = false;
  #isReplaying = false;
  #finish: Finish | null = null;
  #continuation: Continuation | null = null;
  #violation: string | null = null;

  constructor(init: ExecutionInit) {
    this.instance = init.instance;
    this.executionId = init.executionId;
    this.kv = new KvState(init.kvSnapshot);
    this.#init = init;
    this.#watch = init.watch?.(this) ?? null;
    this.#index = new HistoryIndex(init.instance);
    this.#unplayed = init.history;
    this.#recorder = new TurnRecorder(init.instance, init.executionId, 0, this.#index);
  }

  /** The newest event, once there is one: committed, or of the last turn. */
  get lastEvent(): Event | null {
    return this.#index.lastEvent;
  }

  /** Roughly what this object keeps in memory. */
  get approximateBytes(): number {
    return this.#index.bytes;
  }

  /** How many events this execution has, those of the last turn included. */
  get eventCount(): number {
    return this.#index.count;
  }

  get isReplaying(): boolean {
    return this.#isReplaying;
  }

  /** What code awaits and has not got, oldest first. */
  get awaited(): readonly Slot[] {
    const open = [...this.#open.values(), ...this.#openWaits.values()];
    return open.filter((slot) => slot.isListened && !slot.isSettled).sort((a, b) => a.scheduleId! - b.scheduleId!);
  }

  /** The time of this turn. */
  get nowMs(): number {
    return this.#recorder.nowMs;
  }

  /**
   * Runs one turn: replays what history records if this is the first, delivers the messages, collects the decisions.
   * If the outcome cannot be committed, discard this object: it is ahead of its history.
   * Turns of one process must not overlap.
   */
  async turn(input: TurnInput): Promise<TurnOutcome> {
    this.#recorder = new TurnRecorder(this.instance, this.executionId, input.nowMs, this.#index);
    this.#newDrops = [];
    this.#inlineCalls = [];
    this.#inlineCallsLeft = INLINE_CALLS_PER_TURN;
    const putDatesBack = this.#watch === null ? null : watchDates();
    try {
      this.#load();
      if (this.#index.terminal !== null) return this.#outcome({ kind: "waiting" });
      const { arrivals, failure } = prepareMessages(input.messages, this.#recorder);
      if (failure !== null) return this.#outcome(abort(this.#ending(), failure));
      if (this.#violation !== null) throw new NondeterminismError(this.#violation);
      this.#isInTurn = true;
      if (this.#unplayed !== null) await this.#play(this.#unplayed);
      for (const event of arrivals) {
        for (let rest = this.#apply(event); rest !== null; rest = this.#deliverReady()) await rest;
      }
      for (let rest = this.#bindAll(); rest !== null; rest = this.#deliverReady() ?? this.#bindAll()) await rest;
      if (this.#isForeignAwait()) throw new NondeterminismError(FOREIGN_AWAIT);
      return this.#outcome(conclude(this.#ending()));
    } catch (error) {
      if (!(error instanceof NondeterminismError)) throw error;
      return this.#outcome(abort(this.#ending(), nondeterminism(error.message)));
    } finally {
      this.#isInTurn = false;
      putDatesBack?.();
    }
  }

  #outcome(result: TurnResult): TurnOutcome {
    return this.#recorder.outcome(result, this.kv.size);
  }

  /** Takes in the committed history, or writes the first event of a new one. */
  #load(): void {
    if (this.#index.lastEvent !== null) return;
    const { history, started } = this.#init;
    try {
      if (history.length === 0 && started === null) throw new NondeterminismError("corrupted history: empty");
      if (history.length === 0 && started !== null) this.#recorder.append(started);
      for (const event of history) this.#index.add(event);
    } catch (error) {
      this.#index.startAfter(history.reduce((max, event) => Math.max(max, event.eventId), 0));
      const end = history.find(isTerminal);
      if (end === undefined) throw error;
      this.#index.add(end); // What has ended stays as it ended, however broken the rest is.
    }
  }

  /** Starts the user's function and leads it through the committed history. */
  async #play(history: readonly Event[]): Promise<void> {
    const started = history[0] ?? this.#recorder.events[0];
    if (started?.type !== "OrchestrationStarted") throw new NondeterminismError("corrupted history: no start");
    this.#recordedDecisions = history.filter(isDecision);
    this.#isReplaying = history.length > 0;
    this.customStatus = started.initialCustomStatus ?? null;
    this.#invoke(new Orchestration(this, started), started.input);
    for (let rest: Promise<void> | null = this.#rest(); rest !== null; rest = this.#deliverReady()) await rest;
    for (const event of history) {
      for (let rest = this.#apply(event); rest !== null; rest = this.#deliverReady()) await rest;
    }
    this.#isReplaying = false;
    this.#recordedDecisions = [];
    this.#unplayed = null;
  }

  #invoke(ctx: Orchestration, input: string): void {
    this.runCode(this.rootScope, () => {
      const run = async (): Promise<string> => this.#init.handler(ctx, input);
      run().then(
        (output) => this.#finished({ status: "returned", output }),
        (error: unknown) => this.#finished({ status: "threw", error }),
      );
    });
  }

  #finished(finish: Finish): void {
    if (this.#isInTurn) this.#finish ??= finish;
    else this.#wentOnOutsideTurn();
  }

  /** The next turn fails it. Nothing durable may be awaited any more, so that somebody must see to a next turn. */
  #wentOnOutsideTurn(): void {
    if (this.#violation !== null) return;
    this.#violation = FOREIGN_AWAIT;
    if (this.#isEnded || this.#index.terminal !== null) return;
    outsideCode(() => this.#init.onForeignAwait?.(FOREIGN_AWAIT));
  }

  /**
   * Answers what to wait for until code rests again; null: it has not been moved. Afterwards whatever is ready must be
   * delivered, one by one. So do those below.
   */
  #apply(event: Event): Promise<void> | null {
    switch (event.type) {
      case "ActivityCompleted":
        return this.#answer(event, "activity", (slot) => slot.complete(event.result));
      case "ActivityFailed":
        return this.#answer(event, "activity", (slot) => slot.fail(event.details));
      case "TimerFired":
        return this.#answer(event, "timer", (slot) => slot.complete(""));
      case "SubOrchestrationCompleted":
        return this.#answer(event, "subOrchestration", (slot) => slot.complete(event.result));
      case "SubOrchestrationFailed":
        return this.#answer(event, "subOrchestration", (slot) => slot.fail(event.details));
      case "ExternalEvent":
        this.#positional(event.name).arrive(event.data);
        return this.#deliverReady();
      case "ExternalEventPersistent":
        this.#arrivalCount += 1;
        this.#queue(event.name).arrive({ order: this.#arrivalCount, name: event.name, data: event.data });
        return this.#deliverReady();
      default:
        return isDecision(event) ? this.#match(event) : null;
    }
  }

  #answer(event: Event, kind: Slot["kind"], deliver: (slot: Slot) => void): Promise<void> | null {
    const source = event.sourceEventId;
    if (source === null || this.#isEnded) return null; // X4
    const slot = this.#open.get(source);
    if (slot === undefined) {
      const text = `completion without open schedule: event ${event.eventId} (${event.type}) answers event ${source}`;
      throw new NondeterminismError(text);
    }
    if (slot.kind !== kind) {
      const text = `completion kind mismatch: event ${event.eventId} (${event.type}) answers event ${source}, expected ${slot.kind}`;
      throw new NondeterminismError(text);
    }
    this.#open.delete(source);
    if (slot.isDropped) return null;
    const hasListener = slot.isListened;
    deliver(slot);
    return hasListener ? this.#rest() : null;
  }

  /** A recorded decision: the code's next request must be the same. */
  #match(event: Event): Promise<void> | null {
    const next = this.#unbound.shift();
    this.#init.onMatch?.(next?.action, event);
    assertMatches(next?.action, event);
    if (next?.slot) this.#bind(next.slot, event);
    return this.#unbound.length === 0 ? this.#deliverReady() : null; // X3
  }

  /** Records everything that is asked for and not recorded yet, until nothing new is asked for, or code goes on. X2 */
  #bindAll(): Promise<void> | null {
    for (;;) {
      if (this.#unbound.length > 0) {
        for (const { action, slot } of this.#unbound.takeAll()) this.#record(action, slot);
        const rest = this.#deliverReady();
        if (rest !== null) return rest;
        continue;
      }
      const call = this.#isEnded ? undefined : this.#inlineCalls.shift();
      if (call === undefined) return null;
      const rest = call.isDropped ? null : this.#answerInline(call);
      if (rest !== null) return rest;
    }
  }

  #record(action: Action, slot: Slot | null): void {
    const event = this.#recorder.decide(action);
    if (slot === null) return;
    this.#bind(slot, event);
    if (slot.kind !== "activity" || !isInlineCall(slot.name) || this.#inlineCallsLeft === 0) return;
    this.#inlineCallsLeft -= 1;
    this.#recorder.activities.delete(event.eventId);
    this.#inlineCalls.push(slot);
  }

  #answerInline(slot: Slot): Promise<void> | null {
    const result = inlineResult(slot.name, this.nowMs, this.#init.newGuid);
    return this.#apply(this.#recorder.append({ type: "ActivityCompleted", result }, slot.scheduleId));
  }

  #bind(slot: Slot, event: Event): void {
    slot.scheduleId = event.eventId;
    if (event.type === "SubOrchestrationScheduled") slot.childInstance = childInstance(this.instance, event.instance);
    if (slot.kind !== "event" && slot.kind !== "queue") {
      this.#open.set(event.eventId, slot);
      return;
    }
    if (slot.isDropped) return;
    this.#openWaits.set(event.eventId, slot);
    if (slot.kind === "event") this.#positional(slot.name).bind(slot);
    else this.#queue(slot.name).bind(slot);
  }

  /** Hands out the next of the values that wait only for their turn. X3 */
  #deliverReady(): Promise<void> | null {
    if (this.#isEnded) return null;
    const slot = this.#ready.take();
    if (slot === null) return null;
    if (slot.kind === "queue") this.#queue(slot.name).consume(slot);
    slot.deliverAccepted();
    return this.#rest();
  }

  #rest(): Promise<void> {
    this.#deliveries += 1;
    return this.#deliveries % DELIVERIES_PER_SLICE === 0 ? this.#restLonger() : drained();
  }

  async #restLonger(): Promise<void> {
    await drained();
    this.#isInTurn = false; // Whatever comes in now is foreign.
    await yieldToEventLoop();
    this.#isInTurn = true;
    if (this.#violation !== null) throw new NondeterminismError(this.#violation);
  }

  get #isEnded(): boolean {
    return this.#finish !== null || this.#continuation !== null;
  }

  #isForeignAwait(): boolean {
    return !this.#isEnded && this.#awaited === 0 && this.#index.cancelReason === null;
  }

  #ending(): Ending {
    return {
      recorder: this.#recorder,
      index: this.#index,
      finish: this.#finish,
      continuation: this.#continuation,
      drops: this.#newDrops,
      openWaits: this.#openWaits,
      unsettled: this.#open,
      carried: () => [...(this.#queues?.values() ?? [])].flatMap((lane) => lane.unconsumed()),
      customStatus: this.customStatus,
    };
  }

  #queue(name: string): QueueLane {
    this.#queues ??= new Map();
    return getOrCreate(this.#queues, name, () => new QueueLane());
  }

  #positional(name: string): PositionalLane {
    this.#events ??= new Map();
    return getOrCreate(this.#events, name, () => new PositionalLane());
  }

  // ── What the context asks for ────────────────────────────────────────────────────────────────────────────────────

  /** Runs orchestration code, such as a branch or a schema. */
  runCode<T>(scope: Scope, code: () => T): T {
    return codeLocation.run({ instanceId: this.instance, owner: this, scope, watch: this.#watch }, code);
  }

  /** The scope of the code that is running. */
  get currentScope(): Scope {
    const location = codeLocation.getStore();
    return location?.owner === this ? location.scope : this.rootScope;
  }

  /** Null if code may run now; otherwise what it is told instead. Never throws: foreign callbacks end here too. */
  refuse(): Error | null {
    if (this.#finish !== null) return new MisuseError("ctx was used after the orchestration had ended.");
    if (this.#isInTurn) return null;
    this.#wentOnOutsideTurn();
    return new MisuseError(`ctx was used outside a turn: ${FOREIGN_AWAIT}.`);
  }

  /** Takes a decision. The event that records it comes later, or is there already. */
  emit(action: Action, slot: Slot | null): void {
    this.#unbound.push({ action, slot });
    this.#emitted += 1;
  }

  /** What history records for the request that comes next, while replaying. */
  get nextRecorded(): Event | null {
    return this.#recordedDecisions[this.#emitted] ?? null;
  }

  continueAsNew(continuation: Continuation): void {
    this.#continuation ??= continuation;
  }

  trace(level: "debug" | "info" | "warn" | "error", message: string): void {
    if (!this.#isReplaying) outsideCode(() => this.#init.trace(level, message));
  }

  // ── What the watch over its calls asks and says ────────────────────────────────────────────────────────────────────

  get isDeciding(): boolean {
    return this.#isInTurn && !this.#isEnded;
  }

  get isOfNewInstance(): boolean {
    return this.executionId === INITIAL_EXECUTION_ID && this.#init.history.length === 0;
  }

  failAtOnce(error: Error): void {
    this.#finish ??= { status: "threw", error };
  }

  // ── What slots report ────────────────────────────────────────────────────────────────────────────────────────────

  listened(slot: Slot): void {
    this.#awaited += 1;
    if (slot.isResolvable) this.#ready.add(slot);
  }

  accepted(slot: Slot): void {
    if (slot.isListened) this.#ready.add(slot);
  }

  settled(slot: Slot): void {
    if (slot.isListened) this.#awaited -= 1;
    if (slot.scheduleId !== null) this.#openWaits.delete(slot.scheduleId);
  }

  dropped(slot: Slot): void {
    this.#newDrops.push(slot);
    slot.wasDroppedOnReplay = this.#isReplaying;
    if (slot.scheduleId === null) return;
    if (slot.kind === "queue") this.#queue(slot.name).drop(slot);
    if (slot.kind === "event") this.#positional(slot.name).drop(slot);
  }
}

function getOrCreate<V>(map: Map<string, V>, key: string, create: () => V): V {
  const existing = map.get(key);
  if (existing !== undefined) return existing;
  const created = create();
  map.set(key, created);
  return created;
}
