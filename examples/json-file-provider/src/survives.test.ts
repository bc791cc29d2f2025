import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { activity, Client, event, orchestration, type Provider, ProviderError, Runtime } from "duroxide-ts";
import { JsonFileProvider } from "./json-file-provider.js";

const approval = event<string>("approval");

/** A workflow of two activities, between which it waits for somebody; and how often each activity ran. */
function workflow() {
  const runs = { reserve: 0, charge: 0 };
  const reserve = activity("Reserve", (_ctx, order: string) => {
    runs.reserve += 1;
    return `${order} reserved`;
  });
  const charge = activity("Charge", (_ctx, reservation: string) => {
    runs.charge += 1;
    return `${reservation} and charged`;
  });
  const straight = orchestration("Straight", async (ctx, order: string) => {
    const reservation = await ctx.scheduleActivity(reserve, order);
    return ctx.scheduleActivity(charge, reservation);
  });
  const waiting = orchestration("Waiting", async (ctx, order: string) => {
    const reservation = await ctx.scheduleActivity(reserve, order);
    ctx.setCustomStatus("waits for approval");
    const by = await ctx.dequeueEvent(approval);
    return `${await ctx.scheduleActivity(charge, reservation)}, approved by ${by}`;
  });
  const start = (provider: Provider) =>
    Runtime.start({
      provider,
      orchestrations: [straight, waiting],
      activities: [reserve, charge],
      minPollIntervalMs: 10,
    });
  return { runs, straight, waiting, start };
}

async function temporaryFile(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "json-file-provider-"));
  t.after(() => rm(directory, { recursive: true }));
  return join(directory, "store.json");
}

test("an orchestration of two activities completes", async (t) => {
  const { straight, start } = workflow();
  await using provider = await JsonFileProvider.open(await temporaryFile(t));
  await using _runtime = await start(provider);
  const handle = await new Client(provider).start(straight, { input: "order 1" });
  assert.equal(await handle.result({ timeoutMs: 10_000 }), "order 1 reserved and charged");
});

test("an orchestration that is half done goes on from the file", async (t) => {
  const file = await temporaryFile(t);
  const { runs, waiting, start } = workflow();
  const instanceId = "order 2";
  {
    await using provider = await JsonFileProvider.open(file);
    await using _runtime = await start(provider);
    const handle = await new Client(provider).start(waiting, { instanceId, input: "order 2" });
    await handle.waitForStatusChange({ timeoutMs: 10_000 });
    assert.deepEqual(runs, { reserve: 1, charge: 0 });
  }
  await using provider = await JsonFileProvider.open(file);
  await using _runtime = await start(provider);
  const handle = new Client(provider).getHandle(waiting, instanceId);
  assert.equal((await handle.status()).status, "Running");
  await handle.enqueueEvent(approval, "Ada");
  assert.equal(await handle.result({ timeoutMs: 10_000 }), "order 2 reserved and charged, approved by Ada");
  assert.deepEqual(runs, { reserve: 1, charge: 1 });
});

test("what could not be written has not happened, and may be tried again", async (t) => {
  const file = await temporaryFile(t);
  await using provider = await JsonFileProvider.open(file);
  const message = { type: "ExternalRaised", instance: "order 3", name: "approval", data: "null" } as const;
  // Nothing can be renamed over a directory.
  const text = await readFile(file, "utf8");
  await rm(file);
  await mkdir(file);
  const isTransient = (error: unknown) => error instanceof ProviderError && error.kind === "transient";
  await assert.rejects(provider.enqueueForOrchestrator(message), isTransient);
  assert.equal((await provider.admin.getQueueDepths()).orchestratorQueue, 0);

  await rm(file, { recursive: true });
  await writeFile(file, text);
  await provider.enqueueForOrchestrator(message);
  assert.equal((await provider.admin.getQueueDepths()).orchestratorQueue, 1);
});
