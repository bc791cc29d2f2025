// Loads a module in TypeScript. Vite compiles it: no Node that we support runs all of TypeScript by itself, and Node 20 not even `await using`.

import { runnerImport } from "vite";

export async function importTypeScript(file) {
  const { module } = await runnerImport(file, { configFile: false, logLevel: "error", oxc: { target: "es2022" } });
  return module;
}
