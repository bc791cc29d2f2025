// Fan-out — ask many at once, wait for all answers, go on with what they say.
//
//   npx tsx node_modules/duroxide-ts/examples/fan-out.ts
//   npm run example -- fan-out   (in a checkout of the repository)
//
// A task runs from the moment it is scheduled, not from the moment it is awaited. So tasks that are scheduled together run
// side by side, on as many workers as there are, and their results come in the order in which they were asked for.

import { activity, Client, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Tender {
  readonly item: string;
  readonly suppliers: readonly string[];
}

export interface Inquiry {
  readonly item: string;
  readonly supplier: string;
}

export interface Offer extends Inquiry {
  readonly price: number;
}

/** Stands in for the suppliers' services. */
const PRICES: Readonly<Record<string, number>> = { Acme: 120, Globex: 95, Initech: 140 };

export const requestOffer = activity("RequestOffer", async (_ctx, inquiry: Inquiry): Promise<Offer> => {
  const price = PRICES[inquiry.supplier];
  if (price === undefined) throw new Error(`${inquiry.supplier} does not answer`);
  return { ...inquiry, price };
});

export const placeOrder = activity("PlaceOrder", async (ctx, offer: Offer) => {
  return `order ${ctx.idempotencyKey}: a ${offer.item} from ${offer.supplier} for ${offer.price}`;
});

export const decline = activity("Decline", async (_ctx, offer: Offer): Promise<void> => {
  console.log(`declined: ${offer.supplier} at ${offer.price}`);
});

export const buyFromCheapest = orchestration(
  "BuyFromCheapest",
  async (ctx, { item, suppliers }: Tender): Promise<string> => {
    // One supplier that does not answer must not spoil the rest: the language's own allSettled works on durable tasks.
    const answers = await Promise.allSettled(
      suppliers.map((supplier) => ctx.scheduleActivity(requestOffer, { item, supplier })),
    );
    const offers = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const [cheapest, ...others] = offers.sort((a, b) => a.price - b.price);
    if (cheapest === undefined) throw new Error(`nobody offers ${item}`);

    // Here every part must succeed. ctx.all fails with the first failure, and cancels whatever is still open.
    const [order] = await ctx.all([
      ctx.scheduleActivity(placeOrder, cheapest),
      ...others.map((offer) => ctx.scheduleActivity(decline, offer)),
    ]);
    return order;
  },
);

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({
    provider,
    orchestrations: [buyFromCheapest],
    activities: [requestOffer, placeOrder, decline],
  });
  const client = new Client(provider);

  const tender: Tender = { item: "printer", suppliers: ["Acme", "Globex", "Umbrella", "Initech"] };
  const handle = await client.start(buyFromCheapest, { instanceId: "tender-7", input: tender });
  console.log(`placed: ${await handle.result()}`);
}

if (process.argv[1] === import.meta.filename) await main();
