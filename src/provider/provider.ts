// provider/provider.ts — the contract between the runtime and a store.
//
// A provider is dumb, transactional, and the only durable thing. It stores what it is told: it never numbers events or
// executions, never resolves versions, never deduplicates. What must hold:
//
//   P1. Every method is one atomic operation: all of it happened, or none of it.
//   P2. One clock, handed in by the application, integer milliseconds. Visible: visibleAt <= now. A lock is live
//       while lockedUntil > now.
//   P3. At most one live lock on an instance. Its messages are fetched as a batch, oldest due time first.
//   P4. A fetch that resolves to null means: no eligible work. A fetch that rejects locked nothing and counted nothing.
//   P5. Every fetch counts an attempt on what it hands out, durably, in the same operation.
//   P6. An ack with a lock that is not live changes nothing and rejects with kind "lock-lost".
//   P7. History is append-only: rows are inserted, never rewritten; an event id that exists already is refused.
//   P8. Stored events and work items come back as they were written.
//   P9. Queued items that cannot be decoded block nobody: a message is left out of its batch and goes with the ack, an
//       activity is set aside.

import type { Event } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";
import type { ActivityExecute, OrchestratorItem } from "../history/work-item.js";
import type { ProviderAdmin } from "./admin.js";

export type { KvEntry };

