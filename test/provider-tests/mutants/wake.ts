import type { Mutant } from "./mutant.js";

export const WAKE: readonly Mutant[] = [];
