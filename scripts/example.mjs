// Runs one of the examples, compiled: `npm run example -- hello`. Without a name it tells which there are.

import { readdirSync, readFileSync } from "node:fs";

const EXAMPLES = new URL("../examples/", import.meta.url);
const names = readdirSync(EXAMPLES).flatMap((file) => (file.endsWith(".ts") ? [file.slice(0, -".ts".length)] : []));

const [name] = process.argv.slice(2);
if (names.includes(name)) {
  const { main } = await import(`../dist-examples/${name}.js`);
  await main();
} else {
  if (name !== undefined) process.stderr.write(`there is no example '${name}'\n`);
  process.stderr.write(`usage: npm run example -- NAME\n\n${names.map(titleOf).join("\n")}\n`);
  process.exitCode = 2;
}

/** What the first line of an example says of it. */
function titleOf(example) {
  const [firstLine] = readFileSync(new URL(`${example}.ts`, EXAMPLES), "utf8").split("\n", 1);
  return `${example.padEnd(24)}${firstLine.replace(/^.*? — /, "")}`;
}
