import { describe, expect, test } from "vitest";
import type { Client } from "../../src/client/client.js";
import { activity, orchestration } from "../../src/define.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { commitTurn, openClient, STARTED } from "./driver.js";

const MiB = 1_048_576;

/** What a client sends, and how messages speak of it. */
const SENDS: readonly (readonly [
  what: string,
  send: (client: Client, text: string) => Promise<unknown>,
  bytesOf: (text: string) => number,
])[] = [
  [
    "input of orchestration 'Test'",
    (client, input) => client.start("Test", { instanceId: "i", input }),
    (text) => text.length + 2,
  ],
  ["data of event 'e'", (client, data) => client.raiseEvent("i", "e", data), (text) => text.length + 2],
  ["data of event 'q'", (client, data) => client.enqueueEvent("i", "q", data), (text) => text.length + 2],
  ["data of event 'h'", (client, data) => client.getHandle("i").raiseEvent("h", data), (text) => text.length + 2],
  ["reason", (client, reason) => client.cancel("i", reason), (text) => text.length],
];

describe("what a client sends", () => {
  test.each(SENDS)(
    "is refused at once where it is too large, and nothing is written: %s",
    async (what, send, bytesOf) => {
      const text = "x".repeat(100);
      const bytes = bytesOf(text);
      const fits = openClient({ limits: { maxPayloadBytes: bytes } });
      const breaks = openClient({ limits: { maxPayloadBytes: bytes - 1 } });

      await send(fits.client, text);
      expect(fits.store.calls.get("enqueueForOrchestrator")).toBe(1);
      await expect(send(breaks.client, text)).rejects.toMatchObject({
        name: "InvalidInputError",
        code: "DUROXIDE_INVALID_INPUT",
        message: `${what} (${bytes} bytes) exceeds limit (${bytes - 1} bytes). Keep it elsewhere and pass where it is, or raise limits.maxPayloadBytes.`,
      });
      expect(breaks.store.calls.size).toBe(0);
    },
  );

  test("may be three mebibytes unless it is said otherwise", async () => {
    const { client, provider } = openClient();
    await client.start("Test", { instanceId: "order-1" });
    await commitTurn(provider, { events: [STARTED] });
    const largest = "x".repeat(3 * MiB - 2);

    await client.raiseEvent("order-1", "e", largest);
    await expect(client.raiseEvent("order-1", "e", `${largest}x`)).rejects.toMatchObject({
      message: expect.stringMatching(/^data of event 'e' \(3145729 bytes\) exceeds limit \(3145728 bytes\)\./),
    });
    expect(await commitTurn(provider)).toHaveLength(1);
  });

  test("by way of an activity's client has the limit of the runtime", async () => {
    await using world = await TestWorld.open();
    const sends = activity("Sends", async (ctx, bytes: number) =>
      ctx.client.raiseEvent("nobody", "e", "x".repeat(bytes - 2)).then(
        () => "sent",
        ({ code }: { code: string }) => code,
      ),
    );
    const both = orchestration("Both", async (ctx) =>
      ctx.all([ctx.scheduleActivity(sends, 100), ctx.scheduleActivity(sends, 101)]),
    );
    await world.start({ orchestrations: [both], activities: [sends], limits: { maxPayloadBytes: 100 } });

    expect(await world.run(both)).toEqual(["sent", "DUROXIDE_INVALID_INPUT"]);
  });

  test("has no limit that is misspelled", () => {
    expect(() => openClient({ limits: { maxPayloadByte: 1 } as never })).toThrow(
      "new Client, limits: unknown option 'maxPayloadByte'. Did you mean 'maxPayloadBytes'?",
    );
    expect(() => openClient({ limits: { maxPayloadBytes: -1 } })).toThrow("must be an integer from 0");
  });
});
