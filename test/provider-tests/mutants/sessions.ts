import type { Mutant } from "./mutant.js";

export const SESSIONS: readonly Mutant[] = [];
