// test/engine/random-program.ts — random orchestrations: a little language, its generator, and its interpreter.

import type { DurableTask } from "../../src/engine/durable-task.js";
import type { OrchestrationContext } from "../../src/engine/orchestration-context.js";

export type Leaf =
  | { readonly op: "activity"; readonly name: string }
  | { readonly op: "retry"; readonly name: string; readonly timeout: boolean }
  | { readonly op: "timer"; readonly ms: number }
  | { readonly op: "wait"; readonly name: string }
  | { readonly op: "dequeue"; readonly name: string }
  | { readonly op: "child"; readonly name: string }
  | { readonly op: "now" }
  | { readonly op: "guid" };

export type Step =
  | { readonly op: "await"; readonly leaf: Leaf; readonly isCaught: boolean }
  | { readonly op: "status"; readonly text: string }
  | { readonly op: "kv"; readonly key: string }
  | { readonly op: "detached" }
  | { readonly op: "forget"; readonly leaf: Leaf }
  | { readonly op: "cancel"; readonly leaf: Leaf; readonly after: Leaf | null }
  | { readonly op: "hold"; readonly leaf: Leaf; readonly meanwhile: Step }
  | { readonly op: "helper"; readonly body: Program; readonly meanwhile: Step }
  | {
      readonly op: "combine";
      readonly how: "all" | "race" | "any" | "allSettled" | "ctx.all" | "ctx.race" | "ctx.race.named";
      readonly branches: readonly Branch[];
    }
  | { readonly op: "throw" }
  | { readonly op: "drainMailbox"; readonly name: string; readonly rounds: number }
  | { readonly op: "continueAsNew" };

export type Branch = { readonly kind: "task"; readonly leaf: Leaf } | { readonly kind: "code"; readonly body: Program };
export type Program = readonly Step[];

/** A small seeded generator of numbers in [0, 1). */
export type Random = () => number;

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)]!;
}

const NAMES = ["a", "b"] as const;
const COMBINATORS = ["all", "race", "any", "allSettled", "ctx.all", "ctx.race", "ctx.race.named"] as const;

export function randomProgram(random: Random, depth = 0): Program {
  const length = 1 + Math.floor(random() * (depth === 0 ? 5 : 3));
  return Array.from({ length }, () => randomStep(random, depth));
}

function randomLeaf(random: Random): Leaf {
  const name = pick(random, NAMES);
  const choices: readonly Leaf[] = [
    { op: "activity", name },
    { op: "activity", name },
    { op: "retry", name, timeout: random() < 0.5 },
    { op: "timer", ms: Math.floor(random() * 100) },
    { op: "wait", name },
    { op: "dequeue", name },
    { op: "dequeue", name },
    { op: "child", name },
    { op: "now" },
    { op: "guid" },
  ];
  return pick(random, choices);
}

function randomStep(random: Random, depth: number): Step {
  const roll = random();
  if (roll < 0.32 || depth >= 3) return { op: "await", leaf: randomLeaf(random), isCaught: random() < 0.8 };
  if (roll < 0.36) return { op: "status", text: `s${Math.floor(random() * 9)}` };
  if (roll < 0.4) return { op: "kv", key: pick(random, NAMES) };
  if (roll < 0.42) return { op: "detached" };
  if (roll < 0.46) return { op: "forget", leaf: randomLeaf(random) };
  if (roll < 0.52) {
    return { op: "cancel", leaf: randomLeaf(random), after: random() < 0.6 ? randomLeaf(random) : null };
  }
  if (roll < 0.6) return { op: "hold", leaf: randomLeaf(random), meanwhile: randomStep(random, depth + 1) };
  if (roll < 0.67) {
    return { op: "helper", body: randomProgram(random, depth + 1), meanwhile: randomStep(random, depth + 1) };
  }
  if (roll < 0.94) {
    const count = 1 + Math.floor(random() * 4);
    const branches = Array.from({ length: count }, () => randomBranch(random, depth));
    return { op: "combine", how: pick(random, COMBINATORS), branches };
  }
  if (roll < 0.97) return { op: "drainMailbox", name: pick(random, NAMES), rounds: 1 + Math.floor(random() * 4) };
  if (roll < 0.985) return { op: "throw" };
  return { op: "continueAsNew" };
}

function randomBranch(random: Random, depth: number): Branch {
  if (random() < 0.55) return { kind: "task", leaf: randomLeaf(random) };
  return { kind: "code", body: randomProgram(random, depth + 1) };
}

/**
 * Runs a program. Everything it sees goes into the log, in order, from all branches: the log is its output. `tickMs` is
 * what it takes for a millisecond.
 */
