// providers/postgres/activity-queue.ts — activities queued, claimed and given back, and sessions: in batches.
//
//   A1. Fetches with the same tags and timeouts share a claim, whoever their sessions belong to: the oldest work first.
//   A2. Work that cannot be decoded is set aside for good, counted, and stands in nobody's way: the fetch looks again.

import { messageOf } from "../../errors.js";
import { decodeWorkItem } from "../../history/codec.js";
import type { ActivityExecute } from "../../history/work-item.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { Effects } from "../../provider/kit/effects.js";
import { checkWorkerItem } from "../../provider/kit/refusals.js";
import { toColumn } from "../../provider/kit/text-column.js";
import { fetchesToWake } from "../../provider/kit/worker-wake.js";
import type { AbandonOptions, ExecutionState, FetchWorkOptions, LockedWorkItem } from "../../provider/provider.js";
import { isAnswered } from "./driver-errors.js";
import { type Abandoning, abandonRows, outcomes, type Renewing, renewRows, rowOf } from "./lock-calls.js";
import { activityLock, activityToken, newSecret } from "./lock-token.js";
import { type Claimed, groupedBy, lookUntilSure, type Patience } from "./look.js";
import type { Store } from "./store.js";
import { activityRow, timeIn, wantedTags } from "./work-rows.js";

const enqueueActivities = `SELECT {schema}.enqueue_activities($1, $2)`;
const claimActivities = `SELECT * FROM {schema}.fetch_activities($1, $2, $3, $4, $5, $6, $7, $8)`;
const setActivityAside = `SELECT {schema}.set_activity_aside($1, $2)`;
const abandonActivities = `SELECT * FROM {schema}.abandon_activities($1)`;
const renewActivities = `SELECT * FROM {schema}.renew_activities($1, $2)`;
const renewSessions = `SELECT * FROM {schema}.renew_sessions($1, $2, $3, $4)`;
const removeSessions = `SELECT * FROM {schema}.remove_sessions($1)`;

/** A row of what `fetch_activities` answers. */
export interface ActivityPart {
  readonly part: "work" | "next" | "passed";
  readonly turn: number;
  readonly id: number;
  readonly a: string;
  readonly n: number | null;
  readonly is_over: boolean;
}

/** What one statement has claimed. */
interface Claim {
  /** By the place of the fetch. */
  readonly works: ReadonlyMap<number, LockedWorkItem>;
  /** Locks of what cannot be decoded. */
  readonly aside: readonly { readonly id: number; readonly secret: string }[];
  readonly nextAt: number | null;
  readonly isPassed: boolean;
  /** For whomever. */
  readonly isEmpty: boolean;
}

type WorkLook = Claimed<LockedWorkItem>;

/** Woken for what may be a session's: who its owner is, each of them has to see for itself. */
const EVERYBODY = Number.POSITIVE_INFINITY;

/** While the disk syncs one batch, the next can be executed. */
const IN_FLIGHT = 2;

export class ActivityQueue {
  readonly #store: Store;
  readonly #sending: Batcher<ActivityExecute, void>;
  readonly #looking: Batcher<FetchWorkOptions, WorkLook>;
  readonly #waiting: Batcher<FetchWorkOptions, WorkLook>;
  readonly #abandoning: Batcher<Abandoning<number>, void>;
  readonly #renewing: Batcher<Renewing<number>, ExecutionState>;

  constructor(store: Store) {
    this.#store = store;
    this.#sending = new Batcher({ runsSingly: isAnswered, run: (calls) => this.#send(calls) });
    this.#looking = new Batcher({ runsSingly: isAnswered, run: (calls) => this.#fetch(calls, false) });
    this.#waiting = new Batcher({ runsSingly: isAnswered, run: (calls) => this.#fetch(calls, true) });
    const byRow = { runsSingly: isAnswered, maxInFlight: IN_FLIGHT, keyOf: rowOf };
    this.#abandoning = new Batcher<Abandoning<number>, void>({ ...byRow, run: (calls) => this.#abandon(calls) });
    this.#renewing = new Batcher<Renewing<number>, ExecutionState>({ ...byRow, run: (calls) => this.#renew(calls) });
  }

  async enqueue(item: ActivityExecute): Promise<void> {
    checkWorkerItem("enqueueForWorker", item);
    return this.#sending.submit(item);
  }

