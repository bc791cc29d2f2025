import type { Mutant } from "./mutant.js";

export const POISON_MESSAGE: readonly Mutant[] = [];
