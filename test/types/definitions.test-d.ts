// Definitions carry the types of what goes in and what comes out. How this is checked: see types.test.ts.

import {
  type ActivityContext,
  type ActivityDefinition,
  activity,
  type EventDefinition,
  event,
  type OrchestrationContext,
  type OrchestrationDefinition,
  orchestration,
} from "duroxide-ts";
import { expectTypeOf } from "vitest";
import { z } from "zod";

interface Order {
  readonly id: string;
  readonly amount: number;
}

// An activity's types are those of its function, whether it is async or not.
expectTypeOf(activity("A", async (_ctx, order: Order) => order.amount)).toEqualTypeOf<
  ActivityDefinition<Order, number>
>();
expectTypeOf(activity("A", (_ctx, order: Order) => order.id)).toEqualTypeOf<ActivityDefinition<Order, string>>();
expectTypeOf(activity("A", async (_ctx, tries?: number) => tries ?? 3)).toEqualTypeOf<
  ActivityDefinition<number | undefined, number>
>();
activity("A", async (ctx) => expectTypeOf(ctx).toEqualTypeOf<ActivityContext>());

// Without an input it takes none; without a result it has none.
expectTypeOf(activity("A", async () => 1)).toEqualTypeOf<ActivityDefinition<void, number>>();
expectTypeOf(activity("A", async () => {})).toEqualTypeOf<ActivityDefinition<void, void>>();

// A declaration says its types itself.
expectTypeOf(activity<Order, string>("A")).toEqualTypeOf<ActivityDefinition<Order, string>>();
expectTypeOf(activity("A")).toEqualTypeOf<ActivityDefinition<void, void>>();
expectTypeOf(orchestration<Order, string>("O")).toEqualTypeOf<OrchestrationDefinition<Order, string>>();

// Who implements a declaration is held to its types.
expectTypeOf(activity(activity<Order, string>("A"), (_ctx, order) => order.id)).toEqualTypeOf<
  ActivityDefinition<Order, string>
>();
expectTypeOf(orchestration(orchestration<Order, string>("O"), async (_ctx, order) => order.id)).toEqualTypeOf<
  OrchestrationDefinition<Order, string>
>();
// @ts-expect-error: the declaration promises a text.
activity(activity<Order, string>("A"), (_ctx, order) => order.amount);
// @ts-expect-error: an orchestration is no declaration of an activity.
activity(orchestration<Order, string>("O"), () => "text");

// An orchestration's types are those of its function, too.
expectTypeOf(orchestration("O", async (_ctx, order: Order) => order.amount)).toEqualTypeOf<
  OrchestrationDefinition<Order, number>
>();
expectTypeOf(orchestration("O", async () => {})).toEqualTypeOf<OrchestrationDefinition<void, void>>();
expectTypeOf(orchestration({ name: "O", version: "2.0.0" }, async (_ctx, id: string) => id)).toEqualTypeOf<
  OrchestrationDefinition<string, string>
>();
orchestration("O", async (ctx) => {
  expectTypeOf(ctx).toEqualTypeOf<OrchestrationContext>();
});
// What goes on as new has no result of its own.
expectTypeOf(
  orchestration("O", async (ctx, count: number) => (count > 9 ? count : ctx.continueAsNew(count + 1))),
).toEqualTypeOf<OrchestrationDefinition<number, number>>();

// A schema says the type, of an input, of an output and of what an event carries.
const orderSchema = z.object({ id: z.string(), amount: z.number() });
const fromSchema = activity({ name: "A", input: orderSchema, output: z.number() }, async (_ctx, order) => {
  expectTypeOf(order).toEqualTypeOf<{ id: string; amount: number }>();
  return order.amount;
});
expectTypeOf(fromSchema).toEqualTypeOf<ActivityDefinition<{ id: string; amount: number }, number>>();
expectTypeOf(orchestration({ name: "O", input: z.string(), output: z.date() })).toEqualTypeOf<
  OrchestrationDefinition<string, Date>
>();
expectTypeOf(event("e", { schema: z.object({ ok: z.boolean() }) })).toEqualTypeOf<EventDefinition<{ ok: boolean }>>();

// Where a schema transforms, the type is that of what it makes: what the function receives.
activity({ name: "A", input: z.string().transform(Number) }, async (_ctx, amount) => {
  expectTypeOf(amount).toEqualTypeOf<number>();
});

// An event says what it carries.
expectTypeOf(event<{ readonly ok: boolean }>("e")).toEqualTypeOf<EventDefinition<{ readonly ok: boolean }>>();
expectTypeOf(event<void>("e")).toEqualTypeOf<EventDefinition<void>>();
expectTypeOf(event("e")).toEqualTypeOf<EventDefinition<unknown>>();

// Lists of definitions of different types are lists of definitions.
expectTypeOf([activity("A", async () => 1), fromSchema]).toExtend<readonly ActivityDefinition[]>();
expectTypeOf([orchestration("O", async (_ctx, id: string) => id)]).toExtend<readonly OrchestrationDefinition[]>();

// Misuse
// @ts-expect-error a definition has a name
activity({}, async () => 1);
// @ts-expect-error an orchestration is async
orchestration("O", () => 1);
// @ts-expect-error an activity takes its context and one input
activity("A", async (_ctx, first: string, second: string) => first + second);
// @ts-expect-error there is no such option
activity({ name: "A", version: "1.0.0" }, async () => 1);
// @ts-expect-error a version is a text
orchestration({ name: "O", version: 2 }, async () => 1);
// @ts-expect-error a schema is a Standard Schema
activity({ name: "A", input: { type: "string" } }, async () => 1);
// @ts-expect-error the output is not what its schema says
activity({ name: "A", output: z.number() }, async () => "text");
// @ts-expect-error an activity is no orchestration
const misplaced: OrchestrationDefinition = activity("A", async () => 1);
// @ts-expect-error what a definition says stays as it is
fromSchema.name = "B";

export { misplaced };
