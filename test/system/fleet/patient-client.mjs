// fleet/patient-client.mjs — a client that survives what the workers survive: a call that fails in passing is made again.
//
// To start twice under one id is to start once; a message may arrive twice.

import { setTimeout as pause } from "node:timers/promises";
import { ProviderError } from "duroxide-ts";

const TRY_AGAIN_MS = 100;

/** `onRetry` is told of every call that is made again, `signal` ends the patience. */
export function patientClient(client, { signal, onRetry }) {
  return new Proxy(client, {
    get(_target, name) {
      const member = client[name];
      return typeof member === "function" ? (...args) => patiently(() => member.apply(client, args)) : member;
    },
  });

  async function patiently(call) {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ProviderError && error.retryable) || signal.aborted) throw error;
        onRetry();
        await pause(TRY_AGAIN_MS);
      }
    }
  }
}
