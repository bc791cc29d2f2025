// client/client.ts — starts instances, talks to them and waits for them, from any process that reaches the store.
// What operators ask stands in management.ts.
//
//   C1. A client keeps no state but its provider: any number of them may exist, and none needs closing.
//   C2. Every write is one message in the orchestrator queue, durable when the call resolves. Nothing waits for a turn.
//   C3. What cannot be right (an id, a name, a value that JSON or its schema refuses, or that is too large) is refused
//       before it is written.
//   C4. Reads see committed turns only, and no read but that of a failure, or of the history itself, reads a history.

import type { Clock } from "../clock.js";
import { systemClock } from "../clock.js";
import type { EventDefinition, OrchestrationDefinition, Schema } from "../define.js";
import type { Duration } from "../duration.js";
import { durationMs } from "../duration.js";
import { AlreadyExistsError, InvalidInputError, InvalidOptionsError, messageOf } from "../errors.js";
import type { Event } from "../history/event.js";
import { INITIAL_EXECUTION_ID } from "../history/event.js";
import {
  checkInstanceId,
  checkName,
  checkPayload,
  checkRootInstanceId,
  checkVersion,
  DEFAULT_LIMITS,
  LIMIT_CHECKS,
  type Limits,
} from "../history/limits.js";
import { decodePayload, encodePayload } from "../history/payload.js";
import { checkOptions, integerBetween, isClock, isFunction, isString, oneOf } from "../options.js";
import { isProvider } from "../provider/is-provider.js";
import type { Provider } from "../provider/provider.js";
import { validateAsync } from "../schema.js";
import { timeOrderedId } from "../time-ordered-id.js";
import { OrchestrationHandle } from "./handle.js";
import { checkExecutionId, Management } from "./management.js";
import {
  completed,
  type EndedStatus,
  type Ending,
  isEnded,
  type KnownStatus,
  knownStatus,
  type OrchestrationStatus,
} from "./status.js";
import {
  type Moment,
  thisMoment,
  WAIT_OPTION_CHECKS,
  type Wait,
  type Waiting,
  type WaitOptions,
  waitUntil,
} from "./wait.js";

/** What a client may be told. */
export interface ClientOptions {
  /** @default the system's clock */
  readonly clock?: Clock;
  /** Where instance ids come from that nobody chose. @default UUIDs that sort by time */
  readonly newId?: () => string;
  /** The longest pause between two looks of a wait, where the provider cannot wake it. @default 100 */
  readonly pollIntervalMs?: number;
  /** The longest pause between two looks of a wait, where the provider wakes it: in case a wake is lost. @default 5_000 */
  readonly recheckIntervalMs?: number;
  /** As the runtimes have them. A client heeds `maxPayloadBytes`: what is larger is not sent. @default `DEFAULT_LIMITS` */
  readonly limits?: Partial<Limits>;
}

/** How an instance is started, its input apart. */
export interface StartSettings {
  /** Names the instance. Starting twice under one id starts once. @default a random UUID */
  readonly instanceId?: string;
  /** @default the definition's own, or else the choice of the registry that runs it */
  readonly version?: string;
  /** What to do if the instance exists: `use` that one, whatever its input was, or `fail`. @default "use" */
  readonly ifExists?: "use" | "fail";
  /** Keeps the instance pending for this long. @default none */
  readonly delay?: Duration;
}

/** How an instance is started. The input may be left out where the orchestration takes none. */
export type StartOptions<I = unknown> = StartSettings &
  (undefined extends I ? { readonly input?: NoInfer<I> } : { readonly input: NoInfer<I> });

/** The options of a start, which may be left out where the orchestration takes no input. */
export type StartArguments<I> = undefined extends I ? [options?: StartOptions<I>] : [options: StartOptions<I>];

/** What an event carries, which may be left out where it carries nothing. */
export type DataArguments<T> = undefined extends T ? [data?: NoInfer<T>] : [data: NoInfer<T>];

/** Which change of the custom status to wait for. */
export interface StatusChangeOptions extends WaitOptions {
  /** The `customStatusVersion` of the last status that the caller knows. @default 0: any status at all */
  readonly lastSeenVersion?: number;
}

