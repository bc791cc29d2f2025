// scripts/self-signed-certificate.mjs — a key and a certificate for 127.0.0.1, good for a test run.
//
// Node makes keys and signatures but no certificates, and not every machine has `openssl`; the few fields that are needed
// are written here as DER (X.509, RFC 5280).

import { generateKeyPairSync, sign } from "node:crypto";

const DAY_MS = 86_400_000;
const LIFETIME_MS = 30 * DAY_MS;

const ECDSA_WITH_SHA256 = sequence(objectId("2a8648ce3d040302"));
const NAME = sequence(der(0x31, sequence(objectId("550403"), der(0x0c, Buffer.from("localhost")))));

/** @returns {{ key: string, certificate: string }} both as PEM */
export function selfSignedCertificate() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const content = sequence(
    der(0xa0, integer(2)), // The third version, the first with extensions.
    integer(1),
    ECDSA_WITH_SHA256,
    NAME,
    sequence(time(Date.now() - DAY_MS), time(Date.now() + LIFETIME_MS)),
    NAME,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(alternativeNames())),
  );
  const certificate = sequence(content, ECDSA_WITH_SHA256, bitString(sign("sha256", content, privateKey)));
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), certificate: pem(certificate) };
}

/** Clients compare the host that they called with these. */
function alternativeNames() {
  const names = sequence(der(0x82, Buffer.from("localhost")), der(0x87, Buffer.from([127, 0, 0, 1])));
  return sequence(objectId("551d11"), der(0x04, names));
}

function pem(certificate) {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function sequence(...parts) {
  return der(0x30, ...parts);
}

function objectId(hex) {
  return der(0x06, Buffer.from(hex, "hex"));
}

function integer(value) {
  return der(0x02, Buffer.from([value]));
}

function time(ms) {
  const [date, clock] = new Date(ms).toISOString().slice(2, 19).split("T");
  return der(0x17, Buffer.from(`${date.replaceAll("-", "")}${clock.replaceAll(":", "")}Z`));
}

function bitString(bits) {
  return der(0x03, Buffer.from([0]), bits);
}

function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content), content]);
}

function lengthOf({ length }) {
  if (length < 0x80) return Buffer.from([length]);
  return length < 0x100 ? Buffer.from([0x81, length]) : Buffer.from([0x82, length >> 8, length & 0xff]);
}
