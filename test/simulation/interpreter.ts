// test/simulation/interpreter.ts — runs scripts as orchestrations. What they see is their output.
//
// A script is found by the seed and the path that stand in the input, so that any process can run any instance.

import { createHash } from "node:crypto";
import { type ActivityDefinition, activity, type OrchestrationDefinition, orchestration } from "../../src/define.js";
import type { DurableTask } from "../../src/engine/durable-task.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";
import { messageOf } from "../../src/errors.js";
import type { ActivityContext } from "../../src/runtime/activity-context.js";
import { type Leaf, type Program, type Script, type Step, scriptOf } from "./program.js";

/** What an instance is told. */
export interface Task {
  /** Of the root's script. */
  readonly seed: number;
  /** How the script is found from there: execution and label, again and again. */
  readonly path: readonly (readonly [execution: number, label: number])[];
  /** 0 for the first. */
  readonly execution: number;
  /** What the executions before saw. */
  readonly log: readonly Seen[];
  /** Of the leaf that asked for it, so that it can be found in the history. */
  readonly label: number | null;
}

/** What a program sees, as JSON. */
export type Seen = string | number | null | readonly Seen[];

export interface ActivityTask {
  readonly label: number;
  readonly fails: boolean | "by chance";
  readonly tookMs: number;
}

export const ROOT = "Script";
export const WORK = "Work";
export const VERSIONS = ["1.0.0", "2.0.0"] as const;
export type Version = (typeof VERSIONS)[number];

/** Between the attempts of a retry. No timer of a script takes as long (timerMs). */
const RETRY_DELAY_MS = 999;
/** What version 2 does before everything else. */
export const NOVELTY: Leaf = { op: "activity", label: 0, fails: false, tookMs: 0 };

const scripts = new Map<number, Script>();
const MOST_SCRIPTS = 1_000;

export function scriptFor({ seed, path }: Pick<Task, "seed" | "path">): Script {
  let script = scripts.get(seed);
  if (script === undefined) {
    script = scriptOf(seed);
    if (scripts.size >= MOST_SCRIPTS) scripts.clear();
    scripts.set(seed, script);
  }
  for (const [execution, label] of path) script = scriptBelow(script, execution, label);
  return script;
}

function scriptBelow(script: Script, execution: number, label: number): Script {
  const found = startsIn(script.executions[execution]?.program ?? []).find((start) => start.label === label);
  if (found === undefined) throw new Error(`no script at execution ${execution}, label ${label}`);
  return found.script;
}

/** Whatever starts another instance. */
export function startsIn(
  program: Program,
): readonly { readonly label: number; readonly script: Script; readonly op: string }[] {
  return program.flatMap((step) => {
    switch (step.op) {
      case "detached":
        return [step];
      case "leaf":
      case "forget":
        return step.leaf.op === "child" ? [step.leaf] : [];
      case "cancel":
        return [step.leaf, step.after].flatMap((leaf) => (leaf.op === "child" ? [leaf] : []));
      case "join":
        return step.leaves.flatMap((leaf) => (leaf.op === "child" ? [leaf] : []));
      case "all":
      case "race":
        return step.branches.flatMap(startsIn);
      default:
        return [];
    }
  });
}

export function firstTask(seed: number): Task {
  return { seed, path: [], execution: 0, log: [], label: null };
}

/** The orchestration in both of its versions. */
export function orchestrations(): Readonly<Record<Version, OrchestrationDefinition<Task, Seen>>> {
  const of = (version: Version): OrchestrationDefinition<Task, Seen> =>
    orchestration({ name: ROOT, version }, (ctx: OrchestrationContext, task: Task) => run(ctx, task, version));
  return { "1.0.0": of("1.0.0"), "2.0.0": of("2.0.0") };
}

/** How long work takes is up to whoever runs it; how it ends is not. */
export function workActivity(
  spend: (ctx: ActivityContext, task: ActivityTask) => Promise<void>,
): ActivityDefinition<ActivityTask, string> {
  return activity(WORK, async (ctx: ActivityContext, task: ActivityTask) => {
    await spend(ctx, task);
    if (doesFail(task, ctx)) throw new Error(`work ${task.label} failed`);
    return resultOf(task.label);
  });
}

/** P2 */
export function doesFail(
  { fails, label }: ActivityTask,
  { instanceId, activityId }: Pick<ActivityContext, "instanceId" | "activityId">,
): boolean {
  if (fails !== "by chance") return fails;
  const [byte] = createHash("sha256").update(`${instanceId}/${label}/${activityId}`).digest();
  return byte! < 128;
}

export function resultOf(label: number): string {
  return `result ${label}`;
}

export function eventName(label: number): string {
  return `event ${label}`;
}

/** Found in the history by what is left after the seconds. */
export function timerMs({ label, seconds }: Extract<Leaf, { op: "timer" }>): number {
  return seconds * 1_000 + label;
}

/** Nobody's child: it is not deleted with whoever started it. */
function detachedId(starter: string, execution: number, label: number): string {
  return `${starter}+${execution + 1}-${label}`;
}

