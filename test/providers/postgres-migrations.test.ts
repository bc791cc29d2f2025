// How a schema comes about: by many at once, by hand, under any name, beside others; and what is never changed.

import { createHash } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { ProviderError } from "../../src/errors.js";
import { migrations, type PostgresOptions, PostgresProvider } from "../../src/providers/postgres/index.js";
import { inSchema } from "../../src/providers/postgres/migrate.js";
import { MIGRATIONS } from "../../src/providers/postgres/migrations/index.js";
import { Owner, quoted, uniqueName, useEverything } from "./postgres-owner.js";

const SERVER_URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
const onServer = describe.skipIf(SERVER_URL === "");

const LATEST = MIGRATIONS.length;

async function opened(url: string, options: PostgresOptions): Promise<PostgresProvider> {
  const provider = await PostgresProvider.open(url, { wakeUps: "local", maxConnections: 2, ...options });
  onTestFinished(() => provider.close());
  return provider;
}

async function refusalOf(url: string, options: PostgresOptions): Promise<ProviderError> {
  const error = await opened(url, options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ProviderError);
  return error as ProviderError;
}

/** A schema that ends with the test, whoever makes it. */
function schemaOf(owner: Owner, name = uniqueName("schema")): string {
  onTestFinished(() => owner.run(`DROP SCHEMA IF EXISTS ${quoted(name)} CASCADE`));
  return name;
}

/** What has been applied, and by how many transactions. */
async function ledgerOf(owner: Owner, schema: string): Promise<{ versions: number[]; transactions: number }> {
  const rows = await owner.rows<{ version: number; by: string }>(
    `SELECT version, xmin::text AS by FROM ${quoted(schema)}.duroxide_migrations ORDER BY version`,
  );
  return { versions: rows.map(({ version }) => version), transactions: new Set(rows.map(({ by }) => by)).size };
}

/** By hand: each script in a transaction of its own. */
async function apply(owner: Owner, schema: string, isWanted: (version: number) => boolean = () => true): Promise<void> {
  for (const { version, sql } of migrations({ schema })) {
    if (isWanted(version)) await owner.run(`BEGIN; ${sql} COMMIT;`);
  }
}

const ALL = MIGRATIONS.map(({ version }) => version);

describe("a released migration", () => {
  const FROZEN: Readonly<Record<string, string>> = {
    "1 tables": "b3b94de28053a63e00e63c4413bce8ca69a779433a1ab6374332841faee0be91",
    "2 turns": "de0708f7a126bb7bd95806ad4ea43855fa0e315c61a92382b5cb4dc5f2a4db3d",
    "3 activities": "efc3dc6e116e20d885df9372d7116def3010f06c6bdd2942637d0fe9e11754e4",
    "4 reading": "0c0672811dd7a3722bfaa5e239acf5baaba5fcdf16c9529ce05c4c3119c4721f",
    "5 management": "b16759c6d096c3847e3266a2fdb469889b2feb3da8c8ee12b2a1caee1bb4a078",
  };

  test("is never edited", () => {
    const found = migrations().map(({ version, name, sql }) => [
      `${version} ${name}`,
      createHash("sha256").update(sql).digest("hex"),
    ]);
    expect(
      Object.fromEntries(found),
      "Migrations are frozen: schemas out there have the old text. Add another migration instead. " +
        "(Until the first release with PostgreSQL, and only until then, put the new hash here.)",
    ).toEqual(FROZEN);
  });

  test("has a version of its own, one after the other", () => {
    expect(ALL).toEqual(MIGRATIONS.map((_, index) => index + 1));
  });
});

describe("a name in a script", () => {
  test("is put in once, whatever it looks like", () => {
    const script = "SELECT {schema}.f('{schema}.s', $$x$$)";
    const name = `"a'b\\{schema} '{schema}.$$ $& $1"`;
    expect(inSchema(script, name)).toBe(
      `SELECT ${name}.f(E'"a''b\\\\{schema} ''{schema}.$$ $& $1".s', $duroxide$x$duroxide$)`,
    );
  });

  test.each([
    ["", "empty"],
    ["x".repeat(64), "63 bytes"],
    ["é".repeat(32), "63 bytes"],
    ["a\0b", "NUL"],
    ["a\ud800", "surrogate"],
    ["pg_mine", "pg_"],
    ["a$duroxide$b", "$duroxide$"],
  ])("that no schema can have is refused: %j", async (schema, problem) => {
    expect(() => migrations({ schema })).toThrow(problem);
    await expect(PostgresProvider.open("postgres://u:p@127.0.0.1:1/d", { schema })).rejects.toMatchObject({
      code: "DUROXIDE_INVALID_OPTIONS",
      message: expect.stringContaining(problem) as string,
    });
  });
});

