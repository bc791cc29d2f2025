// Options, registrations, durations and policies that cannot be: refused before anything starts, naming what is wrong and,
// where it is a misspelling, what was meant.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, event, orchestration } from "../../src/define.js";
import type { OrchestrationContext, RetryPolicy } from "../../src/engine/orchestration-context.js";
import type { ErrorCode } from "../../src/errors.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { Registry } from "../../src/runtime/registry.js";
import { Runtime } from "../../src/runtime/runtime.js";
import { expectRefused, STORES, World } from "./bad-input-world.js";

/** As a caller without types may pass it. */
const given = (value: unknown): never => value as never;

type Refusals = readonly [what: string, given: unknown, message: string | RegExp][];

const checkout = orchestration("Checkout", async () => 1);
const charge = activity("Charge", async () => 1);

const NO_PROVIDER = "must be a provider, such as `new MemoryProvider()` or `await SqliteProvider.open(file)`.";
const BAD_PROVIDERS: Refusals = [
  ["nothing", undefined, NO_PROVIDER],
  ["null", null, NO_PROVIDER],
  ["a text", "app.db", NO_PROVIDER],
  ["some object", {}, NO_PROVIDER],
  ["the class instead of an instance", MemoryProvider, NO_PROVIDER],
  ["a promise", Promise.resolve(1), "is a promise: await it first, as in `await SqliteProvider.open(file)`."],
];

