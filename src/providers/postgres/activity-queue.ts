// providers/postgres/activity-queue.ts — activities queued, claimed, done and given back, and sessions: in batches.
//
//   A1. Fetches with the same tags and timeouts share a claim, whoever their sessions belong to: the oldest work first.
//   A2. Work that cannot be decoded is set aside for good, counted, and stands in nobody's way: the fetch looks again.

import { messageOf } from "../../errors.js";
import { decodeWorkItem } from "../../history/codec.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { Effects } from "../../provider/kit/effects.js";
import { checkCompletion, checkWorkerItem } from "../../provider/kit/refusals.js";
import { toColumn } from "../../provider/kit/text-column.js";
import { fetchesToWake } from "../../provider/kit/worker-wake.js";
import type { AbandonOptions, ExecutionState, FetchWorkOptions, LockedWorkItem } from "../../provider/provider.js";
import { isAnswered } from "./driver-errors.js";
import { type Abandoning, abandonRows, outcomes, type Renewing, renewRows } from "./lock-calls.js";
import { type Claimed, groupedBy, type Look, lookUntilSure } from "./look.js";
import type { Store } from "./store.js";
import { noteMessage } from "./turn-queue.js";
import { activityRow, messageRow, timeIn, wantedTags } from "./work-rows.js";

const enqueueActivities = `SELECT {schema}.enqueue_activities($1, $2)`;
const claimActivities = `SELECT * FROM {schema}.fetch_activities($1, $2, $3, $4, $5, $6, $7)`;
const setActivityAside = `SELECT {schema}.set_activity_aside($1)`;
const ackActivities = `SELECT * FROM {schema}.ack_activities($1, $2, $3)`;
const abandonActivities = `SELECT * FROM {schema}.abandon_activities($1)`;
const renewActivities = `SELECT * FROM {schema}.renew_activities($1, $2)`;
const renewSessions = `SELECT * FROM {schema}.renew_sessions($1, $2, $3, $4)`;
const removeSessions = `SELECT * FROM {schema}.remove_sessions($1)`;

interface Part {
  readonly part: "work" | "next" | "passed";
  readonly turn: number;
  readonly id: number;
  readonly a: string;
  readonly n: number | null;
  readonly is_over: boolean;
}

interface Acking {
  readonly lockToken: string;
  readonly completion: OrchestratorItem | null;
}

/** What one statement has claimed. */
interface Claim {
  /** By the place of the fetch. */
  readonly works: ReadonlyMap<number, LockedWorkItem>;
  /** Tokens of what cannot be decoded. */
  readonly aside: readonly string[];
  readonly nextAt: number | null;
  readonly isPassed: boolean;
}

type WorkLook = Claimed<LockedWorkItem>;

/** Woken for what may be a session's: who its owner is, each of them has to see for itself. */
const EVERYBODY = Number.POSITIVE_INFINITY;

/** While the disk syncs one batch, the next can be executed. */
const IN_FLIGHT = 2;
const MOST_BYTES = 4_000_000;

export class ActivityQueue {
  readonly #store: Store;
  readonly #sending: Batcher<ActivityExecute, void>;
  readonly #looking: Batcher<FetchWorkOptions, WorkLook>;
  readonly #waiting: Batcher<FetchWorkOptions, WorkLook>;
  readonly #acking: Batcher<Acking, void>;
  readonly #abandoning: Batcher<Abandoning, void>;
  readonly #renewing: Batcher<Renewing, ExecutionState>;

