import type { Mutant } from "./mutant.js";

export const LONG_POLLING: readonly Mutant[] = [];
