// engine/orchestration.ts — the context object: checks what code asks for, turns it into actions, hands out tasks.

import type { ActivityDefinition, EventDefinition, OrchestrationDefinition, Schema } from "../define.js";
import { durationMs } from "../duration.js";
import { InvalidInputError, messageOf, TaskCancelledError } from "../errors.js";
import type { EventOf } from "../history/event.js";
import { checkInstanceId, checkName, checkRootInstanceId, checkTag, checkVersion } from "../history/limits.js";
import { decodePayload, encodePayload } from "../history/payload.js";
import { checkOptions, isObject } from "../options.js";
import { validateSync } from "../schema.js";
import type { Action } from "./action.js";
import { all, type Branches, race } from "./combinators.js";
import { type DurableTask, Task } from "./durable-task.js";
import type { Execution } from "./execution.js";
import type {
  CallActivityOptions,
  DetachedOptions,
  Duration,
  KvStore,
  OrchestrationContext,
  ReplaySafeTrace,
  SubOrchestrationOptions,
} from "./orchestration-context.js";
import { retrying } from "./retry.js";
import { Slot, type SlotKind } from "./slot.js";
import { GET_KV_VALUE, NEW_GUID, UTC_NOW_MS } from "./system-calls.js";

/** What a call needs to know of a definition. */
type ActivityCallee = Pick<ActivityDefinition, "kind" | "name" | "input" | "output">;
type OrchestrationCallee = Pick<OrchestrationDefinition, "kind" | "name" | "version" | "input" | "output">;
type Decode = (text: string) => unknown;

export class Orchestration implements OrchestrationContext {
  readonly instanceId: string;
  readonly executionId: number;
  readonly orchestrationName: string;
  readonly orchestrationVersion: string;
  readonly #execution: Execution;
  /** Made for those who ask: most do not. */
  #kv: KvStore | null = null;
  #trace: ReplaySafeTrace | null = null;

  constructor(execution: Execution, started: EventOf<"OrchestrationStarted">) {
    this.#execution = execution;
    this.instanceId = execution.instance;
    this.executionId = execution.executionId;
    this.orchestrationName = started.name;
    this.orchestrationVersion = started.version;
  }

  get kv(): KvStore {
    this.#kv ??= kvStore(this.#execution);
    return this.#kv;
  }

  get trace(): ReplaySafeTrace {
    this.#trace ??= traceOf(this.#execution);
    return this.#trace;
  }

  get isReplaying(): boolean {
    return this.#execution.isReplaying;
  }

  get customStatus(): string | null {
    return this.#execution.customStatus;
  }

  scheduleActivity<O>(
    activity: ActivityCallee | string,
    input?: unknown,
    options: CallActivityOptions = NO_OPTIONS,
  ): DurableTask<O> {
    return this.#unlessRefused(() => this.#callActivity(activity, input, options));
  }

  #callActivity<O>(activity: ActivityCallee | string, input: unknown, options: CallActivityOptions): DurableTask<O> {
    const definition = typeof activity === "string" ? null : activity;
    const name = nameOf(activity, "activity", "activity");
    const what = `activity '${name}'`;
    if (options !== NO_OPTIONS) checkOptions(what, options, CALL_ACTIVITY_CHECKS);
    const type = "CallActivity";
    const text = encodeInput(definition?.input ?? null, input, `input of ${what}`);
    const { sessionId, tag } = options;
    const action: Action =
      sessionId === undefined && tag === undefined
        ? { type, name, input: text }
        : {
            type,
            name,
            input: text,
            ...(sessionId === undefined ? {} : { sessionId: checkName(sessionId, `session of ${what}`) }),
            ...(tag === undefined ? {} : { tag: checkTag(tag, name) }),
          };
    const decode = this.#decoder(definition?.output ?? null, `output of ${what}`);
    if (options.retry === undefined) return this.#schedule<O>("activity", name, action, decode);
    let first: Slot | null = null;
    const attempt = (): DurableTask<O> => {
      const retryOf = first?.scheduleId ?? null;
      const slot = this.#open("activity", name, retryOf === null ? action : { ...action, retryOf }, decode);
      first ??= slot;
      return slot.task as DurableTask<unknown> as DurableTask<O>;
    };
    return retrying(this.#execution, this, name, options.retry, attempt);
  }

