// provider/payload-codec.ts — a provider whose store never sees what users' texts say: encrypted, compressed, or both.
//
// Runtime, client and management stand in front of it and see clear text; the store behind it sees what the codec made.
//
//   K1. Every text that is a user's (history/map-payloads.ts) is encoded on its way in and decoded on its way out, the same
//       texts in the metadata and answers of the store included. Nothing else is changed.
//   K2. A codec that fails loses nothing. What cannot be encoded is not written. Work that cannot be decoded is given back,
//       uncounted, with pauses that grow, and the fetch is refused: whoever has the right key goes on where it stands. A wrong key
//       fails no instance and drops no message, however long it takes to be noticed.
//   K3. The codec is handed well-formed Unicode only, so that it may go through UTF-8. What is not, is escaped before.
//   K4. Two encodings of one text may differ: nothing in a store compares users' texts.

import { InvalidOptionsError, messageOf, ProviderError } from "../errors.js";
import type { Event } from "../history/event.js";
import type { KvEntry } from "../history/kv-entry.js";
import { type MapText, mapEventPayloads, mapWorkItemPayloads } from "../history/map-payloads.js";
import { type ActivityExecute, type OrchestratorItem, targetInstance, type WorkItem } from "../history/work-item.js";
import { hasMethods } from "../options.js";
import type { ProviderAdmin } from "./admin.js";
import { isProvider } from "./is-provider.js";
import { GivenBack, type GrowingDelay, growingDelayMs } from "./kit/given-back.js";
import { ProviderWrapper } from "./kit/provider-wrapper.js";
import type {
  EnqueueOptions,
  EnqueueOutcome,
  FetchOrchestrationOptions,
  FetchWorkOptions,
  InstanceStatus,
  LockedOrchestrationItem,
  LockedWorkItem,
  OrchestrationItem,
  Provider,
  SessionFetch,
  TurnCommit,
} from "./provider.js";

/**
 * Turns texts into what the store keeps, and back: encryption, compression, or both.
 *
 * Both ways are synchronous, because every turn goes through them many times, and because a key service that does not
 * answer must not hold a lock. So fetch keys before the runtime starts, and let the encoded text name its key: then a key
 * is replaced by handing in a codec that encodes with the new one and still decodes with the old.
 *
 * `decode(encode(text))` must be `text`, for any well-formed text, also in another process and years later. `encode` may answer
 * differently each time, as a cipher with a random nonce does. `decode` throws for what it cannot decode; what is thrown must not
 * quote the text. A `decode` that lets clear text pass reads what was stored before there was a codec.
 *
 * @example
 * import { deflateRawSync, inflateRawSync } from "node:zlib";
 *
 * const compressing: PayloadCodec = {
 *   encode: (text) => deflateRawSync(text).toString("base64"),
 *   decode: (text) => inflateRawSync(Buffer.from(text, "base64")).toString("utf8"),
 * };
 */
export interface PayloadCodec {
  /** What the store gets instead of the text. */
  encode(text: string): string;
  /** The text. Throws for what is none of its own. */
  decode(text: string): string;
}

/**
 * The provider, with all texts of users encoded in its store: inputs, outputs, results, event data, key-values, custom status,
 * reasons of cancellations, failures. Hand it to runtimes and clients in place of the provider; all that share a store need codecs that
 * understand each other. Closing it closes the provider.
 *
 * A codec that cannot decode (a wrong key, a changed text) fails no instance and loses nothing: a runtime gives such work back and reports it
 * (`loop-failed`), a client's reads reject. In both cases with a `ProviderError` of kind `payload-codec`.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a provider or a codec that is none, and for a codec that does not give back a text
 * @example
 * import { SqliteProvider } from "duroxide-ts/sqlite";
 *
 * declare const codec: PayloadCodec;
 * await using provider = withPayloadCodec(await SqliteProvider.open("./app.db"), codec);
 * await using runtime = await Runtime.start({ provider, orchestrations, activities });
 */
export function withPayloadCodec(provider: Provider, codec: PayloadCodec): Provider {
  const wrong = isProvider(provider);
  if (wrong !== null) throw new InvalidOptionsError(`withPayloadCodec: the provider ${wrong}.`);
  return new EncodedProvider(provider, checkedCodec(codec));
}

