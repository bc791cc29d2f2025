import type { Mutant } from "./mutant.js";

export const LONG_POLLING: readonly Mutant[] = [
  {
    name: "a fetch of turns does not wait",
    category: "long_polling",
    caughtBy: "long_poll_waits_for_timeout",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "supportedVersions[0] ?? null),\n      pollTimeoutMs: options.pollTimeoutMs ?? 0,",
        replace: "supportedVersions[0] ?? null),\n      pollTimeoutMs: 0,",
      },
    ],
  },
  {
    name: "a fetch whose caller has given up rejects",
    category: "long_polling",
    caughtBy: "poll_ends_when_its_caller_gives_up",
    store: "sqlite",
    patches: [
      {
        file: "waiting-fetches.ts",
        find: "if (signal?.aborted) return NOTHING;",
        replace: "if (signal?.aborted) return Promise.reject(signal.reason);",
      },
    ],
  },
  {
    name: "every abandon makes an activity visible at once to those who wait",
    category: "long_polling",
    caughtBy: "poll_ends_when_an_activity_is_abandoned",
    store: "memory",
    patches: [{ file: "worker-queue.ts", find: "row.visibleAt = now + delayMs;", replace: "row.visibleAt = now;" }],
  },
  {
    name: "an ack does not tell those who wait that it has released messages",
    category: "long_polling",
    caughtBy: "poll_ends_when_an_ack_releases_messages",
    store: "sqlite",
    patches: [{ file: "turn-commit.ts", find: "  announceRelease(tx, instanceId);\n", replace: "" }],
  },
  {
    name: "a fetch that was looked for in vain is forgotten",
    category: "long_polling",
    caughtBy: "poll_is_not_kept_from_its_work_by_others",
    store: "sqlite",
    patches: [
      {
        file: "waiting-fetches.ts",
        find: `if (found === null) next.giveBack();
      else served.add(next, found);`,
        replace: "if (found !== null) served.add(next, found);",
      },
    ],
  },
  {
    name: "whoever waits is handed what it cannot replay",
    category: "long_polling",
    caughtBy: "poll_is_not_kept_from_its_turn_by_others",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "    if (!isReplayable(row, range)) return null;",
        replace: "",
      },
    ],
  },
  {
    name: "whoever waits is handed work whatever its tag",
    category: "long_polling",
    caughtBy: "poll_is_not_kept_from_its_work_by_others",
    store: "sqlite",
    patches: [
      { file: "new-rows.ts", find: "letsThrough(filter, item.tag)", replace: "letsThrough(filter, item.tag) || true" },
    ],
  },
  {
    name: "a message that is handed to whoever waits counts as never fetched",
    category: "long_polling",
    caughtBy: "poll_ends_when_a_later_lock_expires",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: `state === "taken" ? 1 : 0`,
        replace: "0",
      },
    ],
  },
  {
    name: "an activity that is handed to whoever waits counts as never fetched",
    category: "long_polling",
    caughtBy: "poll_ends_when_the_lock_of_an_activity_expires",
    store: "sqlite",
    patches: [
      {
        file: "new-rows.ts",
        find: "return this.#keep(activity, lockedUntil, secret, 1);",
        replace: "return this.#keep(activity, lockedUntil, secret, 0);",
      },
    ],
  },
  {
    name: "where nothing was ready nobody looks again, whoever has committed since",
    category: "long_polling",
    caughtBy: "poll_hears_of_another_process",
    store: "sqlite",
    patches: [
      {
        file: "database.ts",
        find: "    this.#still = 0;\n",
        replace: "",
      },
    ],
  },
];
