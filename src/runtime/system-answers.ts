// runtime/system-answers.ts — answers the system calls that a turn leaves open, with the turn that asks for them.
//
// Recorded as the reference records it, as a system activity; but no worker is needed: the answer goes back as a message of
// the same commit, and the next turn finds it. Left open are reads of other instances' values, because the engine does no
// I/O, and times and guids where one turn has asked for very many.

import { GET_KV_VALUE, inlineResult, isInlineCall } from "../engine/system-calls.js";
import type { ActivityToStart } from "../engine/turn.js";
import { decodePayload } from "../history/payload.js";
import type { ActivityCompleted } from "../history/work-item.js";
import { readRequest, type SystemSources } from "./system-activities.js";

export interface SystemAnswers {
  /** What is left for the workers. */
  readonly activities: readonly ActivityToStart[];
  readonly answers: readonly ActivityCompleted[];
}

export async function answerSystemCalls(
  sources: SystemSources,
  { instance, executionId }: { readonly instance: string; readonly executionId: number },
  activities: readonly ActivityToStart[],
): Promise<SystemAnswers> {
  const calls = activities.filter(isSystemCall);
  if (calls.length === 0) return { activities, answers: [] };
  const answers = calls.map(async (call): Promise<ActivityCompleted> => {
    return { type: "ActivityCompleted", instance, executionId, id: call.id, result: await answer(sources, call) };
  });
  return { activities: activities.filter((call) => !isSystemCall(call)), answers: await Promise.all(answers) };
}

export function isSystemCall({ name }: ActivityToStart): boolean {
  return name === GET_KV_VALUE || isInlineCall(name);
}

async function answer({ provider, clock, newId }: SystemSources, { name, input }: ActivityToStart): Promise<string> {
  if (isInlineCall(name)) return inlineResult(name, clock.now(), newId);
  const request = readRequest(decodePayload(input));
  return JSON.stringify(await provider.getKvValue(request.instance, request.key));
}
