// scripts/bundle-load.mjs — makes one file of JavaScript of a load that is written in TypeScript, for processes that run it.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "vite";

/** Answers with its address, and how to remove it. */
export async function bundleLoad(file) {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-load-"));
  await build({
    configFile: false,
    logLevel: "error",
    build: {
      ssr: file,
      outDir: folder,
      emptyOutDir: false,
      rolldownOptions: { output: { entryFileNames: "load.mjs", codeSplitting: false } },
    },
  });
  return {
    load: pathToFileURL(join(folder, "load.mjs")).href,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
