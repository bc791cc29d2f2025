// mutants/mutant-loader.ts — a Vite plugin: `…/memory-provider.ts?mutant=3` is the provider with the patches of MUTANTS[3].
//
// The query is handed on to the other files of the provider's folder, and to the files of the kit that patches are about, so
// each mutant is a module graph of its own. What they import from elsewhere is the real thing: errors keep their classes.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Plugin } from "vitest/config";
import { MUTANTS } from "./index.js";
import type { Mutant, Patch } from "./mutant.js";

const PATCHED_IN_THE_KIT = /\/provider\/kit\/(text-column|start-identity)\.js$/;

export function mutantLoader(): Plugin {
  return {
    name: "duroxide-mutants",
    enforce: "pre",
    async resolveId(source, importer) {
      const mutant = mutantOf(importer);
      if (mutant === null || !(source.startsWith("./") || PATCHED_IN_THE_KIT.test(source))) return null;
      const resolved = await this.resolve(source, withoutQuery(importer!), { skipSelf: true });
      return resolved === null ? null : `${resolved.id}?mutant=${MUTANTS.indexOf(mutant)}`;
    },
    load(id) {
      const mutant = mutantOf(id);
      if (mutant === null) return null;
      const file = withoutQuery(id);
      return mutant.patches
        .filter((patch) => patch.file === basename(file))
        .reduce((source, patch) => patched(source, patch, mutant), readFileSync(file, "utf8"));
    },
  };
}

function patched(source: string, { file, find, replace }: Patch, { name }: Mutant): string {
  const pieces = source.split(find);
  if (pieces.length !== 2) throw new Error(`Mutant '${name}': its text stands ${pieces.length - 1} times in ${file}.`); // M1
  return pieces.join(replace);
}

function mutantOf(id: string | undefined): Mutant | null {
  const index = /\?mutant=(\d+)/.exec(id ?? "")?.[1];
  return index === undefined ? null : (MUTANTS[Number(index)] ?? null);
}

function withoutQuery(id: string): string {
  return id.replace(/\?.*$/, "");
}