  look(options: FetchWorkOptions, patience: Patience): Promise<Claimed<LockedWorkItem>> {
    return lookUntilSure(patience, (isWaiting) => {
      return (isWaiting ? this.#waiting : this.#looking).submit(options);
    });
  }

  abandon(lockToken: string, options: AbandonOptions): Promise<void> {
    return this.#abandoning.submit({ lockToken, lock: activityLock(lockToken), options });
  }

  renew(lockToken: string, extendForMs: number): Promise<ExecutionState> {
    return this.#renewing.submit({ lockToken, lock: activityLock(lockToken), extendForMs });
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
    const batchers = [this.#sending, ...fetching, this.#abandoning, this.#renewing];
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
    let rest = { nextAt: null as number | null, isEmpty: false };
    let empty: Outcome<WorkLook>;
    try {
      const claim = await this.#claim(calls, isWaiting);
      works = claim.works;
      await this.setAside(claim);
      const { nextAt, isPassed, isEmpty, aside } = claim;
      rest = { nextAt, isEmpty };
      empty = { value: { found: null, isPassed, isAside: aside.length > 0, ...rest } };
    } catch (error) {
      empty = { error };
    }
    return calls.map((_, index) => {
      const found = works.get(index);
      if (found === undefined) return empty;
      return { value: { found, isPassed: false, isAside: false, ...rest } };
    });
  }

  /** A2 */
  async setAside({ aside }: Pick<Claim, "aside">): Promise<void> {
    for (const { id, secret } of aside) await this.#store.query("fetchWorkItem", setActivityAside, [id, secret]);
  }

  async #claim(calls: readonly FetchWorkOptions[], isWaiting: boolean): Promise<Claim> {
    const { lockTimeoutMs, tagFilter = { kind: "default-only" }, session } = calls[0] as FetchWorkOptions;
    const now = this.#store.clock.now();
    const lockedUntil = timeIn(now, lockTimeoutMs);
    const sessionUntil = session === undefined ? null : timeIn(now, session.lockTimeoutMs);
    const secrets = calls.map(() => newSecret(this.#store.newId));
    const parts = await this.#store.query<ActivityPart>("fetchWorkItem", claimActivities, [
      now,
      lockedUntil,
      secrets,
      wantedTags(tagFilter),
      calls.map((call) => (call.session === undefined ? null : toColumn(call.session.ownerId))),
      sessionUntil,
      this.#store.looksBack("activities", now),
      isWaiting,
    ]);
    return this.claimOf(parts, secrets, Math.min(lockedUntil, sessionUntil ?? lockedUntil));
  }

  /** What `fetch_activities` has answered to whoever called it with these secrets. `endsAt`: when the first lock does. */
  claimOf(parts: readonly ActivityPart[], secrets: readonly string[], endsAt: number): Claim {
    const effects = new Effects();
    const works = new Map<number, LockedWorkItem>();
    const aside: { readonly id: number; readonly secret: string }[] = [];
    for (const { id, turn, a, n, is_over } of parts.filter(({ part }) => part === "work")) {
      const secret = secrets[turn - 1] as string;
      const item = decodeActivity(a);
      if (item instanceof Error) {
        effects.warnings.push(`Activity row ${id} cannot be decoded and is set aside: ${messageOf(item)}`);
        aside.push({ id, secret });
      } else {
        const state = stateOf(is_over);
        const attemptCount = n ?? 1;
        const lockToken = activityToken(secret, id, attemptCount);
        works.set(turn - 1, { item, lockToken, attemptCount, executionState: state });
      }
    }
    if (works.size > 0) effects.activityAt(endsAt);
    this.#store.announce(effects, "here");
    const next = parts.find(({ part }) => part === "next");
    const isPassed = parts.some(({ part }) => part === "passed");
    const isEmpty = !isPassed && aside.length === 0 && (next?.is_over ?? false);
    return { works, aside, nextAt: next?.n ?? null, isPassed, isEmpty };
  }

  async #abandon(calls: readonly Abandoning<number>[]): Promise<readonly Outcome<void>[]> {
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

  async #renew(calls: readonly Renewing<number>[]): Promise<readonly Outcome<ExecutionState>[]> {
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

/** The same, of two; those of one runtime are the same object but for their owners. */
export function wantsSame(one: FetchWorkOptions, other: FetchWorkOptions): boolean {
  if (one.lockTimeoutMs !== other.lockTimeoutMs || one.session?.lockTimeoutMs !== other.session?.lockTimeoutMs)
    return false;
  return one.tagFilter === other.tagFilter || JSON.stringify(wishOf(one)) === JSON.stringify(wishOf(other));
}

function decodeActivity(text: string): ActivityExecute | Error {
  try {
    const item = decodeWorkItem(text);
    return item.type === "ActivityExecute" ? item : new TypeError(`${item.type} is no activity`);
  } catch (error) {
    return error instanceof Error ? error : new TypeError(messageOf(error));
  }
}
