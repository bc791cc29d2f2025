import { setTimeout as pause } from "node:timers/promises";
import { activity, Client, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";
import { SqliteProvider } from "duroxide-ts/sqlite";

const kind = process.argv[2];
const only = process.argv[3];
const provider = kind === "sqlite" ? await SqliteProvider.open(":memory:") : new MemoryProvider();
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const hostile = () =>
  new Proxy(
    {},
    new Proxy(
      {},
      {
        get: () => () => {
          throw new Error("trap");
        },
      },
    ),
  );
const echo = activity("Echo", async (_c, x) => x);
const slow = activity("Slow", async (_c, x) => {
  await pause(30);
  return x;
});
const fail = activity("Fail", async (_c, x) => {
  throw new Error(`no ${x}`);
});
const A = {};
const act = (name, fn) => {
  A[name] = activity(name, fn);
  return A[name];
};
const cases = {
  throwSync: () => {
    throw new Error("boom");
  },
  throwUndefined: async () => {
    throw undefined;
  },
  throwNull: async () => {
    throw null;
  },
  throwString: async () => {
    throw "text";
  },
  throwSymbol: async () => {
    throw Symbol("s");
  },
  throwRevoked: async () => {
    throw revoked();
  },
  throwHostile: async () => {
    throw hostile();
  },
  throwHostileToString: async () => {
    throw {
      toString() {
        throw new Error("ts");
      },
      toJSON() {
        throw new Error("tj");
      },
    };
  },
  throwGetterError: async () => {
    const e = new Error("x");
    Object.defineProperty(e, "message", {
      get() {
        throw new Error("g");
      },
    });
    throw e;
  },
  throwFrozen: async () => {
    throw Object.freeze(new Error("frozen"));
  },
  throwHuge: async () => {
    throw new Error("x".repeat(5_000_000));
  },
  throwFn: async () => {
    throw () => 1;
  },
  throwInAllBranch: async (ctx) =>
    ctx.all([
      ctx.scheduleTimer(1),
      () => {
        throw new Error("branch");
      },
    ]),
  throwInRaceBranch: async (ctx) =>
    ctx.race([
      ctx.scheduleTimer(1000),
      async () => {
        await ctx.scheduleActivity(echo, 1);
        throw new Error("branch");
      },
    ]),
  throwInThen: async (ctx) => {
    await ctx.scheduleActivity(echo, 1).then(() => {
      throw new Error("then");
    });
  },
  throwFloatingThen: async (ctx) => {
    ctx.scheduleActivity(echo, 1).then(() => {
      throw new Error("then");
    });
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  getter: async () => ({
    get x() {
      throw new Error("getter");
    },
  }),
  helperLate: async (ctx) => {
    const h = async () => {
      await ctx.scheduleActivity(fail, 1);
    };
    const p = h();
    await ctx.scheduleActivity(slow, 1);
    await p;
  },
  helperLateCaught: async (ctx) => {
    const h = async () => {
      await ctx.scheduleActivity(fail, 1);
    };
    const p = h();
    await ctx.scheduleActivity(slow, 1);
    try {
      await p;
    } catch (e) {
      return e.message;
    }
  },
  helperNever: async (ctx) => {
    const h = async () => {
      await ctx.scheduleActivity(fail, 1);
    };
    h();
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  nativeNever: async (ctx) => {
    Promise.reject(new Error("n"));
    await ctx.scheduleActivity(slow, 1);
    Promise.reject(new Error("n2"));
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  nativeRevoked: async (ctx) => {
    Promise.reject(revoked());
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  nativeAll: async (ctx) => {
    Promise.all([ctx.scheduleActivity(fail, 1), ctx.scheduleActivity(echo, 2)]);
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  importNever: async (ctx) => {
    import("./nope-nope.mjs");
    await ctx.scheduleActivity(slow, 1);
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  durableNever: async (ctx) => {
    ctx.scheduleActivity(fail, 1);
    await ctx.scheduleActivity(slow, 1);
    return "ok";
  },
  foreignTimer: async () => {
    await pause(10);
  },
  foreignFetch: async () => {
    await fetch("http://127.0.0.1:9/");
  },
  foreignAfter: async (ctx) => {
    await ctx.scheduleActivity(echo, 1);
    await pause(10);
    await ctx.scheduleActivity(echo, 1);
  },
  foreignRace: async (ctx) => {
    await Promise.race([ctx.waitForEvent("x"), pause(10)]);
    return "went on";
  },
  foreignRaceCtx: async (ctx) => {
    await Promise.race([ctx.waitForEvent("x"), pause(10)]);
    return ctx.scheduleActivity(echo, 1);
  },
  foreignCtxRace: async (ctx) => {
    await ctx.race([ctx.waitForEvent("x"), pause(10)]);
    return ctx.scheduleActivity(echo, 1);
  },
  foreignAll: async (ctx) => {
    await Promise.all([ctx.scheduleActivity(echo, 1), pause(10)]);
    return "went on";
  },
  ctxTimer: async (ctx) => {
    setTimeout(() => ctx.scheduleActivity(echo, 1), 5);
    await ctx.scheduleActivity(slow, 1);
    return 1;
  },
  ctxTimerEvent: async (ctx) => {
    setTimeout(() => ctx.setCustomStatus("x"), 5);
    await ctx.waitForEvent("x");
    return 1;
  },
  ctxAfter: async (ctx) => {
    setTimeout(() => {
      ctx.scheduleActivity(echo, 1);
      ctx.kv.set("x", 1n);
      ctx.startOrchestration("x", {});
    }, 5);
    return 1;
  },
  retTask: async (ctx) => ctx.scheduleActivity(echo, 1),
  retTaskSync: (ctx) => ctx.scheduleActivity(echo, 1),
  retNestedTask: async (ctx) => ({ a: ctx.scheduleActivity(echo, 1) }),
  retThenable: async () => ({
    then(r) {
      r("then");
    },
  }),
  retThenableRej: async () => ({
    then(_r, j) {
      j("then");
    },
  }),
  retThenableThrow: async () => ({
    then() {
      throw new Error("then");
    },
  }),
  retThenableNever: async () => ({ then() {} }),
  retThenGetter: async () => ({
    get then() {
      throw new Error("then");
    },
  }),
  badThenableBranch: async (ctx) =>
    ctx.race([
      ctx.scheduleActivity(echo, 1),
      {
        n: 0,
        then() {
          if (this.n++) throw new Error("second");
        },
      },
    ]),
  nonFn: "hello",
  guids: async (ctx) => {
    for (let i = 0; i < 3000; i++) await ctx.newGuid();
    return "ok";
  },
  actUndefined: async (ctx) =>
    ctx.scheduleActivity(
      act("a1", async () => {
        throw undefined;
      }),
    ),
  actString: async (ctx) =>
    ctx.scheduleActivity(
      act("a2", async () => {
        throw "text";
      }),
    ),
  actSync: async (ctx) =>
    ctx.scheduleActivity(
      act("a3", () => {
        throw new Error("sync");
      }),
    ),
  actRevoked: async (ctx) =>
    ctx.scheduleActivity(
      act("a4", () => {
        throw revoked();
      }),
    ),
  actBigInt: async (ctx) => ctx.scheduleActivity(act("a5", () => 1n)),
  actCycle: async (ctx) =>
    ctx.scheduleActivity(
      act("a6", () => {
        const a = {};
        a.a = a;
        return a;
      }),
    ),
  actFn: async (ctx) => ctx.scheduleActivity(act("a7", () => () => 1)),
  actUndef: async (ctx) => ctx.scheduleActivity(act("a8", () => undefined)),
  actStray: async (ctx) =>
    ctx.scheduleActivity(
      act("a9", async () => {
        Promise.reject(new Error("stray"));
        await pause(20);
        return "ok";
      }),
    ),
  actLate: async (ctx) =>
    (
      await ctx.race([
        ctx.scheduleActivity(
          act("a10", async (c) => {
            await new Promise((_, j) =>
              c.signal.addEventListener("abort", () => setTimeout(() => j(new Error("late")), 20)),
            );
          }),
        ),
        ctx.scheduleTimer(10),
      ])
    ).index,
  actNever: async (ctx) =>
    (await ctx.race([ctx.scheduleActivity(act("a11", () => new Promise(() => {}))), ctx.scheduleTimer(10)])).index,
};
const fake = { instanceId: 1, scheduleActivity: () => {}, race: async () => ({}), scheduleTimer() {} };
for (const k of Object.keys(cases))
  if (/^act/.test(k)) {
    try {
      await cases[k](fake);
    } catch {}
  }
const control = orchestration("Control", async (ctx, n) => ctx.scheduleActivity(echo, n));
const defs = Object.entries(cases).map(([n, f]) => orchestration(n, f));
const kept = [];
const runtime = await Runtime.start({
  provider,
  orchestrations: [...defs, control],
  activities: [echo, slow, fail, ...Object.values(A)],
  activityCancellationGraceMs: 50,
  unregisteredBackoff: { baseMs: 5, maxMs: 5 },
  observers: [
    () => {
      throw new Error("observer");
    },
    async () => {
      if (only === "asyncobs") throw new Error("async observer");
    },
    (f) => {
      if (f.type === "rejection-kept") kept.push(f.message.slice(0, 50));
      if (f.type === "loop-failed") console.log("LOOP", f.error);
    },
  ],
});
const client = new Client(provider);
for (const name of Object.keys(cases)) {
  if (only && only !== name && only !== "asyncobs") continue;
  const h = await client.start(name, { instanceId: name });
  let r;
  try {
    r = { ok: await h.result({ timeoutMs: 1500 }) };
  } catch (e) {
    r = {
      err: e.name,
      m: e.message.slice(0, 300),
      k: e.details?.category,
      kind: e.details?.kind?.type ?? e.details?.kind,
    };
  }
  const c = await (await client.start("Control", { input: 7 })).result({ timeoutMs: 3000 });
  console.log(name, JSON.stringify(r), c === 7 ? "" : "CONTROL BAD");
}
console.log("kept", kept);
console.log(await runtime.shutdown({ graceMs: 50 }));
console.log(process.listenerCount("unhandledRejection"), process.listenerCount("rejectionHandled"));
