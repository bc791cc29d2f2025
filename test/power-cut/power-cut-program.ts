// The program behind `npm run power-cut`; scripts/power-cut.mjs says how it is called.

import { parseArgs } from "node:util";
import { systemClock } from "../../src/clock.js";
import { messageOf } from "../../src/errors.js";
import type { SqliteDurability, WriterChoice } from "../../src/providers/sqlite/index.js";
import { type Losses, lossesOf, type Spread } from "./losses.js";
import { type CutReport, cutPower } from "./power-cuts.js";
import { recordWorkload } from "./recording.js";
import { whyNoRecording } from "./strace.js";

interface Arguments {
  readonly durability: SqliteDurability;
  readonly writer: WriterChoice;
  readonly seed: number;
  readonly cuts: number;
  readonly images: number;
  readonly instances: number;
  readonly isJson: boolean;
}

const DURABILITIES: readonly SqliteDurability[] = ["full", "process-crash"];
const WRITERS: readonly WriterChoice[] = ["always", "never"];
const PROBLEMS_SHOWN = 50;
const PROGRESS_EVERY = 100;

const given = readArguments();
const reason = whyNoRecording();
if (reason !== null) {
  process.stdout.write(`Power cuts skipped: ${reason}.\n`);
  process.exit(0);
}
const recording = await recordWorkload(given.durability, given.instances, given.writer);
const { images, ...report } = await cutPower(recording, {
  seed: given.seed,
  cuts: given.cuts,
  imagesPerCut: given.images,
  onImage: progress(),
});
const losses = lossesOf(images);
process.stdout.write(given.isJson ? `${JSON.stringify({ ...report, losses })}\n` : format(report, losses));
process.exitCode = report.problems.length === 0 ? 0 : 1;

function readArguments(): Arguments {
  const text = { type: "string" } as const;
  try {
    const { values } = parseArgs({
      options: {
        durability: text,
        writer: text,
        seed: text,
        cuts: text,
        images: text,
        instances: text,
        json: { type: "boolean" },
      },
    });
    return {
      durability: oneOf("durability", DURABILITIES, values.durability ?? "full"),
      writer: oneOf("writer", WRITERS, values.writer ?? "never"),
      seed: numberOf("seed", values.seed ?? systemClock.now() % 1_000_000),
      cuts: numberOf("cuts", values.cuts ?? 200),
      images: numberOf("images", values.images ?? 3),
      instances: numberOf("instances", values.instances ?? 30),
      isJson: values.json ?? false,
    };
  } catch (error) {
    const numbers = ["seed", "cuts", "images", "instances"].map((name) => `[--${name} NUMBER]`).join(" ");
    const words = `[--durability ${DURABILITIES.join("|")}] [--writer ${WRITERS.join("|")}]`;
    process.stderr.write(`${messageOf(error)}\nusage: npm run power-cut -- ${words} ${numbers} [--json]\n`);
    process.exit(2);
  }
}

function oneOf<T extends string>(name: string, words: readonly T[], text: string): T {
  const word = words.find((each) => each === text);
  if (word === undefined) throw new Error(`--${name}: there is no '${text}'`);
  return word;
}

function numberOf(name: string, text: string | number): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new Error(`--${name} must be a number from 1 up, not '${text}'`);
  return number;
}

function progress(): () => void {
  let looked = 0;
  return () => {
    looked += 1;
    if (looked % PROGRESS_EVERY === 0) process.stderr.write(`${looked} of ${given.cuts * given.images} images\n`);
  };
}

function format(report: Omit<CutReport, "images">, losses: readonly Losses[]): string {
  const { durability, seed, cuts, instances } = given;
  const lines = [
    ["recorded", `${instances} orchestrations at durability "${durability}": ${report.operations} operations`],
    ["of which", `${report.syncs} syncs, ${report.checkpoints} of them of the database file`],
    ["promised", `${report.acknowledgements} acknowledgements in ${report.commits} commits`],
    ["of which", `${report.commitsOfWriter} commits are those of the writer's thread`],
    ["images", `${losses.reduce((sum, { images }) => sum + images, 0)}, of ${cuts} cuts; seed ${seed}`],
    ...losses.map((loss) => [loss.fate, lossInWords(loss)]),
    ["problems", String(report.problems.length)],
  ] as [string, string][];
  const width = Math.max(...lines.map(([name]) => name.length));
  const shown = report.problems.slice(0, PROBLEMS_SHOWN).map((problem) => `  ${problem}`);
  return `${[...lines.map(([name, value]) => `${name.padEnd(width)}  ${value}`), ...shown].join("\n")}\n`;
}

function lossInWords({ images, whole, commits, acknowledgements }: Losses): string {
  const spread = ({ median, p90, most }: Spread): string => `median ${median}, p90 ${p90}, most ${most}`;
  return `${images} images, ${whole} whole; lost commits ${spread(commits)}; lost acknowledgements ${spread(acknowledgements)}`;
}
