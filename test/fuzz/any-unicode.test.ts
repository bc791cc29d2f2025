// Ids, names, keys and payloads of any Unicode, through client, runtime and every store: what is accepted comes back as it
// was, what is refused is refused with an error of ours before anything is stored.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { activity, event, orchestration } from "../../src/define.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore, type Store } from "../behaviours/stores.js";
import { tries } from "./budget.js";
import { verdictOf } from "./junk.js";
import { anyPayload, anyUnicode, INHERITED, mayIdentify, mayName } from "./unicode.js";

/** A role that a text plays. */
interface Texts {
  readonly instanceId: string;
  readonly childId: string;
  readonly orchestrationName: string;
  readonly activityName: string;
  readonly key: string;
  readonly session: string;
  readonly tag: string;
  readonly eventName: string;
  readonly queue: string;
}

const ROLES: Readonly<Record<keyof Texts, (text: string) => boolean>> = {
  instanceId: mayIdentify,
  childId: mayIdentify,
  orchestrationName: mayName,
  activityName: mayName,
  key: mayName,
  session: mayName,
  tag: mayName,
  eventName: mayName,
  queue: mayName,
};

const anyTexts: fc.Arbitrary<Texts> = fc.record({
  instanceId: anyUnicode,
  childId: anyUnicode,
  orchestrationName: anyUnicode,
  activityName: anyUnicode,
  key: anyUnicode,
  session: anyUnicode,
  tag: anyUnicode,
  eventName: anyUnicode,
  queue: anyUnicode,
});

/** Those that may be, and plain ones in place of the others. Ids must differ. */
function accepted(texts: Texts): Texts {
  const roles = Object.keys(ROLES) as (keyof Texts)[];
  const chosen = roles.map((role) => [role, ROLES[role](texts[role]) ? texts[role] : `plain ${role}`] as const);
  const result = Object.fromEntries(chosen) as unknown as Texts;
  return result.childId === result.instanceId ? { ...result, childId: "plain childId" } : result;
}

onEveryStore((store) => {
  describe("texts of any Unicode", () => {
    test("play every part that they may, and come back as they were", async () => {
      await fc.assert(
        fc.asyncProperty(anyTexts, anyPayload, anyUnicode, async (texts, payload, text) => {
          await expectTour(store, accepted(texts), payload, text);
        }),
        tries(25),
      );
    });

    test.each(INHERITED)("%s plays every part at once", async (text) => {
      const texts = Object.fromEntries(Object.keys(ROLES).map((role) => [role, text])) as unknown as Texts;
      const payload: unknown = JSON.parse(`{"${text}":{"${text}":["${text}"]},"own":1}`);
      await expectTour(store, { ...texts, childId: `${text}-child` }, payload, text);
    });

    test("are refused where they may not be, and nothing is stored", async () => {
      await using world = await store.world();
      const { client, provider } = world;
      const isFree = (text: string) => mayIdentify(text) && text !== "taken";
      await fc.assert(
        fc.asyncProperty(anyUnicode, async (text) => {
          const verdicts = [
            [isFree(text), await verdictOf(() => !isFree(text) && client.start("X", { instanceId: text }))],
            [mayName(text), await verdictOf(() => !mayName(text) && client.start(text, { instanceId: "taken" }))],
            [mayName(text), await verdictOf(() => !mayName(text) && client.raiseEvent("taken", text, 1))],
            [mayName(text), await verdictOf(() => !mayName(text) && client.enqueueEvent("taken", text, 1))],
            [mayName(text), await verdictOf(() => activity(text, () => 1))],
            [mayName(text), await verdictOf(() => orchestration(text, async () => {}))],
            [mayName(text), await verdictOf(() => event(text))],
          ] as const;
          for (const [may, verdict] of verdicts) expect(verdict).toBe(may ? "accepted" : "DUROXIDE_INVALID_INPUT");
        }),
        tries(100),
      );
      expect(await provider.fetchOrchestrationItem({ lockTimeoutMs: 1 })).toBeNull();
    });

    test("name the tags and the node of a worker, where they may", async () => {
      await using world = await store.world();
      await fc.assert(
        fc.asyncProperty(anyUnicode, async (text) => {
          const start = (options: object) => () => world.start({ orchestrationConcurrency: 0, ...options });
          const undo = async (runtime: unknown) => {
            await world.rest(); // It has asked the store.
            await (runtime as Awaited<ReturnType<TestWorld["start"]>>).shutdown({ graceMs: 0 });
          };
          const echo = activity("Echo", () => 1);
          const tagged = { activities: [echo], tagFilter: { kind: "tags", tags: [text] } };
          const named = { activities: [echo], workerNodeId: text };
          const verdicts = [await verdictOf(start(tagged), undo), await verdictOf(start(named), undo)];
          const refused = "DUROXIDE_INVALID_OPTIONS";
          expect(verdicts).toEqual([mayName(text) ? "accepted" : refused, text === "" ? refused : "accepted"]);
          expect(world.factsOf("loop-failed")).toEqual([]);
        }),
        tries(30),
      );
    });

    test("are reasons to cancel, and none is changed", async () => {
      await using world = await store.world();
      const waits = orchestration("Waits", async (ctx) => ctx.waitForEvent("never"));
      await world.start({ orchestrations: [waits] });
      await fc.assert(
        fc.asyncProperty(anyUnicode, async (reason) => {
          const { instanceId } = await world.client.start(waits);
          await world.rest();
          await world.client.cancel(instanceId, reason);
          const ended = await world.settle(world.client.waitForOrchestration(instanceId));
          expect(ended).toMatchObject({ status: "Failed", details: { kind: { type: "Cancelled", reason } } });
        }),
        tries(15),
      );
    });
  });

  test("a megabyte of any Unicode goes all the way, and what is too large for its place is told so", async () => {
    await using world = await store.world();
    const large = 'a\ud83d\0\u{1f600}é"\\\u202e'.repeat(60_000).slice(0, 524_288);
    const echo = activity("Echo", (_ctx, value: unknown) => value);
    const tour = orchestration("Tour", async (ctx, input: string) => {
      const echoed = await ctx.scheduleActivity(echo, input);
      const raised = await ctx.waitForEvent<string>("event");
      const queued = await ctx.dequeueEvent<string>("queue");
      return [echoed, raised, queued].every((text) => text === input) ? input : "changed";
    });
    const tooLarge = orchestration("TooLarge", async (ctx, input: string) => ctx.setCustomStatus(input));
    await world.start({ orchestrations: [tour, tooLarge], activities: [echo] });
    await world.client.start(tour, { instanceId: "tour", input: large });
    await world.rest();
    await world.client.raiseEvent("tour", "event", large);
    await world.client.enqueueEvent("tour", "queue", large);

    expect((await world.settle(world.client.getHandle<string>("tour").result())) === large).toBe(true);
    expect(await verdictOf(() => world.run(tooLarge, { input: large }))).toBe("DUROXIDE_ORCHESTRATION_FAILED");
  });
});

