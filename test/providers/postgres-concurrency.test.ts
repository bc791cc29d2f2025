// Several providers on one schema, with different numbers of connections and clocks that disagree a little, do everything at
// once to the same instances. Time is advanced by hand, in jumps: locks lapse while their owners are at work. Afterwards
// everything that was sent was acked once, or is where it must be; see `delivery-ledger.ts`.
//
// A seed that fails says so. More of them: CONCURRENCY_SEEDS=10..60 CONCURRENCY_OPERATIONS=5000 npx vitest run <this file>.

import { describe, expect, test } from "vitest";
import { type Clock, systemClock, type Timer } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import { decodeWorkItem } from "../../src/history/codec.js";
import type { Event } from "../../src/history/event.js";
import type { ActivityExecute, OrchestratorItem, TimerFired } from "../../src/history/work-item.js";
import type { LockedOrchestrationItem, LockedWorkItem, TagFilter } from "../../src/provider/provider.js";
import {
  act,
  cancel,
  continueAsNew,
  done,
  kvSet,
  NAMED,
  queued,
  raised,
  start,
  started,
  timer,
  turn,
} from "../../src/provider-tests/builders.js";
import type { PostgresProvider } from "../../src/providers/postgres/postgres-provider.js";
import { DeliveryLedger } from "./delivery-ledger.js";
import { OwnDatabase } from "./postgres-rivals.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const SEEDS = seedsFrom(process.env.CONCURRENCY_SEEDS ?? "1..2");
const OPERATIONS = Number(process.env.CONCURRENCY_OPERATIONS ?? 1_500);

const ACTORS = 90;
const ROOTS = 100;
/** Everybody wants these. */
const HOT = 8;
const CONNECTIONS = [1, 2, 3, 5, 5, 10];
/** Of the providers' clocks. */
const SKEWS = [0, 7, -11, 0, 3, 0];
const LARGEST_SKEW = 18;
const BETWEEN_LOOKS = 100;
const SESSIONS = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];
const OWNERS = ["o0", "o1", "o2", "o3", "o4", "o5"];
const SESSION_LOCK = 300;

describe.skipIf(URL === undefined)("everything at once", () => {
  test.each(SEEDS)(
    "loses nothing, doubles nothing and locks nobody in, with seed %i",
    async (seed) => {
      const world = await World.open(seed);

      await world.run(OPERATIONS);
      await world.drain();

      expect(await world.faults()).toEqual([]);
    },
    600_000,
  );
});

/** What a provider knows of its turns. */
interface Player {
  readonly provider: PostgresProvider;
  readonly clock: Clock;
  /** By instance: the token of the last turn that was committed here. */
  readonly warm: Map<string, string>;
  /** By that token: how many events there are. */
  readonly events: Map<string, number>;
  /** What is being worked on here: turns that write to each other may be committed as one. */
  readonly held: Set<string>;
}

class World {
  readonly #messages = new DeliveryLedger();
  readonly #activities = new DeliveryLedger();
  readonly #events = new DeliveryLedger();
  readonly #tokens = new Set<string>();
  readonly #sessionCalls = new Map<string, Set<{ readonly at: number; readonly alongside: Set<number> }>>();
  readonly #faults: string[] = [];
  readonly #players: Player[] = [];
  readonly #random: () => number;
  readonly #instances: readonly string[];
  #time = 1_000_000;
  #marks = 0;
  #operations = 0;

  private constructor(
    readonly database: OwnDatabase,
    seed: number,
  ) {
    this.#random = mulberry32(seed);
    const roots = Array.from({ length: ROOTS }, (_, n) => `i${String(n).padStart(3, "0")}`);
    this.#instances = roots.flatMap((root) => [root, `${root}/a`, `${root}/a/b`]);
  }

