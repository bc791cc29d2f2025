// Versioning — new code while old instances are on their way.
//
//   npx tsx node_modules/duroxide-ts/examples/versioning.ts
//   npm run example -- versioning   (in a checkout of the repository)
//
// An instance is re-run from its history, so it needs the code that it was begun with. It is pinned to that version for life:
// deploy the new version beside the old one, and take the old one out when nothing runs on it any more.

import { activity, Client, event, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Order {
  readonly id: string;
  readonly amount: number;
}

export const paid = event<{ readonly receipt: string }>("paid");

export const checkFraud = activity("CheckFraud", async (_ctx, order: Order): Promise<boolean> => order.amount > 1_000);
export const ship = activity("Ship", async (_ctx, order: Order): Promise<string> => `${order.id} is on its way`);

/** What callers know: a name and types, and no version. They need no deployment when the orchestration changes. */
export const fulfil = orchestration<Order, string>("Fulfil");

export const fulfilV1 = orchestration({ name: "Fulfil", version: "1.0.0" }, async (ctx, order: Order) => {
  ctx.setCustomStatus("waits for its payment");
  await ctx.dequeueEvent(paid);
  return ctx.scheduleActivity(ship, order);
});

/** Asks somebody first. In the midst of an instance of version 1 that would contradict its history. */
export const fulfilV2 = orchestration({ name: "Fulfil", version: "2.0.0" }, async (ctx, order: Order) => {
  if (await ctx.scheduleActivity(checkFraud, order)) return `${order.id} is held back`;
  ctx.setCustomStatus("waits for its payment");
  await ctx.dequeueEvent(paid);
  return ctx.scheduleActivity(ship, order);
});

/** Whether code of that version must stay deployed. */
export async function isInUse(client: Client, version: string): Promise<boolean> {
  const running = await client.listInstancesByStatus("Running");
  const instances = await Promise.all(running.map((instanceId) => client.getInstanceInfo(instanceId)));
  return instances.some((one) => one.orchestrationName === fulfil.name && one.orchestrationVersion === version);
}

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  const client = new Client(provider);
  const activities = [checkFraud, ship];

  const before = await Runtime.start({ provider, orchestrations: [fulfilV1], activities });
  const old = await client.start(fulfil, { instanceId: "order-1", input: { id: "order-1", amount: 5_000 } });
  await old.waitForStatusChange();
  await before.shutdown();

  console.log("order-1 waits for its payment. Version 2.0.0 is deployed beside 1.0.0.");
  await using _after = await Runtime.start({ provider, orchestrations: [fulfilV1, fulfilV2], activities });
  // A start that names no version gets the latest; `versionPolicies: { Fulfil: "1.0.0" }` would hold them back.
  const young = await client.start(fulfil, { instanceId: "order-2", input: { id: "order-2", amount: 5_000 } });
  console.log(`2.0.0: ${await young.result()}`);

  console.log(`1.0.0 is in use: ${await isInUse(client, "1.0.0")}`);
  await old.enqueueEvent(paid, { receipt: "R-1" });
  console.log(`1.0.0: ${await old.result()}`);
  console.log(`1.0.0 is in use: ${await isInUse(client, "1.0.0")}`);
}

if (process.argv[1] === import.meta.filename) await main();
