// runtime/runtime.ts — one process's share of the work: takes turns of orchestrations, runs activities, until told to stop.
//
//   R1. What is started is stopped: `shutdown` awaits every loop, and nothing of the runtime outlives it.
//   R2. Stopping takes no longer than it must: it ends with the last piece of work, and after the grace period gives the
//       rest back, so that others can take it at once.
//   R3. Nothing is lost by stopping, or by dying instead: all there is to know is in the store.

import { Client } from "../client/client.js";
import { sleep } from "../clock.js";
import type { ActivityDefinition, OrchestrationDefinition } from "../define.js";
import { guardRejections } from "../engine/rejection-guard.js";
import { watchCalls } from "../engine/watched-calls.js";
import { InvalidInputError, InvalidOptionsError, MisuseError, messageOf, ProviderError } from "../errors.js";
import { ENGINE_VERSION } from "../history/event.js";
import { type Observer, ObserverStream } from "../observer.js";
import { checkOptions, integerBetween, type OptionCheck, shown } from "../options.js";
import { isProvider } from "../provider/is-provider.js";
import { instrument } from "../provider/kit/instrumented-provider.js";
import type { Provider } from "../provider/provider.js";
import { Breath } from "./breath.js";
import { Metrics } from "./metrics.js";
import { type ResolvedRuntimeOptions, type RuntimeOptions, resolveRuntimeOptions } from "./options.js";
import { OrchestrationDispatcher } from "./orchestration-dispatcher.js";
import { CONTENTS_CHECKS, Registry } from "./registry.js";
import { formatSemVer } from "./semver.js";
import type { RuntimeServices } from "./services.js";
import { systemActivities } from "./system-activities.js";
import { WorkerDispatcher } from "./worker-dispatcher.js";

/** What a runtime runs, and where; and how, if the defaults do not suit. */
export interface RuntimeStart extends RuntimeOptions {
  /** Stays the caller's: close it after the runtime. */
  readonly provider: Provider;
  readonly orchestrations?: readonly OrchestrationDefinition[];
  readonly activities?: readonly ActivityDefinition[];
  /** More of both, from elsewhere. */
  readonly registry?: Registry;
}

/** `drained`: all work in progress was finished. `forced`: the rest was given back for others to do. */
export type ShutdownOutcome = "drained" | "forced";

/** A store that does not answer must not keep a process from ending. */
const FORCED_TIMEOUT_MS = 5_000;
const RUNTIME_ID_LENGTH = 8;

/**
 * Runs orchestrations and activities. Any number of runtimes, in any number of processes, may share one store.
 *
 * @example
 * await using runtime = await Runtime.start({ provider, orchestrations: [checkout], activities: [reserve, charge] });
 */
export class Runtime implements AsyncDisposable {
  /** Names this runtime in logs; new with every start. */
  readonly id: string;
  /** What it can run. */
  readonly registry: Registry;
  /** Counts what happens here. */
  readonly metrics: Metrics;
  readonly #services: RuntimeServices;
  readonly #observers: ObserverStream;
  readonly #orchestrations: OrchestrationDispatcher;
  readonly #workers: WorkerDispatcher;
  /** Each takes back what the runtime did to its process. */
  readonly #releases: readonly (() => void)[];
  #shutdown: Promise<ShutdownOutcome> | null = null;

