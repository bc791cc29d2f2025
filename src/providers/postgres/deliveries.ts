// providers/postgres/deliveries.ts — messages sent and activities completed: what makes instances ready, in batches.
//
//   D1. Messages to one instance are stored in the order in which they were sent by this provider.
//   D2. An activity without a live lock is refused alone, and its outcome is not sent.
//   D3. Fetches that wait for turns get the instances that are sent to, in the statement that sends: one write instead of
//       two, and no look. Where something older is ready for them, they get that.
//   D4. A look that is owed (`queue-signal.ts`, Q5) is made by the next statement that sends, for fetches that wait beside those of
//       D3: no statement of its own, and what it finds keeps none of them from what is sent to.
//   D5. Fetches that can be told before what they will get are told, and have a round of the event loop for their turns. With these the
//       outcomes are steps, and committed with other turns (`predicted-turns.ts`). Where the store refuses one, it is as if nobody had been told.
//   D6. Others are told of what is left of what was sent. Of what else is in line they have been told by whoever sent that.
//   D7. Starts that nobody waits for are sent by a statement of their own, which does little else, and nothing at all where there is anything
//       of any of them: then they are sent as everything is, and so are the next ones, for what is started anew rarely comes alone.

import { encodeWorkItem } from "../../history/codec.js";
import type { OrchestratorItem } from "../../history/work-item.js";
import { isStartLike, targetInstance } from "../../history/work-item.js";
import { Batcher, type Outcome } from "../../provider/kit/batcher.js";
import { Effects } from "../../provider/kit/effects.js";
import type { ProvenStarts } from "../../provider/kit/proven-starts.js";
import { checkCompletion, checkOrchestratorItem, lockLost } from "../../provider/kit/refusals.js";
import type { EnqueueOptions, EnqueueOutcome } from "../../provider/provider.js";
import { bigintArray, booleanArray, integerArray, textArray } from "./array-parameter.js";
import { isAnswered } from "./driver-errors.js";
import type { ForeseenTurn } from "./foreseen-turns.js";
import type { Lock } from "./lock-calls.js";
import { activityLock, isFirstAttempt } from "./lock-token.js";
import type { PredictedTurns, Prediction } from "./predicted-turns.js";
import type { SqlValue } from "./session.js";
import type { Store } from "./store.js";
import type { TurnPart } from "./turn-fetch.js";
import type { Foretold, Offer, RestOffer, TurnHandOff, WantedTarget } from "./turn-hand-off.js";
import type { TurnQueue } from "./turn-queue.js";
import type { TurnCall } from "./turn-rows.js";
import { type MessageFacts, messageFacts, noteMessage } from "./work-rows.js";

const deliver = `
  SELECT * FROM {schema}.deliver(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
    $26, $27, $28
  )
`;
const sendStarts = `SELECT {schema}.send_starts($1, $2, $3) AS are_new`;

type Delivery =
  | {
      readonly kind: "message";
      readonly item: OrchestratorItem;
      readonly options: EnqueueOptions;
      /** Its turn may be computed before it is stored. */
      readonly mayGoAhead: boolean;
    }
  | {
      readonly kind: "completion";
      readonly lockToken: string;
      readonly lock: Lock<number>;
      readonly item: OrchestratorItem | null;
    };

/** A row of the answer: of a turn that was given away, or of what became of the rest. */
export type DeliveryPart =
  | TurnPart
  | (Omit<TurnPart, "part"> & { readonly part: "lost" | "begun" | "unlike" | "open" | "beside" });

interface Message {
  readonly item: OrchestratorItem;
  readonly row: MessageFacts;
  readonly isAbsent: boolean;
  /**
   * It may be answered before it is stored: the outcome of an activity that was run for the first time. If its turn ends the
   * process, the activity has been counted, and the outcome of the next time is stored first, so that the turn is. What
   * clients send has nothing that is counted, and is stored first, but for starts of what is proven (`proven-starts.ts`); nor has what
   * was run before, but the turn is then not the one that is.
   */
  readonly mayBeForeseen: boolean;
  /** The place of its call. */
  readonly call: number;
  /** The ordinal of the activity whose outcome it is, or 0. */
  readonly sender: number;
}

/** An instance that is sent to. */
export interface Target {
  readonly instance: string;
  readonly messages: readonly Message[];
  readonly readyAt: number;
  readonly place: number;
}

/** Tells what has become of the call at this place. */
type Answer = (place: number, outcome: Outcome<EnqueueOutcome>) => void;

