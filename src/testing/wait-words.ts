// testing/wait-words.ts — what an instance waits for, in words.

import type { SlotKind } from "../engine/slot.js";

/** `name`: of the activity, orchestration, event or queue. */
export function waitInWords(kind: SlotKind, name: string): string {
  switch (kind) {
    case "activity":
      return `activity '${name}'`;
    case "timer":
      return "a timer";
    case "subOrchestration":
      return `sub-orchestration '${name}'`;
    case "event":
      return `event '${name}'`;
    case "queue":
      return `a message in '${name}'`;
  }
}
