// providers/memory/message-list.ts — the orchestrator messages of one instance, oldest first.
//
//   M1. The order is (dueAt, seq), and a message never changes its place.
//   M2. visibleAt >= dueAt, so a search for visible messages ends at the first that is not due.

import type { ContinueAsNew, OrchestratorItem, StartOrchestration } from "../../history/work-item.js";
import { isStartLike } from "../../history/work-item.js";
import { SortedList } from "./sorted-list.js";

export interface Message {
  readonly item: OrchestratorItem;
  /** When it was enqueued; for a timer, when it is to fire. */
  readonly dueAt: number;
  /** Order of insertion, over all instances. */
  readonly seq: number;
  readonly visibleAt: number;
  attemptCount: number;
}

export class MessageList {
  readonly #messages = new SortedList<Message>(isOlder);
  readonly #byVisibility = new SortedList<Pick<Message, "visibleAt" | "seq">>(isVisibleBefore);
  /** Where to find what `cancelTimer` asks for. Nothing forbids two rows for one timer. */
  readonly #timers = new Map<string, Message[]>();

  get isEmpty(): boolean {
    return this.#messages.first === null;
  }

  get size(): number {
    return this.#messages.size;
  }

  has(message: Message): boolean {
    return this.#messages.has(message);
  }

  add(message: Message): void {
    this.#messages.add(message);
    this.#byVisibility.add(message);
    const key = timerKey(message.item);
    if (key !== null) this.#timers.set(key, [...(this.#timers.get(key) ?? []), message]);
  }

  remove(message: Message): void {
    this.#messages.remove(message);
    this.#byVisibility.remove(message);
    const key = timerKey(message.item);
    if (key === null) return;
    const others = (this.#timers.get(key) ?? []).filter((other) => other !== message);
    if (others.length > 0) this.#timers.set(key, others);
    else this.#timers.delete(key);
  }

  clear(): void {
    for (const message of [...this.#messages]) this.remove(message);
  }

  cancelTimer(executionId: number, id: number): void {
    for (const message of this.#timers.get(`${executionId}:${id}`) ?? []) this.remove(message);
  }

  firstVisible(now: number): Message | null {
    for (const message of this.#messages) {
      if (message.dueAt > now) return null; // M2
      if (message.visibleAt <= now) return message;
    }
    return null;
  }

  visible(now: number): Message[] {
    const visible: Message[] = [];
    for (const message of this.#messages) {
      if (message.dueAt > now) break; // M2
      if (message.visibleAt <= now) visible.push(message);
    }
    return visible;
  }

  /** The oldest start or continue-as-new: of those visible now or, without a time, of all. */
  findStart(now = Number.POSITIVE_INFINITY): StartOrchestration | ContinueAsNew | null {
    for (const { item, visibleAt } of this.#messages) if (visibleAt <= now && isStartLike(item)) return item;
    return null;
  }

  /** The starts that one of these parents has queued. */
  startsFrom(parents: ReadonlySet<string>): Message[] {
    return [...this.#messages].filter(
      ({ item }) => isStartLike(item) && item.parentInstance != null && parents.has(item.parentInstance),
    );
  }

  /** When the passing of time alone makes another message visible; null: never. */
  nextVisibleAt(now: number): number | null {
    return this.#byVisibility.firstAfter({ visibleAt: now, seq: Number.POSITIVE_INFINITY })?.visibleAt ?? null;
  }
}

export function isOlder(a: Pick<Message, "dueAt" | "seq">, b: Pick<Message, "dueAt" | "seq">): boolean {
  return a.dueAt === b.dueAt ? a.seq < b.seq : a.dueAt < b.dueAt;
}

function isVisibleBefore(a: Pick<Message, "visibleAt" | "seq">, b: Pick<Message, "visibleAt" | "seq">): boolean {
  return a.visibleAt === b.visibleAt ? a.seq < b.seq : a.visibleAt < b.visibleAt;
}

function timerKey(item: OrchestratorItem): string | null {
  return item.type === "TimerFired" ? `${item.executionId}:${item.id}` : null;
}
