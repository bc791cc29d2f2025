import type { Mutant } from "./mutant.js";

export const CANCELLED_TIMERS: readonly Mutant[] = [];
