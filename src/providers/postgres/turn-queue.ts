// providers/postgres/turn-queue.ts — turns committed, instances given back and kept: each kind in batches.
//
//   T1. A call without a live lock is refused alone. An event that is there already takes back its whole batch; the calls
//       are then run one by one, and only that one fails.
//   T2. Fetches that wait for activities get those that the turns schedule, in the statement that commits them: one write
//       instead of two, and no look. Where something older is ready for them, they get that.
//   T3. The ack of a predicted turn is a part of its step (`predicted-turns.ts`). Whatever else is about its lock waits until
//       the store has said whether there is one.
//   T4. Steps share a statement with turns of locked instances, or with beginnings: these two lock rows of the schedule, each at a
//       time of its own (S2, S10). A step or a beginning that does not find what it expects is refused alone.
//   T5. Turns of locked instances wait for steps: the outcomes that these answer are gathered first, and then their turns, so what
//       follows from one answer would else be two statements, and with every answer more.

import { ProviderError } from "../../errors.js";
import { encodeEvent } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { Effects } from "../../provider/kit/effects.js";
import type { ProvenStarts } from "../../provider/kit/proven-starts.js";
import {
  checkEventIds,
  checkOrchestratorItem,
  checkWorkerItem,
  eventTaken,
  lockLost,
} from "../../provider/kit/refusals.js";
import { fromColumn, toColumn } from "../../provider/kit/text-column.js";
import { changeOf } from "../../provider/kit/turn-change.js";
import { fetchesToWake } from "../../provider/kit/worker-wake.js";
import type { AbandonOptions, InstanceChange, TurnCommit } from "../../provider/provider.js";
import type { ActivityHandOff, Offer } from "./activity-hand-off.js";
import type { ActivityPart } from "./activity-queue.js";
import { inOperation, isAnswered } from "./driver-errors.js";
import type { KnownInstances } from "./known-instances.js";
import { type Abandoning, abandonRows, outcomes, type Renewing, renewRows, rowOf } from "./lock-calls.js";
import { turnLock } from "./lock-token.js";
import type { PredictedTurns } from "./predicted-turns.js";
import type { Store } from "./store.js";
import { activitiesOf, activityColumns, otherRows, type Step, type TurnCall, turnColumns } from "./turn-rows.js";
import { noteMessage, noteReady } from "./work-rows.js";

const commitTurns = `
  SELECT * FROM {schema}.commit_turns(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26,
    $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43
  )
`;
const abandonTurns = `SELECT * FROM {schema}.abandon_turns($1)`;
const renewTurns = `SELECT * FROM {schema}.renew_turns($1, $2)`;
const appendEvents = `SELECT * FROM {schema}.append_events($1, $2, $3, $4)`;

/** A row of the answer: of what was claimed, or of what became of the rest. */
export type CommitPart =
  | ActivityPart
  | (Omit<ActivityPart, "part"> & { readonly part: "beside" | "lost" | "left" | "over" | "all" | "given" | "older" });

/** A step or a beginning has not found what it expects: nothing of it is written. */
class StepRefused extends Error {
  override readonly name = "StepRefused";
}

const REFUSED: Outcome<void> = Object.freeze({ error: new StepRefused("A step has not found what it expects.") });

/** One batch is one statement, however large; more than this is no faster. */
const MOST_BYTES = 4_000_000;
/** While the disk syncs one batch, the next can be executed. */
const IN_FLIGHT = 2;
/**
 * Chains that move in step would wait for the server all at once, and the server for all of them. In two halves, the one
 * is executed while the other is computed.
 */
const MOST_CALLS = 50;
/** One in which outcomes are gathered, one in which their turns are computed. T5 */
const ROUNDS_TO_STEPS = 2;

