// provider-tests/stress/workload.ts — what the instances of a stress run do.

import type { ActivityDefinition, OrchestrationDefinition } from "../../define.js";
import { unreachable } from "../../errors.js";
import { largePayload } from "./large-payload.js";
import { parallelOrchestrations } from "./parallel-orchestrations.js";
import type { ResolvedStressConfig } from "./stress-config.js";

export interface Workload {
  /** The orchestration that is started, again and again. */
  readonly root: string;
  readonly input: unknown;
  readonly orchestrations: readonly OrchestrationDefinition[];
  readonly activities: readonly ActivityDefinition[];
  /** Those of sub-orchestrations included. */
  readonly activitiesPerInstance: number;
}

export function workloadOf(config: ResolvedStressConfig): Workload {
  switch (config.workload) {
    case "parallel":
      return parallelOrchestrations(config);
    case "large-payload":
      return largePayload(config);
    default:
      return unreachable(config);
  }
}
