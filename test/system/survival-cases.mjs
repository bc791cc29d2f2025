// Everything that an orchestration or an activity should not do, by name. survival-program.mjs runs all of it in one
// process; survival.test.ts says what each must come to.
//
// A case is `run`, the orchestration; `activities` that it calls; `act`, where somebody must push it along; and
// `aftermath`, where the end of the instance is not the end of the matter.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { activity } from "duroxide-ts";

export const echo = activity("Echo", async (_ctx, value) => value);
export const fail = activity("Fail", async (_ctx, value) => {
  throw new Error(`failed on ${value}`);
});
/** Gives whatever else goes on in the process a chance to come first. */
export const slow = activity("Slow", async (_ctx, value) => {
  await pause(20);
  return value;
});
/** Comes after the turn in which the failure of another activity reached the orchestration. */
export const afterFailure = activity("AfterFailure", async ({ client, instanceId }, value) => {
  const hasFailed = async () => (await client.readHistory(instanceId)).some(({ type }) => type === "ActivityFailed");
  while (!(await hasFailed())) await pause(2);
  return value;
});

// Values that defend themselves

function revokedProxy() {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** Throws whatever one does with it. */
function hostileProxy() {
  const throwing = new Proxy(
    {},
    {
      get: () => () => {
        throw new Error("a trap");
      },
    },
  );
  return new Proxy({}, throwing);
}

function throwing() {
  throw new Error("a getter");
}

function hostileObject() {
  return { toString: throwing, toJSON: throwing, [Symbol.toPrimitive]: throwing };
}

function unreadableError() {
  return Object.defineProperty(new Error(), "message", { get: throwing });
}

function cycle() {
  const value = {};
  value.self = value;
  return value;
}

/** A promise and its ends. */
function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

// What orchestrations throw, and where

const thrown = (value) => ({
  run: async () => {
    throw value();
  },
});

const throwsValues = {
  "throw error": thrown(() => new Error("an error")),
  "throw undefined": thrown(() => undefined),
  "throw null": thrown(() => null),
  "throw string": thrown(() => "a text"),
  "throw number": thrown(() => 0),
  "throw symbol": thrown(() => Symbol("a symbol")),
  "throw function": thrown(() => () => "a function"),
  "throw hostile object": thrown(hostileObject),
  "throw hostile proxy": thrown(hostileProxy),
  "throw revoked proxy": thrown(revokedProxy),
  "throw unreadable error": thrown(unreadableError),
  "throw frozen error": thrown(() => Object.freeze(new Error("frozen"))),
  "throw cycle": thrown(cycle),
  "throw huge error": thrown(() => new Error("x".repeat(5_000_000))),
  "throw error with odd text": thrown(() => new Error("a\0b\ud800c")),
};

const throwsPlaces = {
  "throw without async": {
    run: () => {
      throw new Error("before any promise");
    },
  },
  "throw after await": {
    run: async (ctx) => {
      await ctx.scheduleActivity(echo, 1);
      throw new Error("after an await");
    },
  },
  "throw in branch": { run: async (ctx) => ctx.all([ctx.scheduleTimer("1h"), throwing]) },
  "throw in branch later": {
    run: async (ctx) =>
      ctx.race({
        timer: ctx.scheduleTimer("1h"),
        branch: async () => {
          await ctx.scheduleActivity(echo, 1);
          throw new Error("in a branch");
        },
      }),
  },
  "throw in awaited then": { run: async (ctx) => ctx.scheduleActivity(echo, 1).then(throwing) },
  "throw in stray then": {
    run: async (ctx) => {
      ctx.scheduleActivity(echo, 1).then(throwing);
      ctx.scheduleActivity(echo, 2).finally(throwing);
      return ctx.scheduleActivity(slow, "went on");
    },
  },
  "throw in getter of result": {
    run: async () => ({
      get amount() {
        return throwing();
      },
    }),
  },
  "throw in toJSON of result": { run: async () => ({ order: { toJSON: throwing } }) },
};

// Rejections that nobody awaits, or not in time

const helper = async (ctx) => ctx.scheduleActivity(fail, "purpose");

const strayRejections = {
  "helper awaited late": {
    run: async (ctx) => {
      const failing = helper(ctx);
      await ctx.scheduleActivity(afterFailure, 1);
      await failing;
    },
  },
  "helper caught late": {
    run: async (ctx) => {
      const failing = helper(ctx);
      await ctx.scheduleActivity(afterFailure, 1);
      return failing.catch((error) => `caught: ${error.message}`);
    },
  },
  "helper never awaited": {
    run: async (ctx) => {
      helper(ctx);
      return ctx.scheduleActivity(afterFailure, "went on");
    },
  },
  "native rejection never awaited": {
    run: async (ctx) => {
      Promise.reject(new Error("stray, at once"));
      await ctx.scheduleActivity(slow, 1);
      Promise.reject(revokedProxy());
      return ctx.scheduleActivity(slow, "went on");
    },
  },
  "native combination never awaited": {
    run: async (ctx) => {
      Promise.all([helper(ctx), ctx.scheduleActivity(echo, 1)]);
      Promise.race([helper(ctx)]);
      return ctx.scheduleActivity(afterFailure, "went on");
    },
  },
  "import never awaited": {
    run: async (ctx) => {
      import("./there-is-no-such-module.mjs");
      return ctx.scheduleActivity(slow, "went on");
    },
    aftermath: ({ until, instanceId, kept }) => until(() => kept.has(instanceId)),
  },
  "task never awaited": {
    run: async (ctx) => {
      ctx.scheduleActivity(fail, "purpose");
      ctx.all([ctx.scheduleActivity(fail, "purpose")]);
      ctx.race([ctx.scheduleActivity(fail, "purpose")]);
      return ctx.scheduleActivity(afterFailure, "went on");
    },
  },
  "task caught late": {
    run: async (ctx) => {
      const failing = ctx.scheduleActivity(fail, "purpose");
      await ctx.scheduleActivity(afterFailure, 1);
      return failing.catch((error) => `caught: ${error.message}`);
    },
  },
};

// Awaits of what is not durable

const pages = createServer((_request, response) => setTimeout(() => response.end("a page"), 20));
pages.unref();
const whenListening = new Promise((resolve) => pages.listen(0, "127.0.0.1", resolve));
const fetchPage = async () => {
  await whenListening;
  return (await fetch(`http://127.0.0.1:${pages.address().port}/`, { headers: { connection: "close" } })).text();
};

const foreignAwaits = {
  "await timer": { run: async () => pause(5) },
  "await fetch": { run: async () => fetchPage() },
  "await file": { run: async () => (await readFile(new URL(import.meta.url))).length },
  "await never": { run: async () => new Promise(() => {}) },
  "await timer after durable": {
    run: async (ctx) => {
      await ctx.scheduleActivity(echo, 1);
      await pause(5);
      return ctx.scheduleActivity(echo, 2);
    },
  },
  "await never beside durable": {
    run: async (ctx) => Promise.all([ctx.scheduleActivity(echo, 1), new Promise(() => {})]),
  },
  "await timer in branch": { run: async (ctx) => ctx.all([ctx.scheduleActivity(echo, 1), () => pause(30)]) },
  "race event with timer, then return": {
    run: async (ctx) => {
      await Promise.race([ctx.waitForEvent("never"), pause(5)]);
      return "too late";
    },
  },
  "race event with timer, then throw": {
    run: async (ctx) => {
      await Promise.race([ctx.waitForEvent("never"), pause(5)]);
      throw new Error("too late");
    },
  },
  "race event with timer, then go on": {
    run: async (ctx) => {
      await Promise.race([ctx.waitForEvent("never"), pause(5)]);
      return ctx.scheduleActivity(echo, 1);
    },
  },
  "ctx.race event with fetch": { run: async (ctx) => ctx.race([ctx.waitForEvent("never"), fetchPage()]) },
};

// ctx where it does not belong

const afterTheEnd = deferred();

/** Everything that `ctx` offers, with arguments that would be refused besides. */
function useAll(ctx) {
  ctx.scheduleActivity(undefined);
  ctx.scheduleTimer("soon");
  ctx.waitForEvent("").then(() => {});
  ctx.dequeueEvent("").catch(() => {});
  ctx.scheduleSubOrchestration(null);
  ctx.startOrchestration("Any");
  ctx.continueAsNew(1n);
  ctx.all(7);
  ctx.race(7);
  ctx.utcNow();
  ctx.newGuid();
  ctx.readKv("", "");
  ctx.kv.set("", 1n);
  ctx.kv.clear();
  ctx.setCustomStatus(7);
  ctx.trace.info("from nowhere");
}

/** By instance: what its first execution was handed, once for each replay. */
const leftBehind = new Map();

/** Uses what the execution before has left behind, and gives that time to take effect. */
const haunt = activity("Haunt", async ({ instanceId }) => {
  for (const ctx of leftBehind.get(instanceId)) useAll(ctx);
  await pause(20);
  return "done";
});

const strayContexts = {
  "ctx in timer callback": {
    run: async (ctx) => {
      setTimeout(() => useAll(ctx), 5);
      return ctx.waitForEvent("never");
    },
  },
  "ctx in async callback": {
    run: async (ctx) => {
      setTimeout(async () => ctx.scheduleActivity(echo, 1), 5);
      return ctx.waitForEvent("never");
    },
  },
  "ctx after return": {
    run: async (ctx) => {
      setTimeout(() => {
        useAll(ctx);
        afterTheEnd.resolve();
      }, 5);
      return "done";
    },
    aftermath: () => afterTheEnd.promise,
  },
  "ctx of an execution that is over": {
    activities: [haunt],
    run: async (ctx) => {
      if (ctx.executionId === 2) return ctx.scheduleActivity(haunt);
      leftBehind.set(ctx.instanceId, [...(leftBehind.get(ctx.instanceId) ?? []), ctx]);
      await ctx.scheduleActivity(echo, 1);
      return ctx.continueAsNew();
    },
  },
  "ctx in helper that outlives": {
    run: async (ctx) => {
      (async () => {
        for (;;) await ctx.scheduleActivity(echo, 1);
      })();
      return ctx.scheduleActivity(slow, "done");
    },
  },
};

// What orchestrations return

const returned = (value) => ({ run: async (ctx) => value(ctx) });

const oddResults = {
  "return task": returned((ctx) => ctx.scheduleActivity(echo, "a task")),
  "return task without async": { run: (ctx) => ctx.scheduleActivity(echo, "a task") },
  "return task inside": returned((ctx) => ({ receipt: ctx.scheduleActivity(echo, 1) })),
  "return promise inside": returned(() => [Promise.resolve(1)]),
  "return thenable": returned(() => ({ then: (resolve) => resolve("a thenable") })),
  "return thenable that rejects": returned(() => ({ then: (_, reject) => reject("a thenable") })),
  "return thenable that throws": returned(() => ({ then: throwing })),
  "return thenable that never answers": returned(() => ({ then: () => {} })),
  "return throwing then": returned(() => Object.defineProperty({}, "then", { get: throwing })),
  "return undefined": returned(() => undefined),
  "return BigInt": returned(() => ({ amount: 12n })),
  "return cycle": returned(cycle),
  "return function": returned(() => throwing),
  "return symbol": returned(() => Symbol("s")),
  "return NaN": returned(() => [Number.NaN]),
  "return revoked proxy": returned(() => ({ inside: revokedProxy() })),
  "return very deep": returned(() => {
    let value = null;
    for (let depth = 0; depth < 100_000; depth += 1) value = [value];
    return value;
  }),
  "race of a thenable that throws when dropped": returned((ctx) => {
    let calls = 0;
    const then = () => (calls++ > 0 ? throwing() : undefined);
    return ctx.race([ctx.scheduleActivity(echo, 1), { then }]);
  }),
};

// Loops

const loops = {
  "ask the time for ever": {
    run: async (ctx) => {
      for (;;) await ctx.utcNow();
    },
    act: async ({ until, instanceId, turns, client }) => {
      await until(() => turns.get(instanceId) >= 3);
      await client.cancel(instanceId, "enough");
    },
  },
  "ask for many ids": {
    run: async (ctx) => {
      const ids = new Set();
      while (ids.size < 2_500) ids.add(await ctx.newGuid());
      return ids.size;
    },
  },
};

// Activities

let activityCount = 0;

/** An orchestration that does nothing but call this activity. */
function calling(run) {
  activityCount += 1;
  const definition = activity(`Case${activityCount}`, run);
  return { activities: [definition], run: async (ctx) => ctx.scheduleActivity(definition) };
}

/** Calls it and soon does without it. */
function cancelling(run, aftermath) {
  activityCount += 1;
  const definition = activity(`Case${activityCount}`, run);
  return {
    activities: [definition],
    aftermath,
    run: async (ctx) => {
      const first = await ctx.race({ done: ctx.scheduleActivity(definition), late: ctx.scheduleTimer(20) });
      return first.winner;
    },
  };
}

const lateRejection = deferred();

const activities = {
  "activity throws undefined": calling(async () => {
    throw undefined;
  }),
  "activity throws string": calling(async () => {
    throw "a text";
  }),
  "activity throws at once": calling(() => {
    throw new Error("at once");
  }),
  "activity throws revoked proxy": calling(async () => {
    throw revokedProxy();
  }),
  "activity throws hostile object": calling(async () => {
    throw hostileObject();
  }),
  "activity returns BigInt": calling(() => ({ amount: 12n })),
  "activity returns cycle": calling(cycle),
  "activity returns function": calling(() => throwing),
  "activity returns undefined": calling(() => undefined),
  "activity returns thenable that throws": calling(() => ({ then: throwing })),
  "activity returns throwing getter": calling(() => ({
    get amount() {
      return throwing();
    },
  })),
  "activity leaves rejections behind": calling(async () => {
    Promise.reject(new Error("stray, at once"));
    const failing = (async () => {
      await pause(1);
      throw new Error("stray, later");
    })();
    await pause(20);
    return failing.catch((error) => `caught: ${error.message}`);
  }),
  "activity rejects after its cancellation": cancelling(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () =>
          setTimeout(() => {
            reject(new Error("much too late"));
            lateRejection.resolve();
          }, 30),
        );
      }),
    () => lateRejection.promise,
  ),
  "activity never settles": cancelling(() => new Promise(() => {})),
  "activity throws its cancellation": cancelling(async ({ signal }) => {
    await pause(60_000, undefined, { signal });
  }),
};

export const cases = {
  ...throwsValues,
  ...throwsPlaces,
  ...strayRejections,
  ...foreignAwaits,
  ...strayContexts,
  ...oddResults,
  ...loops,
  ...activities,
};
