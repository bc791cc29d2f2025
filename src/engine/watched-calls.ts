// engine/watched-calls.ts — the calls whose answers no history records: the one list of them, and the one way to notice
// that orchestration code makes one.
//
//   L1. Only code in whose location there is a watch is noticed. Whoever else is in the process gets what he would have
//       got, and `Date` is to him the object that it always was.
//   L2. All of it is in place while anybody needs it, and gone afterwards. What somebody else puts there meanwhile, such as
//       fake timers, stays; if he puts back what he found, our own, that hands every call on. `Date` itself is touched only
//       during turns: the mock timers of node:test want to find it as a plain property.
//   L3. What code writes to the console is no such call, even where a test runner notes when it was written. Nor is what a
//       watched call does within. Nor is what the framework does: it tells observers outside of code (scope.ts), and its
//       clock says so.
//
// Not noticed is what a module took hold of when it was loaded: `const { now } = Date`, a subclass of `Date`. Nor is what
// nobody can replace: under `node --frozen-intrinsics` that is `Date` and `Math`.

import nodeCrypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import { isClockLooking } from "../clock.js";
import { type CodeLocation, codeLocation } from "./scope.js";

export type CallName =
  | "Date.now"
  | "new Date"
  | "performance.now"
  | "Math.random"
  | "crypto.randomUUID"
  | "crypto.getRandomValues"
  | "crypto.randomBytes"
  | "crypto.randomInt"
  | "crypto.randomFillSync"
  | "setTimeout"
  | "setInterval"
  | "setImmediate"
  | "scheduler.wait"
  | "fetch";

/** Something that orchestration code should not call, and what it should use instead. */
export interface WatchedCall {
  readonly name: CallName;
  readonly instead: "ctx.utcNow" | "ctx.newGuid" | "ctx.scheduleTimer" | "an activity";
}

/** Told of the watched calls of one execution's code. */
export interface CallWatch {
  /** Answers what the caller gets. `new Date` is answered with a time in milliseconds, as is its `real`. */
  called(call: WatchedCall, real: () => unknown, args: readonly unknown[]): unknown;
}

/** An execution, as the watch over its calls sees it. */
export interface WatchedExecution {
  /** Whether code runs in a turn and what it does counts: it has not ended. */
  readonly isDeciding: boolean;
  /** Whether nothing of the instance was recorded before this object: nothing is ever replayed here. */
  readonly isOfNewInstance: boolean;
  /** Ends the execution as if its function had thrown this here. */
  failAtOnce(error: Error): void;
}

type WatchedLocation = CodeLocation & { readonly watch: CallWatch };
type Call = (...args: readonly unknown[]) => unknown;
type PutBack = () => void;

interface Place extends WatchedCall {
  /** Undefined where the process has none: some take away globals. */
  readonly owner: object | undefined;
  readonly key: string;
}

const NEW_DATE: WatchedCall = { name: "new Date", instead: "ctx.utcNow" };

/** Where the calls are to be found, but for `new Date`. Looked up anew: somebody may have replaced `Date` or `performance`. */
function places(): readonly Place[] {
  const time = { instead: "ctx.utcNow" } as const;
  const chance = { instead: "ctx.newGuid" } as const;
  const { crypto, performance } = globalThis;
  return [
    { ...time, name: "Date.now", owner: Date, key: "now" },
    { ...time, name: "performance.now", owner: performance, key: "now" },
    { ...chance, name: "Math.random", owner: Math, key: "random" },
    { ...chance, name: "crypto.randomUUID", owner: crypto, key: "randomUUID" },
    { ...chance, name: "crypto.getRandomValues", owner: crypto, key: "getRandomValues" },
    { ...chance, name: "crypto.randomUUID", owner: nodeCrypto, key: "randomUUID" },
    { ...chance, name: "crypto.getRandomValues", owner: nodeCrypto, key: "getRandomValues" },
    { ...chance, name: "crypto.randomBytes", owner: nodeCrypto, key: "randomBytes" },
    { ...chance, name: "crypto.randomInt", owner: nodeCrypto, key: "randomInt" },
    { ...chance, name: "crypto.randomFillSync", owner: nodeCrypto, key: "randomFillSync" },
    ...[globalThis, timers, timersPromises].flatMap(timersOf),
    { instead: "ctx.scheduleTimer", name: "scheduler.wait", owner: timersPromises.scheduler, key: "wait" },
    { instead: "an activity", name: "fetch", owner: globalThis, key: "fetch" },
  ];
}

function timersOf(owner: object): readonly Place[] {
  const names = ["setTimeout", "setInterval", "setImmediate"] as const;
  return names.map((name) => ({ instead: "ctx.scheduleTimer", name, owner, key: name }));
}

let needs = 0;
let putAllBack: PutBack = () => {};

/** Begins to notice the calls. Returns the way to stop. */
export function watchCalls(): () => void {
  if (needs === 0) putAllBack = replaceAll();
  needs += 1;
  let isNeeded = true;
  return () => {
    if (!isNeeded) return;
    isNeeded = false;
    needs -= 1;
    if (needs === 0) putAllBack(); // L2
  };
}

