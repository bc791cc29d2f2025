// cases/tag-filtering.ts — a worker is given only work with tags that it asks for.

import type { Category } from "../provider-case.js";

export const tagFiltering: Category = {
  name: "tag_filtering",
  about: "A worker is given only work with tags that it asks for.",
  cases: [],
};