export function namedChildId(parent: string, execution: number, label: number): string {
  return `${parent}.${execution + 1}-${label}`;
}

async function run(ctx: OrchestrationContext, task: Task, version: Version): Promise<Seen> {
  const { program, ending } = scriptFor(task).executions[task.execution]!;
  const interpreter = new Interpreter(ctx, task);
  const seen: Seen[] = [...task.log, version];
  if (version === "2.0.0") seen.push(await interpreter.leaf(NOVELTY));
  seen.push(await interpreter.run(program));
  switch (ending) {
    case "return":
      return seen;
    case "throw":
      throw new Error(`script failed in execution ${task.execution}`);
    case "continue": {
      const next: Task = { ...task, execution: task.execution + 1, log: seen };
      return ctx.continueAsNew(next);
    }
  }
}

class Interpreter {
  readonly #ctx: OrchestrationContext;
  readonly #task: Task;

  constructor(ctx: OrchestrationContext, task: Task) {
    this.#ctx = ctx;
    this.#task = task;
  }

  async run(program: Program): Promise<Seen> {
    const seen: Seen[] = [];
    for (const step of program) seen.push(await this.#step(step));
    return seen;
  }

  async leaf(leaf: Leaf): Promise<Seen> {
    return outcomeOf(this.#schedule(leaf));
  }

  async #step(step: Step): Promise<Seen> {
    const ctx = this.#ctx;
    switch (step.op) {
      case "leaf":
        return this.leaf(step.leaf);
      case "all":
        if (step.how === "Promise.all") return Promise.all(step.branches.map((branch) => this.run(branch)));
        return ctx.all(step.branches.map((branch) => () => this.run(branch)));
      case "join":
        return outcomeOf(ctx.all(step.leaves.map((leaf) => this.#schedule(leaf))));
      case "race":
        return this.#race(step);
      case "count": {
        const before = ctx.kv.get<number>(step.key) ?? null;
        ctx.kv.set(step.key, (before ?? 0) + 1);
        return before;
      }
      case "erase": {
        const before = ctx.kv.get<number>(step.key) ?? null;
        ctx.kv.delete(step.key);
        return before;
      }
      case "status": {
        const before = ctx.customStatus;
        if (step.text === null) ctx.resetCustomStatus();
        else ctx.setCustomStatus(step.text);
        return before;
      }
      case "cancel": {
        const task = this.#schedule(step.leaf);
        task.catch(() => {});
        const after = await this.leaf(step.after);
        task.cancel();
        return after;
      }
      case "forget":
        this.#schedule(step.leaf).catch(() => {});
        return null;
      case "detached": {
        const instanceId = detachedId(ctx.instanceId, this.#task.execution, step.label);
        ctx.startOrchestration(ROOT, { instanceId, input: this.#taskOf(step.label) });
        return null;
      }
      case "system":
        return typeof (await ctx[step.what]());
    }
  }

  async #race({ how, branches }: Extract<Step, { op: "race" }>): Promise<Seen> {
    if (how === "ctx.race") {
      const { index, value } = await this.#ctx.race(branches.map((branch) => () => this.run(branch)));
      return [index, value];
    }
    return Promise.race(branches.map(async (branch, index): Promise<Seen> => [index, await this.run(branch)]));
  }

  #schedule(leaf: Leaf): DurableTask<Seen> {
    const ctx = this.#ctx;
    const { label } = leaf;
    switch (leaf.op) {
      case "activity": {
        const { fails, tookMs, tag, sessionId } = leaf;
        const options = { ...(tag === undefined ? {} : { tag }), ...(sessionId === undefined ? {} : { sessionId }) };
        return ctx.scheduleActivity<string>(WORK, { label, fails, tookMs } satisfies ActivityTask, options);
      }
      case "retry": {
        const input: ActivityTask = { label, fails: "by chance", tookMs: leaf.tookMs };
        const backoff = { kind: "fixed", delay: RETRY_DELAY_MS } as const;
        return ctx.scheduleActivity<string>(WORK, input, { retry: { maxAttempts: leaf.maxAttempts, backoff } });
      }
      case "timer":
        return ctx.scheduleTimer(timerMs(leaf)) as unknown as DurableTask<Seen>;
      case "wait":
        return ctx.waitForEvent<string>(eventName(label));
      case "dequeue":
        return ctx.dequeueEvent<number>(leaf.queue);
      case "child": {
        const { instanceId } = ctx;
        const options = leaf.script.isNamed
          ? { instanceId: namedChildId(instanceId, this.#task.execution, label) }
          : {};
        return ctx.scheduleSubOrchestration<Seen>(ROOT, this.#taskOf(label), options);
      }
    }
  }

  #taskOf(label: number): Task {
    const { seed, path, execution } = this.#task;
    return { seed, path: [...path, [execution, label]], execution: 0, log: [], label };
  }
}

/** A failure is something to be seen, too. */
async function outcomeOf(task: PromiseLike<Seen | undefined>): Promise<Seen> {
  try {
    return (await task) ?? null;
  } catch (error) {
    return failureSeen(messageOf(error));
  }
}

export function failureSeen(message: string): string {
  return `failed: ${message}`;
}
