// providers/postgres/turn-fetch.ts — claims instances for all fetches that are pending at one moment, in one round trip.
//
//   F1. Fetches that want the same share a claim: as many instances as there are fetches, the oldest to the first.
//   F2. Null means that there is no eligible work (`look.ts`). Whoever waits for what others have locked keeps nobody else.
//   F3. An instance of which nobody can say what it is, because its start cannot be decoded, is set aside, uncounted.
//   F4. The history comes along unless this provider has committed the last turn. If the caller has forgotten it meanwhile,
//       it is read in a second round trip, under the lock.
//   F5. A message that cannot be decoded is in the batch, though not handed out, and goes with its ack.
//   F6. What was claimed and cannot be handed out is given back, uncounted, as long as the store answers; else its lock lapses.

import { CodecError, messageOf } from "../../errors.js";
import { decodeEvent, decodeWorkItem } from "../../history/codec.js";
import type { OrchestratorItem } from "../../history/work-item.js";
import { isStartLike } from "../../history/work-item.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { Effects } from "../../provider/kit/effects.js";
import { identityInEvent, identityInStart, type StartIdentity } from "../../provider/kit/start-identity.js";
import { fromColumn, fromNullableColumn } from "../../provider/kit/text-column.js";
import type {
  FetchOrchestrationOptions,
  KvEntry,
  LockedOrchestrationItem,
  OrchestrationItem,
  SemVerRange,
} from "../../provider/provider.js";
import type { KnownInstances } from "./known-instances.js";
import { isSecretOf, newSecret, tokenOf } from "./lock-token.js";
import { type Claimed, groupedBy, lookUntilSure, type Patience } from "./look.js";
import type { Store } from "./store.js";
import { versionColumns, versionsOf } from "./versions.js";
import { timeIn } from "./work-rows.js";

const OPERATION = "fetchOrchestrationItem";

const claimTurns = `SELECT * FROM {schema}.fetch_turns($1, $2, $3, $4, $5, $6, $7, $8)`;
const loadInstance = `SELECT * FROM {schema}.load_instance($1, $2)`;
const setTurnAside = `SELECT * FROM {schema}.set_turn_aside($1, $2, $3)`;

type TurnLook = Claimed<LockedOrchestrationItem>;

/** A row of what `describe_turns` and `fetch_turns` answer. */
export interface TurnPart {
  readonly part: "cold" | "warm" | "message" | "event" | "value" | "dropped" | "next" | "passed";
  readonly turn: number;
  readonly id: number;
  readonly a: string;
  readonly b: string | null;
  readonly c: string | null;
  readonly d: string | null;
  readonly e: string | null;
  readonly n: number | null;
}

/** As it was read, or itself, where it is known already. */
type ClaimedMessage = Pick<TurnPart, "id" | "a"> | { readonly item: OrchestratorItem };

/** A claimed instance, as its parts come in. */
export interface ClaimedTurn {
  head: TurnPart;
  readonly secret: string;
  readonly messages: ClaimedMessage[];
  events: TurnPart[];
  values: TurnPart[];
}

interface Claim {
  readonly turns: readonly ClaimedTurn[];
  readonly nextAt: number | null;
  readonly isPassed: boolean;
  /** Nothing more is ready. */
  readonly isLast: boolean;
}

/** Fetches of one kind. */
interface Wish {
  readonly lockTimeoutMs: number;
  readonly range: SemVerRange;
  readonly isWarm: boolean;
}

const NO_VALUES: ReadonlyMap<string, KvEntry> = new Map();

export class TurnFetch {
  readonly #store: Store;
  readonly #giveBack: (lockToken: string) => Promise<void>;
  readonly #known: KnownInstances;
  readonly #looking: Batcher<FetchOrchestrationOptions, TurnLook>;
  readonly #waiting: Batcher<FetchOrchestrationOptions, TurnLook>;

  constructor(store: Store, giveBack: (lockToken: string) => Promise<void>, known: KnownInstances) {
    this.#store = store;
    this.#giveBack = giveBack;
    this.#known = known;
    this.#looking = new Batcher({ run: (calls) => this.#run(calls, false) });
    this.#waiting = new Batcher({ run: (calls) => this.#run(calls, true) });
  }

