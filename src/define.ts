// define.ts — orchestrations, activities and events as values that carry their types.
//
// A definition without an implementation is a declaration: enough for whoever calls, useless to whoever runs.

import type { OrchestrationContext } from "./engine/orchestration-context.js";
import { InvalidInputError, messageOf } from "./errors.js";
import { checkName } from "./history/limits.js";
import { checkOptions, isString } from "./options.js";
import type { ActivityContext } from "./runtime/activity-context.js";

/** The part of a Standard Schema (zod, valibot, arktype …) that duroxide-ts uses. */
export interface Schema<T> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
  };
}

/** What a schema says of a value: the value as it makes it, or what is wrong with it. */
export type SchemaResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<SchemaIssue> };

/** One thing that a schema finds wrong, and where. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** An activity: an async function that does the work. Runs at least once; its result is recorded exactly once. */
export interface ActivityDefinition<I = unknown, O = unknown> {
  readonly kind: "activity";
  readonly name: string;
  readonly input: Schema<I> | null;
  readonly output: Schema<O> | null;
  /** Whether it has no function here. Enough to call it, but not to register it. */
  readonly isDeclaration: boolean;
  run(ctx: ActivityContext, input: I): Promise<O> | O;
}

/** An orchestration: an async function that coordinates, re-run from its history after a crash. */
export interface OrchestrationDefinition<I = unknown, O = unknown> {
  readonly kind: "orchestration";
  readonly name: string;
  /** Null: 1.0.0 where it is registered, and the registry's choice where it is called. */
  readonly version: string | null;
  readonly input: Schema<I> | null;
  readonly output: Schema<O> | null;
  /** Whether it has no function here. Enough to start it, but not to register it. */
  readonly isDeclaration: boolean;
  run(ctx: OrchestrationContext, input: I): Promise<O>;
}

/** An event or queue that outsiders send to and an orchestration waits on. */
export interface EventDefinition<T = unknown> {
  readonly kind: "event";
  readonly name: string;
  readonly schema: Schema<T> | null;
}

/** What an activity is called, and which schemas its values must fit. */
export interface ActivityOptions<I = unknown, O = unknown> {
  readonly name: string;
  /** Checked where the activity is called, applied where it runs. @default none: whatever JSON can carry */
  readonly input?: Schema<I>;
  /** Checked where the activity runs, applied where its result arrives. @default none */
  readonly output?: Schema<O>;
}

/** What an orchestration is called, in which version, and which schemas its values must fit. */
export interface OrchestrationOptions<I = unknown, O = unknown> {
  readonly name: string;
  /** Semantic version. Several versions of one name may be registered side by side. @default "1.0.0" */
  readonly version?: string;
  /** Checked where the orchestration is started, applied where it runs. @default none: whatever JSON can carry */
  readonly input?: Schema<I>;
  /** Checked where the orchestration runs, applied where its result arrives. @default none */
  readonly output?: Schema<O>;
}

/**
 * Defines an activity; without a function, declares one that is implemented elsewhere. Given a declaration, implements it:
 * its types and schemas are those that callers know.
 *
 * @throws DUROXIDE_INVALID_INPUT for an empty or over-long name, or a function that is none
 * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown, or a schema that is none
 * @example
 * const charge = activity("Charge", async (ctx, order: { amount: number }) => `paid ${order.amount}`);
 * const ship = activity<string, void>("Ship"); // shared with callers, who need no more
 * const shipping = activity(ship, async (ctx, parcel) => ctx.trace.info(`on its way: ${parcel}`)); // in the worker
 */
export function activity<I = void, O = void>(
  target: string | ActivityOptions<I, O> | ActivityDefinition<I, O>,
  run?: (ctx: ActivityContext, input: I) => Promise<O> | O,
): ActivityDefinition<I, O> {
  checkNotFunction("activity", "Charge", target);
  const options: ActivityOptions<I, O> =
    typeof target === "string"
      ? { name: target }
      : isDefinition<ActivityDefinition<I, O>>("activity", target)
        ? saidBy(target)
        : target;
  const name = checkName(options?.name, "activity name");
  checkOptions(`activity '${name}'`, options, ACTIVITY_CHECKS);
  checkFunction("activity", name, run);
  return Object.freeze({
    kind: "activity" as const,
    name,
    input: options.input ?? null,
    output: options.output ?? null,
    isDeclaration: run === undefined,
    run: run ?? (() => notImplemented("activity", name)),
  });
}

