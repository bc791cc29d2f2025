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
//       would be locked too late (S2 of `0001-tables.ts`). And so are those that say something new of their instance.

import { lockLost } from "../../provider/kit/refusals.js";
import type { LockedOrchestrationItem } from "../../provider/provider.js";
import { afterAnswers } from "./after-answers.js";
import type { TurnCall } from "./turn-rows.js";

interface Joined {
  readonly call: TurnCall;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Turns that may be steps together. */
class Batch {
  /** By token, of which execution each has to be. */
  readonly executions: ReadonlyMap<string, number>;
  readonly settled: Promise<void>;
  readonly joined = new Map<string, Joined>();
  /** Those of whom something has been heard. */
  readonly heard = new Set<string>();
  isOpen = true;
  #settle: () => void = () => {};

  constructor(executions: ReadonlyMap<string, number>) {
    this.executions = executions;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  settle(): void {
    this.#settle();
  }
}

/** What becomes of turns that were predicted together. Each that has come must be committed or refused, and then all are over. */
export interface Prediction {
  /** Whether more may come. */
  readonly isAwaited: boolean;
  /** Those whose turns have come. From now on the others are too late. P2 */
  close(): readonly TurnCall[];
  /** These are committed. Whoever has sent what they answer hears of it first. P2 */
  committed(calls: readonly TurnCall[]): void;
  /** These are not, unless they are among those that are. P3 */
  refused(calls: readonly TurnCall[]): void;
  /** The store has answered which locks there are. P2 */
  end(): void;
}

export class PredictedTurns {
  readonly #batches = new Map<string, Batch>();

  /** These have been handed out. */
  begin(foretold: readonly LockedOrchestrationItem[]): Prediction {
    const batch = new Batch(new Map(foretold.map(({ lockToken, item }) => [lockToken, item.executionId])));
    for (const { lockToken } of foretold) this.#batches.set(lockToken, batch);
    return {
      get isAwaited() {
        return batch.heard.size < batch.executions.size;
      },
      close: () => {
        batch.isOpen = false;
        return [...batch.joined.values()].map(({ call }) => call);
      },
      committed: (calls) => {
        const joined = calls.flatMap(({ lockToken }) => batch.joined.get(lockToken) ?? []);
        for (const { lockToken } of calls) batch.joined.delete(lockToken);
        afterAnswers(() => {
          for (const { resolve } of joined) resolve();
        });
      },
      refused: (calls) => {
        for (const { lockToken } of calls) {
          batch.joined.get(lockToken)?.reject(lockLost("ackOrchestrationItem", lockToken)); // P3
        }
      },
      end: () => afterAnswers(() => this.#end(batch)),
    };
  }

  /** Answers when the turn is committed as a step. Null: it will not be. */
  join(call: TurnCall): Promise<void> | null {
    const { lockToken } = call;
    const batch = this.#batches.get(lockToken);
    if (batch?.isOpen !== true || batch.heard.has(lockToken) || !canBeStep(call, batch.executions.get(lockToken))) {
      return null;
    }
    batch.heard.add(lockToken);
    return new Promise((resolve, reject) => {
      batch.joined.set(lockToken, { call, resolve, reject });
    });
  }

  /** Resolves when the store has answered whether there is such a lock. Null: it has. P2 */
  settled(lockToken: string): Promise<void> | null {
    const batch = this.#batches.get(lockToken);
    batch?.heard.add(lockToken);
    return batch?.settled ?? null;
  }

  #end(batch: Batch): void {
    for (const token of batch.executions.keys()) this.#batches.delete(token);
    batch.settle();
  }
}

/** P4 */
function canBeStep({ turn }: TurnCall, executionId: number | undefined): boolean {
  const { orchestrationName, orchestrationVersion, parentInstanceId, pinnedVersion } = turn.metadata;
  const isNews = [orchestrationName, orchestrationVersion, parentInstanceId, pinnedVersion].some(
    (said) => said !== undefined,
  );
  const sends = turn.orchestratorItems.length > 0;
  const cancels = turn.cancelledActivities.length > 0 || turn.cancelledTimers.length > 0;
  return turn.executionId === executionId && !isNews && !sends && !cancels;
}
