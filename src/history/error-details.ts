// history/error-details.ts — recorded failures: data that lives in histories and queue messages, never thrown.

/** Why an orchestration or an activity failed, as recorded. `category` tells who is to blame. */
export type ErrorDetails =
  | {
      readonly category: "infrastructure";
      readonly operation: string;
      readonly message: string;
      readonly retryable: boolean;
    }
  | {
      readonly category: "configuration";
      readonly kind: ConfigurationErrorKind;
      readonly resource: string;
      readonly message: string | null;
    }
  | {
      readonly category: "application";
      readonly kind: ApplicationErrorKind;
      readonly message: string;
      readonly retryable: boolean;
    }
  | {
      readonly category: "poison";
      readonly attemptCount: number;
      readonly maxAttempts: number;
      readonly messageType: PoisonMessageType;
      readonly message: string;
    };

/** Who is to blame: the store, the code as it is deployed, the application, or work that was tried too often. */
export type ErrorCategory = ErrorDetails["category"];

/**
 * What is wrong with the code as it is deployed. `Nondeterminism`: it does not take the decisions that its history
 * records. `LimitExceeded`: it wants more than the runtime allows.
 */
export type ConfigurationErrorKind = "Nondeterminism" | "LimitExceeded";

/** What the application did. `Panicked`: its code broke a rule of the engine. `Cancelled`: somebody asked for it. */
export type ApplicationErrorKind =
  | { readonly type: "ActivityFailed" }
  | { readonly type: "OrchestrationFailed" }
  | { readonly type: "Panicked" }
  | { readonly type: "Cancelled"; readonly reason: string };

/** The work that was tried too often; `FailedDeserialization`: an instance whose history cannot be decoded. */
export type PoisonMessageType =
  | { readonly type: "Orchestration"; readonly instance: string; readonly executionId: number }
  | {
      readonly type: "Activity";
      readonly instance: string;
      readonly executionId: number;
      readonly activityName: string;
      readonly activityId: number;
    }
  | {
      readonly type: "FailedDeserialization";
      readonly instance: string;
      readonly executionId: number;
      readonly error: string;
    };

/**
 * The one text by which a failure is known: to orchestration code, to clients and in metadata.
 *
 * @example
 * const status = await client.getStatus("order-1");
 * if (status.status === "Failed") report(displayMessage(status.details));
 */
export function displayMessage(details: ErrorDetails): string {
  switch (details.category) {
    case "infrastructure":
      return `infrastructure:${details.operation}: ${details.message}`;
    case "configuration":
      return configurationMessage(details.kind, details.resource, details.message);
    case "application":
      return applicationMessage(details.kind, details.message);
    case "poison":
      return poisonMessage(details);
  }
}

/**
 * Whether whoever asked may try again with hope. Configuration and poison failures never heal by themselves.
 *
 * @example
 * const status = await client.waitForOrchestration("order-1");
 * if (status.status === "Failed" && isRetryable(status.details)) {
 *   await client.start(checkout, { instanceId: "order-1-again", input: order });
 * }
 */
export function isRetryable(details: ErrorDetails): boolean {
  return details.category === "infrastructure" || details.category === "application" ? details.retryable : false;
}

export function activityFailed(message: string): ErrorDetails {
  return { category: "application", kind: { type: "ActivityFailed" }, message, retryable: false };
}

export function orchestrationFailed(message: string): ErrorDetails {
  return { category: "application", kind: { type: "OrchestrationFailed" }, message, retryable: false };
}

export function cancelled(reason: string): ErrorDetails {
  return { category: "application", kind: { type: "Cancelled", reason }, message: "", retryable: false };
}

export function nondeterminism(message: string): ErrorDetails {
  return { category: "configuration", kind: "Nondeterminism", resource: "", message };
}

/** `limit`: the name of the one that is broken. */
export function limitExceeded(limit: string, message: string): ErrorDetails {
  return { category: "configuration", kind: "LimitExceeded", resource: limit, message };
}

function configurationMessage(kind: ConfigurationErrorKind, resource: string, message: string | null): string {
  if (kind === "LimitExceeded") return message ?? `limit exceeded: ${resource}`;
  return message === null ? `nondeterministic in ${resource}` : `nondeterministic: ${message}`;
}

function applicationMessage(kind: ApplicationErrorKind, message: string): string {
  switch (kind.type) {
    case "Cancelled":
      return `canceled: ${kind.reason}`;
    case "Panicked":
      return `orchestration panicked: ${message}`;
    case "ActivityFailed":
    case "OrchestrationFailed":
      return message;
  }
}

function poisonMessage(details: Extract<ErrorDetails, { category: "poison" }>): string {
  const attempts = `${details.attemptCount} attempts (max ${details.maxAttempts})`;
  const type = details.messageType;
  switch (type.type) {
    case "Orchestration":
      return `poison: orchestration ${type.instance} exceeded ${attempts}${inWords(details.message)}`;
    case "Activity":
      return `poison: activity ${type.activityName}#${type.activityId} exceeded ${attempts}${inWords(details.message)}`;
    case "FailedDeserialization":
      return `poison: orchestration ${type.instance} history deserialization failed after ${attempts}: ${type.error}`;
  }
}

/** What could not be done is told where somebody put it in words; mostly the message is the offending JSON. */
function inWords(message: string): string {
  return message === "" || /^[[{"]/.test(message) ? "" : `: ${message}`;
}
