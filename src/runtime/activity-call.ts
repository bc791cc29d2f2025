// runtime/activity-call.ts — the call of a user's activity: text in, completion out, whatever the user's code does.
//
//   C1. A call never rejects: a throw of anything, a bad input and a result that JSON cannot carry, or that is too large,
//       are failures.
//   C2. A promise of the user's that fails and that nobody awaits is reported, and does not end the process.

import type { Client } from "../client/client.js";
import type { ActivityDefinition } from "../define.js";
import { keepRejections } from "../engine/rejection-guard.js";
import { isInlineCall } from "../engine/system-calls.js";
import { messageOf } from "../errors.js";
import { activityFailed } from "../history/error-details.js";
import { cutMessage } from "../history/failure-size.js";
import { checkPayload } from "../history/limits.js";
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

/** Runs the activity to its end. Never rejects (C1). `maxBytes`: how large the result may be, and its failure. */
export async function callActivity(
  definition: ActivityDefinition,
  context: ActivityContext,
  item: ActivityExecute,
  maxBytes: number,
): Promise<ActivityAnswer> {
  const { instance, executionId, id } = item;
  const what = `activity '${item.name}'`;
  try {
    const decoded = decodePayload(item.input);
    const input =
      definition.input === null ? decoded : await validateAsync(definition.input, decoded, `input of ${what}`);
    const output = await keepRejections(instance, () => definition.run(context, input)); // C2
    if (definition.output !== null) await validateAsync(definition.output, output, `output of ${what}`);
    // Times and guids are bare text, whoever answers: so the turns write them, and so the reference reads them.
    const text = isInlineCall(item.name) ? String(output) : encodePayload(output, `output of ${what}`);
    const result = checkPayload(text, `output of ${what}`, maxBytes);
    return { completion: { type: "ActivityCompleted", instance, executionId, id, result } };
  } catch (error) {
    const details = activityFailed(cutMessage(messageOf(error), maxBytes));
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

/** What a run hands to the code of its activity. Signal and trace are made when they are asked for: most never are. */
export class CallContext implements ActivityContext {
  readonly instanceId: string;
  readonly executionId: number;
  readonly orchestrationName: string;
  readonly orchestrationVersion: string;
  readonly activityName: string;
  readonly activityId: number;
  readonly idempotencyKey: string;
  readonly attempt: number;
  readonly workerId: string;
  readonly sessionId: string | null;
  readonly tag: string | null;
  readonly client: Client;
  readonly #ref: ActivityRef;
  readonly #emit: (fact: Fact) => void;
  readonly #cancellation: Cancellation;
  #trace: ActivityTrace | null = null;

  constructor(
    ref: ActivityRef,
    { instance, executionId, id, retryOf = id }: ActivityExecute,
    deps: { readonly client: Client; readonly emit: (fact: Fact) => void; readonly cancellation: Cancellation },
  ) {
    this.instanceId = ref.instanceId;
    this.executionId = ref.executionId;
    this.orchestrationName = ref.orchestrationName;
    this.orchestrationVersion = ref.orchestrationVersion;
    this.activityName = ref.activityName;
    this.activityId = ref.activityId;
    this.idempotencyKey = `${instance}:${executionId}:${retryOf}`;
    this.attempt = ref.attempt;
    this.workerId = ref.workerId;
    this.sessionId = ref.sessionId;
    this.tag = ref.tag;
    this.client = deps.client;
    this.#ref = ref;
    this.#emit = deps.emit;
    this.#cancellation = deps.cancellation;
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }

  get trace(): ActivityTrace {
    this.#trace ??= traceOf(this.#ref, this.#emit);
    return this.#trace;
  }
}

/** An AbortController that is made only for those who listen. */
export class Cancellation {
  #controller: AbortController | null = null;
  #reason: unknown;

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}

function traceOf(ref: ActivityRef, emit: (fact: Fact) => void): ActivityTrace {
  const at = (level: keyof ActivityTrace) => (message: string) =>
    emit({ type: "trace", source: "activity", level, message, ref });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
