// Code that no longer takes the decisions of its history: everything is found, and told in full.

import { describe, expect, test } from "vitest";
import { ReplayDivergedError } from "../../src/errors.js";
import { assertDeterministic } from "../../src/testing/assert-deterministic.js";
import { type Code, cancel, completed, fired, NOW } from "../engine/drive.js";
import { codeOf, recorded, replayed } from "./recorded.js";

const INSTANCE = "Instance 'test-instance', execution 1";

describe("code that decides something else", () => {
  const wait: Code = async (ctx) => ctx.waitForEvent("next");
  type Before = (...args: Parameters<Code>) => unknown;
  const then =
    (decide: Before, rest: Code = wait): Code =>
    async (ctx, input) => {
      await decide(ctx, input);
      return rest(ctx, input);
    };
  const child = (instanceId?: string) => (ctx: Parameters<Code>[0]) => {
    ctx.scheduleSubOrchestration("Child", 1, instanceId === undefined ? {} : { instanceId });
  };

  test.each<[string, Code, Code, string]>([
    [
      "another activity",
      async (ctx) => ctx.scheduleActivity("Charge", 12),
      async (ctx) => ctx.scheduleActivity("Refund", 12),
      'event 2: history records ActivityScheduled(name="Charge", input="12"), but the code now decides ActivityScheduled(name="Refund", input="12").',
    ],
    [
      "another kind of thing",
      async (ctx) => ctx.scheduleActivity("Charge", 12),
      async (ctx) => ctx.waitForEvent("go"),
      'event 2: history records ActivityScheduled(name="Charge", input="12"), but the code now decides ExternalSubscribed(name="go").',
    ],
    [
      "nothing, where it took a decision",
      then((ctx) => ctx.setCustomStatus("busy")),
      wait,
      'event 2: history records CustomStatusUpdated(status="busy"), but the code now decides ExternalSubscribed(name="next").',
    ],
    [
      "another custom status",
      then((ctx) => ctx.setCustomStatus("busy")),
      then((ctx) => ctx.setCustomStatus("idle")),
      'event 2: history records CustomStatusUpdated(status="busy"), but the code now decides CustomStatusUpdated(status="idle").',
    ],
    [
      "no custom status, where it set one",
      then((ctx) => ctx.setCustomStatus("busy")),
      then((ctx) => ctx.resetCustomStatus()),
      'event 2: history records CustomStatusUpdated(status="busy"), but the code now decides CustomStatusUpdated().',
    ],
    [
      "another value for a key",
      then((ctx) => ctx.kv.set("k", 1)),
      then((ctx) => ctx.kv.set("k", 2)),
      `event 2: history records KeyValueSet(key="k", value="1", lastUpdatedAtMs=${NOW + 1}), but the code now decides KeyValueSet(key="k", value="2", lastUpdatedAtMs=${NOW + 1}).`,
    ],
    [
      "no value for a key any more",
      then((ctx) => ctx.kv.delete("k")),
      wait,
      'event 2: history records KeyValueCleared(key="k"), but the code now decides ExternalSubscribed(name="next").',
    ],
    [
      "another id for a child",
      then(child("a")),
      then(child("b")),
      'event 2: history records SubOrchestrationScheduled(name="Child", instance="a", input="1"), but the code now decides SubOrchestrationScheduled(name="Child", instance="b", input="1").',
    ],
    [
      "an id for a child that had none",
      then(child()),
      then(child("b")),
      'event 2: history records SubOrchestrationScheduled(name="Child", instance="sub::2", input="1"), but the code now decides SubOrchestrationScheduled(name="Child", instance="b", input="1").',
    ],
    [
      "to return, with decisions left over",
      then((ctx) => void ctx.scheduleActivity("A")),
      async () => "done",
      'event 2: history records ActivityScheduled(name="A", input="null"), but the code now decides nothing.',
    ],
    [
      "to throw, with decisions left over",
      then((ctx) => void ctx.scheduleActivity("A")),
      async () => Promise.reject(new Error("oops")),
      'event 2: history records ActivityScheduled(name="A", input="null"), but the code now fails with \'oops\'.',
    ],
    [
      "to throw, where it waited",
      wait,
      then(
        (ctx) => void ctx.waitForEvent("next"),
        async () => Promise.reject(new Error("oops")),
      ),
      "event 3: history records that the code waits, but the code now fails with 'oops'.",
    ],
    [
      "to return, where it waited",
      wait,
      async (ctx) => void ctx.waitForEvent("next"),
      'event 3: history records that the code waits, but the code now gives up event 2, ExternalSubscribed(name="next").',
    ],
    [
      "one thing more at the end",
      wait,
      async (ctx) => ctx.all([ctx.waitForEvent("next"), ctx.scheduleActivity("More")]),
      'event 3: history records that the code waits, but the code now decides ActivityScheduled(name="More", input="null").',
    ],
  ])("is told where, what and what instead: %s", async (_, before, now, message) => {
    const history = await recorded(before);

    expect(await replayed(history, before)).toMatchObject({ status: "waiting" });
    await expect(replayed(history, now)).rejects.toMatchObject({ message: `${INSTANCE}, ${message}` });
  });

  const afterA =
    (rest: Before): Code =>
    async (ctx, input) => {
      await ctx.scheduleActivity("A");
      return rest(ctx, input);
    };

  test.each<[string, Code, Code, string]>([
    [
      "another output",
      afterA(() => 1),
      afterA(() => 2),
      'event 4: history records OrchestrationCompleted(output="1"), but the code now ends with OrchestrationCompleted(output="2").',
    ],
    [
      "an output instead of a failure",
      afterA(() => Promise.reject(new Error("no"))),
      afterA(() => "no"),
      'event 4: history records OrchestrationFailed(details={"category":"application","kind":{"type":"OrchestrationFailed"},"message":"no","retryable":false}), but the code now ends with OrchestrationCompleted(output="\\"no\\"").',
    ],
    [
      "another failure",
      afterA(() => Promise.reject(new Error("no"))),
      afterA(() => Promise.reject(new Error("not at all"))),
      'but the code now ends with OrchestrationFailed(details={"category":"application","kind":{"type":"OrchestrationFailed"},"message":"not at all","retryable":false}).',
    ],
    [
      "another input for the next execution",
      afterA((ctx) => ctx.continueAsNew(1)),
      afterA((ctx) => ctx.continueAsNew(2)),
      'event 4: history records OrchestrationContinuedAsNew(input="1"), but the code now ends with OrchestrationContinuedAsNew(input="2").',
    ],
    [
      "an end instead of a next execution",
      afterA((ctx) => ctx.continueAsNew(1)),
      afterA(() => 1),
      'event 4: history records OrchestrationContinuedAsNew(input="1"), but the code now ends with OrchestrationCompleted(output="1").',
    ],
    [
      "to go on after the end",
      afterA(() => 1),
      afterA((ctx) => ctx.scheduleActivity("B")),
      'event 4: history records OrchestrationCompleted(output="1"), but the code now decides ActivityScheduled(name="B", input="null").',
    ],
    [
      "to wait after the end",
      async (ctx) => void (await ctx.race([ctx.waitForEvent("E"), ctx.scheduleActivity("A")])),
      async (ctx) => void (await ctx.all([ctx.waitForEvent("E"), ctx.scheduleActivity("A")])),
      'event 5: history records ExternalSubscribedCancelled(reason="dropped_future"), but the code now keeps event 2, ExternalSubscribed(name="E").',
    ],
    [
      "a status more before the end",
      afterA(() => 1),
      afterA((ctx) => {
        ctx.setCustomStatus("done");
        return 1;
      }),
      'event 4: history records OrchestrationCompleted(output="1"), but the code now decides CustomStatusUpdated(status="done").',
    ],
  ])("is found at the end: %s", async (_, before, now, message) => {
    const id = (await recorded(before)).find(({ type }) => type === "ActivityScheduled")!.eventId;
    const history = await recorded(before, [[completed(id, null)]]);

    expect(await replayed(history, before)).toMatchObject({ events: history.length });
    await expect(replayed(history, now)).rejects.toThrow(message);
  });

  const loser = (code: Before): Code =>
    then(
      (ctx, input) => code(ctx, input),
      async (ctx) => ctx.waitForEvent("next"),
    );
  const raceA = loser((ctx) => ctx.race([ctx.scheduleActivity("Slow"), ctx.scheduleTimer("1s")]));
  const keepA = loser((ctx) => Promise.race([ctx.scheduleActivity("Slow"), ctx.scheduleTimer("1s")]));

  test.each<[string, readonly ReturnType<typeof cancel>[]]>([
    ["that still runs", []],
    ["that was cancelled afterwards", [cancel("enough")]],
  ])("is found where it no longer drops what it dropped, in an execution %s", async (_, more) => {
    const history = await recorded(raceA, [[fired(3)], more]);

    expect(await replayed(history, raceA)).toMatchObject({ status: more.length === 0 ? "waiting" : "cancelled" });
    await expect(replayed(history, keepA)).rejects.toThrow(
      `${INSTANCE}, event 6: history records ActivityCancelRequested(reason="dropped_future"), but the code now keeps event 2, ActivityScheduled(name="Slow", input="null").`,
    );
  });

  test("is found where it drops what it kept", async () => {
    const history = await recorded(keepA, [[fired(3)]]);

    await expect(replayed(history, raceA)).rejects.toThrow(
      'history records that the code waits, but the code now gives up event 2, ActivityScheduled(name="Slow", input="null").',
    );
  });

  test("is found where it waits for something that is not durable", async () => {
    const history = await recorded(async (ctx) => ctx.waitForEvent("E"));
    const now: Code = async (ctx) => {
      ctx.waitForEvent("E");
      await new Promise(() => {});
    };

    await expect(replayed(history, now)).rejects.toThrow(
      `${INSTANCE}: the orchestration awaits something that is not durable`,
    );
  });

  test.each([
    ["goes on", [[completed(2, 1)]]],
    ["has ended", [[completed(2, 1)], [completed(4, 2)]]],
  ])("is not found where it only asks earlier for the same, in an execution that %s", async (_, batches) => {
    const before: Code = async (ctx) => [await ctx.scheduleActivity("A"), await ctx.scheduleActivity("B")];
    const now: Code = async (ctx) => ctx.all([ctx.scheduleActivity("A"), ctx.scheduleActivity("B")]);
    const history = await recorded(before, batches);

    expect(await replayed(history, now)).toEqual(await replayed(history, before));
    await expect(assertDeterministic(history, codeOf(now))).rejects.toThrow(
      'event 3: history records that the code waits, but the code now decides ActivityScheduled(name="B", input="null").',
    );
  });

  test("is told with the place in parts, too", async () => {
    const history = await recorded(async (ctx) => ctx.scheduleActivity("A"));
    const error = await replayed(history, async (ctx) => ctx.scheduleActivity("B")).catch((caught: unknown) => caught);

    expect(error).toBeInstanceOf(ReplayDivergedError);
    expect(error).toMatchObject({
      code: "DUROXIDE_REPLAY_DIVERGED",
      divergences: [
        {
          instanceId: "test-instance",
          executionId: 1,
          eventId: 2,
          recorded: 'records ActivityScheduled(name="A", input="null")',
          decided: 'decides ActivityScheduled(name="B", input="null")',
          remedy: null,
        },
      ],
    });
  });
});
