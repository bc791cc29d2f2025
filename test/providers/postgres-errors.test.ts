import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { postgresAvailable, startPostgres } from "../../scripts/postgres-server.mjs";
import { ProviderError, type ProviderErrorKind } from "../../src/errors.js";
import { Connections } from "../../src/providers/postgres/connections.js";
import { loadDriver } from "../../src/providers/postgres/driver.js";
import {
  type ErrorContext,
  isCertainlyUndone,
  isConflict,
  isFatal,
  sqlStateOf,
  toProviderError,
} from "../../src/providers/postgres/driver-errors.js";
import { type PostgresOptions, resolveOptions } from "../../src/providers/postgres/options.js";
import { ServerProxy } from "./postgres-proxy.js";

const SERVER_URL = process.env.DUROXIDE_TEST_PG_URL;

const CONTEXT: ErrorContext = {
  label: "db:5432/orders",
  database: "orders",
  user: "ann",
  schema: "duroxide",
  quotedSchema: '"duroxide"',
  isPasswordAsked: false,
  maxConnections: 10,
  connectTimeoutMs: 10_000,
  statementTimeoutMs: 30_000,
};

/** An error as the driver makes it of an answer of the server. */
function answer(code: string, message = "no", severity = "ERROR"): Error {
  return Object.assign(new Error(message), { code, severity });
}

function failure(code: string): Error {
  return Object.assign(new Error(`connect ${code}`), { code });
}

describe("an answer of the server", () => {
  test.each<[string, ProviderErrorKind, string]>([
    ["08006", "transient", "the connection to db:5432/orders failed"],
    ["08P01", "transient", "the connection to db:5432/orders failed"],
    ["22021", "invalid", "cannot be stored in schema 'duroxide'"],
    ["23505", "invalid", "contradicts what is stored"],
    ["25006", "transient", "read-only"],
    ["25P03", "transient", "ended by the server"],
    ["28000", "invalid", "refused user 'ann'"],
    ["28P01", "invalid", "Check the name, the password"],
    ["3D000", "invalid", "there is no database 'orders'"],
    ["3F000", "invalid", "migrate: true"],
    ["40001", "transient", "were in the way"],
    ["40P01", "transient", "were in the way"],
    ["42501", "invalid", 'GRANT CREATE ON DATABASE "orders" TO "ann"'],
    ["42883", "invalid", "schema 'duroxide' at db:5432/orders is not as this version made it"],
    ["42P01", "invalid", "migrate: true"],
    ["42601", "invalid", "refused the call"],
    ["53100", "transient", "the disk of db:5432/orders is full"],
    ["53200", "transient", "run out of memory"],
    ["53300", "transient", "too many connections"],
    ["54000", "invalid", "at most about 2,600 bytes"],
    ["55P03", "transient", "a lock"],
    ["57014", "transient", "was cancelled"],
    ["57P01", "transient", "ended by the server"],
    ["57P02", "transient", "ended by the server"],
    ["57P03", "transient", "starting up"],
    ["57P05", "transient", "ended by the server"],
    ["58030", "transient", "in trouble"],
    ["XX000", "transient", "pooler"],
    ["XX001", "corrupt", "damaged"],
    ["P0001", "invalid", "refused the call"],
    ["DX999", "invalid", "refused the call"],
  ])("%s is %s", (code, kind, message) => {
    const cause = answer(code);
    const error = toProviderError("ackWorkItem", cause, CONTEXT);
    expect(error).toMatchObject({ kind, operation: "ackWorkItem", cause });
    expect(error.message).toContain(message);
    expect(error.message).toContain(`SQLSTATE ${code}`);
  });

  test("that refuses a token is transient: the next one may be good", () => {
    const asked = { ...CONTEXT, isPasswordAsked: true };
    expect(toProviderError("open", answer("28P01"), asked).kind).toBe("transient");
    expect(toProviderError("open", answer("28000"), asked).kind).toBe("transient");
  });

  test.each([
    ["0A000", "cached plan must not change result type", "transient"],
    ["0A000", "not supported", "invalid"],
    ["08P01", "unsupported startup parameter: statement_timeout", "invalid"],
    ["08P01", "unsupported startup parameter: options", "invalid"],
    ["08P01", "SASL authentication failed", "invalid"],
    ["08P01", 'password authentication failed for user "app"', "invalid"],
    ["08P01", "no such user: app", "invalid"],
    ["08P01", "no such database: orders", "invalid"],
    ["08P01", 'database "orders" does not exist', "invalid"],
    ["08P01", "server login retry", "transient"],
    ["08P01", "query_wait_timeout", "transient"],
    ["08P01", "no more connections allowed (max_client_conn)", "transient"],
    ["28000", "no pg_hba.conf entry for host, no encryption", "invalid"],
  ])("%s is judged by its words too: %s", (code, message, kind) => {
    expect(toProviderError("open", answer(code, message), CONTEXT).kind).toBe(kind);
  });

  test("names what helps", () => {
    const helpOf = (code: string, message: string) => toProviderError("open", answer(code, message), CONTEXT).message;
    expect(helpOf("08P01", "unsupported startup parameter: statement_timeout")).toContain("statementTimeoutMs: 0");
    expect(helpOf("08P01", "unsupported startup parameter: options")).toMatch(/refuses options\. Leave it out/);
    expect(helpOf("28000", "no pg_hba.conf entry for host, no encryption")).toContain("sslmode=require");
    expect(helpOf("57014", "canceling statement due to statement timeout")).toContain("statementTimeoutMs (30000 ms)");
  });

  test("tells by its code whether anything was done, and whether the connection lives on", () => {
    expect([answer("40001"), answer("40P01"), answer("23505")].map(isConflict)).toEqual([true, true, false]);
    expect([answer("57P01"), answer("57P02"), answer("57P05")].map(isCertainlyUndone)).toEqual([true, false, true]);
    expect([answer("23505"), answer("57P01", "", "FATAL"), failure("EPIPE")].map(isFatal)).toEqual([false, true, true]);
    const wrapped = toProviderError("x", answer("40001"), CONTEXT);
    expect([sqlStateOf(wrapped), isConflict(wrapped)]).toEqual(["40001", true]);
    expect([sqlStateOf(failure("EPIPE")), sqlStateOf(null), sqlStateOf("x")]).toEqual([null, null, null]);
  });
});

