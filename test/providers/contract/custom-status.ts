import { describe, expect, test } from "vitest";
import { NAMED, statusSet } from "./builders.js";
import type { OpenProvider } from "./open-provider.js";
import { continueExecution, create, runTurn } from "./steps.js";

export function describeCustomStatus(open: OpenProvider): void {
  describe("the custom status", () => {
    test("of a new instance has no version, that of an unknown one does not exist", async () => {
      const { provider } = await open();
      await create(provider, "a");
      expect(await provider.getCustomStatus("a", 0)).toBeNull();
      expect(await provider.getCustomStatus("unknown", 0)).toBeNull();
      expect(await provider.getInstanceStatus("a")).toMatchObject({ customStatus: null, customStatusVersion: 0 });
    });

    test("is what the last turn that spoke of it said, one version a turn", async () => {
      const { provider } = await open();
      await create(provider, "a", { events: [statusSet("a", 1, "first")] });
      expect(await provider.getCustomStatus("a", 0)).toEqual({ status: "first", version: 1 });
      await runTurn(provider, "a", { events: [statusSet("a", 101, "lost"), statusSet("a", 102, "second")] });
      expect(await provider.getCustomStatus("a", 0)).toEqual({ status: "second", version: 2 });
      await runTurn(provider, "a", { events: [statusSet("a", 103, null)] });

      expect(await provider.getCustomStatus("a", 0)).toEqual({ status: null, version: 3 });
    });

    test("is not touched by turns that say nothing of it", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [statusSet("a", 100, "keep me")] });
      await runTurn(provider, "a", { metadata: { ...NAMED, status: "Completed", output: "done" } });

      expect(await provider.getCustomStatus("a", 0)).toEqual({ status: "keep me", version: 1 });
      expect(await provider.getInstanceStatus("a")).toMatchObject({ customStatus: "keep me", customStatusVersion: 1 });
    });

    test("is news only to whoever has not seen its version", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [statusSet("a", 100, "news")] });

      expect(await provider.getCustomStatus("a", 1)).toBeNull();
      expect(await provider.getCustomStatus("a", 2)).toBeNull();
      expect(await provider.getCustomStatus("a", 0)).not.toBeNull();
    });

    test("survives into the next execution", async () => {
      const { provider } = await open();
      await create(provider, "a");
      await runTurn(provider, "a", { events: [statusSet("a", 100, "from the first")] });
      await continueExecution(provider, "a", 2);

      expect(await provider.getCustomStatus("a", 0)).toEqual({ status: "from the first", version: 1 });
    });

    test("may be as long as the limit allows", async () => {
      const { provider } = await open();
      await create(provider, "a");
      const status = "é".repeat(128 * 1024);
      await runTurn(provider, "a", { events: [statusSet("a", 100, status)] });

      expect(await provider.getCustomStatus("a", 0)).toEqual({ status, version: 1 });
    });
  });
}
