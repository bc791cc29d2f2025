// fleet/journal.mjs — what the workers saw, in one file that all of them append to: it outlives whoever is killed.
//
//   J1. A line is written before the worker does anything else, by one call: kill -9 loses none, and tears none.

import { openSync, readFileSync, writeSync } from "node:fs";

/** Facts that this load never leads to, whatever dies: each is a fault of ours. */
const FAULTS = new Set([
  "orchestration-poisoned",
  "activity-poisoned",
  "activity-unregistered",
  "activity-detached",
  "unregistered-activity-scheduled",
  "rejection-kept",
  "observer-failed",
  "messages-dropped",
]);
/** Turns are given back when the store does not answer, or with the end of a worker. */
const TROUBLED = ["store-failed", "shutdown"];
/** What a store in trouble may say. */
const PASSING = ["transient", "lock-lost"];

/** For a worker: an observer that writes to the file. */
export function journalTo(file) {
  const descriptor = openSync(file, "a");
  const write = (line) => void writeSync(descriptor, `${JSON.stringify({ at: Date.now(), ...line })}\n`); // J1
  return (fact) => {
    const line = lineOf(fact);
    if (line !== null) write(line);
  };
}

/** For the driver: everything that was written, in the order of time. */
export function readJournal(file) {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line)).sort((one, other) => one.at - other.at);
}

function lineOf(fact) {
  switch (fact.type) {
    case "activity-started":
      return { line: "run" };
    case "turn-committed":
      return { line: "turn" };
    case "provider-call":
      return fact.error === null ? null : failedCall(fact.operation, fact.error);
    case "loop-failed":
      return isPassing(fact.error) ? null : fault(fact.type, `${fact.loop}: ${told(fact.error)}`);
    case "turn-abandoned":
      return TROUBLED.includes(fact.why) ? null : fault(fact.type, JSON.stringify(fact));
    default:
      return FAULTS.has(fact.type) ? fault(fact.type, JSON.stringify(fact)) : null;
  }
}

function failedCall(operation, error) {
  if (!isPassing(error)) return fault("provider-call", `${operation}: ${told(error)}`);
  return { line: "failed-call", operation, kind: error.kind };
}

function fault(type, message) {
  return { line: "fault", type, message };
}

function isPassing(error) {
  return PASSING.includes(error?.kind);
}

function told(error) {
  return error?.stack ?? String(error);
}