class EncodedProvider extends ProviderWrapper {
  readonly #codec: PayloadCodec;
  readonly #admin: ProviderAdmin | null;
  readonly #givenBack = new GivenBack();

  constructor(inner: Provider, codec: PayloadCodec) {
    super(inner);
    this.#codec = codec;
    this.#admin = inner.admin === null ? null : this.#decodingAdmin(inner.admin);
  }

  override get admin(): ProviderAdmin | null {
    return this.#admin;
  }

  // Orchestrator queue

  override async enqueueForOrchestrator(item: OrchestratorItem, options?: EnqueueOptions): Promise<EnqueueOutcome> {
    return super.enqueueForOrchestrator(this.#encodedItem("enqueueForOrchestrator", item), options);
  }

  override async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    const locked = await super.fetchOrchestrationItem(options);
    if (locked === null) return null;
    const { instance, executionId, history } = locked.item;
    return this.#decodedOrGivenBack(
      `${executionId}:${history.length}:${instance}`,
      () => ({ ...locked, item: this.#decodedOrchestration("fetchOrchestrationItem", locked.item) }),
      (delayMs) => super.abandonOrchestrationItem(locked.lockToken, { delayMs, ignoreAttempt: true }),
    );
  }

  override async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    return super.ackOrchestrationItem(lockToken, this.#encodedTurn("ackOrchestrationItem", turn));
  }

  // Worker queue

  override async enqueueForWorker(item: ActivityExecute): Promise<void> {
    return super.enqueueForWorker(this.#encodedItem("enqueueForWorker", item));
  }

  override async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    const locked = await super.fetchWorkItem(options);
    if (locked === null) return null;
    const { instance, executionId, id } = locked.item;
    return this.#decodedOrGivenBack(
      `${executionId}:${id}:${instance}`,
      () => ({ ...locked, item: this.#decodedItem("fetchWorkItem", locked.item) }),
      async (delayMs) => {
        await super.abandonWorkItem(locked.lockToken, { delayMs, ignoreAttempt: true });
        if (options.session !== undefined && locked.item.sessionId !== undefined) await this.#leave(options.session);
      },
    );
  }

  /** A session whose work cannot be decoded here must not stay here: whoever has the key could not take it. K2 */
  async #leave({ ownerId }: SessionFetch): Promise<void> {
    await super.renewSessionLock([ownerId], { extendForMs: 1, idleTimeoutMs: LONG_MS });
  }

  override async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    return super.ackWorkItem(lockToken, completion && this.#encodedItem("ackWorkItem", completion));
  }

  // Reading

  override async read(instance: string): Promise<readonly Event[]> {
    return this.#decodedEvents("read", await super.read(instance));
  }

  override async readWithExecution(instance: string, executionId: number): Promise<readonly Event[]> {
    return this.#decodedEvents("readWithExecution", await super.readWithExecution(instance, executionId));
  }

  override async appendWithExecution(instance: string, executionId: number, events: readonly Event[]): Promise<void> {
    return super.appendWithExecution(instance, executionId, this.#encodedEvents("appendWithExecution", events));
  }

  override async getInstanceStatus(instance: string): Promise<InstanceStatus | null> {
    const status = await super.getInstanceStatus(instance);
    if (status === null) return null;
    const decode = this.#decoder("getInstanceStatus", instance);
    return {
      ...status,
      output: unlessNull(status.output, decode("the output")),
      customStatus: unlessNull(status.customStatus, decode("the custom status")),
    };
  }

  override async getCustomStatus(
    instance: string,
    lastSeenVersion: number,
  ): Promise<{ readonly status: string | null; readonly version: number } | null> {
    const answer = await super.getCustomStatus(instance, lastSeenVersion);
    const decode = this.#decoder("getCustomStatus", instance);
    return answer && { ...answer, status: unlessNull(answer.status, decode("the custom status")) };
  }

  override async getKvValue(instance: string, key: string): Promise<string | null> {
    const decode = this.#decoder("getKvValue", instance);
    return unlessNull(await super.getKvValue(instance, key), decode(`the value of '${key}'`));
  }

  override async getKvAllValues(instance: string): Promise<ReadonlyMap<string, string>> {
    const values = await super.getKvAllValues(instance);
    const decode = this.#decoder("getKvAllValues", instance);
    return new Map([...values].map(([key, value]) => [key, decode(`the value of '${key}'`)(value)]));
  }

  #decodingAdmin(inner: ProviderAdmin): ProviderAdmin {
    const withOutput = <T extends { readonly output: string | null }>(
      operation: string,
      instance: string,
      info: T,
    ): T => {
      return { ...info, output: unlessNull(info.output, this.#decoder(operation, instance)("the output")) };
    };
    return {
      listInstances: () => inner.listInstances(),
      listInstancesByStatus: (status) => inner.listInstancesByStatus(status),
      listExecutions: (instance) => inner.listExecutions(instance),
      latestExecutionId: (instance) => inner.latestExecutionId(instance),
      getInstanceInfo: async (instance) =>
        withOutput("getInstanceInfo", instance, await inner.getInstanceInfo(instance)),
      getExecutionInfo: async (instance, executionId) =>
        withOutput("getExecutionInfo", instance, await inner.getExecutionInfo(instance, executionId)),
      getSystemMetrics: () => inner.getSystemMetrics(),
      getQueueDepths: () => inner.getQueueDepths(),
      listChildren: (instance) => inner.listChildren(instance),
      getParentId: (instance) => inner.getParentId(instance),
      getInstanceTree: (instance) => inner.getInstanceTree(instance),
      readHistory: async (instance) => this.#decodedEvents("readHistory", await inner.readHistory(instance)),
      readHistoryWithExecutionId: async (instance, executionId) =>
        this.#decodedEvents(
          "readHistoryWithExecutionId",
          await inner.readHistoryWithExecutionId(instance, executionId),
        ),
      deleteInstance: (instance, force) => inner.deleteInstance(instance, force),
      deleteInstancesAtomic: (instances, force) => inner.deleteInstancesAtomic(instances, force),
      deleteInstanceBulk: (filter) => inner.deleteInstanceBulk(filter),
      pruneExecutions: (instance, options) => inner.pruneExecutions(instance, options),
      pruneExecutionsBulk: (filter, options) => inner.pruneExecutionsBulk(filter, options),
    };
  }

  // Encoding

  #encodedItem<Item extends WorkItem>(operation: string, item: Item): Item {
    return this.#attempt(operation, "encode", () => mapWorkItemPayloads(item, this.#encode), describeItem(item));
  }

  #encodedEvents(operation: string, events: readonly Event[]): readonly Event[] {
    return events.map((event) =>
      this.#attempt(operation, "encode", () => mapEventPayloads(event, this.#encode), describeEvent(event)),
    );
  }

