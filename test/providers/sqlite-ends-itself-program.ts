// Runs an orchestration that ends its process in its first turn, for one input. With a place: after a hundred others, which have proved
// it, and where in a round of starts that one is; perhaps alone, and not beside another. Otherwise: whatever is left of it, until it is over.

import { Client } from "../../src/client/client.js";
import { systemClock } from "../../src/clock.js";
import { orchestration } from "../../src/define.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { Runtime } from "../../src/runtime/runtime.js";

const [, , file, place, isAlone] = process.argv;
let ids = 0;
let drawn: string | null = null;
const newId = (): string => {
  const id = drawn ?? `${process.pid}-${ids++}`;
  drawn = null;
  return id;
};
const startedAt = systemClock.now();
/** Nobody goes ahead after a turn that took long. What proves the orchestration takes no time, however busy the machine is. */
const stopped = { now: (): number => startedAt, setTimer: systemClock.setTimer.bind(systemClock) };
const clock = place === undefined ? systemClock : stopped;
const provider = await SqliteProvider.open(file!, { newId, clock });
const client = new Client(provider);
const fragile = orchestration("Fragile", async (_ctx, input: string) => {
  if (input === "bad") process.kill(process.pid, "SIGKILL");
  return input;
});
const options = { maxAttempts: 2, orchestratorLockTimeoutMs: 1_000 };
const runtime = await Runtime.start({ provider, orchestrations: [fragile], ...options });

const begin = (instanceId: string, input = "good") => client.start(fragile, { instanceId, input });
const ending = async (instanceId: string) => {
  const outcome = await client.waitForOrchestration(instanceId);
  return outcome.status === "Failed" ? outcome.details.category : outcome.status;
};

if (place !== undefined) {
  const names = Array.from({ length: 100 }, (_, nr) => `good-${nr}`);
  await Promise.all(names.map((name) => begin(name)));
  await Promise.all(names.map(ending));
  process.stdout.write("100 have come to their end\n");
  drawn = String.fromCharCode(Number(place));
} else {
  await begin(`first-${process.pid}`).then(() => ending(`first-${process.pid}`)); // From then on there are slots that wait.
}
const bad = begin("bad", "bad").then(() => ending("bad"));
if (place === undefined || isAlone !== undefined) await bad; // Whoever is taken together with it is counted together with it.
const beside = begin("beside").then(() => ending("beside"));
process.stdout.write(`${JSON.stringify(await Promise.all([bad, beside]))}\n`);
await runtime.shutdown();
await provider.close();
