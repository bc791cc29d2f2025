import type { Mutant } from "./mutant.js";

export const KV_STORE: readonly Mutant[] = [];
