import { describe, expect, test } from "vitest";
import type { AdminStore, InstanceFilter, PruneOptions } from "../../src/provider/admin.js";
import { completeAdmin } from "../../src/provider/kit/complete-admin.js";
import { NAMED } from "../../src/provider-tests/builders.js";
import { create, createEnded } from "../../src/provider-tests/steps.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";

/** A real store; a test replaces the questions that it wants to come between. */
function openStore(changes: (provider: MemoryProvider) => Partial<AdminStore> = () => ({})) {
  const provider = new MemoryProvider();
  const { admin } = provider;
  const store: AdminStore = {
    ...admin,
    selectInstances: async () => (await admin.listInstances()).toReversed(),
    ...changes(provider),
  };
  return { provider, inner: admin, admin: completeAdmin(store, provider) };
}

function createChild(provider: MemoryProvider, parent: string, id: string): Promise<void> {
  return create(provider, id, { metadata: { ...NAMED, parentInstanceId: parent } });
}

describe("a tree that grows while it is read", () => {
  /** After each of the first looks at the root's children, another one is born. */
  function openGrowing(births: number) {
    let looks = 0;
    const opened = openStore((provider) => ({
      async listChildren(instance) {
        const children = await provider.admin.listChildren(instance);
        if (instance !== "root") return children;
        looks += 1;
        if (looks <= births) await createEnded(provider, `child-${looks}`, { parentInstanceId: "root" });
        return children;
      },
    }));
    return { ...opened, looks: () => looks };
  }

  test("is read again, and deleted with what has come", async () => {
    const { provider, inner, admin, looks } = openGrowing(1);
    await createEnded(provider, "root");
    expect(await admin.deleteInstance("root", true)).toMatchObject({ instancesDeleted: 2 });
    expect(looks()).toBe(2);
    expect(await inner.listInstances()).toEqual([]);
  });

  test("is read again in bulk, too", async () => {
    const { provider, inner, admin } = openGrowing(3);
    await createEnded(provider, "root");
    expect(await admin.deleteInstanceBulk({})).toMatchObject({ instancesDeleted: 4 });
    expect(await inner.listInstances()).toEqual([]);
  });

  test("is given up where it never stops, and is left whole", async () => {
    const { provider, inner, admin } = openGrowing(Number.POSITIVE_INFINITY);
    await createEnded(provider, "root");
    await expect(admin.deleteInstance("root", true)).rejects.toMatchObject({ kind: "orphans" });
    expect(await inner.listInstances()).toContain("root");
  });

  test("is refused for another reason only once", async () => {
    const { provider, admin, looks } = openGrowing(0);
    await create(provider, "root");
    await expect(admin.deleteInstance("root", false)).rejects.toMatchObject({ kind: "still-running" });
    expect(looks()).toBe(1);
  });
});

describe("a child", () => {
  test("is deleted with its parent, not by itself", async () => {
    const { provider, admin } = openStore();
    await createEnded(provider, "root");
    await createChild(provider, "root", "child");
    await expect(admin.deleteInstance("child", true)).rejects.toMatchObject({ kind: "sub-orchestration" });
  });

  test("whose parent went before it began is deleted as a root", async () => {
    const { provider, admin, inner } = openStore();
    await createChild(provider, "gone", "child");
    expect(await admin.deleteInstance("child", true)).toMatchObject({ instancesDeleted: 1 });
    expect(await inner.listInstances()).toEqual([]);
  });
});

describe("a bulk operation", () => {
  test("passes over what is gone when its turn comes", async () => {
    const { provider, admin } = openStore(() => ({ selectInstances: async () => ["gone", "here"] }));
    await createEnded(provider, "here");
    expect(await admin.pruneExecutionsBulk({}, {})).toMatchObject({ instancesProcessed: 1 });
    expect(await admin.deleteInstanceBulk({})).toMatchObject({ instancesDeleted: 1 });
  });

  test("tells the store the limit, by default a thousand", async () => {
    const told: unknown[] = [];
    const { admin } = openStore(() => ({
      selectInstances: async (filter, scope) => {
        told.push([filter, scope]);
        return [];
      },
    }));
    await admin.deleteInstanceBulk({ completedBeforeMs: 5 });
    await admin.pruneExecutionsBulk({ limit: 0 }, {});
    expect(told).toEqual([
      [{ completedBeforeMs: 5, limit: 1_000 }, { kind: "ended-roots" }],
      [{ limit: 0 }, { kind: "more-executions-than", count: 1 }],
    ]);
  });
});

describe("an argument that cannot be right is refused, and nothing is removed", () => {
  const filters: InstanceFilter[] = [
    { limit: -1 },
    { limit: Number.NaN },
    { limit: 1.5 },
    { limit: Number.POSITIVE_INFINITY },
    { completedBeforeMs: Number.NaN },
    { completedBeforeMs: -1 },
    { instanceIds: "i" as unknown as string[] },
    { completedBefore: 1 } as InstanceFilter,
    { instanceIds: undefined },
    Object.create({ instanceIds: ["i"] }) as InstanceFilter,
    Promise.resolve({}) as InstanceFilter,
    new Map([["limit", 0]]) as InstanceFilter,
  ];
  test.each(filters)("in a filter: %o", async (filter) => {
    const { provider, admin } = openStore();
    await createEnded(provider, "i");
    await expect(admin.deleteInstanceBulk(filter)).rejects.toMatchObject({ code: "DUROXIDE_INVALID_OPTIONS" });
    await expect(admin.pruneExecutionsBulk(filter, {})).rejects.toMatchObject({ code: "DUROXIDE_INVALID_OPTIONS" });
    expect(await admin.listInstances()).toEqual(["i"]);
  });

  const options: PruneOptions[] = [{ keepLast: -1 }, { keepLast: Number.NaN }, { completedBeforeMs: 0.5 }];
  test.each(options)("in the options of pruning: %o", async (given) => {
    const { provider, admin } = openStore();
    await createEnded(provider, "i");
    await expect(admin.pruneExecutions("i", given)).rejects.toMatchObject({ code: "DUROXIDE_INVALID_OPTIONS" });
    await expect(admin.pruneExecutionsBulk({}, given)).rejects.toMatchObject({ code: "DUROXIDE_INVALID_OPTIONS" });
  });
});
