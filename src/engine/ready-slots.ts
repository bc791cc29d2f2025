// engine/ready-slots.ts — waits that have a value and a listener, handed out lowest schedule id first: a binary heap.

import type { Slot } from "./slot.js";

export class ReadySlots {
  readonly #heap: Slot[] = [];

  add(slot: Slot): void {
    let at = this.#heap.push(slot) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (order(this.#heap[parent]!) <= order(slot)) break;
      this.#heap[at] = this.#heap[parent]!;
      at = parent;
    }
    this.#heap[at] = slot;
  }

  /** The lowest one that still waits; those dropped since are passed over. */
  take(): Slot | null {
    for (;;) {
      const slot = this.#pop();
      if (slot === null || slot.isResolvable) return slot;
    }
  }

  #pop(): Slot | null {
    const lowest = this.#heap[0];
    const last = this.#heap.pop();
    if (lowest === undefined || last === undefined) return null;
    if (this.#heap.length > 0) this.#sink(last);
    return lowest;
  }

  /** Puts a slot in the empty place at the top, and down to where it belongs. */
  #sink(slot: Slot): void {
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#heap.length) break;
      if (child + 1 < this.#heap.length && order(this.#heap[child + 1]!) < order(this.#heap[child]!)) child += 1;
      if (order(slot) <= order(this.#heap[child]!)) break;
      this.#heap[at] = this.#heap[child]!;
      at = child;
    }
    this.#heap[at] = slot;
  }
}

function order(slot: Slot): number {
  return slot.scheduleId ?? 0;
}