/** Outcomes, or a start, and the turn that answers them. */
interface PredictedStep {
  readonly target: Target;
  readonly foreseen: ForeseenTurn;
  /** The calls that sent them. */
  readonly places: readonly number[];
  readonly call: TurnCall;
}

const NO_STEPS: ReadonlySet<Target> = new Set();
const NO_PARTS: readonly DeliveryPart[] = [];
const ENQUEUED: Outcome<EnqueueOutcome> = Object.freeze({ value: "enqueued" });

/** One batch is one statement, however large; more than this is no faster. */
const MOST_BYTES = 4_000_000;
/** While the disk syncs one batch, the next can be executed. */
const IN_FLIGHT = 2;
/**
 * Chains that move in step would wait for the server all at once, and the server for all of them. In two halves, the one
 * is executed while the other is computed.
 */
const MOST_CALLS = 50;
/** After starts of what was there already, so many batches are not tried as new ones. D7 */
const BATCHES_NOT_TRIED = 32;
/** A turn takes no round but where many come together, or the code of a new one is long. D5 */
const MOST_ROUNDS = 2;

// Captured at load, so that the fake timers of a test framework do not keep calls waiting.
const immediate = setImmediate;

export class Deliveries {
  readonly #store: Store;
  readonly #handOff: TurnHandOff;
  readonly #turns: TurnQueue;
  readonly #predicted: PredictedTurns;
  readonly #proven: ProvenStarts;
  readonly #delivering: Batcher<Delivery, EnqueueOutcome>;
  /** How many of the next batches are not tried. D7 */
  #notTried = 0;

