import type { Mutant } from "./mutant.js";

export const INSTANCE_LOCKING: readonly Mutant[] = [
  {
    name: "a fetch looks for an instance, waits for something, and then locks it",
    category: "instance_locking",
    caughtBy: "multi_threaded_lock_contention",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "  #lockOldestInstance(options: FetchOrchestrationOptions, now: number): LockedOrchestrationItem | null {",
        replace: "  async #lockOldestInstance(options: FetchOrchestrationOptions, now: number) {",
      },
      {
        file: "memory-provider.ts",
        find: "const candidate = this.#oldestCandidate(options.capability, now);",
        replace: "const candidate = this.#oldestCandidate(options.capability, now); await null;",
      },
    ],
  },
  {
    name: "a lock holds the messages of its fetch, but not the instance",
    category: "instance_locking",
    caughtBy: "completions_arriving_during_lock_blocked",
    store: "sqlite",
    patches: [
      {
        file: "fetch-orchestration.ts",
        find: "WHERE l.instance_id = q.instance_id AND l.locked_until > ?",
        replace: "WHERE l.instance_id = q.instance_id AND l.locked_until > ? AND q.attempt_count > 0",
      },
    ],
  },
  {
    name: "an ack consumes what has arrived since its fetch",
    category: "instance_locking",
    caughtBy: "ack_only_affects_locked_messages",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "for (const message of lock.batch) instance.messages.remove(message);",
        replace: "for (const message of instance.messages.visible(now)) instance.messages.remove(message);",
      },
    ],
  },
  {
    name: "a lock token is the time of its fetch",
    category: "instance_locking",
    caughtBy: "tokens_never_come_back",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "newId = randomUUID,",
        replace: "newId = () => String(clock.now()),",
      },
    ],
  },
  {
    name: "an unknown token cannot be abandoned",
    category: "instance_locking",
    caughtBy: "invalid_lock_token_rejection",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "if (instance?.lock == null) return;",
        replace: `if (instance?.lock == null) throw lockLost("abandonOrchestrationItem", lockToken);`,
      },
    ],
  },
  {
    name: "instance ids are compared without the space at their end",
    category: "instance_locking",
    caughtBy: "ids_that_look_alike",
    store: "memory",
    patches: [
      {
        file: "memory-provider.ts",
        find: "  #instance(id: string): InstanceRecord {",
        replace: "  #instance(id: string): InstanceRecord {\n    id = id.trimEnd();",
      },
    ],
  },
];
