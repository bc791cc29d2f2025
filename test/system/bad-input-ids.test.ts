// Ids and names that cannot be: refused at every door, with a word on what to do, and nothing is written.

import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.js";
import { activity, event, orchestration } from "../../src/define.js";
import { expectRefused, STORES, World } from "./bad-input-world.js";

/** As a caller without types may pass them. */
const given = (value: unknown): string => value as string;

const BAD_TEXTS: readonly [what: string, value: unknown, message: string][] = [
  ["nothing", undefined, "must be a string, not undefined; pass a non-empty string."],
  ["null", null, "must be a string, not null; pass a non-empty string."],
  ["a number", 7, "must be a string, not number; pass a non-empty string."],
  ["an object", { id: "order-1" }, "must be a string, not object; pass a non-empty string."],
  ["the empty text", "", "is empty; pass a non-empty string."],
  ["NUL", "order\0", "contains the NUL character; leave it out."],
  ["half a character", "order-\ud83d", "contains half a surrogate pair; pass well-formed Unicode text."],
];

const BAD_IDS: readonly [what: string, value: unknown, message: string][] = [
  ...BAD_TEXTS,
  ["a line break", "order\n1", "contains the control character U+000A; leave it out."],
  ["DEL", "order\u007f1", "contains the control character U+007F; leave it out."],
  ["a C1 control", "order\u00851", "contains the control character U+0085; leave it out."],
  ["4,097 bytes", "x".repeat(4_097), "is 4097 bytes long; shorten it to at most 4096 bytes of UTF-8."],
];

const BAD_ROOT_IDS: readonly [what: string, value: unknown, message: string][] = [
  ["257 bytes", "x".repeat(257), "is 257 bytes long; shorten it to at most 256 bytes of UTF-8."],
  ["129 two-byte characters", "ü".repeat(129), "is 258 bytes long; shorten it to at most 256 bytes of UTF-8."],
  ["a child's id", "order-1::sub::2", "is reserved for sub-orchestrations; choose an id that neither starts"],
  ["a child's short id", "sub::2", "is reserved for sub-orchestrations; choose an id that neither starts"],
];

const DOORS: readonly [door: string, call: (client: Client, id: string) => unknown][] = [
  ["getHandle", (client, id) => client.getHandle(id)],
  ["raiseEvent", (client, id) => client.raiseEvent(id, "approval", true)],
  ["enqueueEvent", (client, id) => client.enqueueEvent(id, "orders", 1)],
  ["cancel", (client, id) => client.cancel(id)],
  ["getStatus", (client, id) => client.getStatus(id)],
  ["waitForOrchestration", (client, id) => client.waitForOrchestration(id)],
  ["waitForStatusChange", (client, id) => client.waitForStatusChange(id)],
  ["getKvValue", (client, id) => client.getKvValue(id, "key")],
  ["getKvAllValues", (client, id) => client.getKvAllValues(id)],
  ["waitForKvValue", (client, id) => client.waitForKvValue(id, "key")],
  ["readHistory", (client, id) => client.readHistory(id)],
];

