// providers/postgres/predicted-turns.ts — turns that are computed before what they answer is written, and committed with it.
//
// Whoever waits for turns is handed an instance that is about to be sent to, as the store would hand it out: a turn has no effect
// but its commit. Its ack goes into the statement that sends.
//
//   P1. The store decides: where it would have handed out anything else, or to another, the lock is not there, and the ack is
//       refused as any other without a live lock.
//   P2. Nobody is answered before the statement is. What comes after it was sent (acks, and whatever else is about the lock) waits
//       for its answer, and is then a call like any other.
//       Those who sent hear of it before those whose turns follow from that.
//   P3. Where nobody knows what has become of the statement, or it has failed, the turns are refused: they are computed again.
//   P4. Turns that write to other instances, or cancel activities, are committed alone, after that: the rows of these come
//       before all that the statement has locked (S2 of `0001-tables.ts`).

import { targetInstance } from "../../history/work-item.js";
import type { Outcome } from "../../provider/kit/batcher.js";
import { lockLost } from "../../provider/kit/refusals.js";
import { toColumn } from "../../provider/kit/text-column.js";
import type { TurnCall } from "./turn-rows.js";

interface Joined {
  readonly call: TurnCall;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Turns that one statement may commit. */
class Batch {
  readonly tokens: ReadonlySet<string>;
  readonly settled: Promise<void>;
  readonly joined: Joined[] = [];
  /** Those of whom something has been heard. */
  readonly heard = new Set<string>();
  isOpen = true;
  #settle: () => void = () => {};

  constructor(tokens: ReadonlySet<string>) {
    this.tokens = tokens;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  settle(): void {
    this.#settle();
  }
}

/** What one statement does with predicted turns. It must be settled, or have failed. */
export interface Prediction {
  /** Those whose turns have come. From now on the others are too late. P2 */
  close(): readonly TurnCall[];
  /** Whether more may come. */
  readonly isAwaited: boolean;
  /** How those that have come ended. */
  settle(outcomes: readonly Outcome<void>[]): void;
  /** P3 */
  fail(): void;
}

export class PredictedTurns {
  readonly #batches = new Map<string, Batch>();

  /** Instances have been handed out by these tokens. */
  begin(tokens: readonly string[]): Prediction {
    const batch = new Batch(new Set(tokens));
    for (const token of tokens) this.#batches.set(token, batch);
    return {
      get isAwaited() {
        return batch.heard.size < batch.tokens.size;
      },
      close: () => {
        batch.isOpen = false;
        return batch.joined.map(({ call }) => call);
      },
      settle: (outcomes) => {
        afterAnswers(() => {
          this.#end(batch);
          for (const [place, { resolve, reject }] of batch.joined.entries()) {
            const outcome = outcomes[place]!;
            if ("error" in outcome) reject(outcome.error);
            else resolve();
          }
        });
      },
      fail: () => {
        this.#end(batch);
        for (const { call, reject } of batch.joined) reject(lockLost("ackOrchestrationItem", call.lockToken)); // P3
      },
    };
  }

  /** Answers when the statement has committed the turn. Null: it will not. */
  join(call: TurnCall): Promise<void> | null {
    const batch = this.#batches.get(call.lockToken);
    if (batch?.isOpen !== true || batch.heard.has(call.lockToken) || !canJoin(call)) return null;
    batch.heard.add(call.lockToken);
    return new Promise((resolve, reject) => {
      batch.joined.push({ call, resolve, reject });
    });
  }

  /** Resolves when the store has answered whether there is such a lock. Null: it has. P2 */
  settled(lockToken: string): Promise<void> | null {
    const batch = this.#batches.get(lockToken);
    batch?.heard.add(lockToken);
    return batch?.settled ?? null;
  }

  #end(batch: Batch): void {
    for (const token of batch.tokens) this.#batches.delete(token);
    batch.settle();
  }
}

// Captured at load, as everywhere.
const tick = process.nextTick.bind(process);
const settled = Promise.resolve();

/** When all has happened that follows from what is settled now: ticks come when there are no microtasks left. P2 */
function afterAnswers(then: () => void): void {
  void settled.then(() => tick(then));
}

/** P4 */
function canJoin({ lock, turn }: TurnCall): boolean {
  if (turn.cancelledActivities.length > 0) return false;
  return turn.orchestratorItems.every((item) => toColumn(targetInstance(item)) === lock.id);
}
