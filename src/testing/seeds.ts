// testing/seeds.ts — puts instances into a store as if a runtime had run them, and waits for what a real one writes.
//
// For a store that no runtime works on yet: a seed fetches and commits as a runtime does, and would compete with one.

import { WAIT_OPTION_CHECKS, type WaitOptions, waitUntil } from "../client/wait.js";
import { type Clock, systemClock } from "../clock.js";
import { InvalidInputError } from "../errors.js";
import { ENGINE_VERSION, type Event, type EventPayload, INITIAL_EVENT_ID } from "../history/event.js";
import type { OrchestratorItem } from "../history/work-item.js";
import { checkOptions, isClock } from "../options.js";
import type { Provider, SemVer, TurnCommit } from "../provider/provider.js";
import { parseSemVer } from "../runtime/semver.js";
import { lockInstance } from "./locked-instance.js";

/** What a seeded execution is one of. */
export interface SeededExecution {
  /** @default "TestOrch" */
  readonly orchestration?: string;
  /** @default "1.0.0" */
  readonly version?: string;
  /** As it is stored: JSON. @default "{}" */
  readonly input?: string;
}

/** An event to be numbered and stamped. Completions name the event that they answer. */
export type SeededEvent = EventPayload & { readonly sourceEventId?: number };

/** What a seeded turn decides beside its events. */
export type SeededTurn = Partial<Omit<TurnCommit, "events" | "executionId">>;

/** When to give up, and by whose time. */
export interface HistoryWaitOptions extends WaitOptions {
  /** @default the system's clock */
  readonly clock?: Clock;
}

/** For providers that cannot wake a wait. */
const POLL_INTERVAL_MS = 5;
/** For those that can, in case a wake is lost. */
const RECHECK_INTERVAL_MS = 5_000;
/** When seeded events happened. For people; nothing looks at it. */
const SEEDED_AT_MS = 1_700_000_000_000;

/**
 * Begins the next execution of an instance, the first one of a new instance, and answers its number.
 *
 * @throws DUROXIDE_INVALID_INPUT if somebody holds the instance
 * @throws DUROXIDE_PROVIDER if the store fails
 * @example
 * const executionId = await createExecution(provider, "order-1", { orchestration: "Checkout" });
 */
export function createExecution(
  provider: Provider,
  instance: string,
  execution: SeededExecution = {},
): Promise<number> {
  return begin(provider, instance, execution, ENGINE_VERSION, null);
}

/**
 * Begins an execution that an engine of that version has written: one that replays otherwise must not touch it.
 *
 * @throws DUROXIDE_INVALID_INPUT for a version that is none, or if somebody holds the instance
 * @throws DUROXIDE_PROVIDER if the store fails
 * @example
 * await seedInstanceWithPinnedVersion(provider, "from-the-future", "99.0.0");
 */
export async function seedInstanceWithPinnedVersion(
  provider: Provider,
  instance: string,
  engineVersion: string,
  execution: SeededExecution = {},
): Promise<number> {
  const pinned = parseSemVer(engineVersion);
  if (pinned === null) throw new InvalidInputError(`'${engineVersion}' is no version: expected major.minor.patch.`);
  return begin(provider, instance, execution, engineVersion, pinned);
}

/**
 * Commits one more turn of an instance's current execution: these events, numbered on from its last, and whatever else
 * is given. Answers the events as they were stored. The message that makes the turn is consumed by it.
 *
 * @throws DUROXIDE_INVALID_INPUT for an instance that was never begun, or that somebody holds
 * @throws DUROXIDE_PROVIDER if the store fails
 * @example
 * await createExecution(provider, "order-1");
 * await seedHistoryTurn(provider, "order-1", [{ type: "ActivityScheduled", name: "Charge", input: "12" }]);
 */
