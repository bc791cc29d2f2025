// test/simulation/witness.ts — stands right in front of the store, sees everything that is really done, and keeps its own books.
//
//   B1. An instance has one live lock at most, and only its holder commits. So has an activity.
//   B2. A history grows by one event after the other, and the store has what was committed.
//   B3. An activity is dispatched once, ends once, and nobody gets it after it has ended or was given up.
//   B4. Messages are handed out in the order of their due times; what a turn records of them stands in that order.
//   B5. What was done in one step is written into the books at its end: first what changed something, then what was handed out
//       because of it. By then both have been answered, in whatever order.

import type { Clock } from "../../src/clock.js";
import { encodeWorkItem } from "../../src/history/codec.js";
import type { Event } from "../../src/history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../src/history/work-item.js";
import type { ProviderAdmin } from "../../src/provider/admin.js";
import { ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type {
  AbandonOptions,
  EnqueueOptions,
  EnqueueOutcome,
  ExecutionState,
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
  ScheduledId,
  TurnCommit,
} from "../../src/provider/provider.js";

interface Lock {
  readonly token: string;
  /** The instance, or the activity. */
  readonly key: string;
  until: number;
  readonly batch: readonly OrchestratorItem[];
}

/** What has been seen of the store, by whichever process. One for each store. */
export class Books {
  readonly problems: string[] = [];
  readonly #turnLocks = new Map<string, Lock>();
  readonly #workLocks = new Map<string, Lock>();
  readonly #histories = new Map<string, Event[]>();
  readonly #dispatched = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #dueTimes = new Map<string, number[]>();
  #done: (() => void)[] = [];
  #handedOut: (() => void)[] = [];

  /** Something was changed. */
  note(entry: () => void): void {
    this.#done.push(entry);
  }

  /** Something was handed out. */
  noteFetch(entry: () => void): void {
    this.#handedOut.push(entry);
  }

  /** Enters what was noted. B5 */
  enter(): void {
    const entries = [...this.#done, ...this.#handedOut];
    this.#done = [];
    this.#handedOut = [];
    for (const entry of entries) entry();
  }

  /** As committed, of each instance, execution by execution. */
  committed(instance: string, executionId: number): readonly Event[] {
    return this.#histories.get(`${instance}/${executionId}`) ?? [];
  }

  queued(item: OrchestratorItem, now: number): void {
    const dueAt = item.type === "TimerFired" ? item.fireAtMs : now;
    const key = encodeWorkItem(item);
    const times = this.#dueTimes.get(key);
    if (times === undefined) this.#dueTimes.set(key, [dueAt]);
    else times.push(dueAt);
  }

  turnFetched({ item, lockToken }: LockedOrchestrationItem, now: number, lockTimeoutMs: number): void {
    const { instance, messages } = item;
    this.#take(this.#turnLocks, `instance ${instance}`, instance, lockToken, now, lockTimeoutMs, messages);
    let before = Number.NEGATIVE_INFINITY;
    for (const message of messages) {
      const times = this.#dueTimes.get(encodeWorkItem(message));
      if (times === undefined) this.#problem(`${instance} gets a ${message.type} that nobody has sent`);
      if (times?.length !== 1) continue; // Sent more than once: nobody can tell which one this is.
      if (times[0]! > now) this.#problem(`${instance} gets a ${message.type} before its time`);
      if (times[0]! < before) this.#problem(`${instance} gets a ${message.type} after one that was due later`); // B4
      before = Math.max(before, times[0]!);
    }
  }

  turnCommitted(lockToken: string, turn: TurnCommit, now: number): void {
    const lock = this.#holder(this.#turnLocks, "turn", lockToken, now);
    if (lock === null) return;
    const instance = lock.key;
    this.#turnLocks.delete(instance);
    this.#append(instance, turn);
    this.#checkOrder(instance, lock.batch, turn);
    for (const item of turn.workerItems) this.#dispatch(item);
    for (const item of turn.orchestratorItems) this.queued(item, now);
    for (const id of turn.cancelledActivities) this.#end(keyOf(id)); // B3
  }

  turnGivenBack(lockToken: string, now: number, { delayMs = 0 }: AbandonOptions): void {
    const lock = find(this.#turnLocks, lockToken);
    if (lock === null) return;
    this.#turnLocks.delete(lock.key);
    if (delayMs > 0) this.#turnLocks.set(lock.key, { ...lock, token: "", until: now + delayMs });
  }

  turnRenewed(lockToken: string, now: number, forMs: number): void {
    this.#renew(this.#turnLocks, "turn", lockToken, now, forMs);
  }

  workFetched({ item, lockToken }: LockedWorkItem, now: number, lockTimeoutMs: number): void {
    const key = keyOf(item);
    if (this.#ended.has(key)) this.#problem(`activity ${key} is handed out after it has ended`); // B3
    if (!this.#dispatched.has(key)) this.#problem(`activity ${key} is handed out, and nobody has dispatched it`);
    this.#take(this.#workLocks, `activity ${key}`, key, lockToken, now, lockTimeoutMs, []);
  }

  workEnded(lockToken: string, completion: OrchestratorItem | null, now: number): void {
    const lock = this.#holder(this.#workLocks, "activity", lockToken, now);
    if (lock === null) return;
    this.#workLocks.delete(lock.key);
    if (this.#ended.has(lock.key)) this.#problem(`activity ${lock.key} has ended twice, or after it was given up`); // B3
    this.#end(lock.key);
    if (completion !== null) this.queued(completion, now);
  }

  workGivenBack(lockToken: string): void {
    const lock = find(this.#workLocks, lockToken);
    if (lock !== null) this.#workLocks.delete(lock.key);
  }

  workRenewed(lockToken: string, now: number, forMs: number): void {
    this.#renew(this.#workLocks, "activity", lockToken, now, forMs);
  }

  /** Whatever belonged to it is gone, and may come again. */
  deleted(instance: string): void {
    for (const book of [this.#turnLocks, this.#workLocks, this.#histories, this.#dispatched, this.#ended]) {
      for (const key of [...book.keys()]) if (isPartOf(key, instance)) book.delete(key);
    }
  }

  #take(
    locks: Map<string, Lock>,
    what: string,
    key: string,
    token: string,
    now: number,
    lockTimeoutMs: number,
    batch: readonly OrchestratorItem[],
  ): void {
    const before = locks.get(key);
    if (before !== undefined && before.until > now) this.#problem(`${what} is handed out while it is locked`); // B1
    locks.set(key, { token, key, until: now + lockTimeoutMs, batch });
  }

  #holder(locks: Map<string, Lock>, what: string, token: string, now: number): Lock | null {
    const lock = find(locks, token);
    if (lock === null)
      this.#problem(`a ${what} is committed by somebody who has lost it`); // B1
    else if (lock.until <= now) this.#problem(`the ${what} ${lock.key} is committed after its lock has lapsed`);
    return lock;
  }

  #renew(locks: Map<string, Lock>, what: string, token: string, now: number, forMs: number): void {
    const lock = this.#holder(locks, what, token, now);
    if (lock !== null) lock.until = now + forMs;
  }

  #append(instance: string, { executionId, events }: TurnCommit): void {
    const key = `${instance}/${executionId}`;
    const history = this.#histories.get(key) ?? [];
    this.#histories.set(key, history);
    for (const event of events) {
      const next = (history.at(-1)?.eventId ?? 0) + 1;
      if (event.eventId !== next) this.#problem(`${key} gets event ${event.eventId} where ${next} is due`); // B2
      history.push(event);
    }
  }

  /** B4: by its kind and what it answers, each message that was recorded is found in the batch, in order. */
  #checkOrder(instance: string, batch: readonly OrchestratorItem[], { events, executionId }: TurnCommit): void {
    const expected = batch.map((item) => arrivalOf(item, executionId));
    const [started] = events;
    const carried = started?.type === "OrchestrationStarted" ? (started.carryForwardEvents?.length ?? 0) : 0;
    const arrivals = events.map(arrivalIn).filter((arrival) => arrival !== null);
    let place = 0;
    for (const arrival of arrivals.slice(carried)) {
      const found = expected.indexOf(arrival, place);
      if (found !== -1) place = found + 1;
      else if (expected.includes(arrival)) this.#problem(`${instance} records ${arrival} before what came earlier`);
    }
  }

  #dispatch(item: ActivityExecute): void {
    const key = keyOf(item);
    if (this.#dispatched.has(key)) this.#problem(`activity ${key} is dispatched twice`); // B3
    this.#dispatched.add(key);
  }

  #end(key: string): void {
    this.#ended.add(key);
  }

  #problem(text: string): void {
    this.problems.push(text);
  }
}

export class Witness extends ProviderWrapper {
  readonly #books: Books;
  readonly #clock: Clock;
  readonly #waiting = { turns: new Set<FetchOrchestrationOptions>(), work: new Set<FetchWorkOptions>() };

  constructor(inner: Provider, books: Books, clock: Clock) {
    super(inner);
    this.#books = books;
    this.#clock = clock;
  }

  /** Those who wait for turns and for work now. */
  get waiting(): { readonly turns: Iterable<FetchOrchestrationOptions>; readonly work: Iterable<FetchWorkOptions> } {
    return this.#waiting;
  }

  override get admin(): ProviderAdmin | null {
    const { admin } = this.inner;
    if (admin === null) return null;
    const books = this.#books;
    return new Proxy(admin, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        if (name !== "deleteInstance") return member.bind(target);
        return async (instance: string, force: boolean) => {
          const result = await target.deleteInstance(instance, force);
          books.note(() => books.deleted(instance));
          return result;
        };
      },
    });
  }

  override async enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    const now = this.#clock.now();
    const outcome = await super.enqueueForOrchestrator(item, options);
    if (outcome === "enqueued") this.#books.note(() => this.#books.queued(item, now + (options.delayMs ?? 0)));
    return outcome;
  }

  override async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    this.#waiting.turns.add(options);
    const locked = await super.fetchOrchestrationItem(options).finally(() => this.#waiting.turns.delete(options));
    const now = this.#clock.now();
    if (locked !== null) this.#books.noteFetch(() => this.#books.turnFetched(locked, now, options.lockTimeoutMs));
    return locked;
  }

  override async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    const now = this.#clock.now();
    await super.ackOrchestrationItem(lockToken, turn);
    this.#books.note(() => this.#books.turnCommitted(lockToken, turn, now));
  }

  override async abandonOrchestrationItem(lockToken: string, options: AbandonOptions = {}): Promise<void> {
    const now = this.#clock.now();
    await super.abandonOrchestrationItem(lockToken, options);
    this.#books.note(() => this.#books.turnGivenBack(lockToken, now, options));
  }

  override async renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void> {
    const now = this.#clock.now();
    await super.renewOrchestrationItemLock(lockToken, extendForMs);
    this.#books.note(() => this.#books.turnRenewed(lockToken, now, extendForMs));
  }

  override async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    this.#waiting.work.add(options);
    const locked = await super.fetchWorkItem(options).finally(() => this.#waiting.work.delete(options));
    const now = this.#clock.now();
    if (locked !== null) this.#books.noteFetch(() => this.#books.workFetched(locked, now, options.lockTimeoutMs));
    return locked;
  }

  override async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    const now = this.#clock.now();
    await super.ackWorkItem(lockToken, completion);
    this.#books.note(() => this.#books.workEnded(lockToken, completion, now));
  }

  override async abandonWorkItem(lockToken: string, options?: AbandonOptions): Promise<void> {
    await super.abandonWorkItem(lockToken, options);
    this.#books.note(() => this.#books.workGivenBack(lockToken));
  }

  override async renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    const now = this.#clock.now();
    const state = await super.renewWorkItemLock(lockToken, extendForMs);
    this.#books.note(() => this.#books.workRenewed(lockToken, now, extendForMs));
    return state;
  }
}

