// runtime/semver.ts — versions of orchestrations and of the engine: strictly `major.minor.patch`.
//
// Pre-releases and build metadata are refused. Versions here are pins, not ranges: an execution keeps the one it started
// with, stores compare three numbers, and an order that hangs on a suffix would only surprise.

import { VERSION } from "../history/limits.js";
import type { SemVer, SemVerRange } from "../provider/provider.js";

/** Null for anything but `major.minor.patch`. */
export function parseSemVer(text: string): SemVer | null {
  const match = VERSION.exec(text);
  if (match === null) return null;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3]) };
}

/** Negative: `a` is older. Zero: the same. Positive: `a` is newer. */
export function compareSemVer(a: SemVer, b: SemVer): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

export function formatSemVer(version: SemVer): string {
  return `${version.major}.${version.minor}.${version.patch}`;
}

export function isWithin(version: SemVer, range: SemVerRange): boolean {
  return compareSemVer(range.min, version) <= 0 && compareSemVer(version, range.max) <= 0;
}
