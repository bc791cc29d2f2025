// history/limits.ts — how large things may be, and which ids and names are accepted. Sizes are UTF-8 bytes; what is
// exactly at a limit passes. Checked before anything is written, so nothing that breaks a limit is ever stored.

import { InvalidInputError } from "../errors.js";
import { integerBetween, type OptionCheck } from "../options.js";

/** What a runtime may be told to allow. A client heeds `maxPayloadBytes`. */
export interface Limits {
  /** Of each input, output, activity result, event and mailbox message, as JSON text. Longer failure messages are cut. */
  readonly maxPayloadBytes: number;
  /** Of one execution. Continue-as-new begins anew. */
  readonly maxHistoryEvents: number;
  /** Of one execution: its payloads, and 256 bytes for every event. */
  readonly maxHistoryBytes: number;
  /** Unread mailbox messages that continue-as-new takes along. */
  readonly maxCarryForwardEvents: number;
  readonly maxCustomStatusBytes: number;
  /** Of one instance. */
  readonly maxKvKeys: number;
  readonly maxKvValueBytes: number;
}

/** What a runtime allows unless told otherwise, with the reasons. */
export const DEFAULT_LIMITS: Limits = Object.freeze({
  /** What every store is proved to carry (`three_megabytes` of the provider tests), and what the original allows. */
  maxPayloadBytes: 3_145_728,
  /** Twice what others allow. A process that meets such a history replays it in a second or two; a loop gets no further. */
  maxHistoryEvents: 100_000,
  /** As much as `warmCacheBytes`: what is larger is never kept in memory, so that every turn would read all of it. */
  maxHistoryBytes: 67_108_864,
  /** Every carried message is copied into the next start and its history. A burst must pass; a leak must not. */
  maxCarryForwardEvents: 10_000,
  /** A status is read whole by every poll of every dashboard; what is larger is a result. */
  maxCustomStatusBytes: 262_144,
  /** All keys of an instance are loaded for every turn. */
  maxKvKeys: 150,
  /** With the number of keys it bounds what a turn loads: ten megabytes at worst. */
  maxKvValueBytes: 65_536,
});

/** For whoever takes limits as an option. */
export const LIMIT_CHECKS: Readonly<Record<string, OptionCheck>> = Object.fromEntries(
  Object.keys(DEFAULT_LIMITS).map((name) => [name, integerBetween(0, Number.MAX_SAFE_INTEGER)]),
);

/** Ids, names and tags are keys of tables: the narrowest index among the providers must hold a few of them. */
export const MAX_NAME_BYTES = 256;
/** Every tag is one more condition in the query that fetches work. */
export const MAX_WORKER_TAGS = 5;

/** The size of a text on the wire. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** No text of that length is larger on the wire. For whoever need not know exactly: it looks at no character. */
export function mostBytes(text: string): number {
  return text.length * MAX_BYTES_PER_UNIT;
}

/** What is to be said of a payload that is too large; null: it is not. `what` begins a sentence. */
export function payloadBreach(text: string, what: string, maxBytes: number): string | null {
  if (mostBytes(text) <= maxBytes) return null;
  const bytes = byteLength(text);
  if (bytes <= maxBytes) return null;
  return `${what} (${bytes} bytes) exceeds limit (${maxBytes} bytes). Keep it elsewhere and pass where it is, or raise limits.maxPayloadBytes.`;
}

/**
 * Returns the text of a payload when it is not too large.
 *
 * @throws `DUROXIDE_INVALID_INPUT` when it is.
 */
export function checkPayload(text: string, what: string, maxBytes: number): string {
  const breach = payloadBreach(text, what, maxBytes);
  if (breach !== null) throw new InvalidInputError(breach);
  return text;
}

/** No UTF-16 code unit takes more than this in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/**
 * Returns the id when every provider can store it and every log line can show it.
 *
 * @throws `DUROXIDE_INVALID_INPUT` when it is not a string, empty, too long, or holds characters that get lost.
 */
