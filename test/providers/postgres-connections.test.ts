import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { type PostgresServer, postgresAvailable, startPostgres } from "../../scripts/postgres-server.mjs";
import { Connections, type DedicatedConnection } from "../../src/providers/postgres/connections.js";
import { type PostgresOptions, resolveOptions } from "../../src/providers/postgres/options.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { ServerProxy } from "./postgres-proxy.js";

const SERVER_URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
const onServer = describe.skipIf(SERVER_URL === "");

const PID = "SELECT pg_backend_pid() AS pid";

async function open(options?: PostgresOptions, connection: unknown = SERVER_URL): Promise<Connections> {
  const connections = await Connections.open(resolveOptions(connection, options));
  onTestFinished(() => connections.close());
  return connections;
}

/** Somebody else on the same server. */
class Other {
  readonly #connections: Connections;

  private constructor(connections: Connections) {
    this.#connections = connections;
  }

  static async open(url = SERVER_URL): Promise<Other> {
    return new Other(await open({ maxConnections: 2, applicationName: "the other one" }, url));
  }

  async run(text: string): Promise<void> {
    await this.#connections.query("test", text);
  }

  async rows<Row>(text: string): Promise<readonly Row[]> {
    return this.#connections.query<Row>("test", text);
  }

  async pidsOf(applicationName: string, condition = "true"): Promise<number[]> {
    const text = `SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND ${condition} ORDER BY pid`;
    const rows = await this.#connections.query<{ pid: number }>("test", text, [applicationName]);
    return rows.map(({ pid }) => pid);
  }

  /** The one that waits for a lock, as soon as there is one. */
  async waitingPid(applicationName: string, not = 0): Promise<number> {
    for (;;) {
      const [pid] = await this.pidsOf(applicationName, `wait_event_type = 'Lock' AND pid <> ${not}`);
      if (pid !== undefined) return pid;
    }
  }

  /** Until the server has forgotten them. */
  async untilGone(applicationName: string): Promise<void> {
    while ((await this.pidsOf(applicationName)).length > 0);
  }

  async kill(...pids: number[]): Promise<void> {
    await this.run(`SELECT pg_terminate_backend(pid) FROM unnest(ARRAY[${pids.join(",")}]) AS pid`);
  }
}

function uniqueName(): string {
  return `t_${randomBytes(6).toString("hex")}`;
}

/** A table that ends with the test. */
async function newTable(other: Other, columns: string): Promise<string> {
  const table = uniqueName();
  await other.run(`CREATE TABLE ${table} (${columns})`);
  onTestFinished(() => other.run(`DROP TABLE ${table}`));
  return table;
}

/** A lock that somebody holds until it is let go. */
async function heldLock(): Promise<{ readonly take: string; letGo(): Promise<void> }> {
  const key = randomBytes(4).readInt32BE();
  const holder = await open({ maxConnections: 1, applicationName: "the holder" });
  await holder.query("test", `SELECT pg_advisory_lock(${key})`);
  return {
    take: `SELECT pg_advisory_xact_lock(${key})`,
    letGo: async () => void (await holder.query("test", `SELECT pg_advisory_unlock(${key})`)),
  };
}

onServer("values", () => {
  test("come back as they are: numbers, truths and lists as such, everything else as text", async () => {
    const connections = await open();
    const [row] = await connections.query("test", ALL_TYPES);
    expect(row).toEqual(ALL_VALUES);
  });

  test("go there and back unchanged", async () => {
    const connections = await open();
    const texts = ['a"b', "c\\d", "{e}", "", "NULL", "日本語"];
    const [row] = await connections.query(
      "test",
      "SELECT $1::text AS text, $2::bigint AS big, $3::bool AS truth, $4::text AS nothing, $5::text[] AS texts, $6::bigint[] AS numbers",
      ["it's", Number.MAX_SAFE_INTEGER, false, null, texts, [1, -2]],
    );
    const values = { text: "it's", big: Number.MAX_SAFE_INTEGER, truth: false, nothing: null, texts, numbers: [1, -2] };
    expect(row).toEqual(values);
  });

  test("do not depend on what the application has told the driver", async () => {
    const original = pg.types.getTypeParser(20);
    pg.types.setTypeParser(20, () => "not ours");
    onTestFinished(() => pg.types.setTypeParser(20, original));
    const connections = await open();
    expect(await connections.query("test", "SELECT 5::bigint AS five")).toEqual([{ five: 5 }]);
    expect(pg.types.getTypeParser(20)("5")).toBe("not ours");
  });
});

