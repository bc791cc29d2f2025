import type { Mutant } from "./mutant.js";

export const MANAGEMENT: readonly Mutant[] = [];
