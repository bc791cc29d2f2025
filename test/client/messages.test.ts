import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Client } from "../../src/client/client.js";
import { event } from "../../src/define.js";
import { commitTurn, openClient, STARTED } from "./driver.js";

const approval = event<{ ok: boolean }>("approval", { schema: z.object({ ok: z.boolean() }) });
const ping = event<undefined>("ping");

async function openRunning() {
  const opened = openClient();
  const handle = await opened.client.start("Test", { instanceId: "order-1" });
  await commitTurn(opened.provider, { events: [STARTED] });
  opened.store.calls.clear();
  return { ...opened, handle };
}

describe("messages to an instance", () => {
  test("arrive in the order in which they were sent, each in its own kind", async () => {
    const { client, provider } = await openRunning();

    await client.raiseEvent("order-1", approval, { ok: true });
    await client.enqueueEvent("order-1", approval, { ok: false });
    await client.cancel("order-1", "out of stock");

    expect(await commitTurn(provider)).toEqual([
      { type: "ExternalRaised", instance: "order-1", name: "approval", data: '{"ok":true}' },
      { type: "QueueMessage", instance: "order-1", name: "approval", data: '{"ok":false}' },
      { type: "CancelInstance", instance: "order-1", reason: "out of stock" },
    ]);
  });

  test("go the same way through a handle", async () => {
    const { handle, provider } = await openRunning();

    await handle.raiseEvent("greeting", "hello");
    await handle.enqueueEvent(ping);
    await handle.cancel();

    expect(await commitTurn(provider)).toEqual([
      { type: "ExternalRaised", instance: "order-1", name: "greeting", data: '"hello"' },
      { type: "QueueMessage", instance: "order-1", name: "ping", data: "null" },
      { type: "CancelInstance", instance: "order-1", reason: "requested by client" },
    ]);
  });

  test("cost one call to the store each", async () => {
    const { client, store } = await openRunning();
    await client.raiseEvent("order-1", approval, { ok: true });
    expect([...store.calls]).toEqual([["enqueueForOrchestrator", 1]]);
  });

  test("reach a sub-orchestration by its own id", async () => {
    const { client } = await openRunning();
    await expect(client.cancel("order-1::sub::2")).resolves.toBeUndefined();
  });
});

describe("a message that cannot be right is refused before anything is written:", () => {
  const refused: ReadonlyArray<readonly [what: string, send: (client: Client) => Promise<void>]> = [
    ["data that the event's schema refuses", (client) => client.raiseEvent("i", approval, { ok: "yes" } as never)],
    ["data that the queue's schema refuses", (client) => client.enqueueEvent("i", approval, {} as never)],
    ["data that JSON cannot carry", (client) => client.raiseEvent("i", "e", { amount: 1n })],
    ["an event without a name", (client) => client.raiseEvent("i", "", 1)],
    ["a queue without a name", (client) => client.enqueueEvent("i", "", 1)],
    ["an event to nobody", (client) => client.raiseEvent("", "e", 1)],
    ["a queue message to nobody", (client) => client.enqueueEvent("", "e", 1)],
    ["a cancellation of nobody", (client) => client.cancel("")],
    ["a reason that is no text", (client) => client.cancel("i", 42 as unknown as string)],
  ];
  for (const [what, send] of refused) {
    test(what, async () => {
      const { client, store } = openClient();
      await expect(send(client)).rejects.toMatchObject({ code: "DUROXIDE_INVALID_INPUT" });
      expect(store.calls.size).toBe(0);
    });
  }
});

describe("the types of a message", () => {
  test("follow the event's definition", () => {
    const typesOnly = (client: Client) => [
      client.raiseEvent("i", ping),
      client.raiseEvent("i", "by name"),
      client.raiseEvent("i", "by name", { any: "thing" }),
      client.raiseEvent<number>("i", "by name", 1),
      // @ts-expect-error the data is missing
      client.raiseEvent("i", approval),
      // @ts-expect-error the data is of another type
      client.enqueueEvent("i", approval, { ok: 1 }),
      // @ts-expect-error it carries nothing
      client.getHandle("i").raiseEvent(ping, 1),
    ];
    expect(typesOnly).toBeTypeOf("function");
  });
});
