// test/fuzz/unicode.ts — texts of every kind that a caller may choose for ids, names and keys; and which of them may pass.
//
// The rules are written down here once more, in other words than in the code under test.

import fc from "fast-check";
import { anyText } from "../history/arbitrary-history.js";

/** What every object has already. */
export const INHERITED: readonly string[] = ["__proto__", "constructor", "toString", "hasOwnProperty", "prototype"];

const CHOSEN: readonly string[] = [
  ...INHERITED,
  "\0",
  "\ud83d",
  "\ude00\ud83d",
  "a\ud83d",
  "\u{1f468}\u200d\u{1f469}\u200d\u{1f467}",
  "\u202eשלום\u202c",
  "e\u0301\u0327",
  "é",
  "\ufeffmark",
  "\uffff\ufffe",
  "\u2028\u2029",
  "\u0085",
  "\u007f",
  "\t\r\n",
  " ",
  "' OR 1=1 --",
  "%_\\",
  '"quoted"',
  "$1",
  "{}",
  "null",
  "sub::1",
  "a::sub::2",
  "İıßſ",
  "x".repeat(256),
  "x".repeat(257),
  "\u{1f600}".repeat(64),
  `${"\u{1f600}".repeat(64)}x`,
  "ü".repeat(128),
];

export const anyUnicode: fc.Arbitrary<string> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...CHOSEN) },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 80 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 40 }) },
  { weight: 1, arbitrary: anyText },
);

/** Whether an event, a queue, a key, a tag, a session, an activity or an orchestration may be called so. */
export function mayName(text: string): boolean {
  const bytes = new TextEncoder().encode(text);
  const isWellFormed = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes) === text;
  return bytes.length >= 1 && bytes.length <= 256 && isWellFormed && !text.includes("\0");
}

/** Whether a caller may start an instance under it. */
export function mayIdentify(text: string): boolean {
  const hasControls = [...text].some((character) => /\p{Cc}/u.test(character));
  return mayName(text) && !hasControls && !`::${text}`.includes("::sub::");
}

/** JSON of any shape, with keys that other objects inherit. */
export const anyPayload: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    anyUnicode,
    fc.jsonValue({ maxDepth: 1, stringUnit: "binary" }),
    fc.array(tie("value"), { maxLength: 3 }),
    fc
      .array(fc.tuple(anyUnicode, tie("value")), { maxLength: 3 })
      .map((entries) => JSON.parse(`{${entries.map((entry) => entry.map(inJson).join(":")).join(",")}}`) as unknown),
  ),
})).value;

function inJson(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}
