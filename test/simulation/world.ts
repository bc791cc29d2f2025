// test/simulation/world.ts — time and order: everything that happens is a task here, and a seed decides which one is next.
//
//   W1. Between two tasks everything that the last one woke has come to rest. Nothing else moves anything: no real time, no I/O.
//   W2. Of the tasks that are due, chance takes one. So whatever may happen in either order does, in some seed.
//   W3. What belongs to a process that is paused waits until it goes on.

import type { Clock, Timer } from "../../src/clock.js";
import { pick, type Random, seeded } from "../engine/random-program.js";

interface Task {
  at: number;
  readonly owner: Owner | null;
  readonly label: string;
  readonly run: () => void;
}

/** Who is stopped now and then. */
export interface Owner {
  readonly name: string;
  pausedUntil: number;
}

export const START_MS = 1_700_000_000_000;
/** Rounds of the event loop in which whatever was woken comes to rest. */
const REST_ROUNDS = 4;

// Captured at load, so that nothing in the simulated processes can replace it.
const immediate = setImmediate;

/** What went on for too long. */
export class EndlessError extends Error {}

export class World {
  readonly random: Random;
  now = START_MS;
  steps = 0;
  readonly #tasks: Task[] = [];
  readonly #trace: (line: string) => void;

  constructor(seed: number, trace: (line: string) => void) {
    this.random = seeded(seed);
    this.#trace = trace;
  }

  /** Calls back when that much time has passed, in any order with whatever else is due by then. */
  after(delayMs: number, label: string, run: () => void, owner: Owner | null = null): Timer {
    const task: Task = { at: this.now + Math.max(0, Math.ceil(delayMs)), owner, label, run };
    this.#tasks.push(task);
    return { clear: () => this.#remove(task) };
  }

  pause(delayMs: number, label: string, owner: Owner | null = null): Promise<void> {
    return new Promise((resolve) => void this.after(delayMs, label, resolve, owner));
  }

  note(text: string): void {
    this.#trace(`${this.now - START_MS} ${text}`);
  }

  chance(probability: number): boolean {
    return probability > 0 && this.random() < probability;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1));
  }

  pick<T>(choices: readonly T[]): T {
    return pick(this.random, choices);
  }

  /** Takes task after task until it is told that it is over. `atRest` is called whenever nothing is due. */
  async run(options: {
    readonly isOver: () => boolean;
    /** Called after each task. */
    readonly afterStep: () => void;
    readonly atRest?: () => Promise<void>;
    readonly untilMs: number;
    readonly mostSteps: number;
  }): Promise<void> {
    for (;;) {
      await this.#rested();
      options.afterStep();
      if (options.isOver()) return;
      const due = this.#due();
      if (due.length === 0) {
        await options.atRest?.();
        const next = this.#tasks.reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY);
        if (next > options.untilMs) throw new EndlessError(`nothing more happens until ${this.now - START_MS}`);
        this.now = Math.max(this.now, next);
        continue;
      }
      if (this.steps >= options.mostSteps) throw new EndlessError(`still going on after ${this.steps} steps`);
      this.steps += 1;
      const task = this.pick(due); // W2
      this.#remove(task);
      this.note(task.label);
      task.run();
    }
  }

  #due(): readonly Task[] {
    const due: Task[] = [];
    for (const task of this.#tasks) {
      if (task.at > this.now) continue;
      if (task.owner !== null && task.owner.pausedUntil > this.now)
        task.at = task.owner.pausedUntil; // W3
      else due.push(task);
    }
    return due;
  }

  #remove(task: Task): void {
    const place = this.#tasks.indexOf(task);
    if (place === -1) return;
    // The order of tasks means nothing.
    this.#tasks[place] = this.#tasks.at(-1)!;
    this.#tasks.pop();
  }

  /** W1 */
  async #rested(): Promise<void> {
    for (let round = 0; round < REST_ROUNDS; round += 1) await new Promise<void>((resolve) => void immediate(resolve));
  }
}

/** Time as one process sees it: it runs ahead or behind, faster or slower, and sometimes jumps. It never goes back. */
export class DriftingClock implements Clock {
  readonly #world: World;
  readonly #owner: Owner;
  readonly #rate: number;
  readonly #since: number;
  #ahead: number;

  constructor(world: World, owner: Owner, options: { readonly aheadMs: number; readonly rate: number }) {
    this.#world = world;
    this.#owner = owner;
    this.#rate = options.rate;
    this.#ahead = options.aheadMs;
    this.#since = world.now;
  }

  now(): number {
    return Math.floor(this.#since + this.#ahead + (this.#world.now - this.#since) * this.#rate);
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    return this.#world.after(delayMs / this.#rate, `${this.#owner.name}: timer`, callback, this.#owner);
  }

  jump(byMs: number): void {
    this.#ahead += byMs;
  }
}
