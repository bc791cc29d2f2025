// test/power-cut/check-image.ts — what must hold of a store after a power cut. Every sentence is a problem.
//
//   I1. It opens, and SQLite finds it whole.
//   I2. It is, page by page, what the database was after one of its commits: nothing is half there, nothing was skipped.
//   I3. What was acknowledged before the next commit is there: no call resolves before its commit.
//   I4. At durability "full": whatever was acknowledged is there.
//   I5. A runtime that starts on it brings everything to its right end: outputs, key-values, histories that are valid, one
//       answer to each activity, empty queues. The client does again what the store does not know of, and nothing else.

import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../../src/errors.js";
import type { Event } from "../../src/history/event.js";
import { historyProblems } from "../../src/history/valid-history.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { openConnection } from "../providers/sqlite-connection.js";
import type { Commits } from "./commits.js";
import type { Image } from "./disk.js";
import { type Acknowledgement, evidenceIn } from "./evidence.js";
import { DATABASE } from "./operation.js";
import { DEFINITIONS, type Order, orderAt, place } from "./workload.js";

/** How far the program had come when the power went. */
export interface Cut {
  /** In the order in which they were given. */
  readonly acknowledgements: readonly Acknowledgement[];
  /** For each of them, how many commits there were when it was given. */
  readonly commitsAt: readonly number[];
  /** How many of them whoever heard the last one may rely on. */
  readonly commitsTold: number;
  readonly commits: Commits;
  readonly instances: number;
}

export interface Verdict {
  readonly problems: readonly string[];
  /** What was acknowledged and is not there. */
  readonly lostAcknowledgements: number;
  /** How many of the last acknowledged commits are not there. */
  readonly lostCommits: number;
}

export interface Demands {
  /** Whether whatever was acknowledged must be there (I4). */
  readonly claimsFull: boolean;
  /** Whether a runtime must bring it to its end (I5). */
  readonly resumes: boolean;
}

export async function checkImage(image: Image, cut: Cut, { claimsFull, resumes }: Demands): Promise<Verdict> {
  const { problems, evidence, commit } = await inFolder(image, (folder) => look(folder, cut.commits));
  if (evidence === null) return { problems, lostAcknowledgements: 0, lostCommits: 0 };
  const isThere = ({ evidence: wanted }: Acknowledgement): boolean => wanted.every((each) => evidence.has(each));
  const lost = cut.acknowledgements.filter((each) => !isThere(each));
  const lostCommits = commit === null ? 0 : Math.max(0, cut.commitsTold - commit);
  const early = cut.acknowledgements.filter((each, place) => cut.commitsAt[place]! <= (commit ?? -1) && !isThere(each));
  if (early.length > 0) problems.push(`acknowledged before its commit: ${told(early)}`); // I3
  if (claimsFull && lost.length > 0) problems.push(`lost: ${told(lost)}`); // I4
  if (claimsFull && lostCommits > 0) problems.push(`lost: ${lostCommits} commits that were acknowledged`);
  if (resumes) {
    const atMs = cut.acknowledgements.at(-1)?.atMs;
    problems.push(...(await inFolder(image, (folder) => resume(folder, cut.instances, evidence, atMs))));
  }
  return { problems, lostAcknowledgements: lost.length, lostCommits };
}

