import type { Mutant } from "./mutant.js";

export const TAG_FILTERING: readonly Mutant[] = [];
