// test/golden/golden.ts — what a golden history is made from: the code, and the world that it once met.

import type { ActivityDefinition, OrchestrationDefinition } from "../../src/define.js";
import type { TestRuntime, TestRuntimeStart } from "../../src/testing/test-runtime.js";
import type { TestWorld } from "../../src/testing/test-world.js";

/** Code that is frozen together with the histories that it wrote. */
export interface Golden {
  readonly orchestrations: readonly OrchestrationDefinition[];
  readonly activities?: readonly ActivityDefinition[];
  readonly options?: Omit<TestRuntimeStart, "orchestrations" | "activities">;
  /** What happened while it was recorded. Played once; everything that it leaves in the store is kept. */
  readonly play: (world: TestWorld, runtime: TestRuntime) => Promise<void>;
}

/** Starts an orchestration under that id, and waits for its end. */
export function toItsEnd(instanceId: string, name: string, input?: unknown): (world: TestWorld) => Promise<void> {
  return async (world) => {
    await world.client.start(name, { instanceId, input });
    await world.ending(instanceId);
  };
}
