import type { Mutant } from "./mutant.js";

export const HAND_OVER: readonly Mutant[] = [
  {
    name: "whoever waits is handed an instance that somebody else holds",
    category: "hand_over",
    caughtBy: "turn_of_a_locked_instance_waits",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "return row.locked_until !== null && row.locked_until > tx.now;",
        replace: "return false;",
      },
    ],
  },
  {
    name: "those who wait for work whose commit fails are forgotten",
    category: "hand_over",
    caughtBy: "refused_neighbour_takes_nothing_along",
    store: "sqlite",
    patches: [{ file: "group-commit.ts", find: "for (const run of runs.splice(0)) run.giveBack();", replace: "" }],
  },
  {
    name: "whoever waits is handed work before its commit",
    category: "hand_over",
    caughtBy: "refused_neighbour_takes_nothing_along",
    store: "sqlite",
    patches: [
      {
        file: "waiting-fetches.ts",
        find: "      else served.add(next, found);",
        replace: "      else next.give(found);",
      },
    ],
  },
  {
    name: "whoever has the rows of others written is refused alone where one of them is",
    category: "hand_over",
    caughtBy: "refused_neighbour_of_whoever_looks",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: "    this.happened += 1;\n    const [values, events",
        replace: "    const [values, events",
      },
    ],
  },
  {
    name: "a time that falls due while nobody waits is not remembered",
    category: "hand_over",
    caughtBy: "delay_that_began_while_nobody_waited",
    store: "sqlite",
    patches: [
      {
        file: "next-due.ts",
        find: "if (this.#at !== null && timeMs < this.#at) this.#at = timeMs;",
        replace: "void timeMs;",
      },
    ],
  },
  {
    name: "whoever comes where nothing is ready does not see what has fallen due",
    category: "hand_over",
    caughtBy: "delay_that_began_while_nobody_waited",
    store: "sqlite",
    patches: [
      { file: "waiting-fetches.ts", find: "nextDue.in(database.epoch).isAfter(this.#lookedAt) && ", replace: "" },
    ],
  },
  {
    name: "whoever comes does not see the messages that a commit has left",
    category: "hand_over",
    caughtBy: "turn_is_as_a_fetch_would_bring_it",
    store: "sqlite",
    patches: [{ file: "new-rows.ts", find: 'this.#hasReady ||= state === "ready";', replace: "" }],
  },
  {
    name: "who waits for sessions joins those who wait for others",
    category: "hand_over",
    caughtBy: "owner_of_a_session_looks_for_itself",
    store: "sqlite",
    patches: [
      {
        file: "waiting-fetches.ts",
        find: "joins: ({ session }) => session === undefined,",
        replace: "joins: () => true,",
      },
    ],
  },
  {
    name: "what another process sends with a delay is not looked for",
    category: "hand_over",
    caughtBy: "delay_of_another_process",
    store: "sqlite",
    patches: [{ file: "next-due.ts", find: "if (epoch !== this.#epoch) this.forget();", replace: "" }],
  },
  {
    name: "an activity that is handed over can be fetched by others",
    category: "hand_over",
    caughtBy: "activity_is_locked_and_counted",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: "return this.#keep(activity, lockedUntil, secret, 1);",
        replace: "return this.#keep(activity, null, secret, 1);",
      },
    ],
  },
  {
    name: "a handed-over activity has another token than its row",
    category: "hand_over",
    caughtBy: "activity_is_locked_and_counted",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: "return this.#keep(activity, lockedUntil, secret, 1);",
        replace: "return this.#keep(activity, lockedUntil, secret, 1) + 1;",
      },
    ],
  },
  {
    name: "what this process remembers of an instance is believed, whoever has committed since",
    category: "hand_over",
    caughtBy: "turns_of_another_process_count",
    store: "sqlite",
    patches: [
      {
        file: "known-instances.ts",
        find: "known !== undefined && known.secret === lastCommit",
        replace: "known !== undefined",
      },
    ],
  },
  {
    name: "a version that is pinned later is not remembered",
    category: "hand_over",
    caughtBy: "version_that_was_pinned_later_counts",
    store: "sqlite",
    patches: [
      { file: "turn-commit.ts", find: "goesOn && turn.metadata.pinnedVersion === undefined", replace: "goesOn" },
    ],
  },
  {
    name: "whoever waits is handed a history without the events of the very commit",
    category: "hand_over",
    caughtBy: "turn_is_as_a_fetch_would_bring_it",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "  if (!isNew && warmAsOf === null) tx.newEvents.writeAll(); // They may be its own.\n",
        replace: "",
      },
    ],
  },
  {
    name: "what arrives with a fetch is handed over before what has waited",
    category: "hand_over",
    caughtBy: "oldest_turn_first_though_another_arrives",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "    if (isAnyReady(tx)) return null;\n",
        replace: "",
      },
    ],
  },
  {
    name: "of what one commit sends, the last instance is handed over first",
    category: "hand_over",
    caughtBy: "turn_is_as_a_fetch_would_bring_it",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: `for (const instanceId of this.#free.keys()) return instanceId;
    return undefined;`,
        replace: "return [...this.#free.keys()].at(-1);",
      },
    ],
  },
  {
    name: "the messages of one commit are handed over backwards",
    category: "hand_over",
    caughtBy: "turn_is_as_a_fetch_would_bring_it",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: "messages: messages.map(({ item }) => item)",
        replace: "messages: messages.map(({ item }) => item).reverse()",
      },
    ],
  },
  {
    name: "an activity that arrives with a fetch is handed over before those that have waited",
    category: "hand_over",
    caughtBy: "oldest_activity_first_though_another_arrives",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `  releaseHeld(tx);
  while (isAnyActivityReady(tx)) {`,
        replace: `  releaseHeld(tx);
  const fresh = takeNew(tx, options);
  if (fresh !== null) return fresh;
  while (isAnyActivityReady(tx)) {`,
      },
    ],
  },
  {
    name: "a timer that is due overtakes what was sent before it",
    category: "hand_over",
    caughtBy: "messages_of_one_turn_keep_their_order",
    store: "sqlite",
    patches: [
      {
        file: "orchestrator-queue.ts",
        find: "    tx.newMessages.writeOf(instanceId);\n",
        replace: "",
      },
    ],
  },
  {
    name: "work that is handed to whoever waits counts as that of a running execution",
    category: "hand_over",
    caughtBy: "activity_tells_whether_its_execution_runs",
    store: "sqlite",
    patches: [
      {
        file: "worker-queue.ts",
        find: `activity.isRunning ? "running" : stateOf(tx, item)`,
        replace: `"running"`,
      },
    ],
  },
  {
    name: "work that a turn schedules with its last breath counts as that of a running execution",
    category: "hand_over",
    caughtBy: "activity_tells_whether_its_execution_runs",
    store: "sqlite",
    patches: [
      {
        file: "turn-commit.ts",
        find: "goesOn && item.executionId === lock.executionId && item.instance === instance",
        replace: "item.instance === instance",
      },
    ],
  },
  {
    name: "queue messages that arrive while a fetch waits are dropped, whatever else waits for their instance",
    category: "hand_over",
    caughtBy: "queue_message_waits_with_others",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "return isUnknown ? null : row;",
        replace: "return row;",
      },
    ],
  },
  {
    name: "of an instance that it knows a process overlooks its own lock",
    category: "hand_over",
    caughtBy: "turn_of_a_locked_instance_waits",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "tx.own.turnEnd(instanceId);",
        replace: "null;",
      },
    ],
  },
  {
    name: "what this process has committed is not compared, whoever has committed since",
    category: "hand_over",
    caughtBy: "turns_of_another_process_count",
    store: "sqlite",
    patches: [
      {
        file: "known-instances.ts",
        find: "known !== undefined && known.epoch === this.#epoch",
        replace: "known !== undefined",
      },
    ],
  },
  {
    name: "the message of a turn that went ahead of its commit stays behind",
    category: "hand_over",
    caughtBy: "turn_that_is_acked_at_once",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: "for (const row of rows) this.#rows.delete(row);",
        replace: "",
      },
    ],
  },
  {
    name: "a turn that went ahead and is refused takes along what it answers",
    category: "hand_over",
    caughtBy: "turn_that_is_refused_at_once",
    store: "sqlite",
    patches: [
      {
        file: "group-commit.ts",
        find: "return this.#conclude(await open.replace((db) => begin(db, 0)));",
        replace: `throw new Error("taken back");`,
      },
    ],
  },
];