const ALL_TYPES = `
  SELECT 9007199254740991::bigint AS big, 7::int AS whole, 3::smallint AS small, 1.5::float8 AS real, true AS yes,
    '{"a": 1}'::jsonb AS document, '2020-01-01T00:00:00Z'::timestamptz::text AS moment, 12.50::numeric AS exact,
    '12'::text AS text, 'c'::"char" AS letter, NULL::bigint AS nothing, ARRAY[1, NULL]::bigint[] AS bigs,
    ARRAY['a,b', NULL]::text[] AS texts`;
const ALL_VALUES = {
  big: Number.MAX_SAFE_INTEGER,
  whole: 7,
  small: 3,
  real: 1.5,
  yes: true,
  document: '{"a": 1}',
  moment: expect.stringContaining("2020-01-01"),
  exact: "12.50",
  text: "12",
  letter: "c",
  nothing: null,
  bigs: [1, null],
  texts: ["a,b", null],
};

onServer("the pool", () => {
  test("has no more connections than it may, and names them", async () => {
    const other = await Other.open();
    const applicationName = uniqueName();
    const connections = await open({ applicationName, maxConnections: 3 });
    const rows = await Promise.all(Array.from({ length: 20 }, () => connections.query<{ pid: number }>("test", PID)));
    const used = new Set(rows.map(([row]) => row?.pid));
    expect(used.size).toBeLessThanOrEqual(3);
    expect((await other.pidsOf(applicationName)).length).toBeLessThanOrEqual(3);
  });

  test("tells the server how long a statement may take, or nothing at all", async () => {
    const shown = async (options: PostgresOptions): Promise<unknown> =>
      (await (await open(options)).query("test", "SHOW statement_timeout"))[0];
    expect(await shown({})).toEqual({ statement_timeout: "30s" });
    expect(await shown({ statementTimeoutMs: 0 })).toEqual({ statement_timeout: "0" });
  });

  test("makes callers wait for a free connection, but not for ever", async () => {
    const lock = await heldLock();
    const connections = await open({ maxConnections: 1, connectTimeoutMs: 300 });
    const blocked = connections.query("test", lock.take);
    const late = await connections.query("test", PID).catch((error) => error);
    expect(late).toMatchObject({ kind: "transient" });
    expect(late.message).toContain("all 1 are busy");
    await lock.letGo();
    await blocked;
  });

  test("makes no named statements, so that a pooler may send each one elsewhere", async () => {
    const connections = await open({ maxConnections: 1 });
    await connections.query("test", "SELECT $1::int", [1]);
    expect(await connections.query("test", "SELECT name FROM pg_prepared_statements")).toEqual([]);
  });
});

