// providers/postgres/turn-queue.ts — messages sent, turns committed, instances given back and kept: each kind in batches.
//
//   T1. Messages are stored in the order in which they were sent by this provider.
//   T2. A call without a live lock is refused alone. An event that is there already takes back its whole batch; the calls
//       are then run one by one, and only that one fails.

import { MisuseError, ProviderError } from "../../errors.js";
import { encodeEvent } from "../../history/codec.js";
import type { Event } from "../../history/event.js";
import type { OrchestratorItem } from "../../history/work-item.js";
import { isStartLike, targetInstance } from "../../history/work-item.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { Effects } from "../../provider/kit/effects.js";
import { checkEventIds, checkOrchestratorItem, checkWorkerItem, eventTaken } from "../../provider/kit/refusals.js";
import { fromColumn, toColumn } from "../../provider/kit/text-column.js";
import { changeOf } from "../../provider/kit/turn-change.js";
import { fetchesToWake } from "../../provider/kit/worker-wake.js";
import type { AbandonOptions, EnqueueOptions, EnqueueOutcome, TurnCommit } from "../../provider/provider.js";
import { isAnswered } from "./driver-errors.js";
import { type Abandoning, abandonRows, outcomes, type Renewing, renewRows } from "./lock-calls.js";
import type { Store } from "./store.js";
import { type TurnCall, turnRows } from "./turn-rows.js";
import { messageRow } from "./work-rows.js";

const enqueueMessages = `SELECT * FROM {schema}.enqueue_messages($1)`;
const ackTurns = `SELECT * FROM {schema}.ack_turns($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`;
const abandonTurns = `SELECT * FROM {schema}.abandon_turns($1)`;
const renewTurns = `SELECT * FROM {schema}.renew_turns($1, $2)`;
const appendEvents = `SELECT * FROM {schema}.append_events($1, $2, $3, $4)`;

interface Sending {
  readonly item: OrchestratorItem;
  readonly options: EnqueueOptions;
}

interface TurnRow {
  readonly call: number;
  readonly instance: string;
  /** When it can be fetched next. Null: when somebody sends to it. */
  readonly ready_at: number | null;
}

/** One batch is one statement, however large; more than this is no faster. */
const MOST_BYTES = 4_000_000;
/** While the disk syncs one batch, the next can be executed. */
const IN_FLIGHT = 2;

export class TurnQueue {
  readonly #store: Store;
  readonly #sending: Batcher<Sending, EnqueueOutcome>;
  readonly #acking: Batcher<TurnCall, void>;
  readonly #abandoning: Batcher<Abandoning, void>;
  readonly #renewing: Batcher<Renewing, void>;

