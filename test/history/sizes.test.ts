import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ErrorDetails } from "../../src/history/error-details.js";
import { eventBytes } from "../../src/history/event-size.js";
import { cutFailure, cutMessage, failureText } from "../../src/history/failure-size.js";
import { byteLength, mostBytes } from "../../src/history/limits.js";
import { history, started } from "../runtime/events.js";
import { anyEvent, anyText } from "./arbitrary-history.js";

describe("the weight of an event", () => {
  test("is its payload, and 256 bytes for all the rest", () => {
    const [completed, timer] = history(
      { type: "ActivityCompleted", result: "ü".repeat(100) },
      { type: "TimerCreated", fireAtMs: 0 },
    );

    expect(eventBytes(completed!)).toBe(200 + 256);
    expect(eventBytes(timer!)).toBe(256);
  });

  test("of a start counts what continue-as-new brought along", () => {
    const [plain, laden] = history(started(), {
      ...started(),
      carryForwardEvents: [
        ["inbox", '"a"'],
        ["inbox", '"b"'],
      ],
      initialCustomStatus: "half",
    } as ReturnType<typeof started>);

    expect(eventBytes(laden!) - eventBytes(plain!)).toBe(2 * (5 + 3) + 4);
  });

  test("is never more than its bound, which looks at no character", () => {
    fc.assert(fc.property(anyEvent, (event) => eventBytes(event) <= eventBytes(event, mostBytes)));
  });

  test("leaves no long text out", () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        const names = "name" in event ? byteLength(event.name) : 0;
        const rest = names + ("key" in event ? byteLength(event.key) : 0) + FIXED_BYTES;
        const texts = Object.values(event).map((value) => (typeof value === "string" ? byteLength(value) : 0));
        expect(eventBytes(event) + rest).toBeGreaterThanOrEqual(Math.max(...texts));
      }),
    );
  });
});

/** Ids, versions, tags: what is at most that long in a real history, and may be longer in a made-up one. */
const FIXED_BYTES = 4_096;

describe("a failure", () => {
  const long = "x".repeat(20_000);
  const cut = `${"x".repeat(4_096)}… (cut: 20000 bytes exceeds limit (16384 bytes))`;
  const where = { instance: "i", executionId: 1 };
  const poison = { category: "poison", attemptCount: 2, maxAttempts: 1 } as const;

  test.each<[what: string, whole: ErrorDetails, cut: ErrorDetails]>([
    [
      "of the application",
      { category: "application", kind: { type: "Panicked" }, message: long, retryable: false },
      { category: "application", kind: { type: "Panicked" }, message: cut, retryable: false },
    ],
    [
      "of a cancel request",
      { category: "application", kind: { type: "Cancelled", reason: long }, message: "", retryable: false },
      { category: "application", kind: { type: "Cancelled", reason: cut }, message: "", retryable: false },
    ],
    [
      "of the infrastructure",
      { category: "infrastructure", operation: "read", message: long, retryable: true },
      { category: "infrastructure", operation: "read", message: cut, retryable: true },
    ],
    [
      "of the configuration",
      { category: "configuration", kind: "Nondeterminism", resource: "", message: long },
      { category: "configuration", kind: "Nondeterminism", resource: "", message: cut },
    ],
    [
      "of poison",
      { ...poison, messageType: { type: "Orchestration", ...where }, message: long },
      { ...poison, messageType: { type: "Orchestration", ...where }, message: cut },
    ],
    [
      "of a history that cannot be read",
      { ...poison, messageType: { type: "FailedDeserialization", ...where, error: long }, message: long },
      { ...poison, messageType: { type: "FailedDeserialization", ...where, error: cut }, message: cut },
    ],
  ])("%s keeps its beginning, and nothing else of it is changed", (_what, whole, expected) => {
    expect(cutFailure(whole, 1_000)).toEqual(expected);
    expect(cutFailure(expected, 1_000)).toEqual(expected);
    expect(cutFailure(whole, 20_000)).toEqual(whole);
  });

  test("without a message stays without", () => {
    const details: ErrorDetails = { category: "configuration", kind: "LimitExceeded", resource: "kv", message: null };
    expect(cutFailure(details, 0)).toEqual(details);
    expect(failureText(details)).toBe("");
  });

  test("is not cut through a character", () => {
    const message = `x${"😀".repeat(10_000)}`;
    expect(cutMessage(message, 0)).toMatch(/^x(😀){2047}… \(cut: 40001 bytes/u);
    expect(byteLength(cutMessage(message, 0))).toBeLessThan(16_384);
  });

  test("is as it was where it is short, whatever the limit", () => {
    fc.assert(fc.property(anyText, (text) => byteLength(text) > 16_384 || cutMessage(text, 0) === text));
  });
});
