// providers/postgres/array-parameter.ts — lists as PostgreSQL reads them fastest: in its binary form, without quotes to be found.
//
// One list is one column of the rows that a statement writes. The type of the elements must be that of the parameter: in
// binary form nothing is converted.

const BOOL = 16;
const INT8 = 20;
const INT4 = 23;
const TEXT = 25;

const HEADER_BYTES = 20;
const NULL_LENGTH = -1;

export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = HEADER_BYTES;
  for (const value of values) bytes += 4 + (value === null ? 0 : Buffer.byteLength(value));
  const array = withHeader(bytes, TEXT, values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    const length = value === null ? NULL_LENGTH : array.write(value, at + 4);
    at = array.writeInt32BE(length, at) + Math.max(length, 0);
  }
  return array;
}

export function bigintArray(values: readonly (number | null)[]): Buffer {
  return fixedArray(INT8, 8, values, (array, value, at) => {
    array.writeInt32BE(Math.floor(value / 2 ** 32), at);
    array.writeUInt32BE(value - Math.floor(value / 2 ** 32) * 2 ** 32, at + 4);
  });
}

export function integerArray(values: readonly (number | null)[]): Buffer {
  return fixedArray(INT4, 4, values, (array, value, at) => array.writeInt32BE(value, at));
}

export function booleanArray(values: readonly boolean[]): Buffer {
  return fixedArray(BOOL, 1, values, (array, value, at) => array.writeInt8(value ? 1 : 0, at));
}

function fixedArray<T>(
  type: number,
  size: number,
  values: readonly (T | null)[],
  write: (array: Buffer, value: T, at: number) => void,
): Buffer {
  const array = withHeader(HEADER_BYTES + values.length * (4 + size), type, values.length);
  let at = HEADER_BYTES;
  for (const value of values) {
    at = array.writeInt32BE(value === null ? NULL_LENGTH : size, at);
    if (value === null) continue;
    write(array, value, at);
    at += size;
  }
  return array.subarray(0, at);
}

/** Dimensions, whether there may be nulls, the type of the elements; how many there are, and the number of the first. */
function withHeader(bytes: number, type: number, length: number): Buffer {
  const array = Buffer.allocUnsafe(length === 0 ? 12 : bytes);
  array.writeInt32BE(length === 0 ? 0 : 1, 0);
  array.writeInt32BE(1, 4);
  array.writeInt32BE(type, 8);
  if (length === 0) return array;
  array.writeInt32BE(length, 12);
  array.writeInt32BE(1, 16);
  return array;
}
