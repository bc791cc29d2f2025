// scripts/postgres-server.mjs — a real PostgreSQL for tests and commands, in a process of its own.
//
//   S1. It listens on 127.0.0.1 only, asks for a password that nobody else knows, and never runs as root.
//   S2. It does not outlive the process that started it, and neither do its files, whatever ends that process: a watchdog
//       sees to it (postgres-watchdog.mjs).
//   S3. It does not keep the process that started it alive.
//   S4. A Ctrl+C goes to the starter alone. What happens to the server is then for the starter to say.
//   S5. Nothing is printed. What the server says is kept, and told where it cannot be started.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { giveTo, postgresAvailable, serverAccount, usableBinaries } from "./postgres-binaries.mjs";
import { selfSignedCertificate } from "./self-signed-certificate.mjs";

export { postgresAvailable };

const HOST = "127.0.0.1";
const USER = "postgres";
const PORT_ATTEMPTS = 5;
const LINES_KEPT = 200;
const WATCHDOG = fileURLToPath(new URL("postgres-watchdog.mjs", import.meta.url));

const SETTINGS = {
  listen_addresses: HOST,
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "128MB",
};
/** Nothing waits for the disk. An immediate stop may then take the last commits with it, never part of one. */
const NOT_DURABLE = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
const TLS = { ssl: "on", ssl_cert_file: "server.crt", ssl_key_file: "server.key" };

/** Its messages are read here, so they are in English; PG* variables of the caller mean other servers. */
const ENVIRONMENT = { LC_ALL: "C", TZ: "UTC" };

const SIGNALS = Object.freeze({ smart: "SIGTERM", fast: "SIGINT", immediate: "SIGQUIT" });

/** @type {typeof import("./postgres-server.mjs").openPostgres} */
export async function openPostgres(options) {
  const url = process.env.DUROXIDE_PG_URL;
  if (url) return { kind: "given", url, close: async () => {} };
  const reason = postgresAvailable();
  if (reason !== null) return { kind: "missing", reason };
  const server = await startPostgres(options);
  return { kind: "started", url: server.url, server, close: () => server.close() };
}

/** @type {typeof import("./postgres-server.mjs").startPostgres} */
export async function startPostgres(options = {}) {
  const reason = postgresAvailable();
  if (reason !== null) throw new Error(reason);
  const server = new Server(options);
  try {
    await server.create();
    return server;
  } catch (error) {
    await server.close();
    throw error;
  }
}

class Server {
  host = HOST;
  user = USER;
  password = randomBytes(24).toString("base64url");
  port = 0;
  dataDir;
  certificate = null;

  #options;
  #account = serverAccount();
  #folder;
  #watchdog;
  #binaries = "";
  #process = null;
  #log = [];

