// With Node's own runner: node --test. The same tests for vitest: checkout.test.ts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mockActivity, TestWorld } from "duroxide-ts/testing";
import { charge, checkout, refund, shipped } from "./checkout.js";

const order = { id: "order-1", amount: 12 };

test("an order that nobody ships is refunded after three days", async () => {
  await using world = await TestWorld.open();
  const refunded = mockActivity(refund, () => {});
  await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "receipt-1"), refunded] });

  assert.equal(await world.run(checkout, { input: order }), "order-1: refunded"); // three days, in a millisecond
  assert.deepEqual(
    refunded.calls.map(({ input }) => input),
    ["receipt-1"],
  );
});

test("a shipped order is not refunded", async () => {
  await using world = await TestWorld.open();
  await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "receipt-1")] });
  const handle = await world.client.start(checkout, { input: order });
  await world.advance("1d");

  await handle.raiseEvent(shipped, { parcel: "P-7" });
  assert.equal(await world.settle(handle.result()), "order-1: P-7");
});

test("a crash between the charge and its record charges again under the same idempotency key", async () => {
  await using world = await TestWorld.open();
  const charged = mockActivity(charge, () => "receipt-1");
  const runtime = await world.start({
    orchestrations: [checkout],
    activities: [charged, mockActivity(refund, () => {})],
  });
  const crashed = runtime.crashAt("before-activity-commit", { activity: "Charge" });
  const handle = await world.client.start(checkout, { input: order });

  await world.settle(crashed); // the card is charged, and nobody knows
  await runtime.restart();

  assert.equal(await world.settle(handle.result()), "order-1: refunded");
  assert.deepEqual(
    charged.calls.map(({ attempt }) => attempt),
    [1, 2],
  );
  assert.equal(charged.calls[0]?.idempotencyKey, charged.calls[1]?.idempotencyKey);
});
