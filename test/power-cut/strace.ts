// test/power-cut/strace.ts — runs a program under strace, and reads from its system calls what it did to its store.
//
//   S1. Everything counts that the program asks of the kernel for the folder of its store. What is not understood here is an
//       error, never left out. What needs no call at all (memory, io_uring) shows when the operations do not amount to the
//       files that are there in the end: a recording is complete, or there is none.
//   S2. One file for all threads, in the order in which strace met their calls: it is one process, and no call starts or ends
//       without it. Timestamps would not do: the time of a call (-T) begins when its arguments are written down, which for a
//       page takes longer than the call. Calls that change something come in the order of their ends. Two that were under way at
//       once are an error: their order is not known, and is never guessed.
//   S3. A mark may be written while another thread changes the store. It stands before every change that had not ended when it
//       began: whatever it tells of must not need those.

import { spawn, spawnSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { type Operation, SHARED_MEMORY } from "./operation.js";

export interface Recorded {
  /** Everything that a program does in it is recorded. */
  readonly folder: string;
  /** Each line that is appended to it is a mark. */
  readonly marks: string;
}

/** Whatever changes a file, or could. What is here and not in `operationOf` is refused when it meets the store (S1). */
const CALLS = [
  "open,openat,openat2,creat,mmap",
  "write,writev,pwrite64,pwritev,pwritev2,sendfile,copy_file_range,splice",
  "truncate,ftruncate,fallocate,fsync,fdatasync,sync_file_range,msync",
  "unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat",
].join(",");
/** More than any write: strings are told whole. */
const LONGEST_STRING = 16_777_216;

/** Null: programs can be recorded here. */
export function whyNoRecording(): string | null {
  if (process.platform !== "linux") return "system calls are recorded by strace, which is Linux only";
  const { status, error, stderr } = spawnSync("strace", ["-qq", "--seccomp-bpf", "-f", "-o", "/dev/null", "true"], {
    encoding: "utf8",
  });
  if (error !== undefined) return `strace cannot be run (${error.message})`;
  return status === 0 ? null : `strace is not allowed to trace here (${stderr.trim()})`;
}

/**
 * Runs the command to its end, and adds what it did to `operations`, which tells what was done in the folder before. It may
 * end by itself, or by SIGKILL.
 */
export async function record(
  command: readonly string[],
  { folder, marks }: Recorded,
  operations: Operation[],
): Promise<void> {
  const trace = join(dirname(folder), "trace");
  const options = ["-f", "-qq", "--seccomp-bpf", "-y", "-xx", "-s", String(LONGEST_STRING), "-e", `trace=${CALLS}`];
  const child = spawn("strace", [...options, "-o", trace, ...command], { stdio: ["ignore", "inherit", "pipe"] });
  const ended = new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal ?? `code ${code}`));
  });
  const [end, complaints] = await Promise.all([ended, text(child.stderr)]);
  if (end !== "code 0" && end !== "SIGKILL") throw new Error(`The recorded program ended with ${end}: ${complaints}`);
  const lines = createInterface({ input: createReadStream(trace), crlfDelay: Number.POSITIVE_INFINITY });
  operations.push(...(await operationsIn(lines, { folder, marks }, operations)));
  await rm(trace);
}

/** A call, and the line in which it began. */
interface Begun {
  readonly text: string;
  readonly line: number;
}

/** `thread what`, padded. */
const LINE = /^(?<thread>\d+) +(?<what>.*)$/;
/** Another thread's line comes between the two of this call. */
const UNFINISHED = " <unfinished ...>";
const RESUMED = /^<\.\.\. \w+ resumed>/;

/** What the lines of strace tell, after what was done `before`. S2, S3 */
export async function operationsIn(
  lines: Iterable<string> | AsyncIterable<string>,
  { folder, marks }: Recorded,
  before: readonly Operation[],
): Promise<readonly Operation[]> {
  const reader = new TraceReader(folder, marks, filesAfter(before));
  const placed: { readonly line: number; readonly operation: Operation }[] = [];
  const underWay = new Map<string, Begun>();
  let lastChange: Begun = { text: "", line: -1 };
  let line = -1;
  for await (const written of lines) {
    line += 1;
    const { thread = "", what = "" } = LINE.exec(written)?.groups ?? fail(written);
    if (what.endsWith(UNFINISHED)) {
      underWay.set(thread, { text: what.slice(0, -UNFINISHED.length), line });
      continue;
    }
    const begun = underWay.get(thread);
    const call = RESUMED.test(what) && begun !== undefined ? whole(begun, what) : { text: what, line };
    if (call.line !== line) underWay.delete(thread);
    const operation = reader.operationOf(call.text);
    if (operation === null) continue;
    const isMark = operation.kind === "mark";
    placed.push({ line: isMark ? call.line : line, operation: { ...operation, thread: Number(thread) } });
    if (isMark) continue;
    if (call.line < lastChange.line) throw atOnce(lastChange.text, call.text);
    lastChange = { text: call.text, line };
  }
  for (const { text } of underWay.values()) if (reader.isOurs(text)) throw notUnderstood(text + UNFINISHED);
  return placed.sort((one, other) => one.line - other.line).map(({ operation }) => operation);
}

function whole({ text, line }: Begun, rest: string): Begun {
  return { text: text + rest.replace(RESUMED, ""), line };
}

function filesAfter(operations: readonly Operation[]): Set<string> {
  const files = new Set<string>();
  for (const operation of operations) {
    if (operation.kind === "create") files.add(operation.file);
    if (operation.kind === "unlink") files.delete(operation.file);
  }
  return files;
}

