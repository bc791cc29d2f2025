// test/catalogue-reporter.ts — fails a test run in which a behaviour of the catalogue was promised but not shown.
//
// `catalogue.json` maps each behaviour to the titles of the tests that show it, or to the reason why there is none. A title
// that did not run, or did not pass on every store, fails the run. A run of some files answers for those files only; one of
// some tests (`-t`) answers for nothing, and says so.

import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";

/** By behaviour: titles of tests, or the reason why it is left out. */
export type Catalogue = Readonly<Record<string, readonly string[] | string>>;

/** A describe block of this name runs the same tests on one of the stores; it is no part of a title. */
const STORE_BLOCK = /^on (memory|sqlite|postgres)$/;

export function readCatalogue(): Catalogue {
  return JSON.parse(readFileSync(new URL("./catalogue.json", import.meta.url), "utf8")) as Catalogue;
}

export class CatalogueReporter implements Reporter {
  #vitest: Vitest | null = null;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const vitest = this.#vitest;
    if (vitest === null || vitest.config.watch) return;
    if (vitest.config.testNamePattern !== undefined) {
      vitest.logger.log("Catalogue of behaviours: not checked, because only some tests were asked for.");
      return;
    }
    const missing = notShown(vitest.config.root, readCatalogue(), outcomes(vitest.config.root, modules));
    if (missing.length === 0) return;
    vitest.logger.error(
      `Catalogue of behaviours: ${missing.length} titles did not run and pass:\n${missing.join("\n")}`,
    );
    process.exitCode = 1;
  }
}

/** Whether each test that was there passed, wherever it ran, by its title. */
function outcomes(root: string, modules: readonly TestModule[]): Map<string, boolean> {
  const passed = new Map<string, boolean>();
  for (const module of modules) {
    const file = relative(root, module.moduleId);
    for (const test of module.children.allTests()) {
      const names = [test.name];
      for (let at = test.parent; at.type === "suite"; at = at.parent) names.unshift(at.name);
      const title = [file, ...names.filter((name) => !STORE_BLOCK.test(name))].join(" > ");
      passed.set(title, (passed.get(title) ?? true) && test.result().state === "passed");
    }
  }
  return passed;
}

/** Of the files that ran, and of files that do not exist. A whole run runs them all. */
export function notShown(root: string, catalogue: Catalogue, passed: ReadonlyMap<string, boolean>): string[] {
  const ran = new Set([...passed.keys()].map(fileOf));
  const isDue = (file: string): boolean => ran.has(file) || !existsSync(join(root, file));
  const promised = new Set(Object.values(catalogue).flatMap((titles) => (typeof titles === "string" ? [] : titles)));
  return [...promised].filter((title) => passed.get(title) !== true && isDue(fileOf(title)));
}

function fileOf(title: string): string {
  return title.slice(0, title.indexOf(" > "));
}
