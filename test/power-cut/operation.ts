// test/power-cut/operation.ts — what a program did to the files of its store, one thing after the other.

/** Files are named as in the folder of the store. */
export type Operation = Deed & {
  /** Which thread did it. Not there: nobody asks. */
  readonly thread?: number;
};

type Deed =
  | { readonly kind: "create"; readonly file: string }
  | { readonly kind: "write"; readonly file: string; readonly offset: number; readonly data: Buffer }
  | { readonly kind: "truncate"; readonly file: string; readonly size: number }
  /** From here on, everything that was written to the file before is on the disk. */
  | { readonly kind: "sync"; readonly file: string }
  | { readonly kind: "unlink"; readonly file: string }
  /** The same for the names in the folder: which files there are. */
  | { readonly kind: "sync-folder" }
  /** Not a change: a line that the program wrote down elsewhere. */
  | { readonly kind: "mark"; readonly line: string };

/** The file of the store; its log and its journal stand beside it. */
export const DATABASE = "store.db";
export const LOG = `${DATABASE}-wal`;
export const JOURNAL = `${DATABASE}-journal`;
/** An index of the log in shared memory. SQLite makes it again from the log, so it is no part of what must be durable. */
export const SHARED_MEMORY = `${DATABASE}-shm`;