describe("Runtime.start", () => {
  test.each(BAD_PROVIDERS)("refuses %s for a provider", async (_, provider, message) => {
    await expectRefused(() => Runtime.start({ provider: given(provider) }), "DUROXIDE_INVALID_OPTIONS", message);
    await expectRefused(
      () => Runtime.start({ provider: given(provider) }),
      "DUROXIDE_INVALID_OPTIONS",
      /^Runtime\.start: option 'provider' /,
    );
  });

  test("refuses a store that is closed", async () => {
    const provider = await SqliteProvider.open(":memory:");
    await provider[Symbol.asyncDispose]();
    const message = /closed.* Start the runtime on an open provider\./;
    await expectRefused(() => Runtime.start({ provider }), "DUROXIDE_INVALID_OPTIONS", message);
  });

  test("asks for a provider where there are no options at all", async () => {
    const missing = "Runtime.start: option 'provider' is missing";
    await expectRefused(() => Runtime.start(given(undefined)), "DUROXIDE_INVALID_OPTIONS", missing);
    await expectRefused(() => Runtime.start(given({})), "DUROXIDE_INVALID_OPTIONS", missing);
  });

  test.each<Refusals[number]>([
    ["a misspelling", { orchestration: [] }, "unknown option 'orchestration'. Did you mean 'orchestrations'?"],
    ["a misspelling", { workerConcurency: 1 }, "unknown option 'workerConcurency'. Did you mean 'workerConcurrency'?"],
    ["a stranger", { zzzzzz: 1 }, /unknown option 'zzzzzz'\. The options are: .*orchestrations, .*workerConcurrency/],
    ["a list that is none", { orchestrations: checkout }, "option 'orchestrations' must be an array of definitions."],
    ["a registry that is none", { registry: {} }, "option 'registry' must be made by Registry.of."],
    [
      "a negative number",
      { workerConcurrency: -1 },
      "option 'workerConcurrency' must be an integer from 0 to 10000, not -1.",
    ],
    ["NaN", { maxAttempts: Number.NaN }, "option 'maxAttempts' must be an integer from 1 to 1000000, not NaN."],
    ["a text for a number", { longPollTimeoutMs: "5s" }, "option 'longPollTimeoutMs' must be an integer"],
    ["a clock that is none", { clock: {} }, "option 'clock' must be a clock with now() and setTimer(), not an object."],
    ["an observer that is none", { observers: ["log"] }, "option 'observers' must be an array of functions."],
    ["an unknown tag filter", { tagFilter: { kind: "gpu" } }, "option 'tagFilter' must have the kind 'default-only', "],
    ["a tag filter that is a text", { tagFilter: "gpu" }, "option 'tagFilter' must have the kind 'default-only', "],
    [
      "a tag filter without tags",
      { tagFilter: { kind: "tags", tags: [] } },
      "option 'tagFilter' must list 1 to 5 tags.",
    ],
    [
      "an empty tag",
      { tagFilter: { kind: "tags", tags: [""] } },
      "option 'tagFilter' must list tags of 1 to 256 bytes.",
    ],
    ["a nested misspelling", { limits: { maxKvKey: 1 } }, "unknown option 'maxKvKey'. Did you mean 'maxKvKeys'?"],
  ])("refuses %s: %o", async (_, options, message) => {
    await using provider = new MemoryProvider();
    const start = () => Runtime.start({ provider, ...(options as object) });
    await expectRefused(start, "DUROXIDE_INVALID_OPTIONS", message);
    await expectRefused(start, "DUROXIDE_INVALID_OPTIONS", /^Runtime\.start/);
  });

  test("tells all problems of what is registered at once", async () => {
    await using provider = new MemoryProvider();
    const start = Runtime.start({
      provider,
      orchestrations: [
        checkout,
        checkout,
        orchestration({ name: "Odd", version: "1.x" }, async () => 1),
        orchestration("Declared"),
        given(undefined),
        given(charge),
      ],
      activities: [
        charge,
        charge,
        activity("__duroxide_syscall:mine", async () => 1),
        activity("Declared"),
        given(checkout),
      ],
      versionPolicies: { Checkout: "9.0.0", Nobody: "latest" },
    });

    await expect(start).rejects.toMatchObject({
      name: "RegistrationError",
      code: "DUROXIDE_REGISTRATION",
      problems: [
        "duplicate orchestration registration: Checkout@1.0.0 (register it once, or under another version)",
        "orchestration Odd@1.x: the version must be of the form 1.2.3",
        "orchestration Declared@1.0.0 is only declared: register the definition that has the function",
        "orchestrations[4] is undefined: list what orchestration(…) returns",
        "orchestrations[5] is the activity 'Charge': list what orchestration(…) returns",
        "duplicate activity registration: Charge (register it once; in tests, list the mock in place of the real one)",
        "activity name '__duroxide_syscall:mine' uses reserved prefix '__duroxide_syscall:'",
        "activity Declared is only declared: register the definition that has the function",
        "activities[4] is the orchestration 'Checkout': list what activity(…) returns",
        "version policy for 'Checkout': version 9.0.0 is not registered",
        "version policy for 'Nobody': no such orchestration is registered",
      ],
    });
  });

  test("leaves no listener behind where it refuses", async () => {
    await using provider = new MemoryProvider();
    const count = process.listenerCount("unhandledRejection");
    await expectRefused(() => Runtime.start({ provider, maxAttempts: 0 }), "DUROXIDE_INVALID_OPTIONS", "maxAttempts");
    await expectRefused(
      () => Runtime.start({ provider, activities: [charge, charge] }),
      "DUROXIDE_REGISTRATION",
      "duplicate activity registration: Charge",
    );
    expect(process.listenerCount("unhandledRejection")).toBe(count);
  });
});

describe("a running runtime", () => {
  test("refuses bad options of shutdown and bad observers, and goes on", async () => {
    const world = await World.open(STORES[0]![1]);
    const runtime = await Runtime.start({ provider: world.provider, clock: world.clock });
    const refused = async (options: unknown, message: string) =>
      expectRefused(() => runtime.shutdown(given(options)), "DUROXIDE_INVALID_OPTIONS", `runtime.shutdown: ${message}`);
    await refused({ grace: 1 }, "unknown option 'grace'. Did you mean 'graceMs'?");
    await refused({ graceMs: -1 }, "option 'graceMs' must be an integer from 0 to 86400000, not -1.");
    await refused({ graceMs: "5s" }, "option 'graceMs' must be an integer from 0 to 86400000, not \"5s\".");
    await refused(null, "the options must be an object, not null.");
    await expectRefused(
      () => runtime.observe(given("log")),
      "DUROXIDE_INVALID_INPUT",
      "runtime.observe: a function is expected.",
    );

    await world.run();
    await world.expectAlive();
    expect(await world.settled(runtime.shutdown())).toBe("drained");
  });
});

