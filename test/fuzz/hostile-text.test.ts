// Stored text of any origin: read as what it says, or refused with an error of ours. Nothing that it holds reaches a prototype.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import {
  decodeErrorDetails,
  decodeEvent,
  decodeWorkItem,
  encodeErrorDetails,
  encodeEvent,
  encodeWorkItem,
} from "../../src/history/codec.js";
import { decodePayload } from "../../src/history/payload.js";
import { exportHistory, importHistory } from "../../src/testing/exported-history.js";
import { importInstance } from "../../src/testing/import-instance.js";
import { replay } from "../../src/testing/replay.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { goldenFiles } from "../golden/files.js";
import { anyDetails, anyEvent, anyText, anyWorkItem } from "../history/arbitrary-history.js";
import { tries } from "./budget.js";
import { codeOf } from "./junk.js";

/** Values that have surprised readers of JSON before. */
const SURPRISES: readonly string[] = [
  "null",
  "true",
  '""',
  "[]",
  "{}",
  "-0",
  "-1",
  "1e308",
  "1e999",
  "-1e999",
  "0.1",
  "1E400",
  "9007199254740991",
  "9007199254740992",
  "9007199254740993",
  "18446744073709551615",
  "NaN",
  "Infinity",
  "undefined",
  "0x10",
  "01",
  '"\\u0000"',
  '"\\ud83d"',
  '"\\ude00\\ud83d"',
  '"__proto__"',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":null,"valueOf":null,"hasOwnProperty":1}',
  '{"Application":{"kind":"Panicked","message":"","retryable":false},"Poison":{}}',
  '[["a","b"],["__proto__","c"]]',
  "[".repeat(10_000) + "]".repeat(10_000),
  `${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`,
];

/** Damage to a text, character by character and value by value. */
const anyTextDamage: fc.Arbitrary<(text: string) => string> = fc.oneof(
  fc.nat().map((at) => (text: string) => text.slice(0, at % (text.length + 1))),
  fc.nat().map((at) => (text: string) => text.slice(at % (text.length + 1))),
  fc.tuple(fc.nat(), anyText).map(([at, inserted]) => (text: string) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + inserted + text.slice(place);
  }),
  fc.tuple(fc.nat(), fc.nat(0xffff)).map(([at, unit]) => (text: string) => {
    const place = at % (text.length + 1);
    return text.slice(0, place) + String.fromCharCode(unit) + text.slice(place + 1);
  }),
  // One of the values becomes another; or a key comes twice, and the last one counts.
  fc.tuple(fc.nat(), fc.constantFrom(...SURPRISES)).map(
    ([nth, value]) =>
      (text: string) =>
        withValue(text, nth, value),
  ),
  fc.tuple(fc.nat(), fc.constantFrom(...SURPRISES)).map(
    ([nth, value]) =>
      (text: string) =>
        withKey(text, nth, value),
  ),
);

const anyHostileText = (valid: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.tuple(valid, anyTextDamage).map(([text, damage]) => damage(text)) },
    { weight: 1, arbitrary: fc.tuple(valid, anyTextDamage, anyTextDamage).map(([text, a, b]) => b(a(text))) },
    { weight: 1, arbitrary: fc.constantFrom(...SURPRISES) },
    { weight: 1, arbitrary: fc.json({ maxDepth: 6, stringUnit: "binary" }) },
    { weight: 1, arbitrary: anyText },
  );

