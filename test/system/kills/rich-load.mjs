// kills/rich-load.mjs — orchestrations of every kind, each by a number, and what it must come to.
//
// A load is a module:
//
//   orchestrations, activities   what the workers register
//   tags                         all that its activities have
//   start(n)                     name, instanceId and input of the n-th instance
//   expected(n)                  how it ends. Not needed where `check` can tell
//   drive(n, client)             if somebody outside has a part in it: plays that part while the instance runs, and answers with
//                                what it finds wrong, or null
//   check(provider)              if there is more to say when all is over: what is wrong with the store, as sentences
//   usualFacts                   what a worker may report without a fault
//
// The first half are the fleet's (fleet/load.mjs). These are the others: mailboxes, events, races, key-values, failures,
// cancellation, and orchestrations that start others.

import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { activity, orchestration } from "duroxide-ts";
import * as fleet from "../fleet/load.mjs";

export { tags } from "../fleet/load.mjs";

/** Late answers to what a race or a cancellation has given up, and messages that a driver sent twice. */
export const usualFacts = ["messages-dropped"];

const LETTERS = 3;
const PAGES = 4;
const OPEN = "open";
const REASON = "enough";
const SHORT_MS = 200;
const LONG = "1h";

const stepMs = (n) => 5 + ((n * 37) % 96);

const double = activity("Double", async (_ctx, n) => {
  await pause(stepMs(n));
  return n * 2;
});
/** Ends when nobody wants it any more, as a good activity does. */
const linger = activity("Linger", async ({ signal }) => {
  await pause(3_600_000, undefined, { signal });
});
const refuse = activity("Refuse", async (_ctx, n) => {
  await pause(stepMs(n));
  throw new Error(`refused ${n}`);
});

/** Takes each letter once: whoever sends may send it twice. One execution for each. */
const mailbox = orchestration("Mailbox", async (ctx, { n, answers }) => {
  let letter;
  do letter = await ctx.dequeueEvent("letters");
  while (letter < answers.length);
  const sofar = [...answers, await ctx.scheduleActivity(double, n + letter)];
  return sofar.length === LETTERS ? sofar : ctx.continueAsNew({ n, answers: sofar });
});

const signalled = orchestration("Signalled", async (ctx, n) => {
  ctx.setCustomStatus(OPEN);
  const said = await ctx.waitForEvent("go");
  return ctx.scheduleActivity(double, n + said);
});

/** The mailbox wins, the timer is given up. */
const approval = orchestration("Approval", async (ctx, n) => {
  const first = await ctx.race({ approved: ctx.dequeueEvent("approvals"), late: ctx.scheduleTimer(LONG) });
  return [first.winner, first.value, await ctx.scheduleActivity(double, n)];
});

/** The timer wins, the activity is given up: it may be running. */
const deadline = orchestration("Deadline", async (ctx, n) => {
  const first = await ctx.race({ slow: ctx.scheduleActivity(linger), late: ctx.scheduleTimer(SHORT_MS) });
  return [first.winner, await ctx.scheduleActivity(double, n)];
});

const book = orchestration("Book", async (ctx, n) => {
  const page = (ctx.kv.get("pages") ?? 0) + 1;
  ctx.kv.set(`page-${page}`, await ctx.scheduleActivity(double, n + page));
  ctx.kv.set("pages", page);
  ctx.setCustomStatus(`page ${page}`);
  if (page < PAGES) return ctx.continueAsNew(n);
  ctx.kv.delete("page-1");
  return ctx.kv.keys().map((key) => [key, ctx.kv.get(key)]);
});

const note = orchestration("Note", async (ctx, n) => {
  ctx.kv.set("note", await ctx.scheduleActivity(double, n));
  return ctx.instanceId;
});
const reader = orchestration("Reader", async (ctx, n) => {
  const child = await ctx.scheduleSubOrchestration(note, n);
  return ctx.readKv(child, "note");
});

const failing = orchestration("Failing", async (ctx, n) => {
  const doubled = await ctx.scheduleActivity(double, n);
  await ctx.scheduleActivity(refuse, doubled);
});
const failingParent = orchestration("FailingParent", async (ctx, n) => {
  try {
    await ctx.scheduleSubOrchestration(failing, n);
    return "no failure";
  } catch (error) {
    return [error.message, await ctx.scheduleActivity(double, n)];
  }
});

/** Waits with all that one can wait with, below it a child that does the same. */
const patientOne = orchestration("Patient", async (ctx, depth) => {
  const below = depth > 0 ? ctx.scheduleSubOrchestration("Patient", depth - 1) : ctx.scheduleActivity(linger);
  ctx.setCustomStatus(OPEN);
  await Promise.all([below, ctx.waitForEvent("never"), ctx.scheduleTimer(LONG)]);
});

