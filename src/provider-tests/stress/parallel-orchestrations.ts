// provider-tests/stress/parallel-orchestrations.ts — workload A: every instance fans out to activities and joins them.

import { sleep, systemClock } from "../../clock.js";
import { activity, orchestration } from "../../define.js";
import type { ResolvedParallelConfig } from "./stress-config.js";
import type { Workload } from "./workload.js";

export function parallelOrchestrations({ tasksPerInstance, activityDelayMs }: ResolvedParallelConfig): Workload {
  const processTask = activity("ProcessTask", async (ctx, task: string) => {
    await sleep(systemClock, activityDelayMs, ctx.signal);
    return `processed: ${task}`;
  });

  const fanout = orchestration("FanoutOrchestration", async (ctx, input: { readonly task_count: number }) => {
    const tasks = Array.from({ length: input.task_count }, (_, index) => `task-${index}`);
    const results = await Promise.all(tasks.map((task) => ctx.scheduleActivity(processTask, task)));
    const strays = results.filter((result, index) => result !== `processed: task-${index}`);
    if (strays.length > 0) throw new Error(`results went astray: ${strays.join(", ")}`);
    return `completed ${results.length} tasks`;
  });

  return {
    root: fanout.name,
    input: { task_count: tasksPerInstance },
    orchestrations: [fanout],
    activities: [processTask],
    activitiesPerInstance: tasksPerInstance,
  };
}
