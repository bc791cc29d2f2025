// testing/import-instance.ts — an instance of another store, put into this one from its histories.
//
//   I1. Every execution is committed as a runtime would have: what can be seen with a client is as it was.
//   I2. What was outstanding is queued again, so activities may run twice, as after a crash. What stood in the queues of the
//       other store is not in any history, and not here; nor is which call an open attempt of a retry policy belongs to, so
//       that its idempotency key is another one.
//   I3. Children are instances of their own. One that has ended tells its parent when both are here, whoever came first.

import { randomUUID } from "node:crypto";
import { systemClock } from "../clock.js";
import { childInstance } from "../engine/action.js";
import type { ActivityToStart, TimerToStart, TurnOutcome, TurnResult } from "../engine/turn.js";
import { AlreadyExistsError, InvalidInputError } from "../errors.js";
import { type Event, type EventOf, INITIAL_EXECUTION_ID, isTerminal } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";
import type { OrchestratorItem } from "../history/work-item.js";
import { checkOptions, isObject } from "../options.js";
import type { Provider } from "../provider/provider.js";
import { parentLinkOf } from "../runtime/execution-ledger.js";
import { answerTo, type ParentRoute, routeToParent } from "../runtime/parent-route.js";
import { answerSystemCalls } from "../runtime/system-answers.js";
import { turnCommit } from "../runtime/turn-commit.js";
import { checkedProvider } from "./checked-provider.js";
import { eventsOf, type History } from "./exported-history.js";
import { lockInstance } from "./locked-instance.js";
import { entriesOf, type ReplayOptions, startOf } from "./replay.js";

/** What histories do not tell: see `ReplayOptions`. */
export type ImportOptions = Pick<ReplayOptions, "kv">;

type Execution = readonly Event[];

/**
 * Puts an instance into a store: all its executions from the first on, or only the last, as histories or exported texts.
 * Clients see it as it was: status, output, custom status, key-values, histories. If it has not ended, runtimes go on with
 * it: its open activities and timers are queued again. Answers the id of the instance.
 *
 * For a store that no runtime works on yet, as all seeds. Messages that were on their way in the other store are lost. Open
 * sub-orchestrations are not started again: import them too. Where only the last execution is given, `kv` says what the
 * others had left in the key-value store.
 *
 * @throws DUROXIDE_INVALID_HISTORY, DUROXIDE_CODEC for what is no history
 * @throws DUROXIDE_INVALID_INPUT for histories that do not belong together
 * @throws DUROXIDE_ALREADY_EXISTS if the store has such an instance
 * @throws DUROXIDE_PROVIDER if the store fails
 * @example
 * import { readFileSync } from "node:fs";
 * await using world = await TestWorld.open();
 * const instanceId = await importInstance(world.provider, [readFileSync("order-1.jsonl", "utf8")]);
 * await world.start({ orchestrations, activities });
 * report(await world.ending(instanceId));
 */
export async function importInstance(
  provider: Provider,
  executions: readonly History[],
  options: ImportOptions = {},
): Promise<string> {
  checkOptions("importInstance", options, { kv: isObject });
  checkedProvider("importInstance", provider);
  if (!Array.isArray(executions)) throw new InvalidInputError("importInstance: give a list of histories.");
  const given = executions.map(eventsOf);
  checkTogether(given);
  const kv = entriesOf(options.kv ?? {}, "importInstance");
  const { executionId } = given[0]![0]!;
  const isWhole = executionId === INITIAL_EXECUTION_ID;
  if (isWhole && kv.size > 0) {
    throw new InvalidInputError(
      "importInstance: option 'kv' is for the last execution alone; these begin with the first.",
    );
  }
  await commitAll(provider, isWhole ? given : [predecessor(given[0]!, kv), ...given]);
  const { instanceId } = given[0]![0]!;
  if (!isWhole) await provider.admin?.pruneExecutions(instanceId, { keepLast: 1 });
  return instanceId;
}

