// What must be so before a provider opens: rights, settings, clocks. What is not is said, with what to do about it.

import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import { ProviderError } from "../../src/errors.js";
import { warnOfClockSkew } from "../../src/providers/postgres/clock-skew.js";
import type { Connections } from "../../src/providers/postgres/connections.js";
import { type PostgresOptions, PostgresProvider } from "../../src/providers/postgres/index.js";
import { checkServer, type ServerFacts } from "../../src/providers/postgres/server-check.js";
import { Owner, quoted, uniqueName, useEverything } from "./postgres-owner.js";

const SERVER_URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
const onServer = describe.skipIf(SERVER_URL === "");

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

const databaseOf = (url: string): string => new URL(url).pathname.slice(1);

onServer("a role that may not make a schema", () => {
  test("is told the grant that lets it, and with that opens", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    const { role, url } = await owner.newRole();

    const { kind, message } = await refusalOf(url, { schema: "store" });

    const grant = `GRANT CREATE ON DATABASE "${databaseOf(url)}" TO "${role}"`;
    expect(kind).toBe("invalid");
    expect(message).toContain(`user '${role}' may not make schema 'store'`);
    expect(message).toContain(grant);
    await owner.run(grant);
    await useEverything(await opened(url, { schema: "store" }));
  });

  test("uses one that is its own, though it may make none", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    const { role, url } = await owner.newRole();
    await owner.run(`CREATE SCHEMA store AUTHORIZATION ${role}`);
    await useEverything(await opened(url, { schema: "store" }));
  });

  test("is told the grant for one that is somebody else's, and with that opens", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    const { role, url } = await owner.newRole();
    await owner.run("CREATE SCHEMA store");

    const { kind, message } = await refusalOf(url, { schema: "store" });

    const grant = `GRANT USAGE, CREATE ON SCHEMA "store" TO "${role}"`;
    expect(kind).toBe("invalid");
    expect(message).toContain(grant);
    await owner.run(grant);
    await useEverything(await opened(url, { schema: "store" }));
  });
});

