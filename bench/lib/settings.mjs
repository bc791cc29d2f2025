// bench/lib/settings.mjs — the options that our own workloads run with. The runner prints them.

/** As somebody chooses them who wants throughput: a slot for every instance that the load has in flight. */
const THROUGHPUT = Object.freeze({ orchestrationConcurrency: 100, workerConcurrency: 100 });

/** By workload, what differs from the defaults of the runtime. */
export const RUNTIME_OPTIONS = Object.freeze({
  W1: THROUGHPUT,
  W2: THROUGHPUT,
  "W2b-ample": THROUGHPUT,
  "W2b-2/2": Object.freeze({ orchestrationConcurrency: 2, workerConcurrency: 2 }),
  W3: Object.freeze({}),
  W4: Object.freeze({}),
  W5: THROUGHPUT,
  "W6-warm": THROUGHPUT,
  "W6-evicted": Object.freeze({ ...THROUGHPUT, warmCacheBytes: 0 }),
  W8: THROUGHPUT,
  W9: Object.freeze({}),
  W10: Object.freeze({}),
  overload: Object.freeze({}),
  steady: THROUGHPUT,
});

/** By kind of store, what differs from the defaults of its provider. */
export const PROVIDER_OPTIONS = Object.freeze({
  sqlite: Object.freeze({}),
  postgres: Object.freeze({}),
});
