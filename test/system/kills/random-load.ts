// kills/random-load.ts — a load (rich-load.mjs tells what that is) of the random orchestrations of the simulation: the n-th
// instance runs the script of seed n. What each must come to, the model of the simulation tells when all is over.
//
// Processes run it as one file (scripts/bundle-load.mjs), because Node 20 reads no TypeScript.

import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "../../../src/client/client.js";
import type { Provider } from "../../../src/provider/provider.js";
import {
  orchestrations as definitions,
  eventName,
  firstTask,
  namedChildId,
  ROOT,
  startsIn,
  workActivity,
} from "../../simulation/interpreter.js";
import { storeProblems } from "../../simulation/oracles.js";
import { leavesOf, QUEUES, type Script, scriptOf, TAG } from "../../simulation/program.js";

/** In virtual time work may take most of a minute. Here it takes as long as a worker lives, at most. */
const LONGEST_WORK_MS = 1_000;
const WRITE_EVERY_MS = 500;

export const tags = [TAG];
/** Late answers to what was given up, events that nobody waits for, and messages that nobody reads. */
export const usualFacts = ["messages-dropped"];
export const orchestrations = Object.values(definitions());
export const activities = [
  workActivity(({ signal }, { tookMs }) => pause(Math.min(tookMs, LONGEST_WORK_MS), undefined, { signal })),
];

export function start(n: number): { readonly name: string; readonly instanceId: string; readonly input: unknown } {
  return { name: ROOT, instanceId: `random-${n}`, input: firstTask(n) };
}

/** Sends what it and its children may wait for, until it has ended. */
export async function drive(n: number, client: Client): Promise<null> {
  const { instanceId } = start(n);
  const addressees = addresseesOf(instanceId, scriptOf(n));
  for (;;) {
    await pause(WRITE_EVERY_MS);
    if (await hasEnded(client, instanceId)) return null;
    for (const addressee of addressees) await write(client, addressee);
  }
}

export function check(provider: Provider): Promise<readonly string[]> {
  return storeProblems(provider, { isCancelled: () => false, isDeleted: () => false });
}

/** An instance that waits for something from outside. */
interface Addressee {
  readonly instanceId: string;
  readonly events: readonly string[];
  /** By queue: the messages that are still to be sent, which are numbers that count up. */
  readonly letters: readonly { readonly queue: string; next: number; readonly count: number }[];
}

function addresseesOf(instanceId: string, script: Script): readonly Addressee[] {
  if (!script.isNamed) return [];
  const leaves = script.executions.flatMap(({ program }) => leavesOf(program));
  const countOf = (queue: string) => leaves.filter((leaf) => leaf.op === "dequeue" && leaf.queue === queue).length;
  const itself: Addressee = {
    instanceId,
    events: leaves.flatMap((leaf) => (leaf.op === "wait" ? [eventName(leaf.label)] : [])),
    letters: QUEUES.map((queue) => ({ queue, next: 0, count: countOf(queue) })),
  };
  const children = script.executions.flatMap(({ program }, execution) =>
    startsIn(program)
      .filter(({ op }) => op === "child")
      .flatMap(({ label, script: child }) => addresseesOf(namedChildId(instanceId, execution, label), child)),
  );
  return [itself, ...children].filter(({ events, letters }) => events.length + letters.length > 0);
}

/** Events again and again, because one that nobody waits for yet is lost; the letters once. */
async function write(client: Client, { instanceId, events, letters }: Addressee): Promise<void> {
  const { status } = await client.getStatus(instanceId);
  if (status !== "Running") return; // What comes before the start may be dropped.
  for (const event of events) await client.raiseEvent(instanceId, event, `data ${event.replace(/^\D+/, "")}`);
  for (const letter of letters) {
    if (letter.next === letter.count) continue;
    await client.enqueueEvent(instanceId, letter.queue, letter.next);
    letter.next += 1;
  }
}

async function hasEnded(client: Client, instanceId: string): Promise<boolean> {
  const { status } = await client.getStatus(instanceId);
  return status === "Completed" || status === "Failed";
}
