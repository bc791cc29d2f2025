// test/golden/programs/messages.ts — events, mailboxes, and what continue-as-new takes along.
//
// FROZEN. Never change a program once it is recorded: its histories are those of instances that still run somewhere. Add a
// new one instead.

import { orchestration } from "../../../src/define.js";
import { echo } from "../activities.js";
import type { Golden } from "../golden.js";

const events = orchestration("Events", async (ctx) => {
  const first = ctx.waitForEvent("a");
  const second = ctx.waitForEvent("a");
  const other = await ctx.waitForEvent("b");
  await ctx.scheduleTimer(1);
  return [other, await second, await first];
});

const lostEvent = orchestration("LostEvent", async (ctx) => {
  await ctx.scheduleTimer("1m");
  return ctx.waitForEvent("go");
});

const mailbox = orchestration("Mailbox", async (ctx) => {
  const seen: unknown[] = [];
  while (seen.at(-1) !== "stop") seen.push(await ctx.dequeueEvent("in"));
  return seen;
});

const patientMailbox = orchestration("PatientMailbox", async (ctx) => {
  const seen: unknown[] = [];
  for (let round = 0; round < 4; round += 1) {
    const first = await ctx.race([ctx.dequeueEvent("in"), ctx.scheduleTimer("1m")]);
    seen.push(first.index === 0 ? first.value : "nothing");
  }
  return seen;
});

const consumer = orchestration("Consumer", async (ctx, total: number): Promise<unknown> => {
  const amount = await ctx.dequeueEvent<number>("amounts");
  ctx.setCustomStatus(`total ${total + amount}`);
  ctx.kv.set("total", total + amount);
  if (amount === 0) return { total, rest: ctx.customStatus, kv: ctx.kv.get("total"), executions: ctx.executionId };
  return ctx.continueAsNew(total + amount);
});

const restless = orchestration("Restless", async (ctx, n: number): Promise<unknown> => {
  void ctx.scheduleActivity(echo, n);
  void ctx.waitForEvent("never");
  void ctx.scheduleTimer("1d");
  await ctx.scheduleTimer(1);
  return n < 2 ? ctx.continueAsNew(n + 1) : "rest";
});

const cuckoo = orchestration("Cuckoo", async (ctx, n: number): Promise<unknown> => {
  const name = await ctx.dequeueEvent<string>("__proto__");
  const payload = await ctx.scheduleActivity(echo, JSON.parse('{"__proto__":{"constructor":1},"toString":null}'));
  ctx.kv.set("__proto__", payload);
  ctx.kv.set("constructor", [name, "\ud83d", "\0", "\u202e שלום 👩‍👩‍👧"]);
  ctx.setCustomStatus('half \ud83d, NUL \0, "quoted"');
  return n === 0 ? ctx.continueAsNew(1) : ctx.kv.keys();
});

export const messages: Readonly<Record<string, Golden>> = {
  events: {
    orchestrations: [events],
    play: async (world) => {
      await world.client.start(events, { instanceId: "events" });
      await world.rest();
      for (const n of [1, 2, 3]) await world.client.raiseEvent("events", "a", { n });
      await world.rest();
      await world.client.raiseEvent("events", "b");
      await world.ending("events");
    },
  },
  "lost-event": {
    orchestrations: [lostEvent],
    play: async (world) => {
      await world.client.start(lostEvent, { instanceId: "lost-event" });
      await world.rest();
      await world.client.raiseEvent("lost-event", "go", "too early");
      await world.advance("2m");
      await world.client.raiseEvent("lost-event", "go", "in time");
      await world.ending("lost-event");
    },
  },
  mailbox: {
    orchestrations: [mailbox],
    play: async (world) => {
      await world.client.start(mailbox, { instanceId: "mailbox" });
      for (const word of ["a", "b"]) await world.client.enqueueEvent("mailbox", "in", word);
      await world.rest();
      await world.client.enqueueEvent("mailbox", "other", "for nobody");
      for (const word of ["c", "stop", "unread"]) await world.client.enqueueEvent("mailbox", "in", word);
      await world.ending("mailbox");
    },
  },
  "patient-mailbox": {
    orchestrations: [patientMailbox],
    play: async (world) => {
      await world.client.start(patientMailbox, { instanceId: "patient-mailbox" });
      await world.advance("90s");
      await world.client.enqueueEvent("patient-mailbox", "in", 1);
      await world.client.enqueueEvent("patient-mailbox", "in", 2);
      await world.ending("patient-mailbox");
    },
  },
  consumer: {
    orchestrations: [consumer],
    play: async (world) => {
      await world.client.start(consumer, { instanceId: "consumer", input: 0 });
      for (const amount of [5, 7, 30]) await world.client.enqueueEvent("consumer", "amounts", amount);
      await world.client.enqueueEvent("consumer", "unread", "kept all along");
      await world.advance("1s");
      await world.client.enqueueEvent("consumer", "amounts", 0);
      await world.ending("consumer");
    },
  },
  restless: {
    orchestrations: [restless],
    play: async (world) => {
      await world.client.start(restless, { instanceId: "restless", input: 0 });
      await world.ending("restless");
    },
  },
  "hostile-text": {
    orchestrations: [cuckoo],
    activities: [echo],
    play: async (world) => {
      await world.client.start(cuckoo, { instanceId: "__proto__", input: 0 });
      for (const name of ["constructor", "toString"]) await world.client.enqueueEvent("__proto__", "__proto__", name);
      await world.ending("__proto__");
    },
  },
  waiting: {
    orchestrations: [patientMailbox, events],
    play: async (world) => {
      await world.client.start(patientMailbox, { instanceId: "waiting-mailbox" });
      await world.client.start(events, { instanceId: "waiting-events" });
      await world.advance("70s");
      await world.client.raiseEvent("waiting-events", "b", "still open");
      await world.advance("1s");
    },
  },
};
