import type { Mutant } from "./mutant.js";

export const BULK_DELETION: readonly Mutant[] = [];