describe("Registry.of", () => {
  test.each<Refusals[number]>([
    [
      "a misspelling",
      { orchestration: [] },
      "Registry.of: unknown option 'orchestration'. Did you mean 'orchestrations'?",
    ],
    [
      "a list that is none",
      { activities: charge },
      "Registry.of: option 'activities' must be an array of definitions.",
    ],
    ["no object", 7, "Registry.of: the options must be an object, not 7."],
  ])("refuses %s", async (_, contents, message) => {
    await expectRefused(() => Registry.of(given(contents)), "DUROXIDE_INVALID_OPTIONS", message);
  });
});

describe("a definition", () => {
  const run = async () => 1;

  test.each<[string, () => unknown, ErrorCode, string]>([
    [
      "with a misspelled option",
      () => orchestration(given({ name: "Checkout", vresion: "1.0.0" }), run),
      "DUROXIDE_INVALID_OPTIONS",
      "orchestration 'Checkout': unknown option 'vresion'. Did you mean 'version'?",
    ],
    [
      "with a version that is no text",
      () => orchestration(given({ name: "Checkout", version: 2 }), run),
      "DUROXIDE_INVALID_OPTIONS",
      "orchestration 'Checkout': option 'version' must be a string, not 2.",
    ],
    [
      "with a schema that is none",
      () => activity(given({ name: "Charge", input: { type: "object" } }), run),
      "DUROXIDE_INVALID_OPTIONS",
      "activity 'Charge': option 'input' must be a Standard Schema, such as one of zod, valibot or arktype.",
    ],
    [
      "of an event with a misspelled option",
      () => event("approval", given({ shema: {} })),
      "DUROXIDE_INVALID_OPTIONS",
      "event 'approval': unknown option 'shema'. Did you mean 'schema'?",
    ],
    [
      "with an implementation that is no function",
      () => activity("Charge", given("charge")),
      "DUROXIDE_INVALID_INPUT",
      "activity 'Charge': its implementation must be a function, not charge.",
    ],
  ])("%s is refused", async (_, define, code, message) => {
    await expectRefused(define, code, message);
  });
});

describe("new Client", () => {
  test.each(BAD_PROVIDERS)("refuses %s for a provider", async (_, provider, message) => {
    await expectRefused(() => new Client(given(provider)), "DUROXIDE_INVALID_OPTIONS", message);
    await expectRefused(() => new Client(given(provider)), "DUROXIDE_INVALID_OPTIONS", /^new Client: the provider /);
  });

  test.each<Refusals[number]>([
    ["a misspelling", { pollInterval: 5 }, "unknown option 'pollInterval'. Did you mean 'pollIntervalMs'?"],
    [
      "a number out of range",
      { pollIntervalMs: 0 },
      "option 'pollIntervalMs' must be an integer from 1 to 60000, not 0.",
    ],
    [
      "a clock that is none",
      { clock: Date },
      "option 'clock' must be a clock with now() and setTimer(), not a function.",
    ],
    ["null", null, "the options must be an object, not null."],
  ])("refuses %s", async (_, options, message) => {
    await using provider = new MemoryProvider();
    const create = () => new Client(provider, given(options));
    await expectRefused(create, "DUROXIDE_INVALID_OPTIONS", `new Client: ${message}`);
  });
});

