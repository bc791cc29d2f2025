// test/golden/programs.ts — all code that has golden histories, by the name under which these are kept.
//
// FROZEN. A name, once recorded, stays with its code. `npm run golden:record -- --new <name>` records a new one.

import type { Golden } from "./golden.js";
import { branches } from "./programs/branches.js";
import { endings } from "./programs/endings.js";
import { families } from "./programs/families.js";
import { messages } from "./programs/messages.js";
import { state } from "./programs/state.js";
import { steps } from "./programs/steps.js";

export const GOLDENS: Readonly<Record<string, Golden>> = {
  ...steps,
  ...branches,
  ...messages,
  ...families,
  ...state,
  ...endings,
};
