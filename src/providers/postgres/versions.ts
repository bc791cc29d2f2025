// providers/postgres/versions.ts — which versions of histories a fetch can replay, and how a statement is told.

import type { CapabilityFilter, SemVer, SemVerRange } from "../../provider/provider.js";

export const ALL_VERSIONS: SemVerRange = Object.freeze({
  min: { major: 0, minor: 0, patch: 0 },
  max: { major: Number.MAX_SAFE_INTEGER, minor: 0, patch: 0 },
});

export function versionsOf(capability: CapabilityFilter | undefined): SemVerRange {
  return capability?.supportedVersions[0] ?? ALL_VERSIONS;
}

/** Those of one runtime are the same object. */
export function areSameVersions(one: SemVerRange, other: SemVerRange): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

export function includesVersion(range: SemVerRange | null, version: SemVer): boolean {
  return range !== null && compare(range.min, version) <= 0 && compare(version, range.max) <= 0;
}

function compare(one: SemVer, other: SemVer): number {
  return one.major - other.major || one.minor - other.minor || one.patch - other.patch;
}

/** Fetches of one group may take each other's place. */
export function groupOfVersions(capability: CapabilityFilter | undefined): string {
  const { min, max } = versionsOf(capability);
  return `${min.major}.${min.minor}.${min.patch}-${max.major}.${max.minor}.${max.patch}`;
}

export function versionColumns({ major, minor, patch }: SemVer): readonly number[] {
  return [major, minor, patch];
}
