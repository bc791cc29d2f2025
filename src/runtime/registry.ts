// runtime/registry.ts — which orchestrations and activities this process can run, and which version a start gets.
//
//   G1. A registry never changes after it was built, and one with a problem is never built: all problems are told at once.
//   G2. A version that is asked for is found exactly or not at all; only a start that names none is subject to policy.

import type { ActivityDefinition, OrchestrationDefinition } from "../define.js";
import { SYSTEM_CALL_PREFIX } from "../engine/system-calls.js";
import type { OrchestrationHandler } from "../engine/turn.js";
import { messageOf, RegistrationError } from "../errors.js";
import { decodePayload, encodePayload } from "../history/payload.js";
import { checkOptions, isObject, type OptionCheck, shown } from "../options.js";
import type { SemVer } from "../provider/provider.js";
import { validateSync } from "../schema.js";
import { compareSemVer, formatSemVer, parseSemVer } from "./semver.js";

/** The newest registered version, or always this one. */
export type VersionPolicy = "latest" | (string & {});
/** Which version a start gets that names none, by name of orchestration. */
export type VersionPolicies = Readonly<Record<string, VersionPolicy>>;

/** What a registry is made of. */
export interface RegistryContents {
  readonly orchestrations?: readonly OrchestrationDefinition[];
  readonly activities?: readonly ActivityDefinition[];
  /** By name of orchestration. @default "latest" for all */
  readonly versionPolicies?: VersionPolicies;
}

export interface ResolvedOrchestration {
  readonly name: string;
  readonly version: string;
  readonly handler: OrchestrationHandler;
}

interface RegisteredVersion {
  readonly version: SemVer;
  readonly definition: OrchestrationDefinition;
}

const DEFAULT_VERSION = "1.0.0";

const isArray: OptionCheck = (value) => (Array.isArray(value) ? null : "must be an array of definitions");

/** For `checkOptions`: what may be said of a registry. What is in the lists is judged when they are registered. */
export const CONTENTS_CHECKS = { orchestrations: isArray, activities: isArray, versionPolicies: isObject };

/**
 * What a runtime can run. Built once, never changed.
 *
 * @example
 * const registry = Registry.of({ orchestrations: [checkout], activities: [reserve, charge] });
 */
export class Registry {
  readonly #contents: Required<RegistryContents>;
  /** Ascending. */
  readonly #versions: ReadonlyMap<string, readonly RegisteredVersion[]>;
  readonly #activities: ReadonlyMap<string, ActivityDefinition>;