onServer("a transaction", () => {
  test("is kept as a whole", async () => {
    const other = await Other.open();
    const table = await newTable(other, "id int");
    const connections = await open();
    const answer = await connections.transaction("test", async (query) => {
      await query(`INSERT INTO ${table} VALUES (1); INSERT INTO ${table} VALUES (2)`);
      await query(`INSERT INTO ${table} VALUES ($1)`, [3]);
      return "done";
    });
    expect(answer).toBe("done");
    expect(await other.rows(`SELECT id FROM ${table} ORDER BY id`)).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
  });

  test("that fails leaves nothing, says why, and gives its connection back", async () => {
    const other = await Other.open();
    const table = await newTable(other, "id int");
    const connections = await open({ maxConnections: 1 });
    const why = new Error("changed my mind");
    const failing = connections.transaction("test", async (query) => {
      await query(`INSERT INTO ${table} VALUES (1)`);
      throw why;
    });
    await expect(failing).rejects.toBe(why);
    expect(await connections.query("test", `SELECT id FROM ${table}`)).toEqual([]);
  });

  test("in which a statement failed is not kept, even if nobody minds", async () => {
    const other = await Other.open();
    const table = await newTable(other, "id int");
    const connections = await open();
    const careless = connections.transaction("test", async (query) => {
      await query(`INSERT INTO ${table} VALUES (1)`);
      await query("SELECT 1 / 0").catch(() => {});
    });
    await expect(careless).rejects.toMatchObject({ kind: "invalid" });
    expect(await other.rows(`SELECT id FROM ${table}`)).toEqual([]);
  });
});

onServer("a conflict with others", () => {
  /** Fails with the given error as often as asked; the count is not undone with the transaction. */
  async function failingStatement(other: Other, state: string, failures: number): Promise<string> {
    const name = uniqueName();
    await other.run(`
      CREATE SEQUENCE ${name};
      CREATE FUNCTION ${name}() RETURNS bigint LANGUAGE plpgsql AS $$
      DECLARE attempt bigint := nextval('${name}');
      BEGIN
        IF attempt <= ${failures} THEN RAISE 'in the way' USING ERRCODE = '${state}'; END IF;
        RETURN attempt;
      END $$`);
    onTestFinished(() => other.run(`DROP FUNCTION ${name}; DROP SEQUENCE ${name}`));
    return `SELECT ${name}() AS attempt`;
  }

  test.each(["40001", "40P01"])("is tried again, three times: %s", async (state) => {
    const other = await Other.open();
    const statement = await failingStatement(other, state, 3);
    const connections = await open();
    expect(await connections.query("test", statement)).toEqual([{ attempt: 4 }]);
  });

  test("that does not end is transient", async () => {
    const other = await Other.open();
    const statement = await failingStatement(other, "40001", 4);
    const connections = await open();
    await expect(connections.query("test", statement)).rejects.toMatchObject({ kind: "transient" });
    expect(await connections.query("test", statement)).toEqual([{ attempt: 5 }]);
  });

  test("of another kind is not tried again", async () => {
    const other = await Other.open();
    const statement = await failingStatement(other, "55P03", 1);
    const connections = await open();
    await expect(connections.query("test", statement)).rejects.toMatchObject({ kind: "transient" });
    expect(await connections.query("test", statement)).toEqual([{ attempt: 2 }]);
  });

  test("in which two transactions wait for each other ends well for both", async () => {
    const other = await Other.open();
    const table = await newTable(other, "id int PRIMARY KEY, count int");
    await other.run(`INSERT INTO ${table} VALUES (1, 0), (2, 0)`);
    const connections = await open();
    let arrived = 0;
    let bothArrived = (): void => {};
    const both = new Promise<void>((resolve) => {
      bothArrived = resolve;
    });
    const addTo = (first: number, second: number): Promise<void> =>
      connections.transaction("test", async (query) => {
        await query("SET LOCAL deadlock_timeout = '20ms'");
        await query(`UPDATE ${table} SET count = count + 1 WHERE id = $1`, [first]);
        arrived += 1;
        if (arrived === 2) bothArrived();
        await both;
        await query(`UPDATE ${table} SET count = count + 1 WHERE id = $1`, [second]);
      });

    await Promise.all([addTo(1, 2), addTo(2, 1)]);
    expect(arrived).toBeGreaterThan(2);
    expect(await other.rows(`SELECT count FROM ${table}`)).toEqual([{ count: 2 }, { count: 2 }]);
  });

  test("is paused for in real time: virtual time stands still", async () => {
    const other = await Other.open();
    const statement = await failingStatement(other, "40001", 3);
    const clock = new VirtualClock();
    const connections = await open({ clock });
    const before = clock.now();
    const answer = connections.query("test", statement);
    let answeredAt = 0;
    void answer.then(() => {
      answeredAt = clock.now();
    });
    clock.setTimer(1, () => {});
    await clock.run(answer);
    expect(answeredAt).toBe(before);
  });
});

