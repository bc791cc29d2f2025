import type { Mutant } from "./mutant.js";

export const QUEUE_SEMANTICS: readonly Mutant[] = [];
