// testing/mock-activity.ts — an activity that does what a test says, and remembers how it was called.

import { type ActivityDefinition, activity } from "../define.js";
import { InvalidInputError } from "../errors.js";
import type { ActivityContext } from "../runtime/activity-context.js";

/** One run of a mocked activity. After a crash there is another one, with the same key and a higher attempt. */
export interface MockedCall<I> {
  readonly input: I;
  readonly instanceId: string;
  /** 1 for the first try of this call; counts crashes, not the orchestration's own retries. */
  readonly attempt: number;
  /** The same for every attempt of one call, and for no other call. */
  readonly idempotencyKey: string;
}

/** What stands in for an activity: gets what the activity would get. */
export type MockImplementation<I, O> = (ctx: ActivityContext, input: I) => Promise<O> | O;

/** An activity for tests: register it in place of the real one. `mockActivity` makes one. */
export interface MockedActivity<I = unknown, O = unknown> extends ActivityDefinition<I, O> {
  /** How it was called, in order, failed calls included. */
  readonly calls: readonly MockedCall<I>[];
  /** From the next call on, does this instead. */
  implement(implementation: MockImplementation<I, O>): void;
  /** The next call fails with this error; called twice, the next two do. A text is a message. */
  failNext(error: Error | string): void;
}

/**
 * Replaces an activity by what a test wants of it. Names, types and schemas stay those of the activity.
 *
 * @throws DUROXIDE_INVALID_INPUT for what is no activity, or an implementation that is no function
 * @example
 * const charged = mockActivity(charge, (ctx, order) => `receipt for ${order.id}`);
 * charged.failNext("card declined");
 * const world = await TestWorld.open();
 * await world.start({ orchestrations: [checkout], activities: [reserve, charged] });
 */
export function mockActivity<I = unknown, O = unknown>(
  target: ActivityDefinition<I, O> | string,
  implementation: MockImplementation<I, O>,
): MockedActivity<I, O> {
  if (typeof target !== "string" && target?.kind !== "activity") {
    throw new InvalidInputError("mockActivity: give the activity that is replaced, or its name.");
  }
  checkImplementation(implementation);
  const calls: MockedCall<I>[] = [];
  const failures: { readonly error: unknown }[] = [];
  let current = implementation;
  const run: MockImplementation<I, O> = async (ctx, input) => {
    calls.push({ input, instanceId: ctx.instanceId, attempt: ctx.attempt, idempotencyKey: ctx.idempotencyKey });
    const failure = failures.shift();
    if (failure !== undefined) throw failure.error;
    return current(ctx, input);
  };
  return Object.freeze({
    ...(typeof target === "string" ? activity<I, O>(target, run) : { ...target, isDeclaration: false, run }),
    calls,
    implement(next: MockImplementation<I, O>): void {
      checkImplementation(next);
      current = next;
    },
    failNext(error: Error | string): void {
      failures.push({ error: typeof error === "string" ? new Error(error) : error });
    },
  });
}

function checkImplementation(implementation: unknown): void {
  if (typeof implementation === "function") return;
  throw new InvalidInputError("mockActivity: the implementation must be a function, such as (ctx, input) => output.");
}
