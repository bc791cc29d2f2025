// What a client starts, sends and reads is typed by the definitions. How this is checked: see types.test.ts.

import {
  type Client,
  type CompletedStatus,
  type EndedStatus,
  type ErrorDetails,
  type Event,
  type EventDefinition,
  type EventOf,
  type FailedStatus,
  type KnownStatus,
  type OrchestrationDefinition,
  type OrchestrationHandle,
  orchestration,
} from "duroxide-ts";
import { expectTypeOf } from "vitest";
import { z } from "zod";

declare const client: Client;
declare const checkout: OrchestrationDefinition<{ readonly amount: number }, string>;
declare const cleanUp: OrchestrationDefinition<void, void>;
declare const look: OrchestrationDefinition<number | undefined, boolean>;
declare const approval: EventDefinition<{ readonly ok: boolean }>;
declare const ping: EventDefinition<void>;

// Starting
expectTypeOf(client.start(checkout, { input: { amount: 1 } })).resolves.toEqualTypeOf<OrchestrationHandle<string>>();
expectTypeOf(client.start(cleanUp)).resolves.toEqualTypeOf<OrchestrationHandle<void>>();
expectTypeOf(client.start(cleanUp, { delay: "3d" })).resolves.toEqualTypeOf<OrchestrationHandle<void>>();
expectTypeOf(client.start(look)).resolves.toEqualTypeOf<OrchestrationHandle<boolean>>();
expectTypeOf(client.start(look, { input: 3 })).resolves.toEqualTypeOf<OrchestrationHandle<boolean>>();
expectTypeOf(client.start("Checkout", { input: 1 })).resolves.toEqualTypeOf<OrchestrationHandle<unknown>>();
expectTypeOf(client.start<string>("Checkout")).resolves.toEqualTypeOf<OrchestrationHandle<string>>();
// @ts-expect-error the input is missing
client.start(checkout);
// @ts-expect-error the input is missing
client.start(checkout, { instanceId: "order-1" });
// @ts-expect-error the input is of another type
client.start(checkout, { input: "1" });
// @ts-expect-error it takes no input
client.start(cleanUp, { input: 1 });
// @ts-expect-error the input is of another type, though it may be left out
client.start(look, { input: "three" });
// @ts-expect-error there is no such option
client.start(checkout, { input: { amount: 1 }, id: "order-1" });
// @ts-expect-error there is no such choice
client.start(cleanUp, { ifExists: "replace" });

// The input is of the type that its schema makes. Where the schema transforms, that is not the type that it takes and
// that a start sends: a known gap. What the types allow here is refused when it runs, and the other way round.
const transformed = orchestration({ name: "T", input: z.string().transform(Number) });
client.start(transformed, { input: 12 });
// @ts-expect-error should be allowed
client.start(transformed, { input: "12" });

// Handles
declare const handle: OrchestrationHandle<string>;
expectTypeOf(handle.result()).resolves.toEqualTypeOf<string>();
expectTypeOf(
  handle.result({ timeoutMs: 1_000, signal: new AbortController().signal }),
).resolves.toEqualTypeOf<string>();
expectTypeOf(client.getHandle(checkout, "order-1")).toEqualTypeOf<OrchestrationHandle<string>>();
expectTypeOf(client.getHandle("order-1")).toEqualTypeOf<OrchestrationHandle<unknown>>();
expectTypeOf(client.getHandle<number>("Count", "count-1")).toEqualTypeOf<OrchestrationHandle<number>>();
expectTypeOf(handle.getKv<number>("key")).resolves.toEqualTypeOf<number | undefined>();
expectTypeOf(handle.waitForKv<number>("key")).resolves.toEqualTypeOf<number>();
// @ts-expect-error there is no such option
handle.result({ timeout: "1s" });
// @ts-expect-error an instance keeps its name
handle.instanceId = "order-2";

// Events
expectTypeOf(client.raiseEvent("order-1", approval, { ok: true })).resolves.toEqualTypeOf<void>();
expectTypeOf(client.enqueueEvent("order-1", approval, { ok: true })).resolves.toEqualTypeOf<void>();
client.raiseEvent("order-1", ping);
client.raiseEvent("order-1", "anything", 1);
handle.enqueueEvent(approval, { ok: true });
// @ts-expect-error the data is missing
client.raiseEvent("order-1", approval);
// @ts-expect-error the data is of another type
client.enqueueEvent("order-1", approval, { ok: "yes" });
// @ts-expect-error it carries nothing
client.raiseEvent("order-1", ping, 1);
// @ts-expect-error the data is of another type
handle.raiseEvent(approval, 1);

// A status tells what there is to know.
client.getStatus("order-1").then((status) => {
  expectTypeOf(status.status).toEqualTypeOf<"NotFound" | "Pending" | "Running" | "Completed" | "Failed">();
  if (status.status === "Completed") expectTypeOf(status).toEqualTypeOf<CompletedStatus>();
  if (status.status === "Failed") expectTypeOf(status.details).toEqualTypeOf<ErrorDetails>();
  if (status.status !== "NotFound") expectTypeOf(status).toEqualTypeOf<KnownStatus>();
  // @ts-expect-error nothing is known of an instance that does not exist
  return status.customStatus;
});
expectTypeOf(client.waitForOrchestration("order-1")).resolves.toEqualTypeOf<EndedStatus>();
expectTypeOf<EndedStatus>().toEqualTypeOf<CompletedStatus | FailedStatus>();

// Histories
expectTypeOf(client.readHistory("order-1")).resolves.toEqualTypeOf<readonly Event[]>();
client.readHistory("order-1").then(([first]) => {
  if (first?.type !== "ActivityScheduled") return;
  expectTypeOf(first).toExtend<EventOf<"ActivityScheduled">>();
  expectTypeOf(first.name).toEqualTypeOf<string>();
  // @ts-expect-error what is scheduled has no result yet
  expectTypeOf(first.result);
});
// @ts-expect-error there is no such event
expectTypeOf<EventOf<"ActivityStarted">>();
