// While there is always more to do, the process still gets to do everything else: timers, requests, lock renewal.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { Runtime } from "../../src/runtime/runtime.js";

const WIDTH = 2_000;

const instant = activity("Instant", async () => null);
const fanOut = orchestration("FanOut", async (ctx) => {
  await Promise.all(Array.from({ length: WIDTH }, () => ctx.scheduleActivity(instant)));
  return "joined";
});

test.each([
  ["in memory", async (): Promise<Provider> => new MemoryProvider()],
  ["on a file", openFile],
])("timers fire all along a fan-out of instant activities, %s", async (_where, open) => {
  await using provider = await open();
  await using _runtime = await Runtime.start({ provider, orchestrations: [fanOut], activities: [instant] });
  let fired = 0;
  const ticking = setInterval(() => {
    fired += 1;
  }, 1);
  onTestFinished(() => clearInterval(ticking));
  const handle = await new Client(provider).start(fanOut);
  const firedBefore = fired;

  expect(await handle.result()).toBe("joined");
  // Starved, it would be none, or the one at the very end.
  expect(fired - firedBefore).toBeGreaterThan(5);
});

async function openFile(): Promise<Provider> {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-fair-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return SqliteProvider.open(join(folder, "fair.db"), { durability: "process-crash" });
}
