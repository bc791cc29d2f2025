// Sessions — activities that belong together run on one worker, where the first has left what the others need.
//
//   npx tsx node_modules/duroxide-ts/examples/sessions.ts
//   npm run example -- sessions   (in a checkout of the repository)
//
// A session saves work, it does not keep anything safe: a worker can die, and its sessions go to another. So what a worker
// holds in memory must be something that can be made again.

import { setTimeout as pause } from "node:timers/promises";
import { activity, Client, orchestration, type Provider, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Page {
  readonly archive: string;
  readonly number: number;
}

/** Declarations: what the orchestration needs to know. Each worker brings its own implementation. */
export const countPages = activity<string, number>("CountPages");
export const importPage = activity<Page, number>("ImportPage");

export const importArchive = orchestration("ImportArchive", async (ctx, archive: string): Promise<number> => {
  const session = { sessionId: ctx.instanceId };
  const pages = await ctx.scheduleActivity(countPages, archive, session);
  let imported = 0;
  for (let number = 0; number < pages; number += 1) {
    imported += await ctx.scheduleActivity(importPage, { archive, number }, session);
  }
  return imported;
});

export type Download = (archive: string) => Promise<readonly (readonly string[])[]>;

/** The activities of one worker process. The archives that it has downloaded are in its own memory. */
export function importActivities(download: Download) {
  const archives = new Map<string, ReturnType<Download>>();
  const open = (archive: string): ReturnType<Download> => {
    const pages = archives.get(archive) ?? download(archive);
    archives.set(archive, pages);
    pages.catch(() => archives.delete(archive)); // so that a retry downloads again
    return pages;
  };
  return [
    activity(countPages, async (_ctx, archive) => (await open(archive)).length),
    activity(importPage, async (_ctx, page) => (await open(page.archive))[page.number]?.length ?? 0),
  ];
}

function startWorker(provider: Provider, name: string): Promise<Runtime> {
  const activities = importActivities(async (archive) => {
    console.log(`${name} downloads ${archive}`);
    await pause(100); // stands in for what makes it worth while to do it once
    return [["Ada", "Grace"], ["Edsger"], ["Barbara", "Donald", "Tony"]];
  });
  return Runtime.start({
    provider,
    orchestrations: [importArchive],
    activities,
    workerNodeId: name, // after a restart its sessions are its own again
    workerConcurrency: 2, // so few only to show that the work is shared out
  });
}

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _workerA = await startWorker(provider, "worker-a"); // in real life, processes on two machines
  await using _workerB = await startWorker(provider, "worker-b");
  const client = new Client(provider);

  const archives = ["customers-1.zip", "customers-2.zip", "customers-3.zip", "customers-4.zip"];
  const handles = await Promise.all(
    archives.map((archive) => client.start(importArchive, { instanceId: `import-${archive}`, input: archive })),
  );
  const imported = await Promise.all(handles.map((handle) => handle.result()));
  console.log(`rows imported: ${imported.join(", ")}`);
}

if (process.argv[1] === import.meta.filename) await main();
