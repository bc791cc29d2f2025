// Declared in one place, implemented in another: callers and workers share the declaration, and nothing else.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity, orchestration } from "../src/define.js";
import { TestWorld } from "../src/testing/test-world.js";

describe("a definition without a name", () => {
  test.each([
    ["activity", async () => 1],
    ["activity", async function charge() {}],
    ["orchestration", async () => 1],
  ])("is refused, and the message shows where the name goes: %s", (kind, run) => {
    const define = kind === "activity" ? activity : orchestration;
    expect(() => define(run as never)).toThrow(`${kind}: give a name first: ${kind}("C`);
  });
});

describe("an implementation of a declaration", () => {
  const count = activity({ name: "Count", input: z.array(z.string()), output: z.number() });
  const total = orchestration<string[], number>({ name: "Total", version: "2.1.0" });

  test("is what its declaration says, and runs", async () => {
    const counting = activity(count, (_ctx, words) => words.length);
    const totalling = orchestration(total, async (ctx, words) => ctx.scheduleActivity(count, words));
    expect(counting).toMatchObject({ name: "Count", input: count.input, output: count.output, isDeclaration: false });
    expect(totalling).toMatchObject({ name: "Total", version: "2.1.0", isDeclaration: false });

    await using world = await TestWorld.open();
    await world.start({ orchestrations: [totalling], activities: [counting] });
    expect(await world.run(total, { input: ["a", "b"] })).toBe(2);
  });

  test("is refused where the declaration is of another kind", () => {
    // @ts-expect-error: an orchestration is no declaration of an activity.
    expect(() => activity(total, () => 1)).toThrow("activity 'Total': unknown option 'kind'");
  });
});
