// What those hear who have started something, where its beginning (S10) goes wrong or meets something else of the same instance.

import { describe, expect, onTestFinished, test } from "vitest";
import type { TurnCommit } from "../../src/provider/provider.js";
import { act, done, event, NAMED, scheduled, start, started } from "../../src/provider-tests/builders.js";
import { takeWork } from "../../src/provider-tests/steps.js";
import type { PostgresOptions } from "../../src/providers/postgres/index.js";
import { OwnDatabase, type Rival } from "./postgres-rivals.js";
import { begin, doneEvent, round, STOPPED, slots } from "./postgres-slots.js";

const URL = process.env.DUROXIDE_TEST_PG_URL;
const AHEAD: PostgresOptions = { clock: STOPPED, startsGoAhead: "always" };
const ABSENT = { ifAbsent: true } as const;
const LOCK_LOST = { kind: "lock-lost" };

async function open() {
  const database = await OwnDatabase.open(URL!);
  return { database, provider: await database.provider(AHEAD) };
}

/** The first turn of an instance, which asks for an activity. */
function first(id: string): Partial<TurnCommit> {
  return { events: [started(id), scheduled(id, 2)], workerItems: [act(id, 2)], metadata: NAMED };
}

/** Of those that this one blocks, statements that call this function. */
async function cancelBlocked(database: OwnDatabase, { pid }: Rival, name: string): Promise<void> {
  const cancelled = `
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE $1 = ANY (pg_blocking_pids(pid)) AND strpos(query, $2) > 0`;
  while ((await database.query(cancelled, [pid, `.${name}(`])).length === 0);
}

describe.skipIf(URL === undefined)("whoever starts", () => {
  test("hears that it exists where its start comes together with an outcome of the same instance", async () => {
    const { provider } = await open();
    const token = await begin(provider, "a", { activities: [2] });
    const work = await takeWork(provider);
    const [answered] = await slots(provider, 1, new Map([["a", token]]), doneEvent);

    const acked = provider.ackWorkItem(work.lockToken, done("a", 2));
    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("exists");
    await Promise.all([acked, answered]);
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2), ...doneEvent("a").events!]);
  });

  test("hears of a beginning that was cancelled by the name of the call, and may ask again", async () => {
    const { database, provider } = await open();
    const [cancelled, begun] = await slots(provider, 2, new Map(), first);
    const refused = expect(cancelled).rejects.toMatchObject(LOCK_LOST);
    const rival = await database.rival();
    await rival.query("LOCK TABLE {schema}.history IN SHARE MODE");
    const told = provider.enqueueForOrchestrator(start("a"), ABSENT);
    const failed = expect(told).rejects.toMatchObject({ kind: "transient", operation: "enqueueForOrchestrator" });
    await database.untilBlockedBy(rival);
    await cancelBlocked(database, rival, "commit_turns");
    await Promise.all([failed, refused]);
    await rival.rollback();

    expect(await provider.enqueueForOrchestrator(start("a"), ABSENT)).toBe("enqueued");
    await begun;
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
  });

  test("hears it where a refused one could not be sent while another is on its way; nobody else does", async () => {
    const unhandled: unknown[] = [];
    const hear = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", hear);
    onTestFinished(() => void process.off("unhandledRejection", hear));
    const { database, provider } = await open();
    await begin(await database.provider(AHEAD), "begun");
    const large = JSON.stringify("x".repeat(2_500_000)); // Two of these are two statements.
    const ends = await slots(provider, 2, new Map(), (id) => ({
      events: [started(id), event(id, 2, { type: "OrchestrationCompleted", output: large })],
      metadata: { ...NAMED, status: "Completed", output: "1" },
    }));
    const rival = await database.rival();
    await rival.query("LOCK TABLE {schema}.history, {schema}.messages IN SHARE MODE");
    const refused = provider.enqueueForOrchestrator(start("begun"), ABSENT);
    const failed = expect(refused).rejects.toMatchObject({ kind: "transient", operation: "enqueueForOrchestrator" });
    const other = provider.enqueueForOrchestrator(start("other"), ABSENT);
    await database.untilWaiting(2);
    await cancelBlocked(database, rival, "deliver");
    await provider.read("begun"); // Its answer comes after that of the cancelled one.
    await round();
    await rival.rollback();

    expect(await other).toBe("enqueued");
    await failed;
    await Promise.allSettled(ends);
    expect(unhandled).toEqual([]);
  });
});
