import type { Mutant } from "./mutant.js";

export const CAPABILITY_FILTERING: readonly Mutant[] = [
  {
    name: "versions are compared as texts",
    category: "capability_filtering",
    caughtBy: "versions_are_compared_as_numbers",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "return a.major - b.major || a.minor - b.minor || a.patch - b.patch;",
        replace: `const text = ({ major, minor, patch }: SemVer) => [major, minor, patch].join(".");
  return text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0;`,
      },
    ],
  },
  {
    name: "the upper end of a version range does not belong to it",
    category: "capability_filtering",
    caughtBy: "fetch_filter_boundary_versions",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "compare(pinned, range.max) <= 0",
        replace: "compare(pinned, range.max) < 0",
      },
    ],
  },
  {
    name: "the filter looks at the oldest instance only",
    category: "capability_filtering",
    caughtBy: "fetch_filter_skips_incompatible_selects_compatible",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "if (!instance.isCompatibleWith(capability)) continue;",
        replace: "if (!instance.isCompatibleWith(capability)) break;",
      },
    ],
  },
  {
    name: "the filter looks at the version of the first execution",
    category: "capability_filtering",
    caughtBy: "continue_as_new_execution_gets_own_pinned_version",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: `AND e.execution_id = i.current_execution_id
  WHERE q.state`,
        replace: `AND e.execution_id = 1
  WHERE q.state`,
      },
      {
        file: "fetch-orchestration.ts",
        find: `AND e.execution_id = i.current_execution_id
  LEFT JOIN`,
        replace: `AND e.execution_id = 1
  LEFT JOIN`,
      },
    ],
  },
  {
    name: "an instance without a version is nobody's",
    category: "capability_filtering",
    caughtBy: "fetch_filter_null_pinned_version_always_compatible",
    store: "sqlite",
    patches: [
      { file: "fetch-orchestration.ts", find: "(\n      e.pinned_major IS NULL\n", replace: "(\n      FALSE\n" },
      {
        file: "fetch-orchestration.ts",
        find: "|| patch === null) return true;",
        replace: "|| patch === null) return false;",
      },
    ],
  },
  {
    name: "a turn that does not name the version forgets it",
    category: "capability_filtering",
    caughtBy: "pinned_version_immutable_across_ack_cycles",
    store: "memory",
    patches: [
      {
        file: "execution-record.ts",
        find: "if (metadata.pinnedVersion !== undefined) this.pinnedVersion = metadata.pinnedVersion;",
        replace: "this.pinnedVersion = metadata.pinnedVersion ?? null;",
      },
    ],
  },
  {
    name: "a version once pinned stays",
    category: "capability_filtering",
    caughtBy: "provider_updates_pinned_version_when_told",
    store: "memory",
    patches: [
      {
        file: "execution-record.ts",
        find: "this.pinnedVersion = metadata.pinnedVersion;",
        replace: "this.pinnedVersion ??= metadata.pinnedVersion;",
      },
    ],
  },
  {
    name: "a fetch fails on a history that cannot be decoded",
    category: "capability_filtering",
    caughtBy: "fetch_corrupted_history_filtered_vs_unfiltered",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "if (!(error instanceof CodecError)) throw error;",
        replace: "if (error instanceof CodecError) throw error;",
      },
    ],
  },
  {
    name: "a version is pinned although the instance has no name",
    category: "capability_filtering",
    caughtBy: "unnamed_instance_suits_every_filter",
    store: "memory",
    patches: [
      {
        file: "instance-record.ts",
        find: "this.row === null ? null : (this.currentExecution?.pinnedVersion ?? null)",
        replace: "this.currentExecution?.pinnedVersion ?? null",
      },
    ],
  },
];
