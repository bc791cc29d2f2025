// soak/judge.mjs — whether a process stayed as it was, told in sentences; none: it did.
//
//   Y1. The first minute warms up; the last one is compared with the second.
//   Y2. A minute's heap and handles are the medians of its samples: at any one moment more or less is in flight.
//   Y3. Timers come and go with what is in flight. Of everything else there is a fixed number, but for the connections of a
//       pool, which are opened when they are needed.

const MiB = 1_048_576;
const HEAP_MAY_GROW = 1.1;
const TIMERS = ["Timeout", "Immediate", "TickObject"];
const TIMERS_MAY_GROW = 1.25;
/** A pool has ten connections at most; and processes that are killed overlap with those that follow them. */
const HANDLES_MORE = 12;
const LEAST_MINUTES = 3;

/** Why not even a judgement is possible, or null. */
export function whyNotJudged(minutes) {
  return minutes.length < LEAST_MINUTES
    ? `growth is not judged: that takes ${LEAST_MINUTES} minutes, of which the first warms up`
    : null;
}

/** `minutes`: of each, by process, its { heapBytes, handles }. */
export function growth(minutes) {
  if (whyNotJudged(minutes) !== null) return [];
  const [, second] = minutes; // Y1
  const last = minutes.at(-1);
  return Object.keys(second).flatMap((process) => [
    ...heapGrowth(process, second[process], last[process]),
    ...handleGrowth(process, second[process], last[process]),
  ]);
}

function heapGrowth(process, second, last) {
  const ratio = last.heapBytes / second.heapBytes;
  if (ratio <= HEAP_MAY_GROW) return [];
  const [from, to] = [second, last].map(({ heapBytes }) => `${(heapBytes / MiB).toFixed(1)} MiB`);
  return [`the heap of the ${process} grew by ${Math.round((ratio - 1) * 100)} %, from ${from} to ${to}`];
}

/** Y3 */
function handleGrowth(process, second, last) {
  return Object.entries(last.handles).flatMap(([type, count]) => {
    const before = second.handles[type] ?? 0;
    const most = TIMERS.includes(type) ? before * TIMERS_MAY_GROW + HANDLES_MORE : before + HANDLES_MORE;
    return count <= most ? [] : [`open handles of the ${process} grow: ${type}, from ${before} to ${count}`];
  });
}

/** Y2. What the samples of a minute come to. */
export function summaryOf(samples) {
  const types = new Set(samples.flatMap(({ handles }) => Object.keys(handles)));
  return {
    heapBytes: median(samples.map(({ heapBytes }) => heapBytes)),
    handles: Object.fromEntries([...types].map((type) => [type, median(samples.map((one) => one.handles[type] ?? 0))])),
  };
}

function median(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}
