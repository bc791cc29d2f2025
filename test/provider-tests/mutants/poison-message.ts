import type { Mutant } from "./mutant.js";

export const POISON_MESSAGE: readonly Mutant[] = [
  {
    name: "a lock that expires takes its attempt along",
    category: "poison_message",
    caughtBy: "worker_attempt_count_increments_on_lock_expiry",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "UPDATE duroxide_worker_queue SET held_until = NULL WHERE held_until <= ?",
        replace:
          "UPDATE duroxide_worker_queue SET held_until = NULL, attempt_count = attempt_count - 1 WHERE held_until <= ?",
      },
    ],
  },
  {
    name: "every abandon of an activity takes back its attempt",
    category: "poison_message",
    caughtBy: "abandon_work_item_ignore_attempt_decrements",
    store: "sqlite",
    patches: [{ file: "worker-queue.ts", find: "options.ignoreAttempt ? 1 : 0", replace: "1" }],
  },
  {
    name: "the attempts of a batch are those of its last message",
    category: "poison_message",
    caughtBy: "max_attempt_count_across_message_batch",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "batch.reduce((highest, message) => Math.max(highest, message.attemptCount), 0)",
        replace: "batch.at(-1)!.attemptCount",
      },
    ],
  },
  {
    name: "a new message inherits the attempts of those before it",
    category: "poison_message",
    caughtBy: "attempts_of_later_messages_are_their_own",
    store: "memory",
    patches: [
      {
        file: "message-list.ts",
        find: "    this.#messages.add(message);\n    this.#byVisibility.add(message);",
        replace: `    for (const { attemptCount } of this.#messages) message.attemptCount = Math.max(message.attemptCount, attemptCount);
    this.#messages.add(message);
    this.#byVisibility.add(message);`,
      },
    ],
  },
  {
    name: "a delayed abandon does not take back its attempt",
    category: "poison_message",
    caughtBy: "delayed_abandon_ignores_attempt_too",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "if (ignoreAttempt) tx.db.run(takeBackAttempts, instanceId, lockedAt);",
        replace: "",
      },
    ],
  },
  {
    name: "an ignored attempt is taken back from other instances",
    category: "poison_message",
    caughtBy: "ignored_attempt_is_that_of_the_instance_only",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: `SET attempt_count = attempt_count - 1
  WHERE instance_id = ? AND`,
        replace: `SET attempt_count = attempt_count - 1
  WHERE instance_id = ? OR`,
      },
    ],
  },
];
