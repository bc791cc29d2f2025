// provider/kit/text-column.ts — any JavaScript string in a TEXT column, unchanged and comparable.
//
// Databases and their drivers cut text at NUL or refuse it, and replace half surrogate pairs. Text with either is stored as JSON, which escapes both;
// so is text that begins with a quotation mark, so that one can tell. Everything else is stored as it is.

/** With the `u` flag a surrogate matches only where it has no partner. */
const NEEDS_ESCAPING = /^"|\0|\p{Surrogate}/u;

/** Equal text gives equal columns, different text different ones. */
export function toColumn(text: string): string {
  return NEEDS_ESCAPING.test(text) ? JSON.stringify(text) : text;
}

export function fromColumn(column: string): string {
  return column.startsWith('"') ? (JSON.parse(column) as string) : column;
}

/** Many of them as one JSON array. */
export function toColumnList(texts: readonly string[]): string {
  return JSON.stringify(texts.map(toColumn));
}

export function toNullableColumn(text: string | null | undefined): string | null {
  return text == null ? null : toColumn(text);
}

export function fromNullableColumn(column: string | null): string | null {
  return column === null ? null : fromColumn(column);
}
