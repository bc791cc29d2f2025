// engine/drain.ts — lets user code run until it can go no further without us.
//
// A microtask that schedules a tick: ticks run only once the microtask queue is empty, so by then every reaction to
// what was delivered, however deep, has run. No I/O and no timer can come in between. Both functions are captured at
// load, so that a test's or a user's patching of globals cannot change what a turn is.

const settled = Promise.resolve();
const tick = process.nextTick.bind(process);
const immediate = setImmediate;

/** Resolves when the microtask queue is empty. */
export function drained(): Promise<void> {
  return new Promise((resolve) => void settled.then(() => tick(resolve)));
}

/** Resolves after the event loop had its turn: for long replays, between deliveries. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => immediate(resolve));
}
