// From what strace writes down of several threads, one order is read, or none.

import { describe, expect, test } from "vitest";
import type { Operation } from "./operation.js";
import { operationsIn } from "./strace.js";

const FOLDER = "/tmp/store";
const MARKS = "/tmp/marks";
const [MAIN, WRITER] = [101, 102];

const hex = (text: string): string => Buffer.from(text).toString("hex").replaceAll(/../g, "\\x$&");
const created = (thread: number): string =>
  `${thread}   openat(AT_FDCWD, "${hex(`${FOLDER}/store.db`)}", O_RDWR|O_CREAT, 0644) = 3<${hex(`${FOLDER}/store.db`)}>`;
const write = (text: string): string => `pwrite64(3<${hex(`${FOLDER}/store.db`)}>, "${hex(text)}", ${text.length}, 0`;
const sync = `fdatasync(3<${hex(`${FOLDER}/store.db`)}>`;
const mark = (text: string): string => `write(4<${hex(MARKS)}>, "${hex(text)}", ${text.length}`;
const whole = (thread: number, call: string, result: number): string => `${thread}   ${call}) = ${result}`;
const begun = (thread: number, call: string): string => `${thread}   ${call} <unfinished ...>`;
const resumed = (thread: number, name: string, result: number | "?"): string =>
  `${thread}   <... ${name} resumed>)          = ${result}`;

describe("calls of two threads", () => {
  test("are in the order in which they were made, each with its thread", async () => {
    const lines = [created(MAIN), whole(WRITER, write("one"), 3), whole(MAIN, mark("told"), 4), whole(WRITER, sync, 0)];

    expect(await read(lines)).toEqual([`create ${MAIN}`, `one ${WRITER}`, `told ${MAIN}`, `sync ${WRITER}`]);
  });

  test("a mark that is written while another thread writes stands before what that one writes", async () => {
    const lines = [
      created(MAIN),
      begun(WRITER, write("one")),
      begun(MAIN, mark("told")),
      resumed(WRITER, "pwrite64", 3),
      whole(WRITER, write("two"), 3),
      resumed(MAIN, "write", 4),
    ];

    expect(await read(lines)).toEqual([`create ${MAIN}`, `told ${MAIN}`, `one ${WRITER}`, `two ${WRITER}`]);
  });

  test("what changes nothing may come between", async () => {
    const lines = [
      created(MAIN),
      begun(WRITER, write("one")),
      created(MAIN),
      "101   --- SIGCHLD {si_signo=SIGCHLD} ---",
      resumed(WRITER, "pwrite64", 3),
      "102   +++ exited with 0 +++",
    ];

    expect(await read(lines)).toEqual([`create ${MAIN}`, `one ${WRITER}`]);
  });

  test.each([
    ["the first ends first", [WRITER, MAIN]],
    ["the first ends last", [MAIN, WRITER]],
  ])("two that change the store at once have no order: %s", async (_, ends) => {
    const lines = [
      created(MAIN),
      begun(WRITER, write("one")),
      begun(MAIN, write("two")),
      ...ends.map((thread) => resumed(thread, "pwrite64", 3)),
    ];

    await expect(read(lines)).rejects.toThrow(/at once, and the order is not known: pwrite64\(.* and pwrite64\(/);
  });

  test("one that is whole within another has none either", async () => {
    const lines = [created(MAIN), begun(WRITER, sync), whole(MAIN, write("two"), 3), resumed(WRITER, "fdatasync", 0)];

    await expect(read(lines)).rejects.toThrow(/at once/);
  });

  test.each([
    ["told so", [resumed(WRITER, "pwrite64", "?")]],
    ["not told", []],
  ])("one that never ended cannot be told: %s", async (_, end) => {
    const lines = [created(MAIN), begun(WRITER, write("one")), ...end];

    await expect(read(lines)).rejects.toThrow(/cannot be told in operations: pwrite64\(/);
  });
});

async function read(lines: readonly string[]): Promise<readonly string[]> {
  const operations = await operationsIn(lines, { folder: FOLDER, marks: MARKS }, []);
  return operations.map((operation) => `${nameOf(operation)} ${operation.thread}`);
}

function nameOf(operation: Operation): string {
  if (operation.kind === "mark") return operation.line;
  return operation.kind === "write" ? operation.data.toString() : operation.kind;
}
