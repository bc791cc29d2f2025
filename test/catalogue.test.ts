// The catalogue of behaviours as a whole: complete, honest, and told in docs/behaviours.md. That its tests run and pass is
// the reporter's business (catalogue-reporter.ts).

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { notShown, readCatalogue } from "./catalogue-reporter.js";

interface Area {
  readonly letter: string;
  readonly name: string;
  /** What stands before `::` in the ids of its behaviours. */
  readonly sources: RegExp;
  readonly behaviours: number;
  /** What these behaviours found wrong with the product, all of it mended. */
  readonly found: readonly string[];
}

const AREAS: readonly Area[] = [
  {
    letter: "A",
    name: "Replay engine",
    sources: /replay_engine(_tests)?(\.rs|\/)/,
    behaviours: 183,
    found: ["a history that had ended, but was damaged, got a second terminal event"],
  },
  { letter: "B", name: "Samples, end to end", sources: /^e2e_samples/, behaviours: 30, found: [] },
  { letter: "C", name: "Cancellation", sources: /^cancellation_tests/, behaviours: 24, found: [] },
  { letter: "D", name: "Activity retry", sources: /^schedule_with_retry/, behaviours: 40, found: [] },
  {
    letter: "E",
    name: "Timers, races, routing, polling",
    sources: /^(timer|races|activity_routing|long_poll)_tests|^dispatcher_queues|^runtime_options/,
    behaviours: 19,
    found: [],
  },
  {
    letter: "F",
    name: "Deterministic system calls",
    sources: /^system_calls/,
    behaviours: 10,
    found: [
      "the 1,001st utcNow or newGuid of one turn waited for ever where no worker serves it",
      "a guid that a worker answered carried quotes",
    ],
  },
  { letter: "G", name: "Key-value store", sources: /^kv_store/, behaviours: 59, found: [] },
  { letter: "H", name: "Continue-as-new", sources: /^continue_as_new/, behaviours: 7, found: [] },
  {
    letter: "I",
    name: "Nondeterminism at run time",
    sources: /^nondeterminism_tests/,
    behaviours: 7,
    found: ["an answer to nothing was dropped with a warning that did not name it, and counted nowhere"],
  },
  {
    letter: "J",
    name: "Versioning and registry",
    sources: /^(versioning|registry)_tests/,
    behaviours: 47,
    found: ["a duplicate between two merged registries was told as one within a registry"],
  },
  { letter: "K", name: "Mailboxes", sources: /^queue_event/, behaviours: 15, found: [] },
  { letter: "L", name: "Custom status", sources: /^custom_status/, behaviours: 13, found: [] },
  { letter: "M", name: "Errors", sources: /^errors_tests/, behaviours: 16, found: [] },
  {
    letter: "N",
    name: "Composition",
    sources: /^(futures|typed_composability|async_block)_tests/,
    behaviours: 23,
    found: [],
  },
  { letter: "O", name: "Sessions", sources: /^session_e2e/, behaviours: 20, found: [] },
  { letter: "P", name: "Poison messages", sources: /^poison_message/, behaviours: 11, found: [] },
  {
    letter: "Q",
    name: "Replay-version filtering",
    sources: /^capability_filtering/,
    behaviours: 17,
    found: ["a runtime did not tell at its start which engine versions it replays"],
  },
  {
    letter: "R",
    name: "Observability",
    sources: /^observability/,
    behaviours: 33,
    found: [
      "an orchestration that failed with its poisoned activity was counted in no class of errors, and one of an " +
        "incompatible version in two",
    ],
  },
  { letter: "S", name: "Status", sources: /^orchestration_status/, behaviours: 7, found: [] },
  {
    letter: "T",
    name: "Recovery, reliability, crash windows",
    sources: /^(recovery|reliability|lock_timeout|unregistered_backoff|concurrency|unit|property)_tests|^worker_reliab/,
    behaviours: 38,
    found: ["the same start message queued twice in memory was dropped without being reported"],
  },
  {
    letter: "U",
    name: "Tags",
    sources: /^tag_serde/,
    behaviours: 17,
    found: ["a tag over the limit failed in other words than the original's"],
  },
  {
    letter: "V",
    name: "Deletion, pruning, management",
    sources: /^(deletion|bulk_deletion|prune)_integration|^management_interface/,
    behaviours: 29,
    found: [],
  },
  {
    letter: "W",
    name: "Scenarios from real deployments",
    sources: /^scenarios\//,
    behaviours: 26,
    found: ["a lock not longer than its renewal buffer was renewed every millisecond"],
  },
];

