// provider-tests/check-factory.ts — a misspelled property of a factory would silently prove less than its author thinks.

import { InvalidOptionsError } from "../errors.js";
import { checkOptions, integerBetween, isFunction, isObject, type OptionCheck, oneOf } from "../options.js";
import { isProvider } from "../provider/is-provider.js";
import type { ProviderFactory, TestStore } from "./provider-case.js";

const CHECKS: Readonly<Record<keyof ProviderFactory, OptionCheck>> = Object.freeze({
  open: isFunction,
  time: oneOf("virtual", "real"),
  polling: oneOf("long", "short"),
  lockTimeoutMs: integerBetween(10, 3_600_000),
  shortPollThresholdMs: integerBetween(1, 60_000),
});

const STORE_CHECKS: Readonly<Record<keyof TestStore, OptionCheck>> = Object.freeze({
  provider: isProvider,
  openAnother: isFunction,
  reopen: isFunction,
  corruptHistory: isFunction,
  corruptQueues: isFunction,
  maxAttemptCount: isFunction,
  close: isFunction,
});

/** What a factory has opened. A misspelled hook would only skip cases. @throws InvalidOptionsError */
export function checkStore(store: unknown): void {
  const what = "open, the store";
  const wrong = isObject(store);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: it ${wrong}.`);
  if (isProvider(store) === null) {
    throw new InvalidOptionsError(`${what}: a provider alone was returned; return { provider } instead.`);
  }
  checkOptions(what, store, STORE_CHECKS);
  if ((store as Partial<TestStore>).provider === undefined) throw new InvalidOptionsError(`${what}: no 'provider'.`);
}

/** @throws InvalidOptionsError */
export function checkFactory(what: string, factory: unknown): void {
  const wrong = isObject(factory);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: the factory ${wrong}.`);
  checkOptions(`${what}, factory`, factory, CHECKS);
  if ((factory as Partial<ProviderFactory>).open === undefined) {
    throw new InvalidOptionsError(`${what}: the factory has no 'open'.`);
  }
}
