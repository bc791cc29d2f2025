import type { Mutant } from "./mutant.js";

export const CANCELLATION: readonly Mutant[] = [];
