// testing/other-world.ts — runs orchestration code where time and chance are others than here, and notes whether it looks.
//
//   O1. Only the code of admitted executions gets other values: whoever else is in the process sees the real ones.
//   O2. Whatever was replaced is put back, also after a throw; and there is one visit at a time, so that none puts back what
//       another has replaced. What somebody else puts there meanwhile, such as fake timers, stays.
//   O3. Every execution that is admitted finds other values than the one before.
//   O4. What the code writes to the console is no look, even where a test runner notes when it was written.

import nodeCrypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { codeLocation } from "../engine/scope.js";

/** Something that orchestration code should not look at, and what it should ask instead. */
export interface Look {
  readonly at: string;
  readonly instead: "ctx.utcNow" | "ctx.newGuid";
}

type Call = (...args: readonly unknown[]) => unknown;

interface Replacement extends Look {
  readonly owner: object;
  readonly key: string;
  /** What is answered instead. */
  readonly other: (real: Call) => Call;
}

/** Seven years and some, so that years, months, hours and milliseconds are all others. */
const SHIFT_MS = 7 * 31_557_600_000 + 41 * 86_400_000 + 5 * 3_600_000 + 12_345;

let lastVisit: Promise<unknown> = Promise.resolve();

export class OtherWorld {
  readonly #inhabitants = new WeakSet<object>();
  readonly #looks = new Map<string, Look>();
  #admitted = 0;
  #random = randomFrom(0);

  /** Everything that the code of admitted executions has looked at. */
  get looks(): readonly Look[] {
    return [...this.#looks.values()];
  }

  /** Its code lives here from now on. */
  admit(execution: object): void {
    this.#inhabitants.add(execution);
    this.#admitted += 1;
    this.#random = randomFrom(this.#admitted); // O3
  }

  /** Does the work while the world is another. */
  visit<T>(work: () => Promise<T>): Promise<T> {
    const visit = lastVisit.then(async () => {
      const putBack = this.#replaceAll();
      try {
        return await work();
      } finally {
        putBack();
      }
    });
    lastVisit = visit.catch(() => {}); // O2; whoever visits hears of the failure.
    return visit;
  }

  #replaceAll(): () => void {
    const restores = [
      ...this.#replaceDate(),
      ...this.#replacements().map((replacement) => this.#replace(replacement)),
      ...this.#replaceConsole(),
    ];
    syncBuiltinESMExports(); // For those who import functions of node:crypto by name.
    return () => {
      for (const restore of restores.reverse()) restore();
      syncBuiltinESMExports();
    };
  }

  #replacements(): readonly Replacement[] {
    const time = { instead: "ctx.utcNow" } as const;
    const chance = { instead: "ctx.newGuid" } as const;
    const { crypto } = globalThis;
    const shifted = (owner: object) => (real: Call) => () => Number(real.call(owner)) + this.#shiftMs;
    const uuid = (): string => this.#uuid();
    const asEver = (real: Call): Call => real; // Never the same in any case.
    return [
      { ...time, at: "Date.now", owner: Date, key: "now", other: shifted(Date) },
      { ...time, at: "performance.now", owner: performance, key: "now", other: shifted(performance) },
      { ...chance, at: "Math.random", owner: Math, key: "random", other: () => () => this.#random() },
      { ...chance, at: "crypto.randomUUID", owner: crypto, key: "randomUUID", other: () => uuid },
      { ...chance, at: "crypto.randomUUID", owner: nodeCrypto, key: "randomUUID", other: () => uuid },
      { ...chance, at: "crypto.randomInt", owner: nodeCrypto, key: "randomInt", other: asEver },
      { ...chance, at: "crypto.randomFillSync", owner: nodeCrypto, key: "randomFillSync", other: asEver },
      {
        ...chance,
        at: "crypto.getRandomValues",
        owner: crypto,
        key: "getRandomValues",
        other: () => (array) => this.#filled(array as ArrayBufferView),
      },
      {
        ...chance,
        at: "crypto.randomBytes",
        owner: nodeCrypto,
        key: "randomBytes",
        other: (real) => (size, callback) =>
          callback === undefined ? this.#filled(Buffer.alloc(size as number)) : real(size, callback),
      },
    ];
  }

  #replace({ owner, key, other, ...look }: Replacement): () => void {
    const real = Reflect.get(owner, key) as Call;
    const otherwise = other(real);
    const isInside = (): boolean => this.#isInside();
    const note = (): void => this.#note(look);
    return put(owner, key, function replaced(this: unknown, ...args: readonly unknown[]): unknown {
      if (!isInside()) return Reflect.apply(real, this, args); // O1
      note();
      return otherwise(...args);
    });
  }

  /** O4 */
  #replaceConsole(): (() => void)[] {
    return Object.entries(console).flatMap(([key, real]: [string, unknown]) => {
      if (typeof real !== "function") return [];
      const write = (args: readonly unknown[]): unknown => Reflect.apply(real, console, args);
      const replaced: Call = (...args) => (this.#isInside() ? codeLocation.exit(write, args) : write(args));
      return [put(console, key, replaced)];
    });
  }

  /** Only a date that is made of nothing tells the time. */
  #replaceDate(): (() => void)[] {
    const RealDate = globalThis.Date;
    const realNow = RealDate.now;
    const arguments_ = (args: readonly unknown[]): readonly unknown[] => {
      if (args.length > 0 || !this.#isInside()) return args; // O1
      this.#note({ at: "new Date", instead: "ctx.utcNow" });
      return [Number(realNow.call(RealDate)) + this.#shiftMs];
    };
    const proxy: DateConstructor = new Proxy(RealDate, {
      construct: (target, args, newTarget) =>
        Reflect.construct(target, arguments_(args), newTarget === proxy ? target : newTarget) as Date,
      apply: () => String(new proxy()),
    });
    return [this.#divert(globalThis, "Date", proxy), this.#divert(RealDate.prototype, "constructor", proxy)];
  }

  /** Those inside find something else there. All others find what they have put there, now and afterwards. */
  #divert(owner: object, key: string, inside: unknown): () => void {
    const before = Reflect.getOwnPropertyDescriptor(owner, key);
    let outside: unknown = before?.value;
    const get = (): unknown => (this.#isInside() ? inside : outside); // O1
    const set = function (this: object, value: unknown): void {
      if (this === owner) outside = value;
      else put(this, key, value); // Inherits from the owner.
    };
    Object.defineProperty(owner, key, { get, set, configurable: true, enumerable: false });
    return () => {
      if (Reflect.getOwnPropertyDescriptor(owner, key)?.get !== get) return; // O2
      Object.defineProperty(owner, key, { ...before, value: outside });
    };
  }

  #isInside(): boolean {
    const location = codeLocation.getStore();
    return location !== undefined && this.#inhabitants.has(location.owner);
  }

  #note({ at, instead }: Look): void {
    this.#looks.set(at, { at, instead });
  }

  get #shiftMs(): number {
    return this.#admitted * SHIFT_MS;
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

/** Answers the way back. */
function put(owner: object, key: string, value: unknown): () => void {
  const before = Reflect.getOwnPropertyDescriptor(owner, key);
  Object.defineProperty(owner, key, {
    value,
    configurable: true,
    writable: true,
    enumerable: before?.enumerable ?? true,
  });
  return () => {
    if (Reflect.getOwnPropertyDescriptor(owner, key)?.value !== value) return; // O2
    if (before === undefined) Reflect.deleteProperty(owner, key);
    else Object.defineProperty(owner, key, before);
  };
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