describe("a failure on the way", () => {
  test.each<[string, ProviderErrorKind]>([
    ["ECONNREFUSED", "transient"],
    ["ECONNRESET", "transient"],
    ["EPIPE", "transient"],
    ["ETIMEDOUT", "transient"],
    ["EAI_AGAIN", "transient"],
    ["ENOTFOUND", "transient"],
    ["ENOENT", "transient"],
    ["EACCES", "invalid"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "invalid"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "invalid"],
    ["CERT_HAS_EXPIRED", "invalid"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "invalid"],
    ["ERR_OSSL_PEM_NO_START_LINE", "invalid"],
    ["ERR_SSL_TLSV1_ALERT_UNKNOWN_CA", "invalid"],
    ["EWHATEVER", "transient"],
  ])("%s is %s", (code, kind) => {
    const cause = failure(code);
    expect(toProviderError("open", cause, CONTEXT)).toMatchObject({ kind, cause });
  });

  test("of what was never sent is known as such; a lost connection is not", () => {
    const notSent = new Error("Client has encountered a connection error and is not queryable");
    expect(isCertainlyUndone(toProviderError("x", notSent, CONTEXT))).toBe(true);
    expect(isCertainlyUndone(new Error("Connection terminated unexpectedly"))).toBe(false);
  });

  test("to reach any of several addresses tells of each", () => {
    const cause = new AggregateError([failure("ECONNREFUSED"), failure("ETIMEDOUT")], "");
    const error = toProviderError("open", Object.assign(cause, { code: "ECONNREFUSED" }), CONTEXT);
    expect(error.message).toContain("connect ECONNREFUSED; connect ETIMEDOUT");
  });

  test("that is an error of ours stays as it is", () => {
    const error = new ProviderError("lock-lost", "x", "gone");
    expect(toProviderError("y", error, CONTEXT)).toBe(error);
  });
});

test("a driver that is not installed is named, with what to do", async () => {
  const refused = await loadDriver(() => Promise.reject(new Error("Cannot find package 'pg'"))).catch((e) => e);
  expect(refused).toMatchObject({ kind: "invalid", operation: "open" });
  expect(refused.message).toContain("Run: npm install pg");
});