onServer("a statement that comes again and again", () => {
  const OFTEN = "SELECT $1::text AS said";
  const NAMES = "SELECT name, statement FROM pg_prepared_statements ORDER BY length(statement) DESC";
  const say = async (connections: Connections, said: string): Promise<string | undefined> =>
    (await connections.queryOften<{ readonly said: string }>("test", OFTEN, [said]))[0]?.said;

  test("is parsed once on a connection that leads to the server itself, under a name that says what it is", async () => {
    const connections = await open({ maxConnections: 1 });
    const another = await open({ maxConnections: 1 });
    for (const one of [connections, another]) expect([await say(one, "a"), await say(one, "b")]).toEqual(["a", "b"]);
    await connections.queryOften("test", "SELECT 1", []);

    const named = await connections.query<{ readonly name: string }>("test", NAMES);
    expect(named).toMatchObject([{ statement: OFTEN }, { statement: "SELECT 1" }]);
    expect(named[0]?.name).not.toBe(named[1]?.name);
    expect(await another.query("test", NAMES)).toEqual([named[0]]);
  });

  test("has no name where somebody between us and the server may send the next one elsewhere", async () => {
    const pooler = await ServerProxy.to(SERVER_URL);
    pooler.renamesProcesses = true;
    const connections = await open({ maxConnections: 1 }, pooler.url);

    expect([await say(connections, "a"), await say(connections, "b")]).toEqual(["a", "b"]);

    expect(await connections.query("test", NAMES)).toEqual([]);
  });

  test.each([
    ["has forgotten it", "DEALLOCATE ALL"],
    ["answers it in another form by now", "ALTER TABLE {table} ADD COLUMN more int"],
  ])("is asked without a name where the server %s, and so is every later one", async (_, spoil) => {
    const connections = await open({ maxConnections: 1 });
    const table = uniqueName();
    await connections.query("test", `CREATE TABLE ${table} AS SELECT 1 AS n`);
    onTestFinished(() => void connections.query("test", `DROP TABLE ${table}`));
    const all = `SELECT * FROM ${table} WHERE n >= $1`;
    expect(await connections.queryOften("test", all, [1])).toMatchObject([{ n: 1 }]);
    await connections.query("test", spoil.replace("{table}", table));

    expect(await connections.queryOften("test", all, [1])).toMatchObject([{ n: 1 }]);

    const before = await connections.query("test", NAMES);
    expect(await say(connections, "a")).toBe("a");
    expect(await connections.query("test", NAMES)).toEqual(before);
  });

  test("has an answer also where several connections are refused a name at the same time", async () => {
    const connections = await open({ maxConnections: 4 });
    const text = "SELECT $1::int AS n, pg_backend_pid() AS pid";
    const four = async () =>
      Promise.all([1, 2, 3, 4].map((n) => connections.queryOften<{ readonly pid: number }>("test", text, [n])));
    const pids = (await four()).map(([row]) => row?.pid);
    expect(new Set(pids).size).toBe(4); // Each of them knows the name.
    await Promise.all(pids.map(() => connections.query("test", "DEALLOCATE ALL")));

    expect(await four()).toMatchObject([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }], [{ n: 4 }]]);
  });
});

const KILL = `
  import pg from "pg";
  const [url, applicationName] = process.argv.slice(1);
  const client = new pg.Client(url);
  await client.connect();
  const text = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1";
  await client.query(text, [applicationName]);
  await client.end();
`;

