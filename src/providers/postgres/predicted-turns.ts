// providers/postgres/predicted-turns.ts — turns that are computed before what they answer is written, and committed with it.
//
// Whoever waits for turns is handed an instance that is about to be sent to, as the store would hand it out: a turn has no effect
// but its commit. Turn and what it answers are then one step, which takes no lock and leaves no message (S9 of `0001-tables.ts`).
//
//   P1. The store decides: where it would have handed out anything else, or to another, there is no step, and the ack is
//       refused as any other without a live lock.
//   P2. Nobody is answered before the statement is. What comes after it was sent (acks, and whatever else is about the lock) waits
//       for its answer, and is then a call like any other.
//       Those who sent hear of it before those whose turns follow from that.
//   P3. Where nobody knows what has become of the statement, or it has failed, the turns are refused: they are computed again.
//   P4. Turns that send or cancel anything are committed alone, after what they answer is stored, under a lock: rows of the schedule
//       would be locked too late (S2 of `0001-tables.ts`). And so are those that say something new of their instance; but the first
//       one must say who it is.

import { lockLost } from "../../provider/kit/refusals.js";
import type { LockedOrchestrationItem } from "../../provider/provider.js";
import { afterAnswers } from "./after-answers.js";
import type { TurnCall } from "./turn-rows.js";

/** A turn that may be a step. */
class PredictedTurn {
  readonly lockToken: string;
  /** Of which execution it has to be. */
  readonly executionId: number;
  /** There is nothing of its instance but the start that it answers. */
  readonly isFirst: boolean;
  /** Until the store has answered whether there is its lock. */
  readonly settled: Promise<void>;
  /** Its ack, once it has come. */
  joined: { readonly call: TurnCall; readonly resolve: () => void; readonly reject: (error: unknown) => void } | null =
    null;
  /** Something has been heard of it. */
  isHeard = false;
  /** Its ack may still come. */
  isOpen = true;
  /** It is known what has become of it. */
  isEnded = false;
  #settle: () => void = () => {};

  constructor({ lockToken, item }: LockedOrchestrationItem) {
    this.lockToken = lockToken;
    this.executionId = item.executionId;
    this.isFirst = item.warmAsOf === null;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  settle(): void {
    this.#settle();
  }
}

/** What becomes of turns that were predicted together. */
export interface Prediction {
  /** Whether more may come. */
  isAwaited(): boolean;
  /** Those whose turns have come: each must be committed or refused. From now on the others are too late. P2 */
  close(): readonly TurnCall[];
  /** This one is committed. Whoever has sent what it answers hears of it first. P2 */
  committed(call: TurnCall): void;
  /** This one is not, unless it has been. P3 */
  refused(call: TurnCall): void;
  /** The store has answered which of the others have their locks. P2 */
  othersSettled(): void;
}

export class PredictedTurns {
  /** By token. */
  readonly #turns = new Map<string, PredictedTurn>();
  /** Those who have their answer, until everybody hears of theirs who comes before. */
  #ended: PredictedTurn[] = [];

  /** These have been handed out. */
  begin(foretold: readonly LockedOrchestrationItem[]): Prediction {
    const turns = foretold.map((locked) => new PredictedTurn(locked));
    for (const turn of turns) this.#turns.set(turn.lockToken, turn);
    return {
      isAwaited: () => turns.some(({ isHeard }) => !isHeard),
      close: () => {
        for (const turn of turns) turn.isOpen = false;
        return turns.flatMap(({ joined }) => joined?.call ?? []);
      },
      committed: ({ lockToken }) => this.#end(this.#turns.get(lockToken)),
      refused: ({ lockToken }) => {
        const turn = this.#turns.get(lockToken);
        if (turn?.isEnded === false) turn.joined?.reject(lockLost("ackOrchestrationItem", lockToken)); // P3
        this.#end(turn);
      },
      othersSettled: () => {
        for (const turn of turns) if (turn.joined === null) this.#end(turn);
      },
    };
  }

  /** Answers when the turn is committed as a step. Null: it will not be. */
  join(call: TurnCall): Promise<void> | null {
    const turn = this.#turns.get(call.lockToken);
    if (turn?.isOpen !== true || turn.isHeard || !canBeStep(call, turn)) return null;
    turn.isHeard = true;
    return new Promise((resolve, reject) => {
      turn.joined = { call, resolve, reject };
    });
  }

  /** Resolves when the store has answered whether there is such a lock. Null: it has. P2 */
  settled(lockToken: string): Promise<void> | null {
    const turn = this.#turns.get(lockToken);
    if (turn === undefined) return null;
    turn.isHeard = true;
    return turn.settled;
  }

  /** Tells so after whoever hears of it before. */
  #end(turn: PredictedTurn | undefined): void {
    if (turn === undefined || turn.isEnded) return;
    turn.isEnded = true;
    this.#ended.push(turn);
    if (this.#ended.length > 1) return;
    afterAnswers(() => {
      const ended = this.#ended;
      this.#ended = [];
      for (const { lockToken, joined } of ended) {
        this.#turns.delete(lockToken);
        joined?.resolve();
      }
      for (const each of ended) each.settle();
    });
  }
}

/** P4 */
function canBeStep({ turn }: TurnCall, { executionId, isFirst }: PredictedTurn): boolean {
  const { orchestrationName, orchestrationVersion, parentInstanceId, pinnedVersion } = turn.metadata;
  const said = [orchestrationName, orchestrationVersion, parentInstanceId, pinnedVersion];
  const isNews = said.some((fact) => fact !== undefined);
  const isNamed = orchestrationName !== undefined && orchestrationVersion !== undefined;
  const sends = turn.orchestratorItems.length > 0;
  const cancels = turn.cancelledActivities.length > 0 || turn.cancelledTimers.length > 0;
  return turn.executionId === executionId && (isFirst ? isNamed : !isNews) && !sends && !cancels;
}
