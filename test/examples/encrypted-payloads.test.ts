// The cipher of the example is copied into programs that keep other people's secrets. So it has promises of its own.

import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encrypting, examine, orderTest, result } from "../../examples/encrypted-payloads.js";
import { Client } from "../../src/client/client.js";
import { withPayloadCodec } from "../../src/provider/payload-codec.js";
import { TestWorld } from "../../src/testing/test-world.js";

const spring = randomBytes(32);
const summer = randomBytes(32);
const codec = encrypting({ current: "spring", keys: { spring } });

describe("the cipher of the example", () => {
  test("gives back any text, encrypts none of them the same way twice, and shows nothing of it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const encrypted = codec.encode(text);
        expect(encrypted).toMatch(/^enc1:spring:[A-Za-z0-9+/]+=*$/);
        expect(codec.encode(text)).not.toBe(encrypted);
        expect(codec.decode(encrypted)).toBe(text);
      }),
    );
  });

  test("refuses a text of which any bit was changed", () => {
    const bytes = Buffer.from(codec.encode("headache").slice("enc1:spring:".length), "base64");
    for (let bit = 0; bit < bytes.length * 8; bit += 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      expect(() => codec.decode(`enc1:spring:${changed.toString("base64")}`)).toThrow();
    }
    for (let length = 0; length < bytes.length; length += 1) {
      expect(() => codec.decode(`enc1:spring:${bytes.subarray(0, length).toString("base64")}`)).toThrow();
    }
  });

  test("decrypts with the key that the text names, and with no other", () => {
    const rotated = encrypting({ current: "summer", keys: { spring, summer } });
    expect(rotated.decode(codec.encode("headache"))).toBe("headache");
    expect(rotated.encode("headache")).toMatch(/^enc1:summer:/);
    expect(() => codec.decode(rotated.encode("headache"))).toThrow("there is no key 'summer' here");
    const impostor = encrypting({ current: "spring", keys: { spring: summer } });
    expect(() => impostor.decode(codec.encode("headache"))).toThrow();
    expect(() => codec.decode("enc1:constructor:AAAA")).toThrow();
  });

  test("lets clear text pass only where it is told to", () => {
    expect(() => codec.decode('"in the clear"')).toThrow("the text is not encrypted");
    const migrating = encrypting({ current: "spring", keys: { spring }, acceptsClearText: true });
    expect(migrating.decode('"in the clear"')).toBe('"in the clear"');
    expect(migrating.decode(codec.encode("headache"))).toBe("headache");
  });
});

describe("the orchestration of the example", () => {
  test("goes on where it was when the key is replaced", async () => {
    await using world = await TestWorld.open();
    const code = { orchestrations: [examine], activities: [orderTest] };
    const before = withPayloadCodec(world.provider, codec);
    const runtime = await world.start({ provider: before, ...code });
    const client = new Client(before, { clock: world.clock });
    const input = { name: "Ada", symptom: "headache" };
    const handle = await client.start(examine, { instanceId: "visit", input });
    expect(await world.settle(handle.waitForStatusChange())).toMatchObject({
      customStatus: "Ada waits for a test for headache",
    });

    const after = withPayloadCodec(world.provider, encrypting({ current: "summer", keys: { spring, summer } }));
    await runtime.restart({ provider: after });
    await new Client(after, { clock: world.clock }).enqueueEvent("visit", result, "all is well");
    expect(await world.settle(new Client(after, { clock: world.clock }).getHandle(examine, "visit").result())).toBe(
      "Ada: all is well",
    );
    expect(JSON.stringify(await world.provider.read("visit"))).not.toMatch(/Ada|headache|all is well/);
  });
});
