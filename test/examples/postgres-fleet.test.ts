// The example of a fleet: what its workers promise together, in virtual time on a real PostgreSQL.

import { describe, expect, onTestFinished, test } from "vitest";
import { resize, resizeAlbum, work } from "../../examples/postgres-fleet.js";
import { sleep } from "../../src/clock.js";
import { postgresStore } from "../../src/provider-tests/own-stores.js";
import { mockActivity } from "../../src/testing/mock-activity.js";
import { TestWorld } from "../../src/testing/test-world.js";

const PG_URL = process.env.DUROXIDE_TEST_PG_URL;

describe.skipIf(PG_URL === undefined)("postgres-fleet", () => {
  const photos = ["1.jpg", "2.jpg", "3.jpg", "4.jpg", "5.jpg", "6.jpg"];

  async function openWorld(): Promise<TestWorld> {
    const stores = postgresStore(PG_URL ?? "", { wakeUps: "local" });
    return TestWorld.open({
      provider: async (tools) => {
        const { provider, close } = await stores.open(tools);
        onTestFinished(async () => close?.());
        return provider;
      },
    });
  }

  /** A worker under its own name. */
  function startWorker(world: TestWorld, name: string) {
    const resized = mockActivity(resize, async () => {
      await sleep(world.clock, 50);
      return name;
    });
    return world.start({ ...work, activities: [resized] });
  }

  test("shares the photos of an album out among its workers", async () => {
    await using world = await openWorld();
    for (const name of ["a", "b"]) await startWorker(world, name);

    const album = await world.run(resizeAlbum, { input: photos });
    expect(album).toMatchObject({ photos: 6 });
    expect(album.workers.toSorted()).toEqual(["a", "b"]);
  });

  test("finishes the album of a worker that dies, without asking for a photo that is done", async () => {
    await using world = await openWorld();
    const first = await startWorker(world, "a");
    const crashed = first.crashAt("before-activity-commit", { activity: resize.name, nth: 4 });
    const handle = await world.client.start(resizeAlbum, { input: photos });
    await world.settle(crashed);
    const second = await startWorker(world, "b");

    expect(await world.settle(handle.result())).toEqual({ photos: 6, workers: ["a", "b"] });
    expect(second.metrics.snapshot().activitySuccess).toBeLessThan(6);
  });
});
