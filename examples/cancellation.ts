// Cancellation — stop what is running: at once from outside, or in good order from inside.
//
//   npx tsx node_modules/duroxide-ts/examples/cancellation.ts
//   npm run example -- cancellation   (in a checkout of the repository)
//
// `handle.cancel()` ends an instance without asking its code, and with it its children; activities that run are told through
// their signal. Where something has to be tidied up first, make the wish a message, and let the orchestration decide.

import { setTimeout as pause } from "node:timers/promises";
import { ActivityCancelledError, activity, Client, event, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export const withdrawals = event<string>("withdrawals");

export const installServer = activity("InstallServer", async (ctx, server: string): Promise<void> => {
  try {
    console.log(`${server}: installing`);
    await pause(3_600_000, undefined, { signal: ctx.signal }); // stands in for an hour of work that can be interrupted
  } catch (error) {
    // Only a cancellation is the end of it. When the lock was lost or the process shuts down, another worker goes on.
    const why: unknown = ctx.signal.reason;
    if (why instanceof ActivityCancelledError && why.reason === "cancelled") console.log(`${server}: disk wiped`);
    throw error;
  }
});

export const releaseAddresses = activity(
  "ReleaseAddresses",
  async (_ctx, servers: readonly string[]): Promise<void> => {
    console.log(`addresses released: ${servers.join(", ")}`);
  },
);

/** A child of its own for each server: what happens to one of them can be looked up under its id. */
export const setUpServer = orchestration("SetUpServer", async (ctx, server: string): Promise<void> => {
  await ctx.scheduleActivity(installServer, server);
});

export const setUpCluster = orchestration("SetUpCluster", async (ctx, servers: readonly string[]): Promise<string> => {
  const first = await ctx.race({
    ready: ctx.all(servers.map((server) => ctx.scheduleSubOrchestration(setUpServer, server, { instanceId: server }))),
    withdrawn: ctx.dequeueEvent(withdrawals),
  });
  if (first.winner === "ready") return "ready";
  // The losers are cancelled: the children, and their activities with them. They are told, and not waited for.
  await ctx.scheduleActivity(releaseAddresses, servers);
  return `withdrawn: ${first.value}`;
});

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({
    provider,
    orchestrations: [setUpCluster, setUpServer],
    activities: [installServer, releaseAddresses],
  });
  const client = new Client(provider);

  const orderly = await client.start(setUpCluster, { instanceId: "cluster-a", input: ["a1", "a2"] });
  await pause(200); // the installations are under way
  await orderly.enqueueEvent(withdrawals, "too expensive");
  console.log(`cluster-a: ${await orderly.result()}`);

  const abrupt = await client.start(setUpCluster, { instanceId: "cluster-b", input: ["b1"] });
  await pause(200);
  await abrupt.cancel("emergency stop");
  for (const instanceId of ["cluster-b", "b1"]) {
    const ended = await client.waitForOrchestration(instanceId);
    console.log(`${instanceId}: ${ended.status === "Failed" ? ended.error : ended.status}`);
  }
}

if (process.argv[1] === import.meta.filename) await main();
