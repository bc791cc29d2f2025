// testing/checked-provider.ts — a wrapper around nothing would fail far from where it was made: it is refused at once.

import { InvalidOptionsError } from "../errors.js";
import { isProvider } from "../provider/is-provider.js";
import type { Provider } from "../provider/provider.js";

/** `what`: who wraps it, as the user wrote it. @throws InvalidOptionsError */
export function checkedProvider(what: string, provider: Provider): Provider {
  const wrong = isProvider(provider);
  if (wrong !== null) throw new InvalidOptionsError(`${what}: the provider ${wrong}.`);
  return provider;
}
