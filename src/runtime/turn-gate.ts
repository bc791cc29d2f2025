// runtime/turn-gate.ts — lets one orchestration turn of this process run at a time, whichever runtime it belongs to.
//
//   G1. Turns do not overlap: the engine tells foreign awaits from its own by what happens between two of its steps.
//   G2. Turns that wait for nothing outside do not starve the event loop: after a slice of them it has its turn.

import { yieldToEventLoop } from "../engine/drain.js";

const TURNS_PER_SLICE = 64;

let last: Promise<unknown> = Promise.resolve();
let turnsInSlice = 0;

/** Runs the turn when all those before it are over. Answers as it does. */
export function throughTurnGate<T>(turn: () => Promise<T>): Promise<T> {
  const current = last.then(async () => {
    if (mustYield()) await yieldToEventLoop(); // G2
    return turn();
  });
  last = current.catch(() => {}); // G1; whoever asked for the turn hears of its failure.
  return current;
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
