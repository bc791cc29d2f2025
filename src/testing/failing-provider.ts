// testing/failing-provider.ts — a provider whose next fetch or ack fails.

import { ProviderError } from "../errors.js";
import type { OrchestratorItem } from "../history/work-item.js";
import { type ProviderOperation, ProviderWrapper } from "../provider/kit/provider-wrapper.js";
import type {
  FetchOrchestrationOptions,
  FetchWorkOptions,
  LockedOrchestrationItem,
  LockedWorkItem,
  Provider,
  TurnCommit,
} from "../provider/provider.js";
import { checkedProvider } from "./checked-provider.js";

/**
 * Fails the next call of a kind, once; to say so twice before that call changes nothing. Fetches fail with a transient error,
 * acks with a permanent one, and neither touches the store.
 *
 * @throws DUROXIDE_INVALID_OPTIONS for a provider that is none
 * @example
 * const provider = new FailingProvider(new MemoryProvider({ clock }));
 * provider.setAckThenFail(true);
 * provider.failNextAckWorkItem(); // done, but nobody hears of it
 */
export class FailingProvider extends ProviderWrapper {
  readonly #armed = new Set<ProviderOperation>();
  #allowsFailureCommits = false;
  #acksThenFails = false;

  constructor(inner: Provider) {
    super(checkedProvider("new FailingProvider", inner));
  }

  /** The next fetch of a turn fails. */
  failNextFetchOrchestrationItem(): void {
    this.#armed.add("fetchOrchestrationItem");
  }

  /** The next fetch of an activity fails. */
  failNextFetchWorkItem(): void {
    this.#armed.add("fetchWorkItem");
  }

  /** The next ack of a turn fails. */
  failNextAckOrchestrationItem(): void {
    this.#armed.add("ackOrchestrationItem");
  }

  /** The next ack of an activity fails. */
  failNextAckWorkItem(): void {
    this.#armed.add("ackWorkItem");
  }

  /** Whether a turn that fails its orchestration is committed although its ack was to fail. @default false */
  setAllowFailureCommits(isAllowed: boolean): void {
    this.#allowsFailureCommits = isAllowed;
  }

  /** Whether a failing ack of a work item is done first, so that only the reply is lost. @default false */
  setAckThenFail(isDoneFirst: boolean): void {
    this.#acksThenFails = isDoneFirst;
  }

  override async fetchOrchestrationItem(options: FetchOrchestrationOptions): Promise<LockedOrchestrationItem | null> {
    if (this.#disarm("fetchOrchestrationItem")) throw passing("fetchOrchestrationItem");
    return super.fetchOrchestrationItem(options);
  }

  override async fetchWorkItem(options: FetchWorkOptions): Promise<LockedWorkItem | null> {
    if (this.#disarm("fetchWorkItem")) throw passing("fetchWorkItem");
    return super.fetchWorkItem(options);
  }

  override async ackOrchestrationItem(lockToken: string, turn: TurnCommit): Promise<void> {
    const isAllowed = this.#allowsFailureCommits && turn.events.some(({ type }) => type === "OrchestrationFailed");
    if (this.#disarm("ackOrchestrationItem") && !isAllowed) throw permanent("ackOrchestrationItem");
    return super.ackOrchestrationItem(lockToken, turn);
  }

  override async ackWorkItem(lockToken: string, completion: OrchestratorItem | null): Promise<void> {
    const isToFail = this.#disarm("ackWorkItem");
    if (!isToFail || this.#acksThenFails) await super.ackWorkItem(lockToken, completion);
    if (isToFail) throw permanent("ackWorkItem");
  }

  /** Whether the call is to fail; the next one is not. */
  #disarm(operation: ProviderOperation): boolean {
    return this.#armed.delete(operation);
  }
}

function passing(operation: ProviderOperation): ProviderError {
  return new ProviderError("transient", operation, "simulated transient infrastructure failure");
}

function permanent(operation: ProviderOperation): ProviderError {
  return new ProviderError("invalid", operation, "simulated infrastructure failure");
}
