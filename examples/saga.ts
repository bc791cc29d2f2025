// Saga — several bookings that must all succeed or all be undone, without a transaction that spans them.
//
//   npx tsx node_modules/duroxide-ts/examples/saga.ts
//   npm run example -- saga   (in a checkout of the repository)
//
// Each step notes how it is undone. When a later step fails, the notes are worked off, newest first. The notes need no
// table: they are a variable, and a process that takes over after a crash rebuilds it from the history.

import {
  activity,
  type CallActivityOptions,
  Client,
  type DurableTask,
  OrchestrationFailedError,
  orchestration,
  Runtime,
} from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Trip {
  readonly traveller: string;
  readonly city: string;
}

/** Stands in for the services of an airline, a hotel and a car rental. */
async function book(what: string, trip: Trip, reference: string): Promise<string> {
  if (what === "car" && trip.city === "Venice") throw new Error("no cars in Venice");
  console.log(`booked:    ${what} in ${trip.city}`);
  return `${what} ${reference}`;
}

async function cancel(booking: string): Promise<void> {
  console.log(`cancelled: ${booking}`);
}

// An activity may run twice: its worker can die after the booking and before the record of it. The key is the same both
// times, so the airline can tell a repetition from a second booking.
export const bookFlight = activity("BookFlight", (ctx, trip: Trip) => book("flight", trip, ctx.idempotencyKey));
export const bookHotel = activity("BookHotel", (ctx, trip: Trip) => book("hotel", trip, ctx.idempotencyKey));
export const bookCar = activity("BookCar", (ctx, trip: Trip) => book("car", trip, ctx.idempotencyKey));

export const cancelFlight = activity("CancelFlight", (_ctx, booking: string) => cancel(booking));
export const cancelHotel = activity("CancelHotel", (_ctx, booking: string) => cancel(booking));

export const bookTrip = orchestration("BookTrip", async (ctx, trip: Trip): Promise<readonly string[]> => {
  const undo: (() => DurableTask<void>)[] = [];
  try {
    const flight = await ctx.scheduleActivity(bookFlight, trip);
    undo.push(() => ctx.scheduleActivity(cancelFlight, flight, PATIENTLY));
    const hotel = await ctx.scheduleActivity(bookHotel, trip);
    undo.push(() => ctx.scheduleActivity(cancelHotel, hotel, PATIENTLY));
    const car = await ctx.scheduleActivity(bookCar, trip);
    return [flight, hotel, car];
  } catch (error) {
    for (const undoStep of undo.reverse()) await undoStep();
    throw error; // The trip has failed, and says why. That nothing is left of it does not make it a success.
  }
});

/** A booking that cannot be made is no disaster; one that cannot be undone costs money. So undoing is tried for weeks. */
const PATIENTLY: CallActivityOptions = {
  retry: { maxAttempts: 1_000, backoff: { kind: "exponential", base: "1s", max: "1h" } },
};

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({
    provider,
    orchestrations: [bookTrip],
    activities: [bookFlight, bookHotel, bookCar, cancelFlight, cancelHotel],
  });
  const client = new Client(provider);

  for (const city of ["Lisbon", "Venice"]) {
    const handle = await client.start(bookTrip, { instanceId: `ada-${city}`, input: { traveller: "Ada", city } });
    try {
      console.log(`${city}: ${(await handle.result()).join(", ")}`);
    } catch (error) {
      if (!(error instanceof OrchestrationFailedError)) throw error;
      console.log(`${city}: ${error.message}`);
    }
  }
}

if (process.argv[1] === import.meta.filename) await main();
