// What an orchestration asks for has the type of what it gets. How this is checked: see types.test.ts.

import {
  type ActivityDefinition,
  type DurableTask,
  type EventDefinition,
  type OrchestrationContext,
  type OrchestrationDefinition,
  orchestration,
} from "duroxide-ts";
import { expectTypeOf } from "vitest";

declare const ctx: OrchestrationContext;
declare const charge: ActivityDefinition<{ readonly amount: number }, string>;
declare const cleanUp: ActivityDefinition<void, void>;
declare const look: ActivityDefinition<number | undefined, boolean>;
declare const child: OrchestrationDefinition<string, number>;
declare const sweep: OrchestrationDefinition<void, void>;
declare const approval: EventDefinition<{ readonly ok: boolean }>;

// Activities
expectTypeOf(ctx.scheduleActivity(charge, { amount: 1 })).toEqualTypeOf<DurableTask<string>>();
expectTypeOf(ctx.scheduleActivity(charge, { amount: 1 }, { tag: "gpu" })).toEqualTypeOf<DurableTask<string>>();
expectTypeOf(ctx.scheduleActivity(cleanUp)).toEqualTypeOf<DurableTask<void>>();
expectTypeOf(ctx.scheduleActivity(cleanUp, undefined, { sessionId: "s" })).toEqualTypeOf<DurableTask<void>>();
expectTypeOf(ctx.scheduleActivity(look)).toEqualTypeOf<DurableTask<boolean>>();
expectTypeOf(ctx.scheduleActivity(look, 3)).toEqualTypeOf<DurableTask<boolean>>();
expectTypeOf(ctx.scheduleActivity("Charge", 1)).toEqualTypeOf<DurableTask<unknown>>();
expectTypeOf(ctx.scheduleActivity<string>("Charge")).toEqualTypeOf<DurableTask<string>>();
// @ts-expect-error the input is missing
ctx.scheduleActivity(charge);
// @ts-expect-error the input is of another type
ctx.scheduleActivity(charge, 1);
// @ts-expect-error the input has a part too many
ctx.scheduleActivity(charge, { amount: 1, currency: "EUR" });
// @ts-expect-error it takes no input
ctx.scheduleActivity(cleanUp, 1);
// @ts-expect-error the input is of another type, though it may be left out
ctx.scheduleActivity(look, "three");
// @ts-expect-error there is no such option
ctx.scheduleActivity(charge, { amount: 1 }, { retries: 3 });
// @ts-expect-error there is no such way to wait
ctx.scheduleActivity(charge, { amount: 1 }, { retry: { backoff: { kind: "random" } } });
// @ts-expect-error an orchestration is no activity
ctx.scheduleActivity(child, "x");

// Sub-orchestrations
expectTypeOf(ctx.scheduleSubOrchestration(child, "x")).toEqualTypeOf<DurableTask<number>>();
expectTypeOf(ctx.scheduleSubOrchestration(child, "x", { instanceId: "c-1" })).toEqualTypeOf<DurableTask<number>>();
expectTypeOf(ctx.scheduleSubOrchestration(sweep)).toEqualTypeOf<DurableTask<void>>();
expectTypeOf(ctx.scheduleSubOrchestration("Child", "x")).toEqualTypeOf<DurableTask<unknown>>();
expectTypeOf(ctx.scheduleSubOrchestration<number>("Child")).toEqualTypeOf<DurableTask<number>>();
// @ts-expect-error the input is missing
ctx.scheduleSubOrchestration(child);
// @ts-expect-error the input is of another type
ctx.scheduleSubOrchestration(child, 1);
// @ts-expect-error that is an option of activities
ctx.scheduleSubOrchestration(child, "x", { tag: "gpu" });
// @ts-expect-error an activity is no orchestration
ctx.scheduleSubOrchestration(charge, { amount: 1 });

// Detached orchestrations
expectTypeOf(ctx.startOrchestration(child, { instanceId: "d-1", input: "x" })).toEqualTypeOf<void>();
expectTypeOf(ctx.startOrchestration("Child", { instanceId: "d-1", input: 1 })).toEqualTypeOf<void>();
// @ts-expect-error a detached orchestration is named by whoever starts it
ctx.startOrchestration(child, { input: "x" });
// @ts-expect-error the input is of another type
ctx.startOrchestration(child, { instanceId: "d-1", input: 1 });

// Timers, events and mailboxes
expectTypeOf(ctx.scheduleTimer("3d")).toEqualTypeOf<DurableTask<void>>();
expectTypeOf(ctx.scheduleTimer(1_000)).toEqualTypeOf<DurableTask<void>>();
expectTypeOf(ctx.waitForEvent(approval)).toEqualTypeOf<DurableTask<{ readonly ok: boolean }>>();
expectTypeOf(ctx.waitForEvent("approval")).toEqualTypeOf<DurableTask<unknown>>();
expectTypeOf(ctx.waitForEvent<number>("approval")).toEqualTypeOf<DurableTask<number>>();
expectTypeOf(ctx.dequeueEvent(approval)).toEqualTypeOf<DurableTask<{ readonly ok: boolean }>>();
expectTypeOf(ctx.dequeueEvent("approval")).toEqualTypeOf<DurableTask<unknown>>();
// @ts-expect-error a point in time is no duration
ctx.scheduleTimer(new Date());
// @ts-expect-error an activity is no event
ctx.waitForEvent(charge);

