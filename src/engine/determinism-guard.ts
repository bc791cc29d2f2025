// engine/determinism-guard.ts — orchestration code that asks for what no history records fails, and is told what to use
// instead.
//
//   D1. The execution ends at the call, as if it had thrown there; what its code does afterwards counts for nothing. The call
//       itself is answered: a throw in a callback would end the process, and one that a shared promise keeps would fail
//       whoever awaits it later.
//   D2. Only a new instance is stopped, for as long as the runtime that began it keeps it in memory. One that has a history,
//       whoever wrote it, gets what it asks for, on replay and after it, and the call is reported: a guard that is switched
//       on fails nothing that was begun without it.
//   D3. Where code does not decide, nothing is failed or reported: not outside a turn, and not after the end.

import { NondeterministicCallError, unreachable } from "../errors.js";
import { outsideCode } from "./scope.js";
import type { CallWatch, WatchedCall, WatchedExecution } from "./watched-calls.js";

/** Whose calls are guarded, for the message. */
export interface GuardedCode {
  readonly orchestrationName: string;
  readonly instanceId: string;
}

export class DeterminismGuard implements CallWatch {
  readonly #execution: WatchedExecution;
  readonly #code: GuardedCode;
  readonly #onLetPass: (error: NondeterministicCallError) => void;
  readonly #reported = new Set<WatchedCall["name"]>();

  /** `onLetPass` hears of each call that is not stopped, once a name. */
  constructor(execution: WatchedExecution, code: GuardedCode, onLetPass: (error: NondeterministicCallError) => void) {
    this.#execution = execution;
    this.#code = code;
    this.#onLetPass = onLetPass;
  }

  called(call: WatchedCall, real: () => unknown): unknown {
    if (!this.#execution.isDeciding) return real(); // D3
    if (!this.#execution.isOfNewInstance) {
      this.#report(call); // D2
      return real();
    }
    this.#execution.failAtOnce(this.#errorFor(call)); // D1
    return real();
  }

  #report(call: WatchedCall): void {
    if (this.#reported.has(call.name)) return;
    this.#reported.add(call.name);
    const error = this.#errorFor(call);
    outsideCode(() => this.#onLetPass(error));
  }

  #errorFor(call: WatchedCall): NondeterministicCallError {
    const { orchestrationName, instanceId } = this.#code;
    return new NondeterministicCallError(`${call.name}()`, orchestrationName, instanceId, adviceFor(call));
  }
}

function adviceFor({ instead }: WatchedCall): string {
  switch (instead) {
    case "ctx.utcNow":
      return "its value would be another one on replay. Use `await ctx.utcNow()`.";
    case "ctx.newGuid":
      return "its value would be another one on replay. Use `await ctx.newGuid()`, or draw it in an activity.";
    case "ctx.scheduleTimer":
      return "no history records when it fires. Use `await ctx.scheduleTimer(…)`.";
    case "an activity":
      return "its answer would be another one on replay. Call it in an activity.";
    default:
      return unreachable(instead);
  }
}
