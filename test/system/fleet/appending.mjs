// fleet/appending.mjs — a file of lines that many processes append to: it outlives whoever is killed.
//
//   J1. A line is written before the writer does anything else, by one call: kill -9 loses none, and tears none.
//   J2. Lines stand in the order in which they were written, whoever wrote them.

import { openSync, readFileSync, writeSync } from "node:fs";

/** A function that writes a line: an object. */
export function appendTo(file) {
  const descriptor = openSync(file, "a");
  return (line) => void writeSync(descriptor, `${JSON.stringify({ at: Date.now(), ...line })}\n`); // J1
}

/** Everything that was written. J2 */
export function linesOf(file) {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}