  constructor(store: Store, handOff: TurnHandOff, turns: TurnQueue, predicted: PredictedTurns, proven: ProvenStarts) {
    this.#store = store;
    this.#proven = proven;
    this.#handOff = handOff;
    this.#turns = turns;
    this.#predicted = predicted;
    this.#delivering = new Batcher<Delivery, EnqueueOutcome>({
      runsSingly: isAnswered,
      run: (calls, answer) => this.#deliver(calls, answer),
      maxCalls: MOST_CALLS,
      maxInFlight: IN_FLIGHT,
      maxBytes: MOST_BYTES,
      sizeOf: ({ item }) => (item === null ? 0 : textLength(item)),
      keyOf,
      laneOf, // D1
    });
  }

  /** Something is on its way: there will soon be more. */
  get isBusy(): boolean {
    return this.#delivering.isBusy;
  }

  async send(item: OrchestratorItem, options: EnqueueOptions): Promise<EnqueueOutcome> {
    checkOrchestratorItem("enqueueForOrchestrator", item);
    const isNew = item.type === "StartOrchestration" && options.ifAbsent === true;
    const mayGoAhead = isNew && this.#proven.mayGoAhead(item.orchestration);
    return this.#delivering.submit({ kind: "message", item, options, mayGoAhead });
  }

  async complete(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    if (completion !== null) checkCompletion("ackWorkItem", completion);
    const lock = activityLock(lockToken);
    await this.#delivering.submit({ kind: "completion", lockToken, lock, item: completion });
  }

  /** Resolves when nothing is pending. */
  async idle(): Promise<void> {
    await this.#delivering.idle();
    await this.#handOff.idle();
  }

  async #deliver(calls: readonly Delivery[], answer: Answer): Promise<readonly Outcome<EnqueueOutcome>[]> {
    const now = this.#store.clock.now();
    const targets = targetsOf(messagesOf(calls, now));
    const offer = this.#handOff.offer(targets, now); // D3
    if (offer.foretold.length === 0) return this.#send(calls, targets, offer.without(NO_STEPS), now);

    const prediction = this.#predicted.begin(offer.foretold.map(({ foreseen }) => foreseen.locked));
    await turnsTaken(prediction);
    const turns = prediction.close();
    try {
      return await this.#deliverWithSteps(calls, targets, offer, turns, prediction, now, answer);
    } finally {
      for (const turn of turns) prediction.refused(turn); // Those that are answered have their answer.
      prediction.othersSettled();
    }
  }

  /** D5 */
  async #deliverWithSteps(
    calls: readonly Delivery[],
    targets: readonly Target[],
    offer: Offer,
    turns: readonly TurnCall[],
    prediction: Prediction,
    now: number,
    answer: Answer,
  ): Promise<readonly Outcome<EnqueueOutcome>[]> {
    const steps = stepsOf(offer.foretold, turns, calls);
    const left = offer.without(new Set(steps.map(({ target }) => target)));
    const outcomes: Outcome<EnqueueOutcome>[] = [];
    const settle = (place: number, outcome: Outcome<EnqueueOutcome>): void => {
      outcomes[place] = outcome;
      answer(place, outcome);
    };
    const stepping = this.#takeSteps(steps, calls, prediction, settle);
    const rest = this.#sendRest(calls, targets, left, now, settle).finally(() => prediction.othersSettled());
    await allEnded([stepping, rest]);
    return outcomes;
  }

  /** Everything but the steps. */
  async #sendRest(
    calls: readonly Delivery[],
    targets: readonly Target[],
    offer: RestOffer,
    now: number,
    settle: Answer,
  ): Promise<void> {
    const left = new Set(offer.targets.map(({ target }) => target));
    const places = placesOf(
      calls,
      targets.filter((target) => !left.has(target)),
    );
    if (places.length === 0 && !offer.looks) return;
    const sent = places.length === calls.length ? calls : places.map((place) => calls[place]!);
    const ofSent = sent === calls ? targets : targetsOf(messagesOf(sent, now));
    const outcomes = await this.#send(sent, ofSent, offer, now);
    for (const [index, place] of places.entries()) settle(place, outcomes[index]!);
  }

  async #send(
    calls: readonly Delivery[],
    targets: readonly Target[],
    offer: RestOffer,
    now: number,
  ): Promise<readonly Outcome<EnqueueOutcome>[]> {
    let parts: readonly DeliveryPart[];
    try {
      if (this.#mayBeNew(calls, targets, offer, now) && (await this.#sendStarts(targets, now))) {
        offer.settle(NO_PARTS);
        return this.#concludeStarts(calls, targets, now);
      }
      parts = await this.#store.write<DeliveryPart>(operationOf(calls), deliver, [
        now,
        ...offer.wanted,
        ...ackColumns(calls),
        ...targetColumns(offer.targets),
        ...messageColumns(targets),
        foreseenColumn(offer.targets),
      ]);
    } catch (error) {
      offer.giveBack();
      throw error;
    }
    offer.settle(parts);
    return this.#conclude(calls, targets, parts);
  }

  /** D7 */
  #mayBeNew(calls: readonly Delivery[], targets: readonly Target[], offer: RestOffer, now: number): boolean {
    if (offer.serves || calls.length === 0 || targets.length < calls.length) return false;
    if (!targets.every((target) => isStartOfNow(target, now))) return false;
    if (this.#notTried === 0) return true;
    this.#notTried -= 1;
    return false;
  }

  /** D7. False: nothing is written, for there is something of one of them. */
  async #sendStarts(targets: readonly Target[], now: number): Promise<boolean> {
    const [row] = await this.#store.write<{ readonly are_new: boolean }>("enqueueForOrchestrator", sendStarts, [
      now,
      textArray(targets.map(({ instance }) => instance)),
      textArray(targets.map(({ messages }) => encodeWorkItem(messages[0]!.item))),
    ]);
    const areNew = row!.are_new;
    if (!areNew) this.#notTried = BATCHES_NOT_TRIED;
    return areNew;
  }

  #concludeStarts(
    calls: readonly Delivery[],
    targets: readonly Target[],
    now: number,
  ): readonly Outcome<EnqueueOutcome>[] {
    const effects = new Effects();
    for (const { messages, readyAt } of targets) noteMessage(effects, messages[0]!.item, readyAt, now);
    this.#store.announce(effects, "everywhere");
    return calls.map(() => ENQUEUED);
  }

  /** D5. What is refused is sent like anything else: at once, together with what was refused at the same moment. */
  async #takeSteps(
    steps: readonly PredictedStep[],
    calls: readonly Delivery[],
    prediction: Prediction,
    settle: Answer,
  ): Promise<void> {
    let refused: number[] = [];
    const sendRefused = async (): Promise<void> => {
      const places = refused.sort((one, other) => one - other);
      refused = [];
      const ofPlaces = places.map((place) => storedFirst(calls[place]!));
      const outcomes = await this.#deliver(ofPlaces, (index, outcome) => settle(places[index]!, outcome));
      for (const [index, place] of places.entries()) settle(place, outcomes[index]!);
    };
    const takeStep = async (step: PredictedStep): Promise<void> => {
      const { places } = step;
      const end = await this.#takeStep(step, prediction, settle);
      if (end !== "refused") return;
      refused.push(...places);
      if (refused.length === places.length) await Promise.resolve().then(sendRefused);
    };
    await allEnded(steps.map(takeStep));
  }

  /** Each is answered when its own statement is: they may be in several. */
  async #takeStep(
    { call, places, foreseen }: PredictedStep,
    prediction: Prediction,
    settle: Answer,
  ): Promise<"committed" | "refused" | "unknown"> {
    try {
      const end = await this.#turns.commitStep(call);
      const isCommitted = end === "committed";
      this.#handOff.learn(foreseen, isCommitted);
      if (isCommitted) {
        for (const place of places) settle(place, { value: "enqueued" });
        prediction.committed(call);
      } else {
        prediction.refused(call);
      }
      return end;
    } catch (error) {
      for (const place of places) settle(place, { error });
      prediction.refused(call);
      this.#handOff.pause();
      return "unknown";
    }
  }

  #conclude(
    calls: readonly Delivery[],
    targets: readonly Target[],
    parts: readonly DeliveryPart[],
  ): readonly Outcome<EnqueueOutcome>[] {
    const messages = targets.flatMap((target) => target.messages);
    const lost = new Set(parts.flatMap(({ part, turn }) => (part === "lost" ? [turn] : [])));
    const begun = new Set(parts.flatMap(({ part, turn }) => (part === "begun" ? [messages[turn - 1]?.call] : [])));
    const effects = new Effects();
    for (const [place, call] of calls.entries()) {
      if (call.kind === "message" && isStartLike(call.item) && !begun.has(place))
        effects.changed(targetInstance(call.item));
    }
    for (const { part, turn, n } of parts) {
      if (part !== "open") continue;
      effects.readyMessages += turn; // D6
      if (n !== null) effects.messageAt(n);
    }
    this.#store.announce(effects, "everywhere");
    let ack = 0;
    return calls.map((call, place) => {
      if (call.kind === "message") return { value: begun.has(place) ? "exists" : "enqueued" };
      ack += 1;
      return lost.has(ack) ? { error: lockLost("ackWorkItem", call.lockToken) } : { value: "enqueued" };
    });
  }
}

