import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";
import { describeAtomicTurns } from "./contract/atomic-turns.js";
import { describeAttempts } from "./contract/attempts.js";
import { describeCancellation } from "./contract/cancellation.js";
import { describeCapabilityFilter } from "./contract/capability-filter.js";
import { describeCustomStatus } from "./contract/custom-status.js";
import { describeExecutions } from "./contract/executions.js";
import { describeInstanceLocks } from "./contract/instance-locks.js";
import { describeKeyValues } from "./contract/key-values.js";
import { describeLockExpiry } from "./contract/lock-expiry.js";
import { describeQueueOrder } from "./contract/queue-order.js";
import { describeSessions } from "./contract/sessions.js";
import { describeTags } from "./contract/tags.js";
import { describeWorkerQueue } from "./contract/worker-queue.js";
import { openConnection } from "./sqlite-connection.js";

const groups = [
  describeAtomicTurns,
  describeAttempts,
  describeCancellation,
  describeCapabilityFilter,
  describeCustomStatus,
  describeExecutions,
  describeInstanceLocks,
  describeKeyValues,
  describeLockExpiry,
  describeQueueOrder,
  describeSessions,
  describeTags,
  describeWorkerQueue,
];
for (const kind of ["memory", "file"])
  describe(kind, () => {
    for (const g of groups)
      (g as any)(async () => {
        const clock = new VirtualClock();
        const directory = await mkdtemp(join(tmpdir(), "duroxide-sqlite-"));
        onTestFinished(() => rm(directory, { recursive: true }));
        const file = kind === "memory" ? ":memory:" : join(directory, "store.db");
        const provider = await SqliteProvider.open(file, { clock });
        onTestFinished(() => provider.close());
        return {
          clock,
          provider,
          ...(kind === "file"
            ? {
                async corruptHistory(instance: string) {
                  const c = await openConnection(file);
                  c.prepare("UPDATE duroxide_history SET event_data = '{' WHERE instance_id = ?").run(instance);
                  c.close();
                },
              }
            : {}),
        };
      });
  });
