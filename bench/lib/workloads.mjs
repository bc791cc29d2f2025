// bench/lib/workloads.mjs — what `npm run bench` can measure: each workload with its program, its sizes and its stores.

export const STORES = Object.freeze(["sqlite-full", "sqlite-process-crash", "postgres"]);

const EXPOSE_GC = ["--expose-gc"];
/** Long enough for the garbage collector and the checkpoints to have their share. After three seconds V8 still compiles. */
const RATE = { seconds: 4, warmupSeconds: 8 };
/** Short enough for three minutes in all. */
const QUICK_RATE = { warmupSeconds: 3 };
/** For each worker process that shares a load: of one alone that is as long as for the other workloads, or nearly. */
const WARM_UP_CHAINS = 6_000;

/**
 * @typedef {object} Workload
 * @property {string} name   as `workload` in the JSON
 * @property {string} [family]   what `--only` may call it, too, and what the settings of the peers call it
 * @property {string} title
 * @property {string | null} program   of bench/workloads; null where we have no part in it
 * @property {string} [floor]   the program of bench/floor that goes with it
 * @property {boolean} [hasPeers]
 * @property {readonly string[]} stores
 * @property {object} args   for all systems alike
 * @property {object} [quickArgs]   what is otherwise with --quick
 * @property {readonly string[]} [nodeFlags]
 * @property {boolean} [isQuick]   part of --quick
 * @property {boolean} [isSlow]   one round is enough, whatever --rounds says
 * @property {readonly string[]} [needs]   what must be measured beside it for the ratios to be told
 * @property {number} limitSeconds   a process that takes longer is ended, and has failed
 */

/** @type {(minutes: number) => readonly Workload[]} */
export function workloads(minutes) {
  return [
    {
      name: "commit-unit",
      title: "the unit of the ratios: one commit of six rows, with fsync",
      program: null,
      floor: "commit-unit",
      stores: ["sqlite-full"],
      args: {},
      isQuick: true,
      limitSeconds: 60,
    },
    {
      name: "W1",
      title: "chain of 5 activities, 100 in flight",
      program: "w1-chain",
      floor: "floor",
      hasPeers: true,
      stores: STORES,
      args: { ...RATE, inFlight: 100 },
      quickArgs: QUICK_RATE,
      isQuick: true,
      limitSeconds: 120,
    },
    {
      name: "W2",
      title: "fan-out of 5 activities, 100 in flight",
      program: "w2-fan-out",
      stores: STORES,
      args: { ...RATE, inFlight: 100 },
      limitSeconds: 120,
    },
    ...["ample", "2/2"].map((slots) => ({
      name: `W2b-${slots}`,
      family: "W2b",
      title: `20 in flight, 5 parallel activities of 10 ms; slots: ${slots}`,
      program: "w2b-stress",
      stores: STORES,
      args: { ...RATE, inFlight: 20, slots },
      limitSeconds: 120,
    })),
    {
      name: "W3",
      title: "one at a time, one activity, from start to result in the client",
      program: "w3-one-at-a-time",
      hasPeers: true,
      stores: STORES,
      args: { seconds: 4, warmupSeconds: 3, inFlight: 1 },
      quickArgs: { seconds: 2 },
      isQuick: true,
      needs: ["commit-unit"],
      limitSeconds: 120,
    },
    ...[1_000, 10_000].map((steps) => ({
      name: `W4-${steps}`,
      family: "W4",
      title: `one orchestration of ${steps.toLocaleString("en-US")} activities, one after the other`,
      program: "w4-long-chain",
      stores: STORES,
      args: { steps },
      isQuick: steps === 1_000,
      needs: ["commit-unit"],
      limitSeconds: 600,
    })),
    ...[1_000, 10_000].map((count) => ({
      name: `W5-${count}`,
      family: "W5",
      title: `${count.toLocaleString("en-US")} one-second timers, each in an instance of its own`,
      program: "w5-timers",
      stores: STORES,
      args: { count },
      limitSeconds: 300,
    })),
    ...["warm", "evicted"].map((cache) => ({
      name: `W6-${cache}`,
      family: "W6",
      title: `memory of 10,000 suspended instances, ${cache}`,
      program: "w6-suspended",
      stores: STORES,
      args: { count: 10_000, cache },
      nodeFlags: EXPOSE_GC,
      limitSeconds: 300,
    })),
    {
      name: "W7",
      title: "durable starts, 32 in flight, no runtime",
      program: "w7-starts",
      hasPeers: true,
      stores: STORES,
      args: { ...RATE, inFlight: 32 },
      quickArgs: QUICK_RATE,
      isQuick: true,
      limitSeconds: 120,
    },
    ...[1, 2, 4].map((workers) => ({
      name: `W8-${workers}`,
      family: "W8",
      title: `W1's load, 100 in flight in all from one client process, on ${workers} worker process${workers > 1 ? "es" : ""}`,
      program: "w8-processes",
      stores: ["postgres"],
      args: { ...RATE, warmupSeconds: 1, warmupChains: WARM_UP_CHAINS * workers, inFlight: 100, workers },
      limitSeconds: 120,
    })),
    {
      name: "W9",
      title: "one idle worker process, for a minute",
      program: "w9-idle",
      stores: STORES,
      args: { seconds: 60, settleSeconds: 35 },
      isSlow: true,
      limitSeconds: 300,
    },
    {
      name: "W10",
      title: "cold replay of a history of 10,000 events",
      program: "w10-cold-replay",
      stores: STORES,
      args: { events: 10_000 },
      limitSeconds: 600,
    },
    {
      name: "overload",
      title: "2,000 chains at once on default slots, beside a busy instance and an endless fan-out",
      program: "overload",
      stores: STORES,
      args: { count: 2_000, branches: 500 },
      limitSeconds: 300,
    },
    {
      name: "steady",
      title: `${minutes} minutes of W1, finished instances deleted every few seconds`,
      program: "steady",
      stores: ["sqlite-full"],
      args: { minutes, inFlight: 100, deleteEverySeconds: 3 },
      nodeFlags: EXPOSE_GC,
      isSlow: true,
      limitSeconds: minutes * 60 + 300,
    },
  ];
}

export function familyOf({ name, family }) {
  return family ?? name;
}
