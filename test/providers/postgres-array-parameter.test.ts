import { describe, expect, test } from "vitest";
import { bigintArray, booleanArray, integerArray, textArray } from "../../src/providers/postgres/array-parameter.js";

// What PostgreSQL's `array_recv` reads, written down once more by the manual and without haste.

const TYPES = { bool: 16, int8: 20, int4: 23, text: 25 };

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

function expected<T>(type: number, values: readonly (T | null)[], bytesOf: (value: T) => Buffer): Buffer {
  if (values.length === 0) return Buffer.concat([int32(0), int32(1), int32(type)]);
  const elements = values.flatMap((value) => {
    if (value === null) return [int32(-1)];
    const bytes = bytesOf(value);
    return [int32(bytes.length), bytes];
  });
  return Buffer.concat([int32(1), int32(1), int32(type), int32(values.length), int32(1), ...elements]);
}

describe("a list as a parameter in binary form", () => {
  test.each<[string, readonly (string | null)[]]>([
    ["nothing", []],
    ["empty texts and nulls", ["", null, "", null]],
    ["ASCII", ["inst-1", "Completed", '{"event_id":1}']],
    ["one, two, three and four bytes for a character", ["a", "é", "€", "😀", "aé€😀"]],
    ["halves of surrogate pairs", ["\ud83d", "x\ude00y"]],
    ["as much as there is room for without counting", ["€".repeat(3_000), "end"]],
    ["more than that", ["€".repeat(20_000), null, "é".repeat(40_000), "a".repeat(200_000), "end"]],
  ])("of texts: %s", (_name, texts) => {
    expect(textArray(texts).equals(expected(TYPES.text, texts, (text) => Buffer.from(text)))).toBe(true);
  });

  test("of integers of eight bytes: up to what a number can say exactly", () => {
    const numbers = [
      0,
      1,
      -1,
      2 ** 31,
      -(2 ** 31),
      2 ** 32 - 1,
      2 ** 32,
      -(2 ** 32) - 1,
      null,
      2 ** 53 - 1,
      1 - 2 ** 53,
    ];
    expect(bigintArray(numbers)).toEqual(expected(TYPES.int8, numbers, int64));
    expect(bigintArray([])).toEqual(expected(TYPES.int8, [], int64));
  });

  test("of integers of four bytes", () => {
    const numbers = [0, 1, -1, null, 255, 65_536, 2 ** 31 - 1, -(2 ** 31)];
    expect(integerArray(numbers)).toEqual(expected(TYPES.int4, numbers, int32));
    expect(integerArray([])).toEqual(expected(TYPES.int4, [], int32));
  });

  test("of truths", () => {
    const truths = [true, false, true];
    expect(booleanArray(truths)).toEqual(expected(TYPES.bool, truths, (truth) => Buffer.from([truth ? 1 : 0])));
  });
});
