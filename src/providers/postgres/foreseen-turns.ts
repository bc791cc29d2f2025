// providers/postgres/foreseen-turns.ts — what the store will hand out for messages that are about to be sent, where one can tell.
//
//   F1. Of an instance whose last commit was made here, to a runtime that still has it warm as of that commit; or of one that has
//       not begun, with nothing but its start.
//   F2. It is the same as what would be handed out, if the store finds what is expected. Nobody else can tell, so nothing is
//       committed unless it does.
//   F3. What was foreseen wrongly costs a turn for nothing, and the history is read again. When too many were, there are none for
//       a while, of starts or of the others. Where a statement has failed, of neither.

import type { Clock } from "../../clock.js";
import { isStartLike } from "../../history/work-item.js";
import { identityInStart } from "../../provider/kit/start-identity.js";
import { fromColumn } from "../../provider/kit/text-column.js";
import type { FetchOrchestrationOptions, KvEntry, LockedOrchestrationItem } from "../../provider/provider.js";
import { Confidence } from "./confidence.js";
import type { Target } from "./deliveries.js";
import type { KnownInstances } from "./known-instances.js";
import { tokenOf, turnLock } from "./lock-token.js";

export interface ForeseenTurn {
  /** The secret of the last commit; "" of an instance that has not begun. */
  readonly expected: string;
  readonly locked: LockedOrchestrationItem;
}

const NOTHING_READ = Object.freeze({ history: [], historyError: null, kvSnapshot: new Map<string, KvEntry>() });
const NOT_BEGUN = "";

export class ForeseenTurns {
  readonly #known: KnownInstances;
  readonly #starts: Confidence;
  readonly #others: Confidence;

  constructor(known: KnownInstances, clock: Clock) {
    this.#known = known;
    this.#starts = new Confidence(clock);
    this.#others = new Confidence(clock);
  }

  /** Null: only the store can tell. Otherwise it must be handed out. */
  of(target: Target, secret: string, { warm }: FetchOrchestrationOptions): ForeseenTurn | null {
    if (!target.messages.every(({ mayBeForeseen }) => mayBeForeseen)) return null;
    const hasBegun = this.#known.hasBegun(target.instance);
    if ((hasBegun ? this.#others : this.#starts).isPaused) return null;
    const foreseen = hasBegun ? ofKnown(target, secret, warm, this.#known) : ofStart(target, secret);
    if (foreseen !== null) this.#known.handedOut(foreseen.locked);
    return foreseen;
  }

  /** Which of them were right. F3 */
  learn(right: readonly ForeseenTurn[], wrong: readonly ForeseenTurn[]): void {
    const [rightStarts, wrongStarts] = [right, wrong].map((turns) => turns.filter(isOfStart).length) as [
      number,
      number,
    ];
    this.#starts.learn(rightStarts, wrongStarts);
    this.#others.learn(right.length - rightStarts, wrong.length - wrongStarts);
  }

  pause(): void {
    this.#starts.pause();
    this.#others.pause();
  }
}

function isOfStart({ expected }: ForeseenTurn): boolean {
  return expected === NOT_BEGUN;
}

function ofStart({ instance: id, messages: [first, ...others] }: Target, secret: string): ForeseenTurn | null {
  if (first === undefined || others.length > 0 || !first.isAbsent || !isStartLike(first.item)) return null;
  const { name, version } = identityInStart(first.item);
  const instance = fromColumn(id);
  const identity = { instance, orchestrationName: name, version, executionId: 1 };
  const item = { ...identity, messages: [first.item], warmAsOf: null, ...NOTHING_READ };
  return { expected: NOT_BEGUN, locked: { item, lockToken: tokenOf(secret, id), attemptCount: 1 } };
}

function ofKnown(
  { instance: id, messages }: Target,
  secret: string,
  warm: FetchOrchestrationOptions["warm"],
  known: KnownInstances,
): ForeseenTurn | null {
  const facts = known.get(id);
  const instance = fromColumn(id);
  if (facts === null || warm?.get(instance) !== facts.lockToken) return null;
  const { lockToken: warmAsOf, name, version, executionId } = facts;
  const inOrder = [...messages].sort((one, other) => one.row.due - other.row.due);
  const identity = { instance, orchestrationName: name, version, executionId };
  const item = { ...identity, messages: inOrder.map((message) => message.item), warmAsOf, ...NOTHING_READ };
  const expected = turnLock(warmAsOf).secret;
  return { expected, locked: { item, lockToken: tokenOf(secret, id), attemptCount: 1 } };
}
