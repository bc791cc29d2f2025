// Type tests: the files `*.test-d.ts` beside this one are compiled and never run. A wrong type is an error of the compiler,
// and so is a misuse that it lets pass, because `@ts-expect-error` must have something to expect.
//
// They are compiled twice: here against the declarations that are published (`npm test` has just built them), and by
// `npm run typecheck` against the sources.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { ROOT, run, TSC } from "../package/packing.js";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));
const TYPE_TESTS = readdirSync(FOLDER).filter((file) => file.endsWith(".test-d.ts"));

test("the types that users see are what the type tests say", async () => {
  expect(TYPE_TESTS.length).toBeGreaterThan(0);
  expect(await compile(FOLDER)).toBe("");
});

test("every expectation of a type test fails where the type is another", async () => {
  const folder = mkdtempSync(join(ROOT, ".docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../test/types/tsconfig.json", include: ["*.ts"] }),
  );
  const expected = TYPE_TESTS.map((file) => {
    const text = readFileSync(join(FOLDER, file), "utf8");
    const expectations = /\.(toEqualTypeOf|toExtend)</g;
    writeFileSync(join(folder, file), text.replaceAll(expectations, ".not.$1<"));
    return [file, [...text.matchAll(expectations)].length];
  });

  const said = await compile(folder);
  const errors = TYPE_TESTS.map((file) => [file, said.split("\n").filter((line) => line.includes(`${file}(`)).length]);
  expect(errors).toEqual(expected);
});

test("a call that fits no form is explained by the typed one, at the argument that is wrong", async () => {
  const folder = mkdtempSync(join(ROOT, ".docs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../test/types/tsconfig.json", include: ["*.ts"] }),
  );
  const calls = [
    [
      "ctx.scheduleActivity(charge, 1);",
      "'number' is not assignable to parameter of type '{ readonly amount: number; }'",
    ],
    [
      "ctx.scheduleActivity(charge, { amount: 1 }, { retry: { maxAttemps: 3 } });",
      "Did you mean to write 'maxAttempts'?",
    ],
    ["ctx.scheduleSubOrchestration(child, 1);", "'number' is not assignable to parameter of type 'string'"],
    ["client.start(child, { input: 1 });", "'number' is not assignable to type 'string'"],
    ['client.start(child, { inptu: "x" });', "Did you mean to write 'input'?"],
    ["client.getHandle(child, 5);", "'number' is not assignable to parameter of type 'string'"],
  ] as const;
  const preamble = [
    'import type { ActivityDefinition, Client, OrchestrationContext, OrchestrationDefinition } from "duroxide-ts";',
    "declare const ctx: OrchestrationContext;",
    "declare const client: Client;",
    "declare const charge: ActivityDefinition<{ readonly amount: number }, string>;",
    "declare const child: OrchestrationDefinition<string, number>;",
  ];
  writeFileSync(join(folder, "calls.ts"), [...preamble, ...calls.map(([call]) => call)].join("\n"));

  const said = (await compile(folder)).split(/^(?=\S)/m);
  expect(said).toEqual(calls.map(([, message]) => expect.stringContaining(message)));
});

/** What the compiler says: nothing, if all is well. */
async function compile(folder: string): Promise<string> {
  return run(process.execPath, [TSC, "--pretty", "false", "-p", folder]).then(
    ({ stdout }) => stdout,
    ({ stdout }: { readonly stdout: string }) => stdout,
  );
}
