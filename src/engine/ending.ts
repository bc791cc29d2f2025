// engine/ending.ts — how a turn ends: what was dropped, what is left to clean up, and the terminal event.
//
//   Z1. Precedence: a cancel request, then continue-as-new, then the function's own end, then waiting.
//   Z2. What code dropped leaves a breadcrumb, once. What history says was dropped must be dropped by the code again.
//   Z3. The terminal event is the last. Before it, everything outstanding is given up.
//   Z4. A turn that ends the execution starts nothing new but detached orchestrations.

import { MisuseError, messageOf, unreachable } from "../errors.js";
import { cancelled, type ErrorDetails, orchestrationFailed } from "../history/error-details.js";
import type { CarriedEvent } from "../history/event.js";
import type { Continuation, Finish } from "./execution.js";
import { type BreadcrumbFamily, DROPPED_FUTURE, type HistoryIndex } from "./history-index.js";
import type { Arrival } from "./lanes.js";
import { NondeterminismError } from "./nondeterminism.js";
import type { Slot, SlotKind } from "./slot.js";
import type { TurnResult } from "./turn.js";
import type { TurnRecorder } from "./turn-recorder.js";

/** The state of an execution at the end of a turn. */
export interface Ending {
  readonly recorder: TurnRecorder;
  readonly index: HistoryIndex;
  readonly finish: Finish | null;
  readonly continuation: Continuation | null;
  /** Dropped by the code of this turn, replayed code included. Grows while the ending drops more. */
  readonly drops: readonly Slot[];
  readonly openWaits: ReadonlyMap<number, Slot>;
  readonly unsettled: ReadonlyMap<number, Slot>;
  readonly carried: () => Arrival[];
  readonly customStatus: string | null;
}

export type TerminalResult = Exclude<TurnResult, { kind: "waiting" }>;

/** Decides what the turn came to, and records it. */
export function conclude(ending: Ending): TurnResult {
  const { index, finish, continuation } = ending;
  if (index.cancelReason !== null) {
    const details = cancelled(index.cancelReason);
    return endWith(ending, { kind: "cancelled", reason: index.cancelReason, details });
  }
  if (continuation !== null) {
    const { customStatus } = ending;
    return endWith(ending, { kind: "continuedAsNew", ...continuation, carried: carriedOf(ending), customStatus });
  }
  if (finish !== null) dropEverything(ending);
  assertDropsRepeated(ending);
  recordDrops(ending);
  return finish === null ? { kind: "waiting" } : endWith(ending, resultOf(finish));
}

/**
 * Ends a turn whose code did not come to its rest, or was not run at all. Only what history shows is given up, so that a
 * warm execution and a replayed one end alike: which waits are still open, code alone would know.
 */
export function abort(ending: Ending, details: ErrorDetails): TurnResult {
  return endWith({ ...ending, openWaits: new Map() }, { kind: "failed", details });
}

/** Gives up whatever is outstanding and appends the terminal event. */
function endWith(ending: Ending, result: TerminalResult): TurnResult {
  giveUpChildren(ending, result);
  giveUpTimers(ending);
  ending.recorder.startNothing(); // Z4
  giveUpWaits(ending);
  giveUpActivities(ending, result);
  appendTerminal(ending.recorder, result);
  return result;
}

function resultOf(finish: Finish): TerminalResult {
  if (finish.status === "returned") return { kind: "completed", output: finish.output };
  return { kind: "failed", details: failureOf(finish.error), error: finish.error };
}

function failureOf(error: unknown): ErrorDetails {
  if (!isMisuse(error)) return orchestrationFailed(messageOf(error));
  return { category: "application", kind: { type: "Panicked" }, message: messageOf(error), retryable: false };
}

/** Some values, such as a revoked proxy, cannot even be asked for their class. */
function isMisuse(error: unknown): boolean {
  try {
    return error instanceof MisuseError;
  } catch {
    return false;
  }
}

function carriedOf(ending: Ending): CarriedEvent[] {
  const arrivals = ending.carried().sort((a, b) => a.order - b.order);
  return arrivals.map(({ name, data }) => [name, data] as const);
}

/** The function has ended: nobody is left to await what is still open. */
function dropEverything({ unsettled, openWaits }: Ending): void {
  for (const slot of [...unsettled.values(), ...openWaits.values()]) if (!slot.isDropped) slot.dropSilently();
}

const FAMILY: Readonly<Record<Exclude<SlotKind, "timer">, BreadcrumbFamily>> = {
  activity: "activities",
  subOrchestration: "sub-orchestrations",
  event: "external waits",
  queue: "persistent waits",
};

/** Z2: every recorded drop is one that the code takes again. More may follow; none may be missing. */
function assertDropsRepeated({ index, drops }: Ending): void {
  if (index.uncheckedDrops.length === 0) return;
  const dropped = new Set(drops.map((slot) => slot.scheduleId));
  const missing = index.uncheckedDrops.find(({ source }) => !dropped.has(source));
  if (missing !== undefined) {
    const text = `cancellation mismatch (${missing.family}): history cancelled event ${missing.source}, but the code no longer does`;
    throw new NondeterminismError(text);
  }
  index.dropsChecked();
}

