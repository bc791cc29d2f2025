// fleet/journal.mjs — what the workers saw, in one file that all of them append to.

import { appendTo, linesOf } from "./appending.mjs";

/** Facts to which a load does not lead, whatever dies, unless it says so: each is a fault of ours. */
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
/**
 * Turns are given back when the store does not answer, with the end of a worker, and where a message is due by the clock of
 * whoever fetches it, but the start of the next execution, which another process has just committed, is not yet.
 */
const TROUBLED = ["store-failed", "shutdown", "awaiting-continuation"];
/** What a store in trouble may say. */
const PASSING = ["transient", "lock-lost"];

/** For a worker: an observer that writes to the file. `usualFacts`: those to which its load leads. */
export function journalTo(file, usualFacts = []) {
  const write = appendTo(file);
  return (fact) => {
    const line = usualFacts.includes(fact.type) ? null : lineOf(fact);
    if (line !== null) write(line);
  };
}

/** For the driver: everything that was written, in the order of time. */
export function readJournal(file) {
  return linesOf(file).sort((one, other) => one.at - other.at);
}

/** By operation and kind, how many calls failed in passing. */
export function failedCallsIn(journal) {
  const counts = {};
  for (const { operation, kind } of journal.filter(({ line }) => line === "failed-call")) {
    const key = `${operation} ${kind}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

/** What no worker should have seen, as sentences. */
export function faultsIn(journal) {
  return journal.filter(({ line }) => line === "fault").map(({ type, message }) => `${type}: ${message}`);
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
