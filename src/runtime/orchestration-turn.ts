// runtime/orchestration-turn.ts — what becomes of one fetched orchestration item. Decides everything, commits nothing.
//
//   T1. The order of the questions: can the history be read? is the instance over? is it hopeless (poison)? can we run
//       it (version, registration)? So stale messages never poison an instance that has ended.
//   T2. A warm execution goes on only where the store says that its turn was the last. Otherwise it is forgotten, and
//       history decides.
//   T3. Whatever fails an instance without its code having a say goes through the same commit as any other failure:
//       what is in flight is cancelled, the parent is told, and a successor that never ran is an execution of its own.

import { DeterminismGuard } from "../engine/determinism-guard.js";
import { Execution } from "../engine/execution.js";
import type { ExecutionInit, OrchestrationHandler, TraceLevel, TurnOutcome } from "../engine/turn.js";
import { unreachable } from "../errors.js";
import { encodeEvent } from "../history/codec.js";
import { type ErrorDetails, nondeterminism } from "../history/error-details.js";
import { cutFailure } from "../history/failure-size.js";
import type { OrchestratorItem, ParentLink } from "../history/work-item.js";
import type { Fact, OrchestrationRef } from "../observer.js";
import type { InstanceStatus, OrchestrationItem, SemVerRange, TurnCommit } from "../provider/provider.js";
import { ExecutionLedger } from "./execution-ledger.js";
import { type ExecutionStart, startedPayload } from "./execution-start.js";
import { failedTurn } from "./failed-turn.js";
import { classifyBatch, type MessageBatch } from "./message-batch.js";
import { answerCollisions, type ParentRoute, routeToParent } from "./parent-route.js";
import { corruptHistoryCommit, corruptHistoryDetails, poisonDetails } from "./poison.js";
import type { ResolvedOrchestration } from "./registry.js";
import { formatSemVer, isWithin, parseSemVer } from "./semver.js";
import type { RuntimeServices } from "./services.js";
import { answerSystemCalls, isSystemCall } from "./system-answers.js";
import { emptyCommit, turnCommit } from "./turn-commit.js";
import { dropped, recordTurn } from "./turn-facts.js";
import { enterTurnGate, leaveTurnGate } from "./turn-gate.js";
import { findBreach, findHistoryBreach } from "./turn-limits.js";
import { GivenBack, unregisteredDelayMs } from "./unregistered-backoff.js";
import type { LiveExecution, WarmInstances } from "./warm-instances.js";

export type TurnDecision = Commit | Abandon;

interface Commit {
  readonly kind: "commit";
  readonly commit: TurnCommit;
  /** The turn of an orchestration, where there was one. */
  readonly turn: TurnTaken | null;
  /** What else the commit means for observers. */
  readonly facts: readonly Fact[];
  /** To be kept until the next turn, where there is one to come. */
  readonly live: LiveExecution | null;
}

interface TurnTaken {
  readonly ref: OrchestrationRef;
  readonly isWarm: boolean;
  /** Null: the execution had begun before. */
  readonly initiatedBy: ExecutionStart["initiatedBy"] | null;
}

interface Abandon {
  readonly kind: "abandon";
  readonly why: Extract<Fact, { type: "turn-abandoned" }>["why"];
  readonly message: string;
  readonly delayMs: number;
  readonly countsAttempt: boolean;
}

type Workable = Extract<MessageBatch, { kind: "start" | "resume" }>;

/** One item that can be advanced: whose it is, what is known of it, what has arrived. */
interface Subject {
  readonly item: OrchestrationItem;
  readonly attempt: number;
  readonly batch: Workable;
  readonly ledger: ExecutionLedger;
  readonly executionId: number;
  readonly start: ExecutionStart | null;
  readonly name: string;
  /** Null: the registry decides. */
  readonly version: string | null;
}

/** How its code took part in a turn. */
interface Taken {
  readonly isWarm: boolean;
  /** To be kept until the next turn, where there is one to come. */
  readonly live: LiveExecution | null;
}

