// bench/workloads/w5-timers.mjs — W5: many one-second timers, each in an instance of its own. How late does code run?
//
//   T1. A thousand instances are started each second, and a second later as many timers fall due each second: from then on
//       starts, first turns and timers compete. It is a load that can be borne; all at once would measure how long ten
//       thousand starts take, since timers wait behind older messages.
//   T2. Lateness is from the due time, as the history has it, to the instant when the code behind the timer runs. Both are
//       told by the clock of this process, in whole milliseconds.
//   T3. Nobody waits in the client meanwhile: that would be another load.

import { orchestration } from "duroxide-ts";
import { atRate, countFacts, doAll } from "../lib/load.mjs";
import { expectEqual, latencyMetrics, metric, runMeasured } from "../lib/measured-process.mjs";
import { RUNTIME_OPTIONS } from "../lib/settings.mjs";
import { whileRunning, withClient } from "../lib/store.mjs";

const STARTS_PER_SECOND = 1_000;
const READS_IN_FLIGHT = 100;

/** By instance: when its code went on. */
const wentOnAt = new Map();

const sleeper = orchestration("Sleeper", async (ctx, ms) => {
  await ctx.scheduleTimer(ms);
  if (!ctx.isReplaying && !wentOnAt.has(ctx.instanceId)) wentOnAt.set(ctx.instanceId, Date.now());
});

async function runTimers(opened, { prefix, count, ms }) {
  const idOf = (index) => `${prefix}-${index}`;
  const contents = { orchestrations: [sleeper], ...RUNTIME_OPTIONS.W5 };
  await whileRunning(opened, contents, async (runtime) => {
    const allEnded = countFacts(runtime, "orchestration-ended", count);
    await atRate(count, STARTS_PER_SECOND, (index) =>
      opened.client.start(sleeper, { instanceId: idOf(index), input: ms }),
    ); // T1
    await allEnded; // T3
  });
  return Array.from({ length: count }, (_, index) => idOf(index));
}

/** T2 */
async function readTimers(client, ids) {
  const timers = [];
  await doAll(ids.length, READS_IN_FLIGHT, async (index) => {
    const history = await client.readHistory(ids[index]);
    expectEqual(history.at(-1)?.type, "OrchestrationCompleted", "the last event of a history");
    const dueAt = history.find(({ type }) => type === "TimerCreated").fireAtMs;
    timers.push({ dueAt, lateMs: wentOnAt.get(ids[index]) - dueAt });
  });
  return timers;
}

await runMeasured(({ store, count = 1_000, ms = 1_000, warmupCount = 200 }) =>
  withClient(store, async (opened) => {
    await runTimers(opened, { prefix: "warm-up", count: warmupCount, ms: 10 });
    const timers = await readTimers(opened.client, await runTimers(opened, { prefix: "timer", count, ms }));
    const lateMs = timers.map((timer) => timer.lateMs);
    const dueAt = timers.map((timer) => timer.dueAt).toSorted((one, other) => one - other);
    return [...latencyMetrics(lateMs, "lateness"), metric("due-within", dueAt.at(-1) - dueAt[0], "ms")];
  }),
);
