// cases/set-up.ts — the factory opens empty stores, and their time is the one that the cases move.
//
// These come first: where one of them fails, the factory is wrong, and little can be concluded from all others.

import { start, started } from "../builders.js";
import type { Category } from "../provider-case.js";
import { create, fetchTurn, fetchWork } from "../steps.js";

/** Longer than any run of the suite takes. */
const HOUR_MS = 3_600_000;

export const setUp: Category = {
  name: "set_up",
  about: "The factory opens empty stores, and their time is the one that the cases move.",
  cases: [
    {
      id: "stores_are_empty_and_apart",
      promise: "Every store that the factory opens is empty, and shares nothing with the others",
      async run(t) {
        const { provider } = await t.open();
        t.isNull(await fetchTurn(provider), "a turn in a store that was just opened");
        t.isNull(await fetchWork(provider), "an activity in a store that was just opened");
        t.equal(await provider.read("a"), [], "the history of 'a' in a store that was just opened");
        await create(provider, "a");
        t.equal(await provider.read("a"), [started("a")], "the history of 'a' where it was written");

        const { provider: other } = await t.open();
        t.equal(
          await other.read("a"),
          [],
          "the history of 'a' in another store: `open` must not open the same one twice",
        );
      },
    },
    {
      id: "lives_by_the_clock",
      promise: "The provider lives by the clock that it is given, or the factory says that its time is real",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"), { delayMs: HOUR_MS });
        t.isNull(await fetchTurn(provider), "an instance that starts in an hour");
        await clock.advance(HOUR_MS);
        const what =
          "the instance when its hour is over, by the clock that `open` was given. Where the provider has another";
        t.found(await fetchTurn(provider), `${what}, set \`time: "real"\``);
      },
    },
  ],
};
