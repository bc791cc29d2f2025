// Tags — work that only some workers can do, and what happens when none of them is there.
//
//   npx tsx node_modules/duroxide-ts/examples/tags.ts
//   npm run example -- tags   (in a checkout of the repository)
//
// A tag on a call is the wish, the tag filter of a runtime is the offer. Whoever does not offer a tag never sees the work;
// it waits in the queue until somebody does, or until the orchestration no longer wants it.

import { activity, Client, type Duration, orchestration, Runtime } from "duroxide-ts";
import { MemoryProvider } from "duroxide-ts/memory";

export interface Video {
  readonly title: string;
  /** How long the graphics cards may take before an ordinary processor does it, slowly. */
  readonly gpuWithin: Duration;
}

export const render = activity("Render", async (ctx, title: string): Promise<string> => {
  return `${title}.mp4, rendered on ${ctx.tag ?? "cpu"}`;
});

export const upload = activity("Upload", async (_ctx, file: string): Promise<string> => `uploaded: ${file}`);

export const publishVideo = orchestration("PublishVideo", async (ctx, video: Video): Promise<string> => {
  const first = await ctx.race({
    rendered: ctx.scheduleActivity(render, video.title, { tag: "gpu" }),
    tooLate: ctx.scheduleTimer(video.gpuWithin),
  });
  // The loser is cancelled. If nobody has taken it by now, nobody ever will: it is not rendered twice.
  const file = first.winner === "rendered" ? first.value : await ctx.scheduleActivity(render, video.title);
  return ctx.scheduleActivity(upload, file);
});

/** The application: takes the decisions and does the ordinary work. It serves no tag. */
export const application = { orchestrations: [publishVideo], activities: [render, upload] };

/** A machine with a graphics card: does what is meant for it, and nothing else. */
export const gpuWorker = { activities: [render], tagFilter: { kind: "tags", tags: ["gpu"] } } as const;

export async function main(): Promise<void> {
  await using provider = new MemoryProvider();
  await using _application = await Runtime.start({ provider, ...application });
  const client = new Client(provider);

  const trailer = await client.start(publishVideo, { input: { title: "trailer", gpuWithin: "300ms" } });
  console.log(await trailer.result());

  await using _gpuWorker = await Runtime.start({ provider, ...gpuWorker });
  const film = await client.start(publishVideo, { input: { title: "film", gpuWithin: "1h" } });
  console.log(await film.result());
}

if (process.argv[1] === import.meta.filename) await main();
