// cases/index.ts — all categories of the suite, in the order in which they are reported.

import type { Category } from "../provider-case.js";
import { atomicity } from "./atomicity.js";
import { bulkDeletion } from "./bulk-deletion.js";
import { cancellation } from "./cancellation.js";
import { cancelledTimers } from "./cancelled-timers.js";
import { capabilityFiltering } from "./capability-filtering.js";
import { conditionalStart } from "./conditional-start.js";
import { customStatus } from "./custom-status.js";
import { deletion } from "./deletion.js";
import { durability } from "./durability.js";
import { errorHandling } from "./error-handling.js";
import { fidelity } from "./fidelity.js";
import { handOver } from "./hand-over.js";
import { instanceCreation } from "./instance-creation.js";
import { instanceLocking } from "./instance-locking.js";
import { instanceStatus } from "./instance-status.js";
import { kvStore } from "./kv-store.js";
import { lockExpiration } from "./lock-expiration.js";
import { longPolling } from "./long-polling.js";
import { management } from "./management.js";
import { multiExecution } from "./multi-execution.js";
import { poisonMessage } from "./poison-message.js";
import { prune } from "./prune.js";
import { queueSemantics } from "./queue-semantics.js";
import { sessions } from "./sessions.js";
import { setUp } from "./set-up.js";
import { tagFiltering } from "./tag-filtering.js";
import { wake } from "./wake.js";
import { warmHistory } from "./warm-history.js";

/**
 * All cases of the validation suite, by category, in the order in which they are reported.
 *
 * @example
 * for (const { name, about, cases } of CATEGORIES) report(`${name} (${cases.length}): ${about}`);
 */
export const CATEGORIES: readonly Category[] = [
  setUp,
  atomicity,
  errorHandling,
  instanceCreation,
  instanceLocking,
  lockExpiration,
  multiExecution,
  queueSemantics,
  management,
  longPolling,
  handOver,
  poisonMessage,
  cancellation,
  deletion,
  prune,
  bulkDeletion,
  capabilityFiltering,
  sessions,
  customStatus,
  tagFiltering,
  kvStore,
  conditionalStart,
  cancelledTimers,
  warmHistory,
  instanceStatus,
  wake,
  fidelity,
  durability,
];