describe.skipIf(SERVER_URL === undefined)("opening", () => {
  const url = SERVER_URL ?? "";
  const suffix = randomBytes(6).toString("hex");
  const role = `plain_${suffix}`;
  const latin = `latin_${suffix}`;
  let owner: Connections;

  beforeAll(async () => {
    owner = await Connections.open(resolveOptions(url, { maxConnections: 1 }));
    await owner.query("test", `CREATE ROLE ${role} LOGIN PASSWORD 'hunter2hunter2' CONNECTION LIMIT 1`);
    await owner.query("test", `CREATE DATABASE ${latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`);
    await owner.query("test", `CREATE SCHEMA ${role}; CREATE TABLE ${role}.closed (id int)`);
    await owner.query("test", `GRANT USAGE ON SCHEMA ${role} TO ${role}`);
  });

  afterAll(async () => {
    await owner.query("test", `DROP SCHEMA ${role} CASCADE`);
    await owner.query("test", `DROP DATABASE ${latin}`);
    await owner.query("test", `DROP ROLE ${role}`);
    await owner.close();
  });

  type Part = "username" | "password" | "hostname" | "port" | "pathname";

  function urlWith(parts: Partial<Record<Part, string>>): string {
    return Object.assign(new URL(url), parts).href;
  }

  const asRole = (password = "hunter2hunter2"): string => urlWith({ username: role, password });

  async function refusalOf(connection: unknown, options?: PostgresOptions): Promise<ProviderError> {
    const error = await Connections.open(resolveOptions(connection, options)).catch((thrown: unknown) => thrown);
    if (error instanceof Connections) {
      await error.close();
      throw new Error("it opened");
    }
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ operation: "open" });
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("hunter2hunter2");
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(new URL(url).password);
    return error as ProviderError;
  }

  async function openAsRole(options?: PostgresOptions): Promise<Connections> {
    const connections = await Connections.open(resolveOptions(asRole(), options));
    onTestFinished(() => connections.close());
    return connections;
  }

  test("with a wrong password is invalid", async () => {
    const { kind, message } = await refusalOf(asRole("wrongwrong"));
    expect(kind).toBe("invalid");
    expect(message).toContain(`refused user '${role}'`);
    expect(message).not.toContain("wrongwrong");
  });

  test("without a password that is asked for is invalid", async () => {
    const { kind, message } = await refusalOf(asRole(""));
    expect(kind).toBe("invalid");
    expect(message).toContain("asks for a password");
  });

  test("a database that does not exist is invalid", async () => {
    const { kind, message } = await refusalOf(urlWith({ pathname: "/nowhere" }));
    expect(kind).toBe("invalid");
    expect(message).toContain("there is no database 'nowhere'");
  });

  test("a database that cannot hold every text is invalid", async () => {
    const { kind, message } = await refusalOf(urlWith({ pathname: `/${latin}` }));
    expect(kind).toBe("invalid");
    expect(message).toContain("has the encoding LATIN1");
  });

  test("a port at which nobody listens is transient", async () => {
    const { kind, message } = await refusalOf(urlWith({ port: "1" }));
    expect(kind).toBe("transient");
    expect(message).toContain("nobody listens at");
  });

  test("a host that does not exist is transient", async () => {
    const { kind, message } = await refusalOf(urlWith({ hostname: "nowhere.invalid" }));
    expect(kind).toBe("transient");
    expect(message).toContain("nowhere.invalid");
  });

  test("a server that never answers is transient", async () => {
    const proxy = await ServerProxy.to(url);
    const opening = refusalOf(proxy.url, { connectTimeoutMs: 200 });
    await proxy.sent("user");
    proxy.swallow();
    const { kind, message } = await opening;
    expect(kind).toBe("transient");
    expect(message).toContain("within 200 ms");
  });

  test("with TLS that the server does not speak is invalid, and goes on without where TLS is only preferred", async () => {
    const { kind, message } = await refusalOf(`${url}?sslmode=require`);
    expect(kind).toBe("invalid");
    expect(message).toContain("cannot encrypt");
    const connections = await Connections.open(resolveOptions(`${url}?sslmode=prefer`, undefined));
    await connections.close();
  });

  test("as one too many is transient", async () => {
    const connections = await openAsRole({ maxConnections: 1 });
    const { kind, message } = await refusalOf(asRole());
    expect(kind).toBe("transient");
    expect(message).toContain("too many connections");
    await connections.query("test", "SELECT 1");
  });

  test("with too few rights fails at what is not allowed, and says which rights help", async () => {
    const connections = await openAsRole();
    const create = await connections.query("open", `CREATE SCHEMA more_${suffix}`).catch((error) => error);
    expect(create).toMatchObject({ kind: "invalid" });
    expect(create.message).toContain(`TO "${role}"`);
    const read = await connections.query("readHistory", `SELECT * FROM ${role}.closed`).catch((error) => error);
    expect(read).toMatchObject({ kind: "invalid", operation: "readHistory" });
    expect(read.message).toContain('GRANT USAGE ON SCHEMA "duroxide"');
  });
});

