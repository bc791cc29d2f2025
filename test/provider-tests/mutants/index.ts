// mutants/index.ts — all mutants, in the order of the categories.

import { ATOMICITY } from "./atomicity.js";
import { BULK_DELETION } from "./bulk-deletion.js";
import { CANCELLATION } from "./cancellation.js";
import { CANCELLED_TIMERS } from "./cancelled-timers.js";
import { CAPABILITY_FILTERING } from "./capability-filtering.js";
import { CONDITIONAL_START } from "./conditional-start.js";
import { CUSTOM_STATUS } from "./custom-status.js";
import { DELETION } from "./deletion.js";
import { DURABILITY } from "./durability.js";
import { ERROR_HANDLING } from "./error-handling.js";
import { FIDELITY } from "./fidelity.js";
import { HAND_OVER } from "./hand-over.js";
import { INSTANCE_CREATION } from "./instance-creation.js";
import { INSTANCE_LOCKING } from "./instance-locking.js";
import { INSTANCE_STATUS } from "./instance-status.js";
import { KV_STORE } from "./kv-store.js";
import { LOCK_EXPIRATION } from "./lock-expiration.js";
import { LONG_POLLING } from "./long-polling.js";
import { MANAGEMENT } from "./management.js";
import { MULTI_EXECUTION } from "./multi-execution.js";
import type { Mutant } from "./mutant.js";
import { POISON_MESSAGE } from "./poison-message.js";
import { PRUNE } from "./prune.js";
import { QUEUE_SEMANTICS } from "./queue-semantics.js";
import { SESSIONS } from "./sessions.js";
import { SET_UP } from "./set-up.js";
import { TAG_FILTERING } from "./tag-filtering.js";
import { WAKE } from "./wake.js";
import { WARM_HISTORY } from "./warm-history.js";

export const MUTANTS: readonly Mutant[] = [
  ...SET_UP,
  ...ATOMICITY,
  ...ERROR_HANDLING,
  ...INSTANCE_CREATION,
  ...INSTANCE_LOCKING,
  ...LOCK_EXPIRATION,
  ...MULTI_EXECUTION,
  ...QUEUE_SEMANTICS,
  ...MANAGEMENT,
  ...LONG_POLLING,
  ...HAND_OVER,
  ...POISON_MESSAGE,
  ...CANCELLATION,
  ...DELETION,
  ...PRUNE,
  ...BULK_DELETION,
  ...CAPABILITY_FILTERING,
  ...SESSIONS,
  ...CUSTOM_STATUS,
  ...TAG_FILTERING,
  ...KV_STORE,
  ...CONDITIONAL_START,
  ...CANCELLED_TIMERS,
  ...WARM_HISTORY,
  ...INSTANCE_STATUS,
  ...WAKE,
  ...FIDELITY,
  ...DURABILITY,
];
