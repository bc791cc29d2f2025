// bench/lib/plan.mjs — which system is measured at which workload on which store, and by which command.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { familyOf } from "./workloads.mjs";

/**
 * @typedef {object} Experiment
 * @property {import("./workloads.mjs").Workload} workload
 * @property {string} store
 * @property {string} system
 * @property {string} version
 * @property {(store: import("./measured-process.mjs").StoreSpec) => { file: string, argv: readonly string[] }} command
 * @property {number} rounds
 */

const OURS = "duroxide-ts";
const FLOOR = "floor";
const { version } = createRequire(import.meta.url)("../../package.json");

/**
 * The systems of one workload on one store stand side by side, so that they are measured one right after the other. All of
 * them run on the same Node: where the one that runs this is too old for the others, on theirs.
 */
export async function makePlan({ workloads, stores, rounds, hasPeers, isQuick }) {
  const { peers, node } = hasPeers ? await withPeers() : { peers: [], node: process.execPath };
  const experiments = workloads.flatMap((workload) => {
    const args = isQuick ? { ...workload.args, ...workload.quickArgs } : workload.args;
    const times = workload.isSlow ? 1 : rounds;
    return stores
      .filter((store) => workload.stores.includes(store))
      .flatMap((store) => systemsFor({ workload, store, peers, args, node }))
      .map((experiment) => ({ ...experiment, rounds: times }));
  });
  return { experiments, peers, node };
}

async function withPeers() {
  const { nodeForPeers, peerSystems } = await import("../peers/systems.mjs");
  const peers = await peerSystems();
  const arePeersThere = peers.some(({ missing }) => missing === null);
  return { peers, node: (arePeersThere ? nodeForPeers() : null) ?? process.execPath };
}

function systemsFor({ workload, store, peers, args, node }) {
  const experiments = [];
  const add = (system, systemVersion, command) =>
    experiments.push({ workload, store, system, version: systemVersion, command });
  if (workload.program !== null) {
    const program = programIn("workloads", workload.program);
    add(OURS, version, (spec) => nodeCommand(node, program, { ...args, store: spec }, workload.nodeFlags));
  }
  if (workload.floor !== undefined) {
    const program = programIn("floor", workload.floor);
    add(FLOOR, version, (spec) => nodeCommand(node, program, { ...args, store: spec }));
  }
  for (const peer of workload.hasPeers ? peers : []) {
    const name = familyOf(workload);
    if (peer.missing !== null || !peer.workloads.includes(name) || !peer.stores.includes(store)) continue;
    add(peer.system, peer.version, (spec) => peer.command({ ...args, workload: name, store: spec }));
  }
  return experiments;
}

function programIn(folder, name) {
  return fileURLToPath(new URL(`../${folder}/${name}.mjs`, import.meta.url));
}

function nodeCommand(node, program, args, flags = []) {
  return { file: node, argv: [...flags, program, JSON.stringify(args)] };
}
