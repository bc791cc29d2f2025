// provider/kit/complete-admin.ts — the operations of management that are made of others, the same for every store.
//
//   C1. Nothing here is atomic but the store's own operations: a tree that grows while it is read is refused by the
//       store ("orphans"), and read again.
//   C2. What cannot be right is refused before the store is asked, and the store is told every default.
//   C3. What has ended may be deleted by somebody else, and started again, while others are deleted. So it is the store
//       that decides, in the operation that deletes: what runs then is passed over.
//   C4. Between two of many the event loop goes round: a store in the same process must not keep everything waiting.

import { ProviderError } from "../../errors.js";
import type { Event } from "../../history/event.js";
import type {
  AdminStore,
  BulkFilter,
  BulkScope,
  DeleteResult,
  InstanceFilter,
  InstanceTree,
  ProviderAdmin,
  PruneOptions,
  PruneResult,
} from "../admin.js";
import { checkInstanceFilter, checkInstanceIds, checkPruneOptions } from "./admin-arguments.js";

/** How often a tree may have grown between two looks before we say so. */
const MOST_LOOKS_AT_A_TREE = 10;

/** Enough for housekeeping that runs every few minutes; what is left over waits for the next time. */
const DEFAULT_BULK_LIMIT = 1_000;

/** Enough to share the price of a commit, few enough that nobody waits long behind them. */
const AT_ONCE = 64;

const NOTHING_DELETED: DeleteResult = {
  instancesDeleted: 0,
  executionsDeleted: 0,
  eventsDeleted: 0,
  queueMessagesDeleted: 0,
};

const NOTHING_PRUNED: PruneResult = { instancesProcessed: 0, executionsDeleted: 0, eventsDeleted: 0 };

/** What the reading half of a provider adds to management. */
export interface HistoryReader {
  /** As `Provider.read`. */
  read(instance: string): Promise<readonly Event[]>;
  /** As `Provider.readWithExecution`. */
  readWithExecution(instance: string, executionId: number): Promise<readonly Event[]>;
}

/**
 * Everything that operators may ask, from what a store answers: adds trees, cascading and bulk operations, and checks
 * filters and options before the store is asked.
 *
 * @example
 * class ManagedProvider extends ProviderWrapper {
 *   readonly #admin: ProviderAdmin;
 *   constructor(inner: Provider, store: AdminStore) {
 *     super(inner);
 *     this.#admin = completeAdmin(store, this);
 *   }
 *   override get admin(): ProviderAdmin {
 *     return this.#admin;
 *   }
 * }
 */
export function completeAdmin(store: AdminStore, reader: HistoryReader): ProviderAdmin {
  async function getInstanceTree(instance: string): Promise<InstanceTree> {
    await store.getParentId(instance); // not found?
    return { rootId: instance, allIds: await withDescendants(store, instance) };
  }

  async function deleteTree(root: string, force: boolean): Promise<DeleteResult> {
    for (let look = 1; look <= MOST_LOOKS_AT_A_TREE; look += 1) {
      try {
        return await store.deleteInstancesAtomic(await withDescendants(store, root), force);
      } catch (error) {
        if (!isKind(error, "orphans")) throw error; // C1
      }
    }
    const advice = `'${root}' has started more children, time and again. Cancel it, wait for its end, and delete it then.`;
    throw new ProviderError("orphans", "deleteInstance", advice);
  }

  /** Null: something in it has not ended. What somebody else has deleted counts nothing. */
  async function deleteEndedTree(root: string): Promise<DeleteResult | null> {
    try {
      return await deleteTree(root, false);
    } catch (error) {
      if (isKind(error, "still-running")) return null;
      throw error;
    }
  }

  return {
    listInstances: () => store.listInstances(),
    listInstancesByStatus: (status) => store.listInstancesByStatus(status),
    listExecutions: (instance) => store.listExecutions(instance),
    latestExecutionId: (instance) => store.latestExecutionId(instance),
    getInstanceInfo: (instance) => store.getInstanceInfo(instance),
    getExecutionInfo: (instance, executionId) => store.getExecutionInfo(instance, executionId),
    getSystemMetrics: () => store.getSystemMetrics(),
    getQueueDepths: () => store.getQueueDepths(),
    listChildren: (instance) => store.listChildren(instance),
    getParentId: (instance) => store.getParentId(instance),
    async deleteInstancesAtomic(instances, force) {
      checkInstanceIds("deleteInstancesAtomic", instances); // C2
      return store.deleteInstancesAtomic(instances, force);
    },
    readHistory: (instance) => reader.read(instance),
    readHistoryWithExecutionId: (instance, executionId) => reader.readWithExecution(instance, executionId),
    getInstanceTree,

    async deleteInstance(instance, force) {
      const parent = await store.getParentId(instance);
      if (parent !== null && (await isKnown(store, parent))) {
        const advice = `'${instance}' is a sub-orchestration of '${parent}'; delete the root of its tree instead.`;
        throw new ProviderError("sub-orchestration", "deleteInstance", advice);
      }
      return deleteTree(instance, force);
    },

    async deleteInstanceBulk(filter) {
      const asked = bulkFilter("deleteInstanceBulk", filter);
      const roots = await store.selectInstances(asked, { kind: "ended-roots" });
      const deleted = await eachOf(roots, async (root) => (await deleteEndedTree(root)) ?? NOTHING_DELETED); // C3
      return deleted.reduce(addDeleted, NOTHING_DELETED);
    },

    async pruneExecutions(instance, options) {
      checkPruneOptions("pruneExecutions", options); // C2
      return store.pruneExecutions(instance, options);
    },

    async pruneExecutionsBulk(filter, options) {
      checkPruneOptions("pruneExecutionsBulk", options); // C2
      const scope: BulkScope = { kind: "more-executions-than", count: Math.max(1, options.keepLast ?? 0) };
      const instances = await store.selectInstances(bulkFilter("pruneExecutionsBulk", filter), scope);
      const pruned = await eachOf(instances, (instance) => pruneUnlessGone(store, instance, options));
      return pruned.reduce(addPruned, NOTHING_PRUNED);
    },
  };
}

