// kills/oracles.mjs — what must hold of all histories when all is over, whoever was killed. A problem is { kind, message }.
//
//   K1. Every instance has ended: those that clients started, their children, and those that they launched.
//   K2. Every history is valid: no result is recorded twice, nothing is answered that nobody asked for.
//   K3. What an execution asked of activities was answered or given up before it ended; of children too, if it completed (a
//       child that falls with a failure or a cancellation leaves no trace here, but ends: K1).
//   K4. A recorded outcome of an activity is that of a run that came to its end; no run began after it was recorded. System
//       calls are answered without a worker.

import { historyProblems } from "duroxide-ts/testing";
import { SYSTEM_CALL_PREFIX } from "../../../dist/engine/system-calls.js";
import { inParallel } from "../fleet/oracles.mjs";
import { callOf } from "./ledger.mjs";

const TERMINAL = ["OrchestrationCompleted", "OrchestrationFailed", "OrchestrationContinuedAsNew"];
const OUTCOMES = ["ActivityCompleted", "ActivityFailed"];
const ANSWERS = [
  ...OUTCOMES,
  "ActivityCancelRequested",
  "SubOrchestrationCompleted",
  "SubOrchestrationFailed",
  "SubOrchestrationCancelRequested",
];

/** `calls` as the ledger tells. Answers with the problems, and with what there is. */
export async function checkInstances(provider, calls) {
  const problems = [];
  const found = { instances: 0, executions: 0, events: 0, results: 0 };
  await inParallel(await provider.admin.listInstances(), async (id) => {
    found.instances += 1;
    const executions = await provider.admin.listExecutions(id);
    for (const execution of executions) {
      const events = await provider.admin.readHistoryWithExecutionId(id, execution);
      found.executions += 1;
      found.events += events.length;
      found.results += events.filter(({ type }) => OUTCOMES.includes(type)).length;
      const where = `${id}, execution ${execution}`;
      problems.push(
        ...problemsOf(events, calls).map(({ kind, message }) => ({ kind, message: `${where}: ${message}` })),
      );
    }
    const { status } = await provider.admin.getInstanceInfo(id);
    if (status !== "Completed" && status !== "Failed") problems.push({ kind: "lost", message: `${id} is ${status}` }); // K1
  });
  return { problems, found };
}

/** What is wrong with one history. */
export function problemsOf(events, calls = null) {
  const problems = asProblems("history", historyProblems(events)); // K2
  if (!TERMINAL.includes(events.at(-1)?.type)) problems.push({ kind: "lost", message: "it has not ended" }); // K1
  const answered = new Set(events.filter(({ type }) => ANSWERS.includes(type)).map((event) => event.sourceEventId));
  for (const { type, eventId } of events.filter(mustBeAnswered)) {
    if (!answered.has(eventId))
      problems.push({ kind: "lost", message: `nothing has come of event ${eventId}, ${type}` });
  }
  return calls === null ? problems : [...problems, ...effectProblems(events, calls)];
}

/** Sentences that are problems of one kind. */
export function asProblems(kind, messages) {
  return messages.map((message) => ({ kind, message }));
}

/** K3 */
function mustBeAnswered({ type }, _place, events) {
  if (type === "ActivityScheduled") return true;
  return type === "SubOrchestrationScheduled" && events.at(-1).type === "OrchestrationCompleted";
}

/** K4 */
function effectProblems(events, calls) {
  const isSystemCall = ({ sourceEventId }) => events[sourceEventId - 1]?.name?.startsWith(SYSTEM_CALL_PREFIX);
  const outcomes = events.filter((event) => OUTCOMES.includes(event.type) && !isSystemCall(event));
  return outcomes.flatMap(({ instanceId, executionId, sourceEventId, timestampMs }) => {
    const call = callOf({ instanceId, executionId, activityId: sourceEventId });
    const seen = calls.get(call);
    if (seen?.hasEnded !== true) return [{ kind: "history", message: `no run of ${call} has led to its outcome` }];
    if (seen.lastBeganAt <= timestampMs) return [];
    return [
      { kind: "doubled", message: `${call} ran again ${seen.lastBeganAt - timestampMs} ms after it was recorded` },
    ];
  });
}
