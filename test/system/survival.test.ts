// Nothing that an orchestration or an activity does ends the worker.
//
// Each group of cases runs in a process of its own, on the built package: vitest listens to unhandled rejections itself, so
// it cannot tell whether one would have been the end.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { type ProgramEnd, runProgram } from "./run-program.js";

interface Ending {
  readonly status: "Completed" | "Failed";
  readonly output?: unknown;
  readonly error?: string;
  readonly errorLength?: number;
  readonly category?: string;
  readonly kind?: string;
}

interface Report extends Ending {
  readonly name: string;
  /** Whether a control orchestration completed afterwards. */
  readonly isAlive: boolean;
  readonly kept: readonly string[];
}

interface LastReport {
  readonly again: Readonly<Record<string, Ending>>;
  readonly isAlive: boolean;
  readonly outcome: string;
  readonly listeners: readonly number[];
  readonly facts: readonly string[];
}

const completed = (output: unknown): Ending => ({ status: "Completed", output });
const failed = (error: string | RegExp): object => ({
  status: "Failed",
  error: typeof error === "string" ? error : expect.stringMatching(error),
  category: "application",
  kind: "OrchestrationFailed",
});
const NOT_DURABLE =
  /awaits something that is not durable\. .*put I\/O in an activity, use ctx\.scheduleTimer instead of setTimeout/;
/** Found between two turns, it is told by the runtime; the kind of failure depends on what is still in memory by then. */
const failedForAwaiting = { status: "Failed", error: expect.stringMatching(NOT_DURABLE) };

