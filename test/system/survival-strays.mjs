// Rejections that are nobody's of ours, in a process with a runtime: `node survival-strays.mjs <scenario>`. What it has seen
// goes to stdout as JSON; whether it survives is its exit code.

import { setImmediate as nextRound } from "node:timers/promises";
import { activity, Client, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

const warn = activity("Warn", async () => process.emitWarning("a warning of the activity's own"));
const control = orchestration("Control", async (ctx) => ctx.utcNow().then(() => "alive"));
const failing = orchestration("Failing", async () => {
  throw new Error("a failed instance");
});
const warning = orchestration("Warning", async (ctx) => ctx.scheduleActivity(warn));

const provider = new MemoryProvider();
const kept = [];
const observers = [(fact) => fact.type === "rejection-kept" && kept.push(fact.message)];
const runtime = await Runtime.start({
  provider,
  orchestrations: [control, failing, warning],
  activities: [warn],
  observers,
});
const client = new Client(provider);
const seen = {};

const scenarios = {
  "an error": async () => void Promise.reject(new Error("not ours")),
  "a text": async () => void Promise.reject("not ours, and no error"),
  "a result that nobody awaits": async () => void (await client.start(failing)).result(),
  "with a listener of the user's": async () => {
    process.on("unhandledRejection", (reason) => {
      seen.listener = reason.message;
    });
    Promise.reject(new Error("not ours"));
  },
  "after shutdown": async () => {
    await runtime.shutdown();
    seen.listeners = ["unhandledRejection", "rejectionHandled"].map((name) => process.listenerCount(name));
    process.stdout.write(JSON.stringify(seen));
    Promise.reject(new Error("not ours"));
  },
  "a warning": async () => (await client.start(warning)).result(),
};

await isAlive(); // So that orchestration code has run before.
await scenarios[process.argv[2]]();
await nextRound();
await nextRound();
seen.isAlive = await isAlive();
await runtime.shutdown();
process.stdout.write(JSON.stringify({ ...seen, kept }));

async function isAlive() {
  return (await (await client.start(control)).result()) === "alive";
}
