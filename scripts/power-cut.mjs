// Records what a store on SQLite writes, cuts the power at many points, and says what each cut has lost:
// `npm run power-cut -- [--durability full|process-crash] [--writer always|never] [--seed N] [--cuts 200] [--images 3] [--instances 30]`.
// `--writer`: whether the store has a thread that writes. With one a seed chooses the cuts alone: what two threads do when, no seed says.
// `--images`: of each cut, with different fates for what was not synced. `--json`: for programs. Needs strace, which is Linux.

import { fileURLToPath } from "node:url";
import { importTypeScript } from "./import-typescript.mjs";

await importTypeScript(fileURLToPath(new URL("../test/power-cut/power-cut-program.ts", import.meta.url)));
