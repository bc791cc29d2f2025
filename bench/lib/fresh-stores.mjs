// bench/lib/fresh-stores.mjs — a new, empty store for every measured process, and nothing of it left afterwards.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { openPostgres } from "../../scripts/postgres-server.mjs";

/**
 * A server that has run for a while writes its log into files that it has used before. A new one makes them, 16 MB of zeros at a time, and
 * every commit waits for that: 50 ms here, once for each second and a half of W2b. So they are made before anything is measured.
 */
const WAL_FILES = 32;
const WAL_SETTINGS = { min_wal_size: `${2 * WAL_FILES * 16}MB` };

export class FreshStores {
  /** Where the files of SQLite lie. */
  folder;
  #postgres = null;
  #admin = null;
  #count = 0;

  constructor(folder = tmpdir()) {
    this.folder = folder;
  }

  /** Why there is no PostgreSQL, or null if there is one. */
  async openPostgres() {
    const opened = await openPostgres({ durable: true, settings: WAL_SETTINGS });
    if (opened.kind === "missing") return opened.reason;
    this.#postgres = opened;
    this.#admin = new pg.Client({ connectionString: opened.url });
    await this.#admin.connect();
    if (opened.kind === "started") await this.#makeWalFiles();
    return null;
  }

  async #makeWalFiles() {
    for (let made = 0; made < WAL_FILES; made += 1) {
      await this.#admin.query("SELECT pg_logical_emit_message(false, 'bench', 'the next file')");
      await this.#admin.query("SELECT pg_switch_wal()");
    }
    await this.#admin.query("CHECKPOINT"); // From now on they are used again.
  }

  /** Rows of the server's answer; null where there is no server. */
  async ask(sql) {
    return this.#admin === null ? null : (await this.#admin.query(sql)).rows;
  }

  /** @returns {import("./measured-process.mjs").StoreSpec} */
  make(name) {
    if (name === "postgres") {
      this.#count += 1;
      return { kind: "postgres", url: this.#postgres.url, schema: `bench_${process.pid}_${this.#count}` };
    }
    const folder = mkdtempSync(join(this.folder, "duroxide-bench-"));
    return { kind: "sqlite", durability: name.slice("sqlite-".length), folder };
  }

  /** What one process has written must not be flushed, or vacuumed, while the next one is measured. */
  async remove(store) {
    if (store.kind === "sqlite") return rmSync(store.folder, { recursive: true, force: true });
    await this.#admin.query("SET client_min_messages = warning");
    await this.#admin.query(`DROP SCHEMA IF EXISTS "${store.schema}" CASCADE`);
    if (this.#postgres.kind === "started") await this.#admin.query("CHECKPOINT");
  }

  async close() {
    await this.#admin?.end();
    await this.#postgres?.close();
  }
}