export async function interpret(ctx: OrchestrationContext, program: Program, tickMs = 1): Promise<readonly string[]> {
  const log: string[] = [];
  await new Interpreter(ctx, log, tickMs).run(program);
  return log;
}

class Interpreter {
  readonly #ctx: OrchestrationContext;
  readonly #log: string[];
  readonly #tickMs: number;

  constructor(ctx: OrchestrationContext, log: string[], tickMs: number) {
    this.#ctx = ctx;
    this.#log = log;
    this.#tickMs = tickMs;
  }

  async run(program: Program): Promise<string> {
    for (const step of program) this.#log.push(`${step.op}=${await this.#step(step)}`);
    return `${program.length} steps`;
  }

  async #step(step: Step): Promise<string> {
    const ctx = this.#ctx;
    switch (step.op) {
      case "await":
        return step.isCaught ? caught(this.#leaf(step.leaf)) : show(await this.#leaf(step.leaf));
      case "status":
        ctx.setCustomStatus(step.text);
        return ctx.customStatus ?? "";
      case "kv":
        ctx.kv.set(step.key, (ctx.kv.get<number>(step.key) ?? 0) + 1);
        return show(ctx.kv.get(step.key));
      case "detached":
        ctx.startOrchestration("Detached", { instanceId: `detached-${this.#log.length}` });
        return "";
      case "forget":
        void this.#leaf(step.leaf);
        return "";
      case "cancel": {
        const task = this.#leaf(step.leaf);
        if (step.after !== null) await caught(this.#leaf(step.after));
        task.cancel();
        return caught(task);
      }
      case "hold": {
        const task = this.#leaf(step.leaf);
        const meanwhile = await this.#step(step.meanwhile);
        return `${meanwhile},${await caught(task)}`;
      }
      case "helper": {
        const helper = this.run(step.body);
        helper.catch(() => {});
        const meanwhile = await this.#step(step.meanwhile);
        return `${meanwhile},${await caught(helper)}`;
      }
      case "combine":
        return caught(this.#combine(step.how, step.branches));
      case "throw":
        throw new Error("thrown");
      case "drainMailbox": {
        const seen: string[] = [];
        for (let round = 0; round < step.rounds; round += 1) {
          const first = await ctx.race([ctx.dequeueEvent(step.name), ctx.scheduleTimer(10 * this.#tickMs)]);
          seen.push(`${first.index}:${show(first.value)}`);
        }
        return seen.join("|");
      }
      case "continueAsNew":
        return ctx.continueAsNew("again");
    }
  }

  #leaf(leaf: Leaf): DurableTask<unknown> {
    const ctx = this.#ctx;
    switch (leaf.op) {
      case "activity":
        return ctx.scheduleActivity(leaf.name, this.#log.length);
      case "retry": {
        const backoff = { kind: "fixed", delay: 5 * this.#tickMs } as const;
        const retry = { maxAttempts: 2, backoff, ...(leaf.timeout ? { timeout: 50 * this.#tickMs } : {}) };
        return ctx.scheduleActivity(leaf.name, this.#log.length, { retry });
      }
      case "timer":
        return ctx.scheduleTimer(leaf.ms * this.#tickMs);
      case "wait":
        return ctx.waitForEvent(leaf.name);
      case "dequeue":
        return ctx.dequeueEvent(leaf.name);
      case "child":
        return ctx.scheduleSubOrchestration(leaf.name, this.#log.length);
      case "now":
        return ctx.utcNow();
      case "guid":
        return ctx.newGuid();
    }
  }

  #combine(how: Extract<Step, { op: "combine" }>["how"], branches: readonly Branch[]): Promise<unknown> {
    const ctx = this.#ctx;
    const start = (branch: Branch): Promise<unknown> =>
      branch.kind === "task" ? this.#leaf(branch.leaf) : this.run(branch.body);
    const scoped = (branch: Branch): (() => Promise<unknown>) | Promise<unknown> =>
      branch.kind === "task" ? this.#leaf(branch.leaf) : () => this.run(branch.body);
    switch (how) {
      case "all":
        return Promise.all(branches.map(start));
      case "race":
        return Promise.race(branches.map(start));
      case "any":
        return Promise.any(branches.map(start));
      case "allSettled":
        return Promise.allSettled(branches.map(start));
      case "ctx.all":
        return ctx.all(branches.map(scoped));
      case "ctx.race":
        return ctx.race(branches.map(scoped));
      case "ctx.race.named":
        return ctx.race(Object.fromEntries(branches.map((branch, place) => [`b${place}`, scoped(branch)])));
    }
  }
}

async function caught(work: PromiseLike<unknown>): Promise<string> {
  try {
    return show(await work);
  } catch (error) {
    return `!${error instanceof Error ? `${error.name}: ${error.message}` : String(error)}`;
  }
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? "undefined";
}
