// provider-tests/describe-with.ts — the suite as tests of whatever runner there is: one test a case, in the open.

import { CATEGORIES } from "./cases/index.js";
import { checkFactory } from "./check-factory.js";
import type { ProviderFactory } from "./provider-case.js";
import { CASE_TIMEOUT_MS, runCase } from "./validate.js";

/** The two functions that nearly every runner has. Its tests are handed something that can skip them. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  /** A test must be given more than `timeoutMs`: cases watch their own time, and then say what hangs. */
  test(name: string, body: (context: { skip(reason?: string): unknown }) => Promise<void>, timeoutMs: number): unknown;
}

/** A case, then its closing; and a second for the runner. */
const TEST_TIMEOUT_MS = 2 * CASE_TIMEOUT_MS + 1_000;

/**
 * Describes the whole suite for one provider. `…/vitest` and `…/node-test` have it ready for those two.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a property of the factory that is unknown or wrong
 * @example
 * import { describe, test } from "vitest";
 *
 * describeWith({ describe, test }, "my store", { open: async () => ({ provider: await MyProvider.open() }) });
 */
export function describeWith({ describe, test }: Runner, name: string, factory: ProviderFactory): void {
  checkFactory("describeProvider", factory);
  describe(name, () => {
    for (const category of CATEGORIES) {
      describe(`${category.name}: ${category.about}`, () => {
        for (const it of category.cases) {
          const body: Parameters<Runner["test"]>[1] = async (context) => {
            const { outcome } = await runCase(category, it, factory);
            if (outcome.kind === "failed") throw outcome.error;
            if (outcome.kind === "skipped") context.skip(outcome.reason);
          };
          test(`${it.promise} [${it.id}]`, body, TEST_TIMEOUT_MS);
        }
      });
    }
  });
}
