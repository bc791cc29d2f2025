import { describe, expect, test } from "vitest";
import type { Provider, TagFilter } from "../../../src/provider/provider.js";
import { act } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { create, fetchWork, takeWork } from "./steps.js";

const gpu: TagFilter = { kind: "tags", tags: ["gpu"] };
const any: TagFilter = { kind: "any" };

/** Everything that the filter lets through, in order. */
async function drain(provider: Provider, tagFilter: TagFilter): Promise<number[]> {
  const ids: number[] = [];
  for (;;) {
    const locked = await fetchWork(provider, { tagFilter });
    if (locked === null) return ids;
    ids.push(locked.item.id);
  }
}

/** Activities 1, 2, 3 … with these tags. */
async function enqueue(provider: Provider, ...tags: ReadonlyArray<string | null>): Promise<void> {
  for (const [index, tag] of tags.entries()) {
    await provider.enqueueForWorker(act("a", index + 1, tag === null ? {} : { tag }));
  }
}

export function describeTags(open: OpenProvider): void {
  describe("a tag filter", () => {
    test("takes only untagged work unless it is told otherwise", async () => {
      const { provider } = await open();
      await enqueue(provider, null, "gpu", null);
      expect((await takeWork(provider)).item.id).toBe(1);

      expect(await drain(provider, { kind: "default-only" })).toEqual([3]);
      expect(await fetchWork(provider)).toBeNull();
    });

    test("takes only its tags", async () => {
      const { provider } = await open();
      await enqueue(provider, null, "gpu", "cpu", "gpu");
      expect(await drain(provider, gpu)).toEqual([2, 4]);
    });

    test("takes any of several tags", async () => {
      const { provider } = await open();
      await enqueue(provider, "gpu", "tpu", "cpu", null);
      expect(await drain(provider, { kind: "tags", tags: ["gpu", "tpu"] })).toEqual([1, 2]);
    });

    test("takes untagged work and its tags", async () => {
      const { provider } = await open();
      await enqueue(provider, null, "gpu", "cpu");
      expect(await drain(provider, { kind: "default-and", tags: ["gpu"] })).toEqual([1, 2]);
    });

    test("takes anything", async () => {
      const { provider } = await open();
      await enqueue(provider, null, "gpu", "cpu");
      expect(await drain(provider, any)).toEqual([1, 2, 3]);
    });

    test("takes nothing, and does not wait for it", async () => {
      const { provider } = await open();
      await enqueue(provider, null, "gpu");
      expect(await fetchWork(provider, { tagFilter: { kind: "none" }, pollTimeoutMs: 60_000 })).toBeNull();
    });

    test("tells tags apart that differ only in case", async () => {
      const { provider } = await open();
      await enqueue(provider, "GPU", "gpu");
      expect(await drain(provider, gpu)).toEqual([2]);
    });

    test("keeps the work of several runtimes apart", async () => {
      const { provider } = await open();
      await enqueue(provider, null, "gpu", "cpu", "fpga", "gpu");
      expect(await drain(provider, { kind: "default-only" })).toEqual([1]);
      for (const id of [2, 3]) {
        const locked = await takeWork(provider, { tagFilter: { kind: "tags", tags: ["gpu", "cpu"] } });
        expect(locked.item.id).toBe(id);
      }

      expect(await drain(provider, { kind: "tags", tags: ["cpu", "fpga"] })).toEqual([4]);
      expect(await drain(provider, any)).toEqual([5]);
    });
  });

  describe("a tag", () => {
    test("is part of the work item, also through a turn", async () => {
      const { provider } = await open();
      const items = [act("a", 10, { name: "GpuWork", tag: "gpu" }), act("a", 11, { name: "CpuWork" })];
      await create(provider, "a", { workerItems: items });

      expect((await takeWork(provider)).item).toEqual(items[1]);
      expect(await fetchWork(provider)).toBeNull();
      expect((await takeWork(provider, { tagFilter: gpu })).item).toEqual(items[0]);
    });

    test("survives an abandon", async () => {
      const { provider } = await open();
      await enqueue(provider, "gpu", null);
      await provider.abandonWorkItem((await takeWork(provider, { tagFilter: gpu })).lockToken);

      expect((await takeWork(provider)).item.id).toBe(2);
      const again = await takeWork(provider, { tagFilter: gpu });
      expect(again).toMatchObject({ item: { id: 1, tag: "gpu" }, attemptCount: 2 });
    });

    test("and a session must both fit", async () => {
      const { provider } = await open();
      await provider.enqueueForWorker(act("a", 1, { tag: "gpu", sessionId: "s" }));
      const session = { ownerId: "A", lockTimeoutMs: 30_000 };
      expect(await fetchWork(provider, { tagFilter: gpu })).toBeNull();
      expect(await fetchWork(provider, { session })).toBeNull();

      expect((await takeWork(provider, { tagFilter: gpu, session })).item.id).toBe(1);
    });
  });
}
