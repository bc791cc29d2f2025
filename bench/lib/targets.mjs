// bench/lib/targets.mjs — the ratios that issue 6 wants to see, as far as this run can tell them. Nothing is asserted.

const OURS = "duroxide-ts";

/**
 * @typedef {object} Target
 * @property {string} what
 * @property {number | undefined} measured   undefined: not in this run
 * @property {"×" | "%" | "ms" | "bytes" | "units" | "1/s"} unit
 * @property {number} least   what it must be at least; or at most, where less is better
 * @property {number} moonshot
 * @property {boolean} isLessBetter
 */

/** @type {(results: import("./results.mjs").Results, stores: readonly string[]) => readonly Target[]} */
export function targetsOf(results, stores) {
  const ours = (workload, store, metric) => results.value(workload, store, OURS, metric);
  const unitMs = results.value("commit-unit", "sqlite-full", "floor", "commit-ms");
  const againstPeer = (workload, store, metric, peer) =>
    ratio(ours(workload, store, metric), results.value(workload, store, peer, metric));
  const full = "sqlite-full";
  const rate = "chains-per-second";
  const againstSix = ratio(ours("W1", full, rate), results.value("W1", full, "floor", `${rate}-in-six`));
  return [
    more(`W1, ${full}, against openworkflow`, againstPeer("W1", full, rate, "openworkflow"), "×", 8, 15),
    more(`W1, ${full}, share of the floor`, percent(againstPeer("W1", full, rate, "floor")), "%", 50, 70),
    more(`W1, ${full}, share of the floor in six commits`, percent(againstSix), "%", 50, 70),
    more("W1, postgres, against openworkflow", againstPeer("W1", "postgres", rate, "openworkflow"), "×", 3, 8),
    more("W1, postgres, against DBOS", againstPeer("W1", "postgres", rate, "dbos"), "×", 5, 14),
    ...stores.map((store) =>
      more(`W2b, ample slots, ${store}, share of the ideal`, ours("W2b-ample", store, "share-of-bound"), "%", 60, 80),
    ),
    more(`W2b at 2/2, ${full}, share of the bound`, ours("W2b-2/2", full, "share-of-bound"), "%", 90, 96),
    less(`W3 p50, ${full}, in commits of six rows`, ratio(ours("W3", full, "latency-p50"), unitMs), "units", 10, 6),
    ...stores.map((store) =>
      less(
        `W4, ${store}, last 100 steps of 10,000 against steps 1,000–1,100`,
        ours("W4-10000", store, "last-to-1000"),
        "×",
        1.15,
        1.05,
      ),
    ),
    ...[1_000, 10_000].map((steps) =>
      less(
        `W4, ${full}, a step of ${steps.toLocaleString("en-US")}, in commits of six rows`,
        ratio(ours(`W4-${steps}`, full, "step-mean"), unitMs),
        "units",
        5,
        3,
      ),
    ),
    ...stores.map((store) =>
      less(`W5, ${store}, 10,000 timers, lateness p99`, ours("W5-10000", store, "lateness-p99"), "ms", 60, 20),
    ),
    ...stores.map((store) =>
      less(
        `W6, ${store}, an evicted instance in memory`,
        ours("W6-evicted", store, "heap-per-instance"),
        "bytes",
        1_024,
        0,
      ),
    ),
    ...[full, "postgres"].map((store) =>
      more(
        `W7, ${store}, against openworkflow`,
        againstPeer("W7", store, "starts-per-second", "openworkflow"),
        "×",
        4,
        15,
      ),
    ),
    ...[
      [2, 0.9],
      [4, 0.8],
    ].map(([workers, least]) =>
      more(
        `W8, ${workers} processes against one`,
        ratio(ours(`W8-${workers}`, "postgres", rate), ours("W8-1", "postgres", rate)),
        "×",
        least,
        1,
      ),
    ),
    ...stores.map((store) => less(`W9, ${store}, CPU of an idle worker`, ours("W9", store, "cpu"), "%", 1, 0)),
    less("W9, postgres, statements of an idle worker", ours("W9", "postgres", "statements-per-second"), "1/s", 1, 0),
    ...["throughput", "heap"].map((what) =>
      less(
        `steady, ${full}, ${what} of the last minute off the second`,
        offBy(ours("steady", full, `${what}-last-to-second`)),
        "%",
        10,
        3,
      ),
    ),
  ];
}

/** How far a target that was measured is reached. */
export function reached({ measured, least, moonshot, isLessBetter }) {
  const isAt = (wanted) => (isLessBetter ? measured <= wanted : measured >= wanted);
  if (isAt(moonshot)) return "moonshot";
  return isAt(least) ? "yes" : "no";
}

/** @returns {Target} */
function more(what, measured, unit, least, moonshot) {
  return { what, measured, unit, least, moonshot, isLessBetter: false };
}

/** @returns {Target} */
function less(what, measured, unit, least, moonshot) {
  return { what, measured, unit, least, moonshot, isLessBetter: true };
}

function ratio(one, other) {
  return one === undefined || other === undefined ? undefined : one / other;
}

function percent(share) {
  return share === undefined ? undefined : share * 100;
}

function offBy(share) {
  return share === undefined ? undefined : Math.abs(share - 1) * 100;
}