describe.each([
  ["the memory provider", "memory", {}],
  ["the memory provider, without warm instances", "memory", { warmCacheBytes: 0 }],
  ["the SQLite provider", "sqlite", {}],
])("on %s", (_, store, settings) => {
  let end: ProgramEnd;
  let last: LastReport;
  const reports = new Map<string, Report>();

  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "duroxide-survival-"));
    try {
      const place = store === "memory" ? "memory" : join(folder, "survival.db");
      end = await runProgram("survival-program.mjs", [place, JSON.stringify(settings)], { timeoutMs: 120_000 });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const lines = end.stdout.split("\n").filter((line) => line !== "");
    for (const line of lines) {
      const report = JSON.parse(line) as Report | LastReport;
      if ("name" in report) reports.set(report.name, report);
      else last = report;
    }
  }, 130_000);

  /** The case ends like this, alone and among all others, and the worker works on. */
  function expectEnding(name: string, ending: object): void {
    const report = reports.get(name);
    expect(report, `'${name}' was not reached. ${end.stderr}`).toBeDefined();
    expect(report).toMatchObject({ ...ending, isAlive: true });
    expect(last.again[name]).toMatchObject(ending);
  }

  describe("the process", () => {
    test("ends by itself after the shutdown, and has printed nothing", () => {
      expect(end.stderr).toBe("");
      expect(end.code).toBe(0);
      expect(end.lingeredMs).toBeLessThan(5_000); // Locks last for longer.
    });

    test("goes on working to the last, with an activity that never settles at its heels", () => {
      expect(last).toMatchObject({ isAlive: true, outcome: "forced" });
    });

    test("has its listeners back after the shutdown", () => {
      expect(last.listeners).toEqual([0, 0]);
    });

    test("has not had a loop fail, nor a turn given up, nor anything poisoned", () => {
      const troubles = ["loop-failed", "turn-abandoned: store-failed", "orchestration-poisoned", "activity-poisoned"];
      expect(last.facts.filter((fact) => troubles.includes(fact))).toEqual([]);
    });

    test("tells observers of those among them that throw or reject", () => {
      expect(last.facts).toContain("observer-failed");
    });
  });

  describe("what an orchestration throws is the recorded failure", () => {
    test.each([
      ["throw error", "an error"],
      ["throw undefined", "undefined"],
      ["throw null", "null"],
      ["throw string", "a text"],
      ["throw number", "0"],
      ["throw symbol", "Symbol(a symbol)"],
      ["throw function", '() => "a function"'],
      ["throw hostile object", "[object Object]"],
      ["throw hostile proxy", "[object]"],
      ["throw revoked proxy", "[object]"],
      ["throw unreadable error", "[object Error]"],
      ["throw frozen error", "frozen"],
      ["throw cycle", "[object Object]"],
      ["throw error with odd text", "a\0b\ud800c"],
    ])("%s", (name, message) => expectEnding(name, failed(message)));

    test("an error of five million characters, cut to its beginning", () => {
      const rest = "… (cut: 5000000 bytes exceeds limit (3145728 bytes))";
      expectEnding("throw huge error", { ...failed(/^x+$/), errorLength: 4_096 + rest.length });
    });
  });

  describe("wherever an orchestration throws, only its instance fails", () => {
    test.each([
      ["throw without async", "before any promise"],
      ["throw after await", "after an await"],
      ["throw in branch", "a getter"],
      ["throw in branch later", "in a branch"],
      ["throw in awaited then", "a getter"],
      ["throw in getter of result", /result': \$\.amount cannot be encoded: a getter/],
      ["throw in toJSON of result", /result': \$\.order cannot be encoded: a getter/],
    ])("%s", (name, message) => expectEnding(name, failed(message)));

    test("in a reaction that nobody awaits, not even that", () => {
      expectEnding("throw in stray then", completed("went on"));
    });
  });

  describe("a rejection that nobody awaits, or not in time, is no failure of anything", () => {
    test.each([
      ["helper caught late", completed("caught: failed on purpose"), ["failed on purpose"]],
      ["helper never awaited", completed("went on"), ["failed on purpose"]],
      ["native rejection never awaited", completed("went on"), ["stray, at once", "[object]"]],
      ["native combination never awaited", completed("went on"), ["failed on purpose", "failed on purpose"]],
      ["task never awaited", completed("went on"), []],
      ["task caught late", completed("caught: failed on purpose"), []],
    ])("%s", (name, ending, kept) => {
      expectEnding(name, ending);
      const isReplayed = "warmCacheBytes" in settings; // Every replay leaves its own behind.
      const told = reports.get(name)!.kept;
      expect(isReplayed ? [...new Set(told)] : told).toEqual(isReplayed ? [...new Set(kept)] : kept);
    });

    test("a helper awaited late fails its instance then, and not before", () => {
      expectEnding("helper awaited late", failed("failed on purpose"));
    });

    test("an import that fails", () => {
      expectEnding("import never awaited", completed("went on"));
      expect(reports.get("import never awaited")!.kept[0]).toContain("Cannot find module");
    });
  });

  describe("an await of something that is not durable fails the instance and says what to do", () => {
    test.each([
      "await timer",
      "await fetch",
      "await file",
      "await never",
      "await timer after durable",
      "await never beside durable",
    ])("%s", (name) => expectEnding(name, { ...failedForAwaiting, kind: "Nondeterminism" }));

    test.each([
      "await timer in branch",
      "race event with timer, then return",
      "race event with timer, then throw",
      "race event with timer, then go on",
      "ctx.race event with fetch",
    ])("%s, though nothing durable ever wakes it", (name) => expectEnding(name, failedForAwaiting));
  });

  describe("ctx out of its place", () => {
    test.each(["ctx in timer callback", "ctx in async callback"])("fails the instance: %s", (name) => {
      expectEnding(name, failedForAwaiting);
    });

    test.each(["ctx after return", "ctx of an execution that is over", "ctx in helper that outlives"])(
      "does nothing after the end: %s",
      (name) => {
        expectEnding(name, completed("done"));
      },
    );
  });

  describe("an orchestration may return", () => {
    test.each([
      ["return task", "a task"],
      ["return task without async", "a task"],
      ["return thenable", "a thenable"],
      ["return undefined", null],
      ["race of a thenable that throws when dropped", { index: 0, value: 1 }],
    ])("%s", (name, output) => expectEnding(name, completed(output)));
  });

  describe("an orchestration fails, and says where the trouble is, if it returns", () => {
    test.each([
      ["return task inside", /\$\.receipt is a DurableTask, .*await it first/],
      ["return promise inside", /\$\[0\] is a Promise, .*await it first/],
      ["return thenable that rejects", "a thenable"],
      ["return thenable that throws", "a getter"],
      ["return throwing then", "a getter"],
      ["return BigInt", /\$\.amount is a BigInt, .*send it as a string/],
      ["return cycle", /\$\.self refers back to \$/],
      ["return function", /\$ is a function/],
      ["return symbol", /\$ is a symbol/],
      ["return NaN", /\$\[0\] is NaN/],
      ["return revoked proxy", /\$\.inside cannot be encoded/],
      ["return very deep", /nested more than 1000 levels deep/],
    ])("%s", (name, message) => expectEnding(name, failed(message)));

    test("a thenable that never answers", () => {
      expectEnding("return thenable that never answers", failedForAwaiting);
    });
  });

  describe("a loop of recorded answers", () => {
    test("without an end is many turns, which a cancellation ends", () => {
      expectEnding("ask the time for ever", { status: "Failed", error: "canceled: enough", kind: "Cancelled" });
    });

    test("of more answers than a turn holds comes to its end", () => {
      expectEnding("ask for many ids", completed(2_500));
    });
  });

  describe("what an activity throws is its failure", () => {
    test.each([
      ["activity throws undefined", "undefined"],
      ["activity throws string", "a text"],
      ["activity throws at once", "at once"],
      ["activity throws revoked proxy", "[object]"],
      ["activity throws hostile object", "[object Object]"],
    ])("%s", (name, message) => expectEnding(name, failed(message)));
  });

  describe("what an activity returns and JSON cannot carry is its failure", () => {
    test.each([
      ["activity returns BigInt", /^output of activity 'Case\d+': \$\.amount is a BigInt/],
      ["activity returns cycle", /\$\.self refers back to \$/],
      ["activity returns function", /\$ is a function/],
      ["activity returns thenable that throws", "a getter"],
      ["activity returns throwing getter", /\$\.amount cannot be encoded: a getter/],
    ])("%s", (name, message) => expectEnding(name, failed(message)));

    test("undefined is null", () => {
      expectEnding("activity returns undefined", completed(null));
    });
  });

  describe("an activity that misbehaves without failing", () => {
    test("may leave rejections behind, which observers hear of", () => {
      expectEnding("activity leaves rejections behind", completed("caught: stray, later"));
      expect(reports.get("activity leaves rejections behind")!.kept).toEqual(["stray, at once", "stray, later"]);
    });

    test.each([
      "activity rejects after its cancellation",
      "activity never settles",
      "activity throws its cancellation",
    ])("is done without: %s", (name) => expectEnding(name, completed("late")));
  });
});

