// test/power-cut/strace.ts — runs a program under strace, and reads from its system calls what it did to its store.
//
//   S1. Everything counts that the program asks of the kernel for the folder of its store. What is not understood here is an
//       error, never left out. What needs no call at all (memory, io_uring) shows when the operations do not amount to the
//       files that are there in the end: a recording is complete, or there is none.
//   S2. All of it is one thread's, so that the order of the lines is the order of the calls; and a mark, which is a write to
//       another file by the same thread, has its exact place among them.

import { spawn, spawnSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { readdir, rm } from "node:fs/promises";
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
  const traces = join(dirname(folder), "trace");
  const options = ["-ff", "-qq", "--seccomp-bpf", "-y", "-xx", "-s", String(LONGEST_STRING), "-e", `trace=${CALLS}`];
  const child = spawn("strace", [...options, "-o", traces, ...command], { stdio: ["ignore", "inherit", "pipe"] });
  const ended = new Promise<string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal ?? `code ${code}`));
  });
  const [end, complaints] = await Promise.all([ended, text(child.stderr)]);
  if (end !== "code 0" && end !== "SIGKILL") throw new Error(`The recorded program ended with ${end}: ${complaints}`);
  await readTraces(traces, { folder, marks }, operations);
}

/** strace writes a file for each thread; exactly one of them may have touched the store. S2 */
async function readTraces(traces: string, recorded: Recorded, operations: Operation[]): Promise<void> {
  const names = (await readdir(dirname(traces))).filter((name) => name.startsWith(`${basename(traces)}.`));
  let threads = 0;
  for (const name of names) {
    const file = join(dirname(traces), name);
    const before = operations.length;
    await readTrace(file, recorded, operations);
    if (operations.length > before) threads += 1;
    await rm(file);
  }
  if (threads !== 1)
    throw new Error(`${threads} threads have touched the store; the order of their calls is not known.`);
}

async function readTrace(file: string, { folder, marks }: Recorded, operations: Operation[]): Promise<void> {
  const reader = new TraceReader(folder, marks, filesAfter(operations));
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    const operation = reader.operationOf(line);
    if (operation !== null) operations.push(operation);
  }
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
  readonly #isOurs: (line: string) => boolean;

  constructor(folder: string, marks: string, files: Set<string>) {
    this.#folder = folder;
    this.#marks = marks;
    this.#files = files;
    const [folderInHex, marksInHex] = [hexOf(folder), hexOf(marks)];
    this.#isOurs = (line) => line.includes(folderInHex) || line.includes(marksInHex);
  }

  /** Null: it changes nothing that counts. */
  operationOf(line: string): Operation | null {
    if (!this.#isOurs(line)) return null;
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

function notUnderstood(line: string): Error {
  return new Error(`The recording holds what cannot be told in operations: ${line.slice(0, 300)}`);
}

function fail(line: string): never {
  throw notUnderstood(line);
}
