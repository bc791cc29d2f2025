// mutants/index.ts — all mutants, in the order of the categories.

import { ATOMICITY } from "./atomicity.js";
import type { Mutant } from "./mutant.js";

export const MUTANTS: readonly Mutant[] = [...ATOMICITY];
