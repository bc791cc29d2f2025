// contract/index.ts — the provider contract as tests. Every provider runs all of them.

import { describe, onTestFinished } from "vitest";
import { describeAtomicTurns } from "./atomic-turns.js";
import { describeAttempts } from "./attempts.js";
import { describeCancellation } from "./cancellation.js";
import { describeCancelledTimers } from "./cancelled-timers.js";
import { describeCapabilityFilter } from "./capability-filter.js";
import { describeCorruptHistory } from "./corrupt-history.js";
import { describeCustomStatus } from "./custom-status.js";
import { describeExecutions } from "./executions.js";
import { describeInstanceLocks } from "./instance-locks.js";
import { describeKeyValues } from "./key-values.js";
import { describeLockExpiry } from "./lock-expiry.js";
import { describeLongPolling } from "./long-polling.js";
import type { OpenProvider } from "./open-provider.js";
import { describeOrphans } from "./orphans.js";
import { describeQueueOrder } from "./queue-order.js";
import { describeSessions } from "./sessions.js";
import { describeStartIfAbsent } from "./start-if-absent.js";
import { describeStatusAndStats } from "./status-and-stats.js";
import { describeTags } from "./tags.js";
import { describeWarmHistory } from "./warm-history.js";
import { describeWorkerQueue } from "./worker-queue.js";

const groups: ReadonlyArray<(open: OpenProvider) => void> = [
  describeAtomicTurns,
  describeInstanceLocks,
  describeLockExpiry,
  describeAttempts,
  describeQueueOrder,
  describeOrphans,
  describeStartIfAbsent,
  describeExecutions,
  describeWarmHistory,
  describeCorruptHistory,
  describeCancelledTimers,
  describeWorkerQueue,
  describeCancellation,
  describeSessions,
  describeTags,
  describeCapabilityFilter,
  describeCustomStatus,
  describeKeyValues,
  describeStatusAndStats,
  describeLongPolling,
];

export function describeProviderContract(name: string, open: OpenProvider): void {
  const openForOneTest: OpenProvider = async () => {
    const opened = await open();
    onTestFinished(() => opened.provider[Symbol.asyncDispose]());
    return opened;
  };
  describe(name, () => {
    for (const describeGroup of groups) describeGroup(openForOneTest);
  });
}