onServer("many that start at once", () => {
  test("all open an empty schema, and one of them has made it", async () => {
    const owner = Owner.of(SERVER_URL);
    const schema = schemaOf(owner);

    const providers = await Promise.all(Array.from({ length: 20 }, () => opened(SERVER_URL, { schema })));

    expect(await ledgerOf(owner, schema)).toEqual({ versions: ALL, transactions: 1 });
    await useEverything(providers[7]!);
  });

  test("all open a schema that lacks the last migrations", async () => {
    const owner = Owner.of(SERVER_URL);
    const schema = schemaOf(owner);
    await apply(owner, schema, (version) => version <= 2);

    const providers = await Promise.all(Array.from({ length: 10 }, () => opened(SERVER_URL, { schema })));

    expect(await ledgerOf(owner, schema)).toEqual({ versions: ALL, transactions: 3 });
    await useEverything(providers[3]!);
  });
});

onServer("a migration that is cut off", () => {
  /** Somebody who is about to make a table of ours, and lets whoever makes it wait. */
  async function inTheWay(owner: Owner, schema: string): Promise<{ leave(): Promise<void> }> {
    await owner.run(`CREATE SCHEMA ${schema}`);
    const client = await owner.pool.connect();
    await client.query(`BEGIN; CREATE TABLE ${schema}.sessions ()`);
    return {
      async leave() {
        await client.query("ROLLBACK");
        client.release();
      },
    };
  }

  test("leaves nothing", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    const schema = "store";
    const other = await inTheWay(owner, schema);
    const before = await owner.objects();
    const applicationName = uniqueName("app");

    const opening = refusalOf(owner.url, { schema, applicationName });
    // What the server has undone for certain is tried once more.
    const first = await owner.waitingPid(applicationName);
    await owner.run(`SELECT pg_terminate_backend(${first})`);
    const second = await owner.waitingPid(applicationName, first);
    await owner.run(`SELECT pg_terminate_backend(${second})`);

    expect(await opening).toMatchObject({ kind: "transient" });
    await other.leave();
    expect(await owner.objects()).toEqual(before);
  });

  test("is done all the same when its connection is lost once", async () => {
    const owner = Owner.of(SERVER_URL);
    const schema = schemaOf(owner);
    const other = await inTheWay(owner, schema);
    const applicationName = uniqueName("app");

    const opening = opened(SERVER_URL, { schema, applicationName });
    const first = await owner.waitingPid(applicationName);
    await owner.run(`SELECT pg_terminate_backend(${first})`);
    await owner.waitingPid(applicationName, first);
    await other.leave();

    await useEverything(await opening);
    expect(await ledgerOf(owner, schema)).toEqual({ versions: ALL, transactions: 1 });
  });
});

onServer("migrations applied by hand", () => {
  test("make a schema that a provider may only look at, and that works", async () => {
    const owner = Owner.of(SERVER_URL);
    const schema = schemaOf(owner);
    await apply(owner, schema);

    await useEverything(await opened(SERVER_URL, { schema, migrate: false }));
    expect(await ledgerOf(owner, schema)).toEqual({ versions: ALL, transactions: LATEST });
  });

  test("make the same schema as a provider does", async () => {
    const [byHand, byProvider] = [
      await Owner.ofNewDatabase(SERVER_URL),
      await Owner.ofNewDatabase(SERVER_URL),
    ] as const;
    await apply(byHand, "store");
    await opened(byProvider.url, { schema: "store" });
    expect(await byHand.objects()).toEqual(await byProvider.objects());
  });

  test.each([
    ["none", () => false, ALL],
    ["the first two", (version: number) => version <= 2, ALL.filter((version) => version > 2)],
    ["all but one", (version: number) => version !== 4, [4]],
  ])("are missed, and named, where %s was applied", async (_, isWanted, missing) => {
    const owner = Owner.of(SERVER_URL);
    const schema = schemaOf(owner);
    await apply(owner, schema, isWanted);

    const { kind, message } = await refusalOf(SERVER_URL, { schema, migrate: false });

    expect(kind).toBe("invalid");
    for (const version of missing) expect(message).toContain(`${version} (${MIGRATIONS[version - 1]?.name})`);
    expect(message).toContain(`schema '${schema}'`);
    expect(message).toContain("Apply what migrations() returns for these, or open with migrate: true");

    await useEverything(await opened(SERVER_URL, { schema }));
    expect((await ledgerOf(owner, schema)).versions).toEqual(ALL);
  });
});

