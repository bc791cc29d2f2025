// providers/sqlite/writer-program.ts — what the writer's thread runs: it executes write logs, each as one transaction.
//
// It is kept as a text, so that it needs no file of its own beside the user's bundle.
//
//   W1. A log is executed only if nobody else has committed since the mark, or since the last log; otherwise what its writer
//       remembered may not be true any more. Looked at under the write lock.
//   W2. A log is executed whole or not at all. After one that was not, none is until there is another mark: those that follow
//       rely on it.
//   W3. Every message is answered, in order: by a message, and in memory that is shared, for who cannot wait for the event loop, or finds
//       the thread dead.
//   W4. Logs that are there at one moment share a transaction. Where it fails, each is executed by itself.
//   W5. It writes to the very file that the connection of the event loop has.

import type { PackedLog } from "./write-log.js";

export interface WriterData {
  readonly driver: "node:sqlite" | "@photostructure/sqlite";
  /** A file beside which the package is found. */
  readonly requireFrom: string;
  readonly file: string;
  /** Of that file: it may have been moved since, and another put in its place. */
  readonly identity: string;
  readonly setUp: readonly string[];
  /** The shared memory, which has these places. */
  readonly progress: Int32Array;
}

/** How many messages are answered. */
export const ANSWERED_COUNT = 0;
/** A place in `WRITER_ANSWERS`. */
export const LAST_ANSWER = 1;
/** How many logs are committed. */
export const COMMITTED_COUNT = 2;
export const PROGRESS_BYTES = 3 * Int32Array.BYTES_PER_ELEMENT;

export type WriterMessage =
  /** What the file has now is what later logs rely on. */
  | { readonly kind: "mark" }
  /** Whether nobody else has committed since. */
  | { readonly kind: "compare" }
  /** `statements`: those that are new, in the order of their numbers. */
  | { readonly kind: "execute"; readonly statements: readonly string[]; readonly log: PackedLog }
  | { readonly kind: "close" };

/** `yes`: it was marked, it is unchanged, it was executed. `others`: somebody else has committed. `no`: whatever else it was. */
export type WriterAnswer = (typeof WRITER_ANSWERS)[number];

export const WRITER_ANSWERS = Object.freeze(["yes", "others", "no"] as const);

export const WRITER_PROGRAM = `
"use strict";
const { parentPort, receiveMessageOnPort, workerData } = require("node:worker_threads");
const { createRequire } = require("node:module");
const { statSync } = require("node:fs");

const { emitWarning } = process;
process.emitWarning = (...warning) => {
  if (warning[1] === "ExperimentalWarning" && String(warning[0]).includes("SQLite")) return;
  emitWarning.apply(process, warning);
};
const { driver, requireFrom, file, identity, setUp, progress } = workerData;
const { DatabaseSync } = driver === "node:sqlite" ? require(driver) : createRequire(requireFrom)(driver);
process.emitWarning = emitWarning;

const connection = new DatabaseSync(file);
const { dev, ino } = statSync(file, { bigint: true });
if (identity !== \`\${dev}:\${ino}\`) throw new Error("It is another file."); // W5
for (const script of setUp) connection.exec(script);
const begin = connection.prepare("BEGIN IMMEDIATE");
const commit = connection.prepare("COMMIT");
const rollBack = connection.prepare("ROLLBACK");
const version = connection.prepare("PRAGMA data_version");
const statements = [];
/** Null: no log is executed. W2 */
let marked = null;

const currentVersion = () => version.get().data_version;

/** Answers for each of them. */
function executeAll(logs) {
  const first = executeTogether(logs);
  if (logs.length === 1 || first !== "no" || marked === null) return logs.map(() => first);
  return logs.map((log) => keeping(executeTogether([log]))); // W4
}

function executeTogether(logs) {
  if (marked === null) return "no"; // W2
  try {
    begin.run();
    if (currentVersion() !== marked) {
      rollBack.run();
      return "others"; // W1
    }
    for (const log of logs) execute(log);
    commit.run();
    Atomics.add(progress, ${COMMITTED_COUNT}, logs.length);
    return "yes";
  } catch {
    try {
      rollBack.run();
    } catch {
      // It had not begun, or SQLite has rolled back by itself.
    }
    return "no"; // Whoever sent it finds out why, where he runs it himself.
  }
}

/** Reads what \`write-log.ts\` has packed. */
function execute({ numbers, text }) {
  let from = 0;
  for (let place = 0; place < numbers.length; ) {
    const statement = statements[numbers[place]];
    const rows = numbers[place + 1];
    const width = numbers[place + 2];
    place += 3;
    const values = new Array(width);
    for (let nr = 0; nr < width; nr += 1) {
      const at = numbers[place];
      place += 1;
      if (at < 0) {
        values[nr] = text.slice(from, from - 1 - at);
        from -= 1 + at;
      } else if (at === Infinity) {
        values[nr] = numbers[place];
        place += 1;
      } else {
        values[nr] = at >= 0 ? at : null;
      }
    }
    const { changes } = statement.run(...values);
    if (rows >= 0 && Number(changes) !== rows) throw new Error("Other rows than expected.");
  }
}

/** Each has its number, whatever becomes of it. */
function prepared(text) {
  try {
    return connection.prepare(text);
  } catch {
    return null;
  }
}

/** W2 */
function keeping(answer) {
  if (answer !== "yes") marked = null;
  return answer;
}

function mark() {
  try {
    marked = currentVersion();
    return "yes";
  } catch {
    return "no";
  }
}

function compare() {
  try {
    if (marked === null) return "no";
    return currentVersion() === marked ? "yes" : "others";
  } catch {
    return "no";
  }
}

/** Of one message, or of several logs. */
function answersOf(kind, messages) {
  switch (kind) {
    case "mark":
      return [keeping(mark())];
    case "compare":
      return [keeping(compare())];
    default:
      for (const message of messages) for (const text of message.statements) statements.push(prepared(text));
      return executeAll(messages.map(({ log }) => log)).map(keeping);
  }
}

function tell(answers) {
  const last = ${JSON.stringify(WRITER_ANSWERS)}.indexOf(answers.at(-1));
  Atomics.store(progress, ${LAST_ANSWER}, last);
  Atomics.add(progress, ${ANSWERED_COUNT}, answers.length);
  Atomics.notify(progress, ${ANSWERED_COUNT});
  parentPort.postMessage(answers); // W3
}

/** What has come meanwhile, in order. */
function withNext(message) {
  const messages = [message];
  for (let next = receiveMessageOnPort(parentPort); next !== undefined; next = receiveMessageOnPort(parentPort)) {
    messages.push(next.message);
  }
  return messages;
}

parentPort.on("message", (message) => {
  const messages = withNext(message);
  for (let place = 0; place < messages.length; ) {
    const { kind } = messages[place];
    if (kind === "close") {
      connection.close();
      parentPort.close();
      return;
    }
    let end = place + 1;
    if (kind === "execute") while (end < messages.length && messages[end].kind === kind) end += 1;
    tell(answersOf(kind, messages.slice(place, end)));
    place = end;
  }
});
`;
