// Agent loop — a language model that uses tools, in a loop that survives crashes and never asks again for what is recorded.
//
//   npx tsx node_modules/duroxide-ts/examples/agent-loop.ts
//   npm run example -- agent-loop   (in a checkout of the repository)
//
// The conversation is an ordinary variable of the orchestration. Each answer of the model and each result of a tool is in
// the history: a process that takes over rebuilds the conversation from there, and asks the model only what is still open.

import {
  type ActivityDefinition,
  ActivityFailedError,
  activity,
  Client,
  type OrchestrationContext,
  orchestration,
  Runtime,
} from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface ToolCall {
  readonly tool: string;
  readonly argument: string;
}

export type Message =
  | { readonly from: "user"; readonly text: string }
  | { readonly from: "tool"; readonly call: ToolCall; readonly text: string };

/** What the model says: how it ends, or what it wants to know first. */
export type Reply =
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "tools"; readonly calls: readonly ToolCall[] };

/**
 * THIS IS THE PLACE OF A REAL MODEL: call its API here, with `ctx.signal`, and make a `Reply` of what it says. The stub
 * knows one customer and one trick.
 */
export const askModel = activity("AskModel", async (_ctx, conversation: readonly Message[]): Promise<Reply> => {
  console.log(`the model is asked, with ${conversation.length} messages`);
  const hasUsed = (tool: string) => conversation.some((one) => one.from === "tool" && one.call.tool === tool);
  const use = (...tools: string[]): Reply => ({
    kind: "tools",
    calls: tools.map((tool) => ({ tool, argument: "order-1" })),
  });
  if (!hasUsed("trackParcel")) return use("readOrder", "trackParcel");
  if (!hasUsed("refund")) return use("refund");
  return { kind: "answer", text: "Your parcel was lost. You get your 12 EUR back." };
});

export const readOrder = activity("ReadOrder", async (_ctx, orderId: string) => `${orderId}: a book, 12 EUR`);
export const trackParcel = activity("TrackParcel", async (_ctx, orderId: string) => `${orderId}: lost in Utrecht`);
export const refund = activity("Refund", async (ctx, orderId: string) => `${orderId}: refunded, ${ctx.idempotencyKey}`);

const TOOLS = new Map<string, ActivityDefinition<string, string>>(Object.entries({ readOrder, trackParcel, refund }));

/** Bounds the bill, and the history, which holds the conversation once for every step. */
const MAX_STEPS = 10;

export const supportAgent = orchestration("SupportAgent", async (ctx, question: string): Promise<string> => {
  const conversation: Message[] = [{ from: "user", text: question }];
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const reply = await ctx.scheduleActivity(askModel, conversation, { retry: { maxAttempts: 5, timeout: "2m" } });
    if (reply.kind === "answer") return reply.text;
    const results = await ctx.all(reply.calls.map((call) => () => useTool(ctx, call))); // side by side
    conversation.push(...results);
  }
  throw new Error(`no answer after ${MAX_STEPS} steps`);
});

/** A tool that fails, or that does not exist, is news for the model: it may know another way. */
async function useTool(ctx: OrchestrationContext, call: ToolCall): Promise<Message> {
  const tool = TOOLS.get(call.tool);
  if (tool === undefined) return { from: "tool", call, text: "there is no such tool" };
  try {
    return { from: "tool", call, text: await ctx.scheduleActivity(tool, call.argument) };
  } catch (error) {
    if (!(error instanceof ActivityFailedError)) throw error;
    return { from: "tool", call, text: `failed: ${error.message}` };
  }
}

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({
    provider,
    orchestrations: [supportAgent],
    activities: [askModel, ...TOOLS.values()],
  });
  const client = new Client(provider);

  const handle = await client.start(supportAgent, { instanceId: "ticket-1", input: "Where is my order?" });
  console.log(await handle.result());
}

if (process.argv[1] === import.meta.filename) await main();
