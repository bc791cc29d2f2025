// test/fuzz/junk.ts — what a caller without types may pass, by mistake or in malice; and how refusals are judged.

import fc from "fast-check";
import { DuroxideError } from "../../src/errors.js";
import { anyText } from "../history/arbitrary-history.js";

/** Cannot be put into words. */
function hostile(): object {
  const refuse = (): never => {
    throw new RangeError("do not touch");
  };
  return { toString: refuse, valueOf: refuse, [Symbol.toPrimitive]: refuse, toJSON: refuse };
}

/** Cannot even be read: for what is read at once, such as options. */
export function unreadable(): object {
  return Object.defineProperty({}, "instanceId", {
    enumerable: true,
    get: () => {
      throw new TypeError("a getter of the caller's");
    },
  });
}

/** Fresh ones each time: some can be used only once. */
export const ODDITIES: readonly (() => unknown)[] = [
  hostile,
  () => Symbol("s"),
  () => Symbol.iterator,
  () => () => undefined,
  () => class Odd {},
  () => 12n,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => -0,
  () => new Date(Number.NaN),
  () => Promise.resolve(1),
  () => Object.create(null),
  () => Object.create({ inherited: 1, timeoutMs: "x", version: 7 }),
  () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
  () => new Proxy([], {}),
  () => new Array(3),
  () => [undefined, null, Symbol("in a list")],
  () => new Map([["instanceId", 1]]),
  () => new Error("an error"),
  () => "x".repeat(100_000),
];

export const anyJunk: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...ODDITIES).map((make) => make()) },
  { weight: 1, arbitrary: anyText },
  { weight: 1, arbitrary: fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger(), fc.boolean(), fc.constant(null)) },
  {
    weight: 2,
    arbitrary: fc.anything({
      maxDepth: 2,
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    }),
  },
);

/** Anything but an object that could pass for options that say nothing. */
export const noOptions: fc.Arbitrary<unknown> = anyJunk.filter((junk) => {
  return junk !== undefined && (typeof junk !== "object" || junk === null || Array.isArray(junk));
});

/** What an error is, in a word. Anything but ours is told in full. */
export function codeOf(error: unknown): string {
  if (error instanceof DuroxideError && /^DUROXIDE_[A-Z_]+$/.test(error.code) && error.message !== "")
    return error.code;
  throw new Error(`a stranger was thrown: ${describe(error)}`, { cause: error });
}

/** "accepted", or the code that it was refused with, thrown or rejected. @throws for any other error */
export async function verdictOf(call: () => unknown, undo: (accepted: unknown) => unknown = () => {}): Promise<string> {
  let accepted: unknown;
  try {
    accepted = await call();
  } catch (error) {
    return codeOf(error);
  }
  await undo(accepted);
  return "accepted";
}

function describe(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}\n${error.stack}` : String(error);
  } catch {
    return typeof error;
  }
}
