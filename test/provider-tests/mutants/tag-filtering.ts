import type { Mutant } from "./mutant.js";

export const TAG_FILTERING: readonly Mutant[] = [
  {
    name: "a worker that asks for tags takes untagged work too",
    category: "tag_filtering",
    caughtBy: "tags_fetches_only_matching",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "return filter.tags.map(toColumn);",
        replace: "return [null, ...filter.tags.map(toColumn)];",
      },
    ],
  },
  {
    name: "a worker without a filter takes everything",
    category: "tag_filtering",
    caughtBy: "default_only_fetches_untagged",
    store: "memory",
    patches: [
      {
        file: "worker-queue.ts",
        find: `{ tagFilter = { kind: "default-only" }, session }`,
        replace: `{ tagFilter = { kind: "any" }, session }`,
      },
    ],
  },
  {
    name: "tags are compared without regard to case",
    category: "tag_filtering",
    caughtBy: "tags_that_look_alike",
    store: "memory",
    patches: [
      {
        file: "worker-queue.ts",
        find: "!letsThrough(tagFilter, tag)",
        replace: "!letsThrough(JSON.parse(JSON.stringify(tagFilter).toLowerCase()), tag?.toLowerCase())",
      },
    ],
  },
  {
    name: "activities that a turn schedules are queued without their tag",
    category: "tag_filtering",
    caughtBy: "tag_preserved_through_ack_orchestration_item",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "enqueueActivity(tx, item, ",
        replace: "enqueueActivity(tx, { ...item, tag: undefined }, ",
      },
    ],
  },
  {
    name: "the tags of a filter are served one after the other",
    category: "tag_filtering",
    caughtBy: "oldest_work_first_whatever_its_tag",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "(oldest === null || candidate.id < oldest.id)",
        replace: "oldest === null",
      },
    ],
  },
  {
    name: "of three tags the one in the middle is passed over",
    category: "tag_filtering",
    caughtBy: "any_filter_fetches_everything",
    store: "sqlite",
    patches: [{ file: "worker-queue.ts", find: "SELECT MIN(q.tag)", replace: "SELECT MAX(q.tag)" }],
  },
];
