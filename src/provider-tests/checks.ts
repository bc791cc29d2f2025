// provider-tests/checks.ts — the assertions of the suite. They count themselves: a case that checks nothing proves nothing.

import { inspect } from "node:util";
import { messageOf, ProviderError, type ProviderErrorKind } from "../errors.js";

/**
 * A promise of the contract is broken. The message tells what was looked at, what was expected and what was found.
 *
 * @example
 * const { results } = await validate({ open: async () => ({ provider: new MemoryProvider() }), time: "real" });
 * for (const { promise, outcome } of results) {
 *   if (outcome.kind === "failed" && outcome.error instanceof BrokenPromiseError) report(promise);
 * }
 */
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
    const where = differenceOf(actual, expected, allKeys);
    if (where !== null) broken(what, expected, actual, where);
  }

  /** Every field that `expected` has is equal; others do not matter. Arrays must be as long. */
  matches<T>(actual: T, expected: Shape<T>, what: string): void {
    this.#count += 1;
    const where = differenceOf(actual, expected, wantedKeys);
    if (where !== null) broken(what, expected, actual, where);
  }

  /** Null, and not merely undefined. */
  isNull(actual: unknown, what: string): void {
    this.#count += 1;
    if (actual !== null) broken(what, null, actual, "");
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
    const wanted = kind === "for good" ? "a refusal for good" : `a refusal of kind "${[kind].flat().join('" or "')}"`;
    const error = await call.then(
      (value) => {
        throw new BrokenPromiseError(`${what}: expected ${wanted}, but it succeeded with ${show(value)}.`);
      },
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof ProviderError)) {
      throw new BrokenPromiseError(`${what}: expected a ProviderError, got ${messageOf(error)}.`, { cause: error });
    }
    const fitting = kind === "for good" ? !error.retryable : [kind].flat().includes(error.kind);
    if (!fitting) {
      const message = `${what}: expected ${wanted}, got one of kind "${error.kind}" (${error.message}).`;
      throw new BrokenPromiseError(message, { cause: error });
    }
    return error;
  }

  /** For what must not have come to this point. */
  fail(what: string): never {
    this.#count += 1;
    throw new BrokenPromiseError(what);
  }
}

type KeysOf = (actual: object, expected: object) => Iterable<string>;

const allKeys: KeysOf = (actual, expected) => new Set([...definedKeys(actual), ...definedKeys(expected)]);
const wantedKeys: KeysOf = (_actual, expected) => definedKeys(expected);

/** Where the two differ, as a path such as `.item.messages[2]`; null where they do not. Arrays and maps agree in whole. */
function differenceOf(a: unknown, b: unknown, keys: KeysOf, path = ""): string | null {
  if (Object.is(a, b)) return null;
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) return path;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b)) return path;
    if (a.length !== b.length) return `${path}.length`;
    return first(a.keys(), (index) => differenceOf(a[index], b[index], keys, `${path}[${index}]`));
  }
  if (a instanceof Map || b instanceof Map) {
    if (!(a instanceof Map) || !(b instanceof Map)) return path;
    if (a.size !== b.size) return `${path}.size`;
    return first(a.keys(), (key) =>
      b.has(key)
        ? differenceOf(a.get(key), b.get(key), keys, `${path}.get(${show(key)})`)
        : `${path}.get(${show(key)})`,
    );
  }
  return first(keys(a, b), (key) => differenceOf(Reflect.get(a, key), Reflect.get(b, key), keys, `${path}.${key}`));
}

function first<T>(values: Iterable<T>, look: (value: T) => string | null): string | null {
  for (const value of values) {
    const found = look(value);
    if (found !== null) return found;
  }
  return null;
}

function definedKeys(value: object): string[] {
  return Object.keys(value).filter((key) => Reflect.get(value, key) !== undefined);
}

function broken(what: string, expected: unknown, actual: unknown, where: string): never {
  const hint = where === "" ? "" : ` They differ at ${where}.`;
  throw new BrokenPromiseError(`${what}: expected ${show(expected)}, got ${show(actual)}.${hint}`);
}

function show(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: 120, maxStringLength: 200, maxArrayLength: 20 });
}