/** A power cut leaves the same files, however often one looks. */
async function inFolder<T>(image: Image, use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "duroxide-image-"));
  try {
    for (const [name, content] of image) writeFileSync(join(folder, name), content);
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const SHOWN = 3;

function told(acknowledgements: readonly Acknowledgement[]): string {
  const some = acknowledgements.slice(0, SHOWN).map(({ call, evidence }) => `${call} (${evidence.join(", ")})`);
  return `${acknowledgements.length} acknowledgements: ${some.join("; ")}`;
}

interface Findings {
  readonly problems: string[];
  /** Null: it is too damaged to tell. */
  readonly evidence: ReadonlySet<string> | null;
  /** After which commit it was in this state; null: never. */
  readonly commit: number | null;
}

/** I1, I2 */
async function look(folder: string, commits: Commits): Promise<Findings> {
  const file = join(folder, DATABASE);
  try {
    const connection = await openConnection(file);
    try {
      connection.exec("PRAGMA synchronous = OFF"); // Nobody cuts the power while we look.
      const answers = connection.prepare("PRAGMA integrity_check").all() as { readonly integrity_check: string }[];
      const damage = answers.map(({ integrity_check }) => integrity_check).filter((answer) => answer !== "ok");
      if (damage.length > 0) return { problems: [`damaged: ${damage.join("; ")}`], evidence: null, commit: null };
      const evidence = evidenceIn(connection);
      connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      const commit = commits.numberOf(readFileSync(file));
      const problems = commit === null ? ["the database never was in this state"] : [];
      return { problems, evidence, commit };
    } finally {
      connection.close();
    }
  } catch (error) {
    return { problems: [`cannot be read: ${messageOf(error)}`], evidence: null, commit: null };
  }
}

/** I5 */
async function resume(
  folder: string,
  instances: number,
  done: ReadonlySet<string>,
  atMs: number | undefined,
): Promise<readonly string[]> {
  const orders = Array.from({ length: instances }, (_, n) => orderAt(n));
  try {
    // Locks of the dead are still held: it starts in the moment in which the power went.
    await using world = await TestWorld.open({
      patienceMs: 0,
      startMs: atMs,
      provider: ({ clock, newId }) =>
        SqliteProvider.open(join(folder, DATABASE), {
          clock,
          newId: () => `resumed ${newId()}`,
          durability: "process-crash",
          crossProcessPollMs: 0,
        }),
    });
    await world.start(DEFINITIONS);
    for (const order of orders) await place(world.client, order, done);
    const outputs = await world.settle(
      Promise.all(orders.map(({ instanceId }) => world.client.getHandle(instanceId).result())),
    );
    const wrong = orders.filter(({ output }, n) => !isDeepStrictEqual(outputs[n], output));
    return [
      ...wrong.map(({ instanceId }) => `${instanceId} came to another output`),
      ...(await leftBehind(world, orders)),
    ];
  } catch (error) {
    return [`does not resume: ${messageOf(error)}`];
  }
}

async function leftBehind(
  { provider, client, facts }: TestWorld,
  orders: readonly Order[],
): Promise<readonly string[]> {
  const problems: string[] = [];
  const { admin } = provider;
  if (admin === null) throw new Error("The store cannot be looked into.");
  const { orchestratorQueue, workerQueue } = await admin.getQueueDepths();
  if (orchestratorQueue + workerQueue > 0) problems.push(`left in the queues: ${orchestratorQueue}, ${workerQueue}`);
  const ids = await admin.listInstances();
  const wanted = orders.reduce((sum, { children }) => sum + 1 + children, 0);
  if (ids.length !== wanted) problems.push(`there are ${ids.length} instances instead of ${wanted}`);
  const executionsOf = new Map(orders.map(({ instanceId, executions }) => [instanceId, executions]));
  for (const id of ids) {
    const executions = await admin.listExecutions(id);
    if (executions.length !== (executionsOf.get(id) ?? 1)) problems.push(`${id} has ${executions.length} executions`);
    for (const execution of executions) {
      const events = await client.readHistory(id, execution);
      problems.push(...[...historyProblems(events), ...openIn(events)].map((each) => `${id}#${execution}: ${each}`));
    }
  }
  for (const { instanceId, output } of orders.filter(({ name }) => name === "Chain")) {
    const values = await client.getHandle(instanceId).getKv("values");
    if (!isDeepStrictEqual(values, output)) problems.push(`${instanceId} has other key-values`);
  }
  const faults = facts.filter(({ type }) => FAULTS.has(type)).map((fact) => JSON.stringify(fact));
  return [...problems, ...new Set(faults)];
}

/** Nothing that this load leads to. */
const FAULTS = new Set([
  "orchestration-poisoned",
  "activity-poisoned",
  "activity-unregistered",
  "unregistered-activity-scheduled",
  "messages-dropped",
  "loop-failed",
  "turn-abandoned",
]);

/** By what is asked for: the answers to it. That there are not several is a rule of every history. */
const ANSWERS: Readonly<Record<string, readonly string[]>> = {
  ActivityScheduled: ["ActivityCompleted", "ActivityFailed"],
  TimerCreated: ["TimerFired"],
  SubOrchestrationScheduled: ["SubOrchestrationCompleted"],
};

function openIn(events: readonly Event[]): readonly string[] {
  const count = (types: readonly string[]): number => events.filter(({ type }) => types.includes(type)).length;
  return Object.entries(ANSWERS).flatMap(([asked, answers]) => {
    const open = count([asked]) - count(answers);
    return open === 0 ? [] : [`${open} of ${asked} have no answer`];
  });
}
