// The examples about who runs what, and for how long: sessions, tags, versioning, cancellation.

import { afterEach, describe, expect, test, vi } from "vitest";
import * as cancellation from "../../examples/cancellation.js";
import * as sessions from "../../examples/sessions.js";
import * as tags from "../../examples/tags.js";
import * as versioning from "../../examples/versioning.js";
import { sleep } from "../../src/clock.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { TestWorld } from "../../src/testing/test-world.js";

describe("sessions", () => {
  const pages = [["Ada", "Grace"], ["Edsger"], ["Barbara"]];

  /** A worker that notes what it downloads. */
  function startWorker(world: TestWorld, name: string, downloads: string[]) {
    const activities = sessions.importActivities(async (archive) => {
      downloads.push(`${name}: ${archive}`);
      await sleep(world.clock, 100);
      return pages;
    });
    // One slot each: what nothing holds to a worker goes to whichever is free.
    return world.start({
      orchestrations: [sessions.importArchive],
      activities,
      workerNodeId: name,
      workerConcurrency: 1,
    });
  }

  test("lets one worker do all of an archive, so that it is downloaded once", async () => {
    await using world = await TestWorld.open();
    const downloads: string[] = [];
    for (const name of ["worker-a", "worker-b"]) await startWorker(world, name, downloads);
    const archives = ["1.zip", "2.zip", "3.zip", "4.zip", "5.zip"];
    const handles = await Promise.all(
      archives.map((archive) => world.client.start(sessions.importArchive, { input: archive })),
    );

    expect(await world.settle(Promise.all(handles.map((handle) => handle.result())))).toEqual([4, 4, 4, 4, 4]);
    expect(downloads.map((line) => line.split(": ")[1]).sort()).toEqual(archives);
    expect(new Set(downloads.map((line) => line.split(": ")[0])).size).toBe(2);
  });

  test("lets another worker go on when that one has died; it downloads again", async () => {
    await using world = await TestWorld.open();
    const downloads: string[] = [];
    const first = await startWorker(world, "worker-a", downloads);
    const crashed = first.crashAt("before-activity", { activity: sessions.importPage.name, nth: 2 });
    const handle = await world.client.start(sessions.importArchive, { input: "1.zip" });
    await world.settle(crashed);
    await startWorker(world, "worker-b", downloads);

    expect(await world.settle(handle.result())).toBe(4);
    expect(downloads).toEqual(["worker-a: 1.zip", "worker-b: 1.zip"]);
  });
});

describe("tags", () => {
  const video = { title: "film", gpuWithin: "1h" };

  test("lets only the worker with the graphics card render, and only that", async () => {
    await using world = await TestWorld.open();
    const application = await world.start(tags.application);
    const gpuWorker = await world.start(tags.gpuWorker);

    expect(await world.run(tags.publishVideo, { input: video })).toBe("uploaded: film.mp4, rendered on gpu");
    expect(gpuWorker.metrics.snapshot().activitySuccess).toBe(1);
    expect(application.metrics.snapshot().activitySuccess).toBe(1);
  });

  test("waits for such a worker", async () => {
    await using world = await TestWorld.open();
    await world.start(tags.application);
    const handle = await world.client.start(tags.publishVideo, { input: video });
    await world.advance("59m");
    await world.start(tags.gpuWorker);

    expect(await world.settle(handle.result())).toBe("uploaded: film.mp4, rendered on gpu");
  });

  test("does without after a while, and then leaves nothing behind for a worker that comes late", async () => {
    await using world = await TestWorld.open();
    await world.start(tags.application);
    expect(await world.run(tags.publishVideo, { input: video })).toBe("uploaded: film.mp4, rendered on cpu");

    await world.start(tags.gpuWorker);
    await world.rest();
    expect(world.factsOf("activity-started").map(({ ref }) => ref.activityName)).toEqual(["Render", "Upload"]);
  });
});

