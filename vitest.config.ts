import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { CatalogueReporter } from "./test/catalogue-reporter.js";
import { mutantLoader } from "./test/provider-tests/mutants/mutant-loader.js";

export default defineConfig({
  plugins: [mutantLoader()],
  resolve: { alias: entryPointsAsSources() },
  test: {
    include: ["test/**/*.test.ts", "examples/testing/*.test.ts"],
    testTimeout: 30_000,
    pool: "forks",
    reporters: ["default", new CatalogueReporter()],
    // Vitest leaves one core alone; with two cores that is half of them.
    maxWorkers: "100%",
  },
});

/** The examples import the package by its name, as users do. Here that means its sources, not the last build. */
function entryPointsAsSources(): { find: RegExp; replacement: string }[] {
  const { name, exports } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as Manifest;
  return Object.entries(exports).flatMap(([path, target]) => {
    if (typeof target === "string") return [];
    const source = target.default.replace("./dist/", "./src/").replace(/\.js$/, ".ts");
    return [
      {
        find: new RegExp(`^${name}${path.slice(1)}$`),
        replacement: fileURLToPath(new URL(source, import.meta.url)),
      },
    ];
  });
}

interface Manifest {
  readonly name: string;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}
