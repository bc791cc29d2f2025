// provider-tests/check-factory.ts — a misspelled property of a factory would silently prove less than its author thinks.

import { InvalidOptionsError } from "../errors.js";
import { checkOptions, integerBetween, isFunction, isObject, type OptionCheck, oneOf } from "../options.js";
import type { ProviderFactory } from "./provider-case.js";

const CHECKS: Readonly<Record<keyof ProviderFactory, OptionCheck>> = Object.freeze({
  open: isFunction,
  time: oneOf("virtual", "real"),
  polling: oneOf("long", "short"),
  lockTimeoutMs: integerBetween(10, 3_600_000),
  shortPollThresholdMs: integerBetween(1, 60_000),
});

/** @throws InvalidOptionsError */
export function checkFactory(what: string, factory: unknown): void {
  const wrong = isObject(factory);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: the factory ${wrong}.`);
  checkOptions(`${what}, factory`, factory, CHECKS);
  if ((factory as Partial<ProviderFactory>).open === undefined) {
    throw new InvalidOptionsError(`${what}: the factory has no 'open'.`);
  }
}
