// The suite has teeth: every deliberately broken provider is caught by the case that is about what was broken.

import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { CATEGORIES, type ProviderFactory, runCase } from "../../src/provider-tests/index.js";
import { sqliteFileStore } from "../../src/provider-tests/own-stores.js";
import type * as memory from "../../src/providers/memory/memory-provider.js";
import type * as sqlite from "../../src/providers/sqlite/sqlite-provider.js";
import { MUTANTS } from "./mutants/index.js";
import type { Mutant } from "./mutants/mutant.js";

/** Some mutants are caught because they hang. */
const HANGS_AFTER_MS = 2_000;

describe("a broken provider is caught", () => {
  for (const mutant of MUTANTS) {
    test(`${mutant.name} → ${mutant.category}/${mutant.caughtBy}`, async () => {
      const category = CATEGORIES.find(({ name }) => name === mutant.category)!;
      const it = category.cases.find(({ id }) => id === mutant.caughtBy)!;
      expect(it, "the case that the mutant names").toBeDefined();

      const { outcome } = await runCase(category, it, await factoryOf(mutant), HANGS_AFTER_MS);
      expect(outcome.kind, `what ${mutant.category}/${mutant.caughtBy} says of it`).toBe("failed");
      if (outcome.kind !== "failed") return;
      // A mutant must be a provider that breaks its promise, not one that does not run.
      for (const Mistake of [TypeError, ReferenceError, SyntaxError]) expect(outcome.error).not.toBeInstanceOf(Mistake);
    });
  }

  test("for at least forty ways to break one, each by another name, and for every category", () => {
    expect(MUTANTS.length).toBeGreaterThanOrEqual(40);
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    const withoutMutant = CATEGORIES.filter(({ name }) => !MUTANTS.some((mutant) => mutant.category === name));
    expect(withoutMutant.map(({ name }) => name)).toEqual([]);
  });

  test("as the table in docs/mutants.md says", async () => {
    await expect(table()).toMatchFileSnapshot("../../docs/mutants.md");
  });
});

async function factoryOf(mutant: Mutant): Promise<ProviderFactory> {
  if (mutant.store === "memory") {
    const { MemoryProvider } = await loadMutant<typeof memory>("memory/memory-provider.ts", mutant);
    return { open: async ({ clock }) => ({ provider: new MemoryProvider({ clock }) }) };
  }
  const { SqliteProvider } = await loadMutant<typeof sqlite>("sqlite/sqlite-provider.ts", mutant);
  return sqliteFileStore({ durability: "process-crash" }, (file, options) => SqliteProvider.open(file, options));
}

async function loadMutant<Module>(file: string, mutant: Mutant): Promise<Module> {
  const path = fileURLToPath(new URL(`../../src/providers/${file}`, import.meta.url));
  return import(/* @vite-ignore */ `${path}?mutant=${MUTANTS.indexOf(mutant)}`);
}

function table(): string {
  const rows = MUTANTS.map(
    ({ name, store, category, caughtBy }) => `| ${name} | ${store} | ${category} | ${caughtBy} |`,
  );
  return `# Broken on purpose

Each of these providers is ours with one thing changed (\`test/provider-tests/mutants/\`); each is caught by the case of the
validation suite that is about what was broken. This table is checked by the tests.

| what is broken | in | caught by | case |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
}