export async function seedHistoryTurn(
  provider: Provider,
  instance: string,
  events: readonly SeededEvent[],
  turn: SeededTurn = {},
): Promise<readonly Event[]> {
  const last = (await provider.read(instance)).at(-1);
  if (last === undefined) throw new InvalidInputError(`Instance '${instance}' was never begun: createExecution first.`);
  const { executionId } = last;
  const stamped = events.map((event, place) => stamp(instance, executionId, last.eventId + 1 + place, event));
  const message: OrchestratorItem = { type: "ExternalRaised", instance, name: "seed", data: "null" };
  await commit(provider, message, instance, { ...EMPTY_TURN, ...turn, executionId, events: stamped });
  return stamped;
}

/**
 * The event as an engine of that version would have written it.
 *
 * @example
 * const history = await provider.read("order-1");
 * await provider.appendWithExecution("order-2", 1, history.map((event) => versionedEvent(event, "99.0.0")));
 */
export function versionedEvent(event: Event, engineVersion: string): Event {
  return { ...event, duroxideVersion: engineVersion };
}

/**
 * Waits until the history of the instance's current execution is as the predicate wants it, and answers it.
 *
 * @throws DUROXIDE_TIMEOUT, DUROXIDE_ABORTED, DUROXIDE_PROVIDER, DUROXIDE_INVALID_OPTIONS as `waitForOrchestration`
 * @example
 * await waitForHistory(provider, "order-1", (events) => events.some(({ type }) => type === "TimerCreated"));
 */
export async function waitForHistory(
  provider: Provider,
  instance: string,
  predicate: (history: readonly Event[]) => boolean,
  options: HistoryWaitOptions = {},
): Promise<readonly Event[]> {
  checkOptions("waitForHistory", options, { ...WAIT_OPTION_CHECKS, clock: isClock });
  const { clock = systemClock, ...wait } = options;
  return waitUntil(
    { wake: provider.wake, clock, pollIntervalMs: POLL_INTERVAL_MS, recheckIntervalMs: RECHECK_INTERVAL_MS },
    {
      ...wait,
      instanceId: instance,
      what: `the wanted history of instance '${instance}'`,
      watchesTurns: true,
      look: async () => {
        const history = await provider.read(instance);
        return predicate(history) ? history : null;
      },
    },
  );
}

const EMPTY_TURN: Omit<TurnCommit, "events" | "executionId"> = Object.freeze({
  workerItems: [],
  orchestratorItems: [],
  metadata: {},
  cancelledActivities: [],
  cancelledTimers: [],
});

async function begin(
  provider: Provider,
  instance: string,
  execution: SeededExecution,
  engineVersion: string,
  pinnedVersion: SemVer | null,
): Promise<number> {
  const { orchestration = "TestOrch", version = "1.0.0", input = "{}" } = execution;
  const latest = await provider.getInstanceStatus(instance);
  const executionId = latest === null || latest.status === "Pending" ? 1 : latest.executionId + 1;
  const parent = { parentInstance: null, parentId: null };
  const started = stamp(instance, executionId, INITIAL_EVENT_ID, {
    type: "OrchestrationStarted",
    name: orchestration,
    version,
    input,
    ...parent,
  });
  await commit(
    provider,
    { type: "StartOrchestration", instance, orchestration, version, input, ...parent, executionId },
    instance,
    {
      ...EMPTY_TURN,
      executionId,
      events: [versionedEvent(started, engineVersion)],
      metadata: {
        orchestrationName: orchestration,
        orchestrationVersion: version,
        ...(pinnedVersion === null ? {} : { pinnedVersion }),
      },
    },
  );
  return executionId;
}

async function commit(
  provider: Provider,
  message: OrchestratorItem,
  instance: string,
  turn: TurnCommit,
): Promise<void> {
  await provider.enqueueForOrchestrator(message);
  const { lockToken } = await lockInstance(provider, instance);
  await provider.ackOrchestrationItem(lockToken, turn);
}

function stamp(instance: string, executionId: number, eventId: number, event: SeededEvent): Event {
  return {
    sourceEventId: null,
    ...event,
    eventId,
    instanceId: instance,
    executionId,
    timestampMs: SEEDED_AT_MS,
    duroxideVersion: ENGINE_VERSION,
  };
}
