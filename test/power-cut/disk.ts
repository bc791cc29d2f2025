// test/power-cut/disk.ts — a disk that keeps only what it was told to keep: what a store's files may be after a power cut.
//
//   K1. What was written before a sync of its file is on the disk. The name of a file, or that it has none any more, is on
//       the disk after a sync of the folder; a sync of the file itself does not do that.
//   K2. Of everything else any part may be there: any of the writes, in any order, each by its sectors; and of each name
//       what it stood for at any time since the last sync of the folder.
//   K3. A sector that was being written when the power went may hold neither the old bytes nor the new ones. Bytes that
//       nobody wrote stay as they are, also those of the same sector (what SQLite calls powersafe overwrite).
//   K4. What was never written, and lies before something that was, reads as zeros.

import { pick, type Random } from "../engine/random-program.js";
import type { Operation } from "./operation.js";

const SECTOR_BYTES = 512;

/** What becomes of that which was not synced. */
export const FATES = ["only-synced", "in-order", "some-writes", "some-sectors", "garbage"] as const;
export type Fate = (typeof FATES)[number];

/** Files by their names. */
export type Image = ReadonlyMap<string, Buffer>;

type Change = Extract<Operation, { readonly kind: "write" | "truncate" }> & { readonly order: number };

/** What a name stands for from some operation on; null: nothing. */
interface Entry {
  readonly file: StoredFile | null;
  readonly order: number;
}

interface Name {
  durable: Entry;
  readonly since: Entry[];
}

/** Decides what survives. */
interface Judge {
  entry(name: Name): Entry;
  /** The parts of a change that reach the disk, each with the bytes that are there then. */
  survivors(change: Change): readonly Change[];
}

export class Disk {
  readonly #names = new Map<string, Name>();
  #order = 0;

  apply(operation: Operation): void {
    this.#order += 1;
    switch (operation.kind) {
      case "create":
        return this.#enter(operation.file, new StoredFile());
      case "unlink":
        return this.#enter(operation.file, null);
      case "write":
      case "truncate":
        return this.#file(operation.file).change({ ...operation, order: this.#order });
      case "sync":
        return this.#file(operation.file).sync(); // K1
      case "sync-folder":
        for (const name of this.#names.values()) {
          name.durable = latest(name);
          name.since.length = 0;
        }
        return;
      case "mark":
        return;
    }
  }

  /** As the running system sees its files. */
  now(): Image {
    return this.#image({ entry: latest, survivors: (change) => [change] });
  }

  /** What may be found when the power is back. */
  afterCut(fate: Fate, random: Random): Image {
    return this.#image(this.#judge(fate, random));
  }

  #judge(fate: Fate, random: Random): Judge {
    const anyEntry = (name: Name): Entry => pick(random, [name.durable, ...name.since]);
    switch (fate) {
      case "only-synced":
        return { entry: ({ durable }) => durable, survivors: () => [] };
      case "in-order": {
        const last = this.#unsynced(random);
        return {
          entry: ({ durable, since }) => since.findLast(({ order }) => order <= last) ?? durable,
          survivors: (change) => (change.order < last ? [change] : change.order === last ? torn(change, random) : []),
        };
      }
      case "some-writes": {
        const chance = pick(random, CHANCES);
        return { entry: anyEntry, survivors: (change) => (random() < chance ? [change] : []) };
      }
      case "some-sectors": {
        const chance = pick(random, CHANCES);
        return {
          entry: anyEntry,
          survivors: (change) => sectorsOf(change).filter(() => random() < chance),
        };
      }
      case "garbage": {
        const chance = pick(random, CHANCES);
        return {
          entry: anyEntry,
          survivors: (change) =>
            sectorsOf(change).flatMap((sector) => {
              if (random() >= chance) return [];
              return random() < GARBAGE ? [garbled(sector, random)] : [sector];
            }),
        };
      }
    }
  }

  /** The place of an unsynced change, or of a name's; 0 where there is none. */
  #unsynced(random: Random): number {
    const orders = [...this.#names.values()].flatMap((name) => {
      const files = new Set([name.durable, ...name.since].flatMap(({ file }) => (file === null ? [] : [file])));
      return [...name.since, ...[...files].flatMap(({ unsynced }) => unsynced)].map(({ order }) => order);
    });
    return orders.length === 0 ? 0 : pick(random, orders);
  }

  #image(judge: Judge): Image {
    const image = new Map<string, Buffer>();
    for (const [path, name] of this.#names) {
      const { file } = judge.entry(name);
      if (file !== null) image.set(path, file.contentWith(file.unsynced.flatMap((change) => judge.survivors(change))));
    }
    return image;
  }

  #enter(path: string, file: StoredFile | null): void {
    const name = this.#names.get(path) ?? { durable: { file: null, order: 0 }, since: [] };
    name.since.push({ file, order: this.#order });
    this.#names.set(path, name);
  }

  #file(path: string): StoredFile {
    const name = this.#names.get(path);
    const file = name === undefined ? null : latest(name).file;
    if (file === null) throw new Error(`There is no file '${path}' to change.`);
    return file;
  }
}

