// Versions, filters and limits of every kind, as operators may ask for them: all stores answer alike, and as a model says.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { orchestration } from "../../src/define.js";
import type { InstanceFilter, PruneOptions } from "../../src/provider/admin.js";
import { Registry } from "../../src/runtime/registry.js";
import { compareSemVer, formatSemVer, parseSemVer } from "../../src/runtime/semver.js";
import type { TestWorld } from "../../src/testing/test-world.js";
import { onEveryStore } from "../behaviours/stores.js";
import { anyText } from "../history/arbitrary-history.js";
import { tries } from "./budget.js";
import { verdictOf } from "./junk.js";

const anyPart = fc.oneof(fc.nat(12), fc.integer({ min: 0, max: 999_999_999_999_999 }));
const anyVersion = fc.tuple(anyPart, anyPart, anyPart).map((parts) => parts.join("."));
const almostVersion = fc.oneof(
  anyText,
  anyVersion.map((text) => `v${text}`),
  anyVersion.map((text) => `${text}-beta`),
  anyVersion.map((text) => `${text}+build`),
  anyVersion.map((text) => `${text}\n`),
  anyVersion.map((text) => `0${text}`),
  anyVersion.map((text) => text.replace(".", "")),
  fc.constantFrom(
    "1",
    "1.2",
    "1.2.3.4",
    "1..3",
    "٣.٢.١",
    "1.2.x",
    "1e3.0.0",
    "-1.0.0",
    "1.0.1000000000000000",
    " 1.0.0",
    "",
  ),
);

describe("a version", () => {
  test("is three numbers, and reads back as it was written", () => {
    fc.assert(
      fc.property(anyVersion, (text) => {
        expect(formatSemVer(parseSemVer(text)!)).toBe(text);
      }),
      tries(300),
    );
  });

  test("is nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(almostVersion, async (text) => {
        expect(parseSemVer(text)).toBeNull();
        const register = () =>
          Registry.of({ orchestrations: [orchestration({ name: "X", version: text }, async () => {})] });
        expect(await verdictOf(register)).toBe("DUROXIDE_REGISTRATION");
      }),
      tries(300),
    );
  });

  test("is ordered by its numbers, the first one first", () => {
    const numbers = (text: string): bigint =>
      text.split(".").reduce((all, part) => all * 10n ** 15n + BigInt(part), 0n);
    fc.assert(
      fc.property(anyVersion, anyVersion, (a, b) => {
        const expected = numbers(a) < numbers(b) ? -1 : numbers(a) > numbers(b) ? 1 : 0;
        expect(Math.sign(compareSemVer(parseSemVer(a)!, parseSemVer(b)!))).toBe(expected);
      }),
      tries(300),
    );
  });

  test("is chosen exactly, or the highest where none is named", () => {
    fc.assert(
      fc.property(fc.uniqueArray(anyVersion, { minLength: 1, maxLength: 6 }), (versions) => {
        const orchestrations = versions.map((version) => orchestration({ name: "X", version }, async () => {}));
        const registry = Registry.of({ orchestrations });
        const highest = versions.toSorted((a, b) => compareSemVer(parseSemVer(a)!, parseSemVer(b)!)).at(-1);
        expect(registry.resolveOrchestration("X", null)?.version).toBe(highest);
        for (const version of versions) expect(registry.resolveOrchestration("X", version)?.version).toBe(version);
      }),
      tries(200),
    );
  });
});

/** Ids that a pattern, a quotation or another order would mix up. */
const IDS = ["a", "A", "a%", "a_", "a'b", 'a"b', "a\\", "ä", "a\u0308", "constructor", "__proto__", "z", "\u{1f600}"];

const anyCount = fc.constantFrom(0, 1, 2, 5, 1_000, Number.MAX_SAFE_INTEGER);