function operationOf([first]: readonly Delivery[]): string {
  return first?.kind === "completion" ? "ackWorkItem" : "enqueueForOrchestrator";
}

/** Of what must not exist, and is nobody's child; and nothing else is sent to it. */
function isStartOfNow({ messages, readyAt }: Target, now: number): boolean {
  const { isAbsent, row } = messages[0]!;
  return messages.length === 1 && isAbsent && row.parent === null && readyAt === now;
}

/** Resolves, or rejects, when all have ended. Where nobody knows what has become of one statement, nothing of the others is sent again. */
async function allEnded(parts: readonly Promise<void>[]): Promise<void> {
  const ends = await Promise.allSettled(parts);
  const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
  if (failures.length > 0) throw failures.find((failure) => !isAnswered(failure)) ?? failures[0];
}

/** Of what was foretold, that whose turns have come. */
function stepsOf(
  foretold: readonly Foretold[],
  turns: readonly TurnCall[],
  calls: readonly Delivery[],
): readonly PredictedStep[] {
  const byToken = new Map(turns.map((turn) => [turn.lockToken, turn]));
  return foretold.flatMap(({ target, foreseen, versions }) => {
    const turn = byToken.get(foreseen.locked.lockToken);
    if (turn === undefined) return [];
    const places = target.messages.map(({ call }) => call);
    const done = places.flatMap((place) => doneBy(calls[place]!));
    return [{ target, foreseen, places, call: { ...turn, step: { expected: foreseen.expected, done, versions } } }];
  });
}

/** A start that was refused as a beginning most likely meets another: it is for the store to tell. */
function storedFirst(call: Delivery): Delivery {
  return call.kind === "message" && call.mayGoAhead ? { ...call, mayGoAhead: false } : call;
}

function doneBy(call: Delivery): readonly Lock<number>[] {
  return call.kind === "completion" ? [call.lock] : [];
}

/** The calls that are not about these targets, by their places. */
function placesOf(calls: readonly Delivery[], without: readonly Target[]): readonly number[] {
  const others = new Set(without.flatMap(({ messages }) => messages.map(({ call }) => call)));
  return [...calls.keys()].filter((place) => !others.has(place));
}

/** Resolves when all turns have come, or no more are likely to come soon. */
async function turnsTaken(prediction: Prediction): Promise<void> {
  for (let round = 0; round < MOST_ROUNDS && prediction.isAwaited(); round += 1) await nextRound();
}

function nextRound(): Promise<void> {
  return new Promise((resolve) => immediate(resolve));
}