/** C2. @throws InvalidOptionsError */
function bulkFilter(operation: string, filter: InstanceFilter): BulkFilter {
  checkInstanceFilter(operation, filter);
  return { ...filter, limit: filter.limit ?? DEFAULT_BULK_LIMIT };
}

/** A parent may be deleted while the start of its child is queued. */
async function isKnown(store: AdminStore, instance: string): Promise<boolean> {
  try {
    await store.getParentId(instance);
    return true;
  } catch (error) {
    if (isKind(error, "not-found")) return false;
    throw error;
  }
}

/** The instance itself, then its children, then theirs. */
async function withDescendants(store: AdminStore, root: string): Promise<readonly string[]> {
  const all = [root];
  const seen = new Set(all);
  for (const parent of all) {
    for (const child of await store.listChildren(parent)) {
      if (seen.has(child)) continue;
      seen.add(child);
      all.push(child);
    }
  }
  return all;
}

/** Between the choice and its turn somebody may have deleted it. */
async function pruneUnlessGone(store: AdminStore, instance: string, options: PruneOptions): Promise<PruneResult> {
  try {
    return await store.pruneExecutions(instance, options);
  } catch (error) {
    if (isKind(error, "not-found")) return NOTHING_PRUNED;
    throw error;
  }
}

/** C4: a few at a time, so that they share commits, and with a pause after each few. */
async function eachOf<T>(instances: readonly string[], work: (instance: string) => Promise<T>): Promise<readonly T[]> {
  const results: T[] = [];
  for (let from = 0; from < instances.length; from += AT_ONCE) {
    results.push(...(await Promise.all(instances.slice(from, from + AT_ONCE).map(work))));
    await breathe();
  }
  return results;
}

function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isKind(error: unknown, kind: ProviderError["kind"]): boolean {
  return error instanceof ProviderError && error.kind === kind;
}

function addDeleted(a: DeleteResult, b: DeleteResult): DeleteResult {
  return {
    instancesDeleted: a.instancesDeleted + b.instancesDeleted,
    executionsDeleted: a.executionsDeleted + b.executionsDeleted,
    eventsDeleted: a.eventsDeleted + b.eventsDeleted,
    queueMessagesDeleted: a.queueMessagesDeleted + b.queueMessagesDeleted,
  };
}

function addPruned(a: PruneResult, b: PruneResult): PruneResult {
  return {
    instancesProcessed: a.instancesProcessed + b.instancesProcessed,
    executionsDeleted: a.executionsDeleted + b.executionsDeleted,
    eventsDeleted: a.eventsDeleted + b.eventsDeleted,
  };
}
