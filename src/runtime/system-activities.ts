// runtime/system-activities.ts — activities that the runtime itself provides, under names that nobody else may use.

import type { Clock } from "../clock.js";
import { type ActivityDefinition, activity } from "../define.js";
import { GET_KV_VALUE, NEW_GUID, UTC_NOW_MS } from "../engine/system-calls.js";
import { InvalidInputError } from "../errors.js";
import type { Provider } from "../provider/provider.js";

export interface SystemSources {
  readonly provider: Provider;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Our own turns answer these themselves; what the reference has queued waits for a worker. */
export function systemActivities(sources: SystemSources): ActivityDefinition[] {
  return [
    activity(NEW_GUID, () => sources.newId()),
    activity(UTC_NOW_MS, () => sources.clock.now()),
    activity(GET_KV_VALUE, (_ctx, input: unknown) => {
      const { instance, key } = readRequest(input);
      return sources.provider.getKvValue(instance, key);
    }),
  ];
}

export function readRequest(input: unknown): { readonly instance: string; readonly key: string } {
  const { instance_id: instance, key } = (input ?? {}) as { readonly instance_id?: unknown; readonly key?: unknown };
  if (typeof instance !== "string" || typeof key !== "string") {
    throw new InvalidInputError('Expected {"instance_id": string, "key": string}.');
  }
  return { instance, key };
}
