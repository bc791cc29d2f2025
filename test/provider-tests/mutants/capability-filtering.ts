import type { Mutant } from "./mutant.js";

export const CAPABILITY_FILTERING: readonly Mutant[] = [];
