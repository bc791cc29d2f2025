// duroxide-ts/provider — the contract and the kit, for authors of providers.

export type { Clock, Timer } from "../clock.js";
export { holding, systemClock } from "../clock.js";
export type { ProviderErrorKind } from "../errors.js";
export { CodecError, ProviderError } from "../errors.js";
export { decodeEvent, decodeWorkItem, encodeEvent, encodeWorkItem } from "../history/codec.js";
export type { ErrorDetails } from "../history/error-details.js";
export type { Event, EventOf, EventPayload, EventType } from "../history/event.js";
export type * from "../history/work-item.js";
export { isStartLike, targetInstance } from "../history/work-item.js";
export type * from "./admin.js";
export { Batcher, type BatcherOptions, type Outcome } from "./kit/batcher.js";
export { completeAdmin, type HistoryReader } from "./kit/complete-admin.js";
export { InstanceWatchers } from "./kit/instance-watchers.js";
export { type ProviderOperation, ProviderWrapper } from "./kit/provider-wrapper.js";
export * from "./kit/refusals.js";
export { changeOf } from "./kit/turn-change.js";
export type { LongPoll, Reservation } from "./kit/work-signal.js";
export { WorkSignal } from "./kit/work-signal.js";
export { fetchesToWake, workerGroup } from "./kit/worker-wake.js";
export { type PayloadCodec, withPayloadCodec } from "./payload-codec.js";
export type * from "./provider.js";
