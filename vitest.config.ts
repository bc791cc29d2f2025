import { defineConfig } from "vitest/config";
import { CatalogueReporter } from "./test/catalogue-reporter.js";
import { mutantLoader } from "./test/provider-tests/mutants/mutant-loader.js";

export default defineConfig({
  plugins: [mutantLoader()],
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    pool: "forks",
    reporters: ["default", new CatalogueReporter()],
    // Vitest leaves one core alone; with two cores that is half of them.
    maxWorkers: "100%",
  },
});
