// linked-set.ts — what comes and goes all the time, in the order in which it came.
//
// A `Set` will do for most things, but not for one that lives as long as the process and changes with every step. V8 gives
// it a new table every so often, and has the old one point to it. Once a full garbage collection has moved a table to the
// old generation, the small collections keep its successors for its sake, and whatever stood in them: of all that a chain
// of steps had made they copied a quarter, until the next full collection, which began it anew (decision 0007).
//
//   L1. What was removed points to nothing, and nothing points to it.

/** Where a member stands in its set. Of no use to anybody but the set. */
export class Place<T> {
  value: T | undefined;
  previous: Place<T> | null;
  next: Place<T> | null = null;

  constructor(value: T, previous: Place<T> | null) {
    this.value = value;
    this.previous = previous;
  }
}

/** Members in the order in which they came. They are not compared: what is added twice is there twice. */
export class LinkedSet<T extends object> {
  #first: Place<T> | null = null;
  #last: Place<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The one that came first. */
  get first(): T | undefined {
    return this.#first?.value;
  }

  /** Answers what `delete` asks for. */
  add(value: T): Place<T> {
    const place = new Place(value, this.#last);
    if (this.#last === null) this.#first = place;
    else this.#last.next = place;
    this.#last = place;
    this.#size += 1;
    return place;
  }

  /** False: it was not there any more. */
  delete(place: Place<T>): boolean {
    if (place.value === undefined) return false;
    const { previous, next } = place;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    place.value = undefined; // L1
    place.previous = null;
    place.next = null;
    this.#size -= 1;
    return true;
  }

  /** Those that came first, `most` of them, as of now: whoever goes through them may add and delete. */
  values(most = this.#size): T[] {
    const values: T[] = [];
    for (let place = this.#first; place !== null && values.length < most; place = place.next) values.push(place.value!);
    return values;
  }
}
