// duroxide-ts — durable execution for TypeScript: orchestrations and activities that survive crashes.

export type * from "./client/client.js";
export { Client } from "./client/client.js";
export { OrchestrationHandle } from "./client/handle.js";
export type { DeleteOptions } from "./client/management.js";
export type {
  CompletedStatus,
  EndedStatus,
  FailedStatus,
  InstanceFacts,
  KnownStatus,
  OrchestrationStatus,
  PendingStatus,
  RunningStatus,
} from "./client/status.js";
export type { WaitOptions } from "./client/wait.js";
export type { Clock, Timer } from "./clock.js";
export type * from "./define.js";
export { activity, event, orchestration } from "./define.js";
export type { DurableTask } from "./engine/durable-task.js";
export type * from "./engine/orchestration-context.js";
export type { Divergence, ErrorCode, ProviderErrorKind } from "./errors.js";
export {
  AbortedError,
  ActivityCancelledError,
  ActivityFailedError,
  ActivityTimeoutError,
  AlreadyExistsError,
  CodecError,
  DuroxideError,
  InstanceNotFoundError,
  InstanceStillRunningError,
  InvalidHistoryError,
  InvalidInputError,
  InvalidOptionsError,
  ManagementNotAvailableError,
  MisuseError,
  NondeterministicCallError,
  OrchestrationFailedError,
  ProviderError,
  RegistrationError,
  ReplayDivergedError,
  SubOrchestrationError,
  TaskCancelledError,
  TimeoutError,
} from "./errors.js";
export type {
  ApplicationErrorKind,
  ConfigurationErrorKind,
  ErrorCategory,
  ErrorDetails,
  PoisonMessageType,
} from "./history/error-details.js";
export { displayMessage, isRetryable } from "./history/error-details.js";
export type { CarriedEvent, Event, EventEnvelope, EventOf, EventPayload, EventType } from "./history/event.js";
export type { Limits } from "./history/limits.js";
export { DEFAULT_LIMITS } from "./history/limits.js";
export type {
  ActivityRef,
  Fact,
  FactType,
  InstanceRef,
  Observer,
  OrchestrationEnding,
  OrchestrationRef,
} from "./observer.js";
export type {
  DeleteResult,
  ExecutionInfo,
  InstanceFilter,
  InstanceInfo,
  InstanceTree,
  PruneOptions,
  PruneResult,
  QueueDepths,
  SystemMetrics,
} from "./provider/admin.js";
export type { PayloadCodec } from "./provider/payload-codec.js";
export { withPayloadCodec } from "./provider/payload-codec.js";
export type { ExecutionStatus, InstanceStats, Provider, TagFilter } from "./provider/provider.js";
export type { ActivityContext, ActivityTrace } from "./runtime/activity-context.js";
export type { LogFields, LogLevel, LogOptions, LogRecord } from "./runtime/log.js";
export { formatLogLine, logTo } from "./runtime/log.js";
export type { Metrics, MetricsSnapshot } from "./runtime/metrics.js";
export type { ResolvedRuntimeOptions, RuntimeOptions } from "./runtime/options.js";
export { DEFAULT_RUNTIME_OPTIONS } from "./runtime/options.js";
export type { RegistryContents, VersionPolicies, VersionPolicy } from "./runtime/registry.js";
export { Registry } from "./runtime/registry.js";
export type { RuntimeStart, ShutdownOutcome } from "./runtime/runtime.js";
export { Runtime } from "./runtime/runtime.js";
export type { UnregisteredBackoff } from "./runtime/unregistered-backoff.js";
