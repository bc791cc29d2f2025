// Actor — an instance that lives for years, keeps a state and handles one message after the other.
//
//   npx tsx node_modules/duroxide-ts/examples/actor.ts
//   npm run example -- actor   (in a checkout of the repository)
//
// The mailbox is durable and ordered, and an instance runs in one place at a time: so commands never race, and no lock is
// needed. Continue-as-new keeps the history short: the state goes along as input, unread messages go along by themselves.

import { activity, Client, event, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export type Command =
  | { readonly kind: "deposit"; readonly amount: number }
  | { readonly kind: "withdraw"; readonly amount: number }
  | { readonly kind: "close" };

export const commands = event<Command>("commands");

export const notifyHolder = activity("NotifyHolder", async (ctx, text: string): Promise<void> => {
  console.log(`mail to the holder of ${ctx.instanceId}: ${text}`);
});

/** Few, so that the example shows it. Some hundreds are a good number: a history is read whole when a process restarts. */
const COMMANDS_PER_EXECUTION = 3;

export const account = orchestration("Account", async (ctx, openingBalance: number): Promise<number> => {
  let balance = openingBalance;
  for (let handled = 0; handled < COMMANDS_PER_EXECUTION; handled += 1) {
    ctx.setCustomStatus(`balance ${balance}`); // for whoever asks; survives continue-as-new, too
    const command = await ctx.dequeueEvent(commands);
    switch (command.kind) {
      case "deposit":
        balance += command.amount;
        break;
      case "withdraw":
        if (command.amount <= balance) balance -= command.amount;
        else await ctx.scheduleActivity(notifyHolder, `${command.amount} refused, the balance is ${balance}`);
        break;
      case "close":
        return balance;
    }
  }
  return ctx.continueAsNew(balance);
});

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({ provider, orchestrations: [account], activities: [notifyHolder] });
  const client = new Client(provider);

  const handle = await client.start(account, { instanceId: "account-42", input: 100 });
  const sent: Command[] = [
    { kind: "deposit", amount: 50 },
    { kind: "withdraw", amount: 500 },
    { kind: "withdraw", amount: 30 },
    { kind: "deposit", amount: 5 },
    { kind: "close" },
  ];
  for (const command of sent) await handle.enqueueEvent(commands, command);

  console.log(`closed with ${await handle.result()}`);
  const executions = await client.listExecutions("account-42");
  console.log(`${sent.length} commands in ${executions.length} executions`);
}

if (process.argv[1] === import.meta.filename) await main();
