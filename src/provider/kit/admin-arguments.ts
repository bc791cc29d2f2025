// provider/kit/admin-arguments.ts — what bulk operations may be asked. Checked at both doors, the client's and the kit's:
// a misspelled condition would match everything.

import { InvalidOptionsError } from "../../errors.js";
import { checkOptions, integerBetween, isArrayOf, isObject, type OptionCheck } from "../../options.js";
import type { InstanceFilter, PruneOptions } from "../admin.js";

const isCount = integerBetween(0, Number.MAX_SAFE_INTEGER);

const FILTER_CHECKS: Readonly<Record<keyof InstanceFilter, OptionCheck>> = Object.freeze({
  instanceIds: areIds,
  completedBeforeMs: isCount,
  limit: isCount,
});

const PRUNE_CHECKS: Readonly<Record<keyof PruneOptions, OptionCheck>> = Object.freeze({
  keepLast: isCount,
  completedBeforeMs: isCount,
});

/**
 * No filter at all is a mistake, never a wish to take everything. So is a promise of one, a map, or a list of ids that is
 * undefined.
 *
 * @throws InvalidOptionsError
 */
export function checkInstanceFilter(what: string, filter: unknown): void {
  const wrong = isObject(filter);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: the filter ${wrong}.`);
  if (!isPlain(filter)) throw new InvalidOptionsError(`${what}: the filter must be a plain object.`);
  if (Object.hasOwn(filter, "instanceIds") && filter.instanceIds === undefined) {
    throw new InvalidOptionsError(`${what}: 'instanceIds' is undefined. For any instance, leave it out.`);
  }
  checkOptions(what, filter, FILTER_CHECKS);
}

/** @throws InvalidOptionsError */
export function checkInstanceIds(what: string, ids: unknown): void {
  const wrong = areIds(ids);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: the instances ${wrong}.`);
}

/** @throws InvalidOptionsError */
export function checkPruneOptions(what: string, options: unknown): void {
  if (isObject(options) === null && !isPlain(options)) {
    throw new InvalidOptionsError(`${what}: the options must be a plain object.`);
  }
  checkOptions(what, options, PRUNE_CHECKS);
}

function areIds(value: unknown): string | null {
  return isArrayOf(value, (id) => typeof id === "string") ? null : "must be an array of instance ids";
}

/** Conditions that it inherits would be checked by nobody. */
function isPlain(value: unknown): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
