// provider/kit/admin-arguments.ts — what bulk operations may be asked. Checked at both doors, the client's and the kit's:
// a misspelled condition would match everything.

import { InvalidOptionsError } from "../../errors.js";
import { checkOptions, integerBetween, isObject, type OptionCheck } from "../../options.js";
import type { InstanceFilter, PruneOptions } from "../admin.js";

const isCount = integerBetween(0, Number.MAX_SAFE_INTEGER);

const FILTER_CHECKS: Readonly<Record<keyof InstanceFilter, OptionCheck>> = Object.freeze({
  instanceIds: (value: unknown) => (Array.isArray(value) ? null : "must be an array of instance ids"),
  completedBeforeMs: isCount,
  limit: isCount,
});

const PRUNE_CHECKS: Readonly<Record<keyof PruneOptions, OptionCheck>> = Object.freeze({
  keepLast: isCount,
  completedBeforeMs: isCount,
});

/** No filter at all is a mistake, never a wish to take everything. @throws InvalidOptionsError */
export function checkInstanceFilter(what: string, filter: unknown): void {
  const wrong = isObject(filter);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: the filter ${wrong}.`);
  checkOptions(what, filter, FILTER_CHECKS);
}

/** @throws InvalidOptionsError */
export function checkPruneOptions(what: string, options: unknown): void {
  checkOptions(what, options, PRUNE_CHECKS);
}