onServer("a connection that the server ends", () => {
  test("while nobody uses it is replaced, and nobody notices", async () => {
    const other = await Other.open();
    const applicationName = uniqueName();
    const connections = await open({ applicationName, maxConnections: 5 });
    await Promise.all([1, 2, 3, 4, 5].map(() => connections.query("test", "SELECT pg_sleep(0.05)")));
    const pids = await other.pidsOf(applicationName);
    expect(pids.length).toBeGreaterThan(1);
    // Nothing else runs here meanwhile: the statement is sent before anything is heard of the end of any connection.
    const program = ["--input-type=module", "--eval", KILL, SERVER_URL, applicationName];
    const { status, stderr } = spawnSync(process.execPath, program, { encoding: "utf8", timeout: 20_000 });
    expect([status, stderr]).toEqual([0, ""]);
    const [row] = await connections.query<{ pid: number }>("test", PID);
    expect(pids).not.toContain(row?.pid);
  });

  test("under a statement undoes it, and it is sent once more", async () => {
    const other = await Other.open();
    const lock = await heldLock();
    const applicationName = uniqueName();
    const connections = await open({ applicationName });
    const answer = connections.query("test", lock.take);
    const first = await other.waitingPid(applicationName);
    await other.kill(first);
    await other.waitingPid(applicationName, first);
    await lock.letGo();
    expect(await answer).toHaveLength(1);
  });

  test("twice under a statement is transient", async () => {
    const other = await Other.open();
    const lock = await heldLock();
    const applicationName = uniqueName();
    const connections = await open({ applicationName });
    const answer = connections.query("test", lock.take).catch((error) => error);
    const first = await other.waitingPid(applicationName);
    await other.kill(first);
    await other.kill(await other.waitingPid(applicationName, first));
    expect(await answer).toMatchObject({ kind: "transient", message: expect.stringContaining("ended by the server") });
    expect(await connections.query("test", PID)).toHaveLength(1);
  });

  test("in the middle of a transaction makes it start over", async () => {
    const other = await Other.open();
    const table = await newTable(other, "id int");
    const connections = await open();
    const pids: number[] = [];
    await connections.transaction("test", async (query) => {
      const [row] = await query<{ pid: number }>(`INSERT INTO ${table} VALUES (1) RETURNING pg_backend_pid() AS pid`);
      pids.push(row!.pid);
      if (pids.length === 1) {
        await other.kill(row!.pid);
        await query("SELECT pg_sleep(10)");
      }
    });
    expect(new Set(pids).size).toBe(2);
    expect(await other.rows(`SELECT id FROM ${table}`)).toEqual([{ id: 1 }]);
  });
});

describe.skipIf(postgresAvailable() !== null)("a server that restarts", () => {
  async function newServer(): Promise<PostgresServer> {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    return server;
  }

  test("is not there for a while, which is transient, and then is again", async () => {
    const server = await newServer();
    const connections = await open({}, server.url);
    await server.stop("immediate");
    await expect(connections.query("test", PID)).rejects.toMatchObject({ kind: "transient" });
    await server.start();
    expect(await connections.query("test", PID)).toHaveLength(1);
  });
});

