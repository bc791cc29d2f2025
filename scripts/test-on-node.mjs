// Runs the test suite on other versions of Node: `npm run test:node -- 22 24 26`. Each comes from the npm package `node`.
// The harnesses (vitest.config.ts) are left out: what they find, they find on one version.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PROJECTS = ["in-process", "apart"];

const versions = process.argv.slice(2);
if (versions.length === 0) versions.push("22", "24", "26");

let hasFailed = false;
for (const version of versions) {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-node-"));
  try {
    execFileSync("npm", ["install", "--prefix", folder, "--no-save", "--silent", `node@${version}`], {
      stdio: "inherit",
    });
    const node = join(folder, "node_modules", "node", "bin", "node");
    const found = execFileSync(node, ["--version"], { encoding: "utf8" }).trim();
    process.stdout.write(`\n== the suite on Node ${found}\n`);
    const projects = PROJECTS.map((name) => `--project=${name}`);
    const { status } = spawnSync(node, ["node_modules/vitest/vitest.mjs", "run", ...projects], { stdio: "inherit" });
    if (status !== 0) hasFailed = true;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
process.exit(hasFailed ? 1 : 0);