describe.each(STORES)("on the %s store", (_, open) => {
  describe("an instance id that cannot be", () => {
    test.each(DOORS)("is refused by %s", async (_door, call) => {
      const world = await World.open(open);
      for (const [, id, message] of BAD_IDS) {
        await expectRefused(
          () => call(world.client, given(id)),
          "DUROXIDE_INVALID_INPUT",
          `instance id ${shown(id, message)}`,
        );
      }
      await world.expectNothingWritten();
      await world.run();
      await world.expectAlive();
    });

    test("is refused by start, which also keeps the runtime's own ids to itself", async () => {
      const world = await World.open(open);
      const defined = BAD_IDS.filter(([, id]) => id !== undefined && !String(id).startsWith("xx"));
      for (const [, id, message] of [...defined, ...BAD_ROOT_IDS]) {
        const start = () => world.client.start("Control", { instanceId: given(id), input: "x" });
        await expectRefused(start, "DUROXIDE_INVALID_INPUT", message);
      }
      await world.expectNothingWritten();
      await world.run();
      await world.expectAlive();
    });

    test("is refused inside an orchestration, which may catch it and go on", async () => {
      const world = await World.open(open);
      const doors = orchestration("Doors", async (ctx) => {
        const refusals: unknown[] = [];
        const note = (error: unknown): unknown => refusals.push((error as { code: string }).code);
        for (const [, id] of [...BAD_TEXTS.slice(1), ...BAD_ROOT_IDS]) {
          await (async () => ctx.scheduleSubOrchestration("Any", null, { instanceId: given(id) }))().catch(note);
          await (async () => ctx.startOrchestration("Any", { instanceId: given(id) }))().catch(note);
        }
        await (async () => ctx.startOrchestration("Any", undefined as never))().catch(note);
        for (const [, id] of BAD_IDS) await (async () => ctx.readKv(given(id), "key"))().catch(note);
        return refusals;
      });
      await world.run({ orchestrations: [doors] });
      const handle = await world.client.start(doors, { instanceId: "doors" });

      const count = 2 * (BAD_TEXTS.length - 1 + BAD_ROOT_IDS.length) + 1 + BAD_IDS.length;
      expect(await world.settled(handle.result())).toEqual(Array(count).fill("DUROXIDE_INVALID_INPUT"));
      expect((await world.client.readHistory("doors")).map(({ type }) => type)).toEqual([
        "OrchestrationStarted",
        "OrchestrationCompleted",
      ]);
      await world.expectAlive();
    });
  });

  test("ids of any language, of spaces, of exactly 256 bytes are as good as others", async () => {
    const world = await World.open(open);
    await world.run();
    for (const instanceId of [
      "заказ-№1",
      "注文/1",
      "👩‍👩‍👧",
      "  ",
      "' OR 1=1 --",
      "%_\\",
      "x".repeat(256),
      "ü".repeat(128),
    ]) {
      const handle = await world.client.start("Control", { instanceId, input: instanceId });
      expect(await world.settled(handle.result())).toBe(instanceId);
    }
  });

  describe("a name that cannot be", () => {
    test.each<[string, (client: Client, name: string) => unknown]>([
      ["raiseEvent", (client, name) => client.raiseEvent("order-1", name)],
      ["enqueueEvent", (client, name) => client.enqueueEvent("order-1", name)],
      ["start", (client, name) => client.start(name)],
    ])("is refused by %s", async (_door, call) => {
      const world = await World.open(open);
      for (const [, name, message] of BAD_TEXTS) {
        const expected = typeof name === "string" ? message : "a definition or a name is expected, got";
        await expectRefused(() => call(world.client, given(name)), "DUROXIDE_INVALID_INPUT", expected);
      }
      const tooLong = "shorten it to at most 256 bytes of UTF-8.";
      await expectRefused(() => call(world.client, "x".repeat(257)), "DUROXIDE_INVALID_INPUT", tooLong);
      await world.expectNothingWritten();
    });
  });

  test("a definition of the wrong kind is refused where it is sent", async () => {
    const world = await World.open(open);
    const { client } = world;
    const charge = activity("Charge", async () => 1);
    const approval = event("approval");

    const notOne = (kind: string) => new RegExp(`^${kind}: a definition or a name is expected, got`);
    await expectRefused(() => client.start(charge as never), "DUROXIDE_INVALID_INPUT", notOne("orchestration"));
    await expectRefused(
      () => client.getHandle(approval as never, "order-1"),
      "DUROXIDE_INVALID_INPUT",
      notOne("orchestration"),
    );
    await expectRefused(() => client.raiseEvent("order-1", charge as never), "DUROXIDE_INVALID_INPUT", notOne("event"));
    await world.expectNothingWritten();
  });

  test("a key or an execution id that is none is refused", async () => {
    const { client } = await World.open(open);
    const key = given(undefined);
    const noKey = "key must be a string, not undefined";
    await expectRefused(() => client.getKvValue("order-1", key), "DUROXIDE_INVALID_INPUT", noKey);
    await expectRefused(() => client.waitForKvValue("order-1", key), "DUROXIDE_INVALID_INPUT", noKey);
    const noId = "execution id: an integer from 1 up is expected";
    await expectRefused(() => client.readHistory("order-1", "1" as never), "DUROXIDE_INVALID_INPUT", noId);
    await expectRefused(() => client.readHistory("order-1", Number.NaN), "DUROXIDE_INVALID_INPUT", noId);
  });
});

describe("a definition under a name that cannot be", () => {
  test.each<[string, (name: string) => unknown]>([
    ["activity", (name) => activity(name, async () => 1)],
    ["orchestration", (name) => orchestration(name, async () => 1)],
    ["event", (name) => event(name)],
  ])("is refused: %s", async (kind, define) => {
    for (const [, name] of BAD_TEXTS) {
      await expectRefused(() => define(given(name)), "DUROXIDE_INVALID_INPUT", `${kind} name `);
    }
    await expectRefused(() => define("x".repeat(257)), "DUROXIDE_INVALID_INPUT", `${kind} name "xxx`);
  });
});

/** What the message says of the id before it says what is wrong with it. */
function shown(id: unknown, message: string): string {
  if (typeof id !== "string" || id === "") return message;
  const text = id.length > 4_000 ? `${JSON.stringify(id.slice(0, 32))}…` : JSON.stringify(id);
  return `${text} ${message}`;
}