export class TurnQueue {
  readonly #store: Store;
  readonly #handOff: ActivityHandOff;
  readonly #known: KnownInstances;
  readonly #predicted: PredictedTurns;
  readonly #proven: ProvenStarts;
  readonly #onSteps: (isAnybodyInLine: boolean) => void;
  readonly #committing: Batcher<TurnCall, void>;
  readonly #abandoning: Batcher<Abandoning<string>, void>;
  readonly #renewing: Batcher<Renewing<string>, void>;
  /** Calls that wait until the store has said whether there is their lock. T3 */
  readonly #waiting = new Set<Promise<void>>();

  /** `onSteps`: steps are committed, to whom nobody in line gives way. */
  constructor(
    store: Store,
    handOff: ActivityHandOff,
    known: KnownInstances,
    predicted: PredictedTurns,
    proven: ProvenStarts,
    onSteps: (isAnybodyInLine: boolean) => void,
  ) {
    this.#store = store;
    this.#handOff = handOff;
    this.#known = known;
    this.#predicted = predicted;
    this.#proven = proven;
    this.#onSteps = onSteps;
    const byRow = { runsSingly: isAnswered, maxInFlight: IN_FLIGHT, keyOf: rowOf };
    this.#committing = new Batcher<TurnCall, void>({
      ...byRow,
      run: (calls, answer) => this.#commit(calls, answer),
      maxCalls: MOST_CALLS,
      roundsOf: ({ step }) => (step === null ? ROUNDS_TO_STEPS : 0),
      maxBytes: MOST_BYTES,
      sizeOf: ({ bytes }) => bytes,
      errorOf: ({ step }, error) => (step === null ? error : inOperation(senderOf(step), error)),
    });
    this.#abandoning = new Batcher<Abandoning<string>, void>({ ...byRow, run: (calls) => this.#abandon(calls) });
    this.#renewing = new Batcher<Renewing<string>, void>({ ...byRow, run: (calls) => this.#renew(calls) });
  }

  /** Turns are on their way: there will soon be more to send. */
  get isBusy(): boolean {
    return this.#committing.isBusy;
  }

  async ack(lockToken: string, turn: TurnCommit): Promise<void> {
    checkEventIds("ackOrchestrationItem", turn.events);
    for (const item of turn.workerItems) checkWorkerItem("ackOrchestrationItem", item);
    for (const item of turn.orchestratorItems) checkOrchestratorItem("ackOrchestrationItem", item);
    this.#proven.taken(turn.metadata);
    const eventData = turn.events.map(encodeEvent);
    const bytes = eventData.reduce((sum, data) => sum + data.length, 0);
    const call = { lockToken, lock: turnLock(lockToken), turn, eventData, bytes, step: null };
    const joined = this.#predicted.join(call); // T3
    return joined ?? this.#whenSettled(lockToken, () => this.#committing.submit(call));
  }

  /** Commits a step or a beginning, or answers that nothing of it is written. Rejects where nobody knows. */
  async commitStep(call: TurnCall): Promise<"committed" | "refused"> {
    try {
      await this.#committing.submit(call);
      return "committed";
    } catch (error) {
      if (isAnswered(error)) return "refused";
      throw error;
    }
  }

  abandon(lockToken: string, options: AbandonOptions): Promise<void> {
    const call = { lockToken, lock: turnLock(lockToken), options };
    return this.#whenSettled(lockToken, () => this.#abandoning.submit(call));
  }

  renew(lockToken: string, extendForMs: number): Promise<void> {
    const call = { lockToken, lock: turnLock(lockToken), extendForMs };
    return this.#whenSettled(lockToken, () => this.#renewing.submit(call));
  }

  /** T3. At once, where there is nothing to wait for. */
  #whenSettled(lockToken: string, submit: () => Promise<void>): Promise<void> {
    const settled = this.#predicted.settled(lockToken);
    if (settled === null) return submit();
    const waiting = settled.then(submit);
    this.#waiting.add(waiting);
    const forget = (): void => void this.#waiting.delete(waiting);
    waiting.then(forget, forget);
    return waiting;
  }

  async append(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    const operation = "appendWithExecution";
    checkEventIds(operation, events);
    const rows = events.map((event) => ({ id: event.eventId, type: event.type, data: encodeEvent(event) }));
    const values = [this.#store.clock.now(), toColumn(instance), executionId, JSON.stringify(rows)];
    const [row] = await this.#store
      .write<{ readonly is_ready: boolean }>(operation, appendEvents, values)
      .catch((error: unknown) => Promise.reject(duplicateIn(operation, events, error)));
    const effects = new Effects();
    effects.changed(instance);
    if (row?.is_ready) effects.readyMessages += 1;
    this.#store.announce(effects, "everywhere");
  }

  /** Resolves when nothing is pending. */
  async idle(): Promise<void> {
    while (this.#waiting.size > 0) await Promise.allSettled(this.#waiting);
    await Promise.all([this.#committing, this.#abandoning, this.#renewing].map((batcher) => batcher.idle()));
    await this.#handOff.idle();
  }

  /** T4 */
  async #commit(
    calls: readonly TurnCall[],
    answer: (place: number, outcome: Outcome<void>) => void,
  ): Promise<readonly Outcome<void>[]> {
    const isMixed = calls.some(({ step }) => step === null) && calls.some(isBeginning);
    if (!isMixed) return this.#commitTogether(calls);
    const beginnings = calls.filter(isBeginning);
    const outcomes = new Map<TurnCall, Outcome<void>>();
    const note = (of: readonly TurnCall[], ends: readonly Outcome<void>[]): void => {
      for (const [index, call] of of.entries()) outcomes.set(call, ends[index]!);
    };
    try {
      note(beginnings, await this.#commitTogether(beginnings));
    } catch (error) {
      // What is certainly not written is sent as a start.
      note(
        beginnings,
        beginnings.map(() => (isAnswered(error) ? REFUSED : { error })),
      );
    }
    for (const [place, call] of calls.entries()) if (isBeginning(call)) answer(place, outcomes.get(call)!);
    const others = calls.filter((call) => !isBeginning(call));
    note(others, await this.#commitTogether(others));
    return calls.map((call) => outcomes.get(call)!);
  }

  /** Steps come last but for beginnings. */
  async #commitTogether(calls: readonly TurnCall[]): Promise<readonly Outcome<void>[]> {
    const operation = "ackOrchestrationItem";
    const now = this.#store.clock.now();
    const sent = inOrder(calls);
    const offer = this.#handOff.offer(activitiesOf(sent), now); // T2
    const watchedAsOf = this.#store.lastWatcher();
    let parts: readonly CommitPart[];
    try {
      parts = await this.#store.write<CommitPart>(operation, commitTurns, [
        now,
        this.#store.id,
        ...turnColumns(sent),
        ...activityColumns(offer.activities),
        ...offer.wanted,
        ...otherRows(sent, now),
      ]);
    } catch (error) {
      offer.giveBack();
      if (calls.length > 1 || calls[0]?.step !== null) throw error; // T1
      throw duplicateIn(operation, calls[0]?.turn.events ?? [], error);
    }
    const outcomes = this.#settle(sent, offer, parts, { now, watchedAsOf });
    if (sent === calls) return outcomes;
    const ends = new Map(sent.map((call, index) => [call, outcomes[index]!]));
    return calls.map((call) => ends.get(call)!);
  }

  #settle(
    calls: readonly TurnCall[],
    offer: Offer,
    parts: readonly CommitPart[],
    { now, watchedAsOf }: { readonly now: number; readonly watchedAsOf: number },
  ): readonly Outcome<void>[] {
    const lost = new Set(turnsOf(parts, "lost"));
    const left = new Set(turnsOf(parts, "left"));
    const served = offer.settle(parts);
    const effects = new Effects();
    effects.watchedAsOf = watchedAsOf;
    effects.isToldAfterAnswers = calls.some(isBeginning);
    for (const [index, call] of calls.entries()) {
      if (lost.has(index + 1)) continue;
      const change = changeOf(call.turn, this.#known.currentExecution(call.lockToken));
      this.#known.committed(call.lockToken, call.turn, !left.has(index + 1));
      noteTurn(effects, call, change, now);
    }
    for (const { turn, item } of offer.activities) if (!lost.has(turn)) effects.readyActivities += fetchesToWake(item);
    for (const { part, n } of parts) {
      if (part === "left") noteReady(effects, n, now);
      else if (part === "older") effects.readyActivities += n ?? 0;
    }
    effects.readyActivities = Math.max(effects.readyActivities - served, 0);
    if (calls.at(-1)?.step != null) this.#onSteps(parts.some(({ part }) => part === "beside"));
    this.#store.announce(effects, "everywhere");
    return calls.map(({ lockToken, step }, index) => {
      if (!lost.has(index + 1)) return { value: undefined };
      return step === null ? { error: lockLost("ackOrchestrationItem", lockToken) } : REFUSED;
    });
  }

  async #abandon(calls: readonly Abandoning<string>[]): Promise<readonly Outcome<void>[]> {
    const now = this.#store.clock.now();
    const rows = abandonRows(calls, now);
    const operation = "abandonOrchestrationItem";
    const abandoned = await this.#store.write<{ readonly ready_at: number | null }>(operation, abandonTurns, [
      JSON.stringify(rows),
    ]);
    const effects = new Effects();
    for (const { ready_at } of abandoned) noteReady(effects, ready_at, now);
    this.#store.announce(effects, "everywhere");
    return calls.map(() => ({ value: undefined }));
  }

  async #renew(calls: readonly Renewing<string>[]): Promise<readonly Outcome<void>[]> {
    const operation = "renewOrchestrationItemLock";
    const now = this.#store.clock.now();
    const rows = renewRows(calls, now);
    const renewed = await this.#store.query<{ readonly call: number }>(operation, renewTurns, [
      now,
      JSON.stringify(rows),
    ]);
    return outcomes(operation, calls, new Map(renewed.map(({ call }) => [call, undefined])));
  }
}

