// test/simulation/driver.ts — the outside world: starts instances, sends them what they wait for, asks them to end, deletes them.

import { Client } from "../../src/client/client.js";
import type { EndedStatus } from "../../src/client/status.js";
import type { Clock } from "../../src/clock.js";
import { InstanceNotFoundError, ProviderError } from "../../src/errors.js";
import type { Provider } from "../../src/provider/provider.js";
import { eventName, firstTask, namedChildId, ROOT, startsIn } from "./interpreter.js";
import { leavesOf, QUEUES, type Script, scriptOf } from "./program.js";
import type { World } from "./world.js";

export interface Root {
  readonly instanceId: string;
  readonly seed: number;
  isStarted: boolean;
  isCancelled: boolean;
  isDeleted: boolean;
  /** What its client was told of its end. */
  heard: EndedStatus | null;
}

/** Messages beyond those that somebody reads. */
const SPARE_MESSAGES = 2;

export class Driver {
  readonly roots: readonly Root[];
  readonly #world: World;
  readonly #client: Client;
  readonly #report: (problem: string) => void;
  #isOver = false;

  constructor(world: World, provider: Provider, clock: Clock, seed: number, report: (problem: string) => void) {
    this.#world = world;
    this.#client = new Client(provider, { clock, newId: () => "unused", recheckIntervalMs: 86_400_000 });
    this.#report = report;
    this.roots = Array.from({ length: world.between(1, 4) }, (_, place) => ({
      instanceId: `root-${place + 1}`,
      seed: (seed * 31 + place * 7_919) >>> 0,
      isStarted: false,
      isCancelled: false,
      isDeleted: false,
      heard: null,
    }));
  }

  begin(chaosMs: number): void {
    for (const root of this.roots) this.#watch(`drive ${root.instanceId}`, this.#drive(root, chaosMs));
  }

  end(): void {
    this.#isOver = true;
  }

  async #drive(root: Root, chaosMs: number): Promise<void> {
    const world = this.#world;
    const { instanceId, seed } = root;
    await world.pause(world.between(0, 5_000), `${instanceId} is to begin`);
    const version = world.pick([null, null, "1.0.0", "2.0.0"]);
    const options = { instanceId, input: firstTask(seed), ...(version === null ? {} : { version }) };
    await this.#surely(() => this.#client.start(ROOT, options));
    root.isStarted = true;
    this.#watch(`wait for ${instanceId}`, this.#listen(root));
    this.#correspondWithAll(root, instanceId, scriptOf(seed));
    if (world.chance(0.12)) this.#watch(`cancel ${instanceId}`, this.#cancel(root, world.between(0, chaosMs)));
    if (world.chance(0.08)) this.#watch(`delete ${instanceId}`, this.#delete(root, world.between(0, chaosMs)));
  }

  async #listen(root: Root): Promise<void> {
    root.heard = await this.#client.waitForOrchestration(root.instanceId);
    this.#world.note(`${root.instanceId} is heard to be ${root.heard.status}`);
  }

  async #cancel(root: Root, afterMs: number): Promise<void> {
    await this.#world.pause(afterMs, `${root.instanceId} is to be cancelled`);
    root.isCancelled = true;
    await this.#surely(() => this.#client.cancel(root.instanceId));
  }

  async #delete(root: Root, afterMs: number): Promise<void> {
    await this.#world.pause(afterMs, `${root.instanceId} is to be deleted`);
    root.isDeleted = true;
    try {
      await this.#client.deleteInstance(root.instanceId, { force: true });
    } catch (error) {
      if (!(error instanceof InstanceNotFoundError)) throw error;
      root.isDeleted = false; // It has not had its first turn yet.
    }
  }

  #correspondWithAll(root: Root, instanceId: string, script: Script): void {
    if (!script.isNamed) return;
    this.#watch(`correspond with ${instanceId}`, this.#correspond(root, instanceId, script));
    for (const [place, { program }] of script.executions.entries()) {
      for (const { label, script: other, op } of startsIn(program)) {
        if (op === "child") this.#correspondWithAll(root, namedChildId(instanceId, place, label), other);
      }
    }
  }

  /** Sends again and again what somebody may wait for, and each message for a mailbox once, if it can. */
  async #correspond(root: Root, instanceId: string, script: Script): Promise<void> {
    const world = this.#world;
    const leaves = script.executions.flatMap(({ program }) => leavesOf(program));
    const events = leaves.flatMap((leaf) => (leaf.op === "wait" ? [leaf.label] : []));
    const reads = (queue: string): number =>
      leaves.filter((leaf) => leaf.op === "dequeue" && leaf.queue === queue).length;
    const queues = QUEUES.map((queue) => ({
      queue,
      sent: 0,
      most: reads(queue) === 0 ? 0 : reads(queue) + SPARE_MESSAGES,
    }));
    for (;;) {
      await world.pause(world.between(50, 4_000), `a letter to ${instanceId}`);
      if (this.#isOver || root.isDeleted) return;
      const status = await this.#surely(() => this.#client.getStatus(instanceId));
      if (status.status === "Completed" || status.status === "Failed") return;
      if (status.status !== "Running") continue; // What comes before its start may be dropped.
      for (const label of events) {
        if (world.chance(0.6))
          await this.#surely(() => this.#client.raiseEvent(instanceId, eventName(label), `data ${label}`));
      }
      for (const mailbox of queues) {
        if (mailbox.sent === mailbox.most || world.chance(0.3)) continue;
        await this.#surely(() => this.#client.enqueueEvent(instanceId, mailbox.queue, mailbox.sent));
        mailbox.sent += 1;
      }
    }
  }

  /** As often as it takes: so it may happen more than once. */
  async #surely<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof ProviderError) || !error.retryable) throw error;
        await this.#world.pause(this.#world.between(1, 500), "the client tries again");
      }
    }
  }

  #watch(what: string, work: Promise<void>): void {
    work.catch((error) => this.#report(`${what}: ${(error as Error).stack}`));
  }
}