onServer("a schema that is newer than this code", () => {
  test.each([true, false])("is refused, and not changed, with migrate: %s", async (migrate) => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    await apply(owner, "store", (version) => version <= 3);
    await owner.run("INSERT INTO store.duroxide_migrations (version, name) VALUES (99, 'from the future')");
    const before = await owner.objects();

    const { kind, message } = await refusalOf(owner.url, { schema: "store", migrate });

    expect(kind).toBe("invalid");
    expect(message).toContain(`has version 99, and this version of duroxide-ts knows none above ${LATEST}`);
    expect(message).toContain("Update duroxide-ts, or use another schema");
    expect(await owner.objects()).toEqual(before);
  });
});

onServer("a schema", () => {
  test.each([
    'with "quotes"',
    "it's",
    " with spaces ",
    "a;b",
    "$$",
    "$1 $& $duroxide",
    "{schema}",
    "'{schema}.",
    "back\\slash",
    "\\'; SELECT 1/0; --",
    "zürich 漢字 😀",
    "é".repeat(31),
    "x".repeat(63),
    "UPPER",
    "select",
    "line\nbreak -- and comment",
    "per%cent :colon ?mark",
    'x"; DROP SCHEMA victim CASCADE; --',
    "x'; DROP SCHEMA victim CASCADE; --",
    "$duroxide; DROP SCHEMA victim CASCADE; --",
  ])("may be named %j, and nobody else is touched", async (schema) => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    await owner.run("CREATE SCHEMA victim; CREATE TABLE victim.sentinel (id int)");
    const before = await owner.objects();

    await useEverything(await opened(owner.url, { schema }));
    await useEverything(await opened(owner.url, { schema, migrate: false }));

    expect((await ledgerOf(owner, schema)).versions).toEqual(ALL);
    await owner.run(`DROP SCHEMA ${quoted(schema)} CASCADE`);
    expect(await owner.objects()).toEqual(before);
  });

  test("may be the public one", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    await useEverything(await opened(owner.url, { schema: "public" }));
    expect((await ledgerOf(owner, "public")).versions).toEqual(ALL);
  });

  test("shares nothing with the one beside it", async () => {
    const owner = Owner.of(SERVER_URL);
    const [one, other] = [schemaOf(owner), schemaOf(owner)];
    const [first, second] = [await opened(SERVER_URL, { schema: one }), await opened(SERVER_URL, { schema: other })];
    await first.appendWithExecution("order-1", 1, []);

    expect(await second.admin.listExecutions("order-1")).toEqual([]);
    expect(await first.admin.listExecutions("order-1")).toEqual([1]);
    await useEverything(second);

    await owner.run(`DROP SCHEMA ${one} CASCADE`);
    await useEverything(second);
    await expect(first.admin.listInstances()).rejects.toMatchObject({ kind: "invalid" });
  });

  test.each([
    ["a table", "CREATE TABLE public.instances (id int)"],
    ["a view", "CREATE VIEW public.sessions AS SELECT 1 AS id"],
    ["an index", "CREATE TABLE public.mine (id int); CREATE INDEX activities_line ON public.mine (id)"],
    ["a type", "CREATE TYPE public.history AS ENUM ('a')"],
    ["a function", "CREATE FUNCTION public.latest_execution(p_id text) RETURNS bigint LANGUAGE sql AS 'SELECT 1'"],
  ])("in which others have %s of our name is refused, and not changed", async (_, statement) => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    await owner.run(statement);
    const before = await owner.objects();

    const { kind, message } = await refusalOf(owner.url, { schema: "public" });

    expect(kind).toBe("invalid");
    expect(message).toContain("schema 'public' at");
    expect(message).toContain("already exists");
    expect(message).toContain("Nothing was changed. Choose another schema");
    expect(await owner.objects()).toEqual(before);
  });
});
