// Calls that are pending at one moment are one statement. What each of them promises does not change by that.

import { randomBytes } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Provider } from "../../src/provider/provider.js";
import { act, done, queued, raised, scheduled, start, started, turn } from "../../src/provider-tests/builders.js";
import { TestSchemas } from "../../src/provider-tests/own-stores.js";
import { create, fetchTurn, fetchWork, takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import { PostgresProvider } from "../../src/providers/postgres/index.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const URL = process.env.DUROXIDE_TEST_PG_URL ?? "";
const LOCK_MS = 5_000;
const NAMES = Array.from({ length: 10 }, (_, place) => `instance-${place}`);

async function open() {
  const schemas = new TestSchemas(URL);
  const schema = schemas.take();
  const clock = new VirtualClock();
  const provider = await PostgresProvider.open(URL, { schema, clock, wakeUps: "local" });
  onTestFinished(async () => {
    await provider.close();
    await schemas.run(schema, "DROP SCHEMA {schema} CASCADE");
  });
  /** Which transactions have written the rows that are in a table now: each row knows its own. */
  const writers = async (table: string, where = "true"): Promise<number> => {
    const count = `SELECT count(DISTINCT xmin::text)::int AS writers FROM {schema}.${table} WHERE ${where}`;
    const [row] = await schemas.run<{ readonly writers: number }>(schema, count);
    return row!.writers;
  };
  return { provider, clock, writers };
}

/** Instances that run and are locked: their tokens, in the order of the names. */
async function lockedTurns(provider: Provider, names: readonly string[], lockTimeoutMs = LOCK_MS): Promise<string[]> {
  const tokens: string[] = [];
  for (const name of names) {
    await create(provider, name);
    await provider.enqueueForOrchestrator(raised(name));
    tokens.push((await takeTurn(provider, { lockTimeoutMs })).lockToken);
  }
  return tokens;
}

function kindOf(outcome: PromiseSettledResult<unknown>): unknown {
  return outcome.status === "fulfilled" ? "committed" : (outcome.reason as { readonly kind?: unknown }).kind;
}

describe.skipIf(URL === "")("calls that are pending at one moment", () => {
  test("are one transaction: ten acks", async () => {
    const { provider, writers } = await open();
    const tokens = await lockedTurns(provider, NAMES);

    await Promise.all(
      tokens.map((token, place) =>
        provider.ackOrchestrationItem(token, turn({ events: [scheduled(NAMES[place]!, 2)] })),
      ),
    );

    expect(await writers("history", "event_id = 2")).toBe(1);
    for (const name of NAMES) expect(await provider.read(name)).toEqual([started(name), scheduled(name, 2)]);
  });

  test("are one transaction: ten starts, ten fetches, ten activities, ten completions", async () => {
    const { provider, writers } = await open();
    await Promise.all(NAMES.map((name) => provider.enqueueForOrchestrator(start(name))));
    expect(await writers("messages")).toBe(1);

    const turns = await Promise.all(NAMES.map(() => fetchTurn(provider)));
    expect(turns.map((locked) => locked?.item.instance)).toEqual(NAMES);
    expect(await writers("schedule")).toBe(1);

    await Promise.all(NAMES.map((name, place) => provider.enqueueForWorker(act(name, place + 2))));
    expect(await writers("activities")).toBe(1);
    const works = await Promise.all(NAMES.map(() => takeWork(provider)));
    expect(works.map(({ item }) => item.instance)).toEqual(NAMES);
    expect(await writers("activities")).toBe(1);

    await Promise.all(
      works.map(({ item, lockToken }) => provider.ackWorkItem(lockToken, done(item.instance, item.id))),
    );
    expect(await writers("messages", "kind = 'other'")).toBe(1);
    expect(await fetchWork(provider)).toBeNull();
  });

  test("commit without the one among them that has lost its lock", async () => {
    const { provider, clock, writers } = await open();
    const [lost] = await lockedTurns(provider, ["lost"]);
    const tokens = await lockedTurns(provider, NAMES, 2 * LOCK_MS);
    await clock.advance(LOCK_MS);
    const all = [...tokens.slice(0, 5), lost!, ...tokens.slice(5)];
    const names = [...NAMES.slice(0, 5), "lost", ...NAMES.slice(5)];

    const outcomes = await Promise.allSettled(
      all.map((token, place) =>
        provider.ackOrchestrationItem(
          token,
          turn({ events: [scheduled(names[place]!, 2)], workerItems: [act(names[place]!, 2)] }),
        ),
      ),
    );

    expect(outcomes.map(kindOf)).toEqual([
      ...Array.from({ length: 5 }, () => "committed"),
      "lock-lost",
      ...Array.from({ length: 5 }, () => "committed"),
    ]);
    expect(await writers("history", "event_id = 2")).toBe(1);
    for (const name of NAMES) expect(await provider.read(name)).toEqual([started(name), scheduled(name, 2)]);
    expect(await provider.read("lost")).toEqual([started("lost")]);
    const works = await Promise.all([...NAMES, "none"].map(() => fetchWork(provider)));
    expect(works.flatMap((locked) => locked?.item.instance ?? [])).toEqual(NAMES);
  });

  test("commit without the activities among them that were taken away", async () => {
    const { provider, clock } = await open();
    await provider.enqueueForWorker(act("late", 1));
    const late = await takeWork(provider, { lockTimeoutMs: LOCK_MS });
    await clock.advance(LOCK_MS);
    for (const name of NAMES) await provider.enqueueForWorker(act(name, 1));
    const works = await Promise.all([...NAMES, "late"].map(() => takeWork(provider)));
    const acks = [late, ...works];

    const outcomes = await Promise.allSettled(
      acks.map(({ item, lockToken }) => provider.ackWorkItem(lockToken, done(item.instance, item.id))),
    );

    expect(outcomes.map(kindOf)).toEqual(["lock-lost", ...works.map(() => "committed")]);
  });

  test("commit without the one among them whose event is there already", async () => {
    const { provider, writers } = await open();
    const tokens = await lockedTurns(provider, NAMES);
    const events = NAMES.map((name, place) => (place === 3 ? started(name) : scheduled(name, 2)));

    const outcomes = await Promise.allSettled(
      tokens.map((token, place) => provider.ackOrchestrationItem(token, turn({ events: [events[place]!] }))),
    );

    expect(outcomes.map(kindOf)).toEqual(NAMES.map((_, place) => (place === 3 ? "duplicate-event" : "committed")));
    expect(await writers("history", "event_id = 2")).toBe(9); // Then they are run one by one.
    await provider.ackOrchestrationItem(tokens[3]!, turn({ events: [scheduled(NAMES[3]!, 2)] })); // Its lock is still held.
    for (const name of NAMES) expect(await provider.read(name)).toEqual([started(name), scheduled(name, 2)]);
  });

  test("commit without the one among them that the database cannot store", async () => {
    const { provider } = await open();
    const tooLong = incompressible(9_000);

    const outcomes = await Promise.allSettled(
      [...NAMES, tooLong].map((name) => provider.enqueueForOrchestrator(start(name))),
    );

    expect(outcomes.map(kindOf)).toEqual([...NAMES.map(() => "committed"), "invalid"]);
    const turns = await Promise.all([...NAMES, "none"].map(() => fetchTurn(provider)));
    expect(turns.flatMap((locked) => locked?.item.instance ?? []).sort()).toEqual(NAMES);
  });

  test("with one token are refused but for the first", async () => {
    const { provider } = await open();
    const [token] = await lockedTurns(provider, ["a"]);
    const acks = [2, 3, 4].map((id) => provider.ackOrchestrationItem(token!, turn({ events: [scheduled("a", id)] })));
    expect((await Promise.allSettled(acks)).map(kindOf)).toEqual(["committed", "lock-lost", "lock-lost"]);
    expect(await provider.read("a")).toEqual([started("a"), scheduled("a", 2)]);
  });

  test("get all that they may have, of however few sessions the oldest work is", async () => {
    const { provider } = await open();
    const sessions = Array.from({ length: 8 }, (_, place) => `session-${place}`);
    for (const [place, sessionId] of sessions.entries()) {
      const works = Array.from({ length: 40 }, (_, id) =>
        provider.enqueueForWorker(act(`of-${place}`, id, { sessionId })),
      );
      await Promise.all(works);
    }
    for (const id of [1, 2, 3]) await provider.enqueueForWorker(act("free", id));

    const owners = Array.from({ length: 32 }, (_, place) => ({ ownerId: `owner-${place}`, lockTimeoutMs: LOCK_MS }));
    const works = await Promise.all(owners.map((session) => fetchWork(provider, { session })));

    const got = works.flatMap((locked) => locked?.item.sessionId ?? locked?.item.instance ?? []);
    expect(got.sort()).toEqual(["free", "free", "free", ...sessions]);
  });

  test("share the work of one session where they have one owner", async () => {
    const { provider } = await open();
    for (let id = 1; id <= 12; id += 1) await provider.enqueueForWorker(act("a", id, { sessionId: "s" }));
    const session = { ownerId: "process", lockTimeoutMs: LOCK_MS };

    const works = await Promise.all(NAMES.map(() => fetchWork(provider, { session })));

    expect(works.map((locked) => locked?.item.id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(new Set(works.map((locked) => locked?.lockToken)).size).toBe(10);
  });

  test("are made before the provider is closed", async () => {
    const { provider, writers } = await open();
    const sent = Array.from({ length: 500 }, () => provider.enqueueForOrchestrator(queued("a")));
    await provider.close();
    expect(new Set(await Promise.all(sent))).toEqual(new Set(["enqueued"]));
    expect(await writers("messages")).toBeGreaterThan(1); // More than one statement takes.
  });

  test("keep their order: messages to one instance", async () => {
    const { provider } = await open();
    const names = Array.from({ length: 500 }, (_, place) => `message-${place}`);
    await Promise.all([
      provider.enqueueForOrchestrator(start("a")),
      ...names.map((name) => provider.enqueueForOrchestrator(queued("a", name))),
    ]);
    const { item } = await takeTurn(provider);
    expect(item.messages.flatMap((message) => (message.type === "QueueMessage" ? message.name : []))).toEqual(names);
  });
});

/** It does not compress: the database would find room for what does. */
function incompressible(bytes: number): string {
  return randomBytes(bytes).toString("base64");
}
