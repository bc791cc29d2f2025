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
export async function throughTurnGate<T>(turn: () => Promise<T>): Promise<T> {
  const entry = enterTurnGate();
  if (entry !== null) await entry;
  try {
    return await turn();
  } finally {
    leaveTurnGate();
  }
}

/**
 * For whoever takes turns all the time, and has a promise of its own to wait with. Null: it is in. Otherwise it is when this
 * resolves. Either way it must leave, however its turn ends.
 */
export function enterTurnGate(): Promise<void> | null {
  if (isTaken || mustYield()) return becomesFree();
  isTaken = true; // G1
  return null;
}

/** For whoever came last. */
function becomesFree(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (!isTaken) letNextPassLater();
  });
}

export function leaveTurnGate(): void {
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
