import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { Connections, type DedicatedConnection, type SqlValue } from "../../src/providers/postgres/connections.js";
import { channelOf, EVERYTHING, NewsBundle, readNote, writeNews } from "../../src/providers/postgres/news.js";
import { type PostgresOptions, resolveOptions } from "../../src/providers/postgres/options.js";
import { type News, WakeUps } from "../../src/providers/postgres/wake-ups.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
/** Where there is none, nobody is asked. */
const onServer = describe.skipIf(URL === "");

const NOTHING: News = {
  messages: 0,
  activities: 0,
  nextMessageAt: null,
  nextActivityAt: null,
  instances: [],
};

function changed(...instances: string[]): News {
  return { ...NOTHING, instances };
}

/** What came, in order, and a way to wait for more. */
class Inbox<T> {
  readonly all: T[] = [];
  #read = 0;
  #onMore: () => void = () => {};

  readonly add = (item: T): void => {
    this.all.push(item);
    this.#onMore();
  };

  /** The next that nobody has read. */
  async next(): Promise<T> {
    while (this.#read === this.all.length) {
      await new Promise<void>((resolve) => {
        this.#onMore = resolve;
      });
    }
    this.#read += 1;
    return this.all[this.#read - 1]!;
  }
}

type Wires = Pick<Connections, "query" | "dedicated">;

interface Process {
  readonly wakeUps: WakeUps;
  readonly news: Inbox<News>;
  readonly warnings: Inbox<string>;
}

function newProcess(connections: Wires, options: PostgresOptions): Process {
  const news = new Inbox<News>();
  const warnings = new Inbox<string>();
  const settings = resolveOptions("postgres://nobody@localhost/nowhere", { onWarning: warnings.add, ...options });
  return { wakeUps: new WakeUps({ settings, connections, onNews: news.add }), news, warnings };
}

let schemas = 0;
function newSchema(): string {
  schemas += 1;
  return `wake ups ${process.pid} ${schemas}`;
}

/** A process of its own, as far as the server can tell. */
async function onlineProcess(options: PostgresOptions & { readonly schema: string }): Promise<Process> {
  const connections = await Connections.open(resolveOptions(URL, options));
  const process = newProcess(connections, options);
  onTestFinished(async () => {
    await process.wakeUps.close();
    await connections.close();
  });
  return process;
}

/** One that hears. Its time stands still: nothing that it hears comes from polling. */
async function listeningProcess(schema: string): Promise<Process> {
  const process = await onlineProcess({ schema, clock: new VirtualClock() });
  process.wakeUps.enter();
  expect(await process.news.next()).toEqual(EVERYTHING);
  return process;
}

async function sql(text: string, ...values: SqlValue[]): Promise<readonly unknown[]> {
  const connections = await Connections.open(resolveOptions(URL, { maxConnections: 1 }));
  try {
    return await connections.query("test", text, values);
  } finally {
    await connections.close();
  }
}

onServer("what one process tells", () => {
  test("is heard by the others as it was told", async () => {
    const schema = newSchema();
    const [one, two, teller] = await Promise.all([
      listeningProcess(schema),
      listeningProcess(schema),
      onlineProcess({ schema }),
    ]);
    const news: News = { messages: 3, activities: 0, nextMessageAt: 7, nextActivityAt: null, instances: ["a"] };

    teller.wakeUps.tell(news);

    expect(await one.news.next()).toEqual(news);
    expect(await two.news.next()).toEqual(news);
  });

  test("is not heard by itself", async () => {
    const schema = newSchema();
    const [self, witness, other] = await Promise.all([
      listeningProcess(schema),
      listeningProcess(schema),
      onlineProcess({ schema }),
    ]);

    self.wakeUps.tell(changed("mine"));
    expect(await witness.news.next()).toEqual(changed("mine"));
    other.wakeUps.tell(changed("other"));

    expect(await self.news.next()).toEqual(changed("other"));
  });

  test("is not heard by those of another schema", async () => {
    const [one, two] = [newSchema(), newSchema()];
    const [here, there, tellerHere, tellerThere] = await Promise.all([
      listeningProcess(one),
      listeningProcess(two),
      onlineProcess({ schema: one }),
      onlineProcess({ schema: two }),
    ]);

    tellerHere.wakeUps.tell(changed("here"));
    expect(await here.news.next()).toEqual(changed("here"));
    tellerThere.wakeUps.tell(changed("there"));

    expect(await there.news.next()).toEqual(changed("there"));
    expect(here.news.all).toEqual([EVERYTHING, changed("here")]);
  });

  test("is heard whatever the ids hold", async () => {
    const schema = newSchema();
    const [listener, teller] = await Promise.all([listeningProcess(schema), onlineProcess({ schema })]);
    const ids = ["", "\0", "a\0b", "\ud800", "\udfff\ud800", "🦊", `'"\\$1; --`, "\u2028", "__proto__"];

    teller.wakeUps.tell(changed(...ids));

    expect(await listener.news.next()).toEqual(changed(...ids));
  });

  test("is heard by name up to what a notification holds, and beyond that says that anything changed", async () => {
    const schema = newSchema();
    const [listener, teller] = await Promise.all([listeningProcess(schema), onlineProcess({ schema })]);
    const fits = `${"ö".repeat(3_798)}.`; // 7,597 bytes, two quotes and a comma

    teller.wakeUps.tell(changed(fits));
    expect(await listener.news.next()).toEqual(changed(fits));

    teller.wakeUps.tell({ ...changed(`${fits}.`), nextActivityAt: 5 });
    expect(await listener.news.next()).toEqual({ ...NOTHING, nextActivityAt: 5, instances: "any" });
  });

  test("is sent before it closes", async () => {
    const schema = newSchema();
    const [listener, teller] = await Promise.all([listeningProcess(schema), onlineProcess({ schema })]);

    teller.wakeUps.tell(changed("first"));
    expect(await listener.news.next()).toEqual(changed("first"));
    teller.wakeUps.tell(changed("last words"));
    await teller.wakeUps.close();
    teller.wakeUps.tell(changed("too late"));

    expect(await listener.news.next()).toEqual(changed("last words"));
    await teller.wakeUps.close();
  });
});

onServer("whatever anybody else writes to the channel", () => {
  const note = { from: "somebody", ...NOTHING };
  test.each([
    ["nothing", ""],
    ["no JSON", "ack"],
    ["half a text", '{"from":"some'],
    ["very deep JSON", "[".repeat(3_900) + "]".repeat(3_900)],
    ["null", "null"],
    ["a list", "[]"],
    ["an empty object", "{}"],
    ["a sender that is no text", JSON.stringify({ ...note, from: 7 })],
    ["a number that is none", JSON.stringify({ ...note, messages: true })],
    ["a number below zero", JSON.stringify({ ...note, activities: -1 })],
    ["a time that is too large", JSON.stringify({ ...note, nextMessageAt: 1e300 })],
    ["a time that is infinite", JSON.stringify(note).replace("null", "1e999")],
    ["a time below zero", JSON.stringify({ ...note, nextActivityAt: -1 })],
    ["an instance that is no text", JSON.stringify({ ...note, instances: [7] })],
    ["instances that are no list", JSON.stringify({ ...note, instances: "all" })],
  ])("makes everybody look, and does nothing else: %s", async (_what, payload) => {
    const schema = newSchema();
    const [listener, teller] = await Promise.all([listeningProcess(schema), onlineProcess({ schema })]);

    await sql("SELECT pg_notify($1, $2)", channelOf(schema), payload);
    expect(await listener.news.next()).toEqual(EVERYTHING);

    teller.wakeUps.tell(changed("a"));
    expect(await listener.news.next()).toEqual(changed("a"));
    expect(listener.warnings.all).toEqual([]);
  });
});

onServer("a connection that is lost", () => {
  test("is warned of once, and replaced; then everybody looks, and hears again", async () => {
    const schema = newSchema();
    const applicationName = `listens to ${schema}`;
    const teller = await onlineProcess({ schema });
    const listener = await onlineProcess({ schema, applicationName });
    listener.wakeUps.enter();
    await toldUntilHeard(teller, listener, "before");

    for (const time of ["first", "second"]) {
      await sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", applicationName);
      if (time === "first") expect(await listener.warnings.next()).toContain("listens for the work of other processes");
      await toldUntilHeard(teller, listener, time);
    }

    expect(listener.warnings.all).toHaveLength(1);
  });

  /** Tells it each time that the listener looks, until it hears. */
  async function toldUntilHeard(teller: Process, listener: Process, instance: string): Promise<void> {
    for (;;) {
      teller.wakeUps.tell(changed(instance));
      const { instances } = await listener.news.next();
      if (instances.includes(instance)) return;
    }
  }
});

onServer("a process", () => {
  /** Vite compiles the program: no Node that we support runs all of TypeScript by itself. */
  const RUN = `
    import { runnerImport } from "vite";
    await runnerImport(process.argv[1], { configFile: false, logLevel: "error" });
  `;

  function runProgram(how: "leaves" | "waits", schema: string) {
    const program = fileURLToPath(new globalThis.URL("./postgres-wake-ups-program.ts", import.meta.url));
    const child = spawn(process.execPath, ["--input-type=module", "--eval", RUN, program, how, URL, schema], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return { ended: once(child, "exit"), lines: createInterface(child.stdout)[Symbol.asyncIterator]() };
  }

  test("ends when nobody waits, though nothing was closed", async () => {
    const { ended, lines } = runProgram("leaves", newSchema());

    expect((await lines.next()).value).toBe("looks");
    expect(await ended).toEqual([0, null]);
  });

  test("lives while somebody waits, and hears", async () => {
    const schema = newSchema();
    const { ended, lines } = runProgram("waits", schema);
    const teller = await onlineProcess({ schema });

    let { value: line } = await lines.next();
    while (line === "looks") {
      teller.wakeUps.tell(changed("a"));
      ({ value: line } = await lines.next());
    }

    expect(line).toBe("a");
    expect(await ended).toEqual([0, null]);
  });
});

/** The wires of one process to a server, cut and mended by a test. */
class FakeServer implements Wires {
  readonly notes: string[] = [];
  readonly opened: FakeConnection[] = [];
  /** A pooler in transaction mode does not. */
  delivers = true;
  refusesNotes = false;
  /** Which process a listener talks to. It is called 7, if nobody is in between. */
  processOfListener = (): number => 7;
  whileOpening: Promise<void> = Promise.resolve();

  /** The server's processes, in which statements run in turn. */
  processes: readonly number[] = [1];
  #next = 0;

  async query<Row>(_operation: string, text: string, values: readonly SqlValue[] = []): Promise<readonly Row[]> {
    if (this.refusesNotes) throw new Error("refused");
    if (text === PROCESS) return [{ pid: this.nextProcess() } as Row];
    const [channel, payload] = values as [string, string];
    if (!payload.includes('"probe"')) this.notes.push(payload);
    this.deliver(channel, payload);
    return [];
  }

  async dedicated(): Promise<DedicatedConnection> {
    await this.whileOpening;
    const connection = new FakeConnection(this);
    this.opened.push(connection);
    return connection;
  }

  nextProcess(): number {
    this.#next += 1;
    return this.processes[this.#next % this.processes.length]!;
  }

  deliver(channel: string, payload: string): void {
    if (this.delivers) for (const { isOpen, onHeard } of this.opened) if (isOpen) onHeard(channel, payload);
  }

  /** How many connections are open. */
  get open(): number {
    return this.opened.filter(({ isOpen }) => isOpen).length;
  }
}

class FakeConnection implements DedicatedConnection {
  readonly asked: string[] = [];
  readonly #server: FakeServer;
  /** What it was called when it was opened. */
  readonly processId = 7;
  isOpen = true;
  answers = true;
  onHeard: (channel: string, payload: string) => void = () => {};
  lose: (error: Error) => void = () => {};

  constructor(server: FakeServer) {
    this.#server = server;
  }

  query<Row>(text: string): Promise<readonly Row[]> {
    this.asked.push(text);
    if (!this.answers) return new Promise(() => {});
    return Promise.resolve(text === PROCESS ? [{ pid: this.#server.processOfListener() } as Row] : []);
  }

  onNotification(listener: (channel: string, payload: string) => void): void {
    this.onHeard = listener;
  }

  onLost(listener: (error: Error) => void): void {
    this.lose = listener;
  }

  async close(): Promise<void> {
    this.isOpen = false;
  }
}

const SCHEMA = "duroxide";
const PROCESS = "SELECT pg_backend_pid() AS pid";

function offlineProcess(options: PostgresOptions = {}) {
  const server = new FakeServer();
  const clock = new VirtualClock();
  return { server, clock, ...newProcess(server, { clock, ...options }) };
}

/** One that hears already. */
async function offlineListener(options: PostgresOptions = {}) {
  const offline = offlineProcess(options);
  const leave = offline.wakeUps.enter();
  await offline.clock.advance(0);
  expect(offline.news.all).toEqual([EVERYTHING]);
  return { ...offline, leave };
}

/** The times at which `inbox` grew while `durationMs` passed, from now on. */
async function growth(clock: VirtualClock, inbox: Inbox<News>, durationMs: number): Promise<number[]> {
  const times: number[] = [];
  for (let passed = 1; passed <= durationMs; passed += 1) {
    const before = inbox.all.length;
    await clock.advance(1);
    if (inbox.all.length > before) times.push(passed);
  }
  return times;
}

describe("many pieces of news", () => {
  test("go together: those of one moment at once, those that come meanwhile 5 ms later", async () => {
    const { wakeUps, server, clock } = offlineProcess();
    const ids = Array.from({ length: 100 }, (_, index) => `order-${index}`);

    for (const id of ids.slice(0, 30)) wakeUps.tell(changed(id));
    expect(server.notes).toHaveLength(0);
    await clock.advance(0);
    expect(server.notes).toHaveLength(1);
    for (const id of ids.slice(20)) wakeUps.tell({ ...changed(id), messages: id.startsWith("order-5") ? 1 : 0 });
    await clock.advance(4);
    expect(server.notes).toHaveLength(1);
    await clock.advance(1_000);

    expect(server.notes.map((note) => readNote(note))).toMatchObject([
      { news: changed(...ids.slice(0, 30)) },
      {
        news: { ...changed(...ids.slice(20)), messages: ids.slice(20).filter((id) => id.startsWith("order-5")).length },
      },
    ]);
  });

  test("become one: the earliest time counts, and what one makes possible all do", async () => {
    const { wakeUps, server, clock } = offlineProcess();

    wakeUps.tell({ ...NOTHING, nextMessageAt: 9, activities: 4 });
    wakeUps.tell({ ...NOTHING, nextMessageAt: 5, nextActivityAt: 3 });
    wakeUps.tell({ ...NOTHING, nextMessageAt: null, nextActivityAt: 4, instances: "any" });
    wakeUps.tell(changed("a"));
    await clock.advance(0);

    expect(server.notes.map((note) => readNote(note))).toMatchObject([
      { news: { messages: 0, activities: 4, nextMessageAt: 5, nextActivityAt: 3, instances: "any" } },
    ]);
  });

  test("name an instance once, and those of one note leave the next as much room", async () => {
    const { wakeUps, server, clock } = offlineProcess();
    const long = "x".repeat(5_000);

    for (let count = 0; count < 10; count += 1) wakeUps.tell(changed(long));
    await clock.advance(5);
    wakeUps.tell({ ...NOTHING, instances: "any" });
    await clock.advance(5);
    wakeUps.tell(changed(long));
    await clock.advance(5);

    expect(server.notes.map((note) => readNote(note))).toMatchObject([
      { news: changed(long) },
      { news: { ...NOTHING, instances: "any" } },
      { news: changed(long) },
    ]);
  });

  test("that say nothing are not sent", async () => {
    const { wakeUps, server, clock } = offlineProcess();

    wakeUps.tell(NOTHING);
    await clock.advance(1_000);

    expect(server.notes).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("that could not be sent go with the next, and nobody hears of the failure", async () => {
    const { wakeUps, server, clock, warnings } = offlineProcess();
    server.refusesNotes = true;
    wakeUps.tell({ ...changed("a"), nextMessageAt: 5 });
    await clock.advance(1_000);
    server.refusesNotes = false;

    wakeUps.tell({ ...changed("b"), nextMessageAt: 9 });
    await clock.advance(1_000);

    expect(server.notes.map((note) => readNote(note))).toMatchObject([
      { news: { ...changed("a", "b"), nextMessageAt: 5 } },
    ]);
    expect(warnings.all).toEqual([]);
  });

  test("always fit into a note, which says what they say", () => {
    const id = fc.string({ unit: fc.oneof(fc.constant("\0"), fc.constant("\ud83e"), fc.constant("🦊"), fc.string()) });
    fc.assert(
      fc.property(fc.array(fc.array(id)), (told) => {
        const bundle = new NewsBundle();
        for (const ids of told) bundle.add({ ...changed(...ids), nextMessageAt: Number.MAX_SAFE_INTEGER });
        const news = bundle.take();
        const note = writeNews("f".repeat(16), news);

        expect(Buffer.byteLength(note)).toBeLessThan(7_900);
        expect(note).not.toContain("\0");
        expect(Buffer.from(note).toString()).toBe(note);
        expect(readNote(note)).toMatchObject({ news });
        if (news.instances !== "any") expect(new Set(news.instances)).toEqual(new Set(told.flat()));
      }),
    );
  });
});

describe("polling", () => {
  test("backs off while nothing happens, up to the longest interval", async () => {
    const { wakeUps, news, clock } = offlineProcess({ wakeUps: "poll" });
    wakeUps.enter();

    expect(await growth(clock, news, 4_000)).toEqual([50, 150, 350, 750, 1_550, 2_550, 3_550]);
    expect(new Set(news.all)).toEqual(new Set([EVERYTHING]));
  });

  test.each([
    ["this process tells something", ({ wakeUps }: Process) => wakeUps.tell(changed("a"))],
    ["another one begins to wait", ({ wakeUps }: Process) => void wakeUps.enter()],
  ])("starts over when %s", async (_when, happen) => {
    const { clock, ...process } = offlineProcess({ wakeUps: "poll" });
    process.wakeUps.enter();
    await growth(clock, process.news, 2_600);

    happen(process);

    expect(await growth(clock, process.news, 400)).toEqual([50, 150, 350]);
  });

  test("goes on however often it is made to start over", async () => {
    const { wakeUps, news, clock } = offlineProcess({ wakeUps: "poll" });
    wakeUps.enter();

    for (let count = 0; count < 20; count += 1) {
      wakeUps.tell(changed("a"));
      wakeUps.enter()();
      await clock.advance(10);
    }

    expect(news.all.length).toBeGreaterThanOrEqual(3);
  });

  test("is never slower than the longest interval, however short", async () => {
    const { wakeUps, news, clock } = offlineProcess({ wakeUps: "poll", pollIntervalMs: 7 });
    wakeUps.enter();

    expect(await growth(clock, news, 30)).toEqual([7, 14, 21, 28]);
  });

  test("ends with the last who waits, and begins with the next", async () => {
    const { wakeUps, news, clock } = offlineProcess({ wakeUps: "poll" });
    const leave = wakeUps.enter();
    const leaveToo = wakeUps.enter();

    leave();
    leave();
    expect(await growth(clock, news, 100)).toEqual([50]);
    leaveToo();
    expect(clock.pendingTimers).toBe(0);

    wakeUps.enter();
    expect(await growth(clock, news, 100)).toEqual([50]);
  });

  test("is by choice: nothing is listened to, but it is told", async () => {
    const { wakeUps, server, clock } = offlineProcess({ wakeUps: "poll" });
    wakeUps.enter();

    wakeUps.tell(changed("a"));
    await clock.advance(100_000);

    expect(server.opened).toEqual([]);
    expect(server.notes).toHaveLength(1);
  });
});

describe("a schema of one process alone", () => {
  test("has nothing told, heard or polled", async () => {
    const { wakeUps, server, news, clock } = offlineProcess({ wakeUps: "local" });
    const leave = wakeUps.enter();

    wakeUps.tell(changed("a"));
    await clock.advance(100_000);
    leave();
    await wakeUps.close();

    expect([server.notes, server.opened, news.all]).toEqual([[], [], []]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("listening", () => {
  test("begins with the first who waits, and one connection serves all", async () => {
    const { wakeUps, server, news, clock } = offlineProcess();
    await clock.advance(1_000);
    expect(server.opened).toEqual([]);

    wakeUps.enter();
    wakeUps.enter()();
    await clock.advance(29_000);

    expect(server.opened).toHaveLength(1);
    expect(server.opened[0]?.asked).toEqual([PROCESS, `LISTEN "${channelOf(SCHEMA)}"`, "SELECT 1"]);
    expect(news.all).toEqual([EVERYTHING]);
  });

  test("does not act on the probes of others, nor on other channels", async () => {
    const { server, news } = await offlineListener();

    server.deliver(channelOf(SCHEMA), JSON.stringify({ from: "another", probe: "1" }));
    server.deliver("another", "something");

    expect(news.all).toHaveLength(1);
  });

  test("goes on for those who wait now and then, and has no timer while nobody does", async () => {
    const { wakeUps, server, clock, leave, news } = await offlineListener();
    leave();
    expect(clock.pendingTimers).toBe(0);

    await clock.advance(20_000);
    const leaveAgain = wakeUps.enter();
    await clock.advance(5_000);
    leaveAgain();

    expect(server.opened).toHaveLength(1);
    expect(news.all).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });

  test("ends when something comes that nobody has waited for in a minute", async () => {
    const { wakeUps, server, clock, leave } = await offlineListener();
    leave();
    await clock.advance(60_000);
    server.deliver(channelOf(SCHEMA), "something");
    expect(server.open).toBe(1);

    await clock.advance(1);
    server.deliver(channelOf(SCHEMA), "something");
    expect(server.open).toBe(0);

    wakeUps.enter();
    await clock.advance(0);
    expect(server.open).toBe(1);
  });

  test("is polling until a connection that nobody has used for long has answered", async () => {
    const { wakeUps, server, clock, leave, news } = await offlineListener();
    leave();
    await clock.advance(3_600_000);
    server.opened[0]!.answers = false;

    wakeUps.enter();
    expect(await growth(clock, news, 200)).toEqual([50, 150]);

    await clock.advance(20_000);
    expect(server.opened).toHaveLength(2);
    expect(await growth(clock, news, 2_000)).toEqual([]);
  });

  test("is checked every 30 seconds while somebody waits", async () => {
    const { server, clock, news } = await offlineListener();
    const [connection] = server.opened;
    const before = connection!.asked.length;

    await clock.advance(90_000);

    expect(connection!.asked.slice(before)).toEqual(["SELECT 1", "SELECT 1", "SELECT 1"]);
    expect(news.all).toHaveLength(1);
  });

  test("does not trust a connection that gives no answer for 10 seconds", async () => {
    const { server, clock, warnings } = await offlineListener();
    server.opened[0]!.answers = false;

    await clock.advance(39_999);
    expect(server.opened).toHaveLength(1);
    await clock.advance(201);

    expect(server.opened.map(({ isOpen }) => isOpen)).toEqual([false, true]);
    expect(warnings.all).toEqual([expect.stringContaining("not answered")]);
  });
});

describe("a server that cannot be reached", () => {
  test("is tried again at growing intervals, polled meanwhile, and warned of once", async () => {
    const { wakeUps, server, clock, news, warnings } = offlineProcess();
    const tries: number[] = [];
    const startedAt = clock.now();
    server.dedicated = () => {
      tries.push(clock.now() - startedAt);
      return Promise.reject(new Error("refused"));
    };

    wakeUps.enter();
    await clock.advance(60_000);

    const pauses = tries.slice(1).map((at, index) => at - tries[index]!);
    const [first = 0] = pauses;
    expect(first).toBeGreaterThanOrEqual(75);
    expect(first).toBeLessThanOrEqual(125);
    for (const [index, pause] of pauses.entries()) {
      const expected = Math.min(2 ** index, 100) * first;
      expect(Math.abs(pause - expected)).toBeLessThanOrEqual(expected / first);
    }
    expect(warnings.all).toEqual([expect.stringContaining("(refused)")]);
    expect(news.all.length).toBeGreaterThan(50);
  });

  test("is not tried more often because waiters come and go, nor at all while there are none", async () => {
    const { wakeUps, server, clock, warnings } = offlineProcess();
    let tries = 0;
    server.dedicated = () => {
      tries += 1;
      return Promise.reject(new Error("refused"));
    };

    for (let count = 0; count < 1_000; count += 1) {
      const leave = wakeUps.enter();
      await clock.advance(1);
      leave();
    }
    expect(tries).toBeLessThanOrEqual(5);
    expect(clock.pendingTimers).toBe(0);
    const before = tries;
    await clock.advance(60_000);

    expect(tries).toBe(before);
    expect(warnings.all).toHaveLength(1);
  });

  test("is polled from the moment that the connection is lost", async () => {
    const { server, clock, news } = await offlineListener();
    server.dedicated = () => Promise.reject(new Error("refused"));

    server.opened[0]!.lose(new Error("gone"));

    expect(await growth(clock, news, 400)).toEqual([50, 150, 350]);
  });

  test("is lost once, however often it is said, and not asked any more", async () => {
    const { server, clock, warnings } = await offlineListener();
    const [connection] = server.opened;
    const { length } = connection!.asked;

    connection!.lose(new Error("gone"));
    connection!.lose(new Error("and gone"));
    await clock.advance(125);
    expect(server.opened).toHaveLength(2);
    await clock.advance(60_000);

    expect(connection!.asked).toHaveLength(length);
    expect(server.opened).toHaveLength(2);
    expect(warnings.all).toHaveLength(1);
  });

  test("is lost once when that happens before anything was heard", async () => {
    const { wakeUps, server, clock, news, warnings } = offlineProcess();
    server.delivers = false;
    wakeUps.enter();
    await clock.advance(49);

    server.opened[0]!.lose(new Error("gone"));
    server.delivers = true;
    await clock.advance(0);
    expect(warnings.all).toEqual([expect.stringContaining("(gone)")]);
    await clock.advance(125);

    expect(server.opened.map(({ isOpen }) => isOpen)).toEqual([false, true]);
    expect(await growth(clock, news, 2_000)).toEqual([]);
  });

  test("is warned of again, and soon tried again, when it is lost after it stood for a while", async () => {
    const { server, clock, warnings } = await offlineListener();

    server.opened[0]!.lose(new Error("first"));
    await clock.advance(59_000);
    server.opened[1]!.lose(new Error("second"));
    await clock.advance(61_000);
    server.opened[2]!.lose(new Error("third"));
    await clock.advance(125);

    expect(server.opened).toHaveLength(4);
    expect(warnings.all).toEqual([expect.stringContaining("(first)"), expect.stringContaining("(third)")]);
  });

  test("is not warned of while nobody waits", async () => {
    const { wakeUps, server, clock, warnings, news, leave } = await offlineListener();
    leave();

    server.opened[0]!.lose(new Error("gone"));
    await clock.advance(60_000);
    expect(server.opened).toHaveLength(1);
    wakeUps.enter();
    await clock.advance(0);

    expect(warnings.all).toEqual([]);
    expect(news.all).toEqual([EVERYTHING, EVERYTHING]);
  });

  test("does no harm by a listener of warnings that throws", async () => {
    const { server, clock } = await offlineListener({
      onWarning: () => {
        throw new Error("the listener's");
      },
    });

    server.opened[0]!.lose(new Error("gone"));
    await clock.advance(1_000);

    expect(server.open).toBe(1);
  });
});

describe("a pooler that takes a LISTEN and delivers nothing", () => {
  test("is noticed after 5 seconds, warned of once with what to do, and polled", async () => {
    const { wakeUps, server, clock, news, warnings } = offlineProcess();
    server.delivers = false;
    wakeUps.enter();

    await clock.advance(4_999);
    expect(warnings.all).toEqual([]);
    await clock.advance(1);
    expect(warnings.all).toEqual([expect.stringMatching(/PgBouncer.*listenConnectionString.*wakeUps: "poll"/)]);
    expect(server.open).toBe(0);

    const before = news.all.length;
    await clock.advance(600_000);
    expect(news.all.length - before).toBeGreaterThanOrEqual(590);
    expect(warnings.all).toHaveLength(1);
    expect(server.opened.length).toBe(10);
  });

  test.each([
    ["a quiet one, where statements of others run in its process", [1], () => 1],
    ["a busy one, where its own run in another each time", [1, 2, 3], fromOneOn()],
  ])("gets no LISTEN that would stay behind: %s", async (_what, processes, processOfListener) => {
    const { wakeUps, server, clock, news, warnings } = offlineProcess();
    Object.assign(server, { processes, processOfListener });
    wakeUps.enter();

    await clock.advance(0);

    expect(warnings.all).toEqual([expect.stringContaining("PgBouncer")]);
    expect(server.open).toBe(0);
    expect(server.opened.flatMap(({ asked }) => asked.filter((text) => text !== PROCESS))).toEqual([]);
    expect(await growth(clock, news, 200)).toEqual([50, 150]);
  });

  test("is told from one in session mode, on whose connection nothing is asked until the probe has come", async () => {
    const { wakeUps, server, clock, warnings } = offlineProcess();
    server.processOfListener = () => 2;
    server.delivers = false;
    wakeUps.enter();
    await clock.advance(0);
    expect(server.opened[0]?.asked.at(-1)).toBe(`LISTEN "${channelOf(SCHEMA)}"`);
    await clock.advance(5_000);
    expect(warnings.all).toHaveLength(1);

    server.delivers = true;
    await clock.advance(60_000);

    expect(server.open).toBe(1);
  });

  function fromOneOn(): () => number {
    let last = 0;
    return () => {
      last += 1;
      return last;
    };
  }

  test("is tried again every minute, and when it delivers the polling ends", async () => {
    const { wakeUps, server, clock, news } = offlineProcess();
    server.delivers = false;
    wakeUps.enter();
    await clock.advance(10_000);

    server.delivers = true;
    await clock.advance(55_000);

    expect(server.open).toBe(1);
    expect(await growth(clock, news, 3_000)).toEqual([]);
  });

  test("keeps no process alive when nobody waits any more, and nobody is warned", async () => {
    const { wakeUps, server, clock, warnings } = offlineProcess();
    server.delivers = false;
    const leave = wakeUps.enter();
    await clock.advance(1_000);

    leave();
    await clock.advance(0);

    expect(clock.pendingTimers).toBe(0);
    expect(server.open).toBe(0);
    expect(warnings.all).toEqual([]);
    wakeUps.enter();
    await clock.advance(0);
    expect(server.opened).toHaveLength(2);
  });

  test("whose probe is late stands when it comes", async () => {
    const { wakeUps, server, clock, news, warnings } = offlineProcess();
    const { deliver } = server;
    const late: [string, string][] = [];
    server.deliver = (...note) => void late.push(note);
    wakeUps.enter();
    await clock.advance(4_000);

    for (const note of late) deliver.apply(server, note);
    await clock.advance(0);

    expect(await growth(clock, news, 2_000)).toEqual([]);
    expect(warnings.all).toEqual([]);
  });
});

describe("closing", () => {
  test("while a connection is being made leaves none behind, and nobody hears anything", async () => {
    const { wakeUps, server, clock, news, warnings } = offlineProcess();
    let open = (): void => {};
    server.whileOpening = new Promise((resolve) => {
      open = resolve;
    });
    wakeUps.enter();

    const closed = wakeUps.close();
    open();
    await closed;
    await clock.advance(100_000);

    expect(server.opened).toHaveLength(1);
    expect(server.open).toBe(0);
    expect([news.all, warnings.all]).toEqual([[], []]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("does not wait for a server that does not answer", async () => {
    const { wakeUps, server, clock } = offlineProcess();
    server.whileOpening = new Promise(() => {});
    server.query = () => new Promise(() => {});
    wakeUps.enter();
    wakeUps.tell(changed("a"));
    await clock.advance(0);

    const startedAt = clock.now();
    await clock.run(wakeUps.close());

    expect(clock.now() - startedAt).toBe(2_000);
    expect(clock.pendingTimers).toBe(0);
  });

  test("ends everything, also for those who still wait or come later", async () => {
    const { wakeUps, server, clock, news, leave } = await offlineListener();

    await wakeUps.close();
    expect(server.open).toBe(0);
    leave();
    wakeUps.enter()();
    wakeUps.enter();
    server.opened[0]!.lose(new Error("late"));
    server.opened[0]!.onHeard(channelOf(SCHEMA), "late");
    await clock.advance(100_000);

    expect(server.opened).toHaveLength(1);
    expect(news.all).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("the channel of a schema", () => {
  test("is a name that PostgreSQL takes whole, another for each schema", () => {
    const schemas = ["duroxide", "Duroxide", "ü".repeat(31), '"; DROP TABLE x; --', "a b"];
    const channels = schemas.map(channelOf);

    expect(new Set(channels).size).toBe(schemas.length);
    for (const channel of channels) expect(channel).toMatch(/^duroxide_[0-9a-f]{16}$/);
  });
});
