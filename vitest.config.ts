import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { CatalogueReporter } from "./test/catalogue-reporter.js";
import { mutantLoader } from "./test/provider-tests/mutants/mutant-loader.js";

const IN_PROCESS = ["behaviours", "client", "engine", "history", "provider", "runtime"].map(
  (folder) => `test/${folder}/**/*.test.ts`,
);

/** What they find, they find on one version of Node. */
const HARNESSES = [
  "test/fuzz/**/*.test.ts",
  "test/postgres/**/*.test.ts",
  "test/power-cut/**/*.test.ts",
  "test/provider-tests/mutants.test.ts",
  "test/simulation/planted/*.test.ts",
  "test/system/fleet.test.ts",
  "test/system/kills.test.ts",
  "test/system/soak.test.ts",
];

export default defineConfig({
  plugins: [mutantLoader()],
  resolve: { alias: entryPointsAsSources() },
  test: {
    testTimeout: 30_000,
    pool: "forks",
    globalSetup: ["test/postgres/server.ts"],
    reporters: ["default", new CatalogueReporter()],
    projects: [
      // Worlds of their own that leave nothing behind: they share a process, which loads the sources once.
      { extends: true, test: { name: "in-process", include: IN_PROCESS, isolate: false } },
      // Programs, files, processes, whole packages: each file of tests has a process to itself.
      {
        extends: true,
        test: {
          name: "apart",
          include: ["test/**/*.test.ts", "examples/testing/*.test.ts"],
          exclude: [...IN_PROCESS, ...HARNESSES],
        },
      },
      // Those that try to break something, and must be able to.
      { extends: true, test: { name: "harnesses", include: HARNESSES } },
    ],
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