function replaceAll(): PutBack {
  const consoleKeys = Object.keys(console);
  const putBacks = [
    ...places().flatMap((place) => replace(place.owner, place.key, (real) => watched(place, real))),
    ...consoleKeys.flatMap((key) => replace(console, key, unwatched)),
  ];
  syncBuiltinESMExports(); // For those who import functions of node:crypto and node:timers by name.
  return () => {
    for (const putBack of putBacks.reverse()) putBack();
    syncBuiltinESMExports();
  };
}

/** Where the code is that calls. Null: nobody watches it. L1 */
function watchedLocation(): WatchedLocation | null {
  const location = codeLocation.getStore();
  return location === undefined || location.watch === null ? null : (location as WatchedLocation);
}

/** It is the code's own work still, and whatever it leaves behind, but nobody watches. L3 */
function withoutWatch(location: CodeLocation, work: () => unknown): unknown {
  return codeLocation.run({ ...location, watch: null }, work);
}

/** Stands in for the function; whoever looks at it, such as a mock that counts, finds the function itself. */
function standIn(real: Call, apply: (self: unknown, args: readonly unknown[]) => unknown): Call {
  return new Proxy(real, { apply: (_real, self: unknown, args: unknown[]) => apply(self, args) });
}

function watched(call: WatchedCall, real: Call): Call {
  return standIn(real, (self, args) => {
    const location = watchedLocation();
    if (location === null || isClockLooking()) return Reflect.apply(real, self, args); // L1, L3
    return location.watch.called(call, () => withoutWatch(location, () => Reflect.apply(real, self, args)), args);
  });
}

function unwatched(real: Call): Call {
  return standIn(real, (self, args) => {
    const location = watchedLocation();
    if (location === null) return Reflect.apply(real, self, args);
    return withoutWatch(location, () => Reflect.apply(real, self, args)); // L3
  });
}

/** What stands behind functions of ours, so that none is ever put in front of another. L2 */
const reals = new WeakMap<object, Call>();

/** Nothing is replaced where there is no function, one that is frozen, or something that cannot even be looked at. */
function replace(owner: object | undefined, key: string, by: (real: Call) => Call): PutBack[] {
  const found = owner === undefined ? undefined : lookedUp(owner, key);
  if (owner === undefined || typeof found !== "function") return [];
  const real = reals.get(found) ?? (found as Call);
  const ours = by(real);
  reals.set(ours, real);
  const before = Reflect.getOwnPropertyDescriptor(owner, key);
  if (!put(owner, key, ours, before?.enumerable ?? true)) return [];
  return [
    () => {
      if (Reflect.getOwnPropertyDescriptor(owner, key)?.value !== ours) return; // L2
      if (before === undefined) Reflect.deleteProperty(owner, key);
      else Reflect.defineProperty(owner, key, "value" in before ? { ...before, value: real } : before);
    },
  ];
}

function lookedUp(owner: object, key: string): unknown {
  try {
    return Reflect.get(owner, key);
  } catch {
    return undefined; // Somebody's getter: it is not ours to ask twice.
  }
}

/** For a turn of watched code: notices dates that are made of nothing. Only those tell the time. Returns the way back. */
export function watchDates(): () => void {
  if (needs === 0) return () => {};
  const { Date: RealDate } = globalThis;
  const proxy = watchedDates.get(RealDate) ?? watchedDate(RealDate);
  watchedDates.set(RealDate, proxy);
  const putBacks = [divert(globalThis, "Date", proxy), divert(RealDate.prototype, "constructor", proxy)];
  return () => {
    for (const putBack of putBacks) putBack();
  };
}

const watchedDates = new WeakMap<DateConstructor, DateConstructor>();

function watchedDate(RealDate: DateConstructor): DateConstructor {
  const argumentsFor = (target: DateConstructor, args: readonly unknown[]): readonly unknown[] => {
    const location = args.length > 0 ? null : watchedLocation();
    if (location === null) return args;
    return [location.watch.called(NEW_DATE, () => Number(Reflect.construct(target, [])), args)];
  };
  const proxy: DateConstructor = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, argumentsFor(target, args), newTarget === proxy ? target : newTarget) as Date,
    apply: () => String(new proxy()),
  });
  return proxy;
}

/** Watched code finds something else there; all others find what they always did, and may put something in its place. */
function divert(owner: object, key: string, inside: unknown): PutBack {
  const outside: unknown = Reflect.get(owner, key);
  const isEnumerable = Reflect.getOwnPropertyDescriptor(owner, key)?.enumerable ?? false;
  const get = (): unknown => (watchedLocation() === null ? outside : inside); // L1
  const set = function (this: object, value: unknown): void {
    put(this, key, value, this === owner ? isEnumerable : true); // L2. Who only inherits from the owner gets his own.
  };
  Reflect.defineProperty(owner, key, { get, set, configurable: true, enumerable: isEnumerable });
  return () => {
    if (Reflect.getOwnPropertyDescriptor(owner, key)?.get === get) put(owner, key, outside, isEnumerable);
  };
}

/** Whether it could be put there. */
function put(owner: object, key: string, value: unknown, enumerable: boolean): boolean {
  return Reflect.defineProperty(owner, key, { value, configurable: true, writable: true, enumerable });
}
