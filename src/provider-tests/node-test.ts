// duroxide-ts/provider-tests/node-test — the validation suite as tests of Node's own runner, one test a case.

import { describe, test } from "node:test";
import { describeWith, type Runner } from "./describe-with.js";
import type { ProviderFactory } from "./provider-case.js";

/**
 * Describes the whole suite for one provider. Call it in a file that `node --test` runs.
 *
 * @example
 * describeProvider("my store", { open: async ({ clock }) => ({ provider: await MyProvider.open({ clock }) }) });
 */
export function describeProvider(name: string, factory: ProviderFactory): void {
  const runner: Runner = {
    describe,
    test: (title, body, timeoutMs) => test(title, { timeout: timeoutMs }, body),
  };
  describeWith(runner, name, factory);
}