/** How much of what is not synced survives; from hardly anything to nearly all. */
const CHANCES = [0.05, 0.5, 0.95];
/** Of the sectors that are written at all. */
const GARBAGE = 0.2;

function latest({ durable, since }: Name): Entry {
  return since.at(-1) ?? durable;
}

function torn(change: Change, random: Random): readonly Change[] {
  const sectors = sectorsOf(change);
  return sectors.slice(0, Math.floor(random() * (sectors.length + 1)));
}

/** A write, in the pieces in which a disk writes it. A change of size is one piece. */
function sectorsOf(change: Change): readonly Change[] {
  if (change.kind === "truncate") return [change];
  const sectors: Change[] = [];
  for (let from = 0; from < change.data.length; ) {
    const size = SECTOR_BYTES - ((change.offset + from) % SECTOR_BYTES);
    sectors.push({ ...change, offset: change.offset + from, data: change.data.subarray(from, from + size) });
    from += size;
  }
  return sectors;
}

function garbled(change: Change, random: Random): Change {
  if (change.kind === "truncate") return change;
  return { ...change, data: Buffer.from(change.data.map(() => Math.floor(random() * 256))) };
}

/** What is on the disk of a file, and what was asked for since. */
class StoredFile {
  readonly #durable = new Content();
  readonly #unsynced: Change[] = [];

  get unsynced(): readonly Change[] {
    return this.#unsynced;
  }

  change(change: Change): void {
    this.#unsynced.push(change);
  }

  sync(): void {
    for (const change of this.#unsynced) this.#durable.apply(change);
    this.#unsynced.length = 0;
  }

  contentWith(changes: readonly Change[]): Buffer {
    if (changes.length === 0) return this.#durable.bytes();
    const content = this.#durable.copy();
    for (const change of changes) content.apply(change);
    return content.bytes();
  }
}

/** Bytes that grow. */
export class Content {
  #buffer = Buffer.alloc(4_096);
  #size = 0;

  /** A view of what is there now. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  copy(): Content {
    const copy = new Content();
    copy.#buffer = Buffer.from(this.#buffer);
    copy.#size = this.#size;
    return copy;
  }

  apply(change: Extract<Operation, { readonly kind: "write" | "truncate" }>): void {
    if (change.kind === "truncate") this.#resize(change.size);
    else {
      const end = change.offset + change.data.length;
      if (end > this.#size) this.#resize(end);
      change.data.copy(this.#buffer, change.offset);
    }
  }

  /** K4: beyond its size the buffer holds zeros. */
  #resize(size: number): void {
    if (size < this.#size) this.#buffer.fill(0, size, this.#size);
    if (size > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(size, this.#buffer.length * 2));
      this.bytes().copy(larger);
      this.#buffer = larger;
    }
    this.#size = size;
  }
}
