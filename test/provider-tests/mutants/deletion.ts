import type { Mutant } from "./mutant.js";

export const DELETION: readonly Mutant[] = [];