  look(options: FetchOrchestrationOptions, patience: Patience): Promise<Claimed<LockedOrchestrationItem>> {
    return lookUntilSure(patience, (isWaiting) => {
      return (isWaiting ? this.#waiting : this.#looking).submit(options); // F2
    });
  }

  /** Resolves when nothing is pending. */
  async idle(): Promise<void> {
    await Promise.all([this.#looking.idle(), this.#waiting.idle()]);
  }

  async #run(calls: readonly FetchOrchestrationOptions[], isWaiting: boolean): Promise<readonly Outcome<TurnLook>[]> {
    const outcomes: Outcome<TurnLook>[] = [];
    for (const indexes of groupedBy(calls, wishOf)) {
      const group = indexes.map((index) => calls[index] as FetchOrchestrationOptions);
      const ofGroup = await this.#runGroup(group, isWaiting);
      for (const [at, index] of indexes.entries()) outcomes[index] = ofGroup[at] as Outcome<TurnLook>;
    }
    return outcomes;
  }

  /** F1. What was read before something failed is handed out all the same. */
  async #runGroup(
    calls: readonly FetchOrchestrationOptions[],
    isWaiting: boolean,
  ): Promise<readonly Outcome<TurnLook>[]> {
    const found: LockedOrchestrationItem[] = [];
    let rest = { nextAt: null as number | null, isEmpty: false };
    let empty: Outcome<TurnLook>;
    try {
      const { turns, nextAt, isPassed, isLast } = await this.#claim(
        wishOf(calls[0] as FetchOrchestrationOptions),
        calls.length,
        isWaiting,
      );
      await this.#handOut(turns, calls, found);
      const isAside = found.length < turns.length;
      rest = { nextAt, isEmpty: isLast && !isAside };
      empty = { value: { found: null, isPassed, isAside, ...rest } };
    } catch (error) {
      empty = { error };
    }
    return calls.map((_, index) => {
      const locked = found[index];
      if (locked === undefined) return empty;
      return { value: { found: locked, isPassed: false, isAside: false, ...rest } };
    });
  }

  /** One after the other; what was set aside is left out. F6 */
  async #handOut(
    turns: readonly ClaimedTurn[],
    calls: readonly FetchOrchestrationOptions[],
    found: LockedOrchestrationItem[],
  ): Promise<void> {
    for (const [place, turn] of turns.entries()) {
      try {
        const locked = await this.#locked(turn, calls[found.length] as FetchOrchestrationOptions);
        if (locked !== null) found.push(locked);
      } catch (error) {
        await Promise.all(
          turns.slice(place).map((rest) => this.#giveBack(tokenOf(rest.secret, rest.head.a)).catch(() => {})),
        );
        throw error;
      }
    }
  }

  /** For one who waited, and was given this. Null: it was set aside, or given back (F6). */
  async open(turn: ClaimedTurn, options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const found: LockedOrchestrationItem[] = [];
    await this.#handOut([turn], [options], found).catch(() => {});
    return found[0] ?? null;
  }

  async #claim({ lockTimeoutMs, range, isWarm }: Wish, count: number, isWaiting: boolean): Promise<Claim> {
    const { clock, newId, id } = this.#store;
    const now = clock.now();
    const lockedUntil = timeIn(now, lockTimeoutMs);
    const secrets = Array.from({ length: count }, () => newSecret(newId));
    const { min, max } = range;
    const parts = await this.#store.query<TurnPart>(OPERATION, claimTurns, [
      now,
      lockedUntil,
      secrets,
      isWarm ? id : null,
      versionColumns(min),
      versionColumns(max),
      this.#store.looksBack("messages", now),
      isWaiting,
    ]);
    return this.claimOf(parts, secrets, lockedUntil);
  }

  /** What `fetch_turns` has answered to whoever called it with these secrets. */
  claimOf(parts: readonly TurnPart[], secrets: readonly string[], lockedUntil: number): Claim {
    const claim = gather(parts, secrets);
    const effects = new Effects();
    if (claim.turns.length > 0) effects.messageAt(lockedUntil);
    for (const part of parts) if (part.part === "dropped") effects.warnings.push(droppedMessages(part.a, part.n ?? 0));
    this.#store.announce(effects, "here");
    return claim;
  }

  /** What needs no statement more. Null: it does. */
  openAtOnce(claimed: ClaimedTurn, { warm, capability }: FetchOrchestrationOptions): LockedOrchestrationItem | null {
    const { head, secret } = claimed;
    const instance = fromColumn(head.a);
    const warmAsOf = warmAsOfIn(head, warm?.get(instance));
    if (warmAsOf === null && head.part === "warm") return null;
    const messages = this.#decodeMessages(claimed.messages);
    const identity = identityOf(head, messages);
    if (identity === null) return null;
    const item = describe(instance, identity, messages, warmAsOf, claimed);
    const locked = { item, lockToken: tokenOf(secret, head.a), attemptCount: head.n ?? 1 };
    this.#known.handedOut(locked, versionsOf(capability));
    return locked;
  }

  /** Null: it was set aside. */
  async #locked(claimed: ClaimedTurn, options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const { head } = claimed;
    if (head.part === "warm" && warmAsOfIn(head, options.warm?.get(fromColumn(head.a))) === null) {
      await this.#load(claimed);
    }
    const locked = this.openAtOnce(claimed, options);
    if (locked === null) await this.#setAside(claimed);
    return locked;
  }

  #decodeMessages(rows: ClaimedTurn["messages"]): readonly OrchestratorItem[] {
    const effects = new Effects();
    const messages: OrchestratorItem[] = [];
    for (const row of rows) {
      if ("item" in row) {
        messages.push(row.item);
        continue;
      }
      try {
        const item = decodeWorkItem(row.a);
        if (item.type === "ActivityExecute") throw new TypeError("ActivityExecute is no message to an orchestration");
        messages.push(item);
      } catch (error) {
        effects.warnings.push(`Message row ${row.id} cannot be decoded and will be skipped: ${messageOf(error)}`); // F5
      }
    }
    if (effects.warnings.length > 0) this.#store.announce(effects, "here");
    return messages;
  }

  /** F3 */
  async #setAside({ head, secret }: ClaimedTurn): Promise<void> {
    await this.#store.query(OPERATION, setTurnAside, [this.#store.clock.now(), head.a, secret]);
  }

  /** F4 */
  async #load(claimed: ClaimedTurn): Promise<void> {
    const parts = await this.#store.query<TurnPart>(OPERATION, loadInstance, [claimed.head.a, claimed.head.id]);
    claimed.head = { ...claimed.head, part: "cold" };
    claimed.events = parts.filter(({ part }) => part === "event");
    claimed.values = parts.filter(({ part }) => part === "value");
  }
}

