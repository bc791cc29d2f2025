import type { Mutant } from "./mutant.js";

export const INSTANCE_STATUS: readonly Mutant[] = [];