/** `name(arguments) = result<path of the result> note`. With -xx, no string holds a quote, a bracket or a comma. */
const CALL = /^(?<name>\w+)\((?<args>.*)\) += (?<result>-?\d+|0x[\da-f]+)(?:<(?<path>[\\x\da-f]*)>)?(?<note>.*)$/;
const DESCRIPTOR = /^\d+<(?<path>[\\x\da-f]*)>$/;
const STRING = /^"(?<content>[\\x\da-f]*)"$/;

interface Call {
  readonly name: string;
  readonly args: readonly string[];
  readonly result: number;
  /** Of the descriptor that it answered. */
  readonly opened: string | null;
  readonly note: string;
}

class TraceReader {
  readonly #folder: string;
  readonly #marks: string;
  /** The files that there are. */
  readonly #files: Set<string>;
  /** Whether it is about the store or the marks. */
  readonly isOurs: (line: string) => boolean;

  constructor(folder: string, marks: string, files: Set<string>) {
    this.#folder = folder;
    this.#marks = marks;
    this.#files = files;
    const [folderInHex, marksInHex] = [hexOf(folder), hexOf(marks)];
    this.isOurs = (line) => line.includes(folderInHex) || line.includes(marksInHex);
  }

  /** Null: it changes nothing that counts. */
  operationOf(line: string): Operation | null {
    if (!this.isOurs(line)) return null;
    const call = parse(line);
    if (call.result === -1 && call.note.startsWith(" ENOENT")) return null;
    if (call.result < 0) throw notUnderstood(line);
    switch (call.name) {
      case "open":
      case "openat":
        return this.#open(call, line);
      case "pwrite64":
        return this.#about(call, (file) => ({
          kind: "write",
          file,
          offset: Number(call.args[3]),
          data: bytesOf(call, line),
        }));
      case "write":
        if (descriptorPath(call.args[0]!) !== this.#marks) throw notUnderstood(line);
        return { kind: "mark", line: bytesOf(call, line).toString().trimEnd() };
      case "ftruncate":
        return this.#about(call, (file) => ({ kind: "truncate", file, size: Number(call.args[1]) }));
      case "fsync":
      case "fdatasync":
        if (descriptorPath(call.args[0]!) === this.#folder) return { kind: "sync-folder" };
        return this.#about(call, (file) => ({ kind: "sync", file }));
      case "unlink":
        return this.#unlink(call, line);
      case "mmap":
        return this.#map(call, line);
      default:
        throw notUnderstood(line);
    }
  }

  #open({ args, opened }: Call, line: string): Operation | null {
    const flags = args.find((arg) => arg.startsWith("O_"));
    if (flags === undefined || opened === null) throw notUnderstood(line);
    if (opened === this.#marks || !flags.includes("O_CREAT")) return null;
    const file = this.#nameOf(opened);
    if (file === null || this.#files.has(file)) return null;
    this.#files.add(file);
    return { kind: "create", file };
  }

  #unlink({ args: [path] }: Call, line: string): Operation | null {
    const file = this.#nameOf(decoded(STRING.exec(path!)?.groups?.content ?? fail(line)).toString());
    if (file === null) return null;
    this.#files.delete(file);
    return { kind: "unlink", file };
  }

  /** What is written through memory leaves no system call behind. */
  #map({ args: [, , protection, flags, descriptor] }: Call, line: string): null {
    const isHarmless = !protection!.includes("PROT_WRITE") || !flags!.includes("MAP_SHARED");
    if (isHarmless || this.#nameOf(descriptorPath(descriptor!) ?? fail(line)) === null) return null;
    throw notUnderstood(line);
  }

  #about({ args: [descriptor] }: Call, operation: (file: string) => Operation): Operation | null {
    const path = descriptorPath(descriptor!) ?? fail(`a call on ${descriptor}`);
    const file = this.#nameOf(path);
    return file === null ? null : operation(file);
  }

  /** Null: it need not be durable. */
  #nameOf(path: string): string | null {
    if (dirname(path) !== this.#folder) fail(`a call on ${path}`);
    const name = basename(path);
    return name === SHARED_MEMORY ? null : name;
  }
}

function parse(line: string): Call {
  const { name, args, result, path, note } = CALL.exec(line)?.groups ?? fail(line);
  return {
    name: name!,
    args: args!.split(", "),
    result: Number(result),
    opened: path === undefined ? null : decoded(path).toString(),
    note: note!,
  };
}

function descriptorPath(argument: string): string | null {
  const path = DESCRIPTOR.exec(argument)?.groups?.path;
  return path === undefined ? null : decoded(path).toString();
}

/** What a write has written: its result says how much of what it was given. */
function bytesOf({ args, result }: Call, line: string): Buffer {
  const content = STRING.exec(args[1]!)?.groups?.content ?? fail(line);
  return decoded(content).subarray(0, result);
}

function decoded(hex: string): Buffer {
  return Buffer.from(hex.replaceAll("\\x", ""), "hex");
}

function hexOf(path: string): string {
  return Buffer.from(path).toString("hex").replaceAll(/../g, "\\x$&");
}

function atOnce(one: string, other: string): Error {
  const shown = [one, other].map((text) => text.slice(0, 150)).join(" and ");
  return new Error(`Two threads have changed the store at once, and the order is not known: ${shown}`);
}

function notUnderstood(line: string): Error {
  return new Error(`The recording holds what cannot be told in operations: ${line.slice(0, 300)}`);
}

function fail(line: string): never {
  throw notUnderstood(line);
}
