// testing/patient-clock.ts — virtual time that waits until work is done, and a little, really, for what is done outside.
//
//   P1. Each run of an activity gets its share of real time once, before virtual time moves on. One that takes no more
//       has taken no virtual time at all; one that hangs, or waits for virtual time itself, holds nobody up for longer;
//       and for the dead nobody waits.
//   P2. As long as runtimes have something to tell, nothing is at rest: a thousand turns take no virtual time either. But
//       work that never ends is told from work that takes long.

import type { Clock, Timer } from "../clock.js";
import { TimeoutError } from "../errors.js";
import type { Fact } from "../observer.js";
import { realMillisecond, VirtualClock } from "./virtual-clock.js";

interface Run {
  leftMs: number;
  readonly isAlive: () => boolean;
}

/** In one moment of virtual time. No test has so much to do, and it takes a computer some seconds. */
const MOST_TURNS_AT_ONCE = 100_000;

export class PatientClock extends VirtualClock {
  /** For the store, the client and the runtimes, whose timers keep things going but bring no news by themselves. */
  readonly housekeeping: Clock = {
    now: () => this.now(),
    setTimer: (delayMs, callback) => super.setTimer(delayMs, callback),
    holdWhile: (work) => this.holdWhile(work),
  };
  readonly #timersOfTheTest = new Map<Timer, number>();
  readonly #patienceMs: number;
  readonly #runs = new Map<string, Run>();
  #facts = 0;
  #turns = 0;
  #lastToTurn = "";

  constructor(startMs: number | undefined, patienceMs: number) {
    super(startMs);
    this.#patienceMs = patienceMs;
  }

  override setTimer(delayMs: number, callback: () => void): Timer {
    const timer = super.setTimer(delayMs, () => {
      this.#timersOfTheTest.delete(timer);
      callback();
    });
    this.#timersOfTheTest.set(timer, this.now() + delayMs);
    return {
      clear: () => {
        this.#timersOfTheTest.delete(timer);
        timer.clear();
      },
    };
  }

  /** The earliest time that the test itself, or an activity of it, waits for. Infinity: none. */
  get nextTimerOfTheTest(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#timersOfTheTest.values());
  }

  /** Learns from what runtimes tell which activities are at work, and that there is work at all. */
  note(fact: Fact, isAlive: () => boolean): void {
    this.#facts += 1;
    if (fact.type === "turn-committed") {
      this.#turns += 1;
      this.#lastToTurn = fact.ref.instanceId;
    }
    if (fact.type === "activity-started") this.#runs.set(keyOf(fact), { leftMs: this.#patienceMs, isAlive });
    if (fact.type === "activity-ended" || fact.type === "activity-detached") this.#runs.delete(keyOf(fact));
  }

  /** @throws DUROXIDE_TIMEOUT if it never comes to rest */
  protected override async rested(isDone: () => boolean = () => false): Promise<void> {
    const mostTurns = this.#turns + MOST_TURNS_AT_ONCE;
    for (;;) {
      const facts = this.#facts;
      await super.rested(isDone);
      if (isDone()) return;
      if (this.#turns > mostTurns) throw neverAtRest(this.#lastToTurn);
      if (facts !== this.#facts) continue; // P2
      if (!this.#isWorthWaiting()) return;
      await realMillisecond();
      for (const run of this.#runs.values()) run.leftMs -= 1;
    }
  }

  #isWorthWaiting(): boolean {
    for (const [key, { leftMs, isAlive }] of this.#runs) {
      if (!isAlive()) this.#runs.delete(key);
      else if (leftMs > 0) return true;
    }
    return false;
  }
}

function keyOf({ ref }: Extract<Fact, { type: "activity-started" | "activity-ended" | "activity-detached" }>): string {
  return JSON.stringify([ref.instanceId, ref.executionId, ref.activityId, ref.attempt, ref.workerId]);
}

function neverAtRest(instanceId: string): TimeoutError {
  return new TimeoutError(
    `${MOST_TURNS_AT_ONCE} turns were taken in one moment of virtual time, the last by '${instanceId}': an orchestration goes on and on without ever waiting.`,
  );
}