export function checkInstanceId(id: unknown, what = "instance id"): string {
  const checked = checkText(id, what, LONGEST_CHILD_ID_BYTES);
  const control = firstControlCharacter(checked);
  if (control !== undefined) {
    throw refused(what, `${JSON.stringify(checked)} contains the control character ${control}`, "leave it out");
  }
  return checked;
}

/**
 * Returns the id when a caller may start an instance under it: as `checkInstanceId`, and not reserved.
 *
 * @throws `DUROXIDE_INVALID_INPUT` also when the id looks like one that the runtime gives to sub-orchestrations.
 */
export function checkRootInstanceId(id: unknown, what = "instance id"): string {
  const checked = checkInstanceId(checkName(id, what), what);
  if (checked.startsWith("sub::") || checked.includes("::sub::")) {
    const remedy = "choose an id that neither starts with 'sub::' nor contains '::sub::'";
    throw refused(what, `${JSON.stringify(checked)} is reserved for sub-orchestrations`, remedy);
  }
  return checked;
}

/**
 * Returns the name of an event, queue, session, tag or key when every provider can store it.
 *
 * @throws `DUROXIDE_INVALID_INPUT` when it is not a string, empty, too long, or holds characters that get lost.
 */
export function checkName(name: unknown, what: string): string {
  return checkText(name, what, MAX_NAME_BYTES);
}

/** Whether `checkName` would let it pass. */
export function isName(name: unknown): boolean {
  try {
    return checkName(name, "name") === name;
  } catch {
    return false;
  }
}

/**
 * Returns the tag of an activity: as `checkName`, and one that is too long is refused in the words that histories know.
 *
 * @throws `DUROXIDE_INVALID_INPUT` as `checkName`.
 */
export function checkTag(tag: unknown, activityName: string): string {
  const bytes = typeof tag === "string" ? byteLength(tag) : 0;
  if (bytes <= MAX_NAME_BYTES) return checkName(tag, `tag of activity '${activityName}'`);
  throw new InvalidInputError(
    `Activity '${activityName}' tag size (${bytes} bytes) exceeds limit (${MAX_NAME_BYTES} bytes)`,
  );
}

/** `major.minor.patch`, each an exact integer. */
export const VERSION = /^(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})$/;

/**
 * Returns the version of an orchestration when some registry can have it.
 *
 * @throws `DUROXIDE_INVALID_INPUT` for anything but three numbers.
 */
export function checkVersion(version: unknown, what: string): string {
  const checked = checkName(version, what);
  if (VERSION.test(checked)) return checked;
  throw refused(what, `${JSON.stringify(checked)} is no version`, 'pass three numbers such as "1.2.3"');
}

/** Ids of children grow with every generation, so what may be asked about is longer than what may be chosen. */
const LONGEST_CHILD_ID_BYTES = 4_096;

function checkText(name: unknown, what: string, maxBytes: number): string {
  if (typeof name !== "string") {
    throw refused(what, `must be a string, not ${name === null ? "null" : typeof name}`, "pass a non-empty string");
  }
  if (name === "") throw refused(what, "is empty", "pass a non-empty string");

  const bytes = byteLength(name);
  if (bytes > maxBytes) {
    const remedy = `shorten it to at most ${maxBytes} bytes of UTF-8`;
    throw refused(what, `${JSON.stringify(name.slice(0, 32))}… is ${bytes} bytes long`, remedy);
  }
  if (name.includes("\0")) throw refused(what, `${JSON.stringify(name)} contains the NUL character`, "leave it out");
  if (LONE_SURROGATE.test(name)) {
    throw refused(what, `${JSON.stringify(name)} contains half a surrogate pair`, "pass well-formed Unicode text");
  }
  return name;
}

/** With the `u` flag a surrogate matches only where it has no partner. Such text changes on its way through UTF-8. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function firstControlCharacter(text: string): string | undefined {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || (unit >= 0x7f && unit <= 0x9f)) return `U+${unit.toString(16).toUpperCase().padStart(4, "0")}`;
  }
  return undefined;
}

function refused(what: string, problem: string, remedy: string): InvalidInputError {
  return new InvalidInputError(`${what} ${problem}; ${remedy}.`);
}
