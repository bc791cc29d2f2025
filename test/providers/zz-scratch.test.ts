import { expect, test } from "vitest";
import { postgresStore } from "../../src/provider-tests/own-stores.js";
import { runCase } from "../../src/provider-tests/index.js";
import { Batcher } from "../../src/provider/kit/batcher.js";
import { act, start } from "../../src/provider-tests/builders.js";
import { pollTurn, pollWork, waits } from "../../src/provider-tests/polls.js";
import { takeTurn, takeWork } from "../../src/provider-tests/steps.js";
import type { ProviderCase } from "../../src/provider-tests/provider-case.js";
const it: ProviderCase = { id: "x", promise: "x", async run(t) {
  const { provider } = await t.open();
  await provider.enqueueForOrchestrator(start("a"));
  await provider.enqueueForWorker(act("a", 1));
  const long = { lockTimeoutMs: 8 * t.lockMs };
  const [locked, work] = [await takeTurn(provider, long), await takeWork(provider, long)];
  const forTurn = pollTurn(t, provider); const forWork = pollWork(t, provider);
  await waits(t, forTurn, "turn"); await waits(t, forWork, "work");
  await provider.renewOrchestrationItemLock(locked.lockToken, t.lockMs);
  await provider.renewWorkItemLock(work.lockToken, t.lockMs);
  await t.outlive(t.lockMs);
  t.equal((await t.soon(forTurn, "turn"))?.attemptCount, 2, "turn");
  t.equal((await t.soon(forWork, "work"))?.attemptCount, 2, "work");
} };
test("pg", async () => {
  const { outcome } = await runCase({ name: "x", about: "x", cases: [it] }, it, postgresStore(process.env.DUROXIDE_TEST_PG_URL!), 20_000);
  console.log("PG", outcome);
});
test("errorOf throws", async () => {
  const seen: unknown[] = [];
  const on = (e: unknown) => void seen.push(e);
  process.on("unhandledRejection", on);
  const b = new Batcher<string, string>({ run: () => { throw new Error("run"); }, errorOf: () => { throw new Error("bug"); } });
  const answer = await Promise.race([b.submit("a").catch((e) => `rejected ${e}`), new Promise((r) => setTimeout(() => r("never answered"), 200))]);
  console.log("BATCHER", answer, seen.length);
  process.off("unhandledRejection", on);
});
