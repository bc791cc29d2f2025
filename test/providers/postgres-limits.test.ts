// What is too long for an index of PostgreSQL is refused by name, alone, and nothing is lost for it.

import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { TurnCommit } from "../../src/provider/provider.js";
import { act, kvSet, NAMED, start, started, turn } from "../../src/provider-tests/builders.js";
import { TestSchemas } from "../../src/provider-tests/own-stores.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { useEverything } from "./postgres-owner.js";

const SERVER_URL = process.env.DUROXIDE_TEST_PG_URL;

/** Text that does not get shorter when it is compressed. */
function text(bytes: number): string {
  return randomBytes(bytes).toString("base64").slice(0, bytes);
}

const LONG = 3_000;
/** What is promised. */
const LONGEST = 2_600;
const TOO_LONG = { kind: "invalid", message: expect.stringContaining("at most about 2,600 bytes") as string };

describe.skipIf(SERVER_URL === undefined)("an id that is too long for an index", () => {
  const lock = { lockTimeoutMs: 60_000 };
  let provider: PostgresProvider;
  let schemas: TestSchemas;
  let schema: string;

  beforeAll(async () => {
    schemas = new TestSchemas(SERVER_URL ?? "");
    schema = schemas.take();
    provider = await PostgresProvider.open(SERVER_URL ?? "", { schema, wakeUps: "local" });
  });

  afterEach(() => schemas.empty(schema));

  afterAll(async () => {
    await provider.close();
    await schemas.run(schema, "DROP SCHEMA {schema} CASCADE");
  });

  test("is refused where it is sent, and its neighbours are sent", async () => {
    const outcomes = await Promise.allSettled([
      provider.enqueueForOrchestrator(start("a")),
      provider.enqueueForOrchestrator(start(text(LONG))),
      provider.enqueueForOrchestrator(start("b")),
    ]);

    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[1]).toMatchObject({ reason: TOO_LONG });
    const fetched = [await provider.fetchOrchestrationItem(lock), await provider.fetchOrchestrationItem(lock)];
    expect(fetched.map((each) => each?.item.instance)).toEqual(["a", "b"]);
    expect(await provider.fetchOrchestrationItem(lock)).toBe(null);
  });

  test.each<[string, Partial<TurnCommit>]>([
    ["a child's id", { orchestratorItems: [start(text(LONG))] }],
    ["a session", { workerItems: [act("a", 2, { sessionId: text(LONG) })] }],
    ["a tag", { workerItems: [act("a", 2, { tag: text(LONG) })] }],
    ["a key", { events: [started("a"), kvSet("a", 2, text(LONG), "value")] }],
  ])("refuses the turn that has it as %s, which keeps its lock, and no other", async (_, part) => {
    await provider.enqueueForOrchestrator(start("a"));
    await provider.enqueueForOrchestrator(start("b"));
    const [a, b] = [await provider.fetchOrchestrationItem(lock), await provider.fetchOrchestrationItem(lock)];

    const [refused, acked] = await Promise.allSettled([
      provider.ackOrchestrationItem(a!.lockToken, turn({ events: [started("a")], metadata: NAMED, ...part })),
      provider.ackOrchestrationItem(b!.lockToken, turn({ events: [started("b")], metadata: NAMED })),
    ]);

    expect(refused).toMatchObject({ status: "rejected", reason: TOO_LONG });
    expect(acked.status).toBe("fulfilled");
    expect(await provider.admin.listInstances()).toEqual(["b"]);
    await provider.ackOrchestrationItem(a!.lockToken, turn({ events: [started("a")], metadata: NAMED }));
    expect((await provider.read("a")).length).toBe(1);
  });

  test("is refused as an activity's, and its neighbours are queued", async () => {
    const [refused, queued] = await Promise.allSettled([
      provider.enqueueForWorker(act(text(LONG), 1)),
      provider.enqueueForWorker(act("b", 1)),
    ]);
    expect(refused).toMatchObject({ status: "rejected", reason: TOO_LONG });
    expect(queued.status).toBe("fulfilled");
    expect((await provider.fetchWorkItem(lock))?.item.instance).toBe("b");
    expect(await provider.fetchWorkItem(lock)).toBe(null);
  });

  test("is nobody's when it is asked for", async () => {
    const id = text(LONG);
    expect(await provider.read(id)).toEqual([]);
    expect(await provider.getInstanceStatus(id)).toBe(null);
    expect(await provider.getKvValue("a", id)).toBe(null);
    expect(await provider.admin.listExecutions(id)).toEqual([]);
    await expect(provider.admin.getInstanceInfo(id)).rejects.toMatchObject({ kind: "not-found" });
  });

  test("is not one of 2,600 bytes", async () => {
    await useEverything(provider, text(LONGEST - "-session".length));
  });
});