function droppedMessages(instance: string, count: number): string {
  return `Dropped ${count} queue message(s) to instance '${fromColumn(instance)}', which nobody has started.`;
}

function wishOf({ lockTimeoutMs, capability, warm }: FetchOrchestrationOptions): Wish {
  return { lockTimeoutMs, range: versionsOf(capability), isWarm: warm !== undefined && warm.size > 0 };
}

function gather(parts: readonly TurnPart[], secrets: readonly string[]): Claim {
  const turns: ClaimedTurn[] = [];
  let nextAt: number | null = null;
  let isPassed = false;
  let isLast = false;
  for (const part of parts) {
    const turn = turns[part.turn - 1];
    switch (part.part) {
      case "cold":
      case "warm": {
        const secret = secrets[part.turn - 1] as string;
        turns.push({ head: part, secret, messages: [], events: [], values: [] });
        break;
      }
      case "message":
        turn?.messages.push(part);
        break;
      case "event":
        turn?.events.push(part);
        break;
      case "value":
        turn?.values.push(part);
        break;
      case "next":
        nextAt = part.n;
        isLast = true;
        break;
      case "passed":
        isPassed = true;
        break;
      case "dropped":
        break;
    }
  }
  return { turns, nextAt, isPassed, isLast };
}

/** The token that the caller remembers, if nothing was committed since. */
function warmAsOfIn({ d: lastCommit }: TurnPart, remembered: string | undefined): string | null {
  return isSecretOf(lastCommit, remembered) ? (remembered ?? null) : null;
}

function identityOf(head: TurnPart, messages: readonly OrchestratorItem[]): StartIdentity | null {
  if (head.b !== null) return { name: fromColumn(head.b), version: fromNullableColumn(head.c) ?? "" };
  if (head.e !== null) return identityInEvent(head.e);
  const start = messages.find(isStartLike);
  return start === undefined ? null : identityInStart(start);
}

function describe(
  instance: string,
  { name, version }: StartIdentity,
  messages: readonly OrchestratorItem[],
  warmAsOf: string | null,
  { head, events, values }: ClaimedTurn,
): OrchestrationItem {
  const item = { instance, orchestrationName: name, version, executionId: head.id, messages, warmAsOf };
  if (warmAsOf !== null) return { ...item, history: [], historyError: null, kvSnapshot: NO_VALUES };
  try {
    const history = events.map(({ a }) => decodeEvent(a));
    return { ...item, history, historyError: null, kvSnapshot: snapshot(values) };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return { ...item, history: [], historyError: error.message, kvSnapshot: NO_VALUES };
  }
}

function snapshot(values: readonly TurnPart[]): ReadonlyMap<string, KvEntry> {
  return new Map(
    values.map(({ a, b, id }) => [fromColumn(a), { value: fromNullableColumn(b) ?? "", lastUpdatedAtMs: id }]),
  );
}
