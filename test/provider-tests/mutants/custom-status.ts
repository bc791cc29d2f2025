import type { Mutant } from "./mutant.js";

export const CUSTOM_STATUS: readonly Mutant[] = [];
