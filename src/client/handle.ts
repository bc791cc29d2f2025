// client/handle.ts — one instance and the type of its result. It holds nothing but an id: any number may exist.

import type { EventDefinition, Schema } from "../define.js";
import { OrchestrationFailedError } from "../errors.js";
import { checkOptions } from "../options.js";
import type { DeleteResult } from "../provider/admin.js";
import { validateAsync } from "../schema.js";
import type { Client, DataArguments, StatusChangeOptions } from "./client.js";
import type { DeleteOptions } from "./management.js";
import type { CompletedStatus, Ending, FailedStatus, KnownStatus, OrchestrationStatus } from "./status.js";
import { WAIT_OPTION_CHECKS, type WaitOptions } from "./wait.js";

/**
 * An instance, known or yet to be known to the store, with the type of what it returns. `Client.start` makes one.
 *
 * @example
 * const handle = await client.start(checkout, { instanceId: "order-1", input: order });
 * await handle.raiseEvent(approval, { ok: true });
 * const receipt = await handle.result({ timeoutMs: 30_000 });
 */
export class OrchestrationHandle<O = unknown> {
  readonly instanceId: string;
  readonly #client: Client;
  readonly #output: Schema<O> | null;
  readonly #ending: (instanceId: string, options?: WaitOptions) => Promise<Ending>;

  /** Made by `Client.start` and `Client.getHandle`. */
  constructor(
    client: Client,
    instanceId: string,
    output: Schema<O> | null,
    ending: (
      instanceId: string,
      options?: WaitOptions,
    ) => Promise<Pick<CompletedStatus, "status" | "output"> | FailedStatus>,
  ) {
    this.#client = client;
    this.instanceId = instanceId;
    this.#output = output;
    this.#ending = ending;
  }

  /**
   * Waits for the end of the instance and answers with what it returned, as its output schema makes it.
   *
   * Follows continue-as-new to the last execution. Waits for ever unless told otherwise, also for an instance that
   * nobody has started; whatever the wait comes to, the instance itself is not touched.
   *
   * @throws DUROXIDE_ORCHESTRATION_FAILED if it failed or was cancelled; `details` is the recorded failure
   * @throws DUROXIDE_INVALID_INPUT if the output does not fit its schema
   * @throws DUROXIDE_TIMEOUT, DUROXIDE_ABORTED, DUROXIDE_PROVIDER as every wait
   * @example
   * const receipt = await handle.result({ timeoutMs: 30_000 });
   */
  async result(options?: WaitOptions): Promise<O> {
    checkOptions("handle.result", options, WAIT_OPTION_CHECKS);
    const ended = await this.#ending(this.instanceId, options);
    if (ended.status === "Failed") throw new OrchestrationFailedError(this.instanceId, ended.details);
    return validateAsync(this.#output, ended.output, `output of instance '${this.instanceId}'`);
  }

  /** As `Client.getStatus`. */
  status(): Promise<OrchestrationStatus> {
    return this.#client.getStatus(this.instanceId);
  }

  /** As `Client.waitForStatusChange`. */
  waitForStatusChange(options?: StatusChangeOptions): Promise<KnownStatus> {
    return this.#client.waitForStatusChange(this.instanceId, options);
  }

  /** As `Client.raiseEvent`. */
  raiseEvent<T = unknown>(event: EventDefinition<T> | string, ...data: DataArguments<T>): Promise<void> {
    return this.#client.raiseEvent(this.instanceId, event, ...data);
  }

  /** As `Client.enqueueEvent`. */
  enqueueEvent<T = unknown>(queue: EventDefinition<T> | string, ...data: DataArguments<T>): Promise<void> {
    return this.#client.enqueueEvent(this.instanceId, queue, ...data);
  }

  /** As `Client.cancel`. */
  cancel(reason?: string): Promise<void> {
    return this.#client.cancel(this.instanceId, reason);
  }

  /** As `Client.deleteInstance`. */
  delete(options?: DeleteOptions): Promise<DeleteResult> {
    return this.#client.deleteInstance(this.instanceId, options);
  }

  /** As `Client.getKvValue`. */
  getKv<T = unknown>(key: string): Promise<T | undefined> {
    return this.#client.getKvValue<T>(this.instanceId, key);
  }

  /** As `Client.waitForKvValue`. */
  async waitForKv<T = unknown>(key: string, options?: WaitOptions): Promise<T> {
    checkOptions("handle.waitForKv", options, WAIT_OPTION_CHECKS);
    return this.#client.waitForKvValue<T>(this.instanceId, key, options);
  }
}
