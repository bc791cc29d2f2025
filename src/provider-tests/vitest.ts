// duroxide-ts/provider-tests/vitest — the validation suite as vitest tests, one test a case.

import { describe, test } from "vitest";
import { describeWith } from "./describe-with.js";
import type { ProviderFactory } from "./provider-case.js";

/**
 * Describes the whole suite for one provider. Call it in a test file.
 *
 * @example
 * describeProvider("my store", { open: async ({ clock }) => ({ provider: await MyProvider.open({ clock }) }) });
 */
export function describeProvider(name: string, factory: ProviderFactory): void {
  describeWith({ describe, test: (title, body, timeoutMs) => test(title, body, timeoutMs) }, name, factory);
}
