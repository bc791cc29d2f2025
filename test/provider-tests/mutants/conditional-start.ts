import type { Mutant } from "./mutant.js";

export const CONDITIONAL_START: readonly Mutant[] = [
  {
    name: "a conditional start does not see a start that is queued",
    category: "conditional_start",
    caughtBy: "starts_what_is_absent_once",
    store: "memory",
    patches: [{ file: "memory-provider.ts", find: " || instance.messages.findStart() !== null;", replace: ";" }],
  },
  {
    name: "a conditional start does not see an instance without a name",
    category: "conditional_start",
    caughtBy: "finds_unnamed_instance",
    store: "sqlite",
    patches: [
      {
        file: "instances.ts",
        find: "SELECT 1 FROM duroxide_executions WHERE instance_id = ?",
        replace: "SELECT 1 WHERE ? IS NULL",
      },
    ],
  },
  {
    name: "a conditional start looks in one operation and writes in another",
    category: "conditional_start",
    caughtBy: "one_winner_among_concurrent_starts",
    store: "sqlite",
    patches: [
      {
        file: "sqlite-provider.ts",
        find: `  enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    return this.#writes.write("enqueueForOrchestrator", (tx) => {`,
        replace: `  async enqueueForOrchestrator(item: OrchestratorItem, options: EnqueueOptions = {}): Promise<EnqueueOutcome> {
    const look = async () => (await this.getInstanceStatus(item.instance)) !== null;
    if (options.ifAbsent && isStartLike(item) && (await look())) return "exists";
    return this.#writes.write("enqueueForOrchestrator", (tx) => {`,
      },
      {
        file: "sqlite-provider.ts",
        find: `      if (options.ifAbsent && isStartLike(item)) return enqueueStart(tx, item, options.delayMs, this.#proven);
`,
        replace: "",
      },
    ],
  },
  {
    name: "the condition of a start is applied to other messages",
    category: "conditional_start",
    caughtBy: "condition_is_for_starts_only",
    store: "sqlite",
    patches: [
      {
        file: "sqlite-provider.ts",
        find: "if (options.ifAbsent && isStartLike(item)) return",
        replace: "if (options.ifAbsent) return",
      },
    ],
  },
  {
    name: "a conditional start does not see a start of the same commit",
    category: "conditional_start",
    caughtBy: "one_winner_among_concurrent_starts",
    store: "sqlite",
    patches: [
      { file: "instances.ts", find: '  if (tx.newMessages.hasStart(instanceId)) return "exists";\n', replace: "" },
    ],
  },
];