/** Those of locked instances, steps, beginnings. */
function inOrder(calls: readonly TurnCall[]): readonly TurnCall[] {
  if (calls.every(({ step }) => step === null)) return calls;
  const locked = calls.filter(({ step }) => step === null);
  const steps = calls.filter(({ step }) => step !== null && step.expected !== null);
  return [...locked, ...steps, ...calls.filter(isBeginning)];
}

/** What those have called who have sent what it answers. */
function senderOf({ expected }: Step): string {
  return expected === null ? "enqueueForOrchestrator" : "ackWorkItem";
}

function isBeginning({ step }: TurnCall): boolean {
  return step !== null && step.expected === null;
}

function turnsOf(parts: readonly CommitPart[], kind: CommitPart["part"]): readonly number[] {
  return parts.flatMap(({ part, turn }) => (part === kind ? [turn] : []));
}

function noteTurn(effects: Effects, { lock, turn }: TurnCall, change: InstanceChange, now: number): void {
  effects.changed(fromColumn(lock.id), change);
  for (const item of turn.orchestratorItems) {
    noteMessage(effects, item, item.type === "TimerFired" ? Math.max(item.fireAtMs, now) : now, now);
  }
}

/** PostgreSQL's answer to an event that is there already names its key, the id last. */
function duplicateIn(operation: string, events: readonly Event[], error: unknown): unknown {
  if (!(error instanceof ProviderError)) return error;
  const { code, constraint, detail } = (error.cause ?? {}) as Readonly<Record<string, unknown>>;
  if (code !== "23505" || constraint !== "history_pkey") return error;
  const [, id] = /, (\d+)\) already exists/.exec(String(detail)) ?? [];
  const taken = events.find(({ eventId }) => eventId === Number(id)) ?? events[0];
  return taken === undefined ? error : eventTaken(operation, taken, { cause: error });
}
