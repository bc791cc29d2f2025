import type { Mutant } from "./mutant.js";

export const QUEUE_SEMANTICS: readonly Mutant[] = [
  {
    name: "the newest activity is fetched first",
    category: "queue_semantics",
    caughtBy: "worker_queue_fifo_ordering",
    store: "memory",
    patches: [
      {
        file: "worker-queue.ts",
        find: `    for (const row of this.#rows) {
`,
        replace: `    for (const row of [...this.#rows].reverse()) {
`,
      },
    ],
  },
  {
    name: "the delay of an abandoned activity is ignored",
    category: "queue_semantics",
    caughtBy: "worker_delayed_visibility_skips_future_items",
    store: "memory",
    patches: [{ file: "worker-queue.ts", find: "row.visibleAt = now + delayMs;", replace: "row.visibleAt = now;" }],
  },
  {
    name: "an activity is gone when its lock has ended",
    category: "queue_semantics",
    caughtBy: "lost_lock_token_handling",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: "releaseEndedHolds = `UPDATE duroxide_worker_queue SET held_until = NULL WHERE",
        replace: "releaseEndedHolds = `DELETE FROM duroxide_worker_queue WHERE",
      },
    ],
  },
  {
    name: "messages are ordered by their arrival alone",
    category: "queue_semantics",
    caughtBy: "timer_has_place_of_its_fire_time",
    store: "sqlite",
    patches: [{ file: "fetch-orchestration.ts", find: "a.due_at - b.due_at || a.id - b.id", replace: "a.id - b.id" }],
  },
  {
    name: "messages that are equal are taken for one",
    category: "queue_semantics",
    caughtBy: "equal_messages_are_kept",
    store: "memory",
    patches: [
      {
        file: "message-list.ts",
        find: `  add(message: Message): void {
`,
        replace: `  add(message: Message): void {
    for (const { item } of this.#messages) if (JSON.stringify(item) === JSON.stringify(message.item)) return;
`,
      },
    ],
  },
  {
    name: "a timer of a turn is visible at once",
    category: "queue_semantics",
    caughtBy: "timer_of_turn_fires_at_its_time",
    store: "sqlite",
    patches: [
      { file: "orchestrator-queue.ts", find: "Math.max(dueAt, tx.timeIn(delayMs))", replace: "tx.timeIn(delayMs)" },
    ],
  },
  {
    name: "a message that runs ahead of its start ends the search",
    category: "queue_semantics",
    caughtBy: "orphan_cancel_starves_nobody",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: `takeBatch(tx, candidate, options));
    if (locked !== null) return locked;`,
        replace: `takeBatch(tx, candidate, options));
    return locked;`,
      },
    ],
  },
  {
    name: "a message that runs ahead of its start is counted",
    category: "queue_semantics",
    caughtBy: "orphan_cancel_consumes_no_attempts",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "SET state = 'parked', attempt_count = attempt_count - 1",
        replace: "SET state = 'parked'",
      },
    ],
  },
  {
    name: "queue messages wait for an instance that nobody has started",
    category: "queue_semantics",
    caughtBy: "orphan_queue_messages_dropped",
    store: "sqlite",
    patches: [{ file: "fetch-orchestration.ts", find: "if (areQueueMessages &&", replace: "if (!areQueueMessages &&" }],
  },
  {
    name: "queue messages are dropped while their start is delayed",
    category: "queue_semantics",
    caughtBy: "queue_message_with_hidden_start_kept",
    store: "memory",
    patches: [{ file: "memory-provider.ts", find: " || messages.findStart() !== null) return;", replace: ") return;" }],
  },
  {
    name: "the next instance is the one that was written to first",
    category: "queue_semantics",
    caughtBy: "message_due_first_comes_first",
    store: "sqlite",
    patches: [
      { file: "fetch-orchestration.ts", find: "ORDER BY q.due_at, q.id LIMIT 1", replace: "ORDER BY q.id LIMIT 1" },
    ],
  },
  {
    name: "a batch takes delayed messages along",
    category: "queue_semantics",
    caughtBy: "delayed_message_hides_no_other",
    store: "memory",
    patches: [
      {
        file: "message-list.ts",
        find: "if (message.visibleAt <= now) visible.push(message);",
        replace: "visible.push(message);",
      },
    ],
  },
  {
    name: "a message that waited for a delayed start has lost its place",
    category: "queue_semantics",
    caughtBy: "early_message_gives_instance_its_place",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: `  tx.db.run(unparkForVisibleStarts, tx.now);
`,
        replace: "",
      },
    ],
  },
];
