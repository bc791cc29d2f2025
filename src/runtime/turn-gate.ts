// runtime/turn-gate.ts — lets one orchestration turn of this process run at a time, whichever runtime it belongs to.
//
//   G1. Turns do not overlap: the engine tells foreign awaits from its own by what happens between two of its steps.
//   G2. Turns that wait for nothing outside do not starve the event loop: after a slice of them it has its turn.

import { yieldToEventLoop } from "../engine/drain.js";
import { Fifo } from "../engine/fifo.js";

const TURNS_PER_SLICE = 64;

const waiting = new Fifo<() => void>();
/** By a turn, or by the event loop whose turn it is. */
let isTaken = false;
let turnsInSlice = 0;

/** Runs the turn when all those before it are over. Answers as it does. */
export function throughTurnGate<T>(turn: () => Promise<T>): Promise<T> {
  if (!isTaken && !mustYield()) return pass(turn);
  return new Promise((resolve, reject) => {
    waiting.push(() => void pass(turn).then(resolve, reject));
    if (!isTaken) letNextPassLater();
  });
}

/** G1 */
function pass<T>(turn: () => Promise<T>): Promise<T> {
  isTaken = true;
  const over = begin(turn);
  over.then(leave, leave);
  return over;
}

/** One that throws at once is over, too. */
function begin<T>(turn: () => Promise<T>): Promise<T> {
  try {
    return turn();
  } catch (error) {
    return Promise.reject(error);
  }
}

function leave(): void {
  isTaken = waiting.length > 0; // Nobody overtakes those who wait.
  if (!isTaken) return;
  if (mustYield()) letNextPassLater();
  else letNextPass();
}

/** G2 */
function letNextPassLater(): void {
  isTaken = true;
  void yieldToEventLoop().then(letNextPass);
}

function letNextPass(): void {
  waiting.shift()?.();
}

/** The count starts anew whenever the event loop comes round, so a process that does I/O anyway never waits here. */
function mustYield(): boolean {
  if (turnsInSlice === 0) void yieldToEventLoop().then(beginSlice);
  turnsInSlice += 1;
  return turnsInSlice > TURNS_PER_SLICE;
}

function beginSlice(): void {
  turnsInSlice = 0;
}
