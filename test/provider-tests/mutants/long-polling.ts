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
        file: "sqlite-provider.ts",
        find: "if (signal?.aborted) return null;",
        replace: "signal?.throwIfAborted();",
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
    patches: [{ file: "turn-commit.ts", find: "  announceRelease(tx, instance);\n", replace: "" }],
  },
];
