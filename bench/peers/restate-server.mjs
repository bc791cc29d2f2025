// bench/peers/restate-server.mjs — a Restate server on loopback, with its files in a folder of their own.
//
//   It does not outlive this process, however that ends, and neither do its files: the watchdog of our PostgreSQL servers
//   sees to both.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const HOST = "127.0.0.1";
const READY_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 50;
const WATCHDOG = fileURLToPath(new URL("../../scripts/postgres-watchdog.mjs", import.meta.url));

/** `settings`: environment variables. Its files lie below `parent`. Resolves when the server takes requests. */
export async function startRestate(settings, parent = tmpdir()) {
  const [nodePort, ingressPort, adminPort] = await freePorts(3);
  const folder = mkdtempSync(join(parent, "duroxide-bench-restate-"));
  const watchdog = spawn(process.execPath, [WATCHDOG, folder], { stdio: ["pipe", "ignore", "inherit"] });
  const server = spawn(binary(), ["--no-logo", "--base-dir", folder], {
    env: {
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_IP: HOST,
      RESTATE_BIND_PORT: nodePort,
      RESTATE_INGRESS__BIND_PORT: ingressPort,
      RESTATE_ADMIN__BIND_PORT: adminPort,
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LOG_FILTER: "error,octocrab=off", // It looks for a newer release of itself, and cannot be told not to.
      ...settings,
    },
    stdio: ["ignore", process.stderr, process.stderr], // Our stdout is for the result alone.
  });
  const ended = once(server, "exit");
  watchdog.stdin.write(`${server.pid ?? 0}\n`);
  const restate = {
    pid: server.pid,
    ingressUrl: `http://${HOST}:${ingressPort}`,
    adminUrl: `http://${HOST}:${adminPort}`,
    async close() {
      server.kill("SIGKILL");
      await ended;
      watchdog.stdin.end("0\n");
      await once(watchdog, "exit");
    },
  };
  try {
    const isReady = Promise.all([
      healthy(`${restate.ingressUrl}/restate/health`),
      healthy(`${restate.adminUrl}/health`),
    ]);
    await Promise.race([isReady, ended.then(([code]) => Promise.reject(new Error(`the server ended with ${code}`)))]);
    return restate;
  } catch (error) {
    await restate.close();
    throw error;
  }
}

function binary() {
  const { resolve } = createRequire(import.meta.url);
  return resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`);
}

async function healthy(url) {
  for (const giveUpAt = Date.now() + READY_WITHIN_MS; Date.now() < giveUpAt; await pause(LOOK_EVERY_MS)) {
    const isOk = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (isOk) return;
  }
  throw new Error(`${url} does not answer`);
}

/** All at once, so that they differ. */
async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, HOST));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => String(server.address().port));
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
