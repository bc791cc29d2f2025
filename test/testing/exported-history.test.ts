// Histories as files.

import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DuroxideError } from "../../src/errors.js";
import type { Event, EventPayload } from "../../src/history/event.js";
import { exportHistory, importHistory } from "../../src/testing/exported-history.js";
import { activityDone, historyOf, keySet, scheduled, started } from "../engine/drive.js";
import { randomRun } from "../engine/random-run.js";

const GOLDEN = new URL("../golden-original/", import.meta.url);
const golden = readdirSync(GOLDEN).filter((file) => file !== "work-items.jsonl");
const history = historyOf(started, scheduled("A", '"ü\\n"'), [activityDone("\u2028"), 2], keySet("k", "1"));
const lines = exportHistory(history).trimEnd().split("\n");

describe("an exported history", () => {
  test("is one event a line, in the form in which stores keep them", () => {
    expect(lines.length).toBe(4);
    expect(exportHistory(history).endsWith("\n")).toBe(true);
    expect(JSON.parse(lines[1]!)).toMatchObject({ event_id: 2, type: "ActivityScheduled", input: '"ü\\n"' });
  });

  test("is read as it was", async () => {
    expect(importHistory(exportHistory(history))).toEqual(history);
    for (let seed = 1; seed <= 50; seed += 1) {
      const run = await randomRun(seed);
      expect(importHistory(exportHistory(run.history)), `seed ${seed}`).toEqual(run.history);
    }
  });

  test.each(golden)("is what the original writes, to the letter: %s", (file) => {
    const text = readFileSync(new URL(file, GOLDEN), "utf8");

    expect(exportHistory(importHistory(text))).toBe(text);
  });

  test.each<[string, string]>([
    ["a JSON array", `[${lines.join(",")}]`],
    [
      "a JSON array over many lines",
      JSON.stringify(
        lines.map((line) => JSON.parse(line)),
        null,
        2,
      ),
    ],
    ["lines of another system", lines.join("\r\n")],
    ["lines with empty ones between", `\n${lines.join("\n\n")}\n\n`],
    ["text with a byte order mark", `\uFEFF${lines.join("\n")}`],
  ])("may be %s", (_, text) => {
    expect(importHistory(text)).toEqual(history);
  });
});

describe("what is no history", () => {
  test.each<[string, string, string, string]>([
    ["nothing", "", "DUROXIDE_INVALID_HISTORY", "The history is empty"],
    ["an empty array", "[]", "DUROXIDE_INVALID_HISTORY", "The history is empty"],
    ["a line that is no JSON", `${lines[0]}\n{`, "DUROXIDE_CODEC", "line 2: event: not JSON"],
    [
      "a line that is no event",
      `${lines[0]}\n\n{"event_id":2}`,
      "DUROXIDE_CODEC",
      "line 3: event 2: source_event_id: expected",
    ],
    [
      "an element that is no event",
      `[${lines[0]},7]`,
      "DUROXIDE_CODEC",
      "element 2: event: expected an object, got number",
    ],
    ["an array that does not end", `[${lines[0]}`, "DUROXIDE_CODEC", "history: not JSON"],
    [
      "an element that is nested too deep",
      `[${lines[0]},${"[".repeat(100_000)}${"]".repeat(100_000)}]`,
      "DUROXIDE_CODEC",
      "element 2: ",
    ],
    [
      "an event of a newer version",
      lines[0]!.replace("OrchestrationStarted", "Suspended"),
      "DUROXIDE_CODEC",
      'line 1: event 1: unknown type "Suspended"',
    ],
    [
      "events with a gap",
      [lines[0], lines[3]].join("\n"),
      "DUROXIDE_INVALID_HISTORY",
      "event 4 (KeyValueSet) stands where event 2 is expected",
    ],
  ])("is refused, and the line is named: %s", (_, text, code, message) => {
    expect(() => importHistory(text)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  test("is refused in our words, whatever it is", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `[${json}]`),
          fc.anything(),
        ),
        (text) => {
          try {
            importHistory(text as never);
            return false;
          } catch (error) {
            return error instanceof DuroxideError;
          }
        },
      ),
      { seed: 1 },
    );
  });

  test("is refused on its way out, where the wire cannot carry it", () => {
    const broken = history.map((event): Event => ({ ...event, timestampMs: 0.5 }));

    expect(() => exportHistory(broken)).toThrow(expect.objectContaining({ code: "DUROXIDE_CODEC" }));
    expect(() =>
      exportHistory(historyOf(started, { type: "TimerCreated", fireAtMs: Number.NaN } as EventPayload)),
    ).toThrow("NaN");
  });
});
