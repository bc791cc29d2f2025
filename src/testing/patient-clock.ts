// testing/patient-clock.ts — virtual time that waits a little, really, for activities that do something real.
//
//   P1. Each run of an activity gets its share of real time once, before virtual time moves on. One that takes no more
//       has taken no virtual time at all; one that hangs, or waits for virtual time itself, holds nobody up for longer.

import { sleep, systemClock } from "../clock.js";
import type { Fact } from "../observer.js";
import { VirtualClock } from "./virtual-clock.js";

interface Run {
  leftMs: number;
}

export class PatientClock extends VirtualClock {
  readonly #patienceMs: number;
  readonly #runs = new Map<string, Run>();

  constructor(startMs: number | undefined, patienceMs: number) {
    super(startMs);
    this.#patienceMs = patienceMs;
  }

  /** Learns from what runtimes tell which activities are at work. */
  note(fact: Fact): void {
    if (fact.type === "activity-started") this.#runs.set(keyOf(fact), { leftMs: this.#patienceMs });
    if (fact.type === "activity-ended" || fact.type === "activity-detached") this.#runs.delete(keyOf(fact));
  }

  protected override async rested(isDone: () => boolean = () => false): Promise<void> {
    await super.rested(isDone);
    while (!isDone() && this.#isWorthWaiting()) {
      await sleep(systemClock, 1);
      for (const run of this.#runs.values()) run.leftMs -= 1;
      await super.rested(isDone);
    }
  }

  #isWorthWaiting(): boolean {
    for (const { leftMs } of this.#runs.values()) if (leftMs > 0) return true;
    return false;
  }
}

function keyOf({ ref }: Extract<Fact, { type: "activity-started" | "activity-ended" | "activity-detached" }>): string {
  return JSON.stringify([ref.instanceId, ref.executionId, ref.activityId, ref.attempt, ref.workerId]);
}
