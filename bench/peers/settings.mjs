// bench/peers/settings.mjs — how each peer is set up. What is not named here is as its makers ship it.

export const DBOS_SETTINGS = Object.freeze({ systemDatabasePoolSize: 20 });

export const OPENWORKFLOW_SETTINGS = Object.freeze({
  postgres: Object.freeze({ workers: 1, concurrency: 100, connections: 10 }),
  sqlite: Object.freeze({ workers: 1, concurrency: 100 }),
});

export const RESTATE_SETTINGS = Object.freeze({ RESTATE_DEFAULT_NUM_PARTITIONS: "1" });
