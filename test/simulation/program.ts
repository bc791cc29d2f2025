// test/simulation/program.ts — random orchestrations, generated from a seed, whose outcome can be told without an engine.
//
// A script is what one instance does, execution by execution. What makes it predictable (model.ts):
//
//   P1. Every leaf has a label of its own within its execution, which its history shows: so each arrival can be told apart.
//   P2. What an activity answers depends on nothing but its label and the event that scheduled it.
//   P3. Branches that may be given up change neither values nor status, and at most one of them reads a mailbox, as its only step.
//   P4. Branches that run beside each other write to values of their own.

import { pick, type Random, seeded } from "../engine/random-program.js";

export type Leaf =
  | {
      readonly op: "activity";
      readonly label: number;
      readonly fails: boolean;
      readonly tookMs: number;
      readonly tag?: typeof TAG;
      readonly sessionId?: string;
    }
  /** Every attempt fails or not by itself. */
  | { readonly op: "retry"; readonly label: number; readonly maxAttempts: number; readonly tookMs: number }
  | { readonly op: "timer"; readonly label: number; readonly seconds: number }
  | { readonly op: "wait"; readonly label: number }
  | { readonly op: "dequeue"; readonly label: number; readonly queue: string }
  | { readonly op: "child"; readonly label: number; readonly script: Script };

export type Step =
  | { readonly op: "leaf"; readonly leaf: Leaf }
  /** All branches, each with its own failures. */
  | { readonly op: "all"; readonly how: "ctx.all" | "Promise.all"; readonly branches: readonly Program[] }
  /** All of these, until one fails. */
  | { readonly op: "join"; readonly leaves: readonly Leaf[] }
  | { readonly op: "race"; readonly how: "ctx.race" | "Promise.race"; readonly branches: readonly Program[] }
  | { readonly op: "count"; readonly key: string }
  | { readonly op: "erase"; readonly key: string }
  | { readonly op: "status"; readonly text: string | null }
  /** Scheduled, and given up once the other is over. */
  | { readonly op: "cancel"; readonly leaf: Leaf; readonly after: Leaf }
  /** Scheduled, and never looked at. */
  | { readonly op: "forget"; readonly leaf: Leaf }
  | { readonly op: "detached"; readonly label: number; readonly script: Script }
  | { readonly op: "system"; readonly what: "utcNow" | "newGuid" };

export type Program = readonly Step[];

/** How an execution ends that nobody ends before. The last of a script does not continue. */
export type Ending = "return" | "throw" | "continue";

export interface Execution {
  readonly program: Program;
  readonly ending: Ending;
}

/** What one instance does. */
export interface Script {
  readonly executions: readonly Execution[];
  /** Whether its id is known beforehand, so that somebody can send it messages. */
  readonly isNamed: boolean;
}

/** Whoever serves it runs what others do not. */
export const TAG = "special";
/** The queues of one instance. */
export const QUEUES = ["left", "right"] as const;

const KEYS = ["a", "b"] as const;
const MOST_DEPTH = 2;
const MOST_GENERATIONS = 2;

export function scriptOf(seed: number): Script {
  return new Generator(seeded(seed)).script({ generation: 0, isNamed: true });
}

/** Where a step stands. */
interface Place {
  readonly depth: number;
  readonly generation: number;
  readonly isNamed: boolean;
  /** What it may write to. Null: nothing, because it may be given up. */
  readonly scope: string | null;
}

