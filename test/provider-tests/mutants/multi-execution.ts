import type { Mutant } from "./mutant.js";

export const MULTI_EXECUTION: readonly Mutant[] = [];
