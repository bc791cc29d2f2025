import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors.js";
import {
  byteLength,
  checkInstanceId,
  checkName,
  checkPayload,
  checkRootInstanceId,
  checkTag,
  DEFAULT_LIMITS,
  mostBytes,
} from "../../src/history/limits.js";
import { anyText } from "./arbitrary-history.js";

describe("the default limits", () => {
  test("cannot be changed by accident", () => {
    expect(DEFAULT_LIMITS).toStrictEqual({
      maxPayloadBytes: 3_145_728,
      maxHistoryEvents: 100_000,
      maxHistoryBytes: 67_108_864,
      maxCarryForwardEvents: 10_000,
      maxCustomStatusBytes: 262_144,
      maxKvKeys: 150,
      maxKvValueBytes: 65_536,
    });
    expect(Object.isFrozen(DEFAULT_LIMITS)).toBe(true);
  });

  test("count bytes of UTF-8, not characters", () => {
    expect(byteLength("")).toBe(0);
    expect(byteLength("abc")).toBe(3);
    expect(byteLength("ü€😀")).toBe(2 + 3 + 4);
  });
});

describe("a payload", () => {
  test.each([
    ["one byte each", "x", 1],
    ["two", "ü", 2],
    ["three", "€", 3],
    ["four", "😀", 4],
  ])("is measured in bytes, whatever its characters take: %s", (_, character, bytes) => {
    for (const count of [1, 30, 1_000]) {
      const text = character.repeat(count);
      expect(checkPayload(text, "input", count * bytes)).toBe(text);
      expect(() => checkPayload(text, "input of 'A'", count * bytes - 1)).toThrow(
        new InvalidInputError(
          `input of 'A' (${count * bytes} bytes) exceeds limit (${count * bytes - 1} bytes). Keep it elsewhere and pass where it is, or raise limits.maxPayloadBytes.`,
        ),
      );
    }
  });

  test("is never larger than it may be at most", () => {
    fc.assert(fc.property(anyText, (text) => byteLength(text) <= mostBytes(text)));
  });
});

const checks = [
  ["an instance id", checkInstanceId],
  ["a root instance id", checkRootInstanceId],
  ["a name", (name: unknown) => checkName(name, "event name")],
] as const;

describe.each(checks)("%s", (_, check) => {
  test.each([
    "a",
    "order-1",
    "Order 1 / ü 😀",
    "__proto__",
    "a::b",
    "subway",
    "x".repeat(256),
    "ü".repeat(128),
    "😀".repeat(64),
  ])("is returned when it is good: %s", (id) => {
    expect(check(id)).toBe(id);
  });

  test.each<[string, unknown]>([
    ["must be a string, not undefined; pass a non-empty string.", undefined],
    ["must be a string, not null; pass a non-empty string.", null],
    ["must be a string, not number; pass a non-empty string.", 5],
    ["must be a string, not object; pass a non-empty string.", ["order-1"]],
    ["must be a string, not object; pass a non-empty string.", new String("order-1")],
    ["must be a string, not symbol; pass a non-empty string.", Symbol("order-1")],
    ["is empty; pass a non-empty string.", ""],
    ['"a\\u0000b" contains the NUL character; leave it out.', "a\0b"],
    ['"a\\ud83d" contains half a surrogate pair; pass well-formed Unicode text.', "a\ud83d"],
    ['"\\ude00a" contains half a surrogate pair; pass well-formed Unicode text.', "\ude00a"],
    ['"\\ude00\\ud83d" contains half a surrogate pair; pass well-formed Unicode text.', "\ude00\ud83d"],
  ])("is refused with a reason and a remedy: %s", (message, id) => {
    expectRefused(() => check(id), message);
  });

  test("survives UTF-8 whenever it is accepted", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const accepted = acceptedBy(() => check(text));
        if (accepted === undefined) return;
        expect(Buffer.from(accepted, "utf8").toString("utf8")).toBe(text);
        expect(accepted).not.toContain("\0");
      }),
    );
  });
});

describe("the longest id", () => {
  test.each<[string, unknown]>([
    ["is 257 bytes long; shorten it to at most 256 bytes of UTF-8.", "x".repeat(257)],
    ["is 258 bytes long; shorten it to at most 256 bytes of UTF-8.", "ü".repeat(129)],
    ["is 1000000 bytes long; shorten it to at most 256 bytes of UTF-8.", "x".repeat(1_000_000)],
  ])("that may be chosen is 256 bytes: %s", (message, id) => {
    expectRefused(() => checkName(id, "queue name"), message);
    expectRefused(() => checkRootInstanceId(id), message);
  });

  test("of a tag is 256 bytes, and the refusal reads as histories do", () => {
    expect(checkTag("ü".repeat(128), "Render")).toBe("ü".repeat(128));
    expectRefused(
      () => checkTag("ü".repeat(129), "Render"),
      "Activity 'Render' tag size (258 bytes) exceeds limit (256 bytes)",
    );
    expectRefused(() => checkTag("", "Render"), "tag of activity 'Render' is empty; pass a non-empty string.");
  });

  test("that may be asked about is longer, because children's ids grow with every generation", () => {
    const grandchild = `${"x".repeat(256)}::sub::2::sub::3`;
    expect(checkInstanceId(grandchild)).toBe(grandchild);
    expectRefused(
      () => checkInstanceId("x".repeat(4_097)),
      "is 4097 bytes long; shorten it to at most 4096 bytes of UTF-8.",
    );
  });
});

describe("control characters", () => {
  test("are refused in instance ids and named", () => {
    expectRefused(
      () => checkInstanceId("a\nb"),
      'instance id "a\\nb" contains the control character U+000A; leave it out.',
    );
    for (let unit = 1; unit < 0x20; unit++) {
      expectRefused(() => checkInstanceId(`a${String.fromCharCode(unit)}`), "contains the control character U+00");
    }
  });

  test("are accepted in names, NUL excepted", () => {
    expect(checkName("line one\nline two\t", "key")).toBe("line one\nline two\t");
  });
});

describe("ids of sub-orchestrations", () => {
  test.each(["sub::2", "sub::", "order-1::sub::2", "::sub::", "a::sub::b::sub::c"])(
    "are refused for a new root instance: %s",
    (id) => {
      expectRefused(
        () => checkRootInstanceId(id),
        `instance id "${id}" is reserved for sub-orchestrations; choose an id that neither starts with 'sub::' nor contains '::sub::'.`,
      );
    },
  );

  test.each(["sub::2", "order-1::sub::2"])("are good ids to look an instance up: %s", (id) => {
    expect(checkInstanceId(id)).toBe(id);
  });

  test.each(["sub", "sub:2", "a:sub::b", "asub::b", "::sub:"])("are not seen where there are none: %s", (id) => {
    expect(checkRootInstanceId(id)).toBe(id);
  });
});

test("a message names the thing as its caller calls it", () => {
  expectRefused(() => checkInstanceId("", "parent instance id"), "parent instance id is empty");
  expectRefused(() => checkRootInstanceId("", "options.instanceId"), "options.instanceId is empty");
  expectRefused(() => checkName("", "queue name"), "queue name is empty");
});

function acceptedBy(check: () => string): string | undefined {
  try {
    return check();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    return undefined;
  }
}

function expectRefused(check: () => string, message: string): void {
  expect(check).toThrow(InvalidInputError);
  expect(check).toThrow(message);
}