/** A semantic version as numbers, so that stores can compare it. */
export interface SemVer {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

/** Both ends included. */
export interface SemVerRange {
  readonly min: SemVer;
  readonly max: SemVer;
}

/**
 * Which engine versions this dispatcher can replay. Only the first range counts; no range means: nothing.
 * An execution without a recorded version is compatible with everybody.
 */
export interface CapabilityFilter {
  readonly supportedVersions: readonly SemVerRange[];
}

/** How a dispatcher asks for an instance that has messages. */
export interface FetchOrchestrationOptions {
  /** How long the lock lives unless it is renewed. */
  readonly lockTimeoutMs: number;
  /** How long a long-polling provider may wait for work. 0: answer at once. @default 0 */
  readonly pollTimeoutMs?: number;
  /** @default any version */
  readonly capability?: CapabilityFilter;
  /** Names the caller, for stores whose leases need it. */
  readonly dispatcherId?: string;
  /**
   * Instances that the caller still has in memory, each with the token under which it committed its last turn of it. They
   * need no history if that turn was the last that anybody wrote. A provider may ignore it.
   */
  readonly warm?: ReadonlyMap<string, string>;
  /** Ends a long poll early: the fetch resolves to null. */
  readonly signal?: AbortSignal;
}

/** An instance with everything that its next turn needs. */
export interface OrchestrationItem {
  readonly instance: string;
  readonly orchestrationName: string;
  /** `unknown` where the store has none. */
  readonly version: string;
  /** The current execution. */
  readonly executionId: number;
  /** Of the current execution, ascending. */
  readonly history: readonly Event[];
  /**
   * The token that the caller named in `warm`, where nothing was committed or appended to the instance since that turn:
   * `history` and `kvSnapshot` are then empty. Null: they are complete.
   */
  readonly warmAsOf: string | null;
  /** Set where stored history cannot be decoded; `history` and `kvSnapshot` are then empty. */
  readonly historyError: string | null;
  /** The batch: what was visible at the fetch, oldest due time first. */
  readonly messages: readonly OrchestratorItem[];
  /** The values as of the end of the previous execution: the current one's writes are rebuilt by replay. */
  readonly kvSnapshot: ReadonlyMap<string, KvEntry>;
}

/** An instance that nobody else may touch until its lock is released or lapses. */
export interface LockedOrchestrationItem {
  readonly item: OrchestrationItem;
  /** Proves the lock to ack, abandon and renew. */
  readonly lockToken: string;
  /** The highest fetch count over the batch, this fetch included. */
  readonly attemptCount: number;
}

/** Where an execution stands. `ContinuedAsNew`: it has ended, and the start of the next is queued. */
export type ExecutionStatus = "Running" | "Completed" | "Failed" | "ContinuedAsNew";

/** What the runtime says of the execution beside its events. Absent fields leave the store as it is. */
export interface ExecutionMetadata {
  readonly status?: ExecutionStatus;
  /** Output, display text of the failure, or the next input. */
  readonly output?: string;
  readonly orchestrationName?: string;
  readonly orchestrationVersion?: string;
  readonly parentInstanceId?: string;
  /** The engine version that wrote the execution, for the capability filter. */
  readonly pinnedVersion?: SemVer;
}

/** A worker row or a timer row, by the event that scheduled it. */
export interface ScheduledId {
  readonly instance: string;
  readonly executionId: number;
  readonly id: number;
}

/** Everything that one turn decided. Committed whole, or not at all. */
export interface TurnCommit {
  readonly executionId: number;
  readonly events: readonly Event[];
  readonly workerItems: readonly ActivityExecute[];
  /** A `TimerFired` becomes visible at its `fireAtMs`, everything else now; order is kept. */
  readonly orchestratorItems: readonly OrchestratorItem[];
  readonly metadata: ExecutionMetadata;
  /** Worker rows to remove, after `workerItems` were added: what stands in both is gone. */
  readonly cancelledActivities: readonly ScheduledId[];
  /** Timer rows to remove, after `orchestratorItems` were added. */
  readonly cancelledTimers: readonly ScheduledId[];
}

/** How work is given back. */
export interface AbandonOptions {
  /**
   * Keeps the work invisible for this long; of an orchestration item the whole instance, so that messages which arrive
   * meanwhile do not overtake its own. Without it, it can be fetched at once.
   */
  readonly delayMs?: number;
  /** Takes back the attempt that the fetch counted (never below 0). */
  readonly ignoreAttempt?: boolean;
}

/** Takes work with these tags. At most five; every tag at most 256 bytes. */
export type TagFilter =
  | { readonly kind: "default-only" }
  | { readonly kind: "tags"; readonly tags: readonly string[] }
  | { readonly kind: "default-and"; readonly tags: readonly string[] }
  | { readonly kind: "any" }
  | { readonly kind: "none" };

/** For whom a fetch may take and keep sessions. */
export interface SessionFetch {
  /** Sessions that are free, or this owner's, are taken; those of others are left alone. */
  readonly ownerId: string;
  /** How long a session stays with its owner unless it is renewed. */
  readonly lockTimeoutMs: number;
}

/** How a worker asks for an activity. */
export interface FetchWorkOptions {
  /** How long the lock lives unless it is renewed. */
  readonly lockTimeoutMs: number;
  /** How long a long-polling provider may wait for work. 0: answer at once. @default 0 */
  readonly pollTimeoutMs?: number;
  /** Absent: only work without a session. */
  readonly session?: SessionFetch;
  /** @default default-only */
  readonly tagFilter?: TagFilter;
  /** Names the caller, for stores whose leases need it. */
  readonly dispatcherId?: string;
  /** Ends a long poll early: the fetch resolves to null. */
  readonly signal?: AbortSignal;
}

/** `terminated`: the instance is known and the item's execution is no longer its running one. */
export type ExecutionState = "running" | "terminated";

/** An activity that nobody else may run until its lock is released or lapses. */
export interface LockedWorkItem {
  readonly item: ActivityExecute;
  /** Proves the lock to ack, abandon and renew. */
  readonly lockToken: string;
  /** How often it was fetched, this fetch included. */
  readonly attemptCount: number;
  readonly executionState: ExecutionState;
}

/** When a message becomes visible, and whether it is wanted at all. */
export interface EnqueueOptions {
  /** Keeps the message invisible for this long. @default 0 */
  readonly delayMs?: number;
  /** For a start: do nothing if the instance exists or a start for it is queued. @default false */
  readonly ifAbsent?: boolean;
}

/** `exists`: an instance of that id is there already, so nothing was queued. */
export type EnqueueOutcome = "enqueued" | "exists";

/** `Pending`: a start is queued, no turn is committed yet. */
export interface InstanceStatus {
  readonly status: ExecutionStatus | "Pending";
  readonly orchestrationName: string;
  readonly orchestrationVersion: string;
  readonly executionId: number;
  readonly output: string | null;
  readonly customStatus: string | null;
  readonly customStatusVersion: number;
}

/** How large an instance is: its current execution, and its key-value store. */
export interface InstanceStats {
  readonly historyEventCount: number;
  readonly historySizeBytes: number;
  /** Unread mailbox messages that its execution took over from the one before. */
  readonly queuePendingCount: number;
  readonly kvUserKeyCount: number;
  readonly kvTotalValueBytes: number;
}

/**
 * Tells that something committed may have changed an instance. A hint: it may be late, doubled or about nothing, and
 * correctness never depends on it. But for a completion, which nobody need tell, and who does tells the truth.
 */
export interface WakeSource {
  /** Calls `listener` whenever `instance` may have changed. Returns the way to stop. */
  watchInstance(instance: string, listener: (change?: InstanceChange) => void): () => void;
  /**
   * Counts all that it has told, or would have told if anybody had watched, of whichever instance. Nobody need count: clients then
   * look at what they have just started.
   */
  readonly changes?: number;
}

/** `turn`: it goes on, and has changed neither its custom status nor its values. `state`: anything, or nobody can tell. */
export type InstanceChange = "turn" | "state" | InstanceCompletion;

/** The instance has completed, by a commit that began after the listener had begun to watch. Whoever waits for that need not look. */
export interface InstanceCompletion {
  /** As in `InstanceStatus`. */
  readonly output: string | null;
}

/**
 * A store. What it must promise stands in the header of this file (P1 to P9) and in `docs/writing-a-provider.md`;
 * `duroxide-ts/provider-tests` finds out whether it does.
 *
 * Applications open one and hand it to `Runtime.start` and `new Client`. They close it after both, by `await using` or
 * `Symbol.asyncDispose`.
 */
export interface Provider extends AsyncDisposable {
  /** What kind of store it is, for logs and metrics. */
  readonly name: string;
  /** Of the provider, not of the store. */
  readonly version: string;

