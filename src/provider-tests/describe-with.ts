// provider-tests/describe-with.ts — the suite as tests of whatever runner there is: one test a case, in the open.

import { CATEGORIES } from "./cases/index.js";
import type { ProviderFactory } from "./provider-case.js";
import { runCase } from "./validate.js";

/** The two functions that nearly every runner has. Its tests are handed something that can skip them. */
export interface Runner {
  describe(name: string, body: () => void): unknown;
  test(name: string, body: (context: { skip(reason?: string): unknown }) => Promise<void>): unknown;
}

/** Describes the whole suite for one provider. `…/vitest` and `…/node-test` have it ready for those two. */
export function describeWith({ describe, test }: Runner, name: string, factory: ProviderFactory): void {
  describe(name, () => {
    for (const category of CATEGORIES) {
      describe(`${category.name}: ${category.about}`, () => {
        for (const it of category.cases) {
          test(`${it.promise} [${it.id}]`, async (context) => {
            const { outcome } = await runCase(category, it, factory);
            if (outcome.kind === "failed") throw outcome.error;
            if (outcome.kind === "skipped") context.skip(outcome.reason);
          });
        }
      });
    }
  });
}