  #encodedTurn(operation: string, turn: TurnCommit): TurnCommit {
    const { metadata } = turn;
    const encodeOutput = () => ({ ...metadata, output: this.#encode(metadata.output!) });
    const execution = () => `the output of execution ${turn.executionId}`;
    return {
      ...turn,
      events: this.#encodedEvents(operation, turn.events),
      workerItems: turn.workerItems.map((item) => this.#encodedItem(operation, item)),
      orchestratorItems: turn.orchestratorItems.map((item) => this.#encodedItem(operation, item)),
      metadata: metadata.output === undefined ? metadata : this.#attempt(operation, "encode", encodeOutput, execution),
    };
  }

  // Decoding

  #decodedItem<Item extends WorkItem>(operation: string, item: Item): Item {
    return this.#attempt(operation, "decode", () => mapWorkItemPayloads(item, this.#decode), describeItem(item));
  }

  #decodedEvents(operation: string, events: readonly Event[]): readonly Event[] {
    return events.map((event) =>
      this.#attempt(operation, "decode", () => mapEventPayloads(event, this.#decode), describeEvent(event)),
    );
  }

  #decodedOrchestration(operation: string, item: OrchestrationItem): OrchestrationItem {
    const decode = this.#decoder(operation, item.instance);
    const decodedEntry = ([key, entry]: [string, KvEntry]): [string, KvEntry] => {
      return [key, { ...entry, value: decode(`the value of '${key}'`)(entry.value) }];
    };
    return {
      ...item,
      history: this.#decodedEvents(operation, item.history),
      messages: item.messages.map((message) => this.#decodedItem(operation, message)),
      kvSnapshot: new Map([...item.kvSnapshot].map(decodedEntry)),
    };
  }

  /** Decodes single texts of an instance. */
  #decoder(operation: string, instance: string): (what: string) => MapText {
    return (what) => (text) =>
      this.#attempt(
        operation,
        "decode",
        () => this.#decode(text),
        () => `${what} of instance '${instance}'`,
      );
  }

  /** K2 */
  async #decodedOrGivenBack<T>(
    work: string,
    decoded: () => T,
    giveBack: (delayMs: number) => Promise<void>,
  ): Promise<T> {
    try {
      const answer = decoded();
      this.#givenBack.forget(work);
      return answer;
    } catch (error) {
      await giveBack(growingDelayMs(UNDECODABLE_DELAY, this.#givenBack.count(work)));
      throw error;
    }
  }

  // The codec

  readonly #encode: MapText = (text) => textFrom("encode", this.#codec.encode(escaped(text)));
  readonly #decode: MapText = (text) => unescaped(textFrom("decode", this.#codec.decode(text)));

  #attempt<T>(operation: string, direction: Direction, work: () => T, what: () => string): T {
    try {
      return work();
    } catch (cause) {
      const remedy = direction === "encode" ? "Nothing was written" : "Nothing is lost";
      const message = `The payload codec cannot ${direction} ${what()}: ${messageOf(cause)}. ${remedy}; check the keys of this process.`;
      throw new ProviderError("payload-codec", operation, message, { cause });
    }
  }
}

