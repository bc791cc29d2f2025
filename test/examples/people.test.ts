// The examples that wait for people: approval-with-timeout, human-in-the-loop.

import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import * as approval from "../../examples/approval-with-timeout.js";
import * as service from "../../examples/human-in-the-loop.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { TestWorld } from "../../src/testing/test-world.js";

describe("approval-with-timeout", () => {
  const expense = { employee: "Ada", amount: 80, decideWithin: "3d" };

  async function submit(world: TestWorld) {
    const paid = mockActivity(approval.payOut, () => "T-1");
    const runtime = await world.start({ orchestrations: [approval.reimburse], activities: [paid] });
    const handle = await world.client.start(approval.reimburse, { instanceId: "train", input: expense });
    return { paid, runtime, handle };
  }

  test("pays what is approved, even on the third day", async () => {
    await using world = await TestWorld.open();
    const { paid, handle } = await submit(world);
    await world.advance("71h");
    await handle.enqueueEvent(approval.decisions, { by: "Grace", isApproved: true });

    expect(await world.settle(handle.result())).toBe("approved by Grace, T-1");
    expect(paid.calls.map(({ input }) => input)).toEqual([expense]);
  });

  test("pays nothing that is rejected", async () => {
    await using world = await TestWorld.open();
    const { paid, handle } = await submit(world);
    await handle.enqueueEvent(approval.decisions, { by: "Grace", isApproved: false });

    expect(await world.settle(handle.result())).toBe("rejected by Grace");
    expect(paid.calls).toEqual([]);
  });

  test("expires after three days, and not before", async () => {
    await using world = await TestWorld.open();
    const { paid, handle } = await submit(world);
    const submittedAt = world.clock.now();

    expect(await world.settle(handle.result())).toBe("expired: nobody decided within 3d");
    expect(world.clock.now() - submittedAt).toBe(3 * 86_400_000);
    expect(paid.calls).toEqual([]);
  });

  test("hears of a decision that came while no process was running", async () => {
    await using world = await TestWorld.open();
    const { runtime, handle } = await submit(world);
    await world.rest();
    await runtime.shutdown();
    await handle.enqueueEvent(approval.decisions, { by: "Grace", isApproved: true });
    await world.advance("1d");
    await runtime.restart();

    expect(await world.settle(handle.result())).toBe("approved by Grace, T-1");
  });
});

describe("human-in-the-loop", () => {
  /** The service on a port of its own, in a world with one runtime. */
  async function serve(world: TestWorld) {
    const reminded = mockActivity(service.remindManager, () => {});
    const runtime = await world.start({ orchestrations: [service.decideExpense], activities: [reminded] });
    const server = service.expenseService(world.client).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const request = async (method: string, path: string, body?: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        ...(body === undefined ? {} : { body }),
      });
      return { code: response.status, body: (await response.json()) as Record<string, unknown> };
    };
    const submit = async () => {
      const { body } = await request("POST", "/expenses", JSON.stringify({ employee: "Ada", amount: 80 }));
      await world.rest();
      return `/expenses/${body.id}`;
    };
    const close = async () => {
      server.close();
      server.closeAllConnections();
    };
    return { runtime, reminded, request, submit, [Symbol.asyncDispose]: close };
  }

  test("takes an expense, shows it undecided, and shows the decision once there is one", async () => {
    await using world = await TestWorld.open();
    await using site = await serve(world);
    const expense = await site.submit();
    expect(await site.request("GET", expense)).toEqual({ code: 200, body: { status: "Running", decision: null } });

    const decision = JSON.stringify({ by: "Grace", isApproved: true });
    expect(await site.request("POST", `${expense}/decision`, decision)).toMatchObject({ code: 202 });
    await world.rest();
    expect(await site.request("GET", expense)).toEqual({
      code: 200,
      body: { status: "Completed", decision: "approved by Grace" },
    });
  });

  test("takes decisions while the worker is down, and acts on them when it is back", async () => {
    await using world = await TestWorld.open();
    await using site = await serve(world);
    const expense = await site.submit();
    site.runtime.kill();
    await site.request("POST", `${expense}/decision`, JSON.stringify({ by: "Grace", isApproved: false }));
    expect(await site.request("GET", expense)).toMatchObject({ body: { decision: null } });

    await site.runtime.restart();
    await world.advance("1m");
    expect(await site.request("GET", expense)).toMatchObject({ body: { decision: "rejected by Grace" } });
  });

  test("reminds once a day, and rejects after the third", async () => {
    await using world = await TestWorld.open();
    await using site = await serve(world);
    const expense = await site.submit();
    await world.advance("1d");
    expect(site.reminded.calls.length).toBe(1);
    await world.advance("1d");
    expect(site.reminded.calls.length).toBe(2);
    await world.advance("1d");
    expect(site.reminded.calls.length).toBe(2);

    expect(await site.request("GET", expense)).toMatchObject({ body: { decision: "rejected: nobody decided" } });
  });

  test.each([
    ["GET", "/expenses/unknown", undefined, 404],
    ["POST", "/expenses/unknown/decision", '{ "by": "Grace", "isApproved": true }', 404],
    ["DELETE", "/expenses/unknown", undefined, 404],
    ["GET", "/", undefined, 404],
    ["POST", "/expenses", "no JSON", 400],
    ["POST", "/expenses", "null", 400],
    ["POST", "/expenses", '{ "employee": "Ada", "amount": "all" }', 400],
    ["POST", "/expenses/unknown/decision", '{ "by": "Grace" }', 400],
  ])("answers %s %s with the body %j by %i, and starts nothing", async (method, path, body, code) => {
    await using world = await TestWorld.open();
    await using site = await serve(world);

    expect((await site.request(method, path, body)).code).toBe(code);
    await world.rest();
    expect(await world.client.listAllInstances()).toEqual([]);
  });
});
