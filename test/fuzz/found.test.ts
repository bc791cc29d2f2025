// What fuzzing has found, each by its smallest counterexample.

import { describe, expect, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { orchestration } from "../../src/define.js";
import { durationMs } from "../../src/duration.js";
import { historyProblems } from "../../src/history/valid-history.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { Registry } from "../../src/runtime/registry.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { outputOf, runTurn } from "../engine/drive.js";
import { expectRefused } from "../system/bad-input-world.js";
import { unreadable } from "./junk.js";

/** As a caller without types may pass it. */
const given = (value: unknown): never => value as never;

describe("options", () => {
  test("that cannot be read are refused, and say why", async () => {
    await using provider = new MemoryProvider();
    const message = "new Client: the options cannot be read: a getter of the caller's";
    await expectRefused(() => new Client(provider, unreadable()), "DUROXIDE_INVALID_OPTIONS", message);
  });

  test.each<[string, object, string]>([
    ["observers", { observers: new Array(1) }, "option 'observers' must be an array of functions."],
    [
      "tags",
      { tagFilter: { kind: "tags", tags: new Array(1) } },
      "option 'tagFilter' must list tags of 1 to 256 bytes.",
    ],
    ["a tag with NUL", { tagFilter: { kind: "tags", tags: ["\0"] } }, "well-formed text without NUL."],
    ["half a tag", { tagFilter: { kind: "tags", tags: ["\ud83d"] } }, "well-formed text without NUL."],
    ["ids of nothing", { newId: () => undefined }, "option 'newId' must make a text that is not empty, not undefined."],
    ["ids by a class", { newId: class Id {} }, "option 'newId' throws: Class constructor Id cannot be invoked"],
  ])("of a runtime: an empty place, or %s, is refused", async (_, options, message) => {
    await using provider = new MemoryProvider();
    await expectRefused(() => Runtime.start({ provider, ...options }), "DUROXIDE_INVALID_OPTIONS", message);
  });

  test("of a filter with an empty place are refused", async () => {
    await using provider = new MemoryProvider();
    const filter = { instanceIds: new Array<string>(1) };
    const message = "option 'instanceIds' must be an array of instance ids.";
    await expectRefused(() => new Client(provider).deleteInstanceBulk(filter), "DUROXIDE_INVALID_OPTIONS", message);
  });
});

describe("a registry", () => {
  test.each<[string, object, string]>([
    [
      "an activity whose name is none",
      { activities: [{ kind: "activity", name: 7 }] },
      "activities[0] is the activity '7'",
    ],
    [
      "an orchestration whose name is a symbol",
      { orchestrations: [{ kind: "orchestration", name: Symbol("s") }] },
      "orchestrations[0] is the orchestration 'Symbol(s)'",
    ],
    [
      "a policy that is none",
      { orchestrations: [orchestration("X", async () => {})], versionPolicies: { X: Symbol("latest") } },
      "version policy for 'X': \"latest\" or a version is expected, not a symbol",
    ],
  ])("refuses %s", async (_, contents, message) => {
    await expectRefused(() => Registry.of(given(contents)), "DUROXIDE_REGISTRATION", message);
    await expectRefused(() => Registry.of({}).merge(given(contents)), "DUROXIDE_REGISTRATION", message);
  });

  test("merges no junk, but nothing with ease", async () => {
    const refused = "Registry.merge: the options must be an object, not null.";
    await expectRefused(() => Registry.of({}).merge(given(null)), "DUROXIDE_INVALID_OPTIONS", refused);
    expect(Registry.of({}).merge(given(undefined)).activityNames()).toEqual([]);
  });
});

describe("a history", () => {
  test.each<[string, unknown[], string]>([
    ["with an empty place", new Array(1), "what stands at place 1 is no event"],
    ["of an event that cannot be read", [unreadable()], "what stands at place 1 is no event"],
    [
      "whose texts are none",
      [
        {
          type: "SubOrchestrationScheduled",
          eventId: 1,
          sourceEventId: null,
          instanceId: "i",
          executionId: 1,
          timestampMs: 1,
          duroxideVersion: "0.1.30",
          name: "C",
          input: "null",
          instance: { toJSON: () => "sub::2" },
        },
      ],
      "event 1 (SubOrchestrationScheduled) names its child 'sub::2', not 'sub::1'",
    ],
  ])("%s is told to be none", (_, events, problem) => {
    expect(historyProblems(given(events))).toContainEqual(expect.stringContaining(problem));
  });
});

describe("an orchestration", () => {
  test("waits for all of an array with empty places as for undefined, as Promise.all does", async () => {
    expect(outputOf(await runTurn({ code: async (ctx) => ctx.all(new Array(2) as never[]) }))).toEqual([null, null]);
  });

  test("is told when a key is a symbol", async () => {
    const messages: string[] = [];
    await runTurn({
      code: async (ctx) => {
        for (const write of [
          () => ctx.kv.set(given(Symbol("k")), 1),
          () => ctx.kv.setText(given(Symbol("k")), given(1)),
        ]) {
          try {
            write();
          } catch (error) {
            messages.push((error as Error).message);
          }
        }
      },
    });
    expect(messages).toEqual(Array(2).fill("key must be a string, not symbol; pass a non-empty string."));
  });
});

test("a duration of -0 is one of 0", () => {
  expect(durationMs(-0, "timer")).toBe(0);
});
