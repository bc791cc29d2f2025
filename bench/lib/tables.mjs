// bench/lib/tables.mjs — results and targets as tables.

import { printTable } from "../report.mjs";
import { reached } from "./targets.mjs";

/** A workload with more metrics than this stands upright: one line for each metric. */
const WIDEST = 7;
/** Who asked for few workloads knows that the others were not measured. */
const MOST_NAMED = 8;

/** @param {import("./results.mjs").Results} results */
export function printResults(results, workloads) {
  for (const { name, title } of workloads) {
    const found = results.all().filter(({ workload }) => workload === name);
    if (found.length > 0) printTable(`${name}: ${title}`, rowsOf(found));
  }
}

/** @param {readonly import("./targets.mjs").Target[]} targets */
export function printTargets(targets) {
  const measured = targets.filter((target) => target.measured !== undefined);
  if (measured.length > 0) {
    printTable("What must be shown (ratios of medians within this run; nothing is asserted)", measured.map(targetRow));
  }
  const others = targets.filter((target) => target.measured === undefined).map(({ what }) => what);
  if (others.length > MOST_NAMED) console.log(`\n${others.length} more are not in this run.`);
  else if (others.length > 0) console.log(`\nNot in this run: ${others.join("; ")}.`);
}

function targetRow(target) {
  const sign = target.isLessBetter ? "≤" : "≥";
  return {
    "what must be shown": target.what,
    measured: `${shown(target.measured)} ${target.unit}`,
    wanted: `${sign} ${shown(target.least)}`,
    moonshot: `${sign} ${shown(target.moonshot)}`,
    reached: reached(target),
  };
}

function rowsOf(found) {
  const heads = [...new Set(found.map(headOf))];
  const systems = bySystem(found);
  return heads.length > WIDEST ? upright(heads, systems) : lying(heads, systems);
}

function upright(heads, systems) {
  return heads.map((head) => ({
    metric: head,
    ...Object.fromEntries([...systems].map(([system, found]) => [system, cellOf(found, head)])),
  }));
}

function lying(heads, systems) {
  return [...systems].map(([system, found]) => ({
    "store, system": system,
    ...Object.fromEntries(heads.map((head) => [head, cellOf(found, head)])),
    rounds: found[0].rounds.length,
    "±": spreadOf(found[0].rounds),
  }));
}

function bySystem(found) {
  const systems = new Map();
  for (const result of found) {
    const name = `${result.store}, ${result.system}`;
    systems.set(name, [...(systems.get(name) ?? []), result]);
  }
  return systems;
}

function headOf({ metric, unit }) {
  return `${metric} (${unit})`;
}

function cellOf(found, head) {
  const result = found.find((each) => headOf(each) === head);
  return result === undefined ? "–" : shown(result.value);
}

/** Half of how far the rounds of the first metric lie apart, as a share of their middle: how much to trust the digits. */
function spreadOf(rounds) {
  const least = Math.min(...rounds);
  const most = Math.max(...rounds);
  return rounds.length === 1 || least + most === 0 ? "" : `${Math.round((100 * (most - least)) / (most + least))} %`;
}

/** Three digits, or all in front of the point. */
function shown(value) {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(3)));
}
