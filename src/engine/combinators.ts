// engine/combinators.ts — all and race over branches, with cancellation.
//
//   B1. Branch functions start at the call, in argument order, each in a scope of its own; the scope closes when its
//       branch is done or dropped.
//   B2. A race is decided at the moment of delivery, and the losers are dropped before any code runs on. Of branches
//       that are done already, the first argument wins.
//   B3. The result is a task like any other: dropping it drops its branches.
//   B4. A branch that is done outside a turn awaited something foreign: it decides nothing, and the execution knows.

import { InvalidInputError, messageOf, TaskCancelledError } from "../errors.js";
import { type DurableTask, isDurableTask, type Outcome, Task } from "./durable-task.js";
import type { Execution } from "./execution.js";
import { type Droppable, Scope } from "./scope.js";

export type Branches = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Waits for all; the first failure fails it and drops the rest. */
export function all(execution: Execution, branches: Branches): DurableTask<unknown> {
  const keys = keysOf(branches, "ctx.all");
  const values = new Map<string, unknown>();
  return combine(execution, branches, keys, (key, outcome) => {
    if (outcome.status === "rejected") return outcome;
    values.set(key, outcome.value);
    if (values.size < keys.length) return null;
    const value = Array.isArray(branches) ? keys.map((k) => values.get(k)) : fromKeys(keys, values);
    return { status: "fulfilled", value };
  });
}

/** Takes the first that is done, well or badly, and drops the rest. */
export function race(execution: Execution, branches: Branches): DurableTask<unknown> {
  const keys = keysOf(branches, "ctx.race");
  if (keys.length === 0) throw new InvalidInputError("ctx.race: at least one branch is expected.");
  return combine(execution, branches, keys, (key, outcome) => {
    if (outcome.status === "rejected") return outcome;
    const place = Array.isArray(branches) ? { index: Number(key) } : { winner: key };
    return { status: "fulfilled", value: { ...place, value: outcome.value } };
  });
}

/** Runs `code` in a scope of its own; the task stands for it, and dropping the task drops all that it scheduled. */
export function scoped<T>(execution: Execution, code: () => Promise<T>): DurableTask<T> {
  return combine(execution, [code], ["0"], (_, outcome) => outcome) as DurableTask<T>;
}

type Verdict = (key: string, outcome: Outcome<unknown>) => Outcome<unknown> | null;

function combine(
  execution: Execution,
  branches: Branches,
  keys: readonly string[],
  verdict: Verdict,
): DurableTask<unknown> {
  const group = new BranchGroup(execution);
  for (const key of keys) {
    group.start((branches as Readonly<Record<string, unknown>>)[key]);
  }
  if (keys.length === 0) group.settle({ status: "fulfilled", value: Array.isArray(branches) ? [] : {} });
  group.observe((place, outcome) => {
    const result = verdict(keys[place]!, outcome);
    if (result !== null) group.settle(result);
  });
  return group.task;
}

/** Several branches and the one task that stands for them. */
class BranchGroup implements Droppable {
  readonly task: Task<unknown>;
  readonly #execution: Execution;
  readonly #scope: Scope;
  readonly #branches: Branch[] = [];
  #isDecided = false;

  constructor(execution: Execution) {
    this.#execution = execution;
    this.#scope = execution.currentScope;
    const onDrop = (): void => {
      if (execution.refuse() === null) this.drop();
    };
    this.task = new Task({ onListen: () => execution.refuse(), onDrop });
    this.#scope.add(this);
  }

  start(branch: unknown): void {
    this.#branches.push(startBranch(this.#execution, this.#scope, branch));
  }

  observe(observer: (place: number, outcome: Outcome<unknown>) => void): void {
    this.#branches.forEach((branch, place) => {
      if (this.#isDecided) return;
      branch.observe((outcome) => {
        if (this.#isDecided || this.#execution.refuse() !== null) return; // B4
        branch.isDone = true;
        branch.scope?.close(); // B1
        observer(place, outcome);
      });
    });
  }

  settle(outcome: Outcome<unknown>): void {
    if (this.#isDecided) return;
    this.#isDecided = true;
    this.#scope.remove(this);
    for (const branch of this.#branches) if (!branch.isDone) branch.drop(); // B2
    this.task.settle(outcome);
  }

  drop(): void {
    this.settle({ status: "rejected", error: new TaskCancelledError("The branches were cancelled.") });
  }
}

interface Branch extends Droppable {
  isDone: boolean;
  readonly scope: Scope | null;
  observe(observer: (outcome: Outcome<unknown>) => void): void;
}

function startBranch(execution: Execution, parent: Scope, branch: unknown): Branch {
  if (typeof branch !== "function") return branchOf(branch, null);
  const scope = new Scope(parent);
  try {
    return branchOf(execution.runCode(scope, branch as () => unknown), scope);
  } catch (error) {
    return settledBranch({ status: "rejected", error }, scope);
  }
}

function branchOf(value: unknown, scope: Scope | null): Branch {
  if (isDurableTask(value)) return taskBranch(value, scope);
  if (isThenable(value)) return promiseBranch(Promise.resolve(value), scope); // Whatever its own `then` does.
  return settledBranch({ status: "fulfilled", value }, scope);
}

function taskBranch(task: Task<unknown>, scope: Scope | null): Branch {
  return {
    isDone: false,
    scope,
    observe: (observer) => task.observe(observer),
    drop: () => {
      task.cancel();
      scope?.close();
    },
  };
}

function promiseBranch(promise: Promise<unknown>, scope: Scope | null): Branch {
  return {
    isDone: false,
    scope,
    observe: (observer) => {
      promise.then(
        (value) => observer({ status: "fulfilled", value }),
        (error: unknown) => observer({ status: "rejected", error }),
      );
    },
    drop: () => {
      promise.then(undefined, () => {}); // Nobody listens to a loser; that it fails now is no news.
      scope?.close();
    },
  };
}

function settledBranch(outcome: Outcome<unknown>, scope: Scope | null): Branch {
  scope?.close();
  return { isDone: false, scope, observe: (observer) => observer(outcome), drop: () => {} };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

function keysOf(branches: Branches, what: string): string[] {
  const wrong = notBranches(branches);
  if (wrong !== null) {
    const isIterable = typeof branches === "object" && branches !== null && Symbol.iterator in branches;
    const hint = isIterable ? `Spread it: ${what}([...it]).` : `Put it in a list: ${what}([…]).`;
    throw new InvalidInputError(`${what}: an array or an object of branches is expected, got ${wrong}. ${hint}`);
  }
  return Array.isArray(branches) ? Array.from(branches, (_, index) => String(index)) : Object.keys(branches);
}

/** What was given instead of branches; null: nothing. A record may have a branch called `then`; a promise inherits it. */
function notBranches(given: unknown): string | null {
  if (typeof given === "function") return "a function";
  if (typeof given !== "object" || given === null) return messageOf(given);
  if (isDurableTask(given)) return "a durable task";
  if (isThenable(given) && !Object.hasOwn(given, "then")) return "a promise";
  return Symbol.iterator in given && !Array.isArray(given) ? "an iterable that is no array" : null;
}

function fromKeys(keys: readonly string[], values: ReadonlyMap<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(keys.map((key) => [key, values.get(key)]));
}