const DEFAULTS = Object.freeze({
  /** Ten looks a second are noticed by nobody, and hardly by the store. */
  pollIntervalMs: 100,
  /** Rare enough to cost nothing, often enough that a lost wake is no outage. */
  recheckIntervalMs: 5_000,
  /** Reads well behind `canceled: `, the way every cancelled instance says so. */
  cancelReason: "requested by client",
});

const CLIENT_OPTION_CHECKS = {
  clock: isClock,
  newId: isFunction,
  pollIntervalMs: integerBetween(1, 60_000),
  recheckIntervalMs: integerBetween(1, 86_400_000),
  limits: isLimits,
};

/** Ids, inputs and delays have checks of their own, with words of their own. */
const START_OPTION_CHECKS = {
  instanceId: () => null,
  input: () => null,
  version: isString,
  ifExists: oneOf("use", "fail"),
  delay: () => null,
};

const STATUS_CHANGE_OPTION_CHECKS = {
  ...WAIT_OPTION_CHECKS,
  lastSeenVersion: integerBetween(0, Number.MAX_SAFE_INTEGER),
};

/**
 * Starts orchestrations, sends them events, reads where they stand and waits for them; lists, deletes and prunes them
 * where the provider offers management.
 *
 * Needs nothing but the provider: no runtime, no worker code. What it writes survives a crash as soon as the call
 * resolves.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a provider that is none, or an option that is unknown or out of range
 * @example
 * const client = new Client(provider);
 * const handle = await client.start(checkout, { instanceId: "order-1", input: order });
 * const receipt = await handle.result();
 */
export class Client extends Management {
  readonly #provider: Provider;
  readonly #newId: () => string;
  readonly #maxPayloadBytes: number;
  readonly #waiting: Waiting;