  /** `base`: what the contents were merged into. */
  private constructor(
    contents: Required<RegistryContents>,
    systemActivities: readonly ActivityDefinition[],
    base: Registry | null = null,
  ) {
    const problems: string[] = [];
    this.#contents = contents;
    this.#versions = collectVersions(contents.orchestrations, base, problems);
    this.#activities = collectActivities(contents.activities, systemActivities, base, problems);
    checkPolicies(contents.versionPolicies, this.#versions, problems);
    if (problems.length > 0) throw new RegistrationError(problems); // G1
  }

  /**
   * A registry of these definitions.
   *
   * @throws DUROXIDE_REGISTRATION for duplicates, bad versions, declarations, reserved names and void policies
   * @throws DUROXIDE_INVALID_OPTIONS for what is neither a list of definitions nor policies
   */
  static of(contents: RegistryContents): Registry {
    checkOptions("Registry.of", contents, CONTENTS_CHECKS);
    return new Registry(completed(contents ?? {}), []);
  }

  /**
   * All of this one and all of the other, as a new registry. Where both have a policy for a name, the other's counts.
   *
   * @throws DUROXIDE_REGISTRATION, DUROXIDE_INVALID_OPTIONS as `Registry.of`
   * @example
   * const registry = Registry.of({ activities: [charge] }).merge({ orchestrations: [checkout] });
   */
  merge(other: Registry | RegistryContents): Registry {
    if (!(other instanceof Registry)) checkOptions("Registry.merge", other, CONTENTS_CHECKS);
    const added = other instanceof Registry ? other.#contents : completed(other ?? {});
    return new Registry(
      {
        orchestrations: [...this.#contents.orchestrations, ...added.orchestrations],
        activities: [...this.#contents.activities, ...added.activities],
        versionPolicies: { ...this.#contents.versionPolicies, ...added.versionPolicies },
      },
      [],
      this,
    );
  }

  /** With the activities that the runtime itself provides, whose names nobody else may use. */
  withSystemActivities(systemActivities: readonly ActivityDefinition[]): Registry {
    return new Registry(this.#contents, systemActivities);
  }

  /** Null: not registered here, under that version or at all. `version` null: the policy decides. */
  resolveOrchestration(name: string, version: string | null): ResolvedOrchestration | null {
    const wanted = version ?? this.#policyFor(name);
    const versions = this.#versions.get(name) ?? [];
    const found = wanted === "latest" ? versions.at(-1) : findVersion(versions, wanted);
    if (found === undefined) return null;
    return { name, version: formatSemVer(found.version), handler: handlerOf(found.definition) };
  }

  /** Null: not registered here. */
  activity(name: string): ActivityDefinition | null {
    return this.#activities.get(name) ?? null;
  }

  /** In that version; without one, in the version that a start would get. */
  hasOrchestration(name: string, version: string | null = null): boolean {
    return this.resolveOrchestration(name, version) !== null;
  }

  hasActivity(name: string): boolean {
    return this.#activities.has(name);
  }

  /** Sorted. */
  orchestrationNames(): string[] {
    return [...this.#versions.keys()].sort();
  }

  /** Ascending; empty for an unknown name. */
  orchestrationVersions(name: string): string[] {
    return (this.#versions.get(name) ?? []).map(({ version }) => formatSemVer(version));
  }

  /** Sorted, without those of the runtime itself. */
  activityNames(): string[] {
    return this.#contents.activities.map(({ name }) => name).sort();
  }

  #policyFor(name: string): VersionPolicy {
    const { versionPolicies } = this.#contents;
    return (Object.hasOwn(versionPolicies, name) ? versionPolicies[name] : undefined) ?? "latest";
  }
}

function completed(contents: RegistryContents): Required<RegistryContents> {
  return {
    orchestrations: contents.orchestrations ?? [],
    activities: contents.activities ?? [],
    versionPolicies: contents.versionPolicies ?? {},
  };
}

function collectVersions(
  definitions: readonly OrchestrationDefinition[],
  base: Registry | null,
  problems: string[],
): Map<string, RegisteredVersion[]> {
  const byName = new Map<string, RegisteredVersion[]>();
  for (const [place, definition] of definitions.entries()) {
    if (!isDefinition("orchestration", definition)) {
      problems.push(strangerProblem("orchestration", `orchestrations[${place}]`, definition));
      continue;
    }
    const label = `${definition.name}@${definition.version ?? DEFAULT_VERSION}`;
    const version = parseSemVer(definition.version ?? DEFAULT_VERSION);
    if (version === null) {
      problems.push(`orchestration ${label}: the version must be of the form 1.2.3`);
      continue;
    }
    if (definition.isDeclaration) problems.push(declarationProblem("orchestration", label));
    const versions = byName.get(definition.name) ?? [];
    if (versions.some((other) => compareSemVer(other.version, version) === 0)) {
      const isInBase = base?.hasOrchestration(definition.name, formatSemVer(version)) ?? false;
      problems.push(duplicateProblem("orchestration", label, isInBase));
      continue;
    }
    byName.set(definition.name, versions);
    versions.push({ version, definition });
  }
  for (const versions of byName.values()) versions.sort((a, b) => compareSemVer(a.version, b.version));
  return byName;
}

function collectActivities(
  definitions: readonly ActivityDefinition[],
  systemActivities: readonly ActivityDefinition[],
  base: Registry | null,
  problems: string[],
): Map<string, ActivityDefinition> {
  const byName = new Map(systemActivities.map((definition) => [definition.name, definition]));
  for (const [place, definition] of definitions.entries()) {
    if (!isDefinition("activity", definition)) {
      problems.push(strangerProblem("activity", `activities[${place}]`, definition));
      continue;
    }
    const { name } = definition;
    if (name.startsWith(SYSTEM_CALL_PREFIX)) {
      problems.push(`activity name '${name}' uses reserved prefix '${SYSTEM_CALL_PREFIX}'`);
      continue;
    }
    if (definition.isDeclaration) problems.push(declarationProblem("activity", name));
    if (byName.has(name)) problems.push(duplicateProblem("activity", name, base?.hasActivity(name) ?? false));
    byName.set(name, definition);
  }
  return byName;
}

/** Whether it has what `orchestration` and `activity` give to theirs. Somebody may have put it together by hand. */
function isDefinition(kind: "orchestration" | "activity", given: unknown): boolean {
  const { kind: actual, name, run } = (given ?? {}) as Partial<ActivityDefinition>;
  return (actual as string) === kind && typeof name === "string" && typeof run === "function";
}

function strangerProblem(kind: "orchestration" | "activity", place: string, stranger: unknown): string {
  const { kind: actual, name } = (stranger ?? {}) as { readonly kind?: unknown; readonly name?: unknown };
  const what = typeof actual === "string" ? `the ${actual} '${messageOf(name)}'` : messageOf(stranger);
  return `${place} is ${what}: list what ${kind}(…) returns`;
}

const ONCE = {
  orchestration: "register it once, or under another version",
  activity: "register it once; in tests, list the mock in place of the real one",
} as const;

/** Says whether its twin stands in the registry that it was merged into, or was listed with it. */
function duplicateProblem(kind: "orchestration" | "activity", label: string, isInBase: boolean): string {
  const where = isInBase ? "in merge" : "registration";
  return `duplicate ${kind} ${where}: ${label} (${ONCE[kind]})`;
}

function declarationProblem(kind: "orchestration" | "activity", label: string): string {
  return `${kind} ${label} is only declared: register the definition that has the function`;
}

function checkPolicies(
  policies: VersionPolicies,
  versions: ReadonlyMap<string, readonly RegisteredVersion[]>,
  problems: string[],
): void {
  for (const [name, policy] of Object.entries(policies)) {
    const registered = versions.get(name) ?? [];
    if (registered.length === 0) problems.push(`version policy for '${name}': no such orchestration is registered`);
    else if (typeof policy !== "string") {
      problems.push(`version policy for '${name}': "latest" or a version is expected, not ${shown(policy)}`);
    } else if (policy !== "latest" && findVersion(registered, policy) === undefined) {
      problems.push(`version policy for '${name}': version ${policy} is not registered`);
    }
  }
}

function findVersion(versions: readonly RegisteredVersion[], text: string): RegisteredVersion | undefined {
  const wanted = parseSemVer(text);
  return wanted === null ? undefined : versions.find(({ version }) => compareSemVer(version, wanted) === 0);
}

/** The engine's view of a definition: text in, text out. */
function handlerOf(definition: OrchestrationDefinition): OrchestrationHandler {
  const { name } = definition;
  return async (ctx, input) => {
    const value = validateSync(definition.input, decodePayload(input), `input of orchestration '${name}'`);
    const output = await definition.run(ctx, value);
    validateSync(definition.output, output, `output of orchestration '${name}'`);
    return encodePayload(output, `output of orchestration '${name}'`);
  };
}
