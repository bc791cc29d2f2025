// bench/peers/settings.mjs — how each peer is set up. What is not named here is as its makers ship it.
//
// Each was tried at several settings in turns, on 2 cores; the best is kept. README.md says what was tried.

export const DBOS_SETTINGS = Object.freeze({
  /** The default. More connections only wait for the same two cores. */
  systemDatabasePoolSize: 10,
});

export const OPENWORKFLOW_SETTINGS = Object.freeze({
  /** Of the pool to PostgreSQL; its driver's default. */
  connections: 10,
  /** A worker that finds nothing, or has no free slot, sleeps for 50 to 100 ms; meanwhile another one may look. */
  W1: Object.freeze({ workers: 2, concurrency: 50 }),
  /** The more workers look, the sooner one of them sees a start. There is no option for how often one looks. */
  W3: Object.freeze({ workers: 32, concurrency: 1 }),
  W7: Object.freeze({ workers: 0 }),
});

export const RESTATE_SETTINGS = Object.freeze({
  /** Instead of 24, which are for growing to many nodes: on one node each costs CPU, and shares no sync with others. */
  RESTATE_DEFAULT_NUM_PARTITIONS: "1",
});
