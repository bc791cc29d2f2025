import { describe, expect, test } from "vitest";
import { InvalidOptionsError } from "../../src/errors.js";
import { ENGINE_VERSION } from "../../src/history/event.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { DEFAULT_RUNTIME_OPTIONS, resolveRuntimeOptions } from "../../src/runtime/options.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { formatSemVer } from "../../src/runtime/semver.js";
import { unregisteredDelayMs } from "../../src/runtime/unregistered-backoff.js";

describe("runtime options", () => {
  test("have the documented defaults", () => {
    expect(resolveRuntimeOptions({})).toEqual(DEFAULT_RUNTIME_OPTIONS);
    expect(DEFAULT_RUNTIME_OPTIONS).toMatchObject({
      orchestrationConcurrency: 16,
      workerConcurrency: 32,
      minPollIntervalMs: 100,
      longPollTimeoutMs: 30_000,
      orchestratorLockTimeoutMs: 5_000,
      orchestratorLockRenewalBufferMs: 2_000,
      workerLockTimeoutMs: 30_000,
      workerLockRenewalBufferMs: 5_000,
      maxAttempts: 10,
      unregisteredBackoff: { baseMs: 1_000, maxMs: 60_000 },
      activityCancellationGraceMs: 10_000,
      sessionLockTimeoutMs: 30_000,
      sessionLockRenewalBufferMs: 5_000,
      sessionIdleTimeoutMs: 300_000,
      sessionCleanupIntervalMs: 300_000,
      maxSessionsPerRuntime: 10,
      workerNodeId: null,
      tagFilter: { kind: "default-only" },
      warmCacheBytes: 67_108_864,
      shutdownGraceMs: 5_000,
    });
    expect(formatSemVer(DEFAULT_RUNTIME_OPTIONS.supportedReplayVersions.max)).toBe(ENGINE_VERSION);
  });

  test("keep what is given, fill in the rest, and take undefined for not given", () => {
    const resolved = resolveRuntimeOptions({
      maxAttempts: 3,
      workerConcurrency: undefined,
      unregisteredBackoff: { baseMs: 10 },
      limits: { maxKvKeys: 2 },
      supportedReplayVersions: { min: "0.1.0" },
    });

    expect(resolved.maxAttempts).toBe(3);
    expect(resolved.workerConcurrency).toBe(32);
    expect(resolved.unregisteredBackoff).toEqual({ baseMs: 10, maxMs: 60_000 });
    expect(resolved.limits).toMatchObject({ maxKvKeys: 2, maxKvValueBytes: 65_536 });
    expect(resolved.supportedReplayVersions.min).toEqual({ major: 0, minor: 1, patch: 0 });
  });

  test.each([
    ["a misspelled name", { workerConcurency: 1 }, "Did you mean 'workerConcurrency'?"],
    ["a misspelled name inside", { unregisteredBackoff: { bseMs: 1 } }, "Did you mean 'baseMs'?"],
    ["a misspelled limit", { limits: { maxKvKey: 1 } }, "Did you mean 'maxKvKeys'?"],
    ["a number out of range", { maxAttempts: 0 }, "'maxAttempts' must be an integer from 1"],
    ["a fraction", { orchestratorLockTimeoutMs: 1.5 }, "must be an integer"],
    ["a version that is none", { supportedReplayVersions: { max: "1.x" } }, "'max' must be a version"],
    [
      "a range above the engine's own version",
      { supportedReplayVersions: { max: "99.0.0" } },
      "above this engine's own",
    ],
    ["an empty range", { supportedReplayVersions: { min: "0.1.2", max: "0.1.1" } }, "is empty"],
    ["a session that is idle while in use", { sessionIdleTimeoutMs: 25_000 }, "must exceed"],
    ["an unknown tag filter", { tagFilter: { kind: "some" } }, "must have the kind"],
    ["a tag filter without tags", { tagFilter: { kind: "tags", tags: [] } }, "1 to 5 tags"],
    ["too many tags", { tagFilter: { kind: "default-and", tags: [..."abcdef"] } }, "1 to 5 tags"],
    ["a tag that is too long", { tagFilter: { kind: "tags", tags: ["ü".repeat(129)] } }, "1 to 256 bytes"],
    ["an observer that is none", { observers: ["log"] }, "must be an array of functions"],
    ["an empty node id", { workerNodeId: "" }, "must not be empty"],
  ])("refuse %s", (_what, given, message) => {
    expect(() => resolveRuntimeOptions(given as object)).toThrow(InvalidOptionsError);
    expect(() => resolveRuntimeOptions(given as object)).toThrow(message);
  });

  test("of tags are accepted up to the limits", () => {
    const tags = ["ü".repeat(128), "b", "c", "d", "e"];

    expect(resolveRuntimeOptions({ tagFilter: { kind: "tags", tags } }).tagFilter).toEqual({ kind: "tags", tags });
  });

  test("are checked before a runtime starts", async () => {
    await using provider = new MemoryProvider();
    const start = Runtime.start({ provider, orchestratons: [] } as never);

    await expect(start).rejects.toThrow("Did you mean 'orchestrations'?");
    await expect(Runtime.start({} as never)).rejects.toThrow("'provider' is missing");
  });

  test("belong to start: a constructed runtime says so", () => {
    const Constructor = Runtime as unknown as new (start: object) => Runtime;
    expect(() => new Constructor({ orchestrations: [] })).toThrow("Use await Runtime.start(");
  });
});

describe("the backoff for work that nobody here can do", () => {
  test("doubles up to its maximum", () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => unregisteredDelayMs({ baseMs: 1_000, maxMs: 60_000 }, n));

    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  });

  test("grows at most sixty-four-fold", () => {
    expect(unregisteredDelayMs({ baseMs: 1, maxMs: 1_000_000 }, 100)).toBe(64);
  });
});
