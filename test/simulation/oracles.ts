// test/simulation/oracles.ts — what must hold when everything is over.

import type { OrchestrationDefinition } from "../../src/define.js";
import { messageOf } from "../../src/errors.js";
import { type Event, type EventOf, isTerminal } from "../../src/history/event.js";
import type { KvEntry } from "../../src/history/kv-entry.js";
import { historyProblems } from "../../src/history/valid-history.js";
import type { Provider } from "../../src/provider/provider.js";
import { kvAfter } from "../../src/testing/kv-after.js";
import { replay } from "../../src/testing/replay.js";
import { orchestrations } from "./interpreter.js";
import { modelProblems, type Remains } from "./model.js";

/** What only those know who made it happen. */
export interface Knowledge {
  /** Whether somebody asked a root to end. */
  readonly isCancelled: (instanceId: string) => boolean;
  /** Whether something of the tree was deleted, so that parts of it may be missing. */
  readonly isDeleted: (instanceId: string) => boolean;
}

type Instance = Omit<Remains, "mayBeCancelled">;

/** What is wrong with the store; empty: nothing. */
export async function storeProblems(store: Provider, knowledge: Knowledge): Promise<readonly string[]> {
  const instances = await instancesOf(store);
  const problems: string[] = [];
  for (const instance of instances.values()) {
    const { instanceId, executions } = instance;
    const invalid = executions.flatMap((events) => historyProblems(events));
    problems.push(...invalid.map((problem) => `${instanceId}: ${problem}`));
    if (invalid.length > 0) continue;
    problems.push(...(await replayProblems(instance)));
    const mayBeCancelled = mayBeCancelledIn(instances, instance, knowledge);
    problems.push(...modelProblems({ ...instance, mayBeCancelled }));
    problems.push(...mailboxProblems(instance));
    problems.push(...childProblems(instances, instance, knowledge));
    const last = executions.at(-1)?.at(-1);
    const hasEnded = last !== undefined && isTerminal(last);
    if (!hasEnded && !knowledge.isDeleted(instanceId)) problems.push(`${instanceId} has not ended`);
  }
  return problems;
}

async function instancesOf(store: Provider): Promise<ReadonlyMap<string, Instance>> {
  const instances = new Map<string, Instance>();
  for (const instanceId of await store.admin!.listInstances()) {
    const executions: (readonly Event[])[] = [];
    for (const id of await store.admin!.listExecutions(instanceId)) {
      executions.push(await store.readWithExecution(instanceId, id));
    }
    const status = await store.getInstanceStatus(instanceId);
    instances.set(instanceId, {
      instanceId,
      executions,
      kv: await store.getKvAllValues(instanceId),
      customStatus: status?.customStatus ?? null,
    });
  }
  return instances;
}

/** Code that starts from nothing takes the decisions that are recorded, whoever took them, warm or cold. */
async function replayProblems({ instanceId, executions }: Instance): Promise<readonly string[]> {
  const code: OrchestrationDefinition[] = Object.values(orchestrations());
  let kv: ReadonlyMap<string, KvEntry> = new Map();
  for (const [place, events] of executions.entries()) {
    try {
      await replay(events, code, { kv });
    } catch (error) {
      return [`${instanceId}: execution ${place + 1} is not replayed: ${messageOf(error)}`];
    }
    kv = kvAfter(events, kv);
  }
  return [];
}

/** A child ends before its time only if its parent says so, or has ended without an answer of it. */
function mayBeCancelledIn(
  instances: ReadonlyMap<string, Instance>,
  { instanceId, executions }: Instance,
  { isCancelled, isDeleted }: Knowledge,
): boolean {
  const { parentInstance, parentId, parentExecutionId } = executions[0]![0] as EventOf<"OrchestrationStarted">;
  if (parentInstance === null) return isCancelled(instanceId);
  if (isDeleted(instanceId)) return true;
  const parent = instances.get(parentInstance)?.executions[(parentExecutionId ?? 1) - 1] ?? [];
  const isAnswered = parent.some((event) => event.sourceEventId === parentId && isChildsAnswer(event));
  return parent.some((event) => {
    if (event.type === "SubOrchestrationCancelRequested") return event.sourceEventId === parentId;
    return isTerminal(event) && !isAnswered;
  });
}

/** Messages are numbered, and sent one after the other. Each may come twice; none may be missing, or come before another. */
function mailboxProblems({ instanceId, executions }: Instance): readonly string[] {
  const problems: string[] = [];
  const next = new Map<string, number>();
  for (const events of executions) {
    const { carryForwardEvents = [] } = events[0] as EventOf<"OrchestrationStarted">;
    const arrived = events.filter((event) => event.type === "ExternalEventPersistent").slice(carryForwardEvents.length);
    for (const { name, data } of arrived) {
      const number = Number(data);
      const expected = next.get(name) ?? 0;
      if (number > expected) problems.push(`${instanceId}: message ${number} of ${name} comes before ${expected}`);
      if (number >= expected) next.set(name, number + 1);
    }
  }
  return problems;
}

/** What a parent heard of its child is what became of it. */
function childProblems(
  instances: ReadonlyMap<string, Instance>,
  { instanceId, executions }: Instance,
  { isDeleted }: Knowledge,
): readonly string[] {
  return executions.flatMap((events) => {
    const answers = new Map(events.map((event) => [event.sourceEventId, event]));
    return events.flatMap((event) => {
      if (event.type !== "SubOrchestrationScheduled") return [];
      const answer = answers.get(event.eventId);
      if (answer === undefined || !isChildsAnswer(answer)) return [];
      const childId = event.instance.startsWith("sub::") ? `${instanceId}::${event.instance}` : event.instance;
      const child = instances.get(childId);
      if (child === undefined)
        return isDeleted(instanceId) ? [] : [`${instanceId}: its child ${childId} does not exist`];
      const heard = JSON.stringify(saidBy(answer));
      const said = JSON.stringify(saidBy(child.executions.at(-1)?.at(-1)));
      return heard === said ? [] : [`${instanceId} heard ${heard} from ${childId}, which said ${said}`];
    });
  });
}

function isChildsAnswer(event: Event): boolean {
  return event.type === "SubOrchestrationCompleted" || event.type === "SubOrchestrationFailed";
}

/** What an execution ended with, by its own last event or by what its parent recorded of it. */
function saidBy(event: Event | undefined): unknown {
  switch (event?.type) {
    case "SubOrchestrationCompleted":
      return event.result;
    case "OrchestrationCompleted":
      return event.output;
    case "SubOrchestrationFailed":
    case "OrchestrationFailed":
      return event.details;
    default:
      return event;
  }
}