onEveryStore((store) => {
  /** Instances that ended one after the other, a minute apart; every second one has had three executions. */
  async function populated(): Promise<{ world: TestWorld; endedAtMs: ReadonlyMap<string, number> }> {
    const world = await store.world();
    const rounds = orchestration("Rounds", async (ctx, left: number): Promise<unknown> => {
      return left === 0 ? "over" : ctx.continueAsNew(left - 1);
    });
    await world.start({ orchestrations: [rounds] });
    const endedAtMs = new Map<string, number>();
    for (const [place, instanceId] of IDS.entries()) {
      await world.client.start(rounds, { instanceId, input: place % 2 === 0 ? 0 : 2 });
      await world.ending(instanceId);
      endedAtMs.set(instanceId, world.clock.now());
      await world.advance("1m");
    }
    return { world, endedAtMs };
  }

  const anyFilter: fc.Arbitrary<InstanceFilter & { readonly minutes?: number }> = fc.record(
    {
      instanceIds: fc.array(fc.oneof(fc.constantFrom(...IDS), fc.constantFrom("nobody", "%", "_", "' OR 1=1 --")), {
        maxLength: 6,
      }),
      minutes: fc.oneof(fc.integer({ min: -1, max: IDS.length + 1 }), fc.constantFrom(1e9)),
      limit: anyCount,
    },
    { requiredKeys: [] },
  );

  /** As the documentation has it: all conditions hold, oldest first, no more than the limit. */
  function chosen(filter: InstanceFilter, endedAtMs: ReadonlyMap<string, number>): string[] {
    const { instanceIds, completedBeforeMs = Number.POSITIVE_INFINITY, limit = 1_000 } = filter;
    const isNamed = (id: string) => instanceIds === undefined || instanceIds.includes(id);
    return IDS.filter((id) => isNamed(id) && endedAtMs.get(id)! < completedBeforeMs).slice(0, limit);
  }

  function inTime(
    { minutes, ...filter }: InstanceFilter & { readonly minutes?: number },
    firstMs: number,
  ): InstanceFilter {
    if (minutes === undefined) return filter;
    return { ...filter, completedBeforeMs: Math.max(0, firstMs + minutes * 60_000) };
  }

  describe("a bulk operation", () => {
    test("deletes what its filter says, and nothing else", async () => {
      await fc.assert(
        fc.asyncProperty(anyFilter, async (choice) => {
          const { world, endedAtMs } = await populated();
          await using _ = world;
          const filter = inTime(choice, endedAtMs.get(IDS[0]!)!);
          const gone = chosen(filter, endedAtMs);

          const { instancesDeleted } = await world.client.deleteInstanceBulk(filter);
          expect(instancesDeleted).toBe(gone.length);
          const left = IDS.filter((id) => !gone.includes(id));
          expect([...(await world.client.listAllInstances())].sort()).toEqual(left.sort());
        }),
        tries(8),
      );
    });

    test("prunes what its filter and its options say, and nothing else", async () => {
      const anyPruning: fc.Arbitrary<PruneOptions> = fc.record({ keepLast: anyCount }, { requiredKeys: [] });
      await fc.assert(
        fc.asyncProperty(anyFilter, anyPruning, async ({ minutes: _minutes, ...filter }, pruning) => {
          const { world, endedAtMs } = await populated();
          await using _ = world;
          const kept = Math.max(1, pruning.keepLast ?? 1);
          const long = IDS.filter((_id, place) => place % 2 === 1 && kept < 3);
          const isNamed = (id: string) => chosen({ ...filter, limit: 1_000 }, endedAtMs).includes(id);
          const pruned = long.filter(isNamed).slice(0, filter.limit ?? 1_000);

          await world.client.pruneExecutionsBulk(filter, pruning);
          for (const [place, id] of IDS.entries()) {
            const all = place % 2 === 0 ? [1] : [1, 2, 3];
            expect(await world.client.listExecutions(id), id).toEqual(pruned.includes(id) ? all.slice(-kept) : all);
          }
        }),
        tries(8),
      );
    });
  });
});
