// runtime/missing-activities.ts — notices activities that orchestrations here ask for and this runtime cannot run: most
// often a registration that was forgotten, which would otherwise show only as an instance that waits.
//
//   M1. Told once for each name. Others may have what is missing here, so it is a hint and never a failure.
//   M2. Silent where this runtime is not meant to run it: its options take no activities, or none of that tag.

import type { ActivityExecute } from "../history/work-item.js";
import type { Fact, OrchestrationRef } from "../observer.js";
import { letsThrough } from "../provider/kit/tag-filter.js";
import type { RuntimeServices } from "./services.js";

/** Names beyond these are made up as the program runs, and no longer worth a word. */
const MOST_NAMES = 1_000;

export class MissingActivities {
  readonly #services: Pick<RuntimeServices, "options" | "registry">;
  readonly #told = new Set<string>();

  constructor(services: Pick<RuntimeServices, "options" | "registry">) {
    this.#services = services;
  }

  /** What there is to tell of the activities that a committed turn has scheduled. */
  among(scheduled: readonly ActivityExecute[], ref: OrchestrationRef): Fact[] {
    const { options, registry } = this.#services;
    if (options.workerConcurrency === 0) return []; // M2
    const facts: Fact[] = [];
    for (const { name: activityName, tag } of scheduled) {
      if (registry.hasActivity(activityName) || !letsThrough(options.tagFilter, tag)) continue;
      if (this.#told.has(activityName) || this.#told.size === MOST_NAMES) continue; // M1
      this.#told.add(activityName);
      facts.push({ type: "unregistered-activity-scheduled", ref, activityName });
    }
    return facts;
  }
}