  constructor(store: Store) {
    this.#store = store;
    this.#sending = new Batcher({ runsSingly: isAnswered, run: (calls) => this.#send(calls) });
    this.#looking = new Batcher({ runsSingly: isAnswered, run: (calls) => this.#fetch(calls, false) });
    this.#waiting = new Batcher({ runsSingly: isAnswered, run: (calls) => this.#fetch(calls, true) });
    const byToken = { maxInFlight: IN_FLIGHT, keyOf: (call: { readonly lockToken: string }) => call.lockToken };
    this.#acking = new Batcher<Acking, void>({
      runsSingly: isAnswered,
      run: (calls) => this.#ack(calls),
      ...byToken,
      maxBytes: MOST_BYTES,
      sizeOf: ({ completion }) => (completion?.type === "ActivityCompleted" ? completion.result.length : 1_000),
    });
    this.#abandoning = new Batcher<Abandoning, void>({
      runsSingly: isAnswered,
      run: (calls) => this.#abandon(calls),
      ...byToken,
    });
    this.#renewing = new Batcher<Renewing, ExecutionState>({
      runsSingly: isAnswered,
      run: (calls) => this.#renew(calls),
      ...byToken,
    });
  }

  async enqueue(item: ActivityExecute): Promise<void> {
    checkWorkerItem("enqueueForWorker", item);
    return this.#sending.submit(item);
  }

  look(options: FetchWorkOptions): Promise<Look<LockedWorkItem>> {
    return lookUntilSure(this.#store.clock, (isWaiting) => {
      return (isWaiting ? this.#waiting : this.#looking).submit(options);
    });
  }

  async ack(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    if (completion !== null) checkCompletion("ackWorkItem", completion);
    return this.#acking.submit({ lockToken, completion });
  }

  abandon(lockToken: string, options: AbandonOptions): Promise<void> {
    return this.#abandoning.submit({ lockToken, options });
  }

  renew(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.#renewing.submit({ lockToken, extendForMs });
  }

  async renewSessions(ownerIds: readonly string[], extendForMs: number, idleTimeoutMs: number): Promise<number> {
    const now = this.#store.clock.now();
    const usedAfter = Math.max(Math.trunc(now - idleTimeoutMs), Number.MIN_SAFE_INTEGER);
    const values = [now, ownerIds.map(toColumn), timeIn(now, extendForMs), usedAfter];
    const [row] = await this.#store.query<{ readonly renewed: number }>("renewSessionLock", renewSessions, values);
    return row?.renewed ?? 0;
  }

  async removeSessions(): Promise<number> {
    const values = [this.#store.clock.now()];
    const [row] = await this.#store.query<{ readonly removed: number }>(
      "cleanupOrphanedSessions",
      removeSessions,
      values,
    );
    return row?.removed ?? 0;
  }

  /** Resolves when nothing is pending. */
  async idle(): Promise<void> {
    const fetching = [this.#looking, this.#waiting];
    const batchers = [this.#sending, ...fetching, this.#acking, this.#abandoning, this.#renewing];
    await Promise.all(batchers.map((batcher) => batcher.idle()));
  }

  async #send(calls: readonly ActivityExecute[]): Promise<readonly Outcome<void>[]> {
    const rows = calls.map((item, n) => ({ n, ...activityRow(item) }));
    const values = [this.#store.clock.now(), JSON.stringify(rows)];
    await this.#store.write("enqueueForWorker", enqueueActivities, values);
    const effects = new Effects();
    for (const item of calls) effects.readyActivities += fetchesToWake(item);
    this.#store.announce(effects, "everywhere");
    return calls.map(() => ({ value: undefined }));
  }

  async #fetch(calls: readonly FetchWorkOptions[], isWaiting: boolean): Promise<readonly Outcome<WorkLook>[]> {
    const results: Outcome<WorkLook>[] = [];
    for (const indexes of groupedBy(calls, wishOf)) {
      const group = indexes.map((index) => calls[index] as FetchWorkOptions);
      const ofGroup = await this.#fetchGroup(group, isWaiting);
      for (const [at, index] of indexes.entries()) results[index] = ofGroup[at] as Outcome<WorkLook>;
    }
    return results;
  }

  /** A1. What was locked before something failed is handed out all the same. */
  async #fetchGroup(calls: readonly FetchWorkOptions[], isWaiting: boolean): Promise<readonly Outcome<WorkLook>[]> {
    let works: Claim["works"] = new Map();
    let empty: Outcome<WorkLook>;
    try {
      const claim = await this.#claim(calls, isWaiting);
      works = claim.works;
      for (const lockToken of claim.aside) {
        await this.#store.query("fetchWorkItem", setActivityAside, [lockToken]); // A2
      }
      const { nextAt, isPassed, aside } = claim;
      empty = { value: { found: null, nextAt, isPassed, isAside: aside.length > 0 } };
    } catch (error) {
      empty = { error };
    }
    return calls.map((_, index) => {
      const found = works.get(index);
      return found === undefined ? empty : { value: { found, nextAt: null, isPassed: false, isAside: false } };
    });
  }

  async #claim(calls: readonly FetchWorkOptions[], isWaiting: boolean): Promise<Claim> {
    const { lockTimeoutMs, tagFilter = { kind: "default-only" }, session } = calls[0] as FetchWorkOptions;
    const now = this.#store.clock.now();
    const lockedUntil = timeIn(now, lockTimeoutMs);
    const sessionUntil = session === undefined ? null : timeIn(now, session.lockTimeoutMs);
    const tokens = calls.map(() => this.#store.newId());
    const parts = await this.#store.query<Part>("fetchWorkItem", claimActivities, [
      now,
      lockedUntil,
      tokens,
      wantedTags(tagFilter),
      calls.map((call) => (call.session === undefined ? null : toColumn(call.session.ownerId))),
      sessionUntil,
      isWaiting,
    ]);
    const effects = new Effects();
    const works = new Map<number, LockedWorkItem>();
    const aside: string[] = [];
    for (const { id, turn, a, n, is_over } of parts.filter(({ part }) => part === "work")) {
      const lockToken = tokens[turn - 1] as string;
      const item = decodeActivity(a);
      if (item instanceof Error) {
        effects.warnings.push(`Activity row ${id} cannot be decoded and is set aside: ${messageOf(item)}`);
        aside.push(lockToken);
      } else {
        const work = { item, lockToken, attemptCount: n ?? 1, executionState: stateOf(is_over) };
        works.set(turn - 1, work);
      }
    }
    if (works.size > 0) {
      effects.activityAt(lockedUntil);
      if (sessionUntil !== null) effects.activityAt(sessionUntil);
    }
    this.#store.announce(effects, "here");
    const nextAt = parts.find(({ part }) => part === "next")?.n ?? null;
    return { works, aside, nextAt, isPassed: parts.some(({ part }) => part === "passed") };
  }

  async #ack(calls: readonly Acking[]): Promise<readonly Outcome<void>[]> {
    const operation = "ackWorkItem";
    const now = this.#store.clock.now();
    const acks = calls.map(({ lockToken }, call) => ({ call, token: lockToken }));
    const messages = calls.flatMap(({ completion }, call) =>
      completion === null ? [] : [{ call, ...messageRow(completion, now) }],
    );
    const done = await this.#store.write<{ readonly call: number }>(operation, ackActivities, [
      now,
      JSON.stringify(acks),
      JSON.stringify(messages),
    ]);
    const effects = new Effects();
    for (const { call } of done) {
      const completion = calls[call]?.completion ?? null;
      if (completion !== null) noteMessage(effects, completion, now, now);
    }
    this.#store.announce(effects, "everywhere");
    return outcomes(operation, calls, new Map(done.map(({ call }) => [call, undefined])));
  }

  async #abandon(calls: readonly Abandoning[]): Promise<readonly Outcome<void>[]> {
    const now = this.#store.clock.now();
    const rows = abandonRows(calls, now);
    const abandoned = await this.#store.write<{ readonly call: number }>("abandonWorkItem", abandonActivities, [
      JSON.stringify(rows),
    ]);
    const effects = new Effects();
    for (const { call } of abandoned) {
      const until = rows[call]?.until ?? null;
      if (until === null) effects.readyActivities = EVERYBODY;
      else effects.activityAt(until);
    }
    this.#store.announce(effects, "everywhere");
    return calls.map(() => ({ value: undefined }));
  }

  async #renew(calls: readonly Renewing[]): Promise<readonly Outcome<ExecutionState>[]> {
    const operation = "renewWorkItemLock";
    const now = this.#store.clock.now();
    const rows = renewRows(calls, now);
    const renewed = await this.#store.query<{ readonly call: number; readonly is_over: boolean }>(
      operation,
      renewActivities,
      [now, JSON.stringify(rows)],
    );
    return outcomes(operation, calls, new Map(renewed.map(({ call, is_over }) => [call, stateOf(is_over)])));
  }
}

function stateOf(isOver: boolean): ExecutionState {
  return isOver ? "terminated" : "running";
}

/** Who shares a claim (A1). */
function wishOf({ lockTimeoutMs, tagFilter, session }: FetchWorkOptions): object {
  return [lockTimeoutMs, tagFilter ?? null, session?.lockTimeoutMs ?? null];
}

function decodeActivity(text: string): ActivityExecute | Error {
  try {
    const item = decodeWorkItem(text);
    return item.type === "ActivityExecute" ? item : new TypeError(`${item.type} is no activity`);
  } catch (error) {
    return error instanceof Error ? error : new TypeError(messageOf(error));
  }
}