/** Its code has had no say. */
const NOT_TAKEN: Taken = Object.freeze({ isWarm: false, live: null });

/** What a turn tells others, beside what its code has decided. */
interface Answers {
  readonly parent: ParentRoute | null;
  readonly alsoSend: readonly OrchestratorItem[];
}

const NO_ANSWERS: Answers = Object.freeze({ parent: null, alsoSend: [] });

/** Why this runtime cannot run it. */
interface Obstacle {
  readonly why: "incompatible-version" | "unregistered";
  readonly message: string;
  /** How long it is left alone. */
  readonly delayMs: number;
  /** How often it has been given back for this reason, now included. */
  readonly times: number;
  readonly countsAttempt: boolean;
}

/** Before another, perhaps newer, process may look at what this one cannot read. */
const UNREADABLE_DELAY_MS = 1_000;
/** The clocks of two processes differ a little: what one of them has queued, the other one sees a moment later. */
const CLOCKS_DIFFER_MS = 50;
/** Recorded where an execution was pinned to no version: the registry decides. */
const NO_VERSION = "0.0.0";
const UNKNOWN_VERSION = "unknown";
/** Why messages were dropped, for observers. */
const ENDED = "instance-ended";

export class OrchestrationTurn {
  readonly #services: RuntimeServices;
  readonly #warm: WarmInstances;
  readonly #givenBack = new GivenBack();

  constructor(services: RuntimeServices, warm: WarmInstances) {
    this.#services = services;
    this.#warm = warm;
  }

  /** The instance is no longer among the warm ones, whatever is decided. */
  decide(item: OrchestrationItem, attempt: number): Promise<TurnDecision> | TurnDecision {
    const live = this.#warm.take(item.instance, item.warmAsOf); // T2
    if (item.historyError !== null) return this.#unreadable(item, attempt);
    if (live === null && item.warmAsOf !== null) {
      const message = "This runtime's memory of the instance has gone or moved on meanwhile; its history will be read.";
      return { kind: "abandon", why: "stale-cache", message, delayMs: 0, countsAttempt: false };
    }
    const ledger = live?.ledger ?? new ExecutionLedger(item.instance, item.history);
    const batch = classifyBatch(item.messages, item.executionId, ledger);
    switch (batch.kind) {
      case "between-executions":
        return this.#awaitContinuation(attempt);
      case "ended":
        return this.#consume(item, ENDED, batch.collisions);
      case "never-started":
        return this.#consume(item, "instance-never-started", batch.collisions);
      case "start":
        return this.#advance(newExecution(item, attempt, batch, ledger), null);
      case "resume":
        return this.#advance(sameExecution(item, attempt, batch, ledger), live);
      default:
        return unreachable(batch);
    }
  }