describe("whatever is written", () => {
  const kinds: readonly [string, fc.Arbitrary<string>, (text: string) => string][] = [
    ["event", anyEvent.map(encodeEvent), (text) => encodeEvent(decodeEvent(text))],
    ["work item", anyWorkItem.map(encodeWorkItem), (text) => encodeWorkItem(decodeWorkItem(text))],
    [
      "failure",
      anyDetails.map((details) => JSON.stringify(encodeErrorDetails(details))),
      (text) => JSON.stringify(encodeErrorDetails(decodeErrorDetails(decodePayload(text), "failure: "))),
    ],
  ];
  test.each(kinds)("%s: is the same text when it was read and written again", (_kind, texts, again) => {
    fc.assert(
      fc.property(texts, (text) => {
        expect(again(text)).toBe(text);
      }),
      tries(500),
    );
  });

  test.each(kinds)("%s: damaged, is refused, or read for good", (_kind, texts, again) => {
    fc.assert(
      fc.property(anyHostileText(texts), (text) => {
        const once = readOr(() => again(text));
        if (once !== null) expect(again(once)).toBe(once);
      }),
      tries(1_500),
    );
  });

  test("every surprise in every place of every golden event is refused, or read for good", () => {
    const lines = new Map(
      goldenFiles().flatMap(({ text }) =>
        text
          .trim()
          .split("\n")
          .map((line) => [typeOf(line), line]),
      ),
    );
    for (const line of lines.values()) {
      for (let nth = 0; nth < line.split(":").length; nth += 1) {
        for (const surprise of SURPRISES) {
          for (const text of [withValue(line, nth, surprise), withKey(line, nth, surprise)]) {
            const again = readOr(() => encodeEvent(decodeEvent(text)));
            if (again !== null) expect(encodeEvent(decodeEvent(again))).toBe(again);
          }
        }
      }
    }
  });
});

describe("a payload", () => {
  test("of any text is what JSON says, or else the text itself", () => {
    fc.assert(
      fc.property(anyHostileText(fc.json()), (text) => {
        const value = decodePayload(text);
        const parsed = parse(text);
        if (parsed === undefined) expect(value).toBe(text);
        else expect(Object.is(value, parsed.value) || isSameJson(value, parsed.value)).toBe(true);
      }),
      tries(1_000),
    );
  });
});

describe("a file that should hold a history", () => {
  const code = orchestration("Nothing", async () => {});
  const files = goldenFiles().map(({ text }) => text);
  const anyFile = anyHostileText(fc.constantFrom(...files));
  const asArray = anyFile.map((text) => `[${text.trim().split("\n").join(",")}]`);

  test("is imported, or refused with an error of ours", () => {
    fc.assert(
      fc.property(fc.oneof(anyFile, asArray), (text) => {
        const events = readOr(() => importHistory(text));
        if (events !== null) expect(exportHistory(importHistory(exportHistory(events)))).toBe(exportHistory(events));
      }),
      tries(800),
    );
  });

  test("is replayed or imported into a store, or refused with an error of ours", async () => {
    await using world = await TestWorld.open({ patienceMs: 0 });
    await fc.assert(
      fc.asyncProperty(anyFile, async (text) => {
        await replay(text, code).catch(codeOf);
        await importInstance(world.provider, [text]).catch(codeOf);
      }),
      tries(300),
    );
  });
});

/** Null: refused, with an error of ours. */
function readOr<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    expect(codeOf(error)).toMatch(/^DUROXIDE_(CODEC|INVALID_HISTORY)$/);
    return null;
  }
}

function typeOf(line: string): string {
  return /"type":"(\w+)"/.exec(line)?.[1] ?? "";
}

/** The text with another value after its n-th colon. */
function withValue(text: string, nth: number, value: string): string {
  const values = [...text.matchAll(/:("(?:[^"\\]|\\.)*"|[^",[{}\]]+)/g)];
  const found = values[nth % Math.max(1, values.length)];
  if (found === undefined) return value;
  return `${text.slice(0, found.index)}:${value}${text.slice(found.index + found[0].length)}`;
}

/** The text with one of its keys once more, in front of what closes an object, or with one that objects inherit. */
function withKey(text: string, nth: number, value: string): string {
  const keys = [...text.matchAll(/"(\w+)":/g)].map(([, key]) => key!).concat("__proto__", "constructor", "toString");
  const end = text.lastIndexOf("}");
  return `${text.slice(0, end)},"${keys[nth % keys.length]}":${value}${text.slice(end)}`;
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Deeper than a comparison can go, the text is the same anyway. */
function isSameJson(a: unknown, b: unknown): boolean {
  try {
    return JSON.stringify(a) === JSON.stringify(b);
  } catch {
    return typeof a === typeof b;
  }
}
