// test/golden/recorded.ts — the golden histories, each with the code that wrote it and what it found in its key-value store.

import type { OrchestrationHandler } from "../../src/engine/turn.js";
import type { Event } from "../../src/history/event.js";
import type { KvEntry } from "../../src/history/kv-entry.js";
import { Registry } from "../../src/runtime/registry.js";
import { importHistory } from "../../src/testing/exported-history.js";
import { kvAfter } from "../../src/testing/kv-after.js";
import { resolveFor } from "../../src/testing/replay.js";
import { type GoldenFile, goldenFiles } from "./files.js";
import type { Golden } from "./golden.js";
import { GOLDENS } from "./programs.js";

/** One execution, as it was recorded. */
export interface GoldenExecution {
  readonly file: string;
  readonly text: string;
  readonly golden: Golden;
  readonly events: readonly Event[];
  /** Null: what it is called, nobody had code for. */
  readonly handler: OrchestrationHandler | null;
  /** As of its start. */
  readonly kv: ReadonlyMap<string, KvEntry>;
  /** The execution before, of the same instance. */
  readonly predecessor: GoldenExecution | null;
}

/** All of them, those of one instance in order. */
export function goldenExecutions(): readonly GoldenExecution[] {
  const executions: GoldenExecution[] = [];
  for (const file of goldenFiles()) {
    const events = importHistory(file.text);
    const { instanceId, executionId } = events[0]!;
    const predecessor = executions.find((other) => {
      return other.golden === goldenOf(file) && isExecution(other.events, instanceId, executionId - 1);
    });
    executions.push(executionOf(file, events, predecessor ?? null));
  }
  return executions;
}

function executionOf(file: GoldenFile, events: readonly Event[], predecessor: GoldenExecution | null): GoldenExecution {
  const golden = goldenOf(file);
  const registry = Registry.of({ orchestrations: golden.orchestrations });
  const handler = resolveFor(events, registry)?.handler ?? null;
  const kv = predecessor === null ? new Map<string, KvEntry>() : kvAfter(predecessor.events, predecessor.kv);
  return { file: file.file, text: file.text, golden, events, handler, kv, predecessor };
}

function goldenOf({ golden, file }: GoldenFile): Golden {
  const found = Object.hasOwn(GOLDENS, golden) ? GOLDENS[golden] : undefined;
  if (found === undefined) throw new Error(`${file}: its program '${golden}' is gone. It must stay for ever.`);
  return found;
}

function isExecution([first]: readonly Event[], instanceId: string, executionId: number): boolean {
  return first?.instanceId === instanceId && first.executionId === executionId;
}
