// testing/other-world.ts — runs orchestration code where time and chance are others than here, and notes whether it looks.
//
//   O1. Only the code of newcomers gets other values, and only during a visit; who else is in the process sees the real
//       ones. What is watched, and how, is told in engine/watched-calls.ts.
//   O2. Every newcomer finds other values than the one before.

import { type CallWatch, type WatchedCall, watchCalls } from "../engine/watched-calls.js";

/** Seven years and some, so that years, months, hours and milliseconds are all others. */
const SHIFT_MS = 7 * 31_557_600_000 + 41 * 86_400_000 + 5 * 3_600_000 + 12_345;

export class OtherWorld {
  readonly #looks = new Map<string, WatchedCall>();
  #newcomers = 0;

  /** Everything that the code of newcomers has looked at. */
  get looks(): readonly WatchedCall[] {
    return [...this.#looks.values()];
  }

  /** For the code of one more execution. */
  newcomer(): CallWatch {
    this.#newcomers += 1;
    const values = new OtherValues(this.#newcomers); // O2
    return {
      called: (call, real, args) => {
        this.#looks.set(call.name, call);
        return values.answer(call, real, args);
      },
    };
  }

  /** Does the work while the world is another. */
  async visit<T>(work: () => Promise<T>): Promise<T> {
    const leave = watchCalls();
    try {
      return await work();
    } finally {
      leave();
    }
  }
}

/** The time and the dice of one execution. */
class OtherValues {
  readonly #shiftMs: number;
  readonly #random: () => number;

  constructor(nth: number) {
    this.#shiftMs = nth * SHIFT_MS;
    this.#random = randomFrom(nth);
  }

  answer({ name }: WatchedCall, real: () => unknown, args: readonly unknown[]): unknown {
    switch (name) {
      case "Date.now":
      case "new Date":
      case "performance.now":
        return Number(real()) + this.#shiftMs;
      case "Math.random":
        return this.#random();
      case "crypto.randomUUID":
        return this.#uuid();
      case "crypto.getRandomValues":
        return this.#filled(args[0] as ArrayBufferView);
      case "crypto.randomBytes":
        return args.length > 1 ? real() : this.#filled(Buffer.alloc(args[0] as number));
      default:
        return real(); // Never the same in any case.
    }
  }

  #uuid(): string {
    const hex = Array.from({ length: 32 }, () => Math.floor(this.#random() * 16).toString(16)).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  #filled<T extends ArrayBufferView>(array: T): T {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (const place of bytes.keys()) bytes[place] = Math.floor(this.#random() * 256);
    return array;
  }
}

/** Mulberry32. */
function randomFrom(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
