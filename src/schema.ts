// schema.ts — checks a value against a Standard Schema, and says in one line what is wrong with it.
//
//   S1. Whoever sends a value checks it and sends the value as given; whoever receives one uses what the schema made
//       of it. So a schema that transforms is applied once, where the value is used.
//   S2. No schema, no check.

import type { Schema, SchemaIssue, SchemaResult } from "./define.js";
import { InvalidInputError, MisuseError } from "./errors.js";

/**
 * For orchestrations, which cannot wait for a foreign promise. `what` names the value: `input of orchestration 'Checkout'`.
 *
 * @throws InvalidInputError where the value does not fit; MisuseError where the schema answers with a promise
 */
export function validateSync<T>(schema: Schema<T> | null, value: unknown, what: string): T {
  if (schema === null) return value as T; // S2
  const result = schema["~standard"].validate(value);
  if ("then" in result) {
    result.catch(() => {}); // Nobody will wait for it, and its failure must not end the process.
    throw new MisuseError(
      `The schema for the ${what} validates asynchronously, which would not replay. Use a synchronous schema here, and do the rest in an activity.`,
    );
  }
  return acceptedValue(result, what);
}

/** @throws InvalidInputError where the value does not fit */
export async function validateAsync<T>(schema: Schema<T> | null, value: unknown, what: string): Promise<T> {
  if (schema === null) return value as T; // S2
  return acceptedValue(await schema["~standard"].validate(value), what);
}

function acceptedValue<T>(result: SchemaResult<T>, what: string): T {
  if (result.issues === undefined) return result.value;
  throw new InvalidInputError(`The ${what} is invalid: ${result.issues.map(formatIssue).join("; ")}`);
}

/** `items[0].price: Expected number` */
function formatIssue(issue: SchemaIssue): string {
  const keys = (issue.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment));
  const path = keys.map((key, place) => formatKey(key, place === 0)).join("");
  return path === "" ? issue.message : `${path}: ${issue.message}`;
}

function formatKey(key: PropertyKey, isFirst: boolean): string {
  if (typeof key === "number") return `[${key}]`;
  return isFirst ? String(key) : `.${String(key)}`;
}