type Direction = "encode" | "decode";

/**
 * Soon enough for whoever has the key and for a deployment that brings it; and not in the way of all others where many
 * instances cannot be decoded by anybody any more.
 */
const UNDECODABLE_DELAY: GrowingDelay = { baseMs: 1_000, maxMs: 60_000 };

/** Whatever was used within it counts: a session that was taken just now does. */
const LONG_MS = 86_400_000;

/** Long enough for a compressing codec to do something, and beyond ASCII. */
const PROBE = JSON.stringify({ probe: "duroxide-ts ".repeat(4), letters: "é 日本 🚀", "": null });

/** @throws InvalidOptionsError */
function checkedCodec(codec: PayloadCodec): PayloadCodec {
  if (!hasMethods(codec, "encode", "decode")) {
    throw new InvalidOptionsError("withPayloadCodec: the codec must be an object with encode(text) and decode(text).");
  }
  let answer: string;
  try {
    answer = textFrom("decode", codec.decode(textFrom("encode", codec.encode(PROBE))));
  } catch (cause) {
    const message = `withPayloadCodec: the codec does not decode what it has just encoded: ${messageOf(cause)}`;
    throw new InvalidOptionsError(message, { cause });
  }
  if (answer === PROBE) return codec;
  throw new InvalidOptionsError("withPayloadCodec: decode(encode(text)) of the codec is another text.");
}

/** Anything else would be left out of the stored JSON, and lost. */
function textFrom(direction: Direction, answer: unknown): string {
  if (typeof answer === "string") return answer;
  const hint = answer instanceof Promise ? "; it must be synchronous: fetch keys before the runtime starts" : "";
  if (answer instanceof Promise) answer.catch(() => {}); // What it rejects with is nobody's, and must not end the process.
  throw new TypeError(
    `${direction} answered ${answer instanceof Promise ? "a promise" : typeof answer}, not a string${hint}`,
  );
}

/** With the `u` flag a surrogate matches only where it has no partner. Such text changes on its way through UTF-8. */
const NEEDS_ESCAPING = /^\0|\p{Surrogate}/u;
const ESCAPED = "\0";

/** K3: JSON escapes half surrogate pairs. */
function escaped(text: string): string {
  return NEEDS_ESCAPING.test(text) ? ESCAPED + JSON.stringify(text) : text;
}

function unescaped(text: string): string {
  return text.startsWith(ESCAPED) ? (JSON.parse(text.slice(ESCAPED.length)) as string) : text;
}

function unlessNull(text: string | null, map: MapText): string | null {
  return text === null ? null : map(text);
}

function describeEvent({ type, eventId, instanceId, executionId }: Event): () => string {
  return () => `${type}, event ${eventId} of execution ${executionId} of instance '${instanceId}'`;
}

function describeItem(item: WorkItem): () => string {
  return () => `${item.type} for instance '${targetInstance(item)}'`;
}