class Generator {
  readonly #random: Random;
  #label = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  script({ generation, isNamed }: Pick<Place, "generation" | "isNamed">): Script {
    const random = this.#random;
    const count = random() < 0.6 ? 1 : 2 + Math.floor(random() * 2);
    const executions = Array.from({ length: count }, (_, place): Execution => {
      const isLast = place === count - 1;
      const program = this.#program({ depth: 0, generation, isNamed, scope: "" }, generation === 0 ? 4 : 2);
      return { program, ending: isLast ? (random() < 0.1 ? "throw" : "return") : "continue" };
    });
    return { executions, isNamed };
  }

  #program(place: Place, most: number): Program {
    const length = 1 + Math.floor(this.#random() * most);
    return Array.from({ length }, () => this.#step(place));
  }

  #step(place: Place): Step {
    const random = this.#random;
    const roll = random();
    const isDeep = place.depth >= MOST_DEPTH;
    const inner = { ...place, depth: place.depth + 1 };
    if (roll < 0.35 || (isDeep && roll < 0.8)) return { op: "leaf", leaf: this.#leaf(place) };
    if (roll < 0.47) {
      const how = pick(random, ["ctx.all", "Promise.all"] as const);
      const branches = this.#times(1, 3, (branch) =>
        this.#program({ ...inner, scope: place.scope === null ? null : `${place.scope}${branch}` }, 2),
      );
      return { op: "all", how, branches };
    }
    if (roll < 0.52) return { op: "join", leaves: this.#times(1, 3, () => this.#plainLeaf(place)) };
    if (roll < 0.7) return this.#race(inner);
    if (roll < 0.74) return { op: "cancel", leaf: this.#plainLeaf(place), after: this.#plainLeaf(place) };
    if (roll < 0.76) return { op: "forget", leaf: this.#shortLeaf() };
    if (roll < 0.79) return { op: "system", what: pick(random, ["utcNow", "newGuid"] as const) };
    if (place.scope === null) return { op: "leaf", leaf: this.#leaf(place) };
    if (roll < 0.9) return { op: "count", key: `${pick(random, KEYS)}${place.scope}` };
    if (roll < 0.93) return { op: "erase", key: `${pick(random, KEYS)}${place.scope}` };
    if (place.scope !== "") return { op: "count", key: `${pick(random, KEYS)}${place.scope}` };
    if (roll < 0.98) return { op: "status", text: random() < 0.2 ? null : `status ${this.#next()}` };
    if (place.generation > 0) return { op: "status", text: `status ${this.#next()}` };
    return {
      op: "detached",
      label: this.#next(),
      script: this.script({ generation: MOST_GENERATIONS, isNamed: false }),
    };
  }

  /** P3 */
  #race(place: Place): Step {
    const random = this.#random;
    const how = pick(random, ["ctx.race", "ctx.race", "Promise.race"] as const);
    const inner = { ...place, scope: null };
    const one = (): Program => (random() < 0.7 ? [{ op: "leaf", leaf: this.#plainLeaf(inner) }] : this.#losable(inner));
    const branches = this.#times(2, 3, one);
    // Whoever runs beside others would share the mailbox with them.
    const mayRead = how === "ctx.race" && place.isNamed && place.scope === "";
    if (!mayRead || random() < 0.4) return { op: "race", how, branches };
    const reading: Program = [{ op: "leaf", leaf: this.#dequeue() }];
    return { op: "race", how, branches: random() < 0.5 ? [reading, ...branches] : [...branches, reading] };
  }

  #losable(place: Place): Program {
    return this.#times(1, 2, (): Step => ({ op: "leaf", leaf: this.#plainLeaf(place) }));
  }

  #leaf(place: Place): Leaf {
    const roll = this.#random();
    // Whoever may be given up reads no mailbox (P3), and whoever runs beside others would share one.
    if (roll < 0.3 && place.isNamed && place.scope === "") return this.#dequeue();
    if (roll < 0.38 && place.isNamed) return { op: "wait", label: this.#next() };
    return this.#plainLeaf(place);
  }

  #plainLeaf(place: Place): Leaf {
    const roll = this.#random();
    if (roll < 0.2 && place.generation < MOST_GENERATIONS) return this.#child(place);
    if (roll < 0.28 && place.isNamed) return { op: "wait", label: this.#next() };
    return this.#shortLeaf();
  }

  #shortLeaf(): Leaf {
    const random = this.#random;
    const roll = random();
    const label = this.#next();
    if (roll < 0.3) return { op: "timer", label, seconds: pick(random, [0, 0, 1, 2, 5, 20]) };
    const tookMs = pick(random, [0, 0, 5, 300, 3_000, 40_000]);
    if (roll < 0.45) return { op: "retry", label, maxAttempts: 1 + Math.floor(random() * 3), tookMs };
    const fails = random() < 0.25;
    if (roll < 0.52) return { op: "activity", label, fails, tookMs, tag: TAG };
    if (roll < 0.6) return { op: "activity", label, fails, tookMs, sessionId: `session-${Math.floor(random() * 3)}` };
    return { op: "activity", label, fails, tookMs };
  }

  #child(place: Place): Leaf {
    const isNamed = place.isNamed && this.#random() < 0.5;
    const label = this.#next();
    const script = new Generator(this.#random).script({ generation: place.generation + 1, isNamed });
    return { op: "child", label, script };
  }

  #dequeue(): Leaf {
    return { op: "dequeue", label: this.#next(), queue: pick(this.#random, QUEUES) };
  }

  #next(): number {
    this.#label += 1;
    return this.#label;
  }

  #times<T>(least: number, most: number, make: (place: number) => T): T[] {
    const count = least + Math.floor(this.#random() * (most - least + 1));
    return Array.from({ length: count }, (_, place) => make(place));
  }
}

/** Every leaf of a program, wherever it stands. */
export function leavesOf(program: Program): readonly Leaf[] {
  return program.flatMap((step): readonly Leaf[] => {
    switch (step.op) {
      case "leaf":
      case "forget":
        return [step.leaf];
      case "cancel":
        return [step.leaf, step.after];
      case "join":
        return step.leaves;
      case "all":
      case "race":
        return step.branches.flatMap(leavesOf);
      default:
        return [];
    }
  });
}
