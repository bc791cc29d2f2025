// Human in the loop — a tiny HTTP service in which people decide, and which may be restarted while they think.
//
//   npx tsx node_modules/duroxide-ts/examples/human-in-the-loop.ts
//   npm run example -- human-in-the-loop   (in a checkout of the repository)
//
// The service itself keeps nothing: every request is a call of the client, every answer comes from the store. So any number
// of such processes may serve the same expenses.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { activity, Client, event, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Expense {
  readonly employee: string;
  readonly amount: number;
}

export interface Decision {
  readonly by: string;
  readonly isApproved: boolean;
}

export const decisions = event<Decision>("decisions");

export const remindManager = activity("RemindManager", async (ctx, expense: Expense): Promise<void> => {
  console.log(`mail: ${expense.employee} waits for a decision on ${ctx.instanceId}`);
});

const LONGEST_WAIT_DAYS = 3;

export const decideExpense = orchestration("DecideExpense", async (ctx, expense: Expense): Promise<string> => {
  for (let day = 1; day <= LONGEST_WAIT_DAYS; day += 1) {
    const first = await ctx.race({ decided: ctx.dequeueEvent(decisions), dayIsOver: ctx.scheduleTimer("1d") });
    if (first.winner === "decided") return `${first.value.isApproved ? "approved" : "rejected"} by ${first.value.by}`;
    if (day < LONGEST_WAIT_DAYS) await ctx.scheduleActivity(remindManager, expense);
  }
  return "rejected: nobody decided";
});

type Handler = (client: Client, id: string, body: unknown) => Promise<Answer>;
interface Answer {
  readonly code: number;
  readonly body: unknown;
}

const submit: Handler = async (client, _id, body) => {
  const { employee, amount } = (body ?? {}) as Partial<Expense>;
  if (typeof employee !== "string" || typeof amount !== "number") return refused("say { employee, amount }");
  const { instanceId } = await client.start(decideExpense, { input: { employee, amount } });
  return { code: 202, body: { id: instanceId } }; // It is stored: whatever becomes of this process.
};

const show: Handler = async (client, id) => {
  const expense = await client.getStatus(id);
  if (expense.status === "NotFound") return NOT_FOUND;
  const decision = expense.status === "Completed" ? expense.output : null;
  return { code: 200, body: { status: expense.status, decision } };
};

const decide: Handler = async (client, id, body) => {
  const { by, isApproved } = (body ?? {}) as Partial<Decision>;
  if (typeof by !== "string" || typeof isApproved !== "boolean") return refused("say { by, isApproved }");
  const expense = await client.getStatus(id);
  if (expense.status === "NotFound") return NOT_FOUND;
  await client.enqueueEvent(id, decisions, { by, isApproved }); // The first decision counts; later ones are not read.
  return { code: 202, body: { id } };
};

const NOT_FOUND: Answer = { code: 404, body: { problem: "no such expense" } };
const refused = (problem: string): Answer => ({ code: 400, body: { problem } });

const ROUTES: readonly (readonly [method: string, path: RegExp, handler: Handler])[] = [
  ["POST", /^\/expenses$/, submit],
  ["GET", /^\/expenses\/([\w-]+)$/, show],
  ["POST", /^\/expenses\/([\w-]+)\/decision$/, decide],
];

export function expenseService(client: Client): Server {
  return createServer(async (request, response) => {
    const { code, body } = await answer(client, request).catch(problem);
    response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
}

async function answer(client: Client, request: IncomingMessage): Promise<Answer> {
  const { method, url = "" } = request;
  const [, path, handler] = ROUTES.find(([verb, pattern]) => verb === method && pattern.test(url)) ?? [];
  if (path === undefined || handler === undefined) return NOT_FOUND;
  return handler(client, path.exec(url)?.[1] ?? "", method === "POST" ? await json(request) : null);
}

function problem(error: unknown): Answer {
  if (error instanceof SyntaxError) return refused("the body is no JSON");
  return { code: 500, body: { problem: "try again later" } };
}

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({
    provider,
    orchestrations: [decideExpense],
    activities: [remindManager],
  });
  const client = new Client(provider);
  const server = expenseService(client).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/expenses`;

  const post = (path: string, body: object) =>
    fetch(url + path, { method: "POST", body: JSON.stringify(body) }).then((response) => response.json());
  const { id } = (await post("", { employee: "Ada", amount: 80 })) as { readonly id: string };
  console.log("Ada submits:", await (await fetch(`${url}/${id}`)).json());
  await post(`/${id}/decision`, { by: "Grace", isApproved: true });
  await client.waitForOrchestration(id);
  console.log("Grace decides:", await (await fetch(`${url}/${id}`)).json());
  server.close();
  server.closeAllConnections();
}

if (process.argv[1] === import.meta.filename) await main();
