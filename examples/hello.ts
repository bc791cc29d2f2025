// Hello — the smallest durable program: an activity does the work, an orchestration decides, a store remembers.
//
//   npx tsx node_modules/duroxide-ts/examples/hello.ts
//   npm run example -- hello   (in a checkout of the repository)
//
// The process may die at any line. Whoever runs `hello-1` next goes on from the history that is printed at the end: a
// greeting that is recorded is not made again.

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { activity, Client, orchestration, Runtime } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";

/** May do anything: call a service, write a file, take an hour. */
export const greet = activity("Greet", async (_ctx, name: string) => `Hello, ${name}!`);

/** Only coordinates. It is run again from its history, so everything that it learns must come through `ctx`. */
export const hello = orchestration("Hello", async (ctx, names: readonly string[]) => {
  const greetings: string[] = [];
  for (const name of names) greetings.push(await ctx.scheduleActivity(greet, name));
  return greetings.join(" ");
});

export async function main(): Promise<void> {
  const file = join(mkdtempSync(join(tmpdir(), "duroxide-hello-")), "hello.db");
  await using provider = await SqliteProvider.open(file);
  await using _runtime = await Runtime.start({ provider, orchestrations: [hello], activities: [greet] });
  const client = new Client(provider);

  // Starting twice under one id starts once. So a caller that does not know whether it succeeded simply tries again.
  const handle = await client.start(hello, { instanceId: "hello-1", input: ["Ada", "Grace"] });
  console.log(await handle.result());

  console.log(`The history of hello-1, in ${file}:`);
  for (const { eventId, type } of await client.readHistory(handle.instanceId)) console.log(`  ${eventId}  ${type}`);
}

if (process.argv[1] === import.meta.filename) await main();