describe.skipIf(SERVER_URL === undefined)("statements that fail", () => {
  async function open(options?: PostgresOptions): Promise<Connections> {
    const connections = await Connections.open(resolveOptions(SERVER_URL, options));
    onTestFinished(() => connections.close());
    return connections;
  }

  test("for being slow are transient, and leave the connection usable", async () => {
    const connections = await open({ statementTimeoutMs: 200, maxConnections: 1 });
    const [before] = await connections.query<{ pid: number }>("test", "SELECT pg_backend_pid() AS pid");
    const slow = await connections.query("test", "SELECT pg_sleep(10)").catch((error) => error);
    expect(slow).toMatchObject({ kind: "transient" });
    expect(slow.message).toContain("statementTimeoutMs (200 ms)");
    const [after] = await connections.query<{ pid: number }>("test", "SELECT pg_backend_pid() AS pid");
    expect(after).toEqual(before);
  });

  test.each([
    ["a table that is not there", "SELECT * FROM nowhere.at_all", [], "invalid"],
    ["a character that no text may have", "SELECT $1::text", ["a\0b"], "invalid"],
    ["an id that no index can hold", INDEXED, [], "invalid"],
    ["a value that is no number", "SELECT $1::int", ["x"], "invalid"],
    ["a division by zero", "SELECT 1 / 0", [], "invalid"],
  ])("for %s are told apart", async (_what, text, values, kind) => {
    const connections = await open();
    await expect(connections.query("test", text, values as string[])).rejects.toMatchObject({ kind });
  });
});

const INDEXED = `
  CREATE TEMP TABLE long_ids (id text PRIMARY KEY);
  INSERT INTO long_ids SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) AS i`;

describe.skipIf(postgresAvailable() !== null)("a server that speaks TLS only", () => {
  test("is trusted as far as the connection says", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): number => warnings.push(warning);
    process.on("warning", onWarning);
    const server = await startPostgres({ tls: true });
    onTestFinished(async () => {
      process.off("warning", onWarning);
      await server.close();
    });
    const { host, port, user, password, url } = server;
    const parts = { host, port, user, password, database: "postgres" };
    const ca = server.certificate!;

    const outcome = async (connection: unknown): Promise<string> => {
      try {
        const connections = await Connections.open(resolveOptions(connection, undefined));
        const text = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        const [row] = await connections.query<{ ssl: boolean }>("test", text);
        await connections.close();
        return row?.ssl ? "encrypted" : "plain";
      } catch (error) {
        expect(error).toMatchObject({ kind: "invalid" });
        return (error as Error).message;
      }
    };

    expect(await outcome(url)).toContain("Add sslmode=require");
    expect(await outcome(`${url}?sslmode=require`)).toBe("encrypted");
    expect(await outcome(`${url}?sslmode=prefer`)).toBe("encrypted");
    expect(await outcome(`${url}?sslmode=verify-full`)).toContain("is not trusted");
    expect(await outcome({ ...parts, ssl: true })).toContain("is not trusted");
    expect(await outcome({ ...parts, ssl: "require" })).toBe("encrypted");
    expect(await outcome({ ...parts, ssl: { ca } })).toBe("encrypted");
    expect(await outcome({ ...parts, ssl: { ca, servername: "elsewhere.example" } })).toContain("another host's");
    expect(await outcome({ ...parts, ssl: { ca: "nonsense" } })).toContain("is not trusted");
    expect(warnings).toEqual([]);
  });
});
