import type { Mutant } from "./mutant.js";

export const INSTANCE_CREATION: readonly Mutant[] = [];