const launcher = orchestration("Launcher", async (ctx, n) => {
  ctx.startOrchestration(note, { instanceId: launchedBy(ctx.instanceId), input: n });
  return typeof (await ctx.newGuid()) + typeof (await ctx.utcNow());
});

/** Native combinators, and branches within branches. */
const tangled = orchestration("Tangled", async (ctx, n) => {
  const twice = async (input) => ctx.scheduleActivity(double, await ctx.scheduleActivity(double, input));
  const [first, settled] = await Promise.all([
    ctx.all({ left: () => twice(n), right: ctx.race([() => twice(n + 1), ctx.scheduleTimer(LONG)]) }),
    Promise.allSettled([twice(n + 2), ctx.scheduleActivity(refuse, n)]),
  ]);
  return [first.left, first.right.value, settled[0].value, settled[1].reason.message];
});

export const activities = [...fleet.activities, double, linger, refuse];
export const orchestrations = [
  ...fleet.orchestrations,
  mailbox,
  signalled,
  approval,
  deadline,
  book,
  note,
  reader,
  failing,
  failingParent,
  patientOne,
  launcher,
  tangled,
];

const completed = (output) => ({ status: "Completed", output });
const failed = (error) => ({ status: "Failed", error });

/** By kind: how it begins (by default with its number), how it ends, and what the driver does. */
const KINDS = [
  {
    name: "Mailbox",
    input: (n) => ({ n, answers: [] }),
    ending: (n) => completed(Array.from({ length: LETTERS }, (_, letter) => (n + letter) * 2)),
    async drive(id, _n, client) {
      for (let letter = 0; letter < LETTERS; letter += 1) await client.enqueueEvent(id, "letters", letter);
      return null;
    },
  },
  {
    name: "Signalled",
    ending: (n) => completed((n + 1) * 2),
    async drive(id, _n, client) {
      await client.waitForStatusChange(id);
      await client.raiseEvent(id, "go", 1);
      return null;
    },
  },
  {
    name: "Approval",
    ending: (n) => completed(["approved", "yes", n * 2]),
    async drive(id, _n, client) {
      await client.enqueueEvent(id, "approvals", "yes");
      return null;
    },
  },
  { name: "Deadline", ending: (n) => completed(["late", n * 2]) },
  {
    name: "Book",
    ending: (n) => completed(bookOf(n)),
    async drive(id, n, client) {
      const { customStatus } = await client.waitForOrchestration(id);
      const kept = [...(await client.getKvAllValues(id))].sort();
      if (isDeepStrictEqual(kept, bookOf(n)) && customStatus === `page ${PAGES}`) return null;
      return `${id} has kept ${JSON.stringify(kept)} and says '${customStatus}'`;
    },
  },
  { name: "Reader", ending: (n) => completed(n * 2) },
  { name: "Failing", ending: (n) => failed(`refused ${n * 2}`) },
  { name: "FailingParent", ending: (n) => completed([`refused ${n * 2}`, n * 2]) },
  {
    name: "Patient",
    input: (n) => n % 3,
    ending: () => failed(`canceled: ${REASON}`),
    async drive(id, _n, client) {
      await client.waitForStatusChange(id);
      await client.cancel(id, REASON);
      return null;
    },
  },
  {
    name: "Launcher",
    ending: () => completed("stringnumber"),
    async drive(id, n, client) {
      const launched = launchedBy(id);
      const { output } = await client.waitForOrchestration(launched);
      const kept = await client.getKvValue(launched, "note");
      return output === launched && kept === n * 2 ? null : `${launched} came to ${JSON.stringify({ output, kept })}`;
    },
  },
  {
    name: "Tangled",
    ending: (n) => completed([n * 4, (n + 1) * 4, (n + 2) * 4, `refused ${n}`]),
  },
];

function launchedBy(id) {
  return `${id}-launched`;
}

function bookOf(n) {
  const pages = Array.from({ length: PAGES }, (_, index) => [`page-${index + 1}`, (n + index + 1) * 2]);
  return [...pages.slice(1), ["pages", PAGES]];
}

/** Every second one is one of the fleet's. */
export function start(n) {
  if (n % 2 === 0) {
    const { name, instanceId, input } = fleet.orchestrationAt(n / 2);
    return { name, instanceId, input };
  }
  const { name, input = (number) => number } = kindAt(n);
  return { name, instanceId: idAt(n), input: input(n) };
}

/** As `client.waitForOrchestration` tells it: `{ status: "Completed", output }`, or `{ status: "Failed", error }`. */
export function expected(n) {
  return n % 2 === 0 ? completed(fleet.orchestrationAt(n / 2).expected.output) : kindAt(n).ending(n);
}

export async function drive(n, client) {
  return n % 2 === 0 ? null : ((await kindAt(n).drive?.(idAt(n), n, client)) ?? null);
}

function kindAt(n) {
  return KINDS[((n - 1) / 2) % KINDS.length];
}

function idAt(n) {
  return `${kindAt(n).name.toLowerCase()}-${n}`;
}
