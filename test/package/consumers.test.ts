// Projects that install the package: in JavaScript, in TypeScript under every resolution it serves, and through a bundler.

import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, type Rolldown } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ENTRY_POINTS, packAsBuilt, ROOT, run, TSC } from "./packing.js";

const project = mkdtempSync(join(tmpdir(), "duroxide-consumer-"));
const modules = join(project, "node_modules");

beforeAll(async () => {
  write("package.json", JSON.stringify({ private: true, type: "module" }));
  const tarball = await packAsBuilt(project);
  // Without its optional driver, which would have to come from a registry.
  const flags = ["--offline", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", ["install", ...flags, tarball], { cwd: project, shell: process.platform === "win32" });
  // The test runner that one entry point is for, and the types of Node, as the project itself would have installed them.
  // Not the types of the PostgreSQL driver: nobody must need them.
  mkdirSync(join(modules, "@types"));
  const types = readdirSync(join(ROOT, "node_modules/@types")).filter((name) => name !== "pg");
  for (const name of ["vitest", "undici-types", ...types.map((type) => `@types/${type}`)]) {
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name), "junction");
  }
}, 60_000);

afterAll(() => rmSync(project, { recursive: true, force: true }));

describe("plain JavaScript", () => {
  test("imports every entry point", async () => {
    const names = JSON.stringify(ENTRY_POINTS.map(({ name }) => name));
    write(
      "every-entry-point.js",
      `for (const name of ${names}) console.log(name, Object.keys(await import(name)).length > 0);`,
    );
    const { stdout, stderr } = await node("every-entry-point.js");

    expect(stdout.trim().split("\n")).toEqual(ENTRY_POINTS.map(({ name }) => `${name} true`));
    expect(stderr).toBe("");
  });

  test("runs an orchestration in memory, and ends by itself", async () => {
    write(
      "hello.js",
      `
      import { activity, Client, orchestration, Runtime } from "duroxide-ts";
      import { MemoryProvider } from "duroxide-ts/memory";

      const hello = activity("Hello", async (_ctx, name) => \`Hello, \${name}!\`);
      const greet = orchestration("Greet", async (ctx, name) => ctx.scheduleActivity(hello, name));
      const provider = new MemoryProvider();
      const runtime = await Runtime.start({ provider, orchestrations: [greet], activities: [hello] });
      const handle = await new Client(provider).start(greet, { input: "world" });
      console.log(await handle.result());
      await runtime.shutdown();
      `,
    );
    expect(await node("hello.js")).toMatchObject({ stdout: "Hello, world!\n", stderr: "" });
  });

  test("of the old kind requires it", async () => {
    write("required.cjs", `const { activity } = require("duroxide-ts"); console.log(activity("A").name);`);
    expect(await node("required.cjs")).toMatchObject({ stdout: "A\n" });
  });

  test("loads no SQLite before a file is opened", async () => {
    const stand = join(modules, "@photostructure/sqlite");
    mkdirSync(stand, { recursive: true });
    writeFileSync(join(stand, "package.json"), JSON.stringify({ name: "@photostructure/sqlite", main: "index.js" }));
    writeFileSync(join(stand, "index.js"), `globalThis.driver = true; exports.DatabaseSync = null;`);
    const names = JSON.stringify(ENTRY_POINTS.map(({ name }) => name));
    write(
      "lazy.js",
      `
      const isLoaded = () => globalThis.driver === true || process.moduleLoadList.includes("NativeModule sqlite");
      for (const name of ${names}) await import(name);
      console.log(isLoaded());
      const { SqliteProvider } = await import("duroxide-ts/sqlite");
      await SqliteProvider.open("app.db").then((provider) => provider.close(), () => {});
      console.log(isLoaded());
      `,
    );
    expect(await node("lazy.js")).toMatchObject({ stdout: "false\ntrue\n", stderr: "" });
  });

  test("does without PostgreSQL, unless it imports just that", async () => {
    const folder = join(modules, "duroxide-ts/dist/providers/postgres");
    const names = ENTRY_POINTS.map(({ name }) => name).filter((name) => name !== "duroxide-ts/postgres");
    write("others.js", `for (const name of ${JSON.stringify(names)}) await import(name);`);
    renameSync(folder, `${folder}-away`);
    try {
      expect(await node("others.js")).toEqual({ stdout: "", stderr: "" });
    } finally {
      renameSync(`${folder}-away`, folder);
    }
  });

  test("needs the PostgreSQL driver when a database is opened, not before, and is told where it is missing", async () => {
    write(
      "driver.js",
      `
      const { PostgresProvider } = await import("duroxide-ts/postgres");
      console.log(globalThis.isDriverLoaded);
      await PostgresProvider.open("postgres://ada@127.0.0.1:1/app").catch((error) => console.log(error.message));
      console.log(globalThis.isDriverLoaded);
      `,
    );
    const missing = await node("driver.js");
    const stand = join(modules, "pg");
    mkdirSync(stand);
    writeFileSync(join(stand, "package.json"), JSON.stringify({ name: "pg", main: "index.js" }));
    writeFileSync(join(stand, "index.js"), `globalThis.isDriverLoaded = true; throw new Error("a stand-in");`);
    const present = await node("driver.js");
    rmSync(stand, { recursive: true });

    const refusal = "open: the PostgreSQL driver 'pg' could not be loaded";
    expect(missing.stdout).toMatch(new RegExp(`^undefined\n${refusal} .*\\. Run: npm install pg\nundefined\n$`));
    expect(present.stdout).toBe(`undefined\n${refusal} (a stand-in). Run: npm install pg\ntrue\n`);
  });
});

