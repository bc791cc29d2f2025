// provider/kit/effects.ts — what an operation made possible. Told to those who wait, once it is committed.

import type { InstanceChange } from "../provider.js";

export class Effects {
  /** How many messages, and how many activities, can be fetched that could not before. */
  readyMessages = 0;
  readyActivities = 0;
  /** When the next of them can be, by the passing of time. */
  nextMessageAt = Number.POSITIVE_INFINITY;
  nextActivityAt = Number.POSITIVE_INFINITY;
  readonly changedInstances = new Map<string, InstanceChange>();
  /** The last who had begun to watch when the commit began. @default whoever watches when it is told */
  watchedAsOf: number | undefined = undefined;
  /** Whoever has started what has changed must have his answer before he is told: else he would wait for what was told already. */
  isToldAfterAnswers = false;
  /** What was lost, and somebody must hear of. */
  readonly warnings: string[] = [];

  changed(instance: string, change: InstanceChange = "state"): void {
    if (change !== "turn" || !this.changedInstances.has(instance)) this.changedInstances.set(instance, change);
  }

  messageAt(timeMs: number): void {
    this.nextMessageAt = Math.min(this.nextMessageAt, timeMs);
  }

  activityAt(timeMs: number): void {
    this.nextActivityAt = Math.min(this.nextActivityAt, timeMs);
  }
}
