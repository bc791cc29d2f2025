// providers/postgres/lock-token.ts — what the holder of a lock is handed: the secret that the row carries, and where the row is.
//
// A row is found by its key, and the secret proves the lock. So no index by token must be kept, for rows that live for
// milliseconds.

const SEPARATOR = "@";
/** At the end of the token of an activity. No row ends like this. */
const FIRST_ATTEMPT = "+";

import type { Lock } from "./lock-calls.js";

export function newSecret(newId: () => string): string {
  const id = newId();
  return id.includes(SEPARATOR) ? id.replaceAll(SEPARATOR, "-") : id;
}

export function tokenOf(secret: string, id: string | number): string {
  return `${secret}${SEPARATOR}${id}`;
}

/** Whose turn it is. Of a token that nobody made here, something that no row has. */
export function turnLock(token: string): Lock<string> {
  const end = token.indexOf(SEPARATOR);
  if (end === -1 || token.includes("\0")) return { id: "", secret: "" };
  return { id: token.slice(end + 1), secret: token.slice(0, end) };
}

/** Of an activity. Its token also says whether this is its first attempt. */
export function activityToken(secret: string, row: number, attempt: number): string {
  return attempt === 1 ? tokenOf(secret, row) + FIRST_ATTEMPT : tokenOf(secret, row);
}

/** Which row of the activities it is. Likewise. */
export function activityLock(token: string): Lock<number> {
  const { id, secret } = turnLock(token);
  const row = Number(isFirstAttempt(token) ? id.slice(0, -FIRST_ATTEMPT.length) : id);
  return Number.isSafeInteger(row) ? { id: row, secret } : { id: 0, secret: "" };
}

export function isFirstAttempt(activityToken: string): boolean {
  return activityToken.endsWith(FIRST_ATTEMPT);
}

/** The secret of a row may come from anywhere. */
export function isSecretOf(secret: string | null, token: string | undefined): boolean {
  return secret !== null && token !== undefined && turnLock(token).secret === secret;
}