  static async open(seed: number): Promise<World> {
    const world = new World(await OwnDatabase.open(URL!), seed);
    for (const [index, maxConnections] of CONNECTIONS.entries()) {
      const clock = world.#clockWith(SKEWS[index]!);
      const onWarning = (warning: string): void => world.#hear(warning);
      const provider = await world.database.provider({ maxConnections, clock, onWarning });
      world.#players.push({ provider, clock, warm: new Map(), events: new Map(), held: new Set() });
    }
    await world.database.query(SLOW_LOCKS);
    return world;
  }

  async run(operations: number): Promise<void> {
    const until = this.#operations + operations;
    const actor = async (): Promise<void> => {
      while (this.#operations < until) {
        this.#operations += 1;
        this.#time += this.#chance(0.05) ? this.#below(500) : this.#below(4);
        await this.#act(this.#one(this.#players));
        if (this.#operations % BETWEEN_LOOKS === 0) await this.#checkSchedule();
      }
    };
    await this.#whileTimePasses(Promise.all(Array.from({ length: ACTORS }, actor)), until);
    await this.#checkTokens();
  }

  /** Who still waits when nothing more happens waits until its time is up: so that has to come. */
  async #whileTimePasses(ended: Promise<unknown>, until: number): Promise<void> {
    let isOver = false;
    const over = ended.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await new Promise((resolve) => void setImmediate(resolve));
      if (this.#operations >= until) this.#time += 1;
    }
    await over;
  }

  /** Everybody gets everything that is left. */
  async drain(): Promise<void> {
    const [player] = this.#players as [Player];
    for (let idle = 0; idle < 3; ) {
      this.#time += 100_000;
      const session = { ownerId: "drain", lockTimeoutMs: 1_000 };
      const work = await player.provider.fetchWorkItem({ lockTimeoutMs: 1_000, tagFilter: { kind: "any" }, session });
      if (work !== null) await this.#ackWork(player, work);
      const locked = await player.provider.fetchOrchestrationItem({ lockTimeoutMs: 1_000 });
      if (locked !== null) await this.#ackTurn(player, locked, 1, true);
      idle = work === null && locked === null ? idle + 1 : 0;
    }
  }

  async faults(): Promise<readonly string[]> {
    await this.#checkSchedule();
    const messages = await this.database.query<{ readonly work_item: string }>(
      "SELECT work_item FROM {schema}.messages",
    );
    const left = messages.map(({ work_item }) => markOf(decodeWorkItem(work_item) as OrchestratorItem));
    const activities = await this.database.query("SELECT 1 FROM {schema}.activities");
    const locks = await this.database.query("SELECT 1 FROM {schema}.schedule WHERE locked_until IS NOT NULL");
    const values = await this.database.query<{ readonly mark: string }>(
      "SELECT event_data::json ->> 'value' AS mark FROM {schema}.history WHERE event_type = 'KeyValueSet'",
    );
    // Whoever still has messages after all that was never started.
    const known = await this.database.query<{ readonly instance_id: string }>(
      "SELECT DISTINCT m.instance_id FROM {schema}.messages AS m JOIN {schema}.instances USING (instance_id)",
    );
    return [
      ...this.#faults,
      ...this.#messages.settle(left),
      ...this.#activities.settle([]),
      ...this.#events.settle(values.map(({ mark }) => mark)),
      ...(activities.length > 0 ? [`${activities.length} activities are left`] : []),
      ...(locks.length > 0 ? [`${locks.length} locks are left`] : []),
      ...known.map(({ instance_id }) => `messages to ${instance_id} are left`),
      ...((await this.database.deadlocks()) > 0 ? ["deadlocks"] : []),
    ];
  }

  // What may happen.

  async #act(player: Player): Promise<void> {
    // By turns there is too much work, and too little: then all wait for the same few instances.
    const isBusy = this.#operations % 600 < 200;
    if (this.#chance(isBusy ? 0.4 : 0.08)) return this.#send(player);
    const dice = this.#random();
    if (dice < 0.55) return this.#fetchTurn(player);
    if (dice < 0.83) return this.#fetchWork(player);
    if (dice < 0.9) return this.#sessions(player);
    if (dice < 0.94) return this.#enqueueWork(player);
    if (dice < 0.97) return this.#append(player);
    if (dice < 0.985) return this.#prune(player);
    return this.#delete(player);
  }

