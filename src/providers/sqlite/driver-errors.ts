// providers/sqlite/driver-errors.ts — what the library throws, in the words of the contract.

import { statSync } from "node:fs";
import { messageOf, ProviderError, type ProviderErrorKind } from "../../errors.js";
import { isFileUri } from "./options.js";

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
const SQL_ERROR = 1;
const BUSY = 5;
const LOCKED = 6;
const NO_MEMORY = 7;
const READ_ONLY = 8;
const IO_ERROR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANNOT_OPEN = 14;
const PROTOCOL = 15;
const TOO_BIG = 18;
const CONSTRAINT = 19;
const MISMATCH = 20;
const NOT_A_DATABASE = 26;

/** Others hold the lock: nothing is wrong, and the same call succeeds when they are done. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === BUSY || code === LOCKED || code === PROTOCOL;
}

/** Whether the library threw it: it may then have rolled back whatever transaction was open. */
export function isDriverError(error: unknown): boolean {
  return primaryCode(error) !== null;
}

export function isConstraintViolation(error: unknown): boolean {
  return primaryCode(error) === CONSTRAINT;
}

/** Errors that the library did not throw are returned as they are. */
export function toProviderError(operation: string, file: string, error: unknown): unknown {
  const code = primaryCode(error);
  if (code === null) return error;
  const { kind, message } = code === CANNOT_OPEN ? cannotOpen(file) : describe(code, `'${file}'`);
  return new ProviderError(kind, operation, `${message} (${messageOf(error)})`, { cause: error });
}

export function busyError(operation: string, file: string, waitedMs: number): ProviderError {
  const message = `the database '${file}' is locked by another process and was not free within ${waitedMs} ms`;
  return new ProviderError("transient", operation, `${message}. Nothing was changed; try again later`);
}

export function closedError(operation: string): ProviderError {
  return new ProviderError("invalid", operation, "the provider is closed. Open another one on the same file");
}

interface Described {
  readonly kind: ProviderErrorKind;
  readonly message: string;
}

function cannotOpen(file: string): Described {
  const what = `cannot open '${file}'`;
  if (isDirectory(file)) return { kind: "invalid", message: `${what}: it is a directory. Name a file in it` };
  if (isFileUri(file)) return { kind: "invalid", message: `${what}: it looks like a URL. Pass a path` };
  return { kind: "invalid", message: `${what}. Its directory must exist and be writable` };
}

function isDirectory(file: string): boolean {
  try {
    return statSync(file).isDirectory();
  } catch {
    return false; // It is not there, or nobody may look.
  }
}

function describe(code: number, file: string): Described {
  switch (code) {
    case BUSY:
    case LOCKED:
    case PROTOCOL:
      return { kind: "transient", message: `the database ${file} is locked by another process; try again later` };
    case FULL:
      return { kind: "transient", message: `disk full: ${file} cannot grow. Free space or raise maxDatabaseBytes` };
    case IO_ERROR:
      return {
        kind: "transient",
        message: `reading or writing ${file} failed. Look at the disk, and whether it is full`,
      };
    case NO_MEMORY:
      return { kind: "transient", message: "out of memory" };
    case READ_ONLY:
      return { kind: "invalid", message: `${file} is read-only. The file and its directory must be writable` };
    case NOT_A_DATABASE:
      return { kind: "invalid", message: `${file} is not a SQLite database. Choose another file` };
    case CORRUPT:
      return { kind: "corrupt", message: `${file} is damaged. Restore it from a backup` };
    case CONSTRAINT:
    case MISMATCH:
    case TOO_BIG:
      return { kind: "invalid", message: `the data cannot be stored in ${file}` };
    case SQL_ERROR:
      return { kind: "invalid", message: `the tables in ${file} are not as this version made them` };
    default:
      return { kind: "transient", message: `SQLite failed on ${file}` };
  }
}

function primaryCode(error: unknown): number | null {
  const { code, errcode } = (error ?? {}) as { readonly code?: unknown; readonly errcode?: unknown };
  return code === "ERR_SQLITE_ERROR" && typeof errcode === "number" ? errcode & 0xff : null;
}
