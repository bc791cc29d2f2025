import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors.js";
import { decodePayload, encodePayload } from "../../src/history/payload.js";
import { anyText } from "./arbitrary-history.js";

const what = "input of activity 'Charge'";

describe("a value that JSON can carry", () => {
  test.each<[unknown, string]>([
    [undefined, "null"],
    [null, "null"],
    [true, "true"],
    [0, "0"],
    [-0, "0"],
    [1.5e300, "1.5e+300"],
    ["", '""'],
    ["ü\n\0", '"ü\\n\\u0000"'],
    ["\ud83d", '"\\ud83d"'],
    [[], "[]"],
    [{}, "{}"],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [[1, undefined, 3], "[1,null,3]"],
    // biome-ignore lint/suspicious/noSparseArray: the hole is the point
    [[1, , 3], "[1,null,3]"],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [{ [Symbol("ignored")]: 1, a: 1 }, '{"a":1}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [{ at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    [Buffer.from("hi"), '{"type":"Buffer","data":[104,105]}'],
    [new Number(3), "3"],
    [{ boxed: [new String("a"), new Boolean(false)] }, '{"boxed":["a",false]}'],
    [JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
  ])("is written as JSON writes it: %j", (value, text) => {
    expect(encodePayload(value, what)).toBe(text);
  });

  test("may be an instance of a class with getters and methods", () => {
    class Order {
      readonly id = 7;
      get total(): number {
        return Number.NaN;
      }
      cancel(): void {}
    }
    expect(encodePayload(new Order(), what)).toBe('{"id":7}');
  });

  test("may hold the same object twice, as long as it is not its own ancestor", () => {
    const shared = { a: 1 };
    expect(encodePayload([shared, { shared }, shared], what)).toBe('[{"a":1},{"shared":{"a":1}},{"a":1}]');
  });

  test("may be nested a thousand levels deep", () => {
    expect(encodePayload(nested(1_000), what)).toBe("[".repeat(1_000) + "]".repeat(1_000));
  });

  test("reads back as JSON reads it", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        expect(encodePayload(value, what)).toBe(JSON.stringify(value));
        expect(decodePayload(encodePayload(value, what))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("keeps any text, lone surrogates and NUL included", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(decodePayload(encodePayload(text, what))).toBe(text);
        expect(decodePayload(encodePayload({ [text]: [text] }, what))).toEqual(
          JSON.parse(JSON.stringify({ [text]: [text] })),
        );
      }),
    );
  });
});

describe("toJSON", () => {
  test("is honoured at any depth, and is given the key", () => {
    const key = { toJSON: (given: string) => `key ${given}` };
    expect(encodePayload(key, what)).toBe('"key "');
    expect(encodePayload({ a: key, b: [key] }, what)).toBe('{"a":"key a","b":["key 0"]}');
  });

  test("may rescue what JSON cannot carry by itself", () => {
    const map = Object.assign(new Map([["a", 1]]), { toJSON: () => ({ a: 1 }) });
    expect(encodePayload({ map }, what)).toBe('{"map":{"a":1}}');
    const error = Object.assign(new Error("boom"), { toJSON: () => "boom" });
    expect(encodePayload({ error }, what)).toBe('{"error":"boom"}');
  });

  test("may drop the value", () => {
    const gone = { toJSON: () => undefined };
    expect(encodePayload(gone, what)).toBe("null");
    expect(encodePayload({ gone, kept: 1 }, what)).toBe('{"kept":1}');
  });

  test("that returns what JSON cannot carry is no way around the rules", () => {
    expectRefused({ a: { toJSON: () => ({ b: Number.NaN }) } }, "$.a.b is NaN, which JSON cannot carry");
    expectRefused({ a: { toJSON: () => new Map() } }, "$.a is a Map");
    expectRefused({ a: { toJSON: () => () => 1 } }, "$.a is a function");
  });

  test("is not asked of its own result", () => {
    const value = { toJSON: () => ({ toJSON: "a plain property", n: 1 }) };
    expect(encodePayload(value, what)).toBe('{"toJSON":"a plain property","n":1}');
    expectRefused({ toJSON: () => ({ toJSON: () => "never asked" }) }, "$.toJSON is a function");
  });
});