onServer("a network that fails", () => {
  test("after a statement was sent leaves nobody knowing: it is transient, and not sent again", async () => {
    const other = await Other.open();
    const table = await newTable(other, "id int");
    const lock = await heldLock();
    const proxy = await ServerProxy.to(SERVER_URL);
    const applicationName = uniqueName();
    const connections = await open({ applicationName }, proxy.url);
    const insert = `WITH waited AS (${lock.take}) INSERT INTO ${table} SELECT 1 FROM waited`;
    const answer = connections.query("test", insert).catch((error) => error);
    await other.waitingPid(applicationName);
    proxy.cut();
    expect(await answer).toMatchObject({ kind: "transient", message: expect.stringContaining("was lost") });

    await lock.letGo();
    await other.untilGone(applicationName);
    expect(await other.rows(`SELECT id FROM ${table}`)).toEqual([{ id: 1 }]);
    expect(await connections.query("test", PID)).toHaveLength(1);
  });

  test("without a word is noticed when the answer is overdue, and that connection is not used again", async () => {
    const proxy = await ServerProxy.to(SERVER_URL);
    const connections = await open({ statementTimeoutMs: 1_000, maxConnections: 1 }, proxy.url);
    proxy.swallow();
    const overdue = await connections.query("test", "SELECT 1").catch((error) => error);
    expect(overdue).toMatchObject({ kind: "transient" });
    expect(overdue.message).toContain("no longer answers");
    expect(await connections.query("test", "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(proxy.connections).toBe(2);
  });
});

onServer("closing", () => {
  test("leaves no connection, however often it is asked for", async () => {
    const other = await Other.open();
    const applicationName = uniqueName();
    const connections = await open({ applicationName });
    const listening = await connections.dedicated("listen");
    listening.onLost(() => expect.unreachable("closing is no loss"));
    await Promise.all([1, 2, 3].map(() => connections.query("test", PID)));
    await Promise.all([connections.close(), connections.close()]);
    await connections.close();
    await other.untilGone(applicationName);
  });

  test("lets calls on their way arrive, and refuses later ones", async () => {
    const connections = await open({ maxConnections: 1 });
    const answers = [1, 2, 3].map((n) => connections.query("test", `SELECT ${n} AS n, pg_sleep(0.02)`));
    const closed = connections.close();
    expect((await Promise.all(answers)).map(([row]) => row)).toMatchObject([{ n: 1 }, { n: 2 }, { n: 3 }]);
    for (const late of [
      connections.query("test", PID),
      connections.transaction("test", async () => {}),
      connections.dedicated("listen"),
    ]) {
      await expect(late).rejects.toMatchObject({ kind: "invalid", message: expect.stringContaining("is closed") });
    }
    await closed;
  });

  test("cuts off who does not come to an end, and who waits for its connection", async () => {
    const other = await Other.open();
    const lock = await heldLock();
    const applicationName = uniqueName();
    const connections = await open({ applicationName, maxConnections: 1, connectTimeoutMs: 60_000 });
    const endless = connections.query("test", lock.take).catch((error) => error);
    const waiting = connections.query("test", PID).catch((error) => error);
    await other.waitingPid(applicationName);
    await connections.close();
    expect(await endless).toMatchObject({ kind: "invalid", message: expect.stringContaining("was closed before") });
    expect(await waiting).toMatchObject({ kind: "invalid", message: expect.stringContaining("closed") });
  });

  test("does not wait for a server that no longer answers", async () => {
    const proxy = await ServerProxy.to(SERVER_URL);
    const connections = await open({}, proxy.url);
    await connections.dedicated("listen");
    proxy.swallow();
    await connections.close();
    await proxy.untilOpen(0);
  });

  test("is not needed for the process to end", async () => {
    const connections = await open();
    await connections.dedicated("listen");
    const held = process.getActiveResourcesInfo().filter((resource) => resource === "TCPSocketWrap");
    expect(held).toEqual([]);
  });
});

onServer("a password function", () => {
  function partsOf(password: () => string | Promise<string>, url = SERVER_URL): object {
    const { hostname: host, port, username: user, pathname } = new URL(url);
    return { host, port: Number(port), user, password, database: pathname.slice(1) };
  }
  const right = decodeURIComponent(SERVER_URL === "" ? "" : new URL(SERVER_URL).password);

  test("is asked for every new connection", async () => {
    let asked = 0;
    const password = async (): Promise<string> => {
      asked += 1;
      return right;
    };
    const connections = await open({ maxConnections: 2 }, partsOf(password));
    expect(asked).toBe(1);
    await connections.query("test", PID);
    expect(asked).toBe(1);
    await connections.dedicated("listen");
    expect(asked).toBe(2);
  });

  test("that fails is transient, and is told", async () => {
    const failing = open(
      {},
      partsOf(() => Promise.reject(new Error("the vault is sealed"))),
    );
    const message = expect.stringMatching(/password function failed.*the vault is sealed/);
    await expect(failing).rejects.toMatchObject({ kind: "transient", message });
  });

  test("that fails leaves no half-open connection", async () => {
    const proxy = await ServerProxy.to(SERVER_URL);
    const passwords = [right];
    const connections = await open(
      {},
      partsOf(async () => passwords.pop()!, proxy.url),
    );
    await expect(connections.dedicated("listen")).rejects.toThrow("password function failed");
    expect(proxy.connections).toBe(2);
    await proxy.untilOpen(1);
    await connections.query("test", PID);
  });

  test("that answers with no password is told of", async () => {
    const failing = open(
      {},
      partsOf(() => undefined as unknown as string),
    );
    await expect(failing).rejects.toThrow("it answered with undefined");
  });

  test("whose answer is refused is transient: the next one may be good", async () => {
    let answer = "an old token";
    const connection = partsOf(() => answer);
    await expect(open({}, connection)).rejects.toMatchObject({ kind: "transient" });
    answer = right;
    await open({}, connection);
  });
});

onServer("a connection to listen on", () => {
  async function listening(connections: Connections, channel: string): Promise<DedicatedConnection> {
    const connection = await connections.dedicated("listen");
    await connection.query(`LISTEN ${channel}`);
    return connection;
  }

  test("hears what others tell, in order", async () => {
    const connections = await open();
    const channel = uniqueName();
    const connection = await listening(connections, channel);
    const heard: string[] = [];
    const end = new Promise<void>((resolve) => {
      connection.onNotification((from, payload) => {
        heard.push(`${from}: ${payload}`);
        if (payload === "end") resolve();
      });
    });
    for (const payload of ["one", "", "end"])
      await connections.query("test", "SELECT pg_notify($1, $2)", [channel, payload]);
    await end;
    expect(heard).toEqual([`${channel}: one`, `${channel}: `, `${channel}: end`]);
  });

  test("answers many questions at once, and the driver has nothing to warn of", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): number => warnings.push(warning);
    process.on("warning", onWarning);
    onTestFinished(() => void process.off("warning", onWarning));
    const connection = await (await open()).dedicated("listen");
    const answers = await Promise.all([1, 2, 3, 4].map((n) => connection.query<{ n: number }>(`SELECT ${n} AS n`)));
    expect(answers.map(([row]) => row?.n)).toEqual([1, 2, 3, 4]);
    expect(warnings).toEqual([]);
  });

  test("tells once when it is lost, also to who asks later; others go on", async () => {
    const other = await Other.open();
    const connections = await open();
    const connection = await connections.dedicated("listen");
    const [row] = await connection.query<{ pid: number }>(PID);
    let told = 0;
    const lost = new Promise<Error>((resolve) => {
      connection.onLost((error) => {
        told += 1;
        resolve(error);
      });
    });
    await other.kill(row!.pid);
    expect(await lost).toMatchObject({ kind: "transient", operation: "listen" });
    const later = await new Promise<Error>((resolve) => connection.onLost(resolve));
    expect(later).toBe(await lost);
    await expect(connection.query("SELECT 1")).rejects.toMatchObject({ kind: "transient" });
    await connection.close();
    expect(told).toBe(1);
    expect(await connections.query("test", PID)).toHaveLength(1);
  });

  test("that is closed is not lost", async () => {
    const other = await Other.open();
    const applicationName = uniqueName();
    const connections = await open({ applicationName, maxConnections: 1 });
    const connection = await connections.dedicated("listen");
    connection.onLost(() => expect.unreachable("it was closed"));
    await Promise.all([connection.close(), connection.close()]);
    await connections.close();
    await other.untilGone(applicationName);
  });

  test("goes where it is told to", async () => {
    const proxy = await ServerProxy.to(SERVER_URL);
    const { host } = new URL(proxy.url);
    const connections = await open({ listenConnectionString: `postgres://${host}` });
    expect(proxy.connections).toBe(0);
    const connection = await connections.dedicated("listen");
    expect(await connection.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(proxy.connections).toBe(1);
  });

  test("that cannot be made is told of", async () => {
    const connections = await open({ listenConnectionString: "postgres://127.0.0.1:1" });
    const refused = connections.dedicated("listen");
    await expect(refused).rejects.toMatchObject({ kind: "transient", operation: "listen" });
  });
});
