// What our own providers promise beyond the contract.

import { describe, expect, test } from "vitest";
import { encodeEvent } from "../../src/history/codec.js";
import { raised, scheduled, started, turn } from "../../src/provider-tests/builders.js";
import { memoryStore, sqliteMemoryStore } from "../../src/provider-tests/own-stores.js";
import { create, takeTurn } from "../../src/provider-tests/steps.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

describe.each([
  ["MemoryProvider", memoryStore],
  ["SqliteProvider", sqliteMemoryStore],
])("%s", (_name, factory) => {
  test("takes the offer of a dispatcher that remembers: it reads no history", async () => {
    const { provider } = await factory.open({ clock: new VirtualClock() });
    await create(provider, "a");
    await provider.enqueueForOrchestrator(raised("a"));
    const { lockToken } = await takeTurn(provider);
    await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
    await provider.enqueueForOrchestrator(raised("a"));

    const { item } = await takeTurn(provider, { warm: new Map([["a", lockToken]]) });
    expect(item).toMatchObject({ warmAsOf: lockToken, history: [] });
    await provider[Symbol.asyncDispose]();
  });

  test("counts the bytes of a history as the codec writes it", async () => {
    const { provider } = await factory.open({ clock: new VirtualClock() });
    const events = [started("a", { input: '"größer 🎉"' }), scheduled("a", 2)];
    await create(provider, "a", { events });

    const bytes = events.reduce((sum, event) => sum + Buffer.byteLength(encodeEvent(event)), 0);
    expect(await provider.getInstanceStats("a")).toMatchObject({ historyEventCount: 2, historySizeBytes: bytes });
    await provider[Symbol.asyncDispose]();
  });
});
