// providers/sqlite/driver.ts — the SQLite library: Node's own, or the package that brings the same API to Node 20.

import { messageOf, ProviderError } from "../../errors.js";

/** What we bind. Text that SQLite would not keep as it is goes through `toColumn` first. */
export type SqlValue = string | number | null;

/** Parameters are bound by position, to plain `?`: the first versions of `node:sqlite` take `?1` for a name. */
export interface SqliteStatement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
}

export interface SqliteConnection {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteDriver {
  readonly name: "node:sqlite" | "@photostructure/sqlite";
  /** Whether a thread that uses it may be ended at any moment. With the package, one process in five aborts that exits under load. */
  readonly isSafeInThreads: boolean;
  open(file: string): SqliteConnection;
}

interface DriverModule {
  readonly DatabaseSync: new (file: string) => SqliteConnection;
}

/** Where the library may come from. Each answers or rejects; tests bring their own. */
export interface DriverSources {
  readonly builtin: () => DriverModule | undefined;
  readonly installed: () => Promise<DriverModule>;
}

const SOURCES: DriverSources = {
  builtin: () => withoutSqliteWarning(() => process.getBuiltinModule("node:sqlite") as DriverModule | undefined),
  installed: () => import("@photostructure/sqlite") as Promise<DriverModule>,
};

/** @throws ProviderError "invalid" where this Node has no SQLite and none is installed */
export async function loadDriver(sources: DriverSources = SOURCES): Promise<SqliteDriver> {
  const builtin = sources.builtin();
  if (builtin !== undefined) return driverOf("node:sqlite", builtin);
  try {
    return driverOf("@photostructure/sqlite", await sources.installed());
  } catch (error) {
    const remedy = "Use Node 22.13 or newer, or run: npm install @photostructure/sqlite@1";
    const message = `Node ${process.versions.node} has no built-in SQLite, and no package for it could be loaded`;
    throw new ProviderError("invalid", "open", `${message} (${messageOf(error)}). ${remedy}`, { cause: error });
  }
}

function driverOf(name: SqliteDriver["name"], { DatabaseSync }: DriverModule): SqliteDriver {
  return { name, isSafeInThreads: name === "node:sqlite", open: (file) => new DatabaseSync(file) };
}

/**
 * Node 22 warns on stderr, once, that its SQLite is experimental. Which library we use is our choice, so our users are
 * spared that one warning; the load is synchronous, so no other code runs meanwhile.
 */
function withoutSqliteWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  const passOn = emitWarning as (...warning: unknown[]) => void;
  process.emitWarning = (...warning: unknown[]): void => {
    const [text, type] = warning;
    if (type === "ExperimentalWarning" && String(text).includes("SQLite")) return;
    passOn.apply(process, warning);
  };
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