  #awaitContinuation(attempt: number): TurnDecision {
    const { unregisteredBackoff } = this.#services.options;
    const delayMs = attempt === 1 ? CLOCKS_DIFFER_MS : unregisteredDelayMs(unregisteredBackoff, attempt - 1);
    const message = "The next execution has not started yet.";
    return { kind: "abandon", why: "awaiting-continuation", message, delayMs, countsAttempt: true };
  }

  async #consume(item: OrchestrationItem, why: string, collisions: readonly ParentLink[]): Promise<TurnDecision> {
    const answers = await answerCollisions(this.#services.provider, item.instance, collisions);
    return {
      kind: "commit",
      commit: emptyCommit(item.executionId, answers),
      facts: dropped(item.instance, why, item.messages.length),
      turn: null,
      live: null,
    };
  }

  async #advance(subject: Subject, live: LiveExecution | null): Promise<TurnDecision> {
    const { registry, options, clock } = this.#services;
    const resolved = live === null ? registry.resolveOrchestration(subject.name, subject.version) : null;
    const obstacle = live === null ? this.#obstacle(subject, resolved) : null;
    const ref = refOf(subject, resolved?.version ?? subject.version ?? UNKNOWN_VERSION);
    if ((obstacle?.times ?? subject.attempt) > options.maxAttempts) return this.#poison(subject, ref, obstacle);
    if (obstacle !== null) return { kind: "abandon", ...obstacle };

    const execution = live?.execution ?? this.#execution(subject, ref, resolved!.handler);
    const { messages } = subject.batch;
    const entry = enterTurnGate();
    if (entry !== null) await entry;
    let outcome: TurnOutcome;
    try {
      outcome = await execution.turn({ nowMs: clock.now(), messages });
    } finally {
      leaveTurnGate();
    }
    const { limits } = options;
    const breach = findBreach(outcome, limits) ?? findHistoryBreach(outcome, subject.ledger.usage, limits);
    if (breach !== null) return this.#fail(subject, ref, breach);
    const goesOn = outcome.result.kind === "waiting";
    const taken = { isWarm: live !== null, live: goesOn ? { execution, ledger: subject.ledger } : null };
    return this.#commit(subject, ref, outcome, taken);
  }

  #obstacle(subject: Subject, resolved: ResolvedOrchestration | null): Obstacle | null {
    const { options } = this.#services;
    const incompatible = incompatibility(subject, options.supportedReplayVersions);
    if (incompatible !== null) {
      const times = subject.attempt;
      const delayMs = UNREADABLE_DELAY_MS;
      return { why: "incompatible-version", message: incompatible, delayMs, times, countsAttempt: true };
    }
    if (resolved !== null) return null;
    const { item, executionId, ledger } = subject;
    const work = `${item.instance}:${executionId}:${ledger.eventCount}`;
    const times = this.#givenBack.count(work);
    if (times > options.maxAttempts) this.#givenBack.forget(work);
    const delayMs = unregisteredDelayMs(options.unregisteredBackoff, times);
    return { why: "unregistered", message: unregistered(subject), delayMs, times, countsAttempt: false };
  }

  #execution(subject: Subject, ref: OrchestrationRef, handler: OrchestrationHandler): Execution {
    const { newId, emit, options } = this.#services;
    const { item, start } = subject;
    const guard: ExecutionInit["watch"] = (execution) =>
      new DeterminismGuard(execution, ref, (error) => emit({ type: "nondeterministic-call", ref, error }));
    return new Execution({
      instance: item.instance,
      executionId: subject.executionId,
      handler,
      history: start === null ? item.history : [],
      started: start === null ? null : startedPayload(start, ref.orchestrationVersion),
      kvSnapshot: item.kvSnapshot,
      newGuid: newId,
      trace: (level: TraceLevel, message: string) =>
        emit({ type: "trace", source: "orchestration", level, message, ref }),
      onForeignAwait: (message) => void this.#wakeToFail(ref, subject.ledger, message),
      ...(options.determinismGuard ? { watch: guard } : {}),
    });
  }

  /**
   * Code that went on between two turns may wait for nothing durable any more, so that no message would ever come. This
   * one makes the next turn, which fails it; if the execution in memory is gone by then, the message itself says why.
   */
  async #wakeToFail(ref: OrchestrationRef, { started }: ExecutionLedger, reason: string): Promise<void> {
    const { instanceId: instance, executionId } = ref;
    const { provider } = this.#services;
    try {
      const stored = await provider.getInstanceStatus(instance);
      if (stored === null || hasEnded(stored, executionId)) return; // Its successor is not to blame.
      if (stored.status !== "Pending" && started !== null) {
        const [first] = await provider.readWithExecution(instance, executionId);
        if (first === undefined || encodeEvent(first) !== encodeEvent(started)) return; // Deleted, and begun again.
      }
      await provider.enqueueForOrchestrator({ type: "CancelInstance", instance, reason });
    } catch {
      // The store's trouble is told by the store's own fact. Any other message makes the next turn just as well.
    }
  }

  /** Most turns need to ask nobody, and no promise. */
  #commit(subject: Subject, ref: OrchestrationRef, outcome: TurnOutcome, taken: Taken): Commit | Promise<Commit> {
    const { batch } = subject;
    const link = subject.start === null ? subject.ledger.parent : subject.start.parent;
    const isAnswer = link !== null && outcome.result.kind !== "waiting";
    if (isAnswer || batch.collisions.length > 0 || outcome.activities.some(isSystemCall)) {
      return this.#commitWithAnswers(subject, ref, outcome, taken, isAnswer ? link : null);
    }
    return this.#commitOf(subject, ref, outcome, taken, NO_ANSWERS);
  }

  async #commitWithAnswers(
    subject: Subject,
    ref: OrchestrationRef,
    outcome: TurnOutcome,
    taken: Taken,
    link: ParentLink | null,
  ): Promise<Commit> {
    const { provider } = this.#services;
    const { item, executionId } = subject;
    const parent = link === null ? null : await routeToParent(provider, link);
    const collisions = await answerCollisions(provider, item.instance, subject.batch.collisions);
    const asker = { instance: item.instance, executionId };
    const { activities, answers } = await answerSystemCalls(this.#services, asker, outcome.activities);
    const alsoSend = [...collisions, ...answers];
    return this.#commitOf(subject, ref, { ...outcome, activities }, taken, { parent, alsoSend });
  }

  #commitOf(
    subject: Subject,
    ref: OrchestrationRef,
    outcome: TurnOutcome,
    { isWarm, live }: Taken,
    { parent, alsoSend }: Answers,
  ): Commit {
    const { item, batch, executionId, name } = subject;
    const identity = { instance: item.instance, executionId, name, version: ref.orchestrationVersion, parent };
    return {
      kind: "commit",
      commit: turnCommit(identity, outcome, alsoSend),
      facts: recordTurn(
        ref,
        subject.ledger,
        outcome,
        this.#services.options.limits,
        dropped(item.instance, "duplicate-start", batch.ignoredStarts),
      ),
      turn: { ref, isWarm, initiatedBy: subject.start?.initiatedBy ?? null },
      live,
    };
  }

  /** T3 */
  async #fail(subject: Subject, ref: OrchestrationRef, details: ErrorDetails): Promise<Commit> {
    const { start, ledger, executionId } = subject;
    const outcome = failedTurn({
      instance: subject.item.instance,
      executionId,
      nowMs: this.#services.clock.now(),
      details,
      ledger,
      started: start === null ? null : startedPayload(start, ref.orchestrationVersion),
    });
    return this.#commit(subject, ref, outcome, NOT_TAKEN);
  }

  async #poison(subject: Subject, ref: OrchestrationRef, obstacle: Obstacle | null): Promise<TurnDecision> {
    const { item, executionId } = subject;
    const attemptCount = obstacle?.times ?? subject.attempt;
    const attempts = { attemptCount, maxAttempts: this.#services.options.maxAttempts };
    const details =
      obstacle?.why === "incompatible-version"
        ? nondeterminism(obstacle.message)
        : this.#cut(poisonDetails(item, executionId, attempts, obstacle?.message ?? null));
    return withPoisonFact(await this.#fail(subject, ref, details), item.instance, details);
  }

  /** Another process may be able to read it; after too many attempts nobody is. */
  async #unreadable(item: OrchestrationItem, attempt: number): Promise<TurnDecision> {
    const { provider, options, clock } = this.#services;
    const batch = classifyBatch(item.messages, item.executionId, new ExecutionLedger(item.instance));
    const status = (await provider.getInstanceStatus(item.instance))?.status;
    if (status === "Completed" || status === "Failed") {
      return this.#consume(item, ENDED, "collisions" in batch ? batch.collisions : []); // T1
    }
    if (attempt <= options.maxAttempts) {
      const message = `The history cannot be read: ${item.historyError}`;
      return { kind: "abandon", why: "corrupt-history", message, delayMs: UNREADABLE_DELAY_MS, countsAttempt: true };
    }
    const attempts = { attemptCount: attempt, maxAttempts: options.maxAttempts };
    if (batch.kind === "start" && batch.start.initiatedBy === "continueAsNew") {
      const successor = newExecution(item, attempt, batch, new ExecutionLedger(item.instance)); // T3
      const details = this.#cut(corruptHistoryDetails(item, successor.executionId, attempts));
      const ref = refOf(successor, successor.version ?? UNKNOWN_VERSION);
      return withPoisonFact(await this.#fail(successor, ref, details), item.instance, details);
    }
    const details = this.#cut(corruptHistoryDetails(item, item.executionId, attempts));
    const commit = corruptHistoryCommit(item, details, clock.now());
    const facts = [unreadableEnded(item, details)];
    return withPoisonFact({ kind: "commit", commit, facts, turn: null, live: null }, item.instance, details);
  }

  /** Poison tells of all the messages that were tried. */
  #cut(details: ErrorDetails): ErrorDetails {
    return cutFailure(details, this.#services.options.limits.maxPayloadBytes);
  }
}