  constructor(provider: Provider, options: ClientOptions = {}) {
    const wrong = isProvider(provider);
    if (wrong !== null) throw new InvalidOptionsError(`new Client: the provider ${wrong}.`);
    checkOptions("new Client", options, CLIENT_OPTION_CHECKS);
    super(provider);
    this.#provider = provider;
    const clock = options.clock ?? systemClock;
    this.#newId = options.newId ?? (() => timeOrderedId(clock.now()));
    this.#maxPayloadBytes = options.limits?.maxPayloadBytes ?? DEFAULT_LIMITS.maxPayloadBytes;
    this.#waiting = {
      wake: provider.wake,
      clock,
      pollIntervalMs: options.pollIntervalMs ?? DEFAULTS.pollIntervalMs,
      recheckIntervalMs: options.recheckIntervalMs ?? DEFAULTS.recheckIntervalMs,
    };
  }

  // Starting. Where a call fits no form, tsc speaks of the last one: so the typed form stands last.

  /** By name, for an orchestration of which there is no definition here. */
  start<O = unknown>(name: string, options?: StartOptions): Promise<OrchestrationHandle<O>>;
  /**
   * Starts an instance, and answers with a handle on it. The start is durable when this resolves.
   *
   * Idempotent under an `instanceId`: a second start has no effect, and its handle is on the instance that exists.
   * The input is checked against its schema here and sent as it was given; the worker uses what the schema makes of it.
   *
   * @throws DUROXIDE_INVALID_INPUT for a bad id or version, or an input that JSON cannot carry or the schema refuses
   * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or wrong
   * @throws DUROXIDE_ALREADY_EXISTS if the instance exists and `ifExists` is "fail"
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * const handle = await client.start(checkout, { instanceId: "order-1", input: order });
   * const later = await client.start("Reminder", { input: "order-1", delay: "3d" });
   */
  start<I, O>(definition: OrchestrationDefinition<I, O>, ...args: StartArguments<I>): Promise<OrchestrationHandle<O>>;
  async start(target: OrchestrationDefinition | string, options: StartOptions = {}): Promise<OrchestrationHandle> {
    checkOptions("Client.start", options, START_OPTION_CHECKS);
    const { name, version, input, output } = typeof target === "string" ? untyped(target) : checkTarget(target);
    const instance = checkRootInstanceId(options.instanceId === undefined ? this.#newId() : options.instanceId);
    const chosenVersion = options.version ?? version;
    const outcome = await this.#provider.enqueueForOrchestrator(
      {
        type: "StartOrchestration",
        instance,
        orchestration: name,
        input: await this.#encode(input, options.input, `input of orchestration '${name}'`),
        version: chosenVersion === null ? null : checkVersion(chosenVersion, `version of orchestration '${name}'`),
        parentInstance: null,
        parentId: null,
        executionId: INITIAL_EXECUTION_ID,
      },
      { ifAbsent: true, delayMs: options.delay === undefined ? undefined : durationMs(options.delay, "delay") },
    );
    if (outcome === "exists" && options.ifExists === "fail") throw new AlreadyExistsError(instance);
    if (outcome === "exists") return new OrchestrationHandle(this, instance, output, this.#ending);
    const startedAt = thisMoment(this.#waiting);
    return new OrchestrationHandle(this, instance, output, (id, waitOptions) =>
      this.#ending(id, waitOptions, startedAt),
    );
  }

  /** By id alone, whatever the orchestration is. */
  getHandle<O = unknown>(instanceId: string): OrchestrationHandle<O>;
  /** By name; the result's type is what you say. */
  getHandle<O = unknown>(name: string, instanceId: string): OrchestrationHandle<O>;
  /**
   * A handle on an instance that somebody else started, or will start. Asks the store nothing.
   *
   * The definition gives the result its type and its check; a name or nothing leaves it as it is.
   *
   * @throws DUROXIDE_INVALID_INPUT for an id or a name that no instance can have
   * @example
   * const receipt = await client.getHandle(checkout, "order-1").result();
   */
  getHandle<O>(definition: OrchestrationDefinition<unknown, O>, instanceId: string): OrchestrationHandle<O>;
  getHandle(...args: [target: OrchestrationDefinition | string, instanceId: string] | [instanceId: string]) {
    const [target, instanceId] = args.length === 2 ? args : [null, args[0]];
    if (typeof target === "string") checkName(target, "orchestration name");
    const output = target === null || typeof target === "string" ? null : checkTarget(target).output;
    return new OrchestrationHandle(this, checkInstanceId(instanceId), output, this.#ending);
  }

  // Messages

  /**
   * Raises an event: it answers the oldest `waitForEvent` of its name that is open when it arrives, and is lost
   * where there is none. For messages that must not be lost use `enqueueEvent`.
   *
   * @throws DUROXIDE_INVALID_INPUT for a bad id or name, or data that JSON cannot carry or the schema refuses
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * await client.raiseEvent("order-1", approval, { ok: true });
   */
  async raiseEvent<T = unknown>(
    instanceId: string,
    event: EventDefinition<T> | string,
    ...[data]: DataArguments<T>
  ): Promise<void> {
    const message = await this.#message(instanceId, event, data);
    await this.#provider.enqueueForOrchestrator({ type: "ExternalRaised", ...message });
  }

  /**
   * Puts a message into a durable mailbox of the instance, where it waits until a `dequeueEvent` takes it, in order.
   * A message to an instance that nobody has started may be dropped.
   *
   * @throws DUROXIDE_INVALID_INPUT for a bad id or name, or data that JSON cannot carry or the schema refuses
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * await client.enqueueEvent("cart-7", "items", { sku: "tea", count: 2 });
   */
  async enqueueEvent<T = unknown>(
    instanceId: string,
    queue: EventDefinition<T> | string,
    ...[data]: DataArguments<T>
  ): Promise<void> {
    const message = await this.#message(instanceId, queue, data);
    await this.#provider.enqueueForOrchestrator({ type: "QueueMessage", ...message });
  }

  /**
   * Asks an instance to end. It fails with the kind `Cancelled`, its activities and children are cancelled with it;
   * one that has ended already stays as it is. Sent to an id that nobody has started, it waits there, as every message
   * does, and ends what is started under it.
   *
   * @throws DUROXIDE_INVALID_INPUT for a bad id, or a reason that is no text
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * await client.cancel("order-1", "the customer withdrew");
   */
  async cancel(instanceId: string, reason: string = DEFAULTS.cancelReason): Promise<void> {
    const instance = checkInstanceId(instanceId);
    if (typeof reason !== "string") throw new InvalidInputError("reason: expected a string; say why in words.");
    checkPayload(reason, "reason", this.#maxPayloadBytes);
    await this.#provider.enqueueForOrchestrator({ type: "CancelInstance", instance, reason });
  }

  // Status and results

  /**
   * Where an instance stands, as of its last committed turn.
   *
   * @throws DUROXIDE_INVALID_INPUT for an id that no instance can have
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * const status = await client.getStatus("order-1");
   * if (status.status === "Failed") report(status.error);
   */
  async getStatus(instanceId: string): Promise<OrchestrationStatus> {
    const stored = await this.#provider.getInstanceStatus(checkInstanceId(instanceId));
    return stored === null ? { status: "NotFound" } : knownStatus(this.#provider, instanceId, stored);
  }

  /**
   * Waits for the end of an instance and answers how it ended; a failure is an answer too. `OrchestrationHandle.result`
   * is the typed form.
   *
   * Follows continue-as-new, and keeps waiting for an instance that nobody has started.
   *
   * @throws DUROXIDE_TIMEOUT if `timeoutMs` is given and passes
   * @throws DUROXIDE_ABORTED if `signal` fires
   * @throws DUROXIDE_PROVIDER if the store fails for good; transient failures are waited out
   * @throws DUROXIDE_INVALID_OPTIONS for an option that is unknown or wrong
   * @throws DUROXIDE_INVALID_INPUT for an id that no instance can have
   * @example
   * const ended = await client.waitForOrchestration("order-1", { timeoutMs: 30_000 });
   * report(ended.status === "Completed" ? ended.output : ended.error);
   */
  async waitForOrchestration(instanceId: string, options: WaitOptions = {}): Promise<EndedStatus> {
    checkOptions("waitForOrchestration", options, WAIT_OPTION_CHECKS);
    return this.#waitForEnd<EndedStatus>(checkInstanceId(instanceId), options);
  }

  /** As `waitForOrchestration`, for whoever wants no more than the result. */
  readonly #ending = (
    instanceId: string,
    options: WaitOptions = {},
    startedAt: Moment | null = null,
  ): Promise<Ending> => this.#waitForEnd<Ending>(instanceId, options, { told: completed, startedAt });

  #waitForEnd<T>(
    instanceId: string,
    options: WaitOptions,
    known: Pick<Wait<EndedStatus | T>, "told" | "startedAt"> = {},
  ): Promise<EndedStatus | T> {
    let status: OrchestrationStatus | null = null;
    return waitUntil<EndedStatus | T>(this.#waiting, {
      ...options,
      ...known,
      instanceId,
      what: `the end of instance '${instanceId}'`,
      look: async () => {
        status = await this.getStatus(instanceId);
        return isEnded(status) ? status : null;
      },
      lastSeen: () => status,
    });
  }

  /**
   * Waits until the custom status is newer than the one last seen, or the instance has ended, and answers where it
   * stands then. Several changes may be seen as one.
   *
   * @throws DUROXIDE_TIMEOUT, DUROXIDE_ABORTED, DUROXIDE_PROVIDER, DUROXIDE_INVALID_OPTIONS as `waitForOrchestration`
   * @example
   * let seen = await client.waitForStatusChange("order-1");
   * seen = await client.waitForStatusChange("order-1", { lastSeenVersion: seen.customStatusVersion });
   */
  async waitForStatusChange(instanceId: string, options: StatusChangeOptions = {}): Promise<KnownStatus> {
    checkOptions("waitForStatusChange", options, STATUS_CHANGE_OPTION_CHECKS);
    checkInstanceId(instanceId);
    const { lastSeenVersion = 0, ...waitOptions } = options;
    let status: OrchestrationStatus | null = null;
    return waitUntil(this.#waiting, {
      ...waitOptions,
      instanceId,
      what: `a status of instance '${instanceId}' newer than version ${lastSeenVersion}`,
      look: async () => {
        status = await this.getStatus(instanceId);
        if (status.status === "NotFound") return null;
        return isEnded(status) || status.customStatusVersion > lastSeenVersion ? status : null;
      },
      lastSeen: () => status,
    });
  }

  // Key-value store and history

  /**
   * A value of the instance's key-value store: JSON, or the text itself where it is none. Undefined: there is none.
   *
   * @throws DUROXIDE_PROVIDER if the store fails
   * @example
   * const stock = await client.getKvValue<number>("warehouse", "stock");
   */
  async getKvValue<T = unknown>(instanceId: string, key: string): Promise<T | undefined> {
    const text = await this.getKvText(instanceId, key);
    return text === undefined ? undefined : (decodePayload(text) as T);
  }

  /**
   * The stored text of a value, for values shared with other runtimes. Undefined: there is none.
   *
   * @throws DUROXIDE_PROVIDER if the store fails
   */
  async getKvText(instanceId: string, key: string): Promise<string | undefined> {
    return (await this.#provider.getKvValue(checkInstanceId(instanceId), checkKey(key))) ?? undefined;
  }

  /**
   * All values of the instance's key-value store, decoded as `getKvValue` does. Empty for an unknown instance.
   *
   * @throws DUROXIDE_PROVIDER if the store fails
   */
  async getKvAllValues(instanceId: string): Promise<ReadonlyMap<string, unknown>> {
    const texts = await this.#provider.getKvAllValues(checkInstanceId(instanceId));
    return new Map([...texts].map(([key, text]) => [key, decodePayload(text)]));
  }

  /**
   * Waits until the instance has a value under this key, and answers with it. An instance that ends without one is
   * waited for all the same: give a timeout.
   *
   * @throws DUROXIDE_TIMEOUT, DUROXIDE_ABORTED, DUROXIDE_PROVIDER, DUROXIDE_INVALID_OPTIONS as `waitForOrchestration`
   * @example
   * const answer = await client.waitForKvValue<string>("order-1", "answer", { timeoutMs: 5_000 });
   */
  async waitForKvValue<T = unknown>(instanceId: string, key: string, options: WaitOptions = {}): Promise<T> {
    checkOptions("waitForKvValue", options, WAIT_OPTION_CHECKS);
    checkInstanceId(instanceId);
    checkKey(key);
    const text = await waitUntil(this.#waiting, {
      ...options,
      instanceId,
      what: `a value under key '${key}' of instance '${instanceId}'`,
      look: () => this.#provider.getKvValue(instanceId, key),
      lastSeen: () => this.getStatus(instanceId),
    });
    return decodePayload(text) as T;
  }

  /**
   * The events of one execution in order, by default of the latest. Empty where there are none.
   *
   * @throws DUROXIDE_INVALID_INPUT for a bad id, or an execution id that is no integer from 1 up
   * @throws DUROXIDE_PROVIDER if the store fails, or holds events that cannot be decoded (kind "corrupt")
   * @example
   * for (const { eventId, type } of await client.readHistory("order-1")) report(`${eventId} ${type}`);
   */
  async readHistory(instanceId: string, executionId?: number): Promise<readonly Event[]> {
    const instance = checkInstanceId(instanceId);
    if (executionId === undefined) return this.#provider.read(instance);
    return this.#provider.readWithExecution(instance, checkExecutionId(executionId));
  }

  async #message(
    instanceId: string,
    target: EventDefinition | string,
    data: unknown,
  ): Promise<{ readonly instance: string; readonly name: string; readonly data: string }> {
    const instance = checkInstanceId(instanceId);
    if (typeof target !== "string" && target?.kind !== "event") {
      throw new InvalidInputError(`event: a definition or a name is expected, got ${messageOf(target)}.`);
    }
    const name = typeof target === "string" ? checkName(target, "event name") : target.name;
    const schema = typeof target === "string" ? null : target.schema;
    return { instance, name, data: await this.#encode(schema, data, `data of event '${name}'`) };
  }

  /**
   * The text of a value that its schema accepts: of the value as it was given, because the receiver applies the schema
   * again, and as it was at the call, because a schema may take its time.
   */
  async #encode(schema: Schema<unknown> | null, value: unknown, what: string): Promise<string> {
    const text = checkPayload(encodePayload(value, what), what, this.#maxPayloadBytes);
    await validateAsync(schema, value, what);
    return text;
  }
}

function isLimits(value: unknown): null {
  checkOptions("new Client, limits", value, LIMIT_CHECKS);
  return null;
}

/** An orchestration of which only the name is known. */
function untyped(name: string): Pick<OrchestrationDefinition, "name" | "version" | "input" | "output"> {
  return { name: checkName(name, "orchestration name"), version: null, input: null, output: null };
}

function checkTarget<T extends OrchestrationDefinition>(target: T): T {
  if (target?.kind === "orchestration") return target;
  throw new InvalidInputError(`orchestration: a definition or a name is expected, got ${messageOf(target)}.`);
}

/** Other runtimes may have written under keys that `ctx.kv` here refuses. */
function checkKey(key: unknown): string {
  if (typeof key === "string") return key;
  throw new InvalidInputError(`key must be a string, not ${key === null ? "null" : typeof key}.`);
}
