// What a disk keeps when the power goes, by the rules at the top of disk.ts.

import { describe, expect, test } from "vitest";
import { seeded } from "../engine/random-program.js";
import { Disk, FATES, type Fate } from "./disk.js";
import { LOG, type Operation } from "./operation.js";

const FILE = LOG;
const create: Operation = { kind: "create", file: FILE };
const unlink: Operation = { kind: "unlink", file: FILE };
const sync: Operation = { kind: "sync", file: FILE };
const syncFolder: Operation = { kind: "sync-folder" };
const truncate = (size: number): Operation => ({ kind: "truncate", file: FILE, size });
const write = (offset: number, data: Buffer): Operation => ({ kind: "write", file: FILE, offset, data });
const filled = (size: number, byte: number): Buffer => Buffer.alloc(size, byte);

describe("what was synced", () => {
  test.each(FATES)("is there, byte for byte: %s", (fate) => {
    const data = filled(4_096, 7);
    const disk = diskAfter(create, write(0, data), sync, syncFolder);
    expect(images(disk, fate).filter((image) => image.get(FILE)?.equals(data) !== true)).toEqual([]);
  });

  test("has no name until the folder is synced, too", () => {
    const disk = diskAfter(create, write(0, filled(512, 7)), sync);
    expect(disk.afterCut("only-synced", seeded(1)).has(FILE)).toBe(false);
    expect(new Set(images(disk, "some-writes").map((image) => image.has(FILE)))).toEqual(new Set([true, false]));
  });

  test("may come back after it was removed, until the folder is synced", () => {
    const old = filled(512, 7);
    const disk = diskAfter(create, write(0, old), sync, syncFolder, unlink, create, write(0, filled(512, 8)), sync);
    const contents = images(disk, "some-writes").map((image) => image.get(FILE)?.[0]);
    expect(new Set(contents)).toEqual(new Set([7, 8, undefined]));

    disk.apply(syncFolder);
    expect(images(disk, "some-writes").map((image) => image.get(FILE)?.[0])).toEqual(Array(IMAGES).fill(8));
  });
});

describe("what was not synced", () => {
  test("may be lost, whole or by its sectors, and never touches its neighbours", () => {
    const disk = diskAfter(create, write(0, filled(2_048, 1)), sync, syncFolder, write(500, filled(1_036, 2)));
    const patterns = images(disk, "some-sectors").map((image) => bytesAt(image.get(FILE)!, [0, 499, 500, 512, 1_024]));
    expect(patterns.every(([first, neighbour]) => first === 1 && neighbour === 1)).toBe(true);
    // The pieces: 500 to 511, 512 to 1,023, 1,024 to 1,535.
    expect(new Set(patterns.map((pattern) => pattern.slice(2).join(""))).size).toBe(8);
  });

  test("may be overtaken by what came later, and leaves zeros", () => {
    const disk = diskAfter(create, sync, syncFolder, write(0, filled(512, 1)), write(512, filled(512, 2)));
    const contents = images(disk, "some-writes").map((image) => bytesAt(image.get(FILE)!, [0, 512]).join(","));
    expect(new Set(contents)).toEqual(new Set([",", "1,", "1,2", "0,2"]));
  });

  test("ends at one point, where the disk keeps the order", () => {
    const disk = diskAfter(create, sync, syncFolder, ...[1, 2, 3].map((n) => write((n - 1) * 512, filled(512, n))));
    const sizes = images(disk, "in-order").map((image) => image.get(FILE)!.length);
    expect(new Set(sizes)).toEqual(new Set([0, 512, 1_024, 1_536]));
  });

  test("may be garbage within what was written", () => {
    const disk = diskAfter(create, write(0, filled(1_024, 1)), sync, syncFolder, write(512, filled(512, 2)));
    const contents = images(disk, "garbage").map((image) => image.get(FILE)!);
    expect(contents.every((content) => content.subarray(0, 512).equals(filled(512, 1)))).toBe(true);
    const isGarbage = (content: Buffer): boolean => new Set(content.subarray(512)).size > 2;
    expect(contents.some(isGarbage)).toBe(true);
  });

  test("may be an end that was cut off", () => {
    const disk = diskAfter(create, write(0, filled(1_024, 1)), sync, syncFolder, truncate(512));
    const sizes = images(disk, "some-writes").map((image) => image.get(FILE)!.length);
    expect(new Set(sizes)).toEqual(new Set([512, 1_024]));
  });
});

test("the running system sees everything", () => {
  const disk = diskAfter(create, write(512, filled(512, 2)), truncate(600), truncate(1_024));
  expect(disk.now().get(FILE)).toEqual(Buffer.concat([filled(512, 0), filled(88, 2), filled(424, 0)]));
});

const IMAGES = 200;

function diskAfter(...operations: readonly Operation[]): Disk {
  const disk = new Disk();
  for (const operation of operations) disk.apply(operation);
  return disk;
}

function images(disk: Disk, fate: Fate): ReadonlyMap<string, Buffer>[] {
  const random = seeded(1);
  return Array.from({ length: IMAGES }, () => disk.afterCut(fate, random));
}

function bytesAt(content: Buffer, places: readonly number[]): (number | undefined)[] {
  return places.map((place) => content[place]);
}