  /** Never creates the instance. @throws ProviderError "invalid" for an `ActivityExecute`. */
  enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome>;
  /**
   * Locks the instance whose oldest visible message is the oldest of all, and takes its visible messages as one batch.
   * Null: no eligible work.
   */
  fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null>;
  /**
   * Commits a turn and releases the instance, in one. The messages of that fetch are gone with it.
   * @throws ProviderError "lock-lost"; "duplicate-event" or "invalid", and then the lock is still held
   */
  ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void>;
  /** Gives the instance back. Counts only on the messages of that fetch. An unknown token succeeds silently. */
  abandonOrchestrationItem(lockToken: string, options?: AbandonOptions): Promise<void>;
  /** From now on, not from the end of the old lock. @throws ProviderError "lock-lost" */
  renewOrchestrationItemLock(lockToken: string, extendForMs: number): Promise<void>;

  /** Queues an activity outside of a turn. @throws ProviderError "invalid" for a message */
  enqueueForWorker(item: ActivityExecute): Promise<void>;
  /** Locks the oldest activity that suits the tags and sessions of the caller. Null: no eligible work. */
  fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null>;
  /**
   * Removes the work and queues its completion, in one. `null`: removes only.
   * @throws ProviderError "lock-lost": cancelled, taken over, expired or acked before.
   */
  ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void>;
  /** Gives the activity back. An unknown token succeeds silently. */
  abandonWorkItem(lockToken: string, options?: AbandonOptions): Promise<void>;
  /** From now on; answers whether the outcome is still wanted. @throws ProviderError "lock-lost" */
  renewWorkItemLock(lockToken: string, extendForMs: number): Promise<ExecutionState>;

  /** Renews the live, recently used sessions of these owners; answers how many. */
  renewSessionLock(
    ownerIds: readonly string[],
    options: { readonly extendForMs: number; readonly idleTimeoutMs: number },
  ): Promise<number>;
  /** Removes sessions with an expired lock and no queued work; answers how many. */
  cleanupOrphanedSessions(options: { readonly idleTimeoutMs: number }): Promise<number>;

  /** The latest execution's history; empty for an unknown instance. @throws ProviderError "corrupt" */
  read(instance: string): Promise<readonly Event[]>;
  /** As `read`, of that execution. */
  readWithExecution(instance: string, executionId: number): Promise<readonly Event[]>;
  /** For tests and import. @throws ProviderError "duplicate-event", "invalid" (event id 0) */
  appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void>;
  /** Where the instance stands, without its history. Null: unknown. */
  getInstanceStatus(instance: string): Promise<InstanceStatus | null>;
  /** The custom status. Null unless its version is newer than the one last seen. */
  getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null>;
  /** The committed view: earlier executions, then the committed turns of the current one. */
  getKvValue(instance: string, key: string): Promise<string | null>;
  /** As `getKvValue`, all of them; empty for an unknown instance. */
  getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>>;
  /** Null: unknown. */
  getInstanceStats(instance: string): Promise<InstanceStats | null>;

  /** Null: the store offers no management. */
  readonly admin: ProviderAdmin | null;
  /** Null: the runtime polls with backoff. */
  readonly wake: WakeSource | null;
}
