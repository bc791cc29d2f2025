import type { Mutant } from "./mutant.js";

export const PRUNE: readonly Mutant[] = [];