onServer("a role that did not make the schema", () => {
  const SCHEMA = 'the "store"';
  const GRANTS = [
    `USAGE ON SCHEMA ${quoted(SCHEMA)}`,
    `SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoted(SCHEMA)}`,
    `USAGE ON ALL SEQUENCES IN SCHEMA ${quoted(SCHEMA)}`,
    `EXECUTE ON ALL FUNCTIONS IN SCHEMA ${quoted(SCHEMA)}`,
  ];

  async function withSchema() {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    await opened(owner.url, { schema: SCHEMA });
    await owner.run(`REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA ${quoted(SCHEMA)} FROM public`);
    return { owner, ...(await owner.newRole()) };
  }

  test.each([true, false])("is told all grants that it lacks, and needs no other (migrate: %s)", async (migrate) => {
    const { owner, role, url } = await withSchema();

    const { kind, message } = await refusalOf(url, { schema: SCHEMA, migrate });

    expect(kind).toBe("invalid");
    expect(message).toContain(`user '${role}' may not work in schema '${SCHEMA}'`);
    const statements = GRANTS.map((grant) => `GRANT ${grant} TO "${role}"`);
    expect(message).toContain(`run: ${statements.join("; ")}`);
    for (const statement of statements) await owner.run(statement);
    await useEverything(await opened(url, { schema: SCHEMA, migrate }));
  });

  test.each(GRANTS)("is told the one grant that it lacks: %s", async (lacking) => {
    const { owner, role, url } = await withSchema();
    for (const grant of GRANTS) if (grant !== lacking) await owner.run(`GRANT ${grant} TO ${role}`);

    const { kind, message } = await refusalOf(url, { schema: SCHEMA });

    expect(kind).toBe("invalid");
    expect(message).toMatch(/run: GRANT [^;]*$/);
    expect(message).toContain(`run: GRANT ${lacking} TO "${role}"`);
  });

  test.each(["SELECT", "INSERT", "UPDATE", "DELETE"])("is not let in without the right to %s", async (right) => {
    const { owner, role, url } = await withSchema();
    for (const grant of GRANTS) await owner.run(`GRANT ${grant} TO ${role}`);
    await owner.run(`REVOKE ${right} ON ${quoted(SCHEMA)}.sessions FROM ${role}`);
    expect((await refusalOf(url, { schema: SCHEMA })).message).toContain(GRANTS[1]);
  });

  test("needs no right on what is not ours, and only to read what was applied", async () => {
    const { owner, role, url } = await withSchema();
    for (const grant of GRANTS) await owner.run(`GRANT ${grant} TO ${role}`);
    await owner.run(`REVOKE INSERT, UPDATE, DELETE ON ${quoted(SCHEMA)}.duroxide_migrations FROM ${role}`);
    await owner.run(`CREATE TABLE ${quoted(SCHEMA)}.theirs (id serial)`);
    await owner.run(`CREATE FUNCTION ${quoted(SCHEMA)}.theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
    await owner.run(`REVOKE EXECUTE ON FUNCTION ${quoted(SCHEMA)}.theirs() FROM public`);
    await useEverything(await opened(url, { schema: SCHEMA, migrate: false }));
  });

  test("is told what it lacks when a right is taken while it works", async () => {
    const { owner, role, url } = await withSchema();
    for (const grant of GRANTS) await owner.run(`GRANT ${grant} TO ${role}`);
    const provider = await opened(url, { schema: SCHEMA });
    await owner.run(`REVOKE SELECT ON ${quoted(SCHEMA)}.instances FROM ${role}`);

    const refused = await provider.admin.listInstances().catch((error: unknown) => error);

    expect(refused).toMatchObject({ kind: "invalid", operation: "listInstances" });
    expect((refused as Error).message).toContain(`user '${role}' may not do this`);
    expect((refused as Error).message).toContain(`GRANT USAGE ON SCHEMA ${quoted(SCHEMA)}`);
  });
});

onServer("a setting of the role", () => {
  test.each([
    ["default_transaction_isolation = 'repeatable read'", "default_transaction_isolation = 'read committed'"],
    ["default_transaction_isolation = 'serializable'", "default_transaction_isolation = 'read committed'"],
    ["default_transaction_read_only = on", "default_transaction_read_only = off"],
    ["array_nulls = off", "array_nulls = on"],
    ["search_path = public, pg_catalog", 'search_path = "$user", public'],
  ])("with which nothing would work is refused, with the statement that helps: %s", async (wrong, right) => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    const { role, url } = await owner.newRole();
    await owner.run(`GRANT CREATE ON DATABASE ${databaseOf(url)} TO ${role}`);
    await owner.run(`ALTER ROLE ${role} SET ${wrong}`);
    const before = await owner.objects();

    const { kind, message } = await refusalOf(url, { schema: "store" });

    const statement = `ALTER ROLE "${role}" IN DATABASE "${databaseOf(url)}" SET ${right}`;
    expect(kind).toBe("invalid");
    expect(message).toContain(`Run: ${statement}. `);
    expect(await owner.objects()).toEqual(before);
    await owner.run(statement);
    await useEverything(await opened(url, { schema: "store" }));
  });

  const HARMLESS = [
    "standard_conforming_strings = off",
    "search_path = nowhere",
    "statement_timeout = '1ms'", // Ours is sent with the connection.
    "lock_timeout = '1h'",
    "DateStyle = 'SQL, DMY'",
    "IntervalStyle = 'sql_standard'",
    "TimeZone = 'Asia/Kathmandu'",
    "extra_float_digits = -15",
    "bytea_output = 'escape'",
    "row_security = off",
    "transform_null_equals = on",
    "check_function_bodies = off",
    "default_transaction_deferrable = on",
    "plpgsql.extra_errors = 'all'",
    "plan_cache_mode = 'force_generic_plan'",
    "client_min_messages = 'debug1'",
    "session_replication_role = 'replica'",
    "enable_indexscan = off",
  ];
  const OTHERWISE = [
    "search_path = ''",
    "plpgsql.variable_conflict = 'use_variable'",
    "plan_cache_mode = 'force_custom_plan'",
    "client_encoding = 'LATIN1'",
    "from_collapse_limit = 1",
    "join_collapse_limit = 1",
  ];

  test.each([[HARMLESS], [OTHERWISE]])("that our SQL need not care about changes nothing: %j", async (settings) => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    const { role, url } = await owner.newRole();
    await owner.run(`GRANT CREATE ON DATABASE ${databaseOf(url)} TO ${role}`);
    for (const setting of settings) await owner.run(`ALTER ROLE ${role} SET ${setting}`);
    await useEverything(await opened(url, { schema: 'it\'s \\ "odd"' }), "größe 😀");
  });
});

onServer("functions and operators of others", () => {
  /** Those of ours for any type: an overload for just one type would come first, wherever it is looked for. */
  const OVERLOADS = [
    "unnest(a text[]) RETURNS SETOF text",
    "unnest(a bigint[]) RETURNS SETOF bigint",
    "cardinality(a text[]) RETURNS int",
    "cardinality(a bigint[]) RETURNS int",
    "array_remove(a text[], b text) RETURNS text[]",
    "array_position(a text[], b text) RETURNS int",
    "array_append(a int[], b int) RETURNS int[]",
    "array_append(a text[], b text) RETURNS text[]",
    "generate_subscripts(a text[], b int) RETURNS SETOF int",
    "nextval(a text) RETURNS bigint",
    "json_to_recordset(a json) RETURNS SETOF record",
    "current_setting(a text) RETURNS text",
    "pg_advisory_xact_lock(a bigint) RETURNS void",
    "concatenated(a text[], b text[]) RETURNS text[]",
    "concatenated(a bigint[], b bigint[]) RETURNS bigint[]",
    "concatenated(a int[], b int[]) RETURNS int[]",
    "concatenated(a int[], b int) RETURNS int[]",
    "concatenated(a text[], b text) RETURNS text[]",
    "aggregated(a text[], b text) RETURNS text[]",
    "aggregated(a bigint[], b bigint) RETURNS bigint[]",
  ];
  const CAPTURED = "LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''captured''; END'";
  const operator = (left: string, right: string): string =>
    `CREATE OPERATOR public.|| (LEFTARG = ${left}, RIGHTARG = ${right}, FUNCTION = public.concatenated)`;

  test("in a schema of the search path are never called", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    for (const signature of OVERLOADS) await owner.run(`CREATE FUNCTION public.${signature} ${CAPTURED}`);
    for (const type of ["text", "bigint", "int"]) await owner.run(operator(`${type}[]`, `${type}[]`));
    for (const type of ["text", "int"]) await owner.run(operator(`${type}[]`, type));
    for (const type of ["text", "bigint"]) {
      await owner.run(`CREATE AGGREGATE public.array_agg(${type}) (SFUNC = public.aggregated, STYPE = ${type}[])`);
    }
    // They are what would be called: so much for this test.
    await expect(owner.run("SELECT unnest(ARRAY['a'])")).rejects.toThrow("captured");
    await expect(owner.run("SELECT ARRAY['a'] || ARRAY['b']")).rejects.toThrow("captured");
    await expect(owner.run("SELECT array_agg('a'::text)")).rejects.toThrow("captured");

    await useEverything(await opened(owner.url, { schema: "store" }));
  });

  test("are out of reach of everything in PL/pgSQL", async () => {
    const owner = await Owner.ofNewDatabase(SERVER_URL);
    await opened(owner.url, { schema: "store" });
    const unset = await owner.rows(`
      SELECT p.proname FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
      WHERE p.pronamespace = 'store'::regnamespace AND l.lanname = 'plpgsql'
        AND NOT COALESCE('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)`);
    expect(unset).toEqual([]);
  });
});

describe("a server", () => {
  const GOOD: ServerFacts = {
    version: 130_000,
    encoding: "UTF8",
    isReplica: false,
    role: "ann",
    database: "orders",
    isolation: "read committed",
    readOnly: "off",
    arrayNulls: "on",
    searchPath: '["pg_catalog","public"]',
  };

  function refusal(facts: Partial<ServerFacts>): unknown {
    try {
      checkServer({ ...GOOD, ...facts }, "db:5432/orders");
      return null;
    } catch (error) {
      return error;
    }
  }

  test("that is as we need it is not refused; temporary tables change nothing", () => {
    expect(refusal({})).toBe(null);
    expect(refusal({ searchPath: '["pg_temp_3","pg_catalog"]' })).toBe(null);
  });

  test("that is too old is refused", () => {
    expect(refusal({ version: 120_022 })).toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("is PostgreSQL 12. Version 13 or newer is needed") as string,
    });
  });

  test("that is a replica may be another one soon", () => {
    // Its transactions are read-only, too: that is no setting that anybody could change.
    expect(refusal({ isReplica: true, readOnly: "on" })).toMatchObject({
      kind: "transient",
      message: expect.stringContaining("is a replica") as string,
    });
  });
});

