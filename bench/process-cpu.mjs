// bench/process-cpu.mjs — the CPU time of processes, as Linux counts it: in hundredths of a second.

import { readdirSync, readFileSync } from "node:fs";

/** What one tick of `utime` is, on every Linux there is. */
const MS_PER_TICK = 10;

/** Of all threads of a process, in milliseconds; `ended`: of its children that are no more. Null: there is none. */
export function cpuOf(pid) {
  const fields = statOf(pid);
  if (fields === null) return null;
  const ticks = (first) => (Number(fields[first]) + Number(fields[first + 1])) * MS_PER_TICK;
  return { ms: ticks(11), ended: ticks(13) };
}

/** Of a process and all that it ever started. */
export function cpuOfTree(pid) {
  const { ms, ended } = cpuOf(pid);
  return childrenOf(pid).reduce((sum, child) => sum + (cpuOf(child)?.ms ?? 0), ms + ended);
}

function childrenOf(pid) {
  const isChild = (name) => /^\d+$/.test(name) && statOf(name)?.[1] === String(pid);
  return readdirSync("/proc").filter(isChild);
}

/** From the third field on: the second, the name, may hold anything. */
function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
