// runtime/activity-call.ts — the call of a user's activity: text in, completion out, whatever the user's code does.
//
//   C1. A call never rejects: a throw of anything, a bad input and a result that JSON cannot carry are failures.
//   C2. A promise of the user's that fails and that nobody awaits is reported, and does not end the process.

import type { Client } from "../client/client.js";
import type { ActivityDefinition } from "../define.js";
import { keepRejections } from "../engine/rejection-guard.js";
import { isInlineCall } from "../engine/system-calls.js";
import { messageOf } from "../errors.js";
import { activityFailed } from "../history/error-details.js";
import { decodePayload, encodePayload } from "../history/payload.js";
import type { ActivityExecute } from "../history/work-item.js";
import type { ActivityRef, Fact } from "../observer.js";
import { validateAsync } from "../schema.js";
import type { ActivityContext, ActivityTrace } from "./activity-context.js";
import type { ActivityCompletion } from "./held-work-item.js";

/** What the call of an activity came to. */
export interface ActivityAnswer {
  readonly completion: ActivityCompletion;
  /** What was thrown, where it failed: for observers, because the completion keeps only its message. */
  readonly error?: unknown;
}

/** Runs the activity to its end. Never rejects (C1). */
export async function callActivity(
  definition: ActivityDefinition,
  context: ActivityContext,
  item: ActivityExecute,
): Promise<ActivityAnswer> {
  const { instance, executionId, id } = item;
  const what = `activity '${item.name}'`;
  try {
    const input = await validateAsync(definition.input, decodePayload(item.input), `input of ${what}`);
    const output = await keepRejections(instance, () => definition.run(context, input)); // C2
    await validateAsync(definition.output, output, `output of ${what}`);
    // Times and guids are bare text, whoever answers: so the turns write them, and so the reference reads them.
    const result = isInlineCall(item.name) ? String(output) : encodePayload(output, `output of ${what}`);
    return { completion: { type: "ActivityCompleted", instance, executionId, id, result } };
  } catch (error) {
    const details = activityFailed(messageOf(error));
    return { completion: { type: "ActivityFailed", instance, executionId, id, details }, error };
  }
}

/** Whom a work item is for and who works on it. */
export function activityRef(item: ActivityExecute, attempt: number, workerId: string): ActivityRef {
  return {
    instanceId: item.instance,
    executionId: item.executionId,
    orchestrationName: item.orchestrationName ?? "unknown",
    orchestrationVersion: item.orchestrationVersion ?? "unknown",
    activityName: item.name,
    activityId: item.id,
    workerId,
    attempt,
    tag: item.tag ?? null,
    sessionId: item.sessionId ?? null,
  };
}

export function activityContext(
  ref: ActivityRef,
  { instance, executionId, id, retryOf = id }: ActivityExecute,
  signal: AbortSignal,
  client: Client,
  emit: (fact: Fact) => void,
): ActivityContext {
  const idempotencyKey = `${instance}:${executionId}:${retryOf}`;
  return { ...ref, idempotencyKey, signal, client, trace: traceOf(ref, emit) };
}

function traceOf(ref: ActivityRef, emit: (fact: Fact) => void): ActivityTrace {
  const at = (level: keyof ActivityTrace) => (message: string) =>
    emit({ type: "trace", source: "activity", level, message, ref });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