  private constructor(provider: Provider, registry: Registry, options: ResolvedRuntimeOptions) {
    if (!(registry instanceof Registry)) {
      throw new MisuseError(
        "new Runtime: it must be started. Use await Runtime.start({ provider, orchestrations, … }).",
      );
    }
    const { clock, newId, limits } = options;
    this.id = firstId(newId).slice(0, RUNTIME_ID_LENGTH);
    this.registry = registry;
    this.metrics = new Metrics();
    this.#observers = new ObserverStream([this.metrics.observer, ...options.observers]);
    const { emit } = this.#observers;
    const instrumented = instrument(provider, clock, emit, new Breath(clock));
    this.#services = {
      runtimeId: this.id,
      provider: instrumented,
      clock,
      newId,
      options,
      registry: registry.withSystemActivities(systemActivities({ provider: instrumented, clock, newId })),
      emit,
    };
    this.#workers = new WorkerDispatcher(this.#services, {
      client: new Client(instrumented, { clock, newId, limits }),
    });
    this.#orchestrations = new OrchestrationDispatcher(this.#services, {
      onActivitiesCancelled: (ids) => this.#workers.cancelLocal(ids),
    });
    this.#releases = [
      guardRejections((instanceId, message) => emit({ type: "rejection-kept", instanceId, message })),
      ...(options.determinismGuard ? [watchCalls()] : []),
    ];
  }

  /**
   * Starts taking work. Resolves once the loops are running.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown, misspelled or out of range, or a provider that says it is closed
   * @throws DUROXIDE_REGISTRATION for duplicates, bad versions, declarations without a function
   * @example
   * await using runtime = await Runtime.start({ provider, activities: [charge], workerConcurrency: 8 });
   */
  static async start(start: RuntimeStart): Promise<Runtime> {
    const given: Partial<RuntimeStart> = start ?? {};
    const options = resolveRuntimeOptions(given, START_CHECKS);
    const { provider, registry = Registry.of({}), orchestrations = [], activities = [] } = given;
    if (provider === undefined) {
      throw new InvalidOptionsError(`Runtime.start: option 'provider' is missing: it ${isProvider(provider)}.`);
    }
    const { versionPolicies } = options;
    const contents = registry.merge({ orchestrations, activities, versionPolicies });
    await checkUsable(provider);
    const runtime = new Runtime(provider, contents, options);
    runtime.#begin();
    return runtime;
  }

  /**
   * Tells everything that happens from now on. Returns the way to stop.
   *
   * @throws DUROXIDE_INVALID_INPUT for an observer that is no function
   * @example
   * const stop = runtime.observe((fact) => {
   *   if (fact.type === "orchestration-poisoned") report(fact.details);
   * });
   */
  observe(observer: Observer): () => void {
    if (typeof observer !== "function") throw new InvalidInputError("runtime.observe: a function is expected.");
    return this.#observers.subscribe(observer);
  }

  /**
   * Measures the store: how deep its queues are and how many instances run, for the gauges of `metrics`. Reads the whole
   * store: ask it once a minute, not with every scrape. Does nothing where the provider offers no management.
   *
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * setInterval(() => void runtime.refreshGauges().catch(report), 60_000).unref();
   */
  async refreshGauges(): Promise<void> {
    const { provider, emit } = this.#services;
    if (provider.admin === null) return;
    const { orchestratorQueue, workerQueue } = await provider.admin.getQueueDepths();
    const { runningInstances: activeOrchestrations } = await provider.admin.getSystemMetrics();
    emit({ type: "queue-depths", orchestratorQueue, workerQueue, activeOrchestrations });
  }

  /**
   * Stops taking work, waits for what is in progress, and resolves as soon as that is over. What is not over after the
   * grace period is told to stop and given back. Calling it again answers as the first call does.
   *
   * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or out of range
   * @example
   * process.once("SIGTERM", async () => {
   *   report(await runtime.shutdown({ graceMs: 8_000 })); // "drained" or "forced"
   * });
   */
  async shutdown(options: { readonly graceMs?: number } = {}): Promise<ShutdownOutcome> {
    checkOptions("runtime.shutdown", options, SHUTDOWN_CHECKS);
    this.#shutdown ??= this.#stop(options.graceMs ?? this.#services.options.shutdownGraceMs);
    return this.#shutdown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown();
  }

  #begin(): void {
    const { emit, provider, options } = this.#services;
    const { min, max } = options.supportedReplayVersions;
    emit({
      type: "runtime-started",
      runtimeId: this.id,
      providerName: provider.name,
      providerVersion: provider.version,
      engineVersion: ENGINE_VERSION,
      replayVersions: { min: formatSemVer(min), max: formatSemVer(max) },
    });
    this.#orchestrations.start();
    this.#workers.start();
  }

  async #stop(graceMs: number): Promise<ShutdownOutcome> {
    this.#orchestrations.stopFetching();
    this.#workers.stopFetching();
    const isDrained = await this.#endsWithin(graceMs, this.#drained());
    if (!isDrained) await this.#endsWithin(FORCED_TIMEOUT_MS, this.#force()); // R2
    const outcome = isDrained ? "drained" : "forced";
    for (const release of this.#releases) release();
    this.#services.emit({ type: "runtime-stopped", runtimeId: this.id, outcome });
    return outcome;
  }

  async #drained(): Promise<void> {
    await Promise.all([this.#orchestrations.drained(), this.#workers.drained()]);
  }

  async #force(): Promise<void> {
    await Promise.all([this.#orchestrations.drained(), this.#workers.abort()]);
  }

  /** Whether `work` ends in time. */
  async #endsWithin(timeoutMs: number, work: Promise<void>): Promise<boolean> {
    const waiting = new AbortController();
    const timeout = sleep(this.#services.clock, timeoutMs, waiting.signal).then(() => false);
    try {
      return await Promise.race([work.then(() => true), timeout]);
    } finally {
      waiting.abort();
    }
  }
}

/** Whether `newId` makes ids shows only when it is asked for one. @throws InvalidOptionsError */
function firstId(newId: () => unknown): string {
  let id: unknown;
  try {
    id = newId();
  } catch (cause) {
    throw new InvalidOptionsError(`Runtime.start: option 'newId' throws: ${messageOf(cause)}`, { cause });
  }
  if (typeof id === "string" && id !== "") return id;
  throw new InvalidOptionsError(`Runtime.start: option 'newId' must make a text that is not empty, not ${shown(id)}.`);
}

/** A store that refuses to work, because it is closed, would be asked again and again, and nobody would know. */
async function checkUsable(provider: Provider): Promise<void> {
  try {
    await provider.getInstanceStatus(PROBE_INSTANCE);
  } catch (error) {
    if (!(error instanceof ProviderError) || error.kind !== "invalid") return; // It may pass.
    const message = `Runtime.start: option 'provider' is of no use: ${error.message}. Start the runtime on an open provider.`;
    throw new InvalidOptionsError(message, { cause: error });
  }
}

/** Nobody can have started it: the id is not one that may be chosen. */
const PROBE_INSTANCE = "sub::duroxide";

const isRegistry: OptionCheck = (value) => (value instanceof Registry ? null : "must be made by Registry.of");

const START_CHECKS = { ...CONTENTS_CHECKS, provider: isProvider, registry: isRegistry };
const SHUTDOWN_CHECKS = { graceMs: integerBetween(0, 86_400_000) };
