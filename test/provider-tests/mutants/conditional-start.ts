import type { Mutant } from "./mutant.js";

export const CONDITIONAL_START: readonly Mutant[] = [];