// A race in places: the place tells the type of the value.
const byIndex = ctx.race([ctx.scheduleActivity(charge, { amount: 1 }), ctx.waitForEvent(approval), () => 3]);
expectTypeOf(byIndex).resolves.toEqualTypeOf<
  | { readonly index: 0; readonly value: string }
  | { readonly index: 1; readonly value: { readonly ok: boolean } }
  | { readonly index: 2; readonly value: number }
>();
byIndex.then((first) => {
  if (first.index === 0) expectTypeOf(first.value).toEqualTypeOf<string>();
  // @ts-expect-error there are three places
  return first.index === 3;
});
// A race of a list whose length is not known
declare const many: DurableTask<string>[];
expectTypeOf(ctx.race(many)).resolves.toEqualTypeOf<{ readonly index: number; readonly value: string }>();

// A race by name: the name tells the type of the value.
const byName = ctx.race({ answer: ctx.waitForEvent(approval), late: ctx.scheduleTimer("3d"), work: async () => 3 });
expectTypeOf(byName).resolves.toEqualTypeOf<
  | { readonly winner: "answer"; readonly value: { readonly ok: boolean } }
  // biome-ignore lint/suspicious/noConfusingVoidType: this is what a timer brings.
  | { readonly winner: "late"; readonly value: void }
  | { readonly winner: "work"; readonly value: number }
>();
byName.then((first) => {
  if (first.winner === "answer") expectTypeOf(first.value.ok).toEqualTypeOf<boolean>();
  // @ts-expect-error nobody of that name takes part
  return first.winner === "early";
});
// @ts-expect-error a number is nothing to wait for
ctx.race([1, 2]);
// @ts-expect-error a number is nothing to wait for
ctx.race({ one: 1 });

// All: a tuple keeps its places, a list its element, a record its names.
expectTypeOf(ctx.all([ctx.scheduleActivity(charge, { amount: 1 }), () => 3])).resolves.toEqualTypeOf<
  [string, number]
>();
expectTypeOf(ctx.all(many)).resolves.toEqualTypeOf<string[]>();
expectTypeOf(ctx.all([1, 2].map((amount) => ctx.scheduleActivity(charge, { amount })))).resolves.toEqualTypeOf<
  string[]
>();
expectTypeOf(ctx.all({ paid: ctx.scheduleActivity(charge, { amount: 1 }), n: async () => 3 })).resolves.toEqualTypeOf<{
  paid: string;
  n: number;
}>();
expectTypeOf(ctx.all([])).resolves.toEqualTypeOf<[]>();
// @ts-expect-error a text is nothing to wait for
ctx.all(["text"]);

// A task is a promise that can be given up; so are the combinations.
expectTypeOf(ctx.scheduleTimer("1s")).toExtend<Promise<void>>();
expectTypeOf(ctx.all([ctx.scheduleTimer("1s")]).cancel).toEqualTypeOf<() => void>();
expectTypeOf(Promise.all([ctx.newGuid(), ctx.utcNow()])).resolves.toEqualTypeOf<[string, number]>();

// Everything else that it may ask for
expectTypeOf(ctx.utcNow()).resolves.toEqualTypeOf<number>();
expectTypeOf(ctx.newGuid()).resolves.toEqualTypeOf<string>();
expectTypeOf(ctx.kv.get("key")).toEqualTypeOf<unknown>();
expectTypeOf(ctx.kv.get<number>("key")).toEqualTypeOf<number | undefined>();
expectTypeOf(ctx.kv.getText("key")).toEqualTypeOf<string | undefined>();
expectTypeOf(ctx.readKv<number>("other", "key")).resolves.toEqualTypeOf<number | null>();
expectTypeOf(ctx.customStatus).toEqualTypeOf<string | null>();
expectTypeOf(ctx.continueAsNew({ round: 2 }, { version: "2.0.0" })).toEqualTypeOf<DurableTask<never>>();
// @ts-expect-error a status is a text
ctx.setCustomStatus({ done: 3 });
// @ts-expect-error it is set by its method
ctx.customStatus = "done";
// @ts-expect-error a text is stored as it is
ctx.kv.setText("key", 1);

// The result of an orchestration is what its function returns, through everything above.
const checkout = orchestration("Checkout", async (ctx, amount: number) => {
  const receipt = await ctx.scheduleActivity(charge, { amount });
  const answer = await ctx.race({ approval: ctx.waitForEvent(approval), late: ctx.scheduleTimer("3d") });
  return answer.winner === "approval" && answer.value.ok ? receipt : null;
});
expectTypeOf(checkout).toEqualTypeOf<OrchestrationDefinition<number, string | null>>();
