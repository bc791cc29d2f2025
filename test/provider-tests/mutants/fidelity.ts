import type { Mutant } from "./mutant.js";

export const FIDELITY: readonly Mutant[] = [];
