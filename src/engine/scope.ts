// engine/scope.ts — cancellation scopes, and the async context that tells which one code runs in.
//
//   C1. What is created by the code of a branch belongs to the branch's scope, however many awaits later.
//   C2. Closing a scope drops everything in it that is not done, in the order of creation; nothing can be added after.

import { AsyncLocalStorage } from "node:async_hooks";
import type { CallWatch } from "./watched-calls.js";

/** Something that can be given up. Giving up what is done does nothing. */
export interface Droppable {
  drop(): void;
}

export class Scope implements Droppable {
  readonly #members = new Set<Droppable>();
  #isClosed: boolean;

  constructor(readonly parent: Scope | null) {
    this.#isClosed = parent?.isClosed ?? false; // C2
    parent?.add(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  add(member: Droppable): void {
    this.#members.add(member);
  }

  remove(member: Droppable): void {
    this.#members.delete(member);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.parent?.remove(this);
    for (const member of this.#members) member.drop(); // C2
    this.#members.clear();
  }

  drop(): void {
    this.close();
  }
}

/** Where orchestration code is: whose it is, and in which scope. */
export interface CodeLocation {
  readonly instanceId: string;
  readonly owner: object;
  readonly scope: Scope;
  /** Who is told of calls whose answers no history records. Null: nobody. */
  readonly watch: CallWatch | null;
}

/** Set while orchestration code runs, and carried over its awaits. */
export const codeLocation = new AsyncLocalStorage<CodeLocation | undefined>();

/** Does what is not orchestration code's doing, such as telling observers, though orchestration code has asked for it. */
export function outsideCode<T>(work: () => T): T {
  return codeLocation.run(undefined, work);
}
