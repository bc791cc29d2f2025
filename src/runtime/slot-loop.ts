// runtime/slot-loop.ts — one supervised loop: fetch, work, again, until told to stop. It never dies silently.

import type { Clock } from "../clock.js";
import { sleep } from "../clock.js";
import { ProviderError } from "../errors.js";
import type { Fact } from "../observer.js";

export interface SlotLoop {
  readonly name: string;
  readonly clock: Clock;
  readonly emit: (fact: Fact) => void;
  /** Stops fetching. A step in progress is finished. */
  readonly stopping: AbortSignal;
  /** The least time an idle cycle takes, for providers that answer "nothing" at once. */
  readonly minPollIntervalMs: number;
  /** Fetches and handles one item. `idle`: there was none. A throw is a failed fetch or a bug. */
  readonly step: () => Promise<"worked" | "idle">;
}

const LONGEST_BACKOFF_MS = 3_000;

/** Resolves when the loop has stopped. Never rejects. */
export async function runSlot(loop: SlotLoop): Promise<void> {
  let failures = 0;
  while (!loop.stopping.aborted) {
    const startedAt = loop.clock.now();
    try {
      const outcome = await loop.step();
      failures = 0;
      if (outcome === "idle") await pause(loop, loop.minPollIntervalMs - (loop.clock.now() - startedAt));
    } catch (error) {
      failures += 1;
      const retryInMs = wasGivenBack(error) ? 0 : backoffMs(failures);
      loop.emit({ type: "loop-failed", loop: loop.name, error, retryInMs });
      await pause(loop, retryInMs);
    }
  }
}

/** What the payload codec cannot decode is left alone for a while. However much of it there is, others need not wait for it. */
function wasGivenBack(error: unknown): boolean {
  return error instanceof ProviderError && error.kind === "payload-codec";
}

/** 200, 400, 800 … 3000 ms. */
function backoffMs(failures: number): number {
  return Math.min(100 * 2 ** Math.min(failures, 10), LONGEST_BACKOFF_MS);
}

async function pause(loop: SlotLoop, ms: number): Promise<void> {
  if (ms > 0) await sleep(loop.clock, ms, loop.stopping);
}
