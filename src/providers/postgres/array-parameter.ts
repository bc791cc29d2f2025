// providers/postgres/array-parameter.ts — lists as PostgreSQL reads them fastest: in its binary form, without quotes to be found.
//
// One list is one column of the rows that a statement writes. The type of the elements must be that of the parameter: in
// binary form nothing is converted.

import { mostBytes as mostBytesOf } from "../../history/limits.js";

const BOOL = 16;
const INT8 = 20;
const INT4 = 23;
const TEXT = 25;

const HEADER_BYTES = 20;
const NULL_LENGTH = -1;
/** Room for a few kilobytes more than needed costs less than to count the bytes before they are written. */
const MOST_SPARE_BYTES = 32_768;

export function textArray(values: readonly (string | null)[]): Buffer {
  const mostBytes = roomFor(values, mostBytesOf);
  const bytes = mostBytes <= MOST_SPARE_BYTES ? mostBytes : roomFor(values, Buffer.byteLength);
  const array = withHeader(bytes, TEXT, values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    const length = value === null ? NULL_LENGTH : array.write(value, at + 4);
    at = putInteger(array, length, at) + Math.max(length, 0);
  }
  return upTo(array, at);
}

function roomFor(values: readonly (string | null)[], bytesOf: (text: string) => number): number {
  let bytes = HEADER_BYTES;
  for (const value of values) bytes += 4 + (value === null ? 0 : bytesOf(value));
  return bytes;
}

export function bigintArray(values: readonly (number | null)[]): Buffer {
  const array = withHeader(HEADER_BYTES + values.length * 12, INT8, values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    at = putInteger(array, value === null ? NULL_LENGTH : 8, at);
    if (value === null) continue;
    const high = Math.floor(value / 2 ** 32);
    at = putInteger(array, high, at);
    at = putInteger(array, value - high * 2 ** 32, at);
  }
  return upTo(array, at);
}

export function integerArray(values: readonly (number | null)[]): Buffer {
  const array = withHeader(HEADER_BYTES + values.length * 8, INT4, values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    at = putInteger(array, value === null ? NULL_LENGTH : 4, at);
    if (value !== null) at = putInteger(array, value, at);
  }
  return upTo(array, at);
}

export function booleanArray(values: readonly boolean[]): Buffer {
  const array = withHeader(HEADER_BYTES + values.length * 5, BOOL, values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    at = putInteger(array, 1, at);
    array[at] = value ? 1 : 0;
    at += 1;
  }
  return upTo(array, at);
}

/** What Node's own writers check, most of their time, is known here. Answers where the next one begins. */
function putInteger(array: Buffer, value: number, at: number): number {
  array[at] = value >>> 24;
  array[at + 1] = value >>> 16;
  array[at + 2] = value >>> 8;
  array[at + 3] = value;
  return at + 4;
}

/** An empty list ends with its header, which is shorter. */
function upTo(array: Buffer, end: number): Buffer {
  return end < array.length ? array.subarray(0, end) : array;
}

/** Dimensions, whether there may be nulls, the type of the elements; how many there are, and the number of the first. */
function withHeader(bytes: number, type: number, length: number): Buffer {
  const array = Buffer.allocUnsafe(length === 0 ? 12 : bytes);
  putInteger(array, length === 0 ? 0 : 1, 0);
  putInteger(array, 1, 4);
  putInteger(array, type, 8);
  if (length === 0) return array;
  putInteger(array, length, 12);
  putInteger(array, 1, 16);
  return array;
}
