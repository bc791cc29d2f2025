import type { Mutant } from "./mutant.js";

export const INSTANCE_LOCKING: readonly Mutant[] = [];