describe("the clock of this machine", () => {
  const SERVER_TIME = 1_700_000_000_000;

  /** What is said when we ask and hear the answer at these distances from the server's time. */
  async function warnings(askedAt: number, answeredAt: number, clock: Clock = systemClock): Promise<string[]> {
    const said: string[] = [];
    const now = vi.spyOn(clock, "now");
    onTestFinished(() => now.mockRestore());
    now.mockReturnValueOnce(SERVER_TIME + askedAt).mockReturnValueOnce(SERVER_TIME + answeredAt);
    const query = async <Row>(): Promise<readonly Row[]> => [{ now: SERVER_TIME } as Row];
    const connections: Pick<Connections, "query"> = { query };
    await warnOfClockSkew(connections, { clock, onWarning: (message) => said.push(message) });
    return said;
  }

  test.each([
    [0, 0],
    [1_000, 1_000],
    [-1_000, -1_000],
    [-30_000, 20], // The answer took long: the server may have read its clock at any time.
    [-30_000, -1_000],
    [1_000, 30_000],
  ])("is not spoken of when asked at %i and answered at %i ms from the server's time", async (asked, answered) => {
    expect(await warnings(asked, answered)).toEqual([]);
  });

  test.each([
    [1_001, 1_001, "1001 ms ahead of the database's"],
    [90_000, 95_000, "90000 ms ahead of the database's"],
    [-1_001, -1_001, "1001 ms behind the database's"],
    [-95_000, -90_000, "90000 ms behind the database's"],
  ])("is told to be off when asked at %i and answered at %i ms", async (asked, answered, skew) => {
    const said = await warnings(asked, answered);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(`The clock of this machine is ${skew}`);
    expect(said[0]).toContain("NTP");
  });

  test("is not asked where another clock is used", async () => {
    const clock: Clock = { now: () => 0, setTimer: () => ({ clear: () => {} }) };
    const connections = { query: () => Promise.reject(new Error("asked")) };
    await warnOfClockSkew(connections, { clock, onWarning: () => {} });
  });

  test("may be off, and a listener may throw", async () => {
    const query = async <Row>(): Promise<readonly Row[]> => [{ now: 0 } as Row];
    const onWarning = (): never => {
      throw new Error("mine");
    };
    await warnOfClockSkew({ query }, { clock: systemClock, onWarning });
  });

  test.skipIf(SERVER_URL === "")("is compared with the server's when a provider opens", async () => {
    const owner = Owner.of(SERVER_URL);
    const schema = uniqueName("schema");
    onTestFinished(() => owner.run(`DROP SCHEMA IF EXISTS ${schema} CASCADE`));
    const said: string[] = [];
    await opened(SERVER_URL, { schema, onWarning: (message) => said.push(message) });
    expect(said).toEqual([]); // The server is on this machine.
  });
});
