import { activity, Client, event, orchestration, Registry, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";
import { SqliteProvider } from "duroxide-ts/sqlite";

const kind = process.argv[2];
const provider = kind === "sqlite" ? await SqliteProvider.open(":memory:") : new MemoryProvider();
const client = new Client(provider);
const o = orchestration("O", async () => 1);
const a = activity("A", async () => 1);
const show = async (name, f) => {
  try {
    const r = await Promise.race([
      Promise.resolve().then(f),
      new Promise((r) => setTimeout(() => r("HANGS"), 200).unref()),
    ]);
    console.log(name, "=> OK", typeof r === "object" ? r?.constructor?.name : r);
    if (r instanceof Runtime) await r.shutdown({ graceMs: 0 });
  } catch (e) {
    console.log(name, "=>", e?.constructor?.name, e?.code, "|", String(e?.message).slice(0, 260));
  }
};
const odd = {
  undef: undefined,
  null: null,
  num: 5,
  empty: "",
  sub: "sub::1",
  sub2: "a::sub::b",
  nul: "a\0b",
  ctl: "a\nb",
  del: "a\x7fb",
  c1: "a\x85b",
  lone: "a\ud800",
  long: "x".repeat(257),
  sp: "  ",
  emoji: "😀",
  rtl: "\u202eabc",
  zw: "\u200b",
  obj: {},
  sym: Symbol("x"),
};
for (const [k, id] of Object.entries(odd)) {
  await show(`start id ${k}`, () => client.start(o, { instanceId: id }));
  await show(`raise id ${k}`, () => client.raiseEvent(id, "e"));
  await show(`raise name ${k}`, () => client.raiseEvent("i", id));
  await show(`status id ${k}`, () => client.getStatus(id));
  await show(`wait id ${k}`, () => client.waitForOrchestration(id, { timeoutMs: 1 }));
  await show(`kv id ${k}`, () => client.getKvValue(id, "k"));
  await show(`kv key ${k}`, () => client.getKvValue("i", id));
  await show(`history id ${k}`, () => client.readHistory(id));
  await show(`cancel id ${k}`, () => client.cancel(id));
  await show(`handle id ${k}`, () => client.getHandle(id));
  await show(`start name ${k}`, () => client.start(id));
  await show(`define ${k}`, () => orchestration(id, async () => 1));
}
await show("readHistory exec", () => client.readHistory("x", "2"));
await show("getStatus hostile", () =>
  client.getStatus({
    toString() {
      throw 1;
    },
  }),
);
const opts = {
  typo: { instnceId: "x" },
  ifEx: { ifExists: "nope" },
  delay: { delay: "5 minutes" },
  delayNeg: { delay: -1 },
  delayNaN: { delay: NaN },
  delayObj: { delay: Object.create(null) },
  ver: { version: 5 },
  verbad: { version: "abc" },
  nul: null,
  str: "x",
  arr: [],
};
for (const [k, v] of Object.entries(opts)) await show(`start opt ${k}`, () => client.start(o, v));
await show("start activity", () => client.start(a));
for (const [k, v] of Object.entries({
  typo: { timeout: 5 },
  neg: { timeoutMs: -1 },
  nan: { timeoutMs: NaN },
  str: { timeoutMs: "5s" },
  sig: { signal: {} },
  ctl: { signal: new AbortController() },
  nul: null,
})) {
  await show(`wait opt ${k}`, () => client.waitForOrchestration("x", v));
  await show(`kvwait opt ${k}`, () => client.waitForKvValue("x", "k", v));
  await show(`schange ${k}`, () => client.waitForStatusChange("x", v));
}
for (const [k, v] of Object.entries({
  undef: undefined,
  nul: null,
  str: "x",
  obj: {},
  prom: Promise.resolve(provider),
  arr: [],
  cls: MemoryProvider,
})) {
  await show(`Client provider ${k}`, () => new Client(v));
  await show(`Runtime provider ${k}`, () => Runtime.start({ provider: v }));
}
await show("Client opt", () => new Client(provider, { pollInterval: 5 }));
await show("Client opt null", () => new Client(provider, null));
await show("Client clock", () => new Client(provider, { clock: {} }));
await show("Runtime clock", () => Runtime.start({ provider, clock: {} }));
await show("Runtime none", () => Runtime.start());
await show("Runtime null", () => Runtime.start(null));
await show("Runtime provider itself", () => Runtime.start(provider));
for (const [k, v] of Object.entries({
  dup: [o, o],
  undef: [undefined],
  nul: [null],
  act: [a],
  str: ["x"],
  fn: [async () => 1],
  bad: [orchestration({ name: "X", version: "abc" }, async () => 1)],
  decl: [orchestration("D")],
  notarr: o,
}))
  await show(`reg orch ${k}`, () => Runtime.start({ provider, orchestrations: v }));
for (const [k, v] of Object.entries({
  dup: [a, a],
  undef: [undefined],
  orch: [o],
  res: [activity("__duroxide_syscall:x", () => 1)],
  decl: [activity("D")],
}))
  await show(`reg act ${k}`, () => Runtime.start({ provider, activities: v }));
await show("Registry.of typo", () => Registry.of({ orchestration: [o] }));
await show("Registry.of none", () => Registry.of());
await show("policies num", () => Runtime.start({ provider, orchestrations: [o], versionPolicies: { O: 1 } }));
await show("policies arr", () => Runtime.start({ provider, orchestrations: [o], versionPolicies: [] }));
await show("policies unknown", () =>
  Runtime.start({ provider, orchestrations: [o], versionPolicies: { P: "latest" } }),
);
await show("policies ver", () => Runtime.start({ provider, orchestrations: [o], versionPolicies: { O: "9.0.0" } }));
await show("def typo", () => orchestration({ name: "X", vresion: "1" }, async () => 1));
await show("def schema", () => orchestration({ name: "X", input: {} }, async () => 1));
await show("def run", () => orchestration("X", 5));
await show("def none", () => orchestration());
await show("def null", () => activity(null));
await show("event typo", () => event("x", { schem: 1 }));
await show("event num", () => event(5));
const rt = await Runtime.start({ provider, orchestrations: [o] });
await show("shutdown typo", () => rt.shutdown({ grace: 1 }));
await show("shutdown neg", () => rt.shutdown({ graceMs: -1 }));
await show("shutdown str", () => rt.shutdown({ graceMs: "5s" }));
await show("shutdown null", () => rt.shutdown(null));
await show("observe", () => rt.observe(5));
await rt.shutdown();
for (const [k, v] of Object.entries({
  typo: { durabilty: "full" },
  dur: { durability: "no" },
  busy: { busyTimeoutMs: -1 },
  nan: { maxDatabaseBytes: NaN },
  nul: null,
  clock: { clock: {} },
}))
  await show(`sqlite ${k}`, () => SqliteProvider.open(":memory:", v));
for (const [k, v] of Object.entries({
  undef: undefined,
  empty: "",
  num: 5,
  sym: Symbol("x"),
  obj: Object.create(null),
  nodir: "/nope/nope/x.db",
  dir: "/tmp",
}))
  await show(`sqlite file ${k}`, () => SqliteProvider.open(v));
await show("memory opt typo", () => new MemoryProvider({ clok: 1 }));
await show("memory opt null", () => new MemoryProvider(null));
const c = new AbortController();
const waits = Array.from({ length: 20 }, () =>
  client.waitForOrchestration("never", { signal: c.signal }).catch((e) => e.code),
);
setTimeout(() => c.abort(), 20);
console.log(new Set(await Promise.all(waits)));
