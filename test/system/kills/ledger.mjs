// kills/ledger.mjs — every run of every activity, in one file that all workers append to: began, ended, acknowledged.
//
// A call is one ActivityScheduled event: `<instance>:<execution>:<event id>`. An activity may run again as long as nobody
// has heard that its outcome is stored, and never afterwards.
//
//   E1. No run of a call begins after its outcome was acknowledged to a worker. The order of lines tells (J2).
//   E2. The outcome of a call is acknowledged once.
//   E3. All runs of a call have one idempotency key.

import { appendTo, linesOf } from "../fleet/appending.mjs";

/** The same activities, whose runs are written down. */
export function inLedger(activities, file) {
  const write = appendTo(file);
  return activities.map((definition) =>
    Object.freeze({
      ...definition,
      run: async (ctx, input) => {
        const call = callOf(ctx);
        write({ line: "began", call, key: ctx.idempotencyKey });
        try {
          return await definition.run(ctx, input);
        } finally {
          write({ line: "ended", call });
        }
      },
    }),
  );
}

/** An observer that writes down which outcomes the store has acknowledged. */
export function acknowledgedTo(file) {
  const write = appendTo(file);
  return (fact) => {
    if (fact.type !== "activity-ended") return;
    if (fact.outcome === "success" || fact.outcome === "failed")
      write({ line: "acknowledged", call: callOf(fact.ref) });
  };
}

/** By call: how often it began, when it began last, whether a run came to its end. And what is wrong by the ledger alone. */
export function readLedger(file) {
  const calls = new Map();
  const problems = [];
  for (const { line, call, key, at } of linesOf(file)) {
    const seen = calls.get(call) ?? { runs: 0, lastBeganAt: 0, hasEnded: false, isAcknowledged: false, key };
    calls.set(call, seen);
    if (line === "ended") seen.hasEnded = true;
    else if (line === "acknowledged") {
      if (seen.isAcknowledged) problems.push(`${call} was acknowledged twice`); // E2
      seen.isAcknowledged = true;
    } else {
      if (seen.isAcknowledged) problems.push(`${call} ran again after it was acknowledged`); // E1
      if (seen.key !== key) problems.push(`${call} has two idempotency keys: ${seen.key} and ${key}`); // E3
      seen.runs += 1;
      seen.lastBeganAt = at;
    }
  }
  return { calls, problems };
}

export function callOf({ instanceId, executionId, activityId }) {
  return `${instanceId}:${executionId}:${activityId}`;
}