function checkTogether(executions: readonly Execution[]): void {
  const first = executions[0]?.[0];
  if (first === undefined) throw new InvalidInputError("importInstance: give the history of one execution at least.");
  const { instanceId, executionId } = first;
  const refuse = (what: string): never => {
    throw new InvalidInputError(`importInstance: instance '${instanceId}': ${what}.`);
  };
  if (executionId !== INITIAL_EXECUTION_ID && executions.length > 1) {
    refuse(`the first history is of execution ${executionId}; give all from the first on, or only the last`);
  }
  for (const [place, events] of executions.entries()) {
    const { instanceId: other, executionId: id } = events[0]!;
    const end = events.find(isTerminal);
    const isLast = place === executions.length - 1;
    if (other !== instanceId) refuse(`a history of instance '${other}' is among its executions`);
    if (id !== executionId + place) refuse(`execution ${id} stands where ${executionId + place} is expected`);
    if (isLast && end?.type === "OrchestrationContinuedAsNew") {
      refuse(`execution ${id} has continued as new; give execution ${id + 1}, too`);
    }
    if (!isLast && end?.type !== "OrchestrationContinuedAsNew") {
      refuse(`execution ${id} has not continued as new, but others follow it`);
    }
    const before = executions[place - 1]?.find(isTerminal);
    if (before?.type === "OrchestrationContinuedAsNew" && before.input !== startOf(events).input) {
      refuse(`execution ${id} does not begin with the input that execution ${id - 1} continued with`);
    }
  }
}

/** Stands for all that went before, until it is pruned: leaves the key-values and the custom status behind. */
function predecessor(events: Execution, kv: ReadonlyMap<string, KvEntry>): Execution {
  const started = startOf(events);
  const { carryForwardEvents: _, initialCustomStatus, ...first } = started;
  const executionId = started.executionId - 1;
  const { eventId, sourceEventId, instanceId, timestampMs, duroxideVersion } = started;
  const envelope = { eventId, sourceEventId, instanceId, executionId, timestampMs, duroxideVersion };
  const later: Event[] = [
    ...[...kv].map(([key, entry]): Event => ({ ...envelope, type: "KeyValueSet", key, ...entry })),
    ...(initialCustomStatus === undefined
      ? []
      : [{ ...envelope, type: "CustomStatusUpdated" as const, status: initialCustomStatus }]),
    { ...envelope, type: "OrchestrationContinuedAsNew", input: started.input },
  ];
  return [{ ...first, executionId }, ...later.map((event, place) => ({ ...event, eventId: place + 2 }))];
}

/** What holds the place until the history is there: a runtime that is there against the rules must not run it anew. */
const NOBODYS_ORCHESTRATION = "duroxide: an import in progress";

/** An open system call is answered at once: where only orchestrations run, no worker would. */
const SOURCES = { clock: systemClock, newId: randomUUID };

/** I1 */
async function commitAll(provider: Provider, executions: readonly Execution[]): Promise<void> {
  const { instanceId: instance } = startOf(executions[0]!);
  const start: OrchestratorItem = {
    type: "StartOrchestration",
    instance,
    orchestration: NOBODYS_ORCHESTRATION,
    input: "null",
    version: null,
    parentInstance: null,
    parentId: null,
    executionId: INITIAL_EXECUTION_ID,
  };
  if ((await provider.enqueueForOrchestrator(start, { ifAbsent: true })) === "exists") {
    throw new AlreadyExistsError(instance);
  }
  for (const [place, events] of executions.entries()) {
    const { lockToken } = await lockInstance(provider, instance);
    const next = executions[place + 1];
    const outcome = outcomeOf(events, next === undefined ? null : startOf(next));
    const alsoSend = next === undefined ? await answersAmongFamily(provider, events) : [];
    const identity = identityOf(events);
    const { activities, answers } = await answerSystemCalls({ provider, ...SOURCES }, identity, outcome.activities);
    const commit = turnCommit({ ...identity, parent: null }, { ...outcome, activities }, [...alsoSend, ...answers]);
    await provider.ackOrchestrationItem(lockToken, commit);
  }
}