/** Two starts of one instance, and two calls about one activity, never share a statement. */
function keyOf(call: Delivery): string | null {
  if (call.kind === "completion") return `activity ${call.lock.id}`;
  return isStartLike(call.item) ? `start of ${call.item.instance}` : null;
}

function laneOf({ item }: Delivery): string | null {
  return item === null ? null : targetInstance(item);
}

function messagesOf(calls: readonly Delivery[], now: number): readonly Message[] {
  const messages: Message[] = [];
  let acks = 0;
  for (const [place, call] of calls.entries()) {
    if (call.kind === "completion") {
      acks += 1;
      if (call.item === null) continue;
      const { item, lockToken } = call;
      const mayBeForeseen = isFirstAttempt(lockToken);
      messages.push({ item, row: messageFacts(item, now), isAbsent: false, mayBeForeseen, call: place, sender: acks });
    } else {
      const { item, options, mayGoAhead } = call;
      const isAbsent = isStartLike(item) && options.ifAbsent === true;
      const row = messageFacts(item, now, options.delayMs);
      messages.push({ item, row, isAbsent, mayBeForeseen: mayGoAhead, call: place, sender: 0 });
    }
  }
  return messages;
}

/** In the order of their first messages. */
function targetsOf(messages: readonly Message[]): readonly Target[] {
  const targets = new Map<string, Message[]>();
  for (const message of messages) {
    const known = targets.get(message.row.instance);
    if (known === undefined) targets.set(message.row.instance, [message]);
    else known.push(message);
  }
  return [...targets].map(([instance, ofTarget]) => ({
    instance,
    messages: ofTarget,
    readyAt: ofTarget.reduce((least, { row }) => Math.min(least, row.visible), Number.MAX_SAFE_INTEGER),
    place: ofTarget.reduce((least, { row }) => Math.min(least, row.due), Number.MAX_SAFE_INTEGER),
  }));
}

/** `p_acts` and `p_act_tokens`. */
function ackColumns(calls: readonly Delivery[]): readonly SqlValue[] {
  const acks = calls.flatMap((call) => (call.kind === "completion" ? [call.lock] : []));
  return [bigintArray(acks.map(({ id }) => id)), textArray(acks.map(({ secret }) => secret))];
}

/** From `p_targets` to `p_expected`. */
function targetColumns(targets: readonly WantedTarget[]): readonly SqlValue[] {
  const firsts: number[] = [];
  const lasts: number[] = [];
  let count = 0;
  for (const { target } of targets) {
    firsts.push(count + 1);
    count += target.messages.length;
    lasts.push(count);
  }
  return [
    textArray(targets.map(({ target }) => target.instance)),
    bigintArray(targets.map(({ target }) => target.readyAt)),
    bigintArray(targets.map(({ target }) => target.place)),
    integerArray(firsts),
    integerArray(lasts),
    textArray(targets.map(({ wish }) => wish?.secret ?? null)),
    bigintArray(targets.map(({ wish }) => wish?.until ?? null)),
    textArray(targets.map(({ wish }) => (wish?.foreseen == null ? null : (wish.foreseen.expected ?? "")))),
  ];
}

/** `p_foreseen`: those whose turns come too late for a step, or cannot be one. */
function foreseenColumn(targets: readonly WantedTarget[]): SqlValue {
  return integerArray(targets.flatMap(({ wish }, place) => (wish?.foreseen?.expected == null ? [] : [place + 1])));
}

/** From `p_of` to `p_absent`. Those of one target stand together. */
function messageColumns(targets: readonly Target[]): readonly SqlValue[] {
  const messages = targets.flatMap((target) => target.messages);
  return [
    integerArray(targets.flatMap((target, place) => target.messages.map(() => place + 1))),
    integerArray(messages.map(({ sender }) => sender)),
    bigintArray(messages.map(({ row }) => row.due)),
    bigintArray(messages.map(({ row }) => row.visible)),
    textArray(messages.map(({ row }) => row.kind)),
    textArray(messages.map(({ row }) => row.parent)),
    bigintArray(messages.map(({ row }) => row.timer_execution)),
    bigintArray(messages.map(({ row }) => row.timer)),
    textArray(messages.map(({ item }) => encodeWorkItem(item))),
    booleanArray(messages.map(({ isAbsent }) => isAbsent)),
  ];
}

/** About as long as its text will be; counting is cheaper than encoding twice. */
function textLength(item: OrchestratorItem): number {
  if (item.type === "ActivityCompleted") return item.instance.length + item.result.length + 32; // Nearly all of them.
  return Object.values(item).reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 16), 0);
}