function find(locks: ReadonlyMap<string, Lock>, token: string): Lock | null {
  for (const lock of locks.values()) if (lock.token === token) return lock;
  return null;
}

function keyOf({ instance, executionId, id }: ScheduledId): string {
  return `${instance}/${executionId}/${id}`;
}

/** Ids of descendants begin with those of their ancestors. */
function isPartOf(key: string, root: string): boolean {
  return key === root || [".", "/", "::"].some((separator) => key.startsWith(`${root}${separator}`));
}

/** What is recorded of it in that execution. Null: nothing, because it answers another one. */
function arrivalOf(item: OrchestratorItem, executionId: number): string | null {
  switch (item.type) {
    case "ActivityCompleted":
    case "ActivityFailed":
    case "TimerFired":
      return item.executionId === executionId ? `answer to ${item.id}` : null;
    case "SubOrchCompleted":
    case "SubOrchFailed":
      return item.parentExecutionId === executionId ? `answer to ${item.parentId}` : null;
    case "ExternalRaised":
      return `event ${item.name} ${item.data}`;
    case "QueueMessage":
      return `message ${item.name} ${item.data}`;
    default:
      return null;
  }
}

function arrivalIn(event: Event): string | null {
  switch (event.type) {
    case "ActivityCompleted":
    case "ActivityFailed":
    case "TimerFired":
    case "SubOrchestrationCompleted":
    case "SubOrchestrationFailed":
      return `answer to ${event.sourceEventId}`;
    case "ExternalEvent":
      return `event ${event.name} ${event.data}`;
    case "ExternalEventPersistent":
      return `message ${event.name} ${event.data}`;
    default:
      return null;
  }
}