  scheduleTimer(delay: Duration): DurableTask<void> {
    return this.#unlessRefused(() => {
      const fireAtMs = this.#execution.nowMs + durationMs(delay, "timer");
      return this.#schedule("timer", "", { type: "CreateTimer", fireAtMs }, () => undefined);
    });
  }

  waitForEvent<T>(event: EventDefinition<T> | string): DurableTask<T> {
    return this.#unlessRefused(() => {
      const { name, schema } = eventOf(event);
      const decode = this.#decoder(schema, `event '${name}'`);
      return this.#schedule("event", name, { type: "WaitExternal", name }, decode);
    });
  }

  dequeueEvent<T>(queue: EventDefinition<T> | string): DurableTask<T> {
    return this.#unlessRefused(() => {
      const { name, schema } = eventOf(queue);
      const decode = this.#decoder(schema, `message of '${name}'`);
      return this.#schedule("queue", name, { type: "DequeueEvent", name }, decode);
    });
  }

  scheduleSubOrchestration<O>(
    orchestration: OrchestrationCallee | string,
    input?: unknown,
    options: SubOrchestrationOptions = {},
  ): DurableTask<O> {
    return this.#unlessRefused(() => this.#startChild(orchestration, input, options));
  }

  #startChild<O>(
    orchestration: OrchestrationCallee | string,
    input: unknown,
    options: SubOrchestrationOptions,
  ): DurableTask<O> {
    const definition = typeof orchestration === "string" ? null : orchestration;
    const name = nameOf(orchestration, "orchestration", "sub-orchestration");
    const what = `sub-orchestration '${name}'`;
    checkOptions(what, options, SUB_ORCHESTRATION_CHECKS);
    const action: Action = {
      type: "StartSubOrchestration",
      name,
      version: versionOf(options, what) ?? definition?.version ?? null,
      instance: options.instanceId === undefined ? null : checkRootInstanceId(options.instanceId),
      input: encodeInput(definition?.input ?? null, input, `input of ${what}`),
    };
    const decode = this.#decoder(definition?.output ?? null, `output of ${what}`);
    return this.#schedule("subOrchestration", name, action, decode);
  }

  startOrchestration<I>(
    orchestration: OrchestrationDefinition<I, unknown> | string,
    options: DetachedOptions<I>,
  ): void {
    if (this.#refusal() !== null) return;
    const definition = typeof orchestration === "string" ? null : orchestration;
    const name = nameOf(orchestration, "orchestration", "orchestration");
    const what = `orchestration '${name}'`;
    checkOptions(what, options, DETACHED_CHECKS);
    this.#execution.emit(
      {
        type: "StartOrchestrationDetached",
        name,
        version: versionOf(options, what) ?? definition?.version ?? null,
        instance: checkRootInstanceId(options?.instanceId),
        input: encodeInput(definition?.input ?? null, options.input, `input of ${what}`),
      },
      null,
    );
  }

  continueAsNew(input?: unknown, options: { readonly version?: string } = {}): DurableTask<never> {
    return this.#unlessRefused(() => {
      const what = `orchestration '${this.orchestrationName}'`;
      checkOptions(`ctx.continueAsNew of ${what}`, options, { version: unchecked });
      const text = encodePayload(input, `input of ${what}`);
      this.#execution.continueAsNew({ input: text, version: versionOf(options, what) });
      return new Task<never>({ onListen: () => this.#execution.refuse(), onDrop: () => {} });
    });
  }

  all<R>(branches: Branches): DurableTask<R> {
    return this.#unlessRefused(() => all(this.#execution, branches) as DurableTask<R>);
  }

  race<R>(branches: Branches): DurableTask<R> {
    return this.#unlessRefused(() => race(this.#execution, branches) as DurableTask<R>);
  }

  setCustomStatus(status: string): void {
    if (this.#refusal() !== null) return;
    if (typeof status !== "string") {
      throw new InvalidInputError(`custom status: a string is expected, got ${typeof status}.`);
    }
    this.#setCustomStatus(status);
  }

  resetCustomStatus(): void {
    if (this.#refusal() === null) this.#setCustomStatus(null);
  }

  readKv<T>(instanceId: string, key: string): DurableTask<T | null> {
    return this.#unlessRefused(() => {
      checkInstanceId(instanceId);
      return this.#callSystem(
        GET_KV_VALUE,
        JSON.stringify({ instance_id: instanceId, key: checkName(key, "key") }),
        decodeStoredValue,
      );
    });
  }

  utcNow(): DurableTask<number> {
    return this.#unlessRefused(() => this.#callSystem(UTC_NOW_MS, "", Number));
  }

  newGuid(): DurableTask<string> {
    return this.#unlessRefused(() => this.#callSystem(NEW_GUID, "", (text) => text));
  }

  #callSystem<T>(name: string, input: string, decode: Decode): DurableTask<T> {
    return this.#schedule("activity", name, { type: "CallActivity", name, input }, decode);
  }

  #setCustomStatus(status: string | null): void {
    this.#execution.emit({ type: "UpdateCustomStatus", status }, null);
    this.#execution.customStatus = status;
  }

  #schedule<T>(kind: SlotKind, name: string, action: Action, decode: Decode): DurableTask<T> {
    return this.#open(kind, name, action, decode).task as DurableTask<unknown> as DurableTask<T>;
  }

  #open(kind: SlotKind, name: string, action: Action, decode: Decode): Slot {
    const slot = new Slot(this.#execution, kind, name, this.#execution.currentScope, decode);
    this.#execution.emit(action, slot);
    return slot;
  }

  /** A schema is the user's code: it runs where the orchestration does. */
  #decoder(schema: Schema<unknown> | null, what: string): Decode {
    if (schema === null) return decodePayload;
    const { rootScope } = this.#execution;
    return (text) => this.#execution.runCode(rootScope, () => validateSync(schema, decodePayload(text), what));
  }

  #unlessRefused<T>(task: () => DurableTask<T>): DurableTask<T> {
    const refusal = this.#refusal();
    return refusal === null ? task() : failed(refusal);
  }

  #refusal(): Error | null {
    return refusalOf(this.#execution);
  }
}

