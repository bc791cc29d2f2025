// fleet/worker-options.mjs — what the workers of a fleet are told: all the same but for tags, and names that some keep.

/** Short locks, so that a dead worker's work is soon taken over; attempts enough for a world this cruel. */
export const WORKER_OPTIONS = Object.freeze({
  orchestratorLockTimeoutMs: 2_000,
  workerLockTimeoutMs: 3_000,
  sessionLockTimeoutMs: 3_000,
  sessionIdleTimeoutMs: 10_000,
  sessionCleanupIntervalMs: 2_000,
  maxAttempts: 100,
});

/** `tags`: all that the load uses. */
export function workerOptionsAt(place, tags) {
  return {
    ...WORKER_OPTIONS,
    tagFilter: { kind: "default-and", tags: tagsAt(place, tags) },
    workerNodeId: nodeAt(place),
  };
}

/** Every third worker takes all tags, the others one each. */
function tagsAt(place, tags) {
  return place % 3 === 0 ? tags : [tags[place % tags.length]];
}

/** Every second place has a name, under which whoever comes next keeps the sessions of the one that was killed there. */
function nodeAt(place) {
  return place % 2 === 1 ? `place-${place}` : null;
}