describe("TypeScript", () => {
  const strict = {
    target: "es2022",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  };
  const withNode = { lib: ["es2022"], types: ["node"] };
  /** Only the `AbortSignal` and the disposables must come from somewhere. */
  const withoutNode = { lib: ["es2022", "esnext.disposable", "dom"], types: [] };

  beforeAll(() => {
    const imports = ENTRY_POINTS.map(({ name }, index) => `import * as entry${index} from "${name}";`);
    const all = ENTRY_POINTS.map((_, index) => `entry${index}`);
    write("src/every-entry-point.ts", `${imports.join("\n")}\nexport const all: readonly object[] = [${all}];\n`);
    write("src/checkout.ts", CHECKOUT);
  });

  test.each([
    ["node16", { module: "node16", moduleResolution: "node16", ...withNode }],
    ["nodenext", { module: "nodenext", moduleResolution: "nodenext", ...withNode }],
    ["bundler", { module: "preserve", moduleResolution: "bundler", ...withNode }],
    ["nodenext, without the types of Node", { module: "nodenext", moduleResolution: "nodenext", ...withoutNode }],
    ["bundler, without the types of Node", { module: "preserve", moduleResolution: "bundler", ...withoutNode }],
  ])("compiles strictly, our declarations included, under %s", async (_, options) => {
    expect(await compile({ ...strict, ...options }, ["src/*.ts"])).toBe("");
  });

  test("is told of a wrong call", async () => {
    write(
      "wrong/wrong.ts",
      `
      import type { OrchestrationContext } from "duroxide-ts";
      import { charge } from "../src/checkout.js";
      export const wrong = (ctx: OrchestrationContext) => ctx.scheduleActivity(charge, "twelve");
      `,
    );
    const said = await compile({ ...strict, module: "nodenext", ...withNode }, ["wrong/*.ts"]);
    expect(said).toMatch(/^wrong\/wrong\.ts\(4,\d+\): error TS2769: No overload matches this call\./);
  });
});