/** Whether the store knows of the end of this execution. One that it has not heard of yet is just beginning. */
function hasEnded(stored: InstanceStatus, executionId: number): boolean {
  if (stored.executionId !== executionId) return stored.executionId > executionId;
  return stored.status !== "Pending" && stored.status !== "Running";
}

function newExecution(
  item: OrchestrationItem,
  attempt: number,
  batch: Extract<MessageBatch, { kind: "start" }>,
  before: ExecutionLedger,
): Subject {
  const { start } = batch;
  const ledger = before.eventCount === 0 ? before : new ExecutionLedger(item.instance);
  const { executionId, name, version } = start;
  return { item, attempt, batch, ledger, executionId, start, name, version };
}

function sameExecution(
  item: OrchestrationItem,
  attempt: number,
  batch: Extract<MessageBatch, { kind: "resume" }>,
  ledger: ExecutionLedger,
): Subject {
  const name = ledger.started?.name ?? item.orchestrationName;
  const recorded = ledger.started?.version ?? item.version;
  const version = recorded === NO_VERSION ? null : recorded;
  return { item, attempt, batch, ledger, executionId: item.executionId, start: null, name, version };
}

/** Null where this runtime can replay what the execution has recorded so far. */
function incompatibility({ ledger, start, name }: Subject, supported: SemVerRange): string | null {
  const pinned = start === null && ledger.started !== null ? parseSemVer(ledger.started.duroxideVersion) : null;
  if (pinned === null || isWithin(pinned, supported)) return null;
  const range = `${formatSemVer(supported.min)} to ${formatSemVer(supported.max)}`;
  return `incompatible version: orchestration '${name}' is pinned to engine ${formatSemVer(pinned)}, but this runtime replays ${range}.`;
}

function unregistered({ name, version }: Subject): string {
  const label = version === null ? "(latest version)" : `version ${version}`;
  return `The orchestration '${name}' ${label} is not registered here. Register it with a runtime on this store.`;
}

function refOf(subject: Subject, version: string): OrchestrationRef {
  return {
    instanceId: subject.item.instance,
    executionId: subject.executionId,
    orchestrationName: subject.name,
    orchestrationVersion: version,
  };
}

/** All that can be told of an execution whose history is unreadable. */
function unreadableEnded(item: OrchestrationItem, details: ErrorDetails): Fact {
  const { instance: instanceId, executionId, orchestrationName, version: orchestrationVersion } = item;
  const ref = { instanceId, executionId, orchestrationName, orchestrationVersion };
  return { type: "orchestration-ended", ref, ending: "failed", details, durationMs: 0, historyEvents: 0, turns: 0 };
}

function withPoisonFact(decision: Commit, instanceId: string, details: ErrorDetails): Commit {
  return { ...decision, facts: [...decision.facts, { type: "orchestration-poisoned", instanceId, details }] };
}
