// test/simulation/model.ts — what a script must have come to, told without an engine.
//
// History says in which order things arrived from outside; the model says what that must have led to. A program that goes on
// when something arrives is as far as that event: a sequence is as far as its last step, all branches as the last of them, a
// race as the first. From that follow the winners, the messages that were read, the values, the status and the output.

import { displayMessage, type ErrorDetails } from "../../src/history/error-details.js";
import { type Event, type EventOf, isTerminal } from "../../src/history/event.js";
import {
  type ActivityTask,
  doesFail,
  eventName,
  failureSeen,
  NOVELTY,
  resultOf,
  type Seen,
  scriptFor,
  type Task,
  timerMs,
  WORK,
} from "./interpreter.js";
import type { Leaf, Program, Step } from "./program.js";

/** What is left of an instance, for whoever wants to know whether it is right. */
export interface Remains {
  readonly instanceId: string;
  /** Of all its executions, the first one first. */
  readonly executions: readonly (readonly Event[])[];
  readonly kv: ReadonlyMap<string, string>;
  readonly customStatus: string | null;
  /** Whether somebody may have asked it to end. */
  readonly mayBeCancelled: boolean;
}

/** What is wrong with it; empty: nothing. */
export function modelProblems(remains: Remains): readonly string[] {
  return new InstanceModel(remains).problems;
}

class InstanceModel {
  readonly problems: string[] = [];
  readonly #remains: Remains;
  readonly #kv = new Map<string, number>();
  #status: string | null = null;

  constructor(remains: Remains) {
    this.#remains = remains;
    const started = remains.executions[0]?.[0];
    if (started?.type !== "OrchestrationStarted") return;
    let task = JSON.parse(started.input) as Task;
    let carried: readonly (readonly [string, string])[] = [];
    for (const [place, events] of remains.executions.entries()) {
      const isLast = place === remains.executions.length - 1;
      const next = this.#execution(events, task, carried, isLast);
      if (next === null) return;
      ({ task, carried } = next);
    }
  }

  #execution(
    events: readonly Event[],
    task: Task,
    carried: readonly (readonly [string, string])[],
    isLast: boolean,
  ): { readonly task: Task; readonly carried: readonly (readonly [string, string])[] } | null {
    const started = events[0] as EventOf<"OrchestrationStarted">;
    const where = `execution ${task.execution + 1}`;
    this.#compare(`${where}: its input`, JSON.parse(started.input), task);
    this.#compare(`${where}: what it took over`, started.carryForwardEvents ?? [], carried);
    if (task.execution > 0) {
      this.#compare(`${where}: the status it took over`, started.initialCustomStatus ?? null, this.#status);
    }
    const script = scriptFor(task);
    const { program, ending } = script.executions[task.execution]!;
    const run = new ExecutionModel(events, this.#kv, this.#status, (problem) => this.#problem(`${where}: ${problem}`));
    const novelty = started.version === "2.0.0" ? run.leaf(NOVELTY, 1) : null;
    const end = novelty === null || novelty.at < Number.POSITIVE_INFINITY ? run.run(program, novelty?.at ?? 1) : NEVER;
    this.#status = run.status;
    const last = events.at(-1)!;
    if (last.type === "OrchestrationFailed" && isCancelled(last.details)) {
      if (!this.#remains.mayBeCancelled) this.#problem(`${where} was cancelled, and nobody asked for it`);
      return null;
    }
    if (end.at === Number.POSITIVE_INFINITY) {
      if (isTerminal(last)) this.#problem(`${where} ended as ${last.type}, but the model waits for ${run.waitsFor}`);
      return null;
    }
    const log: Seen[] = [...task.log, started.version, ...(novelty === null ? [] : [novelty.seen]), end.seen];
    if (!isTerminal(last)) {
      this.#problem(`${where} has not ended, but the model has, at event ${end.at}`);
      return null;
    }
    switch (ending) {
      case "return":
        this.#compare(
          `${where}: its output`,
          last.type === "OrchestrationCompleted" ? JSON.parse(last.output) : last,
          log,
        );
        break;
      case "throw": {
        const message = last.type === "OrchestrationFailed" ? displayMessage(last.details) : last.type;
        this.#compare(`${where}: its failure`, message, `script failed in execution ${task.execution}`);
        break;
      }
      case "continue": {
        const next: Task = { ...task, execution: task.execution + 1, log };
        const input = last.type === "OrchestrationContinuedAsNew" ? JSON.parse(last.input) : last;
        this.#compare(`${where}: its continuation`, input, next);
        if (isLast) this.#problem(`${where} continued as new, but there is no next one`);
        return { task: next, carried: run.unread() };
      }
    }
    this.#compare("its values", [...this.#remains.kv].sort(), [...this.#kv].map(([k, v]) => [k, String(v)]).sort());
    this.#compare("its status", this.#remains.customStatus, this.#status);
    return null;
  }

  #compare(what: string, actual: unknown, expected: unknown): void {
    const [is, shouldBe] = [JSON.stringify(actual), JSON.stringify(expected)];
    if (is !== shouldBe) this.#problem(`${what} is ${is}, but by the model ${shouldBe}`);
  }

  #problem(text: string): void {
    this.problems.push(`${this.#remains.instanceId}: ${text}`);
  }
}

