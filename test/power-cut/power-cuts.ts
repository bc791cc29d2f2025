// test/power-cut/power-cuts.ts — cuts the power at many points of a recording, and looks at what is left. Answers with a report.
//
//   P1. The cuts, and what becomes of unsynced writes, follow from the seed.
//   P2. A recording is gone through once: the disk and the commits are those of the cut that is looked at.
//   P3. An acknowledgement may come while another thread is at the next commit. At durability "full" that one is not told of
//       before its sync; without a sync there is no telling, and it counts.

import { pick, type Random, seeded } from "../engine/random-program.js";
import { type Cut, checkImage, type Verdict } from "./check-image.js";
import { Commits } from "./commits.js";
import { Disk, FATES, type Fate } from "./disk.js";
import type { Acknowledgement } from "./evidence.js";
import { DATABASE, type Operation } from "./operation.js";
import type { Recording } from "./recording.js";

export interface CutOptions {
  readonly seed: number;
  readonly cuts: number;
  /** Of each cut. The first holds nothing but what was synced. */
  readonly imagesPerCut: number;
  /** Whether nothing that was acknowledged may be lost. @default as the recording says */
  readonly claimsFull?: boolean;
  /** Whether a runtime is started on each image, and must come to the end. @default true */
  readonly resumes?: boolean;
  /** Whether one problem is enough to know. @default false */
  readonly stopsAtFirst?: boolean;
  /** Told of each image. */
  readonly onImage?: (looked: Looked) => void;
}

export interface Looked extends Verdict {
  /** After how many operations the power went. */
  readonly cut: number;
  readonly fate: Fate;
}

export interface CutReport {
  readonly operations: number;
  readonly acknowledgements: number;
  readonly commits: number;
  /** Those of threads that acknowledge nothing: of the store's writer. */
  readonly commitsOfWriter: number;
  readonly syncs: number;
  /** Of the database file, which is what ends a checkpoint. */
  readonly checkpoints: number;
  readonly images: readonly Looked[];
  readonly problems: readonly string[];
}

export async function cutPower(recording: Recording, options: CutOptions): Promise<CutReport> {
  const { operations, durability, instances } = recording;
  const { seed, claimsFull = durability === "full", resumes = true, stopsAtFirst = false } = options;
  const random = seeded(seed);
  const cuts = chooseCuts(operations, options.cuts, random);
  const tape = new Tape(durability === "full");
  const images: Looked[] = [];
  const isKnown = (): boolean => stopsAtFirst && (images.at(-1)?.problems.length ?? 0) > 0;
  for (const cut of cuts) {
    if (isKnown()) break;
    tape.playUntil(operations, cut);
    for (const fate of fatesOf(options.imagesPerCut, random)) {
      const image = tape.disk.afterCut(fate, random);
      const verdict = await checkImage(image, { ...tape.cut, instances }, { claimsFull, resumes });
      const looked = { cut, fate, ...verdict };
      images.push(looked);
      options.onImage?.(looked);
    }
  }
  tape.playUntil(operations, operations.length);
  return {
    operations: operations.length,
    acknowledgements: tape.cut.acknowledgements.length,
    commits: tape.cut.commits.count,
    commitsOfWriter: tape.commitsOfWriter,
    syncs: countOf(operations, ({ kind }) => kind === "sync"),
    checkpoints: countOf(operations, (operation) => operation.kind === "sync" && operation.file === DATABASE),
    images,
    problems: images.flatMap(({ cut, fate, problems }) =>
      problems.map((problem) => `seed ${seed}, cut ${cut} of ${operations.length}, ${fate}: ${problem}`),
    ),
  };
}

function countOf(operations: readonly Operation[], counts: (operation: Operation) => boolean): number {
  return operations.filter(counts).length;
}

/** Goes through a recording. P2 */
class Tape {
  readonly disk = new Disk();
  readonly #commits = new Commits();
  readonly #acknowledgements: Acknowledgement[] = [];
  readonly #commitsAt: number[] = [];
  readonly #commitsOf = new Map<number | undefined, number>();
  readonly #acknowledging = new Set<number | undefined>();
  readonly #syncsCommits: boolean;
  /** The write that was a commit, until something is done after it. */
  #commit: Operation | null = null;
  #commitsTold = 0;
  #played = 0;

  constructor(syncsCommits: boolean) {
    this.#syncsCommits = syncsCommits;
  }

  get cut(): Omit<Cut, "instances"> {
    return {
      acknowledgements: this.#acknowledgements,
      commitsAt: this.#commitsAt,
      commitsTold: this.#commitsTold,
      commits: this.#commits,
    };
  }

  get commitsOfWriter(): number {
    const others = [...this.#commitsOf].filter(([thread]) => !this.#acknowledging.has(thread));
    return others.reduce((sum, [, commits]) => sum + commits, 0);
  }

  playUntil(operations: readonly Operation[], cut: number): void {
    for (; this.#played < cut; this.#played += 1) this.#play(operations[this.#played]!);
  }

  #play(operation: Operation): void {
    if (operation.kind === "mark") return this.#acknowledge(operation.line, operation.thread);
    const before = this.#commits.count;
    this.disk.apply(operation);
    this.#commits.apply(operation);
    const isCommit = this.#commits.count > before;
    this.#commit = isCommit ? operation : null;
    if (isCommit) this.#commitsOf.set(operation.thread, (this.#commitsOf.get(operation.thread) ?? 0) + 1);
  }

  #acknowledge(line: string, thread: number | undefined): void {
    this.#acknowledging.add(thread);
    this.#acknowledgements.push(JSON.parse(line) as Acknowledgement);
    this.#commitsAt.push(this.#commits.count);
    const isUnderWay = this.#syncsCommits && this.#commit !== null && this.#commit.thread !== thread; // P3
    this.#commitsTold = this.#commits.count - (isUnderWay ? 1 : 0);
  }
}

/** Where it is likely to hurt: anywhere, after an acknowledgement, and beside what happens rarely. Ascending. */
function chooseCuts(operations: readonly Operation[], count: number, random: Random): readonly number[] {
  const places = new Map<string, number[]>();
  for (const [place, operation] of operations.entries()) {
    const kind = kindOf(operation);
    const known = places.get(kind);
    if (known === undefined) places.set(kind, [place]);
    else known.push(place);
  }
  const marks = places.get("mark") ?? [];
  const kinds = [...places.keys()];
  const choose = (): number => {
    const dice = random();
    if (dice < 0.35) return Math.floor(random() * (operations.length + 1));
    if (dice < 0.75) return pick(random, marks) + 1;
    return pick(random, places.get(pick(random, kinds))!) + (random() < 0.5 ? 0 : 1);
  };
  return Array.from({ length: count }, choose).sort((one, other) => one - other);
}

function kindOf(operation: Operation): string {
  if (operation.kind === "mark" || operation.kind === "sync-folder") return operation.kind;
  const isHeader = operation.kind === "write" && operation.offset === 0;
  return `${operation.kind} ${operation.file}${isHeader ? " header" : ""}`;
}

function fatesOf(count: number, random: Random): readonly Fate[] {
  const [first, ...others] = FATES;
  return Array.from({ length: count }, (_, place) => (place === 0 ? first : pick(random, others)));
}
