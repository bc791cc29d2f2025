// Calls of one commit leave rows to be written together. Whoever has them written, and whatever is wrong with one of them:
// each call is answered for what became of its own.

import { describe, expect, test } from "vitest";
import type { Provider } from "../../src/provider/provider.js";
import { act, NAMED, raised, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { create, fetchTurn, fetchWork, takeTurn } from "../../src/provider-tests/steps.js";
import { openStore } from "./sqlite-store.js";

/** Of two instances that run and are locked, the tokens. A third one runs. */
async function locked(provider: Provider): Promise<readonly [x: string, y: string]> {
  for (const name of ["x", "y", "z"]) await create(provider, name);
  const tokens: string[] = [];
  for (const name of ["x", "y"]) {
    await provider.enqueueForOrchestrator(raised(name));
    tokens.push((await takeTurn(provider)).lockToken);
  }
  return [tokens[0]!, tokens[1]!];
}

const TAKEN = turn({ events: [started("x")] });
const GOOD = turn({ events: [scheduled("y", 2)] });

describe("an ack whose event is there already is refused alone, in one commit with", () => {
  const OTHERS: Readonly<Record<string, (provider: Provider) => Promise<unknown>>> = {
    "a fetch of what is cold": async (provider) => {
      const [, fetched] = await Promise.all([provider.enqueueForOrchestrator(raised("z")), fetchTurn(provider)]);
      expect(fetched).toMatchObject({ item: { instance: "z", messages: [raised("z")], history: [started("z")] } });
    },
    "a deletion": async (provider) => {
      expect(await provider.admin?.deleteInstance("z", true)).toMatchObject({ instancesDeleted: 1 });
      expect(await provider.read("z")).toEqual([]);
    },
  };

  test.each(Object.entries(OTHERS))("%s", async (_, others) => {
    const { provider } = await openStore();
    const [x, y] = await locked(provider);
    const [refused, taken, done] = await Promise.allSettled([
      provider.ackOrchestrationItem(x, TAKEN),
      provider.ackOrchestrationItem(y, GOOD),
      others(provider),
    ]);

    expect(done).toMatchObject({ status: "fulfilled" });
    expect(refused).toMatchObject({ status: "rejected", reason: { kind: "duplicate-event" } });
    expect(taken).toMatchObject({ status: "fulfilled" });
    expect(await provider.read("y")).toEqual([started("y"), scheduled("y", 2)]);
    expect(await provider.read("x")).toEqual([started("x")]);
    await provider.renewOrchestrationItemLock(x, 30_000);
    await expect(provider.renewOrchestrationItemLock(y, 30_000)).rejects.toMatchObject({ kind: "lock-lost" });
  });
});

describe("a fetch that fails takes nothing along", () => {
  const broken = new Error("this one cannot be asked");

  test("of what was sent in the same commit", async () => {
    const { provider } = await openStore();
    const warm = new Map<string, string>();
    warm.get = () => {
      throw broken;
    };
    const [sent, fetched] = await Promise.allSettled([
      provider.enqueueForOrchestrator(start("a")),
      fetchTurn(provider, { warm }),
    ]);

    expect(sent).toEqual({ status: "fulfilled", value: "enqueued" });
    expect(fetched).toEqual({ status: "rejected", reason: broken });
    expect(await takeTurn(provider)).toMatchObject({ item: { instance: "a" }, attemptCount: 1 });
  });

  test("of the activities of the same commit: it is tried once more, alone", async () => {
    let failures = 0;
    const { provider } = await openStore({
      newId: () => {
        if (failures === 0 && isArmed) {
          failures += 1;
          throw broken;
        }
        return crypto.randomUUID();
      },
    });
    let isArmed = false;
    await create(provider, "a");
    isArmed = true;
    const [sent, fetched] = await Promise.allSettled([provider.enqueueForWorker(act("a", 2)), fetchWork(provider)]);

    expect(sent).toMatchObject({ status: "fulfilled" });
    expect(fetched).toMatchObject({ status: "fulfilled", value: { item: act("a", 2), attemptCount: 1 } });
    expect(failures).toBe(1);
  });
});

test("a turn that names itself, and its neighbour, are both committed", async () => {
  const { provider } = await openStore();
  const [x, y] = await locked(provider);
  await Promise.all([
    provider.ackOrchestrationItem(x, turn({ events: [scheduled("x", 2)], metadata: NAMED })),
    provider.ackOrchestrationItem(y, GOOD),
  ]);
  expect([await provider.read("x"), await provider.read("y")].map((events) => events.length)).toEqual([2, 2]);
});

test("of many events the one that is there already is named", async () => {
  const { provider } = await openStore();
  const [x] = await locked(provider);
  const events = [...Array.from({ length: 39 }, (_, place) => scheduled("x", place + 2)), started("x")];

  await expect(provider.ackOrchestrationItem(x, turn({ events }))).rejects.toThrow(/Event id 1 /);
});
