// runtime/kv-reads.ts — answers an orchestration's reads of other instances' values with the turn that asks for them.
//
// Recorded as the reference records it, as a system activity; but no worker is needed: the value goes back as a message of
// the same commit, and the next turn finds it.

import { GET_KV_VALUE } from "../engine/system-calls.js";
import type { ActivityToStart } from "../engine/turn.js";
import { decodePayload } from "../history/payload.js";
import type { ActivityCompleted } from "../history/work-item.js";
import type { Provider } from "../provider/provider.js";
import { readRequest } from "./system-activities.js";

export interface AnsweredReads {
  /** What is left for the workers. */
  readonly activities: readonly ActivityToStart[];
  readonly answers: readonly ActivityCompleted[];
}

export async function answerKvReads(
  provider: Provider,
  { instance, executionId }: { readonly instance: string; readonly executionId: number },
  activities: readonly ActivityToStart[],
): Promise<AnsweredReads> {
  const reads = activities.filter(({ name }) => name === GET_KV_VALUE);
  if (reads.length === 0) return { activities, answers: [] };
  const answers = reads.map(async ({ id, input }): Promise<ActivityCompleted> => {
    const request = readRequest(decodePayload(input));
    const value = await provider.getKvValue(request.instance, request.key);
    return { type: "ActivityCompleted", instance, executionId, id, result: JSON.stringify(value) };
  });
  return { activities: activities.filter(({ name }) => name !== GET_KV_VALUE), answers: await Promise.all(answers) };
}
