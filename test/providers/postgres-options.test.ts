import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { InvalidOptionsError } from "../../src/errors.js";
import {
  POSTGRES_DEFAULTS,
  type PostgresOptions,
  type PostgresSettings,
  resolveOptions,
  resolveSchema,
} from "../../src/providers/postgres/options.js";
import type { PostgresTarget } from "../../src/providers/postgres/target.js";

const URL_OF_ALL = "postgres://ann:secret@db.example.com:6543/orders";

function targetOf(connection: unknown): PostgresTarget {
  return resolveOptions(connection, undefined).target;
}

function settingsOf(options: PostgresOptions): PostgresSettings {
  return resolveOptions(URL_OF_ALL, options);
}

function refusal(connection: unknown, options?: object): string {
  try {
    resolveOptions(connection, options as PostgresOptions);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionsError);
    expect((error as Error).cause).toBeUndefined();
    return (error as Error).message;
  }
  throw new Error("it was accepted");
}

describe("a connection string", () => {
  test("says where, as whom and with what", async () => {
    const target = targetOf(URL_OF_ALL);
    expect(target).toMatchObject({ host: "db.example.com", port: 6543, database: "orders", user: "ann" });
    expect(target).toMatchObject({ tlsMode: "disable", isPasswordAsked: false, label: "db.example.com:6543/orders" });
    expect(await target.password?.()).toBe("secret");
  });

  test.each([
    ["postgresql://ann@localhost/orders", { host: "localhost", port: 5432, database: "orders", password: null }],
    ["POSTGRES://ann@localhost", { user: "ann", database: "ann" }],
    ["  postgres://ann@localhost/orders\n", { database: "orders" }],
    ["postgres://ann@[::1]:5433/orders", { host: "::1", port: 5433, label: "[::1]:5433/orders" }],
    ["postgres://ann%40home:p%40ss@localhost/a%2Fb", { user: "ann@home", database: "a/b" }],
    ["postgres:///orders?host=/var/run/postgresql&user=ann", { host: "/var/run/postgresql", database: "orders" }],
    [
      "postgres://ann:secret@/orders?host=/cloudsql/a:b:c",
      { host: "/cloudsql/a:b:c", user: "ann", database: "orders" },
    ],
    ["postgres://ann@%2Fvar%2Frun%2Fpostgresql/orders", { host: "/var/run/postgresql" }],
    ["postgres://localhost?user=ann&dbname=orders&port=1", { user: "ann", database: "orders", port: 1 }],
    ["postgres://ann@localhost/orders?options=-c%20lock_timeout%3D5s", { startupOptions: "-c lock_timeout=5s" }],
    ["postgres://ann@localhost/orders?channel_binding=require", { channelBinding: true }],
  ])("is read as PostgreSQL's programs read it: %s", (text, expected) => {
    expect(targetOf(text)).toMatchObject(expected);
  });

  test("may be a URL object", () => {
    expect(targetOf(new URL(URL_OF_ALL))).toMatchObject({ host: "db.example.com", user: "ann" });
  });

  test("sets the name of the application and the time to connect, unless options do", () => {
    const text = `${URL_OF_ALL}?application_name=shop&connect_timeout=3`;
    expect(resolveOptions(text, {})).toMatchObject({ applicationName: "shop", connectTimeoutMs: 3_000 });
    const louder = { applicationName: "till", connectTimeoutMs: 7 };
    expect(resolveOptions(text, louder)).toMatchObject(louder);
    expect(settingsOf({})).toMatchObject({ applicationName: "duroxide-ts", connectTimeoutMs: 10_000 });
  });

  test.each([
    ["", "is empty"],
    [" \n", "is empty"],
    ["localhost", "is no URL"],
    ["host=localhost user=ann", "is no URL"],
    ["postgres:ann@localhost", "is no URL"],
    ["mysql://ann@localhost/orders", "begins with 'mysql://', not with 'postgres://'"],
    ["postgres://ann@/orders", "names no host"],
    ["postgres://localhost/orders", "names no user"],
    ["postgres://ann@one,two/orders", "names several hosts"],
    ["postgres://ann@localhost:99999/orders", "is no valid URL"],
    ["postgres://ann@localhost/orders?port=x", "has a port that is none"],
    ["postgres://ann@localhost/orders?sslmod=require", "has a parameter 'sslmod' that is not known"],
    ["postgres://ann@localhost/orders?sslmode=on", "has an 'sslmode' that is not known"],
    ["postgres://ann@localhost/orders?ssl=maybe", "has an 'ssl' other than"],
    ["postgres://ann@localhost/orders?connect_timeout=soon", "has a 'connect_timeout'"],
    ["postgres://ann@localhost/orders?channel_binding=on", "has a 'channel_binding'"],
    ["postgres://ann@localhost/orders?sslmode=verify-ca&sslrootcert=/no/such/file", "has an 'sslrootcert'"],
  ])("is refused when it makes no sense: %j", (text, problem) => {
    expect(refusal(text)).toContain(`PostgresProvider.open: the connection string ${problem}`);
  });

  test("that is refused shows nothing of its password, whatever is in it", () => {
    const password = fc.stringMatching(/^[a-zA-Z0-9@:/?#%&=. -]{6,12}$/);
    fc.assert(
      fc.property(password, fc.constantFrom("", "?sslmod=x", "?sslmode=x", ":x"), (secret, flaw) => {
        fc.pre(!/^\w+$/.test(secret) || flaw !== "");
        const text = `postgres://ann:${secret}@db.example.com/orders${flaw}`;
        try {
          resolveOptions(text, undefined);
        } catch (error) {
          const { message } = error as Error;
          for (let start = 0; start + 5 <= secret.length; start += 1) {
            const piece = secret.slice(start, start + 5);
            if (!ORDINARY_WORDS.includes(piece)) expect(message).not.toContain(piece);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test.each(["12?4567", "12/4567", "12#4567", "a%zz"])("with the password %s asks for it to be encoded", (secret) => {
    const message = refusal(`postgres://ann:${secret}@db.example.com/orders`);
    expect(message).toContain("encodeURIComponent(password)");
    expect(message).not.toContain("4567");
  });
});

/** What any message may hold by chance. */
const ORDINARY_WORDS =
  refusal("postgres://ann@h/d?x=1") + refusal("postgres://ann:%@h") + refusal("postgres://a@h?sslmode=x");

describe("TLS in a connection string", () => {
  const ca = "-----BEGIN CERTIFICATE-----";

  function fileOfCa(): string {
    const folder = mkdtempSync(join(tmpdir(), "duroxide-ca-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "ca.pem"), ca);
    return encodeURIComponent(join(folder, "ca.pem"));
  }

  test.each([
    ["sslmode=disable", "disable", {}],
    ["sslmode=prefer", "prefer", { rejectUnauthorized: false }],
    ["sslmode=require", "require", { rejectUnauthorized: false }],
    ["sslmode=no-verify", "require", { rejectUnauthorized: false }],
    ["sslmode=verify-ca", "require", { checkServerIdentity: expect.any(Function) }],
    ["sslmode=verify-full", "require", {}],
    ["sslmode=verify-full&sslrootcert=system", "require", {}],
    ["sslmode=require&uselibpqcompat=true", "require", { rejectUnauthorized: false }],
    ["ssl=true", "require", {}],
    ["ssl=0", "disable", {}],
  ])("means what PostgreSQL says: %s", (parameters, tlsMode, tls) => {
    expect(targetOf(`${URL_OF_ALL}?${parameters}`)).toMatchObject({ tlsMode, tls });
    expect(Object.keys(targetOf(`${URL_OF_ALL}?${parameters}`).tls)).toEqual(Object.keys(tls));
  });

  test("with an authority trusts that one only, even where the mode is 'require'", () => {
    const file = fileOfCa();
    expect(targetOf(`${URL_OF_ALL}?sslmode=verify-full&sslrootcert=${file}`).tls).toEqual({ ca });
    expect(targetOf(`${URL_OF_ALL}?sslrootcert=${file}`)).toMatchObject({ tlsMode: "require", tls: { ca } });
    expect(targetOf(`${URL_OF_ALL}?sslmode=require&sslrootcert=${file}`).tls).not.toHaveProperty("rejectUnauthorized");
  });
});

describe("a connection object", () => {
  test("says the same in parts", async () => {
    const target = targetOf({ host: "localhost", user: "ann", password: "secret", ssl: true });
    expect(target).toMatchObject({ host: "localhost", port: 5432, database: "ann", tlsMode: "require", tls: {} });
    expect(await target.password?.()).toBe("secret");
  });

  test("may have a function for the password", async () => {
    const target = targetOf({ host: "localhost", user: "ann", password: async () => "token" });
    expect(target.isPasswordAsked).toBe(true);
    expect(await target.password?.()).toBe("token");
  });

  test.each([
    [false, "disable", {}],
    ["require", "require", { rejectUnauthorized: false }],
    [{ ca: "pem", rejectUnauthorized: true }, "require", { ca: "pem", rejectUnauthorized: true }],
  ])("says how TLS is to be: %j", (ssl, tlsMode, tls) => {
    expect(targetOf({ host: "localhost", user: "ann", ssl })).toMatchObject({ tlsMode, tls });
  });

  test.each<[unknown, string]>([
    [undefined, "must be a URL, such as"],
    [null, "not null"],
    [42, "not number"],
    [["postgres://localhost"], "not an array"],
    [{ user: "ann" }, "names no host"],
    [{ host: "localhost" }, "names no user"],
    [{ host: "", user: "ann" }, "option 'host' must not be empty"],
    [{ host: "localhost", user: "a\0b" }, "option 'user' must not contain a NUL"],
    [{ host: "localhost", user: "ann", port: 0 }, "option 'port' must be an integer from 1 to 65535"],
    [{ host: "localhost", user: "ann", pasword: "secret" }, "Did you mean 'password'?"],
    [{ host: "localhost", user: "ann", password: 12345 }, "option 'password' must be a string or a function"],
    [{ host: "localhost", user: "ann", ssl: "on" }, "option 'ssl' must be true, false"],
    [{ host: "localhost", user: "ann", ssl: { sa: "x" } }, "unknown option 'sa'. Did you mean 'ca'?"],
    [{ host: "localhost", user: "ann", ssl: { key: "" } }, "option 'key' must be the text of a PEM file"],
  ])("is refused when it makes no sense: %j", (connection, problem) => {
    const message = refusal(connection);
    expect(message).toContain(problem);
    expect(message).not.toMatch(/secret|12345/);
  });
});

describe("options", () => {
  test("have defaults", () => {
    expect(settingsOf({})).toMatchObject({ ...POSTGRES_DEFAULTS, quotedSchema: '"duroxide"' });
    expect(settingsOf({ schema: undefined, clock: undefined })).toMatchObject({ schema: "duroxide" });
  });

  test.each(["public", "Orders", 'a"b', "a b", "日本語", "x".repeat(63), "é".repeat(31), "'; DROP TABLE x; --"])(
    "allow the schema %j",
    (schema) => {
      expect(settingsOf({ schema }).quotedSchema).toBe(`"${schema.replaceAll('"', '""')}"`);
      expect(resolveSchema("migrations", { schema })).toBe(schema);
    },
  );

  test.each<[unknown, string]>([
    ["", "must not be empty"],
    ["x".repeat(64), "at most 63 bytes"],
    ["é".repeat(32), "at most 63 bytes"],
    ["pg_temp", "must not begin with 'pg_'"],
    ["PG_x", "must not begin with 'pg_'"],
    ["a\0b", "NUL"],
    ["a\ud800", "well-formed"],
    [7, "must be a string, not 7"],
  ])("refuse the schema %j", (schema, problem) => {
    expect(refusal(URL_OF_ALL, { schema })).toContain("option 'schema'");
    expect(refusal(URL_OF_ALL, { schema })).toContain(problem);
    expect(() => resolveSchema("migrations", { schema: schema as string })).toThrow(problem);
  });

  test.each<[object, string]>([
    [{ shema: "x" }, "unknown option 'shema'. Did you mean 'schema'?"],
    [{ migrate: 1 }, "option 'migrate' must be true or false"],
    [{ maxConnections: 0 }, "option 'maxConnections' must be an integer from 1 to 1000"],
    [{ maxConnections: 1_001 }, "option 'maxConnections'"],
    [{ connectTimeoutMs: 0 }, "option 'connectTimeoutMs'"],
    [{ statementTimeoutMs: -1 }, "option 'statementTimeoutMs'"],
    [{ idleTimeoutMs: 0.5 }, "option 'idleTimeoutMs'"],
    [{ applicationName: "" }, "option 'applicationName'"],
    [{ applicationName: "naïve" }, "option 'applicationName' must be 1 to 63 printable ASCII"],
    [{ wakeUps: "push" }, 'must be "listen" or "poll" or "local"'],
    [{ pollIntervalMs: 0 }, "option 'pollIntervalMs'"],
    [{ clock: {} }, "option 'clock' must be a clock"],
    [{ newId: "x" }, "option 'newId' must be a function"],
    [{ onWarning: 1 }, "option 'onWarning' must be a function"],
    [{ listenConnectionString: 1 }, "option 'listenConnectionString' must be a string, not number"],
    [{ listenConnectionString: "mysql://x" }, "option 'listenConnectionString' begins with 'mysql://'"],
    [{ listenConnectionString: "postgres://h", wakeUps: "poll" }, "'listenConnectionString' is of no use with wakeUps"],
  ])("that make no sense are refused: %j", (options, problem) => {
    expect(refusal(URL_OF_ALL, options)).toContain(problem);
  });
});

describe("a connection to listen on", () => {
  test("is the same, unless another is named", () => {
    const { target, listenTarget } = settingsOf({});
    expect(listenTarget).toBe(target);
  });

  test("takes from the main one what it leaves out", async () => {
    const main = { host: "pooler", user: "ann", database: "orders", password: () => "token", ssl: "require" };
    const { listenTarget } = resolveOptions(main, { listenConnectionString: "postgres://direct:5433" });
    expect(listenTarget).toMatchObject({ host: "direct", port: 5433, user: "ann", database: "orders" });
    expect(listenTarget).toMatchObject({
      isPasswordAsked: true,
      tlsMode: "require",
      tls: { rejectUnauthorized: false },
    });
    expect(await listenTarget.password?.()).toBe("token");
  });

  test("keeps what it says itself", async () => {
    const listenConnectionString = "postgres://bob:other@direct/items?sslmode=disable";
    const { listenTarget } = resolveOptions(`${URL_OF_ALL}?sslmode=require`, { listenConnectionString });
    expect(listenTarget).toMatchObject({ host: "direct", user: "bob", database: "items", tlsMode: "disable" });
    expect(listenTarget.isPasswordAsked).toBe(false);
    expect(await listenTarget.password?.()).toBe("other");
  });
});

test("settings that are printed show no password", () => {
  const settings = resolveOptions(URL_OF_ALL, { listenConnectionString: URL_OF_ALL });
  expect(inspect(settings, { depth: null, showHidden: true })).not.toContain("secret");
  expect(JSON.stringify(settings)).not.toContain("secret");
});