  constructor(options) {
    const { dataDir } = options;
    if (dataDir !== undefined && existsSync(dataDir) && readdirSync(dataDir).length > 0) {
      throw new Error(`${dataDir} is not empty: the data of a new server goes into an empty folder`);
    }
    this.#options = options;
    this.#folder = mkdtempSync(join(tmpdir(), "duroxide-postgres-"));
    this.dataDir = dataDir === undefined ? join(this.#folder, "data") : resolve(dataDir);
    this.#watchdog = startWatchdog([this.dataDir, this.#folder]);
  }

  get url() {
    return `postgres://${this.user}:${this.password}@${this.host}:${this.port}/postgres`;
  }

  get pid() {
    return this.#process?.pid ?? null;
  }

  tail() {
    return this.#log.join("\n");
  }

  /** The cluster of databases, and a server on it. */
  async create() {
    mkdirSync(this.dataDir, { recursive: true, mode: 0o700 });
    this.#binaries = usableBinaries(this.#folder, this.#account);
    await this.#initialize();
    if (this.#options.tls) this.#setUpTls();
    await this.#startOnSomePort();
  }

  async start() {
    if (this.#process !== null) throw new Error("the server runs already");
    if (this.#watchdog === null) throw new Error("the server is closed");
    const server = spawn(join(this.#binaries, "bin", "postgres"), this.#arguments(), {
      ...this.#asAccount(),
      detached: true, // S4
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = server;
    server.once("exit", () => this.#forget());
    this.#watchdog.stdin.write(`${server.pid ?? 0}\n`);
    await this.#ready(server);
    server.unref(); // S3
    server.stderr.unref();
  }

  async stop(mode = "fast") {
    const server = this.#process;
    if (server === null) return;
    server.ref();
    const ended = once(server, "exit");
    server.kill(SIGNALS[mode]);
    await ended;
  }

  async close() {
    await this.stop("immediate");
    const watchdog = this.#watchdog;
    if (watchdog === null) return;
    this.#watchdog = null;
    watchdog.ref();
    const ended = once(watchdog, "exit");
    watchdog.stdin.end();
    await ended;
  }

  async #initialize() {
    const passwordFile = join(this.#folder, "password");
    writeFileSync(passwordFile, this.password, { mode: 0o600 });
    for (const folder of [this.#folder, this.dataDir]) giveTo(this.#account, folder);
    const options = [`--pgdata=${this.dataDir}`, `--username=${USER}`, `--pwfile=${passwordFile}`];
    options.push("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions");
    await promisify(execFile)(join(this.#binaries, "bin", "initdb"), options, this.#asAccount());
    rmSync(passwordFile);
  }

  #setUpTls() {
    const { key, certificate } = selfSignedCertificate();
    this.certificate = certificate;
    writeFileSync(join(this.dataDir, "server.key"), key, { mode: 0o600 });
    writeFileSync(join(this.dataDir, "server.crt"), certificate);
    writeFileSync(join(this.dataDir, "pg_hba.conf"), `hostssl all all ${HOST}/32 scram-sha-256\n`);
    giveTo(this.#account, this.dataDir);
  }

  /** Between our look for a free port and the server's own, another process may take it. */
  async #startOnSomePort() {
    const attempts = this.#options.port === undefined ? PORT_ATTEMPTS : 1;
    for (let attempt = 1; ; attempt++) {
      this.port = this.#options.port ?? (await freePort());
      try {
        return await this.start();
      } catch (error) {
        if (attempt === attempts || !/could not bind .* address/.test(this.tail())) throw error;
        this.#log.length = 0;
      }
    }
  }

  #arguments() {
    const { durable, tls, settings } = this.#options;
    const all = { ...SETTINGS, ...(durable ? {} : NOT_DURABLE), ...(tls ? TLS : {}), ...settings };
    const given = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    return ["-D", this.dataDir, "-p", String(this.port), ...given];
  }

  /** The folder of the starter may be one that the account cannot be in. */
  #asAccount() {
    return { ...this.#account, cwd: this.#folder, env: ENVIRONMENT };
  }

  #ready(server) {
    return new Promise((resolve, reject) => {
      createInterface(server.stderr).on("line", (line) => {
        this.#keep(line);
        if (line.includes("database system is ready to accept connections")) resolve();
      });
      server.once("error", (error) => {
        this.#forget();
        reject(error);
      });
      server.once("close", () => reject(new Error(`PostgreSQL did not start:\n${this.tail()}`)));
    });
  }

  #keep(line) {
    this.#log.push(line);
    if (this.#log.length > LINES_KEPT) this.#log.shift();
  }

  #forget() {
    this.#process = null;
    this.#watchdog?.stdin.write("0\n");
  }
}

/** S2. In a session of its own, so that no signal to the starter's reaches it. */
function startWatchdog(folders) {
  const watchdog = spawn(process.execPath, [WATCHDOG, ...folders], {
    cwd: "/",
    detached: true,
    env: {},
    stdio: ["pipe", "ignore", "ignore"],
  });
  watchdog.unref();
  watchdog.stdin.unref();
  return watchdog;
}

async function freePort() {
  const server = createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