describe("a rejection that is not ours", () => {
  test.each([
    ["an error", "Error: not ours"],
    ["a text", "not ours, and no error"],
    ["a result that nobody awaits", "a failed instance"],
  ])("ends the process as if there were no runtime: %s", async (scenario, message) => {
    const { code, stderr } = await runProgram("survival-strays.mjs", [scenario]);

    expect(stderr).toContain(message);
    expect(code).toBe(1);
  });

  test("is left to the user's own listener", async () => {
    const end = await runProgram("survival-strays.mjs", ["with a listener of the user's"]);

    expect(end).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(end.stdout)).toEqual({ listener: "not ours", isAlive: true, kept: [] });
  });

  test("is Node's business where Node was told what to do with it", async () => {
    const warned = await runProgram("survival-strays.mjs", ["an error"], { nodeArgs: ["--unhandled-rejections=warn"] });
    const silent = await runProgram("survival-strays.mjs", ["an error"], { nodeArgs: ["--unhandled-rejections=none"] });

    expect(warned.stderr).toContain("UnhandledPromiseRejectionWarning: Error: not ours");
    expect(JSON.parse(warned.stdout)).toMatchObject({ isAlive: true });
    expect(silent).toMatchObject({ code: 0, stderr: "" });
  });

  test("ends the process after the shutdown too, when our listeners are gone", async () => {
    const { code, stdout, stderr } = await runProgram("survival-strays.mjs", ["after shutdown"]);

    expect(JSON.parse(stdout)).toEqual({ listeners: [0, 0] });
    expect(stderr).toContain("Error: not ours");
    expect(code).toBe(1);
  });
});

test("a warning of an activity's own is printed, and harms nobody", async () => {
  const { code, stdout, stderr, lingeredMs } = await runProgram("survival-strays.mjs", ["a warning"]);

  expect(stderr).toContain("Warning: a warning of the activity's own");
  expect(code).toBe(0);
  expect(lingeredMs).toBeLessThan(5_000);
  expect(JSON.parse(stdout)).toEqual({ isAlive: true, kept: [] });
});
