import { describe, expect, test } from "vitest";
import { z } from "zod";
import { activity, orchestration, type Schema } from "../../src/define.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { RegistrationError } from "../../src/errors.js";
import { Registry, type RegistryContents } from "../../src/runtime/registry.js";
import { compareSemVer, formatSemVer, isWithin, parseSemVer } from "../../src/runtime/semver.js";
import { TestWorld } from "../../src/testing/test-world.js";

/** Handlers that never touch their context need none. */
const noContext = {} as OrchestrationContext;

function versioned(version: string, answer = version) {
  return orchestration({ name: "Order", version }, async () => answer);
}

/** Orchestrations of these names, and activities of the same. */
function named(...names: readonly string[]): Required<Pick<RegistryContents, "orchestrations" | "activities">> {
  return {
    orchestrations: names.map((name) => orchestration(name, async () => name)),
    activities: names.map((name) => activity(name, () => name)),
  };
}

function problemsOf(build: () => Registry): readonly string[] {
  try {
    build();
  } catch (error) {
    if (error instanceof RegistrationError) return error.problems;
    throw error;
  }
  return [];
}

describe("a version", () => {
  test("is three numbers, compared as numbers", () => {
    expect(parseSemVer("1.10.2")).toEqual({ major: 1, minor: 10, patch: 2 });
    expect(compareSemVer(parseSemVer("1.10.0")!, parseSemVer("1.9.9")!)).toBeGreaterThan(0);
    expect(formatSemVer({ major: 0, minor: 1, patch: 30 })).toBe("0.1.30");
  });

  test.each(["1", "1.2", "1.2.3-beta.1", "1.2.3+build", "v1.2.3", "01.2.3", " 1.2.3", "", "unknown"])(
    "is not %j",
    (text) => {
      expect(parseSemVer(text)).toBeNull();
    },
  );

  test("lies within a range whose ends are included", () => {
    const range = { min: parseSemVer("1.0.0")!, max: parseSemVer("2.0.0")! };
    expect(["0.9.9", "1.0.0", "2.0.0", "2.0.1"].map((text) => isWithin(parseSemVer(text)!, range))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });
});

describe("building a registry", () => {
  test("tells all problems at once", () => {
    const contents = {
      orchestrations: [versioned("1.0.0"), versioned("1.0.0"), versioned("1.x"), orchestration("Elsewhere")],
      activities: [
        activity("Charge", () => {}),
        activity("Charge", () => {}),
        activity("Declared"),
        activity("__duroxide_syscall:mine", () => {}),
      ],
      versionPolicies: { Order: "9.9.9", Nobody: "latest" },
    };

    expect(problemsOf(() => Registry.of(contents))).toEqual([
      "duplicate orchestration registration: Order@1.0.0 (register it once, or under another version)",
      "orchestration Order@1.x: the version must be of the form 1.2.3",
      "orchestration Elsewhere@1.0.0 is only declared: register the definition that has the function",
      "duplicate activity registration: Charge (register it once; in tests, list the mock in place of the real one)",
      "activity Declared is only declared: register the definition that has the function",
      "activity name '__duroxide_syscall:mine' uses reserved prefix '__duroxide_syscall:'",
      "version policy for 'Order': version 9.9.9 is not registered",
      "version policy for 'Nobody': no such orchestration is registered",
    ]);
  });

  test("does not depend on the order of the versions", () => {
    const registry = Registry.of({ orchestrations: [versioned("2.0.0"), versioned("1.0.0"), versioned("1.10.0")] });

    expect(registry.orchestrationVersions("Order")).toEqual(["1.0.0", "1.10.0", "2.0.0"]);
  });

  test("gives an orchestration without a version 1.0.0", () => {
    const registry = Registry.of({ orchestrations: [orchestration("Plain", async () => {})] });

    expect(registry.resolveOrchestration("Plain", null)).toMatchObject({ name: "Plain", version: "1.0.0" });
  });
});

describe("a name that the runtime keeps for itself", () => {
  test.each(["__duroxide_syscall:mine", "__duroxide_syscall:new_guid"])("is refused for an activity: %s", (name) => {
    expect(problemsOf(() => Registry.of({ activities: [activity(name, () => {})] }))).toEqual([
      `activity name '${name}' uses reserved prefix '__duroxide_syscall:'`,
    ]);
  });

  test("is not among the names of a registry, though the runtime finds its activity", () => {
    const registry = Registry.of({}).withSystemActivities([activity("__duroxide_syscall:new_guid", () => "guid")]);

    expect(registry.activityNames()).toEqual([]);
    expect(registry.hasActivity("__duroxide_syscall:new_guid")).toBe(true);
  });

  test("needs no registration: time and guids are there where no activity is", async () => {
    await using world = await TestWorld.open();
    const asks = orchestration("Asks", async (ctx) => ({
      now: await ctx.utcNow(),
      guids: [await ctx.newGuid(), await ctx.newGuid()],
    }));
    const { runtime } = await world.start({ orchestrations: [asks] });
    const { now, guids } = await world.run(asks);

    expect(runtime.registry.activityNames()).toEqual([]);
    expect(now).toBe(world.clock.now());
    expect(new Set(guids).size).toBe(2);
  });
});

describe("a registry", () => {
  test("of nothing knows nothing", () => {
    for (const registry of [Registry.of({}), Registry.of({ orchestrations: [], activities: [] })]) {
      expect(registry.orchestrationNames()).toEqual([]);
      expect(registry.orchestrationVersions("Order")).toEqual([]);
      expect(registry.hasOrchestration("Order")).toBe(false);
      expect(registry.resolveOrchestration("Order", null)).toBeNull();
      expect(registry.resolveOrchestration("Order", "1.0.0")).toBeNull();
      expect(registry.activityNames()).toEqual([]);
      expect(registry.hasActivity("Charge")).toBe(false);
      expect(registry.activity("Charge")).toBeNull();
    }
  });

  test("knows what was listed, sorted by name, and nothing else", () => {
    const registry = Registry.of(named("Two", "Three", "One"));

    expect(registry.orchestrationNames()).toEqual(["One", "Three", "Two"]);
    expect(registry.activityNames()).toEqual(["One", "Three", "Two"]);
    expect(["One", "Two", "Three", "Four"].map((name) => registry.hasOrchestration(name))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(["One", "Two", "Three", "Four"].map((name) => registry.hasActivity(name))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  test("knows every version of a name, and none of a name that it does not know", () => {
    const typed = orchestration({ name: "Typed", version: "2.0.0", input: z.number() }, async (_ctx, n) => n * 2);
    const registry = Registry.of({
      orchestrations: [versioned("1.0.0"), versioned("2.0.0"), versioned("3.0.0"), typed],
    });

    expect(registry.orchestrationVersions("Order")).toEqual(["1.0.0", "2.0.0", "3.0.0"]);
    expect(registry.orchestrationVersions("Typed")).toEqual(["2.0.0"]);
    expect(registry.orchestrationVersions("Unknown")).toEqual([]);
  });

  test("has one activity of a name: activities have no versions", () => {
    const charge = activity("Charge", () => "paid");

    expect(Registry.of({ activities: [charge] }).activity("Charge")).toBe(charge);
    expect(() => activity({ name: "Charge", version: "2.0.0" } as { name: string }, () => "paid")).toThrow(
      "activity 'Charge': unknown option 'version'",
    );
  });
});

describe("resolving an orchestration", () => {
  const registry = Registry.of({ orchestrations: [versioned("1.0.0"), versioned("1.5.0"), versioned("2.0.0")] });

  test("finds the version that is asked for, exactly or not at all", () => {
    expect(registry.resolveOrchestration("Order", "1.5.0")?.version).toBe("1.5.0");
    expect(registry.resolveOrchestration("Order", "1.5.1")).toBeNull();
    expect(registry.resolveOrchestration("Order", "latest-ish")).toBeNull();
  });

  test("takes the newest where none is asked for", () => {
    expect(registry.resolveOrchestration("Order", null)?.version).toBe("2.0.0");
  });

  test("follows the policy where none is asked for, and only there", () => {
    const pinned = registry.merge({ versionPolicies: { Order: "1.0.0" } });

    expect(pinned.resolveOrchestration("Order", null)?.version).toBe("1.0.0");
    expect(pinned.resolveOrchestration("Order", "2.0.0")?.version).toBe("2.0.0");
  });

  test("follows the policy of its own name", () => {
    const both = registry.merge({
      orchestrations: ["1.0.0", "2.0.0"].map((version) => orchestration({ name: "Refund", version }, async () => {})),
      versionPolicies: { Order: "1.0.0", Refund: "latest" },
    });

    expect(both.resolveOrchestration("Order", null)?.version).toBe("1.0.0");
    expect(both.resolveOrchestration("Refund", null)?.version).toBe("2.0.0");
  });

  test("never falls back to another version: a policy for one that is missing is refused at once", () => {
    const contents = { orchestrations: [versioned("1.0.0")], versionPolicies: { Order: "2.0.0" } };

    expect(problemsOf(() => Registry.of(contents))).toEqual([
      "version policy for 'Order': version 2.0.0 is not registered",
    ]);
  });

  test("knows nothing of other names, not even those that every object has", () => {
    expect(registry.resolveOrchestration("Unknown", null)).toBeNull();
    expect(registry.resolveOrchestration("constructor", null)).toBeNull();
  });
});

describe("merging registries", () => {
  test("brings both together and leaves the originals as they are", () => {
    const one = Registry.of({ orchestrations: [versioned("1.0.0")], activities: [activity("A", () => {})] });
    const two = Registry.of({ orchestrations: [versioned("2.0.0")], activities: [activity("B", () => {})] });
    const both = one.merge(two);

    expect(both.orchestrationVersions("Order")).toEqual(["1.0.0", "2.0.0"]);
    expect(both.activityNames()).toEqual(["A", "B"]);
    expect(one.activityNames()).toEqual(["A"]);
    expect(both.hasActivity("B")).toBe(true);
    expect(one.hasActivity("B")).toBe(false);
  });

  test("brings all names together", () => {
    const merged = Registry.of(named("One", "Two")).merge(Registry.of(named("Three")));

    expect(merged.orchestrationNames()).toEqual(["One", "Three", "Two"]);
    expect(merged.activityNames()).toEqual(["One", "Three", "Two"]);
  });

  test("can go on, with registries and with lists", () => {
    const merged = Registry.of({})
      .merge(Registry.of(named("One")))
      .merge(named("Two"))
      .merge(named("Three"));

    expect(merged.orchestrationNames()).toEqual(["One", "Three", "Two"]);
    expect(merged.activityNames()).toEqual(["One", "Three", "Two"]);
  });

  test("makes a new registry out of an old one, which stays as it was", () => {
    const base = Registry.of(named("One", "Two"));
    const extended = base.merge(named("Three"));

    expect(extended.orchestrationNames()).toEqual(["One", "Three", "Two"]);
    expect(extended.activityNames()).toEqual(["One", "Three", "Two"]);
    expect(base.orchestrationNames()).toEqual(["One", "Two"]);
    expect(base.hasActivity("Three")).toBe(false);
  });

  test("composes libraries whose names tell where they come from", () => {
    const merged = Registry.of(named("lib1::first", "lib1::second")).merge(Registry.of(named("lib2::first")));
    const names = ["lib1::first", "lib1::second", "lib2::first"];

    expect(merged.orchestrationNames()).toEqual(names);
    expect(merged.activityNames()).toEqual(names);
    expect(merged.hasActivity("lib2::second")).toBe(false);
  });

  test("keeps the policies of both, and what is made of a registry is pinned as it is", () => {
    const pinned = Registry.of({
      orchestrations: [versioned("1.0.0"), versioned("2.0.0")],
      versionPolicies: { Order: "1.0.0" },
    });
    const derived = [pinned.merge({}), Registry.of(named("Other")).merge(pinned), pinned.withSystemActivities([])];

    expect(derived.map((registry) => registry.resolveOrchestration("Order", null)?.version)).toEqual([
      "1.0.0",
      "1.0.0",
      "1.0.0",
    ]);
  });

  test("lets the newer policy count, in the new registry alone", () => {
    const pinned = Registry.of({
      orchestrations: [versioned("1.0.0"), versioned("2.0.0")],
      versionPolicies: { Order: "1.0.0" },
    });
    const freed = pinned.merge({ versionPolicies: { Order: "latest" } });

    expect(freed.resolveOrchestration("Order", null)?.version).toBe("2.0.0");
    expect(pinned.resolveOrchestration("Order", null)?.version).toBe("1.0.0");
  });

  test.each([
    ["a registry", (contents: RegistryContents) => Registry.of(contents)],
    ["a list", (contents: RegistryContents) => contents],
  ])("refuses what stands in both, be the other %s", (_what, other) => {
    const base = Registry.of(named("Own", "Shared"));
    const { activities, orchestrations } = named("Shared", "New");

    expect(problemsOf(() => base.merge(other({ activities })))).toEqual([
      "duplicate activity in merge: Shared (register it once; in tests, list the mock in place of the real one)",
    ]);
    expect(problemsOf(() => base.merge(other({ orchestrations })))).toEqual([
      "duplicate orchestration in merge: Shared@1.0.0 (register it once, or under another version)",
    ]);
  });

  test("tells what stands in both from what the list itself has twice", () => {
    const [shared, twice] = named("Shared", "Twice").activities;

    expect(problemsOf(() => Registry.of(named("Shared")).merge({ activities: [shared!, twice!, twice!] }))).toEqual([
      "duplicate activity in merge: Shared (register it once; in tests, list the mock in place of the real one)",
      "duplicate activity registration: Twice (register it once; in tests, list the mock in place of the real one)",
    ]);
  });
});

describe("a registered orchestration", () => {
  async function call(definition: Parameters<typeof Registry.of>[0]["orchestrations"], input: string): Promise<string> {
    const registry = Registry.of({ orchestrations: definition ?? [] });
    const [name] = registry.orchestrationNames();
    return registry.resolveOrchestration(name!, null)!.handler(noContext, input);
  }

  test("is given its input as a value, and its output is text again", async () => {
    const double = orchestration("Double", async (_ctx, input: { n: number }) => ({ n: input.n * 2 }));

    expect(await call([double], '{"n":21}')).toBe('{"n":42}');
  });

  test("is given text that is no JSON as it is", async () => {
    expect(await call([orchestration("Echo", async (_ctx, text: string) => text)], "plain")).toBe('"plain"');
  });

  test("gets what its schema makes of the input", async () => {
    const input = z.object({ at: z.string().transform((text) => text.length) });
    const measured = orchestration({ name: "Measured", input }, async (_ctx, { at }) => at);

    expect(await call([measured], '{"at":"four"}')).toBe("4");
  });

  test("fails with the path of what does not fit its schema", async () => {
    const input = z.object({ items: z.array(z.object({ price: z.number() })) });
    const priced = orchestration({ name: "Priced", input }, async () => {});

    await expect(call([priced], '{"items":[{"price":"1"}]}')).rejects.toThrow(
      /^The input of orchestration 'Priced' is invalid: items\[0\]\.price: /,
    );
  });

  test("sends its output as it is, once its schema accepts it", async () => {
    const output = z.string().transform((text) => text.length);
    const texts = orchestration({ name: "Texts", output: output as never }, async () => "four");

    expect(await call([texts], "null")).toBe('"four"');
  });

  test("refuses an output that does not fit its schema", async () => {
    const texts = orchestration({ name: "Texts", output: z.string() }, async () => 4 as never);

    await expect(call([texts], "null")).rejects.toThrow("The output of orchestration 'Texts' is invalid");
  });

  test("refuses a schema that would have to be waited for", async () => {
    const validate = async (): Promise<never> => {
      throw new Error("nobody is there to hear this");
    };
    const input: Schema<string> = { "~standard": { version: 1, vendor: "test", validate } };
    const slow = orchestration({ name: "Slow", input }, async () => {});

    await expect(call([slow], '"x"')).rejects.toThrow("validates asynchronously");
  });
});

describe("a registered activity", () => {
  test("is told by whom and as what it is called, and is called once", async () => {
    await using world = await TestWorld.open();
    const calls: unknown[] = [];
    const look = activity(
      "Look",
      ({ instanceId, executionId, orchestrationName, orchestrationVersion, activityName }) => {
        calls.push({ instanceId, executionId, orchestrationName, orchestrationVersion, activityName });
        return "seen";
      },
    );
    const looks = orchestration("Looks", async (ctx) => ctx.scheduleActivity(look));
    await world.start({ registry: Registry.of({ orchestrations: [looks], activities: [look] }) });

    expect(await world.run(looks, { instanceId: "order-1" })).toBe("seen");
    expect(calls).toEqual([
      {
        instanceId: "order-1",
        executionId: 1,
        orchestrationName: "Looks",
        orchestrationVersion: "1.0.0",
        activityName: "Look",
      },
    ]);
  });
});
