// client/management.ts — what operators ask through a client: lists, details, counts, and the removal of what is over.
//
//   M1. Nothing here is needed to run orchestrations: a provider may offer no management, and then each call says so.
//   M2. The store's refusals come out as errors of their own; what else goes wrong in the store, as it is.
//   M3. What cannot be right is refused before the store is asked: a misspelled filter would match everything.

import {
  InstanceNotFoundError,
  InstanceStillRunningError,
  InvalidInputError,
  ManagementNotAvailableError,
  ProviderError,
  SubOrchestrationError,
} from "../errors.js";
import { checkInstanceId } from "../history/limits.js";
import { checkOptions, isBoolean, type OptionCheck, oneOf } from "../options.js";
import type {
  DeleteResult,
  ExecutionInfo,
  InstanceFilter,
  InstanceInfo,
  InstanceTree,
  ProviderAdmin,
  PruneOptions,
  PruneResult,
  QueueDepths,
  SystemMetrics,
} from "../provider/admin.js";
import { checkInstanceFilter, checkPruneOptions } from "../provider/kit/admin-arguments.js";
import type { ExecutionStatus, InstanceStats, Provider } from "../provider/provider.js";

/** How an instance is deleted. */
export interface DeleteOptions {
  /** Deletes what runs, too. @default false */
  readonly force?: boolean;
}

const DELETE_OPTION_CHECKS: Readonly<Record<keyof DeleteOptions, OptionCheck>> = Object.freeze({ force: isBoolean });

const isStatus = oneOf("Running", "Completed", "Failed", "ContinuedAsNew");

/** The half of a `Client` that is for operators. */
export abstract class Management {
  readonly #provider: Provider;

  constructor(provider: Provider) {
    this.#provider = provider;
  }

  /** Whether the provider offers management. Without it, all methods below but `getInstanceStats` are refused. */
  hasManagementCapability(): boolean {
    return this.#admin !== null;
  }

  // Lists and details

  /**
   * The ids of all instances that have had their first turn, newest first.
   *
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE if the provider offers no management
   * @throws DUROXIDE_PROVIDER if the store fails
   */
  async listAllInstances(): Promise<readonly string[]> {
    return this.#ask((admin) => admin.listInstances());
  }

  /**
   * The ids of the instances whose current execution has this status, newest first. `ContinuedAsNew` are those
   * between two executions.
   *
   * @throws DUROXIDE_INVALID_INPUT for a status that there is not
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `listAllInstances`
   * @example
   * for (const id of await client.listInstancesByStatus("Failed")) report(await client.getStatus(id));
   */
  async listInstancesByStatus(status: ExecutionStatus): Promise<readonly string[]> {
    const wrong = isStatus(status);
    if (wrong !== null) throw new InvalidInputError(`status ${wrong}.`);
    return this.#ask((admin) => admin.listInstancesByStatus(status));
  }

  /**
   * What the store knows of an instance: its orchestration, its current execution, its times and its parent.
   *
   * @throws DUROXIDE_NOT_FOUND if the instance is not known
   * @throws DUROXIDE_INVALID_INPUT for an id that no instance can have
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `listAllInstances`
   */
  async getInstanceInfo(instanceId: string): Promise<InstanceInfo> {
    return this.#askAbout(instanceId, (admin, instance) => admin.getInstanceInfo(instance));
  }

  /**
   * The ids of the instance's executions, ascending. Empty where there are none.
   *
   * @throws DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `getInstanceInfo`
   */
  async listExecutions(instanceId: string): Promise<readonly number[]> {
    return this.#askAbout(instanceId, (admin, instance) => admin.listExecutions(instance));
  }

  /**
   * What the store knows of one execution. Its events are read by `readHistory`.
   *
   * @throws DUROXIDE_NOT_FOUND if the execution is not known, or was pruned
   * @throws DUROXIDE_INVALID_INPUT for a bad id, or an execution id that is no integer from 1 up
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `listAllInstances`
   */
  async getExecutionInfo(instanceId: string, executionId: number): Promise<ExecutionInfo> {
    checkExecutionId(executionId);
    const look = (admin: ProviderAdmin, instance: string) => admin.getExecutionInfo(instance, executionId);
    return this.#askAbout(instanceId, look, executionId);
  }

  /**
   * The instance and all its descendants, every parent before its children.
   *
   * @throws DUROXIDE_NOT_FOUND, DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as
   *   `getInstanceInfo`
   * @example
   * const { allIds } = await client.getInstanceTree("order-1");
   */
  async getInstanceTree(instanceId: string): Promise<InstanceTree> {
    return this.#askAbout(instanceId, (admin, instance) => admin.getInstanceTree(instance));
  }

  /**
   * Whose sub-orchestration the instance is. Null: nobody's.
   *
   * @throws DUROXIDE_NOT_FOUND, DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as
   *   `getInstanceInfo`
   */
  async getParentId(instanceId: string): Promise<string | null> {
    return this.#askAbout(instanceId, (admin, instance) => admin.getParentId(instance));
  }

  /**
   * The sub-orchestrations of the instance, but not theirs. Empty for an unknown instance.
   *
   * @throws DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `getInstanceInfo`
   */
  async listChildren(instanceId: string): Promise<readonly string[]> {
    return this.#askAbout(instanceId, (admin, instance) => admin.listChildren(instance));
  }

  // Counts

  /**
   * How much the store holds. Counts it all: for dashboards, not for loops.
   *
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `listAllInstances`
   */
  async getSystemMetrics(): Promise<SystemMetrics> {
    return this.#ask((admin) => admin.getSystemMetrics());
  }

  /**
   * How many messages and activities nobody works on, those that wait for their time included.
   *
   * @throws DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `listAllInstances`
   */
  async getQueueDepths(): Promise<QueueDepths> {
    return this.#ask((admin) => admin.getQueueDepths());
  }