describe("versioning", () => {
  const { fulfil, fulfilV1, fulfilV2, isInUse, paid } = versioning;
  const activities = [versioning.checkFraud, versioning.ship];
  const orderOf = (id: string) => ({ instanceId: id, input: { id, amount: 5_000 } });

  test("an order that was begun on 1.0.0 ends on it, while new ones take 2.0.0", async () => {
    await using world = await TestWorld.open();
    const runtime = await world.start({ orchestrations: [fulfilV1], activities });
    const old = await world.client.start(fulfil, orderOf("order-1"));
    await world.rest();
    await runtime.shutdown();
    await runtime.restart({ orchestrations: [fulfilV1, fulfilV2] });

    const young = await world.client.start(fulfil, orderOf("order-2"));
    expect(await world.settle(young.result())).toBe("order-2 is held back");
    await old.enqueueEvent(paid, { receipt: "R-1" });
    expect(await world.settle(old.result())).toBe("order-1 is on its way");
    expect(await old.status()).toMatchObject({ orchestrationVersion: "1.0.0" });
    expect(await young.status()).toMatchObject({ orchestrationVersion: "2.0.0" });
  });

  test("it is known whether 1.0.0 can be taken out; taken out too early, it is missed but nothing breaks", async () => {
    await using world = await TestWorld.open();
    const runtime = await world.start({ orchestrations: [fulfilV1], activities });
    const old = await world.client.start(fulfil, orderOf("order-1"));
    await world.rest();
    expect([await isInUse(world.client, "1.0.0"), await isInUse(world.client, "2.0.0")]).toEqual([true, false]);

    await runtime.restart({ orchestrations: [fulfilV2] });
    await old.enqueueEvent(paid, { receipt: "R-1" });
    await world.advance("1m");
    expect(await old.status()).toMatchObject({ status: "Running" });

    await runtime.restart({ orchestrations: [fulfilV1, fulfilV2] });
    expect(await world.settle(old.result())).toBe("order-1 is on its way");
    expect(await isInUse(world.client, "1.0.0")).toBe(false);
  });
});

describe("cancellation", () => {
  const said: string[] = [];
  const servers = ["server-1", "server-2"];

  async function begin(world: TestWorld) {
    vi.spyOn(console, "log").mockImplementation((line: string) => void said.push(line));
    const released = mockActivity(cancellation.releaseAddresses, () => {});
    const runtime = await world.start({
      orchestrations: [cancellation.setUpCluster, cancellation.setUpServer],
      activities: [cancellation.installServer, released],
    });
    const handle = await world.client.start(cancellation.setUpCluster, { instanceId: "cluster", input: servers });
    await world.rest();
    expect(said).toEqual(["server-1: installing", "server-2: installing"]);
    said.length = 0;
    return { runtime, released, handle };
  }

  afterEach(() => {
    vi.restoreAllMocks();
    said.length = 0;
  });

  test("a withdrawal stops children and activities, and the orchestration tidies up", async () => {
    await using world = await TestWorld.open();
    const { released, handle } = await begin(world);
    await handle.enqueueEvent(cancellation.withdrawals, "too expensive");

    expect(await world.settle(handle.result())).toBe("withdrawn: too expensive");
    await world.rest();
    expect(said.sort()).toEqual(["server-1: disk wiped", "server-2: disk wiped"]);
    expect(released.calls.map(({ input }) => input)).toEqual([servers]);
    for (const server of servers) {
      expect(await world.client.getStatus(server)).toMatchObject({
        status: "Failed",
        error: expect.stringMatching(/^canceled: /),
      });
    }
  });

  test("a cancellation stops all of it, and asks no code", async () => {
    await using world = await TestWorld.open();
    const { released, handle } = await begin(world);
    await handle.cancel("emergency stop");

    await expect(world.settle(handle.result())).rejects.toThrow("canceled: emergency stop");
    await world.rest();
    expect(said.sort()).toEqual(["server-1: disk wiped", "server-2: disk wiped"]);
    expect(released.calls).toEqual([]);
    for (const server of servers) {
      expect(await world.client.getStatus(server)).toMatchObject({ error: "canceled: parent canceled" });
    }
  });

  test("a worker that shuts down leaves the disks as they are, because another one goes on", async () => {
    await using world = await TestWorld.open();
    const { runtime, handle } = await begin(world);

    expect(await runtime.shutdown({ graceMs: 0 })).toBe("forced");
    expect(said).toEqual([]);
    expect(await handle.status()).toMatchObject({ status: "Running" });
  });
});
