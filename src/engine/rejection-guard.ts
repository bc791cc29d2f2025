// engine/rejection-guard.ts — a rejection in the code of an orchestration or an activity is never the end of the worker.
//
// A helper promise that fails a turn before it is awaited is, to Node, an unhandled rejection, and Node's answer is to
// end the process. It is not an error: on replay the very same promise is awaited in time. So:
//
//   G1. A rejection born in such code (the async context names the instance) is kept and reported; a later await still
//       gets it.
//   G2. Everybody else's rejection is treated as if this guard did not exist.
//   G3. The guard is there while any runtime lives, and gone afterwards.

import { messageOf } from "../errors.js";
import { codeLocation, Scope } from "./scope.js";

export type OnKept = (instanceId: string, message: string) => void;

const guards = new Set<OnKept>();
const kept = new WeakSet<Promise<unknown>>();

/** Installs the guard. Returns the way to remove it. */
export function guardRejections(onKept: OnKept): () => void {
  const guard: OnKept = (instanceId, message) => onKept(instanceId, message);
  if (guards.size === 0) {
    process.on("unhandledRejection", onUnhandled);
    process.on("rejectionHandled", onHandled);
  }
  guards.add(guard);
  return () => {
    if (!guards.delete(guard) || guards.size > 0) return;
    process.off("unhandledRejection", onUnhandled);
    process.off("rejectionHandled", onHandled);
  };
}

/** Runs code that is no orchestration's, an activity's, under the protection of G1. */
export function keepRejections<T>(instanceId: string, code: () => T): T {
  return codeLocation.run({ instanceId, owner: NO_EXECUTION, scope: NO_SCOPE, watch: null }, code);
}

const NO_EXECUTION = {};
const NO_SCOPE = new Scope(null);

function onUnhandled(reason: unknown, promise: Promise<unknown>): void {
  const location = codeLocation.getStore();
  if (location === undefined) return passOn(reason);
  kept.add(promise); // G1
  for (const guard of guards) guard(location.instanceId, messageOf(reason));
}

/** G2: with no listener but ours, Node would have raised it as an uncaught exception, unless told otherwise. */
function passOn(reason: unknown): void {
  if (process.listenerCount("unhandledRejection") > 1 || isNodesOwnBusiness()) return;
  throw reason instanceof Error ? reason : new UnhandledRejection(reason);
}

/** Under these values of `--unhandled-rejections` Node does all it does whether there is a listener or not. */
function isNodesOwnBusiness(): boolean {
  const flags = [process.env.NODE_OPTIONS ?? "", ...process.execArgv].join(" ");
  const mode = [...flags.matchAll(/--unhandled-rejections[= ]([a-z-]+)/g)].at(-1)?.[1] ?? "throw";
  return mode === "strict" || mode === "warn" || mode === "none";
}

class UnhandledRejection extends Error {
  override readonly name = "UnhandledPromiseRejection";
  readonly code = "ERR_UNHANDLED_REJECTION";
  constructor(reason: unknown) {
    super(`This error originated from a promise that was rejected and not handled: ${messageOf(reason)}`);
  }
}

/** G2: a promise that was ours is handled late by design; for any other, Node would have warned. */
function onHandled(promise: Promise<unknown>): void {
  if (kept.has(promise) || process.listenerCount("rejectionHandled") > 1) return;
  process.emitWarning("Promise rejection was handled asynchronously", "PromiseRejectionHandledWarning");
}
