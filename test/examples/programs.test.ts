// Every example is a program: compiled against the built package, it runs to its end and says what it should.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT, run, TSC } from "../package/packing.js";

/** By example, what it prints; the order is meant where lines stand in one text. */
const SAID: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  actor: ["closed with 125\n5 commands in 2 executions\n", "500 refused, the balance is 150"],
  "agent-loop": [
    "the model is asked, with 1 messages\nthe model is asked, with 3 messages\nthe model is asked, with 4 messages\n",
    "Your parcel was lost. You get your 12 EUR back.\n",
  ],
  "approval-with-timeout": [
    "The process ends.\nAnother process",
    /^train: approved by Grace, transfer train:1:\d+: 80 EUR to Ada$/m,
    "dinner: expired: nobody decided within 200ms\n",
  ],
  "batch-progress": ["900 of 900 rows\nimported: 900\n"],
  cancellation: [
    "a1: disk wiped\n",
    "a2: disk wiped\n",
    "b1: disk wiped\n",
    "addresses released: a1, a2\n",
    "cluster-a: withdrawn: too expensive\n",
    "cluster-b: canceled: emergency stop\n",
    "b1: canceled: parent canceled\n",
  ],
  "encrypted-payloads": [
    'Ada waits for a test for headache\nin the files: "visit-1" true, "headache" false\n',
    /^getInstanceStatus: .*there is no key 'spring' here\. Nothing is lost; check the keys of this process\.$/m,
    'Ada: all is well\nin the files: "enc1:spring" true, "enc1:summer" true\n',
  ],
  "fan-out": [
    "declined: Acme at 120\n",
    "declined: Initech at 140\n",
    /^placed: order \S+ a printer from Globex for 95$/m,
  ],
  hello: ["Hello, Ada! Hello, Grace!\n", "  1  OrchestrationStarted\n", "  6  OrchestrationCompleted\n"],
  "human-in-the-loop": [/Ada submits: [^}]*decision: null/, /Grace decides: [^}]*'approved by Grace'/],
  "postgres-fleet": [/^12 photos, resized by worker \d+( and worker \d+)?$/m],
  "request-response": [
    "ada { isReserved: true }\ngrace { isReserved: false, reason: '1 left of red-bicycle' }\n",
    "edsger { isReserved: true }\nada, once more { isReserved: true }\n",
  ],
  "retry-and-timeout": [
    "charging for flaky-gateway\n".repeat(3),
    "flaky-gateway { status: 'paid', receipt: 'receipt for 12 EUR' }\ncharging for stolen-card\n",
    "stolen-card { status: 'refused', reason: 'declined: the card is blocked' }\ncharging for black-hole\n",
    "black-hole { status: 'unclear' }\n",
  ],
  saga: [
    /^Lisbon: flight \S+, hotel \S+, car \S+$/m,
    /cancelled: hotel.*\ncancelled: flight.*\nVenice: no cars in Venice\n/,
  ],
  "scheduled-job": [/report of 2\S+Z\n/, "the job has ended, canceled: nobody reads it\n"],
  sessions: [...[1, 2, 3, 4].map((n) => new RegExp(`worker-[ab] downloads customers-${n}.zip`)), "6, 6, 6, 6\n"],
  tags: ["uploaded: trailer.mp4, rendered on cpu\nuploaded: film.mp4, rendered on gpu\n"],
  versioning: [
    "2.0.0: order-2 is held back\n1.0.0 is in use: true\n",
    "1.0.0: order-1 is on its way\n1.0.0 is in use: false\n",
  ],
};

const temporary = mkdtempSync(join(tmpdir(), "duroxide-examples-"));
// `node --test` would otherwise take itself for a part of this run. What programs leave in the temporary folder is removed.
const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
/** Set by the test run where it has a PostgreSQL. */
const PG_URL = process.env.DUROXIDE_TEST_PG_URL;
const options = {
  cwd: ROOT,
  env: { ...inherited, DATABASE_URL: PG_URL, TMPDIR: temporary, TEMP: temporary, TMP: temporary },
};

beforeAll(() => run(process.execPath, [TSC, "-p", "tsconfig.examples.json"], options), 60_000);
afterAll(async () => {
  rmSync(temporary, { recursive: true, force: true });
  if (PG_URL === undefined) return;
  const owner = new pg.Client(PG_URL);
  await owner.connect();
  await owner.query("DROP SCHEMA IF EXISTS duroxide_example CASCADE");
  await owner.end();
});

describe.concurrent("as a program", () => {
  test.for(Object.entries(SAID))("%s runs to its end and says what happened", async ([name, lines], { skip }) => {
    skip(name === "postgres-fleet" && PG_URL === undefined, "there is no PostgreSQL here");
    const { stdout, stderr } = await run(process.execPath, [join("dist-examples", `${name}.js`)], options);
    for (const line of lines) expect(stdout).toMatch(line);
    expect(stderr).toBe("");
  });

  test("the tests of the testing example pass under Node's own runner", async () => {
    const file = "dist-examples/testing/checkout.node-test.js";
    const { stdout } = await run(process.execPath, ["--test", "--test-reporter=tap", file], options);
    expect(stdout).toMatch(/^# pass 3$/m);
    expect(stdout).toMatch(/^# fail 0$/m);
  });
});

test.each(Object.keys(SAID))("%s tells how to run it, from the package and from a checkout", (name) => {
  const lines = readFileSync(join(ROOT, "examples", `${name}.ts`), "utf8").split("\n");
  expect(lines.slice(2, 4)).toEqual([
    `//   npx tsx node_modules/duroxide-ts/examples/${name}.ts`,
    `//   npm run example -- ${name}   (in a checkout of the repository)`,
  ]);
});

describe("npm run example", () => {
  const script = join("scripts", "example.mjs");

  test("runs the example that it is told", async () => {
    const { stdout } = await run(process.execPath, [script, "hello"], options);
    expect(stdout).toMatch("Hello, Ada! Hello, Grace!\n");
  });

  test.each([[[]], [["helo"]]])("tells which examples there are when it is told %j", async (args) => {
    const refusal = run(process.execPath, [script, ...args], options);
    await expect(refusal).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("npm run example -- NAME"),
    });
    await expect(refusal).rejects.toMatchObject({ stderr: expect.stringMatching(/^saga +several bookings/m) });
  });
});

test("the README lists every example, and every example is run here", () => {
  const files = readdirSync(join(ROOT, "examples")).filter((entry) => !entry.includes(".") || entry.endsWith(".ts"));
  const listed = [...readFileSync(join(ROOT, "examples/README.md"), "utf8").matchAll(/^\| \[[\w-]+\]\((.+?)\) \|/gm)];
  expect(listed.map(([, target]) => target).sort()).toEqual(files.sort());

  const programs = files.filter((file) => file.endsWith(".ts")).map((file) => file.replace(/\.ts$/, ""));
  expect(Object.keys(SAID).sort()).toEqual(programs.sort());
});
