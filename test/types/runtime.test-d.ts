// A runtime and what surrounds it: options, observers, errors and stores. How this is checked: see types.test.ts.

import {
  type ActivityContext,
  Client,
  type Clock,
  type DEFAULT_RUNTIME_OPTIONS,
  type DuroxideError,
  type ErrorCode,
  type ErrorDetails,
  type Fact,
  logTo,
  type NondeterministicCallError,
  type Observer,
  OrchestrationFailedError,
  type Provider,
  ProviderError,
  Runtime,
  type RuntimeOptions,
  type ShutdownOutcome,
} from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";
import { type ProviderOperation, ProviderWrapper } from "duroxide-ts/provider";
import { SqliteProvider } from "duroxide-ts/sqlite";
import { VirtualClock } from "duroxide-ts/testing";
import { expectTypeOf } from "vitest";

declare const provider: Provider;

// Starting and stopping
expectTypeOf(Runtime.start({ provider })).resolves.toEqualTypeOf<Runtime>();
expectTypeOf<Runtime>().toExtend<AsyncDisposable>();
expectTypeOf<Runtime["shutdown"]>().returns.resolves.toEqualTypeOf<ShutdownOutcome>();
expectTypeOf<ShutdownOutcome>().toEqualTypeOf<"drained" | "forced">();
// @ts-expect-error there is nothing to run on
Runtime.start({ orchestrations: [] });
// @ts-expect-error there is no such option
Runtime.start({ provider, concurrency: 4 });
// @ts-expect-error a function is no definition
Runtime.start({ provider, activities: [async () => 1] });
// @ts-expect-error a name is no definition
Runtime.start({ provider, orchestrations: ["Checkout"] });
// @ts-expect-error a runtime is started, not made
new Runtime();

// Every option may be left out, and has a default.
expectTypeOf({}).toExtend<RuntimeOptions>();
expectTypeOf<keyof typeof DEFAULT_RUNTIME_OPTIONS>().toEqualTypeOf<keyof RuntimeOptions>();

Runtime.start({ provider, determinismGuard: false });
// @ts-expect-error it is on or off
Runtime.start({ provider, determinismGuard: "development" });

// Observers learn facts of known types.
const observer: Observer = (fact) => {
  expectTypeOf(fact).toEqualTypeOf<Fact>();
  if (fact.type === "turn-committed") expectTypeOf(fact.newEvents).toEqualTypeOf<number>();
  if (fact.type === "nondeterministic-call") expectTypeOf(fact.error).toEqualTypeOf<NondeterministicCallError>();
  if (fact.type === "orchestration-ended") expectTypeOf(fact.details).toEqualTypeOf<ErrorDetails | null>();
  // @ts-expect-error there is no such fact
  return fact.type === "turn-begun";
};
Runtime.start({
  provider,
  observers: [observer, logTo((record) => expectTypeOf(record.message).toEqualTypeOf<string>())],
});
// @ts-expect-error there is no such level
logTo(() => {}, { level: "trace" });

// Errors are told apart by their code.
expectTypeOf<DuroxideError["code"]>().toEqualTypeOf<ErrorCode>();
declare const caught: ProviderError | OrchestrationFailedError;
if (caught.code === "DUROXIDE_PROVIDER") expectTypeOf(caught).toEqualTypeOf<ProviderError>();
else expectTypeOf(caught.details).toEqualTypeOf<ErrorDetails>();
expectTypeOf(new ProviderError("transient", "fetch", "busy").retryable).toEqualTypeOf<boolean>();
expectTypeOf(OrchestrationFailedError).instance.toExtend<Error>();
// @ts-expect-error there is no such kind
new ProviderError("fatal", "fetch", "broken");
// @ts-expect-error there is no such code
expectTypeOf(caught.code === "DUROXIDE_UNKNOWN");

// Recorded failures are told apart by their category.
declare const details: ErrorDetails;
if (details.category === "poison") expectTypeOf(details.attemptCount).toEqualTypeOf<number>();
// @ts-expect-error not every failure has a kind
expectTypeOf(details.kind);

// Activities know their call.
expectTypeOf<ActivityContext["signal"]>().toEqualTypeOf<AbortSignal>();
expectTypeOf<ActivityContext["sessionId"]>().toEqualTypeOf<string | null>();
expectTypeOf<ActivityContext["client"]>().toEqualTypeOf<Client>();

// Stores
expectTypeOf(new MemoryProvider()).toExtend<Provider>();
expectTypeOf(SqliteProvider.open("app.db")).resolves.toExtend<Provider>();
expectTypeOf(SqliteProvider.open("app.db")).resolves.toExtend<AsyncDisposable>();
expectTypeOf(new Client(new MemoryProvider({ clock: new VirtualClock() }))).toEqualTypeOf<Client>();
expectTypeOf(VirtualClock).instance.toExtend<Clock>();
// @ts-expect-error there is no such durability
SqliteProvider.open("app.db", { durability: "none" });
// @ts-expect-error there is no such option
new MemoryProvider({ maxInstances: 3 });
// @ts-expect-error a path is no provider
new Client("app.db");

// A wrapped provider sees each operation by its name.
export class Counting extends ProviderWrapper {
  protected override around<T>(operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    expectTypeOf(operation).toExtend<keyof Provider>();
    // @ts-expect-error there is no such operation
    if (operation === "fetchNothing") return call();
    return super.around(operation, call);
  }
}