/** How far something is, and what it saw. */
interface Ended {
  /** The event that finished it. Infinity: it is not finished. */
  readonly at: number;
  readonly seen: Seen;
  /** Of a task that is thrown, not seen. */
  readonly isFailure?: boolean;
}

const NEVER: Ended = { at: Number.POSITIVE_INFINITY, seen: null };

class ExecutionModel {
  status: string | null;
  waitsFor = "nothing";
  readonly #events: readonly Event[];
  readonly #kv: Map<string, number>;
  readonly #report: (problem: string) => void;
  readonly #answers = new Map<number, Event>();
  /** Of each queue, how many messages were read. */
  #read = new Map<string, number>();

  constructor(
    events: readonly Event[],
    kv: Map<string, number>,
    status: string | null,
    report: (problem: string) => void,
  ) {
    this.#events = events;
    this.#kv = kv;
    this.status = status;
    this.#report = report;
    for (const event of events) {
      if (event.sourceEventId !== null && isAnswer(event)) this.#answers.set(event.sourceEventId, event);
    }
    this.#checkActivities();
  }

  run(program: Program, from: number): Ended {
    const seen: Seen[] = [];
    let at = from;
    for (const step of program) {
      const end = this.#step(step, at);
      if (end.at === Number.POSITIVE_INFINITY) return NEVER;
      seen.push(end.seen);
      at = end.at;
    }
    return { at, seen };
  }

  leaf(leaf: Leaf, from: number): Ended {
    const end = this.#leafEnd(leaf, from);
    if (end.at === Number.POSITIVE_INFINITY) this.waitsFor = JSON.stringify({ ...leaf, script: undefined });
    return end;
  }