describe.each(STORES)("a client on the %s store", (_, open) => {
  test.each<[string, unknown, ErrorCode, string]>([
    [
      "a misspelling",
      { instnceId: "i" },
      "DUROXIDE_INVALID_OPTIONS",
      "unknown option 'instnceId'. Did you mean 'instanceId'?",
    ],
    [
      "an ifExists of its own",
      { ifExists: "replace" },
      "DUROXIDE_INVALID_OPTIONS",
      'option \'ifExists\' must be "use" or "fail", not "replace".',
    ],
    [
      "a version that is no text",
      { version: 2 },
      "DUROXIDE_INVALID_OPTIONS",
      "option 'version' must be a string, not 2.",
    ],
    [
      "a version that is none",
      { version: "2.x" },
      "DUROXIDE_INVALID_INPUT",
      'version of orchestration \'Control\' "2.x" is no version; pass three numbers such as "1.2.3".',
    ],
    [
      "a delay in words",
      { delay: "5 minutes" },
      "DUROXIDE_INVALID_INPUT",
      'delay: "5 minutes" is no duration. Give milliseconds',
    ],
    ["a delay into the past", { delay: -1 }, "DUROXIDE_INVALID_INPUT", "delay: -1 is no duration. Give milliseconds"],
    ["a delay of NaN", { delay: Number.NaN }, "DUROXIDE_INVALID_INPUT", "delay: NaN is no duration. Give milliseconds"],
    [
      "an endless delay",
      { delay: Number.POSITIVE_INFINITY },
      "DUROXIDE_INVALID_INPUT",
      "delay: Infinity is no duration.",
    ],
    ["a delay of no kind", { delay: Object.create(null) }, "DUROXIDE_INVALID_INPUT", "delay: {} is no duration."],
    ["no object", "order-1", "DUROXIDE_INVALID_OPTIONS", 'the options must be an object, not "order-1".'],
  ])("refuses to start with %s, and nothing is written", async (_what, options, code, message) => {
    const world = await World.open(open);
    await expectRefused(() => world.client.start("Control", given(options)), code, message);
    await world.expectNothingWritten();
  });

  test.each<Refusals[number]>([
    ["a misspelling", { timeout: 5 }, "unknown option 'timeout'. Did you mean 'timeoutMs'?"],
    ["a negative timeout", { timeoutMs: -1 }, "must be a number of milliseconds, 0 or more, not -1."],
    ["a timeout of NaN", { timeoutMs: Number.NaN }, "must be a number of milliseconds, 0 or more, not NaN."],
    [
      "a timeout in words",
      { timeoutMs: "5s" },
      "option 'timeoutMs' must be a number of milliseconds, 0 or more, not \"5s\".",
    ],
    [
      "the controller instead of its signal",
      { signal: new AbortController() },
      "option 'signal' must be an AbortSignal, such as the signal of an AbortController, not an object.",
    ],
    ["null", null, "the options must be an object, not null."],
  ])("refuses to wait with %s", async (_what, options, message) => {
    const { client } = await World.open(open);
    const handle = client.getHandle("i");
    for (const wait of [
      () => client.waitForOrchestration("i", given(options)),
      () => client.waitForStatusChange("i", given(options)),
      () => client.waitForKvValue("i", "key", given(options)),
      () => handle.result(given(options)),
    ]) {
      await expectRefused(wait, "DUROXIDE_INVALID_OPTIONS", message);
    }
  });

  test("waits with one signal for any number of instances, and warns of nothing", async () => {
    const world = await World.open(open);
    const warnings: string[] = [];
    const note = ({ name }: Error): unknown => warnings.push(name);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const controller = new AbortController();
    const { signal } = controller;
    const waits = Array.from({ length: 30 }, (_, n) => world.client.waitForOrchestration(`i-${n}`, { signal }));
    const ends = Promise.allSettled(waits);
    await world.clock.advance(0);
    controller.abort();

    const codes = (await ends).map((end) =>
      end.status === "rejected" ? (end.reason as { code: string }).code : "none",
    );
    expect(new Set(codes)).toEqual(new Set(["DUROXIDE_ABORTED"]));
    await world.clock.advance(0);
    expect(warnings).toEqual([]);
  });
});

