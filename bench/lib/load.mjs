// bench/lib/load.mjs — the loads there are: so much in flight for a time, or so many pieces in all.

/**
 * Keeps `inFlight` pieces of work under way: first to warm up, then for the time that counts.
 *
 * A piece that lies across the beginning or the end of that time counts by the share of it that lies within: who serves
 * everybody in turn ends 100 pieces in one burst, and a whole burst more or less would be a matter of luck. Latencies are
 * those of the pieces that ended within the time.
 *
 * @type {(load: { inFlight: number, warmupSeconds: number, seconds: number }, work: (nr: number) => Promise<void>) =>
 *   Promise<{ perSecond: number, latenciesMs: number[] }>}
 */
export async function keepInFlight({ inFlight, warmupSeconds, seconds }, work) {
  const countFrom = performance.now() + warmupSeconds * 1_000;
  const countTo = countFrom + seconds * 1_000;
  const latenciesMs = [];
  let pieces = 0;
  let nr = 0;
  await keepGoing(inFlight, countTo, async () => {
    nr += 1;
    const beganAt = performance.now();
    await work(nr);
    const endedAt = performance.now();
    const withinMs = Math.min(endedAt, countTo) - Math.max(beganAt, countFrom);
    if (withinMs > 0) pieces += withinMs / (endedAt - beganAt);
    if (endedAt >= countFrom && endedAt < countTo) latenciesMs.push(endedAt - beganAt);
  });
  if (latenciesMs.length === 0) throw new Error(`nothing ended within ${seconds} s`);
  return { perSecond: pieces / seconds, latenciesMs };
}

/** Begins work until that time, as `performance.now` tells it, `inFlight` pieces at once. Remembers nothing. */
export async function keepGoing(inFlight, until, work) {
  const lane = async () => {
    while (performance.now() < until) await work();
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

/** Does `count` pieces of work, numbered from 0, at most `inFlight` at a time. */
export async function doAll(count, inFlight, work) {
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const index = next;
      next += 1;
      await work(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(count, inFlight) }, lane));
}

/** Begins `count` pieces of work, numbered from 0, so many each second whether others are done or not. */
export async function atRate(count, perSecond, work) {
  const beganAt = performance.now();
  const pieces = [];
  while (pieces.length < count) {
    const due = Math.min(count, ((performance.now() - beganAt) * perSecond) / 1_000);
    while (pieces.length < due) pieces.push(work(pieces.length));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(pieces);
}

/** Resolves when the runtime has told so many facts of this type from now on. Waiting costs the store nothing. */
export function countFacts(runtime, type, count) {
  return new Promise((resolve) => {
    let seen = 0;
    const stop = runtime.observe((fact) => {
      if (fact.type !== type) return;
      seen += 1;
      if (seen < count) return;
      stop();
      resolve();
    });
  });
}
