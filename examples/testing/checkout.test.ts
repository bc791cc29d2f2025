// With vitest. The same tests for Node's own runner: checkout.node-test.ts.

import { mockActivity, replay, TestWorld } from "duroxide-ts/testing";
import { expect, test } from "vitest";
import { charge, checkout, refund, shipped } from "./checkout.js";

const order = { id: "order-1", amount: 12 };

test("an order that nobody ships is refunded after three days", async () => {
  await using world = await TestWorld.open();
  const refunded = mockActivity(refund, () => {});
  await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "receipt-1"), refunded] });

  expect(await world.run(checkout, { input: order })).toBe("order-1: refunded"); // three days, in a millisecond
  expect(refunded.calls.map(({ input }) => input)).toEqual(["receipt-1"]);
});

test("a shipped order is not refunded", async () => {
  await using world = await TestWorld.open();
  await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "receipt-1")] });
  const handle = await world.client.start(checkout, { input: order });
  await world.advance("1d");

  await handle.raiseEvent(shipped, { parcel: "P-7" });
  expect(await world.settle(handle.result())).toBe("order-1: P-7");
});

test("a refused payment is tried again, and the order fails with the last reason", async () => {
  await using world = await TestWorld.open();
  const charged = mockActivity(charge, () => "receipt-1");
  await world.start({ orchestrations: [checkout], activities: [charged] });
  for (const reason of ["busy", "busy", "declined"]) charged.failNext(reason);

  await expect(world.run(checkout, { input: order })).rejects.toThrow("declined");
  expect(charged.calls.length).toBe(3);
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

  expect(await world.settle(handle.result())).toBe("order-1: refunded");
  expect(charged.calls.map(({ attempt }) => attempt)).toEqual([1, 2]);
  expect(charged.calls[0]?.idempotencyKey).toBe(charged.calls[1]?.idempotencyKey);
});

test("today's code still fits the history of an order from production", async () => {
  await using world = await TestWorld.open();
  await world.start({ orchestrations: [checkout], activities: [mockActivity(charge, () => "receipt-1")] });
  const { instanceId } = await world.client.start(checkout, { input: order });
  await world.rest();
  const history = await world.client.readHistory(instanceId); // yours comes from a file: importHistory(readFileSync(…))

  expect(await replay(history, checkout)).toMatchObject({ status: "waiting" });
});
