// runtime/store-trouble.ts — whether a failed call of the store says nothing against the work that it was about.

import { ProviderError } from "../errors.js";

/**
 * The store is out of reach, or the payload codec in front of it lacks a key: that may last for hours, and no work is to
 * blame for it. So it is tried again, with pauses, and never counted as an attempt.
 */
export function isStoreTrouble(error: unknown): boolean {
  return error instanceof ProviderError && (error.retryable || error.kind === "payload-codec");
}