const NO_OPTIONS: CallActivityOptions = Object.freeze({});

/** Misspelled options are refused; what the right ones say is checked where it is used, in words of their own. */
const unchecked = (): null => null;
const CALL_ACTIVITY_CHECKS = { retry: isObject, sessionId: unchecked, tag: unchecked };
const SUB_ORCHESTRATION_CHECKS = { instanceId: unchecked, version: unchecked };
const DETACHED_CHECKS = { ...SUB_ORCHESTRATION_CHECKS, input: unchecked };

function versionOf(options: { readonly version?: string } | undefined, what: string): string | null {
  return options?.version === undefined ? null : checkVersion(options.version, `version of ${what}`);
}

/**
 * Null where code may run. Asked before anything is looked at: outside a turn nothing throws, not even for a bad
 * argument, because a throw in a foreign callback would end the process.
 */
function refusalOf(execution: Execution): Error | null {
  const refusal = execution.refuse();
  if (refusal !== null) return refusal;
  return execution.currentScope.isClosed ? new TaskCancelledError("This branch was cancelled.") : null;
}

function failed<T>(error: Error): DurableTask<T> {
  const task = new Task<T>({ onListen: () => null, onDrop: () => {} });
  task.settle({ status: "rejected", error });
  return task;
}

function eventOf<T>(event: EventDefinition<T> | string): { name: string; schema: Schema<T> | null } {
  const schema = typeof event === "string" ? null : (event?.schema ?? null);
  return { name: checkName(nameOf(event, "event", "event"), "event name"), schema };
}