const catalogue = readCatalogue();
const ids = Object.keys(catalogue);

function areaOf(id: string): readonly Area[] {
  const source = id.slice(0, id.indexOf("::"));
  return AREAS.filter(({ sources }) => sources.test(source));
}

describe("the catalogue of behaviours", () => {
  test("has an entry for every behaviour, and every behaviour one area", () => {
    expect(ids.filter((id) => areaOf(id).length !== 1)).toEqual([]);
    const counted = AREAS.map(({ letter, behaviours }) => [letter, behaviours]);
    expect(AREAS.map((area) => [area.letter, ids.filter((id) => areaOf(id)[0] === area).length])).toEqual(counted);
  });

  test("names tests, or says why there is none", () => {
    for (const [id, shown] of Object.entries(catalogue)) {
      if (typeof shown === "string") expect(shown.length, id).toBeGreaterThan(20);
      else expect(shown.length, id).toBeGreaterThan(0);
    }
    const covered = Object.values(catalogue).filter((shown) => typeof shown !== "string").length;
    expect(covered / ids.length).toBeGreaterThanOrEqual(0.95);
  });

  test("keeps its sources out of the names of the tests", () => {
    const sources = [
      ...new Set(ids.map((id) => id.slice(0, id.indexOf("::")).split("/").at(-1)!.replace(/\.rs$/, ""))),
    ];
    const words = sources.filter((source) => source.includes("_"));
    const folder = fileURLToPath(new URL(".", import.meta.url));
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
      file.endsWith(".test.ts"),
    );
    for (const file of files.filter((name) => name !== "catalogue.test.ts")) {
      const text = readFileSync(new URL(file, import.meta.url), "utf8");
      expect(
        words.filter((word) => text.includes(word)),
        file,
      ).toEqual([]);
      expect(/\w\.rs\b/.test(text), file).toBe(false);
    }
  });

  test("is told in docs/behaviours.md", async () => {
    await expect(page()).toMatchFileSnapshot("../docs/behaviours.md");
  });
});

describe("a title that is promised", () => {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const here = "test/catalogue.test.ts > a title that is promised";
  const promise = (title: string) => ({ "some::behaviour": [title], "another::one": "left out, with a reason" });

  test("is shown where it ran and passed", () => {
    expect(notShown(root, promise(here), new Map([[here, true]]))).toEqual([]);
  });

  test.each([
    ["did not pass", here, new Map([[here, false]])],
    ["did not run though its file did", here, new Map([["test/catalogue.test.ts > another", true]])],
    ["stands in a file that is not there", "test/gone.test.ts > gone", new Map()],
  ])("is missed where it %s", (_why, title, passed) => {
    expect(notShown(root, promise(title), passed)).toEqual([title]);
  });

  test("is nobody's business in a run of other files", () => {
    expect(notShown(root, promise(here), new Map([["test/clock.test.ts > another", true]]))).toEqual([]);
  });
});

function page(): string {
  const rows = AREAS.map((area) => {
    const mine = Object.entries(catalogue).filter(([id]) => areaOf(id)[0] === area);
    const leftOut = mine.filter(([, shown]) => typeof shown === "string").length;
    return { area, covered: mine.length - leftOut, leftOut };
  });
  const sum = (of: (row: (typeof rows)[number]) => number): number => rows.reduce((total, row) => total + of(row), 0);
  const reasons = Object.values(catalogue).filter((shown) => typeof shown === "string");
  return `# Behaviours

The behaviours of the original's own tests, as tests of ours: in virtual time, and wherever a store could spoil them on every
store. \`test/catalogue.json\` says which tests show which behaviour; a test run in which one of them does not run and pass has
failed. This page is written by \`test/catalogue.test.ts\`.

| | area | behaviours | covered | left out | found broken |
| --- | --- | --: | --: | --: | --: |
${rows
  .map(({ area, covered, leftOut }) => {
    return `| ${area.letter} | ${area.name} | ${area.behaviours} | ${covered} | ${leftOut} | ${area.found.length} |\n`;
  })
  .join(
    "",
  )}| | **all** | **${ids.length}** | **${sum(({ covered }) => covered)}** | **${sum(({ leftOut }) => leftOut)}** | **${sum(({ area }) => area.found.length)}** |

## Found broken, and mended

${AREAS.flatMap(({ letter, found }) => found.map((what) => `- ${letter}: ${what}.\n`)).join("")}
## Left out

${reasons.length === 0 ? "None.\n" : [...new Set(reasons)].map((reason) => `- ${reason}\n`).join("")}`;
}
