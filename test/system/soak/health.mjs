// soak/health.mjs — how the process is: its heap after garbage collection, and what keeps its event loop busy.

/** Null for the heap where Node runs without --expose-gc: what is not collected says nothing. */
export function healthOfProcess() {
  globalThis.gc?.();
  const heapBytes = globalThis.gc === undefined ? null : process.memoryUsage().heapUsed;
  return { heapBytes, handles: countByType(process.getActiveResourcesInfo()) };
}

function countByType(types) {
  const counts = {};
  for (const type of types) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}