function identityOf(events: Execution): { instance: string; executionId: number; name: string; version: string } {
  const { instanceId: instance, executionId, name, version } = startOf(events);
  return { instance, executionId, name, version };
}

/** The whole execution as if it had been one turn. */
function outcomeOf(events: Execution, next: EventOf<"OrchestrationStarted"> | null): TurnOutcome {
  const open = openWork(events);
  return {
    result: resultOf(events.find(isTerminal), next),
    events,
    activities: open.flatMap(activityOf),
    timers: open.flatMap(timerOf),
    children: [],
    detached: [],
    cancelledActivities: [],
    cancelledTimers: [],
    cancelledChildren: [],
    droppedMessages: [],
    kvKeyCount: 0,
  };
}

function resultOf(end: Event | undefined, next: EventOf<"OrchestrationStarted"> | null): TurnResult {
  switch (end?.type) {
    case "OrchestrationCompleted":
      return { kind: "completed", output: end.output };
    case "OrchestrationFailed":
      return { kind: "failed", details: end.details };
    case "OrchestrationContinuedAsNew":
      return {
        kind: "continuedAsNew",
        input: end.input,
        version: next?.version ?? null,
        carried: next?.carryForwardEvents ?? [],
        customStatus: next?.initialCustomStatus ?? null,
      };
    default:
      return { kind: "waiting" };
  }
}

/** What was asked for, and is neither answered nor given up. */
function openWork(events: Execution): readonly Event[] {
  const settled = new Set(events.map(({ sourceEventId }) => sourceEventId));
  return events.filter(({ eventId }) => !settled.has(eventId));
}

function activityOf(event: Event): ActivityToStart[] {
  if (event.type !== "ActivityScheduled") return [];
  const { eventId: id, name, input, sessionId, tag } = event;
  return [
    { id, name, input, ...(sessionId === undefined ? {} : { sessionId }), ...(tag === undefined ? {} : { tag }) },
  ];
}

/** Among them may be timers that code has dropped: history does not tell, and their firing is ignored. */
function timerOf(event: Event): TimerToStart[] {
  return event.type === "TimerCreated" ? [{ id: event.eventId, fireAtMs: event.fireAtMs }] : [];
}

/** I3: what this one has to tell its parent, and its children have to tell it. */
async function answersAmongFamily(provider: Provider, events: Execution): Promise<OrchestratorItem[]> {
  const { instanceId, executionId } = startOf(events);
  const answers = await Promise.all([
    answerToParent(provider, events),
    ...openWork(events).map((event) => {
      if (event.type !== "SubOrchestrationScheduled") return null;
      const route = { parentInstance: instanceId, parentExecutionId: executionId, parentId: event.eventId };
      return answerOfChild(provider, route, childInstance(instanceId, event.instance));
    }),
  ]);
  return answers.filter((answer) => answer !== null);
}

async function answerToParent(provider: Provider, events: Execution): Promise<OrchestratorItem | null> {
  const link = parentLinkOf(startOf(events));
  if (link === null) return null;
  const parent = await provider.getInstanceStatus(link.parentInstance);
  if (parent?.status !== "Running") return null;
  const route = await routeToParent(provider, link);
  return route === null ? null : endingAnswer(route, events.find(isTerminal));
}

/** An instance of that id that is somebody else's has nothing to tell. */
async function answerOfChild(provider: Provider, route: ParentRoute, child: string): Promise<OrchestratorItem | null> {
  const events = await provider.read(child);
  const [started] = events;
  const isOurs = started?.type === "OrchestrationStarted" && started.parentInstance === route.parentInstance;
  return isOurs && started.parentId === route.parentId ? endingAnswer(route, events.find(isTerminal)) : null;
}

function endingAnswer(route: ParentRoute, end: Event | undefined): OrchestratorItem | null {
  switch (end?.type) {
    case "OrchestrationCompleted":
      return answerTo(route, { kind: "completed", output: end.output });
    case "OrchestrationFailed":
      return answerTo(route, { kind: "failed", details: end.details });
    default:
      return null;
  }
}
