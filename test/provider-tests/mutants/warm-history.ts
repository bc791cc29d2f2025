import type { Mutant } from "./mutant.js";

export const WARM_HISTORY: readonly Mutant[] = [];
