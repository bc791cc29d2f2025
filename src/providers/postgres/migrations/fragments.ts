// providers/postgres/migrations/fragments.ts — what many functions are declared with. Part of frozen scripts: never edited either.

/** T1: nothing but indexes, one row by one. */
export const LOOPS_ONLY = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan`;

/** The same, for statements that join nothing. */
export const INDEXES_ONLY = `SET enable_seqscan = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan`;

/** Nobody else's functions and operators are called. */
export const OWN_NAMES = "SET search_path = pg_catalog, pg_temp";
