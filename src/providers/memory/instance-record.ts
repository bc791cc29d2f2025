// providers/memory/instance-record.ts — everything that the store holds under one instance id.
//
// A record comes into being with the first message to its id. That does not make the instance known: only `row` does,
// and only an ack that carries both name and version writes it.

import type { Event } from "../../history/event.js";
import { INITIAL_EXECUTION_ID } from "../../history/event.js";
import type { CapabilityFilter, SemVer, TurnCommit } from "../../provider/provider.js";
import { ExecutionRecord } from "./execution-record.js";
import { KvTables } from "./kv-tables.js";
import { type Message, MessageList } from "./message-list.js";

export interface InstanceRow {
  name: string;
  version: string;
  currentExecutionId: number;
  /** The lock token of the last turn; null when something was appended since. */
  lastCommit: string | null;
  parentInstanceId: string | null;
  customStatus: string | null;
  customStatusVersion: number;
  readonly createdAt: number;
  /** When its last turn was committed. */
  updatedAt: number;
}

export interface InstanceLock {
  readonly token: string;
  lockedUntil: number;
  /** The messages of this fetch. Those that arrive later are none of the lock holder's business. */
  readonly batch: readonly Message[];
}

/** What the instance is a run of. */
export interface Identity {
  readonly name: string;
  readonly version: string;
}

/** The version of an instance for which nobody has named one. */
const UNKNOWN_VERSION = "unknown";

export class InstanceRecord {
  row: InstanceRow | null = null;
  lock: InstanceLock | null = null;
  readonly messages = new MessageList();
  readonly executions = new Map<number, ExecutionRecord>();
  readonly kv = new KvTables();
  latestExecutionId = INITIAL_EXECUTION_ID;

  constructor(readonly id: string) {}

  get currentExecutionId(): number {
    return this.row?.currentExecutionId ?? this.latestExecutionId;
  }

  get currentExecution(): ExecutionRecord | null {
    return this.executions.get(this.currentExecutionId) ?? null;
  }

  isLocked(now: number): boolean {
    return this.lock !== null && this.lock.lockedUntil > now;
  }

  /** How many messages no live lock holds, visible or not. The lock of a delay has no batch, so it holds none. */
  countFreeMessages(now: number): number {
    const held = this.isLocked(now) ? (this.lock?.batch ?? []) : [];
    return this.messages.size - held.filter((message) => this.messages.has(message)).length;
  }

  /**
   * An instance that has run is known by its row, or failing that by its history; a new one by its start, which must be
   * visible where a time is given. Null: nobody has said yet what this instance is.
   */
  identify(now?: number): Identity | null {
    if (this.row !== null) return this.row;
    for (let executionId = this.latestExecutionId; executionId >= INITIAL_EXECUTION_ID; executionId -= 1) {
      const started = this.executions.get(executionId)?.findStarted() ?? null;
      if (started !== null) return started;
    }
    const start = this.messages.findStart(now);
    return start && { name: start.orchestration, version: start.version ?? UNKNOWN_VERSION };
  }

  /** Whether a dispatcher with this filter can replay the current execution. */
  isCompatibleWith(filter: CapabilityFilter | undefined): boolean {
    const pinned = this.row === null ? null : (this.currentExecution?.pinnedVersion ?? null);
    if (filter === undefined || pinned === null) return true;
    const range = filter.supportedVersions[0];
    return range !== undefined && compare(range.min, pinned) <= 0 && compare(pinned, range.max) <= 0;
  }

  appendHistory(executionId: number, events: readonly Event[], now: number): ExecutionRecord {
    const execution = this.executions.get(executionId) ?? new ExecutionRecord(executionId, now);
    this.executions.set(executionId, execution);
    this.latestExecutionId = Math.max(this.latestExecutionId, executionId);
    execution.append(events);
    return execution;
  }

  /** Writes what a turn says of its own instance. The turn must have been checked. */
  applyTurn(turn: TurnCommit, lockToken: string, now: number): void {
    this.#applyIdentity(turn, now);
    if (this.row !== null) this.row.lastCommit = lockToken;
    const execution = this.appendHistory(turn.executionId, turn.events, now);
    execution.apply(turn.metadata, now);
    this.#applyCustomStatus(turn.events);
    for (const event of turn.events) this.kv.apply(event);
    if (turn.metadata.status !== undefined && !execution.isRunning) this.kv.merge();
  }

  #applyIdentity({ executionId, metadata }: TurnCommit, now: number): void {
    const { orchestrationName: name, orchestrationVersion: version, parentInstanceId } = metadata;
    if (name !== undefined && version !== undefined) {
      this.row ??= {
        name,
        version,
        currentExecutionId: executionId,
        lastCommit: null,
        parentInstanceId: parentInstanceId ?? null,
        customStatus: null,
        customStatusVersion: 0,
        createdAt: now,
        updatedAt: now,
      };
      this.row.name = name;
      this.row.version = version;
    }
    if (this.row === null) return;
    this.row.currentExecutionId = Math.max(this.row.currentExecutionId, executionId);
    this.row.updatedAt = now;
  }

  /** The last update of the turn counts; readers see one new version, however many there were. */
  #applyCustomStatus(events: readonly Event[]): void {
    const update = events.findLast((event) => event.type === "CustomStatusUpdated");
    if (this.row === null || update?.type !== "CustomStatusUpdated") return;
    this.row.customStatus = update.status;
    this.row.customStatusVersion += 1;
  }
}

function compare(a: SemVer, b: SemVer): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}