describe("a value that JSON cannot carry is refused, and the path is named", () => {
  const cycle: Record<string, unknown> = { list: [] };
  (cycle.list as unknown[]).push({ back: cycle });
  const self: unknown[] = [];
  self.push(self);

  test.each<[string, unknown]>([
    ["$ is NaN, which JSON cannot carry", Number.NaN],
    ["$ is Infinity, which JSON cannot carry", Number.POSITIVE_INFINITY],
    ["$.order.amount is NaN, which JSON cannot carry", { order: { amount: Number.NaN } }],
    ["$[1] is -Infinity, which JSON cannot carry", [1, Number.NEGATIVE_INFINITY]],
    ["$ is NaN, which JSON cannot carry", new Number(Number.NaN)],
    ["$ is a BigInt, which JSON cannot carry; send it as a string", 1n],
    ["$.n is a BigInt, which JSON cannot carry", { n: 1n }],
    ["$.n is a BigInt, which JSON cannot carry", { n: Object(1n) }],
    ["$ is a function, which JSON cannot carry", () => 1],
    ["$.callback is a function, which JSON cannot carry", { callback: () => 1 }],
    ["$ is a symbol, which JSON cannot carry", Symbol("s")],
    ["$[0] is a symbol, which JSON cannot carry", [Symbol("s")]],
    ["$.m is a Map, which JSON cannot carry; send an array of its entries", { m: new Map() }],
    ["$ is a Set, which JSON cannot carry; send an array of its members", new Set([1])],
    ["$ is a WeakMap, which JSON cannot carry", new WeakMap()],
    ["$ is a WeakSet, which JSON cannot carry", new WeakSet()],
    ["$ is an Error, which JSON cannot carry; send its message", new TypeError("boom")],
    ["$.cause is an Error, which JSON cannot carry", { cause: Object.assign(new Error("boom"), { code: 7 }) }],
    ["$ is a DOMException, which JSON cannot carry; send its message", new DOMException("boom")],
    ["$.r is a RegExp, which JSON cannot carry; send its source and flags", { r: /a/g }],
    ["$.b is a Uint8Array, which JSON cannot carry; send a base64 string, a Buffer", { b: new Uint8Array(2) }],
    ["$ is an Int32Array, which JSON cannot carry", new Int32Array(2)],
    ["$ is an ArrayBuffer, which JSON cannot carry; send a base64 string", new ArrayBuffer(2)],
    ["$ is a SharedArrayBuffer, which JSON cannot carry", new SharedArrayBuffer(2)],
    ["$ is a DataView, which JSON cannot carry", new DataView(new ArrayBuffer(2))],
    ["$ is a WeakRef, which JSON cannot carry", new WeakRef({})],
    ["$.p is a Promise, which JSON cannot carry; await it first", { p: Promise.resolve(1) }],
    ["$.m is a Map, which JSON cannot carry", { m: new (class Registry extends Map {})() }],
    ["$.list[0].back refers back to $, which JSON cannot carry", cycle],
    ["$.a.b[0] refers back to $.a.b, which JSON cannot carry", { a: { b: self } }],
    ['$["two words"]["0"][""].$ok.ü is NaN', { "two words": { 0: { "": { $ok: { ü: Number.NaN } } } } }],
    ['$["a\\nb"] is NaN', { "a\nb": Number.NaN }],
  ])("%s", (message, value) => {
    expectRefused(value, message);
  });

  test("with the name of the value in front", () => {
    expect(() => encodePayload({ order: { amount: Number.NaN } }, what)).toThrow(
      new InvalidInputError("input of activity 'Charge': $.order.amount is NaN, which JSON cannot carry"),
    );
  });

  test("when it is nested too deep, and the message stays short", () => {
    const error = expectRefused(nested(1_001), "is nested more than 1000 levels deep");
    expect(error.message.length).toBeLessThan(400);
    expectRefused(nested(200_000), "is nested more than 1000 levels deep");
  });

  test("when toJSON never comes to an end", () => {
    const endless = { toJSON: () => ({ next: { toJSON: endless.toJSON } }) };
    expectRefused(endless, "is nested more than 1000 levels deep");
  });
});

describe("user code that throws while it is read", () => {
  const boom = new Error("boom");
  const explode = () => {
    throw boom;
  };

  test.each<[string, unknown]>([
    [
      "$.order.amount cannot be encoded: boom",
      { order: Object.defineProperty({}, "amount", { get: explode, enumerable: true }) },
    ],
    ["$.order cannot be encoded: boom", { order: { toJSON: explode } }],
    ["$.order cannot be encoded: boom", { order: Object.defineProperty({}, "toJSON", { get: explode }) }],
    ["$[0] cannot be encoded: boom", [new Proxy({}, { ownKeys: explode })]],
    ["$[0] cannot be encoded: boom", [new Proxy({}, { getPrototypeOf: explode })]],
  ])("is reported with its place and its cause: %s", (message, value) => {
    expect(expectRefused(value, message).cause).toBe(boom);
  });

  test("is reported also when it throws only the second time", () => {
    let calls = 0;
    const fickle = { toJSON: () => (++calls > 1 ? explode() : 1) };
    expect(expectRefused({ fickle }, "cannot be encoded: boom").cause).toBe(boom);
  });

  test("is reported also when what it throws is no Error", () => {
    const value = {
      toJSON: () => {
        throw "plain text";
      },
    };
    expect(expectRefused(value, "$ cannot be encoded: plain text").cause).toBe("plain text");
  });

  test("never lets anything but InvalidInputError out", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withMap: true,
          withSet: true,
          withDate: true,
          withNullPrototype: true,
          withSparseArray: true,
          withTypedArray: true,
          withBoxedValues: true,
        }),
        (value) => {
          try {
            JSON.parse(encodePayload(value, what));
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidInputError);
          }
        },
      ),
    );
  });
});

describe("text that is read", () => {
  test.each<[string, unknown]>([
    ["null", null],
    ['{"a":[1]}', { a: [1] }],
    ['"text"', "text"],
    ["123", 123],
    ["", ""],
    ["plain text of the reference", "plain text of the reference"],
    ['{"cut off', '{"cut off'],
    ["NaN", "NaN"],
    ["\0", "\0"],
  ])("is JSON, or else itself: %j", (text, value) => {
    expect(decodePayload(text)).toStrictEqual(value);
  });

  test("never fails and never reaches a prototype", () => {
    fc.assert(fc.property(anyText, (text) => void decodePayload(text)));
    decodePayload('{"__proto__":{"polluted":true}}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

function nested(levels: number): unknown[] {
  let value: unknown[] = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

function expectRefused(value: unknown, message: string): InvalidInputError {
  try {
    encodePayload(value, what);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({
      code: "DUROXIDE_INVALID_INPUT",
      message: expect.stringContaining(message.startsWith("$") ? `${what}: ${message}` : message),
    });
    return error as InvalidInputError;
  }
  throw new Error("the value was not refused");
}
