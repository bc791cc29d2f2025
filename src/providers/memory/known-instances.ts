// providers/memory/known-instances.ts — the instances that have a row, in the order in which they came by it, and
// their families.

import type { InstanceRecord, InstanceRow } from "./instance-record.js";

/** An instance that has its row. */
export type KnownInstance = InstanceRecord & { readonly row: InstanceRow };

export class KnownInstances {
  /** Oldest first. */
  readonly #instances = new Map<string, KnownInstance>();
  /** By the id of the parent, known or not. */
  readonly #children = new Map<string, Set<string>>();

  /** To be called after every turn: the first one that has written the row counts. */
  noteTurnOf(instance: InstanceRecord): void {
    if (!isKnown(instance) || this.#instances.has(instance.id)) return;
    this.#instances.set(instance.id, instance);
    const parent = instance.row.parentInstanceId;
    if (parent !== null) this.#children.set(parent, (this.#children.get(parent) ?? new Set()).add(instance.id));
  }

  remove({ id, row }: KnownInstance): void {
    this.#instances.delete(id);
    if (row.parentInstanceId === null) return;
    const siblings = this.#children.get(row.parentInstanceId);
    siblings?.delete(id);
    if (siblings?.size === 0) this.#children.delete(row.parentInstanceId);
  }

  get(id: string): KnownInstance | null {
    return this.#instances.get(id) ?? null;
  }

  oldestFirst(): KnownInstance[] {
    return [...this.#instances.values()];
  }

  newestFirst(): KnownInstance[] {
    return this.oldestFirst().reverse();
  }

  childrenOf(id: string): string[] {
    return [...(this.#children.get(id) ?? [])];
  }
}

function isKnown(instance: InstanceRecord): instance is KnownInstance {
  return instance.row !== null;
}