  constructor(store: Store) {
    this.#store = store;
    this.#sending = new Batcher({
      runsSingly: isAnswered,
      run: (calls) => this.#send(calls),
      maxInFlight: 1, // T1
      maxBytes: MOST_BYTES,
      sizeOf: ({ item }) => textLength(item),
      keyOf: ({ item }) => (isStartLike(item) ? item.instance : null),
    });
    this.#acking = new Batcher({
      runsSingly: isAnswered,
      run: (calls) => this.#ack(calls),
      maxInFlight: IN_FLIGHT,
      maxBytes: MOST_BYTES,
      sizeOf: ({ bytes }) => bytes,
      keyOf: ({ lockToken }) => lockToken,
    });
    const byToken = { maxInFlight: IN_FLIGHT, keyOf: (call: { readonly lockToken: string }) => call.lockToken };
    this.#abandoning = new Batcher<Abandoning, void>({
      runsSingly: isAnswered,
      run: (calls) => this.#abandon(calls),
      ...byToken,
    });
    this.#renewing = new Batcher<Renewing, void>({
      runsSingly: isAnswered,
      run: (calls) => this.#renew(calls),
      ...byToken,
    });
  }

  async enqueue(item: OrchestratorItem, options: EnqueueOptions): Promise<EnqueueOutcome> {
    checkOrchestratorItem("enqueueForOrchestrator", item);
    return this.#sending.submit({ item, options });
  }

  async ack(lockToken: string, turn: TurnCommit): Promise<void> {
    checkEventIds("ackOrchestrationItem", turn.events);
    for (const item of turn.workerItems) checkWorkerItem("ackOrchestrationItem", item);
    for (const item of turn.orchestratorItems) checkOrchestratorItem("ackOrchestrationItem", item);
    const events = turn.events.map((event) => ({ id: event.eventId, type: event.type, data: encodeEvent(event) }));
    const bytes = events.reduce((sum, { data }) => sum + data.length, 0);
    return this.#acking.submit({ lockToken, turn, events, bytes });
  }

  abandon(lockToken: string, options: AbandonOptions): Promise<void> {
    return this.#abandoning.submit({ lockToken, options });
  }

  renew(lockToken: string, extendForMs: number): Promise<void> {
    return this.#renewing.submit({ lockToken, extendForMs });
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
    const batchers = [this.#sending, this.#acking, this.#abandoning, this.#renewing];
    await Promise.all(batchers.map((batcher) => batcher.idle()));
  }

  async #send(calls: readonly Sending[]): Promise<readonly Outcome<EnqueueOutcome>[]> {
    const now = this.#store.clock.now();
    const rows = calls.map(({ item, options }, call) => ({
      call,
      ...messageRow(item, now, options.delayMs),
      absent: isStartLike(item) && options.ifAbsent === true,
    }));
    const sent = await this.#store.write<{ readonly call: number }>("enqueueForOrchestrator", enqueueMessages, [
      JSON.stringify(rows),
    ]);
    const effects = new Effects();
    const isSent = new Set(sent.map(({ call }) => call));
    for (const [call, { item }] of calls.entries()) {
      if (isSent.has(call)) noteMessage(effects, item, rows[call]?.visible ?? now, now);
    }
    this.#store.announce(effects, "everywhere");
    return calls.map((_, call) => ({ value: isSent.has(call) ? "enqueued" : "exists" }));
  }

  async #ack(calls: readonly TurnCall[]): Promise<readonly Outcome<void>[]> {
    const operation = "ackOrchestrationItem";
    const now = this.#store.clock.now();
    let acked: readonly TurnRow[];
    try {
      acked = await this.#store.write<TurnRow>(operation, ackTurns, [now, this.#store.id, ...turnRows(calls, now)]);
    } catch (error) {
      if (calls.length > 1) throw error; // T2
      throw duplicateIn(operation, calls[0]?.turn.events ?? [], error);
    }
    const effects = new Effects();
    for (const row of acked) noteTurn(effects, calls[row.call], row, now);
    this.#store.announce(effects, "everywhere");
    return outcomes(operation, calls, new Map(acked.map(({ call }) => [call, undefined])));
  }

  async #abandon(calls: readonly Abandoning[]): Promise<readonly Outcome<void>[]> {
    const now = this.#store.clock.now();
    const rows = abandonRows(calls, now);
    const operation = "abandonOrchestrationItem";
    const abandoned = await this.#store.write<TurnRow>(operation, abandonTurns, [JSON.stringify(rows)]);
    const effects = new Effects();
    for (const { ready_at } of abandoned) noteReady(effects, ready_at, now);
    this.#store.announce(effects, "everywhere");
    return calls.map(() => ({ value: undefined }));
  }

  async #renew(calls: readonly Renewing[]): Promise<readonly Outcome<void>[]> {
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

export function noteMessage(effects: Effects, item: OrchestratorItem, visibleAt: number, now: number): void {
  noteReady(effects, visibleAt, now);
  if (isStartLike(item)) effects.changed(targetInstance(item));
}

/** Also of what was told before: whoever looked while the instance was locked has seen the end of its lock instead. */
function noteReady(effects: Effects, readyAt: number | null, now: number): void {
  if (readyAt === null) return;
  if (readyAt <= now) effects.readyMessages += 1;
  else effects.messageAt(readyAt);
}

function noteTurn(effects: Effects, call: TurnCall | undefined, { instance, ready_at }: TurnRow, now: number): void {
  if (call === undefined) throw new MisuseError("ack_turns answered for a call that nobody made.");
  effects.changed(fromColumn(instance), changeOf(call.turn));
  noteReady(effects, ready_at, now);
  for (const item of call.turn.workerItems) effects.readyActivities += fetchesToWake(item);
  for (const item of call.turn.orchestratorItems) {
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

/** About as long as its text will be; counting is cheaper than encoding twice. */
function textLength(item: OrchestratorItem): number {
  return Object.values(item).reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 16), 0);
}
