import type { Mutant } from "./mutant.js";

export const LOCK_EXPIRATION: readonly Mutant[] = [
  {
    name: "an ack knows its token, but does not look at the end of its lock",
    category: "lock_expiration",
    caughtBy: "orchestration_ack_fails_after_lock_expiry",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "DELETE FROM duroxide_instance_locks WHERE instance_id = ? AND lock_token = ? AND locked_until > ?",
        replace: "DELETE FROM duroxide_instance_locks WHERE instance_id = ? AND lock_token = ? AND ? > 0",
      },
    ],
  },
  {
    name: "the completion of an activity is taken after the end of its lock",
    category: "lock_expiration",
    caughtBy: "worker_ack_fails_after_lock_expiry",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "DELETE FROM duroxide_worker_queue WHERE id = ? AND lock_token = ? AND held_until > ?",
        replace: "DELETE FROM duroxide_worker_queue WHERE id = ? AND lock_token = ? AND ? > 0",
      },
    ],
  },
  {
    name: "a renewal counts in whole seconds",
    category: "lock_expiration",
    caughtBy: "renewal_counts_in_milliseconds",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "const lockedUntil = tx.timeIn(extendForMs);",
        replace: "const lockedUntil = tx.timeIn(Math.trunc(extendForMs / 1000) * 1000);",
      },
    ],
  },
  {
    name: "a renewal counts from the end of the lock instead of from now",
    category: "lock_expiration",
    caughtBy: "orchestration_lock_renewal_extends_timeout",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "lock.lockedUntil = now + extendForMs;",
        replace: "lock.lockedUntil += extendForMs;",
      },
    ],
  },
  {
    name: "an expired lock of an activity can be renewed",
    category: "lock_expiration",
    caughtBy: "worker_lock_renewal_after_expiration",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: `const row = this.#requireWorkLock("renewWorkItemLock", lockToken, now);`,
        replace: `const row = this.#requireWorkLock("renewWorkItemLock", lockToken, 0);`,
      },
    ],
  },
  {
    name: "whoever was taken over can still give the instance away",
    category: "lock_expiration",
    caughtBy: "taken_over_lock_cannot_be_abandoned",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "    this.#unlock(instance); // an expired lock, whose token must not be honoured any more\n",
        replace: "",
      },
    ],
  },
  {
    name: "a delayed abandon hides its own messages, and later ones overtake them",
    category: "lock_expiration",
    caughtBy: "delayed_abandon_keeps_later_arrivals_in_order",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "if (delayMs > 0) instance.lock = { token: this.#newId(), lockedUntil: now + delayMs, batch: [] };",
        replace: `if (delayMs > 0) {
      for (const message of batch) {
        instance.messages.remove(message);
        instance.messages.add({ ...message, visibleAt: now + delayMs });
      }
    }`,
      },
    ],
  },
  {
    name: "an abandon puts the messages at the end of the queue",
    category: "lock_expiration",
    caughtBy: "abandoned_instance_keeps_the_order_of_its_messages",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "    this.#unlock(instance);\n    const { delayMs = 0 } = options;",
        replace: `    this.#unlock(instance);
    for (const message of batch) {
      instance.messages.remove(message);
      instance.messages.add({ ...message, dueAt: now });
    }
    const { delayMs = 0 } = options;`,
      },
    ],
  },
  {
    name: "durations are rounded down",
    category: "lock_expiration",
    caughtBy: "fractions_of_milliseconds_are_rounded_up",
    store: "sqlite",
    patches: [{ file: "transaction.ts", find: "Math.ceil(delayMs)", replace: "Math.floor(delayMs)" }],
  },
  {
    name: "a renewal never makes a lock shorter",
    category: "lock_expiration",
    caughtBy: "renewal_counts_in_milliseconds",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "SET locked_until = ? WHERE instance_id = ? AND lock_token = ? AND locked_until > ?",
        replace:
          "SET locked_until = MAX(locked_until, ?) WHERE instance_id = ? AND lock_token = ? AND locked_until > ?",
      },
    ],
  },
  {
    name: "an expired lock takes the locks of other instances along",
    category: "lock_expiration",
    caughtBy: "end_of_one_lock_leaves_others_alone",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "UPDATE duroxide_instance_locks SET locked_until = NULL WHERE locked_until <= ?",
        replace: "DELETE FROM duroxide_instance_locks WHERE ? > 0",
      },
    ],
  },
  {
    name: "a turn can be acked by whoever once held its instance",
    category: "lock_expiration",
    caughtBy: "ack_while_second_owner_is_mid_turn",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "DELETE FROM duroxide_instance_locks WHERE instance_id = ? AND lock_token = ? AND locked_until > ?",
        replace: "DELETE FROM duroxide_instance_locks WHERE instance_id = ? AND ? <> '' AND locked_until > ?",
      },
    ],
  },
  {
    name: "an activity can be acked by whoever once held it",
    category: "lock_expiration",
    caughtBy: "worker_ack_fails_after_take_over",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "DELETE FROM duroxide_worker_queue WHERE id = ? AND lock_token = ? AND held_until > ?",
        replace: "DELETE FROM duroxide_worker_queue WHERE id = ? AND ? <> '' AND held_until > ?",
      },
    ],
  },
  {
    name: "an activity can be given away by whoever once held it",
    category: "lock_expiration",
    caughtBy: "taken_over_work_lock_cannot_be_abandoned",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `WHERE id = ? AND lock_token = ?
\`;

/** Only while the lock is live. */
export const renewTaken`,
        replace: `WHERE id = ? AND ? <> ''
\`;

/** Only while the lock is live. */
export const renewTaken`,
      },
    ],
  },
  {
    name: "an activity can be renewed by whoever once held it",
    category: "lock_expiration",
    caughtBy: "worker_lock_renewal_after_expiration",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `  WHERE id = ? AND lock_token = ? AND held_until > ?
  RETURNING`,
        replace: `  WHERE id = ? AND ? <> '' AND held_until > ?
  RETURNING`,
      },
    ],
  },
  {
    name: "a turn can be renewed by whoever once held its instance",
    category: "lock_expiration",
    caughtBy: "orchestration_lock_renewal_after_expiration",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "SET locked_until = ? WHERE instance_id = ? AND lock_token = ? AND locked_until > ?",
        replace: "SET locked_until = ? WHERE instance_id = ? AND ? <> '' AND locked_until > ?",
      },
    ],
  },
  {
    name: "a process acks its own turns whenever it likes",
    category: "lock_expiration",
    caughtBy: "orchestration_ack_fails_after_lock_expiry",
    store: "sqlite",
    patches: [
      {
        file: "own-locks.ts",
        find: " || turn.lockedUntil <= now",
        replace: "",
      },
    ],
  },
  {
    name: "whoever asks acks the activity that this process holds",
    category: "lock_expiration",
    caughtBy: "worker_ack_fails_after_take_over",
    store: "sqlite",
    patches: [
      {
        file: "own-locks.ts",
        find: " || lock.token !== token",
        replace: "",
      },
    ],
  },
  {
    name: "where nothing was ready nothing ever becomes ready",
    category: "lock_expiration",
    caughtBy: "worker_lock_expires_after_timeout",
    store: "sqlite",
    patches: [
      {
        file: "database.ts",
        find: "    this.#still &= ~known.stirs;\n",
        replace: "",
      },
    ],
  },
];
