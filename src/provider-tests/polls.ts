// provider-tests/polls.ts — fetches that wait, for the cases that are about them.

import type { FetchOrchestrationOptions, FetchWorkOptions, Provider } from "../provider/provider.js";
import type { CaseContext } from "./case-context.js";
import { fetchTurn, fetchWork } from "./steps.js";

/** What a fetch that waits is given: far more than it may need in any case. */
export const POLL_LOCKS = 10;

export function onlyLongPolls(t: CaseContext): void {
  if (t.polling === "short") t.skip("is about providers that poll long");
}

export function pollTurn(t: CaseContext, provider: Provider, options: Partial<FetchOrchestrationOptions> = {}) {
  return unattended(fetchTurn(provider, { pollTimeoutMs: POLL_LOCKS * t.lockMs, ...options }));
}

export function pollWork(t: CaseContext, provider: Provider, options: Partial<FetchWorkOptions> = {}) {
  return unattended(fetchWork(provider, { pollTimeoutMs: POLL_LOCKS * t.lockMs, ...options }));
}

/** When the case has failed before it looks at this fetch, its end is nobody's business any more. */
export function unattended<T>(fetch: Promise<T>): Promise<T> {
  fetch.catch(() => {});
  return fetch;
}

export async function waits(t: CaseContext, fetch: Promise<unknown>, which: string): Promise<void> {
  t.ok(await t.isPending(fetch), `${which} waits`);
}
