// history/payload.ts — the typed boundary: users' values to the text that histories carry, and back.
//
//   P1. What is encoded decodes to what `JSON.parse(JSON.stringify(value))` gives. Where JSON would lose something in
//       silence (NaN, a Map, an Error, a function) or break (a cycle, a BigInt), the value is refused, and the path is named.
//   P2. Encoding throws nothing but InvalidInputError, whatever getters, proxies and `toJSON` do.
//   P3. Decoding never fails: text that is not JSON, as the reference may have written it, is itself the value.

import { InvalidInputError, messageOf } from "../errors.js";

/**
 * The JSON text of a value; `undefined` becomes `null`. `what` names the value in messages: `input of activity 'Charge'`.
 *
 * @throws `DUROXIDE_INVALID_INPUT` when JSON cannot carry the value faithfully.
 */
export function encodePayload(value: unknown, what: string): string {
  if (value === undefined || value === null) return "null";
  if (typeof value === "string" || typeof value === "boolean") return JSON.stringify(value);

  const path: PathStep[] = [];
  let problem: string | undefined;
  try {
    problem = findProblem(value, "", path, []);
    if (problem === undefined) return JSON.stringify(value) ?? "null";
  } catch (cause) {
    throw new InvalidInputError(`${what}: ${describePath(path)} cannot be encoded: ${messageOf(cause)}`, { cause });
  }
  throw new InvalidInputError(`${what}: ${describePath(path)} ${problem}`);
}

/** The value of a payload: parsed as JSON, or the text itself when it is no JSON. */
export function decodePayload(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type PathStep = string | number;

/** Far beyond any real value, and safely within the stack that `JSON.stringify` needs. */
const MAX_DEPTH = 1_000;

const BYTES_REMEDY = "send a base64 string, a Buffer, or an array of numbers";

/** What JSON would quietly turn into `{}` or, byte by byte, into an object of indices, and what to send instead. */
const LOST_CONTENTS: Readonly<Record<string, string>> = {
  Map: "send an array of its entries",
  Set: "send an array of its members",
  WeakMap: "its entries cannot be listed",
  WeakSet: "its members cannot be listed",
  Error: "send its message",
  DOMException: "send its message",
  RegExp: "send its source and flags",
  ArrayBuffer: BYTES_REMEDY,
  SharedArrayBuffer: BYTES_REMEDY,
  WeakRef: "send what it refers to",
  Promise: "await it first",
  DurableTask: "await it first",
};

/** Says what JSON cannot carry in `value`, or nothing. After a problem or a throw, `path` leads to where it is. */
function findProblem(value: unknown, key: string, path: PathStep[], ancestors: object[]): string | undefined {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? undefined : `is ${value}, which JSON cannot carry`;
    case "bigint":
      return "is a BigInt, which JSON cannot carry; send it as a string";
    case "function":
    case "symbol":
      return `is a ${typeof value}, which JSON cannot carry`;
    case "object":
      return value === null ? undefined : findProblemInObject(value, key, path, ancestors);
    default:
      return undefined;
  }
}

function findProblemInObject(value: object, key: string, path: PathStep[], ancestors: object[]): string | undefined {
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const json: unknown = value.toJSON(key);
    // JSON takes the result as it is, without asking it for `toJSON` in turn.
    return typeof json === "object" && json !== null
      ? findProblemInside(json, path, ancestors)
      : findProblem(json, key, path, ancestors);
  }
  return findProblemInside(value, path, ancestors);
}

function findProblemInside(value: object, path: PathStep[], ancestors: object[]): string | undefined {
  const ancestor = ancestors.indexOf(value);
  if (ancestor >= 0) return `refers back to ${describePath(path.slice(0, ancestor))}, which JSON cannot carry`;
  if (ancestors.length === MAX_DEPTH) return `is nested more than ${MAX_DEPTH} levels deep`;

  ancestors.push(value);
  const problem = Array.isArray(value)
    ? findProblemInArray(value, path, ancestors)
    : (findProblemOfClass(value) ?? findProblemInProperties(value, path, ancestors));
  ancestors.pop();
  return problem;
}

function findProblemInArray(value: readonly unknown[], path: PathStep[], ancestors: object[]): string | undefined {
  for (let i = 0; i < value.length; i++) {
    path.push(i);
    const problem = findProblem(value[i], String(i), path, ancestors);
    if (problem !== undefined) return problem;
    path.pop();
  }
  return undefined;
}

function findProblemInProperties(value: object, path: PathStep[], ancestors: object[]): string | undefined {
  for (const key of Object.keys(value)) {
    path.push(key);
    const problem = findProblem((value as Record<string, unknown>)[key], key, path, ancestors);
    if (problem !== undefined) return problem;
    path.pop();
  }
  return undefined;
}

function findProblemOfClass(value: object): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return undefined;

  const name = Object.prototype.toString.call(value).slice("[object ".length, -1);
  // JSON unwraps boxed primitives.
  if (name === "Number" || name === "BigInt") return findProblem(value.valueOf(), "", [], []);
  const kind = ArrayBuffer.isView(value) ? "ArrayBuffer" : name;
  const remedy = Object.hasOwn(LOST_CONTENTS, kind) ? LOST_CONTENTS[kind] : undefined;
  const article = /^[AEIO]/.test(name) ? "an" : "a";
  return remedy === undefined ? undefined : `is ${article} ${name}, which JSON cannot carry; ${remedy}`;
}

function describePath(path: readonly PathStep[]): string {
  const text = `$${path.map(describeStep).join("")}`;
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function describeStep(step: PathStep): string {
  if (typeof step === "number") return `[${step}]`;
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
}
