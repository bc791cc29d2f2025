// Encrypted payloads — the database keeps what it cannot read: AES-256-GCM, with keys that can be replaced.
//
//   npx tsx node_modules/duroxide-ts/examples/encrypted-payloads.ts
//   npm run example -- encrypted-payloads   (in a checkout of the repository)
//
// Inputs, results, events, key-values, statuses and failures are encrypted on their way into the store and decrypted on their
// way out. Names, ids and times stay readable: see docs/payloads.md for the list.

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { activity, Client, event, orchestration, type PayloadCodec, Runtime, withPayloadCodec } from "duroxide-ts";
import { SqliteProvider } from "duroxide-ts/sqlite";

const CIPHER = "aes-256-gcm";
const MARK = "enc1:";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** What a cipher needs to know. Fetch keys from where you keep them before the runtime starts; each has 32 bytes. */
export interface Keyring {
  /** The key that encrypts. */
  readonly current: string;
  /** All that decrypt, by their ids, which have no colon. A key may go when nothing in the store names it any more. */
  readonly keys: Readonly<Record<string, Buffer>>;
  /** Lets text pass that was stored before there was a codec. Only until all of it is gone: anybody can write clear text. */
  readonly acceptsClearText?: boolean;
}

/** `enc1:<key id>:<nonce, tag and ciphertext in base64>`. The tag makes sure that a text which was changed is refused. */
export function encrypting({ current, keys, acceptsClearText = false }: Keyring): PayloadCodec {
  const keyCalled = (id: string): Buffer => {
    const key = keys[id];
    if (key === undefined) throw new Error(`there is no key '${id}' here`);
    return key;
  };
  return {
    encode(text) {
      const nonce = randomBytes(NONCE_BYTES); // Never twice with one key: 2³² texts are safe, then take a new key.
      const cipher = createCipheriv(CIPHER, keyCalled(current), nonce, { authTagLength: TAG_BYTES });
      const encrypted = [cipher.update(text, "utf8"), cipher.final()];
      return `${MARK}${current}:${Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]).toString("base64")}`;
    },
    decode(text) {
      if (!text.startsWith(MARK)) {
        if (acceptsClearText) return text;
        throw new Error("the text is not encrypted");
      }
      const [id = "", content = ""] = text.slice(MARK.length).split(":");
      const bytes = Buffer.from(content, "base64");
      const cipher = createDecipheriv(CIPHER, keyCalled(id), bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      });
      cipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, "utf8") + cipher.final("utf8");
    },
  };
}

export interface Patient {
  readonly name: string;
  readonly symptom: string;
}

export const result = event<string>("result");

export const orderTest = activity("OrderTest", async (_ctx, patient: Patient) => `a test for ${patient.symptom}`);

export const examine = orchestration("Examine", async (ctx, patient: Patient) => {
  ctx.setCustomStatus(`${patient.name} waits for ${await ctx.scheduleActivity(orderTest, patient)}`);
  return `${patient.name}: ${await ctx.dequeueEvent(result)}`;
});

export async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "duroxide-encrypted-"));
  const isInFiles = (text: string): boolean =>
    readdirSync(folder).some((file) => readFileSync(join(folder, file)).includes(text));
  await using store = await SqliteProvider.open(join(folder, "clinic.db"));
  const code = { orchestrations: [examine], activities: [orderTest] };
  const spring = randomBytes(32);

  // Everything works as ever, with this provider in place of the store.
  const first = withPayloadCodec(store, encrypting({ current: "spring", keys: { spring } }));
  const before = await Runtime.start({ provider: first, ...code });
  const input = { name: "Ada", symptom: "headache" };
  const handle = await new Client(first).start(examine, { instanceId: "visit-1", input });
  console.log((await handle.waitForStatusChange()).customStatus);
  console.log(`in the files: "visit-1" ${isInFiles("visit-1")}, "headache" ${isInFiles("headache")}`);
  await before.shutdown();

  // Somebody who has the database and not the key.
  const strange = withPayloadCodec(store, encrypting({ current: "x", keys: { x: randomBytes(32) } }));
  console.log(await new Client(strange).getStatus("visit-1").catch((error: Error) => error.message));

  // A new key. What runs goes on; what is written from now on is encrypted with the new one.
  const keys = { spring, summer: randomBytes(32) };
  const second = withPayloadCodec(store, encrypting({ current: "summer", keys }));
  await using _after = await Runtime.start({ provider: second, ...code });
  await new Client(second).enqueueEvent("visit-1", result, "all is well");
  console.log(await new Client(second).getHandle(examine, "visit-1").result());
  console.log(`in the files: "enc1:spring" ${isInFiles("enc1:spring")}, "enc1:summer" ${isInFiles("enc1:summer")}`);
}

if (process.argv[1] === import.meta.filename) await main();
