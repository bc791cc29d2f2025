import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeProvider } from "duroxide-ts/provider-tests/node-test";
import { JsonFileProvider } from "./json-file-provider.js";
import type { Tables } from "./tables.js";

describeProvider("one JSON file", {
  polling: "short",
  open: async ({ clock }) => {
    const directory = await mkdtemp(join(tmpdir(), "json-file-provider-"));
    const file = join(directory, "store.json");
    const provider = await JsonFileProvider.open(file, { clock });
    return {
      provider,
      // No `openAnother`: the state is in memory, and two providers would write over each other. One after the other may.
      reopen: () => JsonFileProvider.open(file, { clock }),
      corruptHistory: (instance) =>
        provider.tamper((tables) => {
          for (const event of tables.events) if (event.instance === instance) event.text = "no event";
        }),
      corruptQueues: (instance) =>
        provider.tamper((tables) => {
          const queued = [...tables.messages, ...tables.activities];
          for (const row of queued) if (row.instance === instance) row.text = "no work item";
        }),
      // From the file, not from memory: attempts must be counted durably.
      maxAttemptCount: async (instance) => {
        const tables: Tables = JSON.parse(await readFile(file, "utf8"));
        const messages = tables.messages.filter((message) => message.instance === instance);
        return Math.max(0, ...messages.map(({ attempts }) => attempts));
      },
      close: () => rm(directory, { recursive: true }),
    };
  },
});