  /** Messages that nobody read, in the order in which they came. */
  unread(): readonly (readonly [string, string])[] {
    const read = new Map(this.#read);
    return this.#events.flatMap((event) => {
      if (event.type !== "ExternalEventPersistent") return [];
      const left = read.get(event.name) ?? 0;
      read.set(event.name, left - 1);
      return left > 0 ? [] : [[event.name, event.data] as const];
    });
  }

  #step(step: Step, from: number): Ended {
    switch (step.op) {
      case "leaf":
        return this.leaf(step.leaf, from);
      case "all": {
        const ends = step.branches.map((branch) => this.run(branch, from));
        return { at: latest(from, ends), seen: ends.map(({ seen }) => seen) };
      }
      case "join": {
        const ends = step.leaves.map((leaf) => this.leaf(leaf, from));
        const failures = ends.filter(({ isFailure }) => isFailure === true);
        const [first] = failures.sort((one, other) => one.at - other.at);
        return first ?? { at: latest(from, ends), seen: ends.map(({ seen }) => seen) };
      }
      case "race":
        return this.#race(step, from);
      case "count":
        return { at: from, seen: this.#write(step.key, (before) => (before ?? 0) + 1) };
      case "erase":
        return { at: from, seen: this.#write(step.key, () => null) };
      case "status": {
        const before = this.status;
        this.status = step.text;
        return { at: from, seen: before };
      }
      case "cancel":
        return this.leaf(step.after, from);
      case "forget":
      case "detached":
        return { at: from, seen: null };
      case "system":
        return { at: from, seen: step.what === "utcNow" ? "number" : "string" };
    }
  }

  /** Of those who read a mailbox, only the winner has read. */
  #race({ branches }: Extract<Step, { op: "race" }>, from: number): Ended {
    const readBefore = this.#read;
    let winner: { readonly end: Ended; readonly index: number; readonly read: Map<string, number> } | null = null;
    for (const [index, branch] of branches.entries()) {
      this.#read = new Map(readBefore);
      const end = this.run(branch, from);
      if (end.at < (winner?.end.at ?? Number.POSITIVE_INFINITY)) winner = { end, index, read: this.#read };
    }
    this.#read = winner?.read ?? readBefore;
    return winner === null ? NEVER : { at: winner.end.at, seen: [winner.index, winner.end.seen] };
  }

  #leafEnd(leaf: Leaf, from: number): Ended {
    switch (leaf.op) {
      case "activity":
        return this.#answerTo(this.#activities(leaf.label)[0]);
      case "retry": {
        const attempts = this.#activities(leaf.label);
        const last = this.#answerTo(attempts.at(-1));
        if (last.isFailure === true && attempts.length < leaf.maxAttempts) return NEVER;
        if (attempts.length > leaf.maxAttempts) this.#report(`${attempts.length} attempts at ${JSON.stringify(leaf)}`);
        return last;
      }
      case "timer":
        return this.#answerTo(this.#timer(timerMs(leaf)));
      case "wait":
        return this.#raised(eventName(leaf.label));
      case "dequeue":
        return this.#dequeued(leaf.queue, from);
      case "child":
        return this.#answerTo(this.#child(leaf.label));
    }
  }

  #activities(label: number): readonly EventOf<"ActivityScheduled">[] {
    return this.#events.flatMap((event) => {
      const isOne = event.type === "ActivityScheduled" && event.name === WORK && labelOf(event.input) === label;
      return isOne ? [event] : [];
    });
  }

  #timer(ms: number): Event | undefined {
    return this.#events.find((event) => event.type === "TimerCreated" && event.fireAtMs - event.timestampMs === ms);
  }

  #child(label: number): Event | undefined {
    return this.#events.find((event) => event.type === "SubOrchestrationScheduled" && labelOf(event.input) === label);
  }

  #answerTo(asked: Event | undefined): Ended {
    const answer = asked === undefined ? undefined : this.#answers.get(asked.eventId);
    if (answer === undefined) return NEVER;
    switch (answer.type) {
      case "ActivityCompleted":
      case "SubOrchestrationCompleted":
        return { at: answer.eventId, seen: JSON.parse(answer.result) as Seen };
      case "ActivityFailed":
      case "SubOrchestrationFailed":
        return { at: answer.eventId, seen: failureSeen(displayMessage(answer.details)), isFailure: true };
      default:
        return { at: answer.eventId, seen: null };
    }
  }

  /** The first that came after somebody waited for it. */
  #raised(name: string): Ended {
    const waited = this.#events.find((event) => event.type === "ExternalSubscribed" && event.name === name);
    if (waited === undefined) return NEVER;
    const came = this.#events.find((event): event is EventOf<"ExternalEvent"> => {
      return event.type === "ExternalEvent" && event.name === name && event.eventId > waited.eventId;
    });
    return came === undefined ? NEVER : { at: came.eventId, seen: JSON.parse(came.data) as Seen };
  }

  #dequeued(queue: string, from: number): Ended {
    const read = this.#read.get(queue) ?? 0;
    const messages = this.#events.filter((event): event is EventOf<"ExternalEventPersistent"> => {
      return event.type === "ExternalEventPersistent" && event.name === queue;
    });
    const next = messages[read];
    if (next === undefined) return NEVER;
    this.#read.set(queue, read + 1);
    return { at: Math.max(from, next.eventId), seen: JSON.parse(next.data) as Seen };
  }

  #write(key: string, change: (before: number | null) => number | null): number | null {
    const before = this.#kv.get(key) ?? null;
    const after = change(before);
    if (after === null) this.#kv.delete(key);
    else this.#kv.set(key, after);
    return before;
  }

  /** What was recorded is what the activity answered, whoever ran it, and however often. */
  #checkActivities(): void {
    for (const event of this.#events) {
      if (event.type !== "ActivityScheduled" || event.name !== WORK) continue;
      const answer = this.#answers.get(event.eventId);
      if (answer === undefined) continue;
      const task = JSON.parse(event.input) as ActivityTask;
      const fails = doesFail(task, { instanceId: event.instanceId, activityId: event.eventId });
      const expected = fails ? `work ${task.label} failed` : JSON.stringify(resultOf(task.label));
      const actual = textOf(answer);
      if (actual !== expected) this.#report(`activity ${event.eventId} answered ${actual}, not ${expected}`);
    }
  }
}

function isAnswer(event: Event): boolean {
  switch (event.type) {
    case "ActivityCompleted":
    case "ActivityFailed":
    case "TimerFired":
    case "SubOrchestrationCompleted":
    case "SubOrchestrationFailed":
      return true;
    default:
      return false;
  }
}

function latest(from: number, ends: readonly Ended[]): number {
  return ends.reduce((last, { at }) => Math.max(last, at), from);
}

function labelOf(input: string): number | null {
  return (JSON.parse(input) as { readonly label: number | null }).label;
}

function isCancelled(details: ErrorDetails): boolean {
  return details.category === "application" && details.kind.type === "Cancelled";
}

function textOf(answer: Event): string {
  if (answer.type === "ActivityCompleted") return answer.result;
  return answer.type === "ActivityFailed" ? displayMessage(answer.details) : answer.type;
}
