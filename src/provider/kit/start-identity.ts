// provider/kit/start-identity.ts — what an instance is a run of, where the store has no row for it yet.

import { decodeEvent } from "../../history/codec.js";
import type { ContinueAsNew, StartOrchestration } from "../../history/work-item.js";

/** What the instance is a run of. */
export interface StartIdentity {
  readonly name: string;
  readonly version: string;
}

/** Where nobody has named one. */
const UNKNOWN = "unknown";

/** As its first event says. One that cannot be decoded says that there was one; whoever reads the history will hear why. */
export function identityInEvent(startEvent: string): StartIdentity {
  try {
    const event = decodeEvent(startEvent);
    if (event.type === "OrchestrationStarted") return { name: event.name, version: event.version };
  } catch {
    // Reported with the history.
  }
  return { name: UNKNOWN, version: UNKNOWN };
}

export function identityInStart({ orchestration, version }: StartOrchestration | ContinueAsNew): StartIdentity {
  return { name: orchestration, version: version ?? UNKNOWN };
}
