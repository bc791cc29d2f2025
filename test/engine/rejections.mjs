// A process of its own for rejection-guard.test.ts: `node rejections.mjs <built src> <scenario>`. What it has seen goes to
// stdout as JSON; whether it survives is its exit code. vitest listens to unhandled rejections itself, so it cannot tell.

const [, , built, scenario] = process.argv;
const { Execution } = await import(`${built}/engine/execution.js`);
const { guardRejections, keepRejections } = await import(`${built}/engine/rejection-guard.js`);

const INSTANCE = "guarded";
const kept = [];
const seen = {};
const onKept = (instanceId, message) => kept.push([instanceId, message]);
const nextMacrotask = () => new Promise((resolve) => setImmediate(resolve));

const scenarios = {
  "helper, guarded": async () => {
    guardRejections(onKept);
    seen.result = await runHelper();
  },
  "helper, unguarded": async () => {
    seen.result = await runHelper();
  },
  "helper never awaited": async () => {
    guardRejections(onKept);
    seen.result = await runHelper({ isAwaited: false });
  },
  "task never awaited, unguarded": async () => {
    seen.result = await runHelper({ isTask: true, isAwaited: false });
  },
  "ctx in an async callback": async () => {
    guardRejections(onKept);
    const execution = executionOf(async (ctx) => {
      setImmediate(async () => ctx.scheduleActivity("B"));
      await ctx.scheduleActivity("A");
    });
    await execution.turn({ nowMs: 1, messages: [] });
    await nextMacrotask();
    await nextMacrotask();
  },
  "activity code": async () => {
    guardRejections(onKept);
    await keepRejections("of an activity", async () => {
      Promise.reject(new Error("floating"));
      await nextMacrotask();
    });
  },
  "foreign error": async () => {
    guardRejections(onKept);
    Promise.reject(new Error("not ours"));
    await nextMacrotask();
  },
  "foreign value": async () => {
    guardRejections(onKept);
    Promise.reject("a mere text");
    await nextMacrotask();
  },
  "foreign, with another listener": async () => {
    guardRejections(onKept);
    process.on("unhandledRejection", (reason) => {
      seen.listener = String(reason);
    });
    Promise.reject(new Error("not ours"));
    await nextMacrotask();
  },
  "foreign, handled late": async () => {
    guardRejections(onKept);
    process.on("unhandledRejection", () => {});
    process.on("warning", ({ name }) => {
      seen.warning = name;
    });
    const late = Promise.reject(new Error("not ours"));
    await nextMacrotask();
    await late.catch(() => {});
    await nextMacrotask();
  },
  "guard released": async () => {
    const counts = () => [process.listenerCount("unhandledRejection"), process.listenerCount("rejectionHandled")];
    seen.counts = [counts()];
    const releaseFirst = guardRejections(onKept);
    const releaseSecond = guardRejections(onKept);
    seen.counts.push(counts());
    releaseFirst();
    releaseFirst();
    seen.counts.push(counts());
    seen.result = await runHelper();
    releaseSecond();
    seen.counts.push(counts());
  },
};

/** A helper that fails in the second turn and is awaited in the third. */
async function runHelper({ isAwaited = true, isTask = false } = {}) {
  const warnings = [];
  process.on("warning", ({ name }) => warnings.push(name));
  const execution = executionOf(async (ctx) => {
    const helper = async () => ctx.scheduleActivity("A");
    const failing = isTask ? ctx.scheduleActivity("A") : helper();
    await ctx.scheduleTimer(1);
    await ctx.scheduleTimer(1);
    return isAwaited ? failing.catch((error) => `caught: ${error.message}`) : "done";
  });
  const details = {
    category: "application",
    kind: { type: "ActivityFailed" },
    message: "failed early",
    retryable: false,
  };
  await execution.turn({ nowMs: 1, messages: [] });
  const failed = { type: "ActivityFailed", instance: INSTANCE, executionId: 1, id: 2, details };
  await execution.turn({ nowMs: 2, messages: [failed, fired(3)] });
  await nextMacrotask();
  const { result } = await execution.turn({ nowMs: 3, messages: [fired(6)] });
  await nextMacrotask();
  seen.warnings = warnings;
  return result.output;
}

const fired = (id) => ({ type: "TimerFired", instance: INSTANCE, executionId: 1, id, fireAtMs: 1 });

function executionOf(handler) {
  return new Execution({
    instance: INSTANCE,
    executionId: 1,
    handler,
    history: [],
    started: {
      type: "OrchestrationStarted",
      name: "Guarded",
      version: "1.0.0",
      input: "null",
      parentInstance: null,
      parentId: null,
    },
    kvSnapshot: new Map(),
    newGuid: () => "",
    trace: () => {},
  });
}

await scenarios[scenario]();
process.stdout.write(JSON.stringify({ ...seen, kept }));
