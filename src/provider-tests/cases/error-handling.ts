// cases/error-handling.ts — what is refused is refused clearly, and history that cannot be decoded is never taken for none.

import type { Category } from "../provider-case.js";

export const errorHandling: Category = {
  name: "error_handling",
  about: "What is refused is refused clearly, and history that cannot be decoded is never taken for none.",
  cases: [],
};
