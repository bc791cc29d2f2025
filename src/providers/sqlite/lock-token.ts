// providers/sqlite/lock-token.ts — what the holder of a lock is handed: the secret that the row carries, and where the row is.
//
// A row is found by its key, and the secret proves the lock. So no index by token must be kept, for rows that live for
// milliseconds.

const SEPARATOR = "@";

export function newSecret(newId: () => string): string {
  const id = newId();
  return id.includes(SEPARATOR) ? id.replaceAll(SEPARATOR, "-") : id;
}

/** `place`: enough to find the row. */
export function tokenOf(secret: string, place: string): string {
  return secret + SEPARATOR + place;
}

/** Where the row is. Of a token that nobody made here, nowhere. */
export function placeOf(token: string): string {
  const end = token.indexOf(SEPARATOR);
  return end === -1 ? "" : token.slice(end + 1);
}

/** Of a token that nobody made here, something that no row has. */
export function partsOf(token: string): { readonly secret: string; readonly place: string } {
  const end = token.indexOf(SEPARATOR);
  return end === -1 ? { secret: "", place: "" } : { secret: token.slice(0, end), place: token.slice(end + 1) };
}

/** The secret of a row may come from anywhere. */
export function isSecretOf(secret: string | null, token: string | undefined): boolean {
  if (secret === null || token === undefined) return false;
  return token.startsWith(secret) && token.indexOf(SEPARATOR) === secret.length;
}
