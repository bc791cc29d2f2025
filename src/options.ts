// options.ts — options are checked once, at the edge: a misspelled or impossible one is refused before anything starts.

import { InvalidOptionsError, messageOf } from "./errors.js";

/** Says what is wrong with a value, as the end of the sentence "option 'x' …"; null: nothing. */
export type OptionCheck = (value: unknown) => string | null;

/**
 * Refuses options that are unknown or fail their check. An option that is undefined counts as not given.
 * `what` names whom the options are for, as the user wrote it: `SqliteProvider.open`.
 *
 * @throws InvalidOptionsError
 */
export function checkOptions(what: string, given: unknown, fields: Readonly<Record<string, OptionCheck>>): void {
  if (given === undefined) return;
  const problem = isObject(given);
  if (problem !== null) throw new InvalidOptionsError(`${what}: the options ${problem}.`);
  for (const [name, value] of readEntries(what, given as object)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(fields, name)) throw new InvalidOptionsError(unknownOption(what, name, Object.keys(fields)));
    const wrong = fields[name]?.(value) ?? null;
    if (wrong !== null) throw new InvalidOptionsError(`${what}: option '${name}' ${wrong}.`);
  }
}

/** Getters are the caller's code, and may throw. */
function readEntries(what: string, options: object): [string, unknown][] {
  try {
    return Object.entries(options);
  } catch (cause) {
    throw new InvalidOptionsError(`${what}: the options cannot be read: ${messageOf(cause)}`, { cause });
  }
}

export function integerBetween(min: number, max: number): OptionCheck {
  return (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? null
      : `must be an integer from ${min} to ${max}, not ${shown(value)}`;
}

export function oneOf(...allowed: readonly string[]): OptionCheck {
  return (value) =>
    allowed.includes(value as string) ? null : `must be ${allowed.map(shown).join(" or ")}, not ${shown(value)}`;
}

export const isFunction: OptionCheck = (value) =>
  typeof value === "function" ? null : `must be a function, not ${shown(value)}`;

export const isString: OptionCheck = (value) =>
  typeof value === "string" ? null : `must be a string, not ${shown(value)}`;

export const isBoolean: OptionCheck = (value) =>
  typeof value === "boolean" ? null : `must be true or false, not ${shown(value)}`;

export const isObject: OptionCheck = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? null
    : `must be an object, not ${shown(value)}`;

/** Whether it is an array in which every place is filled, and passes. `every` alone would skip places that are empty. */
export function isArrayOf(value: unknown, isElement: (element: unknown) => boolean): boolean {
  return Array.isArray(value) && Array.from(value).every(isElement);
}

export const isClock: OptionCheck = (value) =>
  hasMethods(value, "now", "setTimer") ? null : `must be a clock with now() and setTimer(), not ${shown(value)}`;

export const isAbortSignal: OptionCheck = (value) =>
  hasMethods(value, "addEventListener", "removeEventListener")
    ? null
    : `must be an AbortSignal, such as the signal of an AbortController, not ${shown(value)}`;

/** Whether the value can do what is asked of it, whatever made it. */
export function hasMethods(value: unknown, ...names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === "function");
}

function unknownOption(what: string, name: string, known: readonly string[]): string {
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  if (nearest === undefined) return `${what}: unknown option '${name}'; there are none.`;
  const isTypo = nearest.distance <= Math.max(name.length, nearest.candidate.length) / 2;
  const hint = isTypo ? `Did you mean '${nearest.candidate}'?` : `The options are: ${known.join(", ")}.`;
  return `${what}: unknown option '${name}'. ${hint}`;
}

/** A value as messages show it. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (value === null || ["number", "boolean", "undefined", "bigint"].includes(typeof value)) return String(value);
  return Array.isArray(value) ? "an array" : `a ${typeof value}`.replace("a object", "an object");
}

/** How many letters must be added, removed or replaced to turn one word into the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[to.length]!;
}
