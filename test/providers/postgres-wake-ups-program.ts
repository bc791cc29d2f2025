// A process that waits for the news of others, and then does not any more, and closes nothing. "leaves": it stops when it
// looks for the first time; "waits": when it hears of an instance. It says each time that it looks, and what it hears.

import { Connections } from "../../src/providers/postgres/connections.js";
import { resolveOptions } from "../../src/providers/postgres/options.js";
import { type News, WakeUps } from "../../src/providers/postgres/wake-ups.js";

const [, , how, url, schema] = process.argv;
const settings = resolveOptions(url, { schema: schema!, pollIntervalMs: 3_600_000 });
const connections = await Connections.open(settings);

const wakeUps = new WakeUps({ settings, connections, onNews: (news) => hear(news) });
const leave = wakeUps.enter();

function hear({ instances }: News): void {
  process.stdout.write(instances === "any" ? "looks\n" : `${instances.join()}\n`);
  if (how === "leaves" || instances !== "any") leave();
}
