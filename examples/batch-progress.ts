// Batch progress — a long job that tells how far it is.
//
//   npx tsx node_modules/duroxide-ts/examples/batch-progress.ts
//   npm run example -- batch-progress   (in a checkout of the repository)
//
// The custom status is committed with the turn that sets it: what it says has really happened, and it is still there when
// the process that said it is gone.

import { activity, Client, type OrchestrationHandle, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Import {
  readonly file: string;
  readonly rows: number;
}

export interface Batch {
  readonly file: string;
  readonly from: number;
  readonly to: number;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}

const ROWS_PER_BATCH = 250;

/** A batch may run twice after a crash: writing the same rows again must change nothing. */
export const importBatch = activity("ImportBatch", async (_ctx, batch: Batch): Promise<number> => {
  return batch.to - batch.from;
});

export const importCustomers = orchestration("ImportCustomers", async (ctx, { file, rows }: Import) => {
  let done = 0;
  while (done < rows) {
    const batch: Batch = { file, from: done, to: Math.min(done + ROWS_PER_BATCH, rows) };
    done += await ctx.scheduleActivity(importBatch, batch, { retry: { maxAttempts: 5 } });
    ctx.setCustomStatus(JSON.stringify({ done, total: rows } satisfies Progress));
  }
  return done;
});

/** Every progress that is worth showing, until the job has ended. Whoever watches slowly sees several steps as one. */
export async function* progressOf(handle: OrchestrationHandle): AsyncGenerator<Progress> {
  let lastSeenVersion = 0;
  for (;;) {
    const { status, customStatus, customStatusVersion } = await handle.waitForStatusChange({ lastSeenVersion });
    const isNews = customStatus !== null && customStatusVersion > lastSeenVersion;
    if (isNews) yield JSON.parse(customStatus) as Progress;
    if (status === "Completed" || status === "Failed") return;
    lastSeenVersion = customStatusVersion;
  }
}

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _runtime = await Runtime.start({
    provider,
    orchestrations: [importCustomers],
    activities: [importBatch],
  });
  const client = new Client(provider);

  const handle = await client.start(importCustomers, {
    instanceId: "import-7",
    input: { file: "customers.csv", rows: 900 },
  });
  for await (const { done, total } of progressOf(handle)) console.log(`${done} of ${total} rows`);
  console.log(`imported: ${await handle.result()}`);
}

if (process.argv[1] === import.meta.filename) await main();
