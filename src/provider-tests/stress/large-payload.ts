// provider-tests/stress/large-payload.ts — workload B: long histories of large inputs and outputs, with sub-orchestrations.
//
// An instance runs its activities one after the other (a third small, a third medium, the rest large), then all its
// sub-orchestrations, then some small activities more; every answer must have kept its size.

import { sleep, systemClock } from "../../clock.js";
import { activity, type OrchestrationDefinition, orchestration } from "../../define.js";
import type { ResolvedLargePayloadConfig } from "./stress-config.js";
import type { Workload } from "./workload.js";

type OrchestrationContext = Parameters<OrchestrationDefinition["run"]>[0];

const LAST_ACTIVITIES = 10;
const ACTIVITIES_OF_A_CHILD = 2;

export function largePayload(config: ResolvedLargePayloadConfig): Workload {
  const { smallBytes, mediumBytes, largeBytes, activityCount, subOrchestrations } = config;
  const thirds = Math.floor(activityCount / 3);
  const [small, medium, large] = [
    step("ProcessSmall", smallBytes, smallBytes),
    step("ProcessMedium", Math.floor(mediumBytes / 2), mediumBytes),
    step("ProcessLarge", Math.floor(largeBytes / 4), largeBytes),
  ];

  /** An activity that makes an output of its size from an input of another. */
  function step(name: string, inputBytes: number, outputBytes: number) {
    const definition = activity(name, async (ctx, _payload: string) => {
      await sleep(systemClock, config.activityDelayMs, ctx.signal);
      return payload(outputBytes);
    });
    const run = async (ctx: OrchestrationContext): Promise<void> => {
      checkSize(name, await ctx.scheduleActivity(definition, payload(inputBytes)), outputBytes);
    };
    return { definition, run };
  }

  const child = orchestration("LargePayloadChild", async (ctx, input: string) => {
    checkSize("input of LargePayloadChild", input, mediumBytes);
    await small.run(ctx);
    await medium.run(ctx);
    return payload(mediumBytes);
  });

  const parent = orchestration("LargePayloadOrchestration", async (ctx) => {
    for (let place = 0; place < activityCount; place += 1) {
      const { run } = place < thirds ? small : place < 2 * thirds ? medium : large;
      await run(ctx);
    }
    const children = Array.from({ length: subOrchestrations }, () =>
      ctx.scheduleSubOrchestration(child, payload(mediumBytes)),
    );
    for (const result of await Promise.all(children)) checkSize(child.name, result, mediumBytes);
    for (let place = 0; place < LAST_ACTIVITIES; place += 1) await small.run(ctx);
    return payload(largeBytes);
  });

  return {
    root: parent.name,
    input: undefined,
    orchestrations: [parent, child],
    activities: [small.definition, medium.definition, large.definition],
    activitiesPerInstance: activityCount + subOrchestrations * ACTIVITIES_OF_A_CHILD + LAST_ACTIVITIES,
  };
}

function payload(bytes: number): string {
  return "x".repeat(bytes);
}

function checkSize(what: string, text: string, bytes: number): void {
  if (text.length !== bytes) throw new Error(`${what}: ${bytes} bytes were sent, ${text.length} arrived`);
}
