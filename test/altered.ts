// test/altered.ts — a store of which a test replaces some methods.

import type { Provider } from "../src/provider/provider.js";

/** The same store, with some of its methods replaced: to lose answers, to forge them, to be slow. */
export function altered(provider: Provider, changes: Partial<Provider>): Provider {
  return new Proxy(provider, {
    get(target, name) {
      const member: unknown = Reflect.get(name in changes ? changes : target, name);
      return typeof member === "function" && !(name in changes) ? member.bind(target) : member;
    },
  });
}
