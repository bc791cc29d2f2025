import type { Mutant } from "./mutant.js";

export const ERROR_HANDLING: readonly Mutant[] = [];
