// bench/payload-codec.mjs — what a payload codec costs: CPU time of a chain of five activities, and bytes of its history.
//
//   P1. CPU time of the whole process, client and runtime in one: how long a chain takes depends on the disk and on who else
//       runs, what it computes hardly does.
//   P2. The codecs take turns on stores of their own, so that whatever else the machine does meets all of them.
//
// What it measures and what not: bench/README.md.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { activity, Client, orchestration, Runtime, withPayloadCodec } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";
import { doAll } from "./lib/load.mjs";
import { describeLoad } from "./lib/machine.mjs";
import { printTable, quantile } from "./report.mjs";

const usage = `usage: node bench/payload-codec.mjs [--rounds 5] [--chains 300] [--sizes 10,1000,16000]

After npm run build.`;

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    chains: { type: "string", default: "300" },
    sizes: { type: "string", default: "10,1000,16000" },
    help: { type: "boolean", default: false },
  },
});
if (flags.help) {
  console.log(usage);
  process.exit(0);
}
const rounds = Number(flags.rounds);
const chains = Number(flags.chains);
const sizes = flags.sizes.split(",").map(Number);

const STEPS = 5;
const IN_FLIGHT = 20;
const WARM_UP = 50;

const key = randomBytes(32);
const unchanged = (text) => text;

/** `null`: without the wrapper. */
const CODECS = {
  "no codec": null,
  "a codec that does nothing": { encode: unchanged, decode: unchanged },
  "AES-256-GCM": { encode: encrypted, decode: decrypted },
  "deflate, then AES-256-GCM": {
    encode: (text) => encrypted(deflateRawSync(text).toString("base64")),
    decode: (text) => inflateRawSync(Buffer.from(decrypted(text), "base64")).toString("utf8"),
  },
};

/** As examples/encrypted-payloads.ts does it. */
function encrypted(text) {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  const parts = [cipher.update(text, "utf8"), cipher.final()];
  return `enc1:spring:${Buffer.concat([nonce, cipher.getAuthTag(), ...parts]).toString("base64")}`;
}

function decrypted(text) {
  const bytes = Buffer.from(text.slice("enc1:spring:".length), "base64");
  const cipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12));
  cipher.setAuthTag(bytes.subarray(12, 28));
  return cipher.update(bytes.subarray(28), undefined, "utf8") + cipher.final("utf8");
}

const step = activity("Step", async (_ctx, text) => text);
const chain = orchestration("Chain", async (ctx, text) => {
  let last = text;
  for (let done = 0; done < STEPS; done += 1) last = await ctx.scheduleActivity(step, last);
  return last;
});

/** Words that repeat themselves as JSON does: a third of it is left by deflate. */
function textOf(size) {
  const words = Array.from({ length: Math.ceil(size / 16) }, (_, n) => `"item-${(n * 7919) % 1000}":${n}`);
  return words.join(",").padEnd(size, "x").slice(0, size);
}

async function measure(codec, size) {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-codec-bench-"));
  const store = await SqliteProvider.open(join(folder, "store.db"), { durability: "process-crash" });
  const provider = codec === null ? store : withPayloadCodec(store, codec);
  const runtime = await Runtime.start({ provider, orchestrations: [chain], activities: [step] });
  const client = new Client(provider);
  const input = textOf(size);
  const run = async (nr) => {
    const handle = await client.start(chain, { instanceId: `chain-${nr}`, input });
    if ((await handle.result()) !== input) throw new Error(`chain ${nr} has another result`);
  };
  try {
    await doAll(WARM_UP, IN_FLIGHT, (nr) => run(`warm-up-${nr}`));
    const before = process.cpuUsage();
    await doAll(chains, IN_FLIGHT, run);
    const { user, system } = process.cpuUsage(before);
    const { historySizeBytes } = await client.getInstanceStats("chain-0");
    return { cpuMs: (user + system) / 1_000 / chains, historySizeBytes };
  } finally {
    await runtime.shutdown();
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

console.log(`${cpus().length} × ${cpus()[0]?.model.trim()}, node ${process.version}, load ${describeLoad()}`);
for (const size of sizes) {
  const found = Object.fromEntries(Object.keys(CODECS).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, codec] of Object.entries(CODECS)) found[name].push(await measure(codec, size)); // P2
  }
  const rows = Object.entries(found).map(([codec, results]) => {
    const cpu = results.map(({ cpuMs }) => cpuMs);
    return {
      codec,
      "CPU ms per chain": quantile(cpu, 0.5).toFixed(2),
      range: `${Math.min(...cpu).toFixed(2)}–${Math.max(...cpu).toFixed(2)}`,
      "bytes of a history": results.at(-1).historySizeBytes,
    };
  });
  printTable(`texts of ${size} characters`, rows);
}