/** Sends the texts and the payload everywhere, and looks at what comes back. */
async function expectTour(store: Store, texts: Texts, payload: unknown, text: string): Promise<void> {
  await using world = await store.world();
  const { instanceId, childId, key, session, tag, eventName, queue } = texts;
  const echo = activity(texts.activityName, (ctx, value: unknown) => {
    return { value, session: ctx.sessionId, tag: ctx.tag, instance: ctx.instanceId };
  });
  const child = orchestration("Child", async (ctx, value: unknown) => ({ value, id: ctx.instanceId }));
  const tour = orchestration(
    texts.orchestrationName === "Child" ? "Tour" : texts.orchestrationName,
    async (ctx, value) => {
      ctx.setCustomStatus(text);
      ctx.kv.set(key, value);
      ctx.kv.setText(`${key.slice(0, 60)}.text`, text);
      const echoed = await ctx.scheduleActivity(echo, value, { sessionId: session, tag });
      const raised = await ctx.waitForEvent(eventName);
      const queued = await ctx.dequeueEvent(queue);
      const childs = await ctx.scheduleSubOrchestration(child, value, { instanceId: childId });
      const read = await ctx.readKv(ctx.instanceId, key);
      return { value, echoed, raised, queued, childs, read, kept: ctx.kv.get(key), status: ctx.customStatus };
    },
  );
  await world.start({
    orchestrations: [tour, child],
    activities: [echo],
    tagFilter: { kind: "default-and", tags: [tag] },
    workerNodeId: session,
  });
  const handle = await world.client.start(tour, { instanceId, input: payload as never });
  await world.rest();
  await handle.raiseEvent(eventName, payload);
  await handle.enqueueEvent(queue, payload);
  const result = await world.settle(handle.result());

  const value: unknown = JSON.parse(JSON.stringify(payload) ?? "null");
  const echoed = { value, session, tag, instance: instanceId };
  const expected = {
    value,
    echoed,
    raised: value,
    queued: value,
    childs: { value, id: childId },
    read: value,
    kept: value,
  };
  // As text: own keys such as `__proto__`, which comparisons of objects pass over, count too.
  expect(JSON.stringify(result)).toBe(JSON.stringify({ ...expected, status: text }));
  expect(JSON.stringify(await handle.getKv(key))).toBe(JSON.stringify(value));
  const all = await world.client.getKvAllValues(instanceId);
  expect([...all.keys()].sort()).toEqual([key, `${key.slice(0, 60)}.text`].sort());
  expect(await world.client.getKvText(instanceId, `${key.slice(0, 60)}.text`)).toBe(text);
  expect((await handle.status()) as object).toMatchObject({ status: "Completed", customStatus: text });
  expect([...(await world.client.listAllInstances())].sort()).toEqual([instanceId, childId].sort());
  expect(await world.client.getInstanceInfo(instanceId)).toMatchObject({ orchestrationName: tour.name });
  expect((await world.client.getInstanceTree(instanceId)).allIds).toEqual([instanceId, childId]);
}
