// provider-tests/checks.ts — the assertions of the suite. They count themselves: a case that checks nothing proves nothing.

import { inspect } from "node:util";
import { messageOf, ProviderError, type ProviderErrorKind } from "../errors.js";

/** A promise of the contract is broken. */
export class BrokenPromiseError extends Error {
  override readonly name = "BrokenPromiseError";
}

/** An object of which only some fields matter. */
export type Shape<T> = T extends readonly (infer E)[]
  ? readonly Shape<E>[]
  : T extends ReadonlyMap<unknown, unknown>
    ? T
    : T extends object
      ? { readonly [K in keyof T]?: Shape<T[K]> }
      : T;

export class Checks {
  #count = 0;

  /** How many checks were made so far. */
  get count(): number {
    return this.#count;
  }

  /** Deeply equal; a field that is undefined is as good as absent. `what` names what is looked at, as in "the history after the refused ack". */
  equal<T>(actual: T, expected: NoInfer<T>, what: string): void {
    this.#count += 1;
    if (!isEqual(actual, expected)) broken(what, expected, actual);
  }

  /** Every field that `expected` has is equal; others do not matter. Arrays must be as long. */
  matches<T>(actual: T, expected: Shape<T>, what: string): void {
    this.#count += 1;
    if (!fits(actual, expected)) broken(what, expected, actual);
  }

  isNull(actual: unknown, what: string): void {
    this.#count += 1;
    if (actual !== null) broken(what, null, actual);
  }

  /** Neither null nor undefined. Answers with the value. */
  found<T>(actual: T | null | undefined, what: string): T {
    this.#count += 1;
    if (actual === null || actual === undefined) throw new BrokenPromiseError(`${what}: nothing was found.`);
    return actual;
  }

  ok(holds: boolean, what: string): void {
    this.#count += 1;
    if (!holds) throw new BrokenPromiseError(`${what}: it does not hold.`);
  }

  /** Rejects with a `ProviderError` of this kind (of any kind but "transient", where none is named). */
  async refused(
    call: Promise<unknown>,
    kind: ProviderErrorKind | readonly ProviderErrorKind[] | "for good",
    what: string,
  ): Promise<ProviderError> {
    this.#count += 1;
    const error = await call.then(
      (value) => {
        throw new BrokenPromiseError(`${what}: expected a refusal, got ${show(value)}.`);
      },
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof ProviderError)) {
      throw new BrokenPromiseError(`${what}: expected a ProviderError, got ${messageOf(error)}.`, { cause: error });
    }
    const fitting = kind === "for good" ? !error.retryable : [kind].flat().includes(error.kind);
    if (!fitting) {
      const message = `${what}: expected a refusal of kind "${[kind].flat().join('" or "')}", got "${error.kind}" (${error.message}).`;
      throw new BrokenPromiseError(message, { cause: error });
    }
    return error;
  }

  fail(what: string): never {
    this.#count += 1;
    throw new BrokenPromiseError(what);
  }
}

function isEqual(a: unknown, b: unknown): boolean {
  return compare(a, b, (x, y) => new Set([...definedKeys(x), ...definedKeys(y)]));
}

/** Whether `actual` has everything that `expected` has. */
function fits(actual: unknown, expected: unknown): boolean {
  return compare(actual, expected, (_actual, wanted) => definedKeys(wanted));
}

/** Deep comparison. `keys` tells which fields of two objects must agree; arrays and maps must agree in whole. */
function compare(a: unknown, b: unknown, keys: (a: object, b: object) => Iterable<string>): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((element, index) => compare(element, b[index], keys));
  }
  if (a instanceof Map || b instanceof Map) {
    if (!(a instanceof Map) || !(b instanceof Map) || a.size !== b.size) return false;
    return [...a].every(([key, value]) => b.has(key) && compare(value, b.get(key), keys));
  }
  return [...keys(a, b)].every((key) => compare(Reflect.get(a, key), Reflect.get(b, key), keys));
}

function definedKeys(value: object): string[] {
  return Object.keys(value).filter((key) => Reflect.get(value, key) !== undefined);
}

function broken(what: string, expected: unknown, actual: unknown): never {
  throw new BrokenPromiseError(`${what}: expected ${show(expected)}, got ${show(actual)}.`);
}

function show(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: 120, maxStringLength: 200, maxArrayLength: 20 });
}
