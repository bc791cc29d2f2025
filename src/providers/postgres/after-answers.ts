// providers/postgres/after-answers.ts — in which order those hear who wait for one statement.
//
//   A1. Whoever has called hears of it first: those who sent, then those whose turns were committed with that, and only then
//       whoever gets what the statement has made. Nobody works on what its maker has not heard of.
//   A2. All within one round of the event loop: nobody waits for anything else.

// Captured at load, so that the fake timers of a test framework do not keep anybody waiting.
const tick = process.nextTick.bind(process);
const settled = Promise.resolve();

/** When all has happened that follows from what is settled now: ticks come when there are no microtasks left. */
export function afterAnswers(then: () => void): void {
  void settled.then(() => tick(then));
}

/** After those, too, who are told by `afterAnswers` of what is settled now. */
export function afterAllAnswers(then: () => void): void {
  afterAnswers(() => afterAnswers(then));
}
