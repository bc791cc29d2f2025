// providers/postgres/foreseen-turns.ts — what the store will hand out for messages that are about to be sent, where one can tell.
//
//   F1. Of an instance whose last commit was made here, to a runtime that still has it warm as of that commit; and of one that is
//       started here, as if nobody had heard of it before.
//   F2. It is the same as what would be handed out, if the store finds what is expected. Nobody else can tell, so nothing is
//       committed unless it does.
//   F3. What was foreseen wrongly costs a turn for nothing, and the history is read again. When too many were, or where a statement
//       has failed, there are none for a while.

import type { Clock } from "../../clock.js";
import { INITIAL_EXECUTION_ID } from "../../history/event.js";
import type { StartOrchestration } from "../../history/work-item.js";
import { identityInStart } from "../../provider/kit/start-identity.js";
import { fromColumn } from "../../provider/kit/text-column.js";
import type { FetchOrchestrationOptions, KvEntry, LockedOrchestrationItem } from "../../provider/provider.js";
import { Confidence } from "./confidence.js";
import type { Target } from "./deliveries.js";
import type { KnownInstances } from "./known-instances.js";
import { tokenOf, turnLock } from "./lock-token.js";
import { versionsOf } from "./versions.js";

export interface ForeseenTurn {
  /** The secret of the last commit. Null: there is none. */
  readonly expected: string | null;
  readonly locked: LockedOrchestrationItem;
}

const NOTHING_READ = Object.freeze({ history: [], historyError: null, kvSnapshot: new Map<string, KvEntry>() });

export class ForeseenTurns {
  readonly #known: KnownInstances;
  readonly #confidence: Confidence;
  /** Where many are started that have begun long ago, that says nothing of the others. */
  readonly #confidenceInStarts: Confidence;

  constructor(known: KnownInstances, clock: Clock) {
    this.#known = known;
    this.#confidence = new Confidence(clock);
    this.#confidenceInStarts = new Confidence(clock);
  }

  /** Null: only the store can tell. Otherwise it must be handed out. */
  of({ instance: id, messages }: Target, secret: string, want: FetchOrchestrationOptions): ForeseenTurn | null {
    if (!messages.every(({ mayBeForeseen }) => mayBeForeseen)) return null;
    const start = messages.map(({ item }) => item).find((item) => item.type === "StartOrchestration");
    // Beside other messages it most likely starts what has begun, and whoever sent it is to hear so.
    if (start !== undefined) return messages.length === 1 ? this.#ofStart(id, start, secret, want) : null;
    if (this.#confidence.isPaused) return null;
    const versions = versionsOf(want.capability);
    const facts = this.#known.get(id, versions);
    const instance = fromColumn(id);
    if (facts === null || want.warm?.get(instance) !== facts.lockToken) return null;
    const { lockToken: warmAsOf, name, version, executionId } = facts;
    const inOrder = [...messages].sort((one, other) => one.row.due - other.row.due);
    const identity = { instance, orchestrationName: name, version, executionId };
    const item = { ...identity, messages: inOrder.map((message) => message.item), warmAsOf, ...NOTHING_READ };
    const locked = { item, lockToken: tokenOf(secret, id), attemptCount: 1 };
    this.#known.handedOut(locked, versions);
    return { expected: turnLock(warmAsOf).secret, locked };
  }

  #ofStart(
    id: string,
    start: StartOrchestration,
    secret: string,
    { capability }: FetchOrchestrationOptions,
  ): ForeseenTurn | null {
    if (this.#confidenceInStarts.isPaused || this.#known.has(id)) return null;
    const { name: orchestrationName, version } = identityInStart(start);
    const identity = { instance: fromColumn(id), orchestrationName, version, executionId: INITIAL_EXECUTION_ID };
    const item = { ...identity, messages: [start], warmAsOf: null, ...NOTHING_READ };
    const locked = { item, lockToken: tokenOf(secret, id), attemptCount: 1 };
    this.#known.handedOut(locked, versionsOf(capability));
    return { expected: null, locked };
  }

  /** How many steps were right, and how many were not. F3 */
  learn(right: number, wrong: number): void {
    this.#confidence.learn(right, wrong);
  }

  /** The same of beginnings. F3 */
  learnOfStarts(right: number, wrong: number): void {
    this.#confidenceInStarts.learn(right, wrong);
  }

  pause(): void {
    this.#confidence.pause();
    this.#confidenceInStarts.pause();
  }
}