/**
 * Defines an orchestration; without a function, declares one that is implemented elsewhere. Given a declaration, implements
 * it: its types and schemas are those that callers know.
 *
 * The function must be deterministic: everything it learns comes through `ctx`. It may use `await`, loops,
 * `try/catch`, `Promise.all` and friends on what `ctx` returns.
 *
 * @throws DUROXIDE_INVALID_INPUT for an empty or over-long name, or a function that is none
 * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown, or a schema that is none
 * @example
 * const greet = orchestration("Greet", async (ctx, name: string) => ctx.scheduleActivity<string>("Hello", name));
 */
export function orchestration<I = void, O = void>(
  target: string | OrchestrationOptions<I, O> | OrchestrationDefinition<I, O>,
  run?: (ctx: OrchestrationContext, input: I) => Promise<O>,
): OrchestrationDefinition<I, O> {
  checkNotFunction("orchestration", "Checkout", target);
  const options: OrchestrationOptions<I, O> =
    typeof target === "string"
      ? { name: target }
      : isDefinition<OrchestrationDefinition<I, O>>("orchestration", target)
        ? { ...saidBy(target), ...(target.version === null ? {} : { version: target.version }) }
        : target;
  const name = checkName(options?.name, "orchestration name");
  checkOptions(`orchestration '${name}'`, options, ORCHESTRATION_CHECKS);
  checkFunction("orchestration", name, run);
  return Object.freeze({
    kind: "orchestration" as const,
    name,
    version: options.version ?? null,
    input: options.input ?? null,
    output: options.output ?? null,
    isDeclaration: run === undefined,
    run: run ?? (() => notImplemented("orchestration", name)),
  });
}

/**
 * Names an event or a queue, with the type of what it carries.
 *
 * @throws DUROXIDE_INVALID_INPUT for an empty or over-long name
 * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown, or a schema that is none
 * @example
 * const approval = event<{ ok: boolean }>("approval");
 */
export function event<T = unknown>(name: string, options: { readonly schema?: Schema<T> } = {}): EventDefinition<T> {
  checkName(name, "event name");
  checkOptions(`event '${name}'`, options, { schema: isSchema });
  return Object.freeze({ kind: "event" as const, name, schema: options.schema ?? null });
}

/** The arguments of a call: an input that may be left out where the callee takes none. */
export type CallArguments<I, Options> = undefined extends I
  ? [input?: NoInfer<I>, options?: Options]
  : [input: NoInfer<I>, options?: Options];

/** What a definition was made of. */
function saidBy<I, O>({ name, input, output }: ActivityDefinition<I, O> | OrchestrationDefinition<I, O>) {
  return { name, ...(input === null ? {} : { input }), ...(output === null ? {} : { output }) };
}

function isDefinition<D extends { readonly kind: string }>(kind: D["kind"], target: object): target is D {
  return typeof target === "object" && target !== null && "kind" in target && target.kind === kind;
}

function isSchema(value: unknown): string | null {
  const standard = (value as Partial<Schema<unknown>> | null)?.["~standard"];
  return typeof standard?.validate === "function"
    ? null
    : "must be a Standard Schema, such as one of zod, valibot or arktype";
}

const ACTIVITY_CHECKS = { name: isString, input: isSchema, output: isSchema };
/** What a version must look like is told where it is registered, with all other problems. */
const ORCHESTRATION_CHECKS = { ...ACTIVITY_CHECKS, version: isString };

function checkNotFunction(kind: string, example: string, target: unknown): void {
  if (typeof target !== "function") return;
  throw new InvalidInputError(`${kind}: give a name first: ${kind}("${example}", async (ctx, input) => …).`);
}

function checkFunction(kind: string, name: string, run: unknown): void {
  if (run === undefined || typeof run === "function") return;
  throw new InvalidInputError(`${kind} '${name}': its implementation must be a function, not ${messageOf(run)}.`);
}

function notImplemented(kind: string, name: string): never {
  throw new InvalidInputError(`The ${kind} '${name}' is only declared here. Register its implementation instead.`);
}
