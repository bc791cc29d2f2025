// test/simulation/planted/bugs.ts — bugs that a durable runtime may have, as patches of our own source. The simulation must find
// each of them: whoever finds nothing with them in it proves nothing without.

export interface Patch {
  /** Below `src/`. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly replace: string;
}

export interface PlantedBug {
  readonly name: string;
  readonly patches: readonly Patch[];
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: "completions are delivered in the order of arrival",
    patches: [
      {
        file: "providers/memory/message-list.ts",
        find: "return a.dueAt === b.dueAt ? a.seq < b.seq : a.dueAt < b.dueAt;",
        replace: "return a.seq < b.seq;",
      },
    ],
  },
  {
    name: "a lost lock is ignored at ack",
    patches: [
      {
        file: "providers/memory/memory-provider.ts",
        find: "    this.#unlock(instance); // an expired lock, whose token must not be honoured any more\n",
        replace: "",
      },
    ],
  },
  {
    name: "queue messages are not carried across continue-as-new",
    patches: [
      {
        file: "runtime/turn-commit.ts",
        find: "carryForwardEvents: result.carried,",
        replace: "carryForwardEvents: [],",
      },
    ],
  },
  {
    name: "an activity is dispatched twice after a lost reply",
    patches: [
      {
        file: "providers/memory/memory-provider.ts",
        find: "    for (const item of turn.workerItems) this.#work.add(item, now);\n",
        replace: "",
      },
      {
        file: "providers/memory/memory-provider.ts",
        find: '    const operation = "ackOrchestrationItem";\n',
        replace:
          '    const operation = "ackOrchestrationItem";\n    for (const item of turn.workerItems) this.#work.add(item, now);\n',
      },
    ],
  },
  {
    name: "a race loser is not cancelled",
    patches: [
      {
        file: "engine/combinators.ts",
        find: "    for (const branch of this.#branches) if (!branch.isDone) branch.drop(); // B2\n",
        replace: "",
      },
    ],
  },
  {
    name: "a warm instance is kept after a failed ack",
    patches: [
      {
        file: "runtime/orchestration-dispatcher.ts",
        find: "    this.#warm.discard(held.item.instance, held.lockToken); // D2\n",
        replace: "",
      },
      {
        file: "runtime/warm-instances.ts",
        find: "const isCurrent = this.#entries.get(instance)?.lockToken === lockToken;",
        replace: "void lockToken;\n    const isCurrent = true;",
      },
    ],
  },
  {
    name: "a wake-up is lost between check and wait",
    patches: [
      { file: "client/wait.ts", find: "      bell.reset();\n", replace: "" },
      {
        file: "client/wait.ts",
        find: "      const seen = await unlessAborted(wait, () => completion?.orElse(() => lookOnce(wait)) ?? lookOnce(wait));\n",
        replace:
          "      const seen = await unlessAborted(wait, () => completion?.orElse(() => lookOnce(wait)) ?? lookOnce(wait));\n      bell.reset();\n",
      },
    ],
  },
  {
    name: "a timer is ordered before an earlier completion",
    patches: [
      {
        file: "runtime/message-batch.ts",
        find: "  if (!items.some(isStartLike)) return { messages: items,",
        replace:
          '  const isTimer = (item: OrchestratorItem): number => Number(item.type === "TimerFired");\n' +
          "  const timersFirst = [...items].sort((a, b) => isTimer(b) - isTimer(a));\n" +
          "  if (!items.some(isStartLike)) return { messages: timersFirst,",
      },
    ],
  },
  {
    name: "the parent link is lost when a child continues as new",
    patches: [
      {
        file: "runtime/message-batch.ts",
        find: "parent: parentLinkOf(continuation) ?? owner,",
        replace: "parent: null,",
      },
    ],
  },
  {
    name: "the key-value snapshot includes the running execution",
    patches: [
      {
        file: "providers/memory/kv-tables.ts",
        find: "    return new Map(this.#store);\n",
        replace:
          "    const entries = [...this.#store, ...this.#delta].filter(([, entry]) => entry !== null);\n" +
          "    return new Map(entries as [string, KvEntry][]);\n",
      },
    ],
  },
];
