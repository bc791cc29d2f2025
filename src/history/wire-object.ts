// history/wire-object.ts — reads one JSON object of the wire, field by field, and says exactly what is wrong with it.
//
//   W1. Whatever the text holds, reading it yields a well-typed value or throws a CodecError; never anything else.
//   W2. A nullable field must be there; an optional one may be missing, and `null` reads as missing.
//   W3. Fields that nobody asks for are ignored: a newer writer may add some.
//
// A place is what stands before a field's name in messages: `event 7: ActivityScheduled.` names its `name` when it
// becomes `event 7: ActivityScheduled.name`, and names the object itself when its last separator is dropped.

import { CodecError, messageOf } from "../errors.js";
import type { CarriedEvent } from "./event.js";

/** A JSON object and its place, so that every complaint names both. */
export class WireObject {
  readonly #fields: JsonObject;
  readonly #place: string;

  private constructor(fields: JsonObject, place: string) {
    this.#fields = fields;
    this.#place = place;
  }

  static parse(text: string, place: string): WireObject {
    return WireObject.from(parseJson(text, place), place);
  }

  static from(value: unknown, place: string): WireObject {
    return isJsonObject(value) ? new WireObject(value, place) : wrong(placeItself(place), "an object", value);
  }

  /** The same fields at a place that has become better known while reading. */
  moved(place: string): WireObject {
    return new WireObject(this.#fields, place);
  }

  at(key: string): string {
    return this.#place + key;
  }

  value(key: string): unknown {
    return this.#fields[key];
  }

  text(key: string): string {
    const value = this.#fields[key];
    return typeof value === "string" ? value : wrong(this.at(key), "a string", value);
  }

  nullableText(key: string): string | null {
    const value = this.#fields[key];
    return value === null || typeof value === "string" ? value : wrong(this.at(key), "a string or null", value);
  }

  optionalText(key: string): string | undefined {
    const value = this.#fields[key];
    return value === undefined || value === null ? undefined : this.text(key);
  }

  integer(key: string): number {
    const value = this.#fields[key];
    return isWireInteger(value) ? value : wrong(this.at(key), WIRE_INTEGER, value);
  }

  nullableInteger(key: string): number | null {
    const value = this.#fields[key];
    return value === null || isWireInteger(value) ? value : wrong(this.at(key), `${WIRE_INTEGER} or null`, value);
  }

  optionalInteger(key: string): number | undefined {
    const value = this.#fields[key];
    return value === undefined || value === null ? undefined : this.integer(key);
  }

  boolean(key: string): boolean {
    const value = this.#fields[key];
    return typeof value === "boolean" ? value : wrong(this.at(key), "a boolean", value);
  }

  optionalCarriedEvents(key: string): readonly CarriedEvent[] | undefined {
    const value = this.#fields[key];
    if (value === undefined || value === null) return undefined;
    if (!Array.isArray(value)) return wrong(this.at(key), "an array", value);
    return value.map((pair: unknown, index) =>
      isTextPair(pair) ? pair : wrong(`${this.at(key)}[${index}]`, "a [name, data] pair of strings", pair),
    );
  }
}

/** The tags of a union, all of them: the compiler asks for those that are missing. */
export type Tags<T extends string> = Readonly<Record<T, true>>;

export interface Variant<T extends string> {
  readonly tag: T;
  readonly content: WireObject;
}

/** Reads an externally tagged value: an object whose only key is the tag, over the content. */
export function readVariant<T extends string>(value: unknown, place: string, tags: Tags<T>): Variant<T> {
  if (!isJsonObject(value)) return wrong(placeItself(place), "an object", value);
  const keys = Object.keys(value);
  const tag = keys[0];
  if (tag === undefined || keys.length > 1) {
    throw new CodecError(`${placeItself(place)}: expected one key that names the type, got ${keys.length} keys`);
  }
  if (!isTag(tag, tags)) throw unknownType(place, tag);
  return { tag, content: WireObject.from(value[tag], `${place}${tag}.`) };
}

export function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CodecError(`${placeItself(place)}: not JSON: ${messageOf(cause)}`, { cause });
  }
}

/** A number on its way to the wire: no type tells NaN or 0.5 from an id, and once written nobody could read it. */
export function wireInteger<T extends number | null | undefined>(value: T, where: string): T {
  return value === null || value === undefined || isWireInteger(value) ? value : wrong(where, WIRE_INTEGER, value);
}

export function unknownType(place: string, type: string): CodecError {
  return new CodecError(`${placeItself(place)}: unknown type ${quoted(type)}; perhaps a newer version wrote it`);
}

type JsonObject = Readonly<Record<string, unknown>>;

const WIRE_INTEGER = "a whole number from 0 to 2^53-1";

function isWireInteger(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTag<T extends string>(tag: string, tags: Tags<T>): tag is T {
  return Object.hasOwn(tags, tag);
}

function isTextPair(value: unknown): value is CarriedEvent {
  return Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && typeof value[1] === "string";
}

function wrong(where: string, expected: string, value: unknown): never {
  throw new CodecError(`${where}: expected ${expected}, got ${kindOf(value, expected)}`);
}

/** The kind of a value; of a number that is not a good one, the number, since its kind would explain nothing. */
function kindOf(value: unknown, expected: string): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && expected.startsWith(WIRE_INTEGER) ? String(value) : typeof value;
}

function placeItself(place: string): string {
  return place.replace(/[.:] ?$/, "");
}

/** Keeps foreign text in a message short and on one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text);
}
