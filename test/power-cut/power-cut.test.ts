// The power goes at any moment: what the store had promised is there, as far as it had promised to keep it.

import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { openConnection } from "../providers/sqlite-connection.js";
import { checkImage } from "./check-image.js";
import { Commits } from "./commits.js";
import { Disk, type Image } from "./disk.js";
import { DATABASE, LOG, type Operation } from "./operation.js";
import { type CutReport, cutPower } from "./power-cuts.js";
import { type Recording, recordWorkload } from "./recording.js";
import { record, whyNoRecording } from "./strace.js";

const INSTANCES = 30;
const CUTS = { seed: 1, cuts: 20, imagesPerCut: 2 };
/** Enough to find what is planted; the first find ends it. */
const SEARCH = { seed: 1, cuts: 100, imagesPerCut: 2, resumes: false, stopsAtFirst: true };
/** Commits of the store's writer, and of others: several in each group of orders. */
const LEAST_OF_WRITER = 40;
/** Of a recording, or a hundred images on a machine that is busy. */
const TIMEOUT_MS = 240_000;

const missing = whyNoRecording();

describe.skipIf(missing !== null)(`after a power cut${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  let full: Recording;
  let processCrash: Recording;

  beforeAll(async () => {
    full = await recordWorkload("full", INSTANCES);
    processCrash = await recordWorkload("process-crash", INSTANCES);
  }, TIMEOUT_MS);

  test(
    'with durability "full", nothing that was acknowledged is missing, and the rest is done',
    async () => {
      const report = await cutPower(full, CUTS);

      expect(report.problems).toEqual([]);
      expect(report.images).toHaveLength(CUTS.cuts * CUTS.imagesPerCut);
      expect(report.images.filter(({ lostAcknowledgements }) => lostAcknowledgements > 0)).toEqual([]);
      // The log was emptied into the database, and begun anew: by a process that closed, and by one that ran on.
      expect(report.checkpoints).toBeGreaterThanOrEqual(3);
      expect(logHeaders(full)).toBeGreaterThanOrEqual(3);
    },
    TIMEOUT_MS,
  );

  test(
    'with durability "process-crash", only the last commits are missing, and the rest is done',
    async () => {
      const report = await cutPower(processCrash, CUTS);

      expect(report.problems).toEqual([]);
      expect(report.images.some(({ lostCommits }) => lostCommits > 0)).toBe(true);
    },
    TIMEOUT_MS,
  );

  describe("where the store has a thread that writes", () => {
    let threadFull: Recording;
    let threadProcessCrash: Recording;

    beforeAll(async () => {
      threadFull = await recordWorkload("full", INSTANCES, "always");
      threadProcessCrash = await recordWorkload("process-crash", INSTANCES, "always");
    }, TIMEOUT_MS);

    test(
      'with durability "full", nothing that was acknowledged is missing, and the rest is done',
      async () => {
        const report = await cutPower(threadFull, CUTS);

        expect(report.problems).toEqual([]);
        expect(report.images.filter(({ lostAcknowledgements }) => lostAcknowledgements > 0)).toEqual([]);
        expect(report.commitsOfWriter).toBeGreaterThanOrEqual(LEAST_OF_WRITER);
        expect(report.commits - report.commitsOfWriter).toBeGreaterThanOrEqual(LEAST_OF_WRITER);
        // One in each process.
        expect(writersOf(threadFull).size).toBe(2);
        // The log was emptied into the database by a writer, too.
        const checkpoints = threadFull.operations.filter((each) => isSyncOf(DATABASE, each));
        expect(checkpoints.length).toBeGreaterThanOrEqual(3);
        expect(checkpoints.some(({ thread }) => writersOf(threadFull).has(thread))).toBe(true);
      },
      TIMEOUT_MS,
    );

    test(
      'with durability "process-crash", only the last commits are missing, and the rest is done',
      async () => {
        const report = await cutPower(threadProcessCrash, CUTS);

        expect(report.problems).toEqual([]);
        expect(report.images.some(({ lostCommits }) => lostCommits > 0)).toBe(true);
        expect(report.commitsOfWriter).toBeGreaterThanOrEqual(LEAST_OF_WRITER);
      },
      TIMEOUT_MS,
    );

    test(
      "what is acknowledged while the thread is at its next commit promises nothing of that one",
      async () => {
        const operations = acknowledgedLate(threadFull);
        const isAmid = ({ kind }: Operation, place: number): boolean =>
          kind === "sync" && operations[place - 1]?.kind === "mark";
        expect(operations.filter(isAmid).length).toBeGreaterThan(10);

        const report = await cutPower({ ...threadFull, operations }, { ...SEARCH, imagesPerCut: 1 });
        expect(report.problems).toEqual([]);
      },
      TIMEOUT_MS,
    );

    test(
      "a thread that does not sync its commits is found",
      async () => {
        const writers = writersOf(threadFull);
        const report = await searched(threadFull, (operations) =>
          operations.filter((each) => !(writers.has(each.thread) && isSyncOf(LOG, each))),
        );
        expect(report.problems.join("\n")).toMatch(/lost: \d+ acknowledgements/);
      },
      TIMEOUT_MS,
    );
  });

  describe("what would be wrong is found:", () => {
    test(
      'a store that promises "full" and does what "process-crash" does',
      async () => {
        const report = await cutPower(processCrash, { ...SEARCH, claimsFull: true });
        expect(report.problems.join("\n")).toMatch(/lost: \d+ acknowledgements: (turn|activity|enqueue) \(/);
        expect(report.problems.join("\n")).toMatch(/lost: \d+ commits that were acknowledged/);
      },
      TIMEOUT_MS,
    );

    test(
      "a call that resolves before its commit, whatever the durability",
      async () => {
        const report = await searched(processCrash, acknowledgedEarly);
        expect(report.problems.join("\n")).toMatch(/acknowledged before its commit: \d+ acknowledgements/);
      },
      TIMEOUT_MS,
    );

    test(
      "a commit that does not sync the log",
      async () => {
        const report = await searched(full, without("sync", LOG));
        expect(report.problems.join("\n")).toMatch(/lost: \d+ acknowledgements/);
      },
      TIMEOUT_MS,
    );

    test(
      "a log whose name is not on the disk",
      async () => {
        const report = await searched(full, without("sync-folder"));
        expect(report.problems.join("\n")).toMatch(/lost: \d+ acknowledgements/);
      },
      TIMEOUT_MS,
    );

    test(
      "a checkpoint that begins the log anew before the database is on the disk",
      async () => {
        const report = await searched(processCrash, without("sync", DATABASE, 1));
        expect(report.problems.join("\n")).toMatch(/damaged|the database never was in this state|cannot be read/);
      },
      TIMEOUT_MS,
    );

    test(
      "a checkpoint of a log that is not on the disk",
      async () => {
        const report = await searched(processCrash, without("sync", LOG));
        expect(report.problems.join("\n")).toMatch(/damaged|the database never was in this state|cannot be read/);
      },
      TIMEOUT_MS,
    );

    test(
      "a store that has forgotten what it was about to do",
      async () => {
        const half = played(full, full.operations.length / 2);
        const image = await changed(half.disk.now(), "DELETE FROM duroxide_orchestrator_queue");
        const cut = {
          acknowledgements: [],
          commitsAt: [],
          commitsTold: 0,
          commits: half.commits,
          instances: INSTANCES,
        };
        const { problems } = await checkImage(image, cut, { claimsFull: true, resumes: true });
        expect(problems).toEqual(["the database never was in this state", expect.stringMatching(/^does not resume: /)]);
      },
      TIMEOUT_MS,
    );
  });

  test("a program that changes its store in a way that is not understood cannot be recorded", async () => {
    const parent = folderOfTest();
    const folder = mkdtempSync(join(parent, "store-"));
    const append = `require("node:fs").appendFileSync(${JSON.stringify(join(folder, DATABASE))}, "unseen")`;
    const recorded = record([process.execPath, "--eval", append], { folder, marks: join(parent, "marks") }, []);

    await expect(recorded).rejects.toThrow(/cannot be told in operations: write\(/);
  });
});

function folderOfTest(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "duroxide-power-cut-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function played({ operations }: Recording, count: number): { readonly disk: Disk; readonly commits: Commits } {
  const [disk, commits] = [new Disk(), new Commits()];
  for (const operation of operations.slice(0, count)) {
    disk.apply(operation);
    commits.apply(operation);
  }
  return { disk, commits };
}

async function changed(image: Image, sql: string): Promise<Image> {
  const folder = folderOfTest();
  for (const [name, content] of image) writeFileSync(join(folder, name), content);
  const connection = await openConnection(join(folder, DATABASE));
  connection.exec(`${sql}; PRAGMA wal_checkpoint(TRUNCATE)`);
  connection.close();
  return new Map([[DATABASE, readFileSync(join(folder, DATABASE))]]);
}

function searched(recording: Recording, alter: (operations: readonly Operation[]) => Operation[]): Promise<CutReport> {
  return cutPower({ ...recording, operations: alter(recording.operations) }, SEARCH);
}

/** As on a disk that says it has synced, and has not; but for the first time or times. */
function without(
  kind: Operation["kind"],
  file?: string,
  honest = 0,
): (operations: readonly Operation[]) => Operation[] {
  const isMeant = (each: Operation): boolean =>
    each.kind === kind && (file === undefined || ("file" in each && each.file === file));
  return (operations) => {
    const lies = new Set(operations.filter(isMeant).slice(honest));
    return operations.filter((each) => !lies.has(each));
  };
}

/** Each acknowledgement comes before the writes that it came after. */
function acknowledgedEarly(operations: readonly Operation[]): Operation[] {
  const early: Operation[] = [];
  let changes: Operation[] = [];
  for (const [place, operation] of operations.entries()) {
    if (operation.kind !== "mark") changes.push(operation);
    else early.push(operation);
    const isLastMark = operation.kind === "mark" && operations[place + 1]?.kind !== "mark";
    if (!isLastMark) continue;
    early.push(...changes);
    changes = [];
  }
  return [...early, ...changes];
}

/** As if whoever hears of a commit of the thread were slow: until just before the thread syncs the next, or he does something himself. */
function acknowledgedLate(recording: Recording): readonly Operation[] {
  const writers = writersOf(recording);
  const late: Operation[] = [];
  const held: Operation[] = [];
  for (const operation of recording.operations) {
    if (operation.kind === "mark") held.push(operation);
    else {
      if (!writers.has(operation.thread) || isSyncOf(LOG, operation)) late.push(...held.splice(0));
      late.push(operation);
    }
  }
  return [...late, ...held];
}

/** Threads that acknowledge nothing. */
function writersOf({ operations }: Recording): ReadonlySet<number | undefined> {
  const threads = (each: readonly Operation[]): Set<number | undefined> => new Set(each.map(({ thread }) => thread));
  const acknowledging = threads(operations.filter(({ kind }) => kind === "mark"));
  return new Set([...threads(operations)].filter((thread) => !acknowledging.has(thread)));
}

function isSyncOf(file: string, operation: Operation): boolean {
  return operation.kind === "sync" && operation.file === file;
}

function logHeaders({ operations }: Recording): number {
  return operations.filter((each) => each.kind === "write" && each.file === LOG && each.offset === 0).length;
}
