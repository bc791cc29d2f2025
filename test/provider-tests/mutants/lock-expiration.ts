import type { Mutant } from "./mutant.js";

export const LOCK_EXPIRATION: readonly Mutant[] = [];
