// cases/sessions.ts — the work of a session stays with one owner, as long as that one lives.

import type { Category } from "../provider-case.js";

export const sessions: Category = {
  name: "sessions",
  about: "The work of a session stays with one owner, as long as that one lives.",
  cases: [],
};