describe("SqliteProvider.open", () => {
  test.each<Refusals[number]>([
    ["a misspelling", { durabilty: "full" }, "unknown option 'durabilty'. Did you mean 'durability'?"],
    [
      "a durability of its own",
      { durability: "none" },
      'option \'durability\' must be "full" or "process-crash", not "none".',
    ],
    [
      "a negative timeout",
      { busyTimeoutMs: -1 },
      "option 'busyTimeoutMs' must be an integer from 0 to 3600000, not -1.",
    ],
    ["too small a limit", { maxDatabaseBytes: 1 }, "option 'maxDatabaseBytes' must be an integer from 1048576 to"],
    ["null", null, "the options must be an object, not null."],
  ])("refuses %s, and no file is made", async (_, options, message) => {
    const folder = mkdtempSync(join(tmpdir(), "duroxide-options-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const openFile = () => SqliteProvider.open(join(folder, "app.db"), given(options));
    await expectRefused(openFile, "DUROXIDE_INVALID_OPTIONS", `SqliteProvider.open: ${message}`);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([[undefined], [""], [7], [null]])("refuses %o for a file", async (file) => {
    const message = 'SqliteProvider.open: the file must be a path or ":memory:", not ';
    await expectRefused(() => SqliteProvider.open(given(file)), "DUROXIDE_INVALID_OPTIONS", message);
  });

  test("says what to do about a folder that does not exist", async () => {
    const message = "cannot open '/there/is/no/such/folder/app.db'. Its directory must exist and be writable";
    await expectRefused(() => SqliteProvider.open("/there/is/no/such/folder/app.db"), "DUROXIDE_PROVIDER", message);
  });
});

describe("new MemoryProvider", () => {
  test.each<Refusals[number]>([
    ["a misspelling", { clok: {} }, "unknown option 'clok'. Did you mean 'clock'?"],
    ["a clock that is none", { clock: {} }, "option 'clock' must be a clock with now() and setTimer(), not an object."],
    ["null", null, "the options must be an object, not null."],
  ])("refuses %s", async (_, options, message) => {
    const create = () => new MemoryProvider(given(options));
    await expectRefused(create, "DUROXIDE_INVALID_OPTIONS", `new MemoryProvider: ${message}`);
  });
});

describe("inside an orchestration", () => {
  const retry = (policy: unknown) => (ctx: OrchestrationContext) =>
    ctx.scheduleActivity("Echo", 1, { retry: policy as RetryPolicy });
  const backoff = (value: unknown) => retry({ backoff: value });

  type Call = [what: string, call: (ctx: OrchestrationContext) => unknown, code: ErrorCode, message: string];

  const timerOf = (duration: unknown): Call => [
    `a timer of ${duration}`,
    (ctx) => ctx.scheduleTimer(given(duration)),
    "DUROXIDE_INVALID_INPUT",
    'is no duration. Give milliseconds from 0 up, or a text such as "30s", "5m" or "3d".',
  ];

  const CALLS: readonly Call[] = [
    ...["5 minutes", -1, Number.NaN, Number.POSITIVE_INFINITY, null, "", "5", "m", "-5m", "1e3s", 1e18].map(timerOf),
    [
      "a misspelled option of a call",
      (ctx) => ctx.scheduleActivity("Echo", 1, given({ retries: {} })),
      "DUROXIDE_INVALID_OPTIONS",
      "activity 'Echo': unknown option 'retries'. Did you mean 'retry'?",
    ],
    [
      "a retry that is a number",
      (ctx) => ctx.scheduleActivity("Echo", 1, given({ retry: 3 })),
      "DUROXIDE_INVALID_OPTIONS",
      "activity 'Echo': option 'retry' must be an object, not 3.",
    ],
    [
      "options that are null",
      (ctx) => ctx.scheduleActivity("Echo", 1, given(null)),
      "DUROXIDE_INVALID_OPTIONS",
      "activity 'Echo': the options must be an object, not null.",
    ],
    [
      "a misspelled policy",
      retry({ maxAttemps: 5 }),
      "DUROXIDE_INVALID_OPTIONS",
      "retry of activity 'Echo': unknown option 'maxAttemps'. Did you mean 'maxAttempts'?",
    ],
    [
      "no attempts",
      retry({ maxAttempts: 0 }),
      "DUROXIDE_INVALID_OPTIONS",
      "retry of activity 'Echo': option 'maxAttempts' must be an integer from 1",
    ],
    [
      "endless attempts",
      retry({ maxAttempts: Number.POSITIVE_INFINITY }),
      "DUROXIDE_INVALID_OPTIONS",
      "option 'maxAttempts' must be an integer from 1 to 9007199254740991, not Infinity.",
    ],
    [
      "a timeout in words",
      retry({ timeout: "soon" }),
      "DUROXIDE_INVALID_INPUT",
      'retry timeout: "soon" is no duration.',
    ],
    [
      "a judge that is no function",
      retry({ shouldRetry: true }),
      "DUROXIDE_INVALID_OPTIONS",
      "retry of activity 'Echo': option 'shouldRetry' must be a function, not true.",
    ],
    [
      "an unknown backoff",
      backoff({ kind: "quadratic" }),
      "DUROXIDE_INVALID_OPTIONS",
      'backoff of activity \'Echo\': option \'kind\' must be "none" or "fixed" or "linear" or "exponential", not "quadratic".',
    ],
    [
      "a backoff of no kind",
      backoff({}),
      "DUROXIDE_INVALID_OPTIONS",
      'backoff of activity \'Echo\': option \'kind\' is missing; say "none", "fixed", "linear" or "exponential".',
    ],
    [
      "a misspelled backoff",
      backoff({ kind: "exponential", bse: "1s" }),
      "DUROXIDE_INVALID_OPTIONS",
      "backoff of activity 'Echo': unknown option 'bse'. Did you mean 'base'?",
    ],
    [
      "a backoff without its delay",
      backoff({ kind: "fixed" }),
      "DUROXIDE_INVALID_INPUT",
      "backoff of activity 'Echo': undefined is no duration.",
    ],
    [
      "a shrinking backoff",
      backoff({ kind: "exponential", multiplier: 0.5 }),
      "DUROXIDE_INVALID_OPTIONS",
      "backoff of activity 'Echo': option 'multiplier' must be a number from 1 to 1000.",
    ],
    [
      "a misspelled option of a child",
      (ctx) => ctx.scheduleSubOrchestration("Control", 1, given({ instanceID: "c" })),
      "DUROXIDE_INVALID_OPTIONS",
      "sub-orchestration 'Control': unknown option 'instanceID'. Did you mean 'instanceId'?",
    ],
    [
      "a child's version that is none",
      (ctx) => ctx.scheduleSubOrchestration("Control", 1, { version: "latest" }),
      "DUROXIDE_INVALID_INPUT",
      'version of sub-orchestration \'Control\' "latest" is no version; pass three numbers such as "1.2.3".',
    ],
    [
      "a misspelled option of a detached start",
      (ctx) => ctx.startOrchestration("Control", given({ instanceId: "d", inputs: 1 })),
      "DUROXIDE_INVALID_OPTIONS",
      "orchestration 'Control': unknown option 'inputs'. Did you mean 'input'?",
    ],
    [
      "a misspelled option of continueAsNew",
      (ctx) => ctx.continueAsNew(1, given({ verison: "2.0.0" })),
      "DUROXIDE_INVALID_OPTIONS",
      "ctx.continueAsNew of orchestration 'Calls': unknown option 'verison'. Did you mean 'version'?",
    ],
    [
      "a next version that is none",
      (ctx) => ctx.continueAsNew(1, { version: "2" }),
      "DUROXIDE_INVALID_INPUT",
      "version of orchestration 'Calls' \"2\" is no version",
    ],
  ];

  test("every one is thrown where the call is, and nothing is recorded", async () => {
    const world = await World.open(STORES[0]![1]);
    const calls = orchestration("Calls", async (ctx) => {
      const refusals: unknown[] = [];
      for (const [, call] of CALLS) {
        try {
          await call(ctx);
          refusals.push("accepted");
        } catch (error) {
          const { code, message } = error as Error & { code: string };
          refusals.push({ code, message });
        }
      }
      return refusals;
    });
    await world.run({ orchestrations: [calls] });
    const handle = await world.client.start(calls, { instanceId: "calls" });

    expect(await world.settled(handle.result())).toEqual(
      CALLS.map(([, , code, message]) => ({ code, message: expect.stringContaining(message) })),
    );
    expect((await world.client.readHistory("calls")).length).toBe(2);
    await world.expectAlive();
  });

  test.each(CALLS)("%s fails the instance that does not catch it", async (_, call, _code, message) => {
    const world = await World.open(STORES[0]![1]);
    const calls = orchestration("Calls", async (ctx) => call(ctx));
    await world.run({ orchestrations: [calls] });
    const handle = await world.client.start(calls);

    await expectRefused(() => world.settled(handle.result()), "DUROXIDE_ORCHESTRATION_FAILED", message);
  });
});