  /**
   * How large the current execution of an instance and its key-value store are. Null for an unknown instance. Every
   * provider can tell.
   *
   * @throws DUROXIDE_INVALID_INPUT for an id that no instance can have
   * @throws DUROXIDE_PROVIDER if the store fails
   */
  async getInstanceStats(instanceId: string): Promise<InstanceStats | null> {
    return this.#provider.getInstanceStats(checkInstanceId(instanceId));
  }

  // Removal

  /**
   * Deletes an instance with all its descendants: histories, messages, activities, key-values. All or nothing, and
   * durable when this resolves. Its id is free again.
   *
   * With `force` also what runs. That does not stop code that is at work, but its result is refused and lost; an activity
   * learns by its signal that it is cancelled. Prefer `cancel`, where the instance may clean up behind itself. Whoever
   * waits for the instance goes on waiting, as for one that nobody has started: give waits a timeout.
   *
   * @throws DUROXIDE_NOT_FOUND if the instance is not known
   * @throws DUROXIDE_STILL_RUNNING if it or a descendant runs, unless forced
   * @throws DUROXIDE_SUB_ORCHESTRATION if it has a parent, forced or not
   * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or wrong
   * @throws DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `getInstanceInfo`
   * @example
   * const { eventsDeleted } = await client.deleteInstance("order-1");
   * await client.deleteInstance("order-2", { force: true });
   */
  async deleteInstance(instanceId: string, options: DeleteOptions = {}): Promise<DeleteResult> {
    checkOptions("deleteInstance", options, DELETE_OPTION_CHECKS); // M3
    return this.#askAbout(instanceId, (admin, instance) => admin.deleteInstance(instance, options.force ?? false));
  }

  /**
   * Deletes instances that have ended, oldest first, each with all its descendants. Trees in which something still runs are
   * passed over, and so are sub-orchestrations, even where the filter names them. Each tree goes whole or not at all; a
   * crash may leave some.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for no filter, or a condition that is unknown or wrong
   * @throws DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `getInstanceInfo`
   * @example
   * const lastWeek = Date.now() - 7 * 86_400_000;
   * const { instancesDeleted } = await client.deleteInstanceBulk({ completedBeforeMs: lastWeek });
   */
  async deleteInstanceBulk(filter: InstanceFilter): Promise<DeleteResult> {
    checkFilter("deleteInstanceBulk", filter); // M3
    return this.#ask((admin) => admin.deleteInstanceBulk(filter));
  }

  /**
   * Removes old executions of an instance with their histories, atomically; it may run meanwhile. The current execution
   * stays whatever the options say, and so do the key-values. Without options, everything else goes.
   *
   * @throws DUROXIDE_NOT_FOUND if the instance is not known
   * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or wrong
   * @throws DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `getInstanceInfo`
   * @example
   * await client.pruneExecutions("heartbeat", { keepLast: 10 });
   */
  async pruneExecutions(instanceId: string, options: PruneOptions = {}): Promise<PruneResult> {
    checkPruneOptions("pruneExecutions", options); // M3
    return this.#askAbout(instanceId, (admin, instance) => admin.pruneExecutions(instance, options));
  }

  /**
   * As `pruneExecutions`, for all instances that the filter lets through, oldest first, running ones and
   * sub-orchestrations included.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for no filter, or a condition or an option that is unknown or wrong
   * @throws DUROXIDE_INVALID_INPUT, DUROXIDE_MANAGEMENT_NOT_AVAILABLE, DUROXIDE_PROVIDER as `getInstanceInfo`
   */
  async pruneExecutionsBulk(filter: InstanceFilter, options: PruneOptions = {}): Promise<PruneResult> {
    checkFilter("pruneExecutionsBulk", filter); // M3
    checkPruneOptions("pruneExecutionsBulk", options);
    return this.#ask((admin) => admin.pruneExecutionsBulk(filter, options));
  }

  async #ask<T>(question: (admin: ProviderAdmin) => Promise<T>): Promise<T> {
    if (this.#admin === null) throw new ManagementNotAvailableError(this.#provider.name); // M1
    return question(this.#admin);
  }

  /** A provider in plain JavaScript may have left it out. */
  get #admin(): ProviderAdmin | null {
    return this.#provider.admin ?? null;
  }

  async #askAbout<T>(
    instanceId: string,
    question: (admin: ProviderAdmin, instance: string) => Promise<T>,
    executionId: number | null = null,
  ): Promise<T> {
    const instance = checkInstanceId(instanceId);
    try {
      return await this.#ask((admin) => question(admin, instance));
    } catch (error) {
      throw refusalOf(error, instance, executionId);
    }
  }
}

/** @throws `DUROXIDE_INVALID_INPUT` for anything but an integer from 1 up. */
export function checkExecutionId(executionId: unknown): number {
  if (Number.isSafeInteger(executionId) && (executionId as number) >= 1) return executionId as number;
  throw new InvalidInputError("execution id: an integer from 1 up is expected.");
}

function checkFilter(what: string, filter: InstanceFilter): void {
  checkInstanceFilter(what, filter);
  for (const id of filter.instanceIds ?? []) checkInstanceId(id, "instance id in the filter");
}

/** M2. */
function refusalOf(error: unknown, instanceId: string, executionId: number | null): unknown {
  if (!(error instanceof ProviderError)) return error;
  switch (error.kind) {
    case "not-found":
      return new InstanceNotFoundError(instanceId, executionId, { cause: error });
    case "still-running":
      return new InstanceStillRunningError(instanceId, { cause: error });
    case "sub-orchestration":
      return new SubOrchestrationError(instanceId, { cause: error });
    default:
      return error;
  }
}
