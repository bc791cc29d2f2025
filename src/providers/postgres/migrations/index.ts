// providers/postgres/migrations/index.ts — all migrations, in order. A released one is never edited: add another.

import { tables } from "./0001-tables.js";
import { turns } from "./0002-turns.js";
import { activities } from "./0003-activities.js";
import { reading } from "./0004-reading.js";
import { management } from "./0005-management.js";

export interface Migration {
  readonly version: number;
  readonly name: string;
  /** `{schema}` stands for the quoted name of the schema. */
  readonly script: string;
}

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "tables", script: tables },
  { version: 2, name: "turns", script: turns },
  { version: 3, name: "activities", script: activities },
  { version: 4, name: "reading", script: reading },
  { version: 5, name: "management", script: management },
];
