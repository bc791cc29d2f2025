// bench/peers/restate.mjs — Restate: a server with a log of its own, and a service in this process that it calls.

import { once } from "node:events";
import { createServer } from "node:http2";
import { createEndpointHandler, service } from "@restatedev/restate-sdk";
import { connect, rpc } from "@restatedev/restate-sdk-clients";
import { startRestate } from "./restate-server.mjs";
import { runPeer } from "./run-peer.mjs";
import { RESTATE_SETTINGS } from "./settings.mjs";

const HOST = "127.0.0.1";

const chains = service({
  name: "chains",
  handlers: {
    chain: async (ctx, { steps, input }) => {
      let value = input;
      for (let n = 0; n < steps; n += 1) {
        const given = value;
        value = await ctx.run("step", () => given + 1);
      }
      return value;
    },
  },
});

/** A one-way call is run at once. One for later is as durable, and nobody runs it while the measurement lasts. */
const FOR_LATER = rpc.sendOpts({ delay: { hours: 1 } });
const SCHEDULED = "SELECT count(*) AS count FROM sys_invocation WHERE status = 'scheduled'";

await runPeer(async ({ store, settings }) => {
  const server = await startRestate({ ...RESTATE_SETTINGS, ...settings }, store?.folder);
  const endpoint = await listen();
  await register(server, endpoint);
  const ingress = connect({ url: server.ingressUrl });
  const caller = ingress.serviceClient(chains);
  const sender = ingress.serviceSendClient(chains);
  await caller.chain({ steps: 1, input: 0 }); // A server that is healthy may still be placing its partitions.
  return {
    run: (steps, input) => caller.chain({ steps, input }),
    start: (input) => sender.chain({ steps: 1, input }, FOR_LATER),
    started: () => countOfScheduled(server),
    async close() {
      await server.close();
      endpoint.close();
    },
  };
});

async function listen() {
  const endpoint = createServer(createEndpointHandler({ services: [chains], logger })).listen(0, HOST);
  await once(endpoint, "listening");
  return endpoint;
}

/** Stdout is for the result alone, and it warns of unsigned requests whatever they are bound to. */
function logger({ level }, ...words) {
  if (level === "error") console.error(...words);
}

async function register({ adminUrl }, endpoint) {
  await post(`${adminUrl}/deployments`, { uri: `http://${HOST}:${endpoint.address().port}` });
}

async function countOfScheduled({ adminUrl }) {
  const { rows } = await post(`${adminUrl}/query`, { query: SCHEDULED });
  return rows[0].count;
}

async function post(url, body) {
  const headers = { accept: "application/json", "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
