// Runs a program in TypeScript: `node run-typescript.mjs PROGRAM …`.

import { importTypeScript } from "./import-typescript.mjs";

await importTypeScript(process.argv[2]);