type DefinitionKind = (ActivityDefinition | OrchestrationDefinition | EventDefinition)["kind"];
type Definition = { readonly kind: DefinitionKind; readonly name: string };

/** An activity or orchestration may have any name that some history holds, even an empty one. */
function nameOf(callee: Definition | string, kind: DefinitionKind, what: string): string {
  if (typeof callee === "string") return callee;
  if (callee?.kind === kind && typeof callee.name === "string") return callee.name;
  throw new InvalidInputError(`${what}: a definition or a name is expected, got ${described(callee, kind)}.`);
}

/** What was given in place of a definition. A function has a name too, but nobody has registered it under that. */
function described(stranger: unknown, kind: DefinitionKind): string {
  if (typeof stranger === "function") return `a function; give what ${kind}("Name", …) returns`;
  const { kind: actual, name } = (stranger ?? {}) as { readonly kind?: unknown; readonly name?: unknown };
  return typeof actual === "string" && typeof name === "string" ? `the ${actual} '${name}'` : messageOf(stranger);
}

function decodeStoredValue(text: string): unknown {
  const stored: unknown = JSON.parse(text);
  return typeof stored === "string" ? decodePayload(stored) : null;
}

/** Bad input is refused here already, where the schema can tell at once; the receiver parses in any case. */
function encodeInput(schema: Schema<unknown> | null, input: unknown, what: string): string {
  const verdict = schema?.["~standard"].validate(input);
  // Nobody waits for a verdict that comes later, and its failure is no news.
  if (verdict instanceof Promise) verdict.catch(() => {});
  else validateSync(schema, input, what);
  return encodePayload(input, what);
}

function traceOf(execution: Execution): ReplaySafeTrace {
  return {
    debug: (message) => execution.trace("debug", message),
    info: (message) => execution.trace("info", message),
    warn: (message) => execution.trace("warn", message),
    error: (message) => execution.trace("error", message),
  };
}

function kvStore(execution: Execution): KvStore {
  const { kv } = execution;
  const mayWrite = (): boolean => refusalOf(execution) === null;
  const write = (key: string, text: string): void => {
    // The time of a write is part of the state that code can see, so a replay must see the recorded one.
    const recorded = execution.nextRecorded;
    const lastUpdatedAtMs = recorded?.type === "KeyValueSet" ? recorded.lastUpdatedAtMs : execution.nowMs;
    execution.emit({ type: "SetKeyValue", key, value: text, lastUpdatedAtMs }, null);
    kv.set(key, text, lastUpdatedAtMs);
  };
  const remove = (key: string): void => {
    execution.emit({ type: "ClearKeyValue", key }, null);
    kv.delete(key);
  };
  return {
    get<T>(key: string): T | undefined {
      const text = kv.get(key);
      return text === undefined ? undefined : (decodePayload(text) as T);
    },
    set: (key, value) => {
      if (mayWrite()) write(checkName(key, "key"), encodePayload(value, `value of key '${key}'`));
    },
    getText: (key) => kv.get(key),
    setText: (key, text) => {
      if (!mayWrite()) return;
      checkName(key, "key");
      if (typeof text !== "string") {
        throw new InvalidInputError(`key '${key}': a string is expected, got ${typeof text}.`);
      }
      write(key, text);
    },
    delete: (key) => {
      if (mayWrite()) remove(checkName(key, "key"));
    },
    clear: () => {
      if (!mayWrite()) return;
      execution.emit({ type: "ClearKeyValues" }, null);
      kv.clear();
    },
    has: (key) => kv.get(key) !== undefined,
    keys: () => kv.keys(),
    get size() {
      return kv.size;
    },
    pruneUpdatedBefore: (timeMs) => {
      if (!mayWrite()) return 0;
      const keys = kv.keysUpdatedBefore(timeMs);
      for (const key of keys) remove(key);
      return keys.length;
    },
  };
}
