// test/golden/record.ts — runs golden programs and writes down what they leave in the store. Never over what is there.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { encodeEvent } from "../../src/history/codec.js";
import { checkHistory } from "../../src/history/valid-history.js";
import { TestWorld } from "../../src/testing/test-world.js";
import { folderOf } from "./files.js";
import type { Golden } from "./golden.js";
import { GOLDENS } from "./programs.js";

/** Records the programs of these names, each for the first and only time. Answers the files, one for each execution. */
export async function record(names: readonly string[]): Promise<readonly string[]> {
  const goldens = names.map((name) => [name, unrecorded(name)] as const);
  const files: string[] = [];
  for (const [name, golden] of goldens) {
    const folder = folderOf(name);
    const histories = await play(golden);
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of histories) {
      writeFileSync(new URL(file, folder), text, { flag: "wx" });
      files.push(`${name}/${file}`);
    }
  }
  return files;
}

function unrecorded(name: string): Golden {
  const golden = Object.hasOwn(GOLDENS, name) ? GOLDENS[name] : undefined;
  if (golden === undefined) throw new Error(`There is no golden program '${name}'. Write it in test/golden/programs/.`);
  if (existsSync(folderOf(name))) {
    throw new Error(`'${name}' is recorded already, for ever. Add a new program under another name.`);
  }
  return golden;
}

/** The history of every execution, by the name of its file. */
async function play({ orchestrations, activities = [], options = {}, play }: Golden): Promise<Map<string, string>> {
  await using world = await TestWorld.open({ patienceMs: 0 });
  const runtime = await world.start({ orchestrations, activities, ...options });
  await play(world, runtime);
  const files = new Map<string, string>();
  for (const instance of await world.client.listAllInstances()) {
    for (const execution of await world.client.listExecutions(instance)) {
      const events = checkHistory(await world.client.readHistory(instance, execution));
      const file = `${instance.replaceAll(/[^\w-]+/g, "_")}.${execution}.jsonl`;
      if (files.has(file)) throw new Error(`Two instances would share the file ${file}: choose other ids.`);
      files.set(file, events.map((event) => `${encodeEvent(event)}\n`).join(""));
    }
  }
  return files;
}
