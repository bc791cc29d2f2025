// cases/index.ts — all categories of the suite, in the order in which they are reported.

import type { Category } from "../provider-case.js";
import { atomicity } from "./atomicity.js";

export const CATEGORIES: readonly Category[] = [atomicity];