  async #send({ provider, clock }: Player): Promise<void> {
    const item = this.#message(this.#instance(), clock);
    const mark = markOf(item);
    this.#messages.enter(mark, instanceOf(item));
    const delayMs = this.#chance(0.3) ? this.#below(400) + this.#random() : 0;
    const outcome = await provider.enqueueForOrchestrator(item, { delayMs, ifAbsent: this.#chance(0.5) });
    if (outcome === "exists") this.#messages.strike(mark);
  }

  async #fetchTurn(player: Player): Promise<void> {
    const { provider, clock, warm } = player;
    const calledAt = this.#time;
    const lockTimeoutMs = 20 + this.#below(500);
    const giveUp = new AbortController();
    const isWaiting = this.#chance(0.5);
    const fetching = provider.fetchOrchestrationItem({
      lockTimeoutMs,
      ...(this.#chance(0.5) ? { warm } : {}),
      ...(isWaiting ? { pollTimeoutMs: this.#below(30), signal: giveUp.signal } : {}),
    });
    if (this.#chance(0.2)) giveUp.abort();
    const locked = await fetching;
    if (locked === null) return;
    const { lockToken, item } = locked;
    this.#tokens.add(lockToken);
    player.held.add(item.instance);
    // Whoever waits for what is warm may be foretold it. It is his only once the store has said so.
    if (!isWaiting || item.warmAsOf === null) {
      this.#messages.holds(item.instance, lockToken, this.#time, calledAt + lockTimeoutMs - LARGEST_SKEW);
    }
    const dice = this.#random();
    if (dice < 0.05) return;
    if (dice < 0.15) return this.#abandonTurn(player, locked);
    if (dice < 0.25) {
      const renewedAt = this.#time;
      this.#messages.letsGo(item.instance, lockToken, renewedAt + 500 - LARGEST_SKEW);
      if (await succeeds(provider.renewOrchestrationItemLock(lockToken, 500))) {
        this.#messages.holds(item.instance, lockToken, this.#time, renewedAt + 500 - LARGEST_SKEW);
      }
    }
    return this.#ackTurn(player, locked, clock.now(), false);
  }

  async #abandonTurn({ provider }: Player, { lockToken, item }: LockedOrchestrationItem): Promise<void> {
    this.#messages.letsGo(item.instance, lockToken, this.#time);
    const delayMs = this.#chance(0.5) ? this.#below(300) : 0;
    await provider.abandonOrchestrationItem(lockToken, { delayMs, ignoreAttempt: this.#chance(0.5) });
  }

  async #ackTurn(player: Player, locked: LockedOrchestrationItem, now: number, isLast: boolean): Promise<void> {
    const { lockToken, item } = locked;
    const { instance, messages } = item;
    const isNext = messages.some(({ type }) => type === "ContinueAsNew");
    const executionId = isNext ? item.executionId + 1 : item.executionId;
    const before = isNext ? 0 : this.#eventsBefore(player, locked);
    const events = this.#newEvents(instance, executionId, before);
    const orchestratorItems = isLast ? [] : this.#turnMessages(player, instance, executionId, now);
    const workerItems = isLast ? [] : this.#times(2, () => this.#activity(instance, executionId));
    const timers = this.#pick(this.#messages.open(instance).filter((mark) => mark.startsWith("timer")));
    const activities = this.#pick(this.#activities.open(instance));
    for (const sent of orchestratorItems) this.#messages.enter(markOf(sent), instanceOf(sent));
    for (const work of workerItems) this.#activities.enter(workMark(work), instance);
    for (const each of events) if (each.type === "KeyValueSet") this.#events.enter(each.value, instance);
    this.#messages.letsGo(instance, lockToken, this.#time);

    const isContinued = orchestratorItems.some(({ type }) => type === "ContinueAsNew");
    const parent = messages.find((message) => message.type === "StartOrchestration")?.parentInstance ?? null;
    const isCommitted = await succeeds(
      player.provider.ackOrchestrationItem(
        lockToken,
        turn({
          executionId,
          events,
          workerItems,
          orchestratorItems,
          metadata: {
            ...NAMED,
            status: isContinued ? "ContinuedAsNew" : "Running",
            ...(parent === null ? {} : { parentInstanceId: parent }),
          },
          cancelledTimers: timers.map((mark) => scheduledId(instance, mark)),
          cancelledActivities: activities.map((mark) => scheduledId(instance, mark)),
        }),
      ),
    );

    player.held.delete(instance);
    if (!isCommitted) {
      for (const sent of orchestratorItems) this.#messages.strike(markOf(sent));
      for (const work of workerItems) this.#activities.strike(workMark(work));
      for (const each of events) if (each.type === "KeyValueSet") this.#events.strike(each.value);
      return;
    }
    for (const message of messages) this.#messages.acked(markOf(message));
    this.#messages.mayBeGone((mark) => timers.includes(mark));
    this.#activities.mayBeGone((mark) => activities.includes(mark));
    player.warm.set(instance, lockToken);
    player.events.set(lockToken, before + events.length);
  }

  /** A history has no gaps. */
  #eventsBefore(player: Player, { item }: LockedOrchestrationItem): number {
    if (item.warmAsOf !== null) return player.events.get(item.warmAsOf)!;
    const isWhole = item.history.every(({ eventId }, index) => eventId === index + 1);
    if (!isWhole || item.historyError !== null) this.#faults.push(`the history of ${item.instance} has gaps`);
    return item.history.length;
  }

  #newEvents(instance: string, executionId: number, before: number): readonly Event[] {
    const first = before === 0 ? [started(instance, { executionId })] : [];
    const rest = this.#times(3, () => kvSet(instance, 1, `k${this.#below(3)}`, this.#mark("event")));
    return [...first, ...rest].map((each, index) => ({ ...each, executionId, eventId: before + 1 + index }));
  }

  #turnMessages({ held }: Player, instance: string, executionId: number, now: number): readonly OrchestratorItem[] {
    if (this.#chance(0.05)) return [continueAsNew(instance, { input: this.#mark("next") })];
    return this.#times(3, () => {
      const dice = this.#random();
      const other = this.#chance(0.7) && held.size > 0 ? this.#one([...held]) : this.#instance();
      if (dice < 0.6) return raised(other, "signal", this.#mark("raised"));
      if (dice < 0.7) return raised(instance, "to itself", this.#mark("raised"));
      if (dice < 0.85) return timer(instance, this.#number(), now - 50 + this.#below(500), { executionId });
      const input = this.#mark("start");
      return start(childOf(instance), { input, parentInstance: instance, parentId: 1 });
    });
  }

  async #fetchWork(player: Player): Promise<void> {
    const { provider } = player;
    const calledAt = this.#time;
    const lockTimeoutMs = 20 + this.#below(1_500);
    const session = { ownerId: this.#one(OWNERS), lockTimeoutMs: SESSION_LOCK };
    const call = this.#sessionCall(session.ownerId);
    const giveUp = new AbortController();
    const fetching = provider.fetchWorkItem({
      lockTimeoutMs,
      tagFilter: this.#one(TAG_FILTERS),
      ...(this.#chance(0.7) ? { session } : {}),
      ...(this.#chance(0.5) ? { pollTimeoutMs: this.#below(30), signal: giveUp.signal } : {}),
    });
    if (this.#chance(0.2)) giveUp.abort();
    const work = await fetching;
    const sessionUntil = call.end();
    if (work === null) return;
    const { lockToken, item } = work;
    this.#tokens.add(lockToken);
    this.#activities.holds(
      `${item.instance} ${item.id}`,
      lockToken,
      this.#time,
      calledAt + lockTimeoutMs - LARGEST_SKEW,
    );
    if (item.sessionId !== undefined) {
      this.#activities.holds(`session ${item.sessionId}`, session.ownerId, this.#time, sessionUntil);
    }
    const dice = this.#random();
    if (dice < 0.1) return;
    if (dice < 0.2) {
      this.#activities.letsGo(`${item.instance} ${item.id}`, lockToken, this.#time);
      const delayMs = this.#chance(0.5) ? this.#below(300) : 0;
      return provider.abandonWorkItem(lockToken, { delayMs, ignoreAttempt: this.#chance(0.5) });
    }
    if (dice < 0.35) {
      this.#activities.letsGo(`${item.instance} ${item.id}`, lockToken, this.#time + 500 - LARGEST_SKEW);
      await succeeds(provider.renewWorkItemLock(lockToken, 500));
    }
    await this.#ackWork(player, work);
  }

  async #ackWork({ provider }: Player, { lockToken, item }: LockedWorkItem): Promise<void> {
    this.#activities.letsGo(`${item.instance} ${item.id}`, lockToken, this.#time);
    const isWanted = this.#chance(0.9);
    const mark = this.#mark("done");
    const completion = isWanted ? done(item.instance, item.id, { result: mark }) : null;
    if (isWanted) this.#messages.enter(mark, item.instance);
    if (await succeeds(provider.ackWorkItem(lockToken, completion))) this.#activities.acked(workMark(item));
    else if (isWanted) this.#messages.strike(mark);
  }

  async #enqueueWork({ provider }: Player): Promise<void> {
    const item = this.#activity(this.#instance(), 1);
    this.#activities.enter(workMark(item), item.instance);
    await provider.enqueueForWorker(item);
  }

  async #sessions({ provider }: Player): Promise<void> {
    if (this.#chance(0.3)) await provider.cleanupOrphanedSessions({ idleTimeoutMs: 100 });
    const owners = this.#times(4, () => this.#one(OWNERS));
    const calls = owners.map((owner) => this.#sessionCall(owner));
    await provider.renewSessionLock(owners, { extendForMs: SESSION_LOCK, idleTimeoutMs: 2_000 });
    for (const call of calls) call.end();
  }

  /**
   * Each call of an owner gives his sessions an end of its own, when it is committed: of several at once, nobody knows which
   * was the last. The end of the call answers how long his sessions are his for certain.
   */
  #sessionCall(owner: string): { end(): number } {
    const call = { at: this.#time, alongside: new Set<number>([this.#time]) };
    const others = this.#sessionCalls.get(owner) ?? new Set();
    this.#sessionCalls.set(owner, others);
    for (const other of others) {
      other.alongside.add(call.at);
      call.alongside.add(other.at);
    }
    others.add(call);
    return {
      end: () => {
        others.delete(call);
        return Math.min(...call.alongside) + SESSION_LOCK - LARGEST_SKEW;
      },
    };
  }

  /** Into an execution of its own, which no turn writes. */
  async #append({ provider }: Player): Promise<void> {
    const instance = this.#instance();
    const executionId = 1_000 * (1_000 + this.#number()); // Nobody gets there by continuing as new.
    if ((await provider.getInstanceStatus(instance)) === null) return;
    const mark = this.#mark("event");
    this.#events.enter(mark, instance);
    const events = [kvSet(instance, 1, "appended", mark)].map((each) => ({ ...each, executionId }));
    await provider.appendWithExecution(instance, executionId, events);
  }

  async #prune({ provider }: Player): Promise<void> {
    const instance = this.#instance();
    this.#events.mayBeGone((_, of) => of === instance);
    await succeeds(provider.admin.pruneExecutions(instance, { keepLast: this.#below(3) }), "not-found");
  }

  async #delete({ provider }: Player): Promise<void> {
    const root = this.#instances[3 * this.#below(ROOTS)]!;
    this.#messages.allLetGo(root, this.#time);
    this.#activities.allLetGo(root, this.#time);
    const kinds = ["not-found", "orphans", "sub-orchestration", "transient"] as const;
    await succeeds(provider.admin.deleteInstance(root, true), ...kinds);
    for (const ledger of [this.#messages, this.#activities, this.#events]) {
      ledger.mayBeGone((_, instance) => instance.startsWith(root));
    }
    // Whoever has fetched meanwhile may have lost it.
    this.#messages.allLetGo(root, this.#time);
    this.#activities.allLetGo(root, this.#time);
  }

  /** Queue messages to whom nobody has started are dropped by design. */
  #hear(warning: string): void {
    const [, dropped] = /^Dropped .* instance '(.*)'/.exec(warning) ?? [];
    if (dropped === undefined) this.#faults.push(warning);
    this.#messages.mayBeGone((mark, instance) => instance === dropped && mark.startsWith("queue"));
  }

  // What must hold at any time.

  /** S3 and S4 of the tables: who has messages has a row, which is ready in time. */
  async #checkSchedule(): Promise<void> {
    const rows = await this.database.query<{ readonly fault: string }>(SCHEDULE_FAULTS);
    for (const { fault } of rows) this.#faults.push(fault);
  }

  /** No lock without somebody who was told of it. */
  async #checkTokens(): Promise<void> {
    const rows = await this.database.query<{ readonly lock_token: string }>(
      `SELECT lock_token || '@' || instance_id AS lock_token FROM {schema}.schedule WHERE lock_token IS NOT NULL
       UNION ALL SELECT lock_token || '@' || id || CASE WHEN attempts = 1 THEN '+' ELSE '' END
       FROM {schema}.activities WHERE lock_token IS NOT NULL`,
    );
    for (const { lock_token } of rows) {
      if (!this.#tokens.has(lock_token)) this.#faults.push(`nobody knows of the lock ${lock_token}`);
    }
  }

  // Chance.

  #message(instance: string, clock: Clock): OrchestratorItem {
    const dice = this.#random();
    if (dice < 0.5) return start(instance, { input: this.#mark("start") });
    if (dice < 0.65) return raised(instance, "signal", this.#mark("raised"));
    if (dice < 0.8) return queued(instance, "inbox", this.#mark("queue"));
    if (dice < 0.9) return timer(instance, this.#number(), clock.now() - 100 + this.#below(500));
    return cancel(instance, this.#mark("cancel"));
  }

  #activity(instance: string, executionId: number): ActivityExecute {
    const tag = this.#one([undefined, undefined, "t1", "t2"]);
    const sessionId = this.#chance(0.5) ? this.#one(SESSIONS) : undefined;
    return act(instance, this.#number(), {
      executionId,
      ...(tag === undefined ? {} : { tag }),
      ...(sessionId === undefined ? {} : { sessionId }),
    });
  }

  /** Some are met more often than others. */
  #instance(): string {
    return this.#instances[this.#below(this.#chance(0.6) ? HOT : this.#instances.length)]!;
  }

  #number(): number {
    this.#marks += 1;
    return this.#marks;
  }

  #mark(kind: string): string {
    return `${kind} ${this.#number()}`;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }

  #one<T>(from: readonly T[]): T {
    return from[this.#below(from.length)]!;
  }

  /** Now and then one of them. */
  #pick<T>(from: readonly T[]): readonly T[] {
    return from.length > 0 && this.#chance(0.3) ? [this.#one(from)] : [];
  }

  #times<T>(limit: number, make: () => T): readonly T[] {
    return Array.from({ length: this.#below(limit) }, make);
  }

  #clockWith(skew: number): Clock {
    return {
      now: () => this.#time + skew,
      setTimer: (delayMs: number, callback: () => void): Timer => systemClock.setTimer(Math.min(delayMs, 20), callback),
    };
  }
}

const TAG_FILTERS: readonly TagFilter[] = [
  { kind: "any" },
  { kind: "default-only" },
  { kind: "tags", tags: ["t1"] },
  { kind: "default-and", tags: ["t1", "t2"] },
];

/** Whoever locks one row after the other takes his time in between, so that others come in between. */
const SLOW_LOCKS = `
  CREATE FUNCTION {schema}.take_your_time() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF random() < 0.3 THEN PERFORM pg_sleep(random() * 0.005); END IF;
    RETURN NEW;
  END
  $$;
  CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON {schema}.schedule
    FOR EACH ROW EXECUTE FUNCTION {schema}.take_your_time();
  CREATE TRIGGER slow BEFORE INSERT OR UPDATE ON {schema}.sessions
    FOR EACH ROW EXECUTE FUNCTION {schema}.take_your_time();
  CREATE TRIGGER slow BEFORE UPDATE ON {schema}.activities
    FOR EACH ROW EXECUTE FUNCTION {schema}.take_your_time();`;

/** Who is known, or has a start, is ready when the message is. All others are ready for whatever comes. */
const SCHEDULE_FAULTS = `
  WITH queue AS (
    SELECT m.instance_id, min(m.visible_at) AS soonest, min(m.visible_at) FILTER (WHERE m.kind = 'start') AS start_at
    FROM {schema}.messages AS m GROUP BY m.instance_id
  ), awaited AS (
    SELECT queue.instance_id, CASE
      WHEN EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = queue.instance_id) THEN queue.soonest
      ELSE queue.start_at
    END AS ready_at
    FROM queue
  )
  SELECT a.instance_id || ' has messages and no row' AS fault
  FROM awaited AS a WHERE NOT EXISTS (SELECT 1 FROM {schema}.schedule AS s WHERE s.instance_id = a.instance_id)
  UNION ALL
  SELECT s.instance_id || ' is ready at ' || COALESCE(s.ready_at::text, 'no time') || ', not at ' || a.ready_at
  FROM awaited AS a JOIN {schema}.schedule AS s USING (instance_id)
  WHERE s.locked_until IS NULL AND a.ready_at IS NOT NULL AND COALESCE(s.ready_at > a.ready_at, true)
  UNION ALL
  SELECT s.instance_id || ' has a place after its time' FROM {schema}.schedule AS s WHERE s.place > s.ready_at
  UNION ALL
  SELECT s.instance_id || ' is locked, and not ready when that ends'
  FROM {schema}.schedule AS s WHERE s.locked_until IS NOT NULL AND s.ready_at IS DISTINCT FROM s.locked_until
  UNION ALL
  SELECT s.instance_id || ' has a row that nobody removes'
  FROM {schema}.schedule AS s LEFT JOIN queue USING (instance_id) WHERE s.ready_at IS NULL AND queue.instance_id IS NULL`;

/** Whether it did; false if it was refused for one of these reasons. */
async function succeeds(call: Promise<unknown>, ...kinds: readonly ProviderError["kind"][]): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (error instanceof ProviderError && (kinds.length === 0 ? ["lock-lost"] : kinds).includes(error.kind))
      return false;
    throw error;
  }
}

/** What tells it from all others. */
function markOf(item: OrchestratorItem): string {
  switch (item.type) {
    case "StartOrchestration":
    case "ContinueAsNew":
      return item.input;
    case "ExternalRaised":
    case "QueueMessage":
      return item.data;
    case "CancelInstance":
      return item.reason;
    case "TimerFired":
      return timerMark(item);
    case "ActivityCompleted":
      return item.result;
    default:
      throw new Error(`nobody here sends ${item.type}`);
  }
}

function timerMark({ executionId, id }: TimerFired): string {
  return `timer ${executionId} ${id}`;
}

function workMark({ executionId, id }: ActivityExecute): string {
  return `work ${executionId} ${id}`;
}

function scheduledId(instance: string, mark: string) {
  const [, executionId, id] = mark.split(" ").map(Number);
  return { instance, executionId: executionId!, id: id! };
}

function instanceOf(item: OrchestratorItem): string {
  return "instance" in item ? item.instance : item.parentInstance;
}

function childOf(instance: string): string {
  const depth = instance.split("/").length;
  return depth === 1 ? `${instance}/a` : depth === 2 ? `${instance}/b` : instance;
}

function seedsFrom(range: string): readonly number[] {
  const [first, last] = range.split("..").map(Number);
  return Array.from({ length: last! - first! + 1 }, (_, n) => first! + n);
}

/** Small, fast, and the same everywhere. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
