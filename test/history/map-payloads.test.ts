// Which texts are users' own is a list in the source. Here it is the other way round: what may stay clear is listed, and
// whatever else an event or a message holds must have been replaced.

import fc from "fast-check";
import { expect, test } from "vitest";
import { mapEventPayloads, mapWorkItemPayloads } from "../../src/history/map-payloads.js";
import { anyEvent, anyWorkItem } from "./arbitrary-history.js";

/** Fields whose texts stores and operators look at. */
const CLEAR = new Set([
  ...["type", "category", "kind", "operation", "resource"],
  ...["instanceId", "instance", "parentInstance", "name", "version", "duroxideVersion"],
  ...["orchestration", "orchestrationName", "orchestrationVersion", "activityName", "sessionId", "tag", "key"],
]);

const REPLACED = "#";

test.each([
  ["event", fc.tuple(anyEvent, fc.constant(mapEventPayloads))],
  ["work item", fc.tuple(anyWorkItem, fc.constant(mapWorkItemPayloads))],
] as const)("of any %s, every text is replaced but names, ids and kinds", (_kind, anything) => {
  const property = fc.property(anything as fc.Arbitrary<[object, Mapping]>, ([value, map]) => {
    const before = structuredClone(value);
    const mapped = map(value, () => REPLACED);

    expect(value).toEqual(before);
    expect(textsIn(mapped).filter(({ field, text }) => text !== REPLACED && !CLEAR.has(field))).toEqual([]);
    expect(clearTextsIn(mapped)).toEqual(clearTextsIn(value));
  });
  fc.assert(property, { numRuns: 2_000 });
});

test("what is mapped forth and back is what it was, absent fields included", () => {
  const forth = (text: string): string => `<${text}>`;
  const back = (text: string): string => text.slice(1, -1);
  fc.assert(
    fc.property(anyEvent, (event) => {
      expect(mapEventPayloads(mapEventPayloads(event, forth), back)).toStrictEqual(event);
    }),
  );
  fc.assert(
    fc.property(anyWorkItem, (item) => {
      expect(mapWorkItemPayloads(mapWorkItemPayloads(item, forth), back)).toStrictEqual(item);
    }),
  );
});

type Mapping = (value: object, map: (text: string) => string) => object;

interface Found {
  readonly field: string;
  readonly text: string;
}

/** Written by the engine, with reasons of its own. */
const GIVEN_UP = [
  ...["ActivityCancelRequested", "SubOrchestrationCancelRequested"],
  ...["ExternalSubscribedCancelled", "ExternalSubscribedPersistentCancelled"],
];

/** Every text in the value, with the field that it stands in. The first of a carried pair is the name of its queue. */
function textsIn(value: unknown, field = ""): Found[] {
  if (typeof value === "string") return [{ field, text: value }];
  if (typeof value !== "object" || value === null) return [];
  if ("type" in value && GIVEN_UP.includes(String(value.type)) && "reason" in value) {
    const { reason, ...rest } = value;
    return [...textsIn(reason, "kind"), ...textsIn(rest)];
  }
  if (field === "carryForwardEvents" && Array.isArray(value)) {
    return value.flatMap(([name, data]) => [...textsIn(name, "name"), ...textsIn(data, "data")]);
  }
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, key));
}

function clearTextsIn(value: object): Found[] {
  return textsIn(value).filter(({ field }) => CLEAR.has(field));
}
