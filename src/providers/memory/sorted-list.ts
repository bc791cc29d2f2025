// providers/memory/sorted-list.ts — an array that stays sorted: the store's stand-in for an index.

export class SortedList<T> implements Iterable<T> {
  readonly #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  /** The order must be total: of two different items, one is before the other, for as long as they are in the list. */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get first(): T | null {
    return this.#items[0] ?? null;
  }

  get size(): number {
    return this.#items.length;
  }

  has(item: T): boolean {
    return this.#items[this.#placeOf(item)] === item;
  }

  firstAfter(place: T): T | null {
    return this.#items[this.#placeOf(place)] ?? null;
  }

  add(item: T): void {
    this.#items.splice(this.#placeOf(item), 0, item);
  }

  /** Tells whether it was there. */
  remove(item: T): boolean {
    const place = this.#placeOf(item);
    if (this.#items[place] !== item) return false;
    this.#items.splice(place, 1);
    return true;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items.values();
  }

  #placeOf(item: T): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore(this.#items[middle]!, item)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
