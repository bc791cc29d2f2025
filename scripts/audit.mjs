// Asks the registry whether anything that users of this package install is known to be vulnerable: `npm run audit:deps`.
// A registry that offers no audit is said so in a line that is easy to find, and fails nothing.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { auditVerdict } from "./audit-verdict.mjs";

/** No longer than a build should wait for an answer that may never come. */
const PATIENCE = ["--fetch-retries=1", "--fetch-timeout=30000"];
const AUDIT = ["audit", "--omit=dev", "--audit-level=high", "--json", ...PATIENCE];

const npm = spawnSync("npm", AUDIT, {
  cwd: fileURLToPath(new URL("..", import.meta.url)),
  encoding: "utf8",
  shell: process.platform === "win32", // There, npm is a script.
});
if (npm.error !== undefined) throw npm.error;

const { kind, message } = auditVerdict(npm.stdout);
const WORDS = {
  clean: "Dependency audit: passed",
  vulnerable: "Dependency audit: FAILED, known vulnerabilities in",
  unanswered: "Dependency audit: NOT DONE, the registry does not answer audit requests",
  broken: "Dependency audit: FAILED, npm could not ask",
};
process.stdout.write(`${WORDS[kind]}: ${message}\n`);
process.exitCode = kind === "clean" || kind === "unanswered" ? 0 : 1;