describe("a bundle", () => {
  test("of a program that only defines an activity holds no runtime, client, engine or store", async () => {
    const { code, files } = await bundle(
      `import { activity } from "duroxide-ts"; export const hello = activity("Hello", async () => "Hello!");`,
    );
    const strangers = files.filter((file) => /^(runtime|client|engine|provider|providers|testing)/.test(file));

    expect(files).toContain("define.js");
    expect(strangers).toEqual([]);
    expect(code).not.toMatch(/sqlite|\bclass (Runtime|Client|Registry)\b/);
    expect(code.length).toBeLessThan(20_000);
  });

  test("of a program that runs in memory holds no SQLite, no PostgreSQL and none of the test suites", async () => {
    const { code, files } = await bundle(
      `import { Client, Runtime } from "duroxide-ts";
       import { MemoryProvider } from "duroxide-ts/memory";
       const provider = new MemoryProvider();
       export const client = new Client(provider);
       export const runtime = await Runtime.start({ provider });`,
    );
    const strangers = files.filter((file) => /^(provider-tests|testing|providers\/(sqlite|postgres))\//.test(file));

    expect(files).toEqual(expect.arrayContaining(["runtime/runtime.js", "client/client.js", "engine/execution.js"]));
    expect(strangers).toEqual([]);
    expect(code).not.toMatch(/node:sqlite|photostructure/);
  });
});

/** A program in the hand of a user who reads no documentation but the types. */
const CHECKOUT = `
  import { activity, Client, event, orchestration, OrchestrationFailedError, Runtime } from "duroxide-ts";
  import type { OrchestrationHandle } from "duroxide-ts";
  import { MemoryProvider } from "duroxide-ts/memory";

  interface Order { readonly id: string; readonly amount: number }

  export const charge = activity("Charge", async (ctx, order: Order) => ({ receipt: ctx.idempotencyKey, paid: order.amount }));
  export const notify = activity("Notify", async (_ctx, text: string) => { text.trim(); });
  export const approval = event<{ readonly ok: boolean }>("approval");

  export const checkout = orchestration("Checkout", async (ctx, order: Order) => {
    const { receipt, paid } = await ctx.scheduleActivity(charge, order, { retry: { maxAttempts: 5 } });
    const answer = await ctx.race({ approval: ctx.waitForEvent(approval), late: ctx.scheduleTimer("3d") });
    const isApproved: boolean = answer.winner === "approval" && answer.value.ok;
    await ctx.all([ctx.scheduleActivity(notify, receipt), ctx.scheduleTimer(1_000)]);
    return isApproved ? paid : null;
  });

  export async function main(): Promise<number | null> {
    const provider = new MemoryProvider();
    const runtime = await Runtime.start({ provider, orchestrations: [checkout], activities: [charge, notify] });
    const client = new Client(provider);
    const handle: OrchestrationHandle<number | null> = await client.start(checkout, { input: { id: "1", amount: 12 } });
    await handle.raiseEvent(approval, { ok: true });
    try {
      return await handle.result({ timeoutMs: 1_000 });
    } catch (error) {
      if (error instanceof OrchestrationFailedError) throw new Error(error.details.category, { cause: error });
      throw error;
    } finally {
      await runtime.shutdown();
    }
  }
`;

function write(file: string, text: string): void {
  mkdirSync(join(project, file, ".."), { recursive: true });
  writeFileSync(join(project, file), text);
}

function node(file: string): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return run(process.execPath, [file], { cwd: project });
}

/** What the compiler says: nothing, if all is well. */
async function compile(compilerOptions: object, include: readonly string[]): Promise<string> {
  write("tsconfig.json", JSON.stringify({ compilerOptions, include }));
  const compilation = run(process.execPath, [TSC, "--pretty", "false", "-p", project], { cwd: project });
  return compilation.then(
    ({ stdout }) => stdout,
    ({ stdout }: { readonly stdout: string }) => stdout,
  );
}

/** A bundle for Node with everything in it: its text, and which files of the package have a part in it. */
async function bundle(program: string): Promise<{ readonly code: string; readonly files: readonly string[] }> {
  write("program.js", program);
  const output = await build({
    configFile: false,
    root: project,
    logLevel: "silent",
    ssr: { noExternal: true },
    build: { ssr: "program.js", write: false, minify: false, target: "node20" },
  });
  const chunks = (output as Rolldown.RolldownOutput).output.filter((part) => part.type === "chunk");
  const rendered = chunks.flatMap(({ modules }) =>
    Object.entries(modules).filter(([, part]) => part.renderedLength > 0),
  );
  const files = rendered.map(([id]) => id.replaceAll("\\", "/").split("/duroxide-ts/dist/")[1]);
  return { code: chunks.map(({ code }) => code).join("\n"), files: files.filter((file) => file !== undefined) };
}