function recordDrops(ending: Ending): void {
  const { recorder, index, drops } = ending;
  if (drops.length === 0) return index.dropsChecked();
  dropTimers(ending);
  for (const kind of ["activity", "subOrchestration", "event", "queue"] as const) {
    const ids = drops.filter((slot) => slot.kind === kind).map((slot) => slot.scheduleId!);
    for (const id of ids.sort((a, b) => a - b)) {
      const isAnswered = index.kindOf(id) !== undefined && !index.outstanding.has(id);
      if (index.hasBreadcrumb(id) || isAnswered) continue;
      if (kind === "activity") recorder.cancelledActivities.push(id);
      if (kind === "activity") recorder.activities.delete(id);
      if (kind === "subOrchestration") cancelChild(ending, id, "parent dropped sub-orchestration future");
      appendBreadcrumb(recorder, FAMILY[kind], id, DROPPED_FUTURE);
    }
  }
  index.dropsChecked();
}

/** A timer leaves no breadcrumb: its row is removed, or never written. */
function dropTimers({ recorder, index, drops }: Ending): void {
  for (const { kind, scheduleId, wasDroppedOnReplay } of drops) {
    if (kind !== "timer" || scheduleId === null) continue;
    const timer = index.outstanding.get(scheduleId);
    const isNew = recorder.timers.delete(scheduleId);
    if (timer === undefined || timer.isCancelRequested) continue;
    timer.isCancelRequested = true;
    if (!isNew && !wasDroppedOnReplay) recorder.cancelledTimers.push(scheduleId);
  }
}

/** A child that was never started needs no cancelling. */
function cancelChild({ recorder, index }: Ending, id: number, reason: string): void {
  const instance = index.outstanding.get(id)?.childInstance;
  if (instance && !recorder.children.delete(id)) recorder.cancelledChildren.push({ instance, reason });
}

function giveUpChildren(ending: Ending, result: TerminalResult): void {
  const reason = result.kind === "cancelled" ? "parent canceled" : "parent dropped sub-orchestration future";
  for (const [id, schedule] of ending.index.outstanding) {
    if (schedule.kind === "suborchestration" && !schedule.isCancelRequested) cancelChild(ending, id, reason);
  }
}

function giveUpTimers(ending: Ending): void {
  const { recorder, index } = ending;
  dropTimers(ending);
  for (const [id, schedule] of index.outstanding) {
    if (schedule.kind !== "timer" || schedule.isCancelRequested) continue;
    if (!recorder.timers.has(id)) recorder.cancelledTimers.push(id);
  }
}

function giveUpWaits({ recorder, openWaits }: Ending): void {
  for (const kind of ["event", "queue"] as const) {
    for (const [id, slot] of openWaits) {
      if (slot.kind === kind && !slot.isDropped) appendBreadcrumb(recorder, FAMILY[kind], id, "orchestration_terminal");
    }
  }
}

function giveUpActivities({ recorder, index }: Ending, result: TerminalResult): void {
  const reason = `orchestration_terminal_${terminalName(result)}`;
  for (const [id, schedule] of [...index.outstanding]) {
    if (schedule.kind !== "activity" || schedule.isCancelRequested) continue;
    recorder.cancelledActivities.push(id);
    appendBreadcrumb(recorder, "activities", id, reason);
  }
}

function terminalName(result: TerminalResult): string {
  switch (result.kind) {
    case "completed":
      return "completed";
    case "failed":
    case "cancelled":
      return "failed";
    case "continuedAsNew":
      return "continued_as_new";
    default:
      return unreachable(result);
  }
}

function appendBreadcrumb(recorder: TurnRecorder, family: BreadcrumbFamily, source: number, reason: string): void {
  switch (family) {
    case "activities":
      recorder.append({ type: "ActivityCancelRequested", reason }, source);
      return;
    case "sub-orchestrations":
      recorder.append({ type: "SubOrchestrationCancelRequested", reason }, source);
      return;
    case "external waits":
      recorder.append({ type: "ExternalSubscribedCancelled", reason }, source);
      return;
    case "persistent waits":
      recorder.append({ type: "ExternalSubscribedPersistentCancelled", reason }, source);
      return;
    default:
      unreachable(family);
  }
}

function appendTerminal(recorder: TurnRecorder, result: TerminalResult): void {
  switch (result.kind) {
    case "completed":
      recorder.append({ type: "OrchestrationCompleted", output: result.output });
      return;
    case "failed":
    case "cancelled":
      recorder.append({ type: "OrchestrationFailed", details: result.details });
      return;
    case "continuedAsNew":
      recorder.append({ type: "OrchestrationContinuedAsNew", input: result.input });
      return;
    default:
      unreachable(result);
  }
}
