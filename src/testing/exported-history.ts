// testing/exported-history.ts — histories as files: one event a line, in the form in which stores keep them.

import { CodecError, messageOf } from "../errors.js";
import { decodeEvent, encodeEvent } from "../history/codec.js";
import type { Event } from "../history/event.js";
import { checkHistory } from "../history/valid-history.js";
import { parseJson } from "../history/wire-object.js";

/** The history of one execution: its events, or the text that `exportHistory` made of them. */
export type History = readonly Event[] | string;

/**
 * The history of an execution as text: JSON lines, as every duroxide store can read them.
 *
 * @throws DUROXIDE_CODEC for an event that holds what the wire cannot carry
 * @example
 * import { writeFileSync } from "node:fs";
 * writeFileSync("order-1.jsonl", exportHistory(await client.readHistory("order-1")));
 */
export function exportHistory(events: readonly Event[]): string {
  return events.map((event) => `${encodeEvent(event)}\n`).join("");
}

/**
 * The events of an exported history: JSON lines, or a JSON array of events in the same form.
 *
 * @throws DUROXIDE_CODEC for what is no event; the message names the line
 * @throws DUROXIDE_INVALID_HISTORY for events that are no history, with everything that is wrong
 * @example
 * import { readFileSync } from "node:fs";
 * const events = importHistory(readFileSync("order-1.jsonl", "utf8"));
 */
export function importHistory(text: string): readonly Event[] {
  if (typeof text !== "string") throw new CodecError(`history: expected a string, got ${typeof text}`);
  const content = text.replace(/^\uFEFF/, "");
  return checkHistory(/^\s*\[/.test(content) ? readArray(content) : readLines(content));
}

/** The events, wherever they come from. @throws as `importHistory` */
export function eventsOf(history: History): readonly Event[] {
  return typeof history === "string" ? importHistory(history) : checkHistory(history);
}

function readLines(text: string): Event[] {
  return text.split("\n").flatMap((line, place) => {
    if (line.trim() === "") return [];
    return [decodeAt(`line ${place + 1}`, () => line)];
  });
}

function readArray(text: string): Event[] {
  const values = parseJson(text, "history: ") as readonly unknown[];
  return values.map((value, place) => decodeAt(`element ${place + 1}`, () => JSON.stringify(value)));
}

/** Not even the text is certain: what is nested too deep cannot be written once more. */
function decodeAt(where: string, text: () => string): Event {
  try {
    return decodeEvent(text());
  } catch (cause) {
    throw new CodecError(`${where}: ${messageOf(cause)}`, { cause });
  }
}
