// history/error-details-codec.ts — recorded failures as JSON values, tagged from the outside as work items are.

import { unreachable } from "../errors.js";
import type { ApplicationErrorKind, ConfigurationErrorKind, ErrorDetails, PoisonMessageType } from "./error-details.js";
import { readVariant, type Tags, unknownType, type WireObject, wireInteger } from "./wire-object.js";

/**
 * The JSON value of a recorded failure, to be embedded in an event or a work item.
 *
 * @throws `DUROXIDE_CODEC` when a number is not one that the wire can carry.
 */
export function encodeErrorDetails(details: ErrorDetails): object {
  switch (details.category) {
    case "infrastructure":
      return {
        Infrastructure: { operation: details.operation, message: details.message, retryable: details.retryable },
      };
    case "configuration":
      return { Configuration: { kind: details.kind, resource: details.resource, message: details.message } };
    case "application":
      return {
        Application: {
          kind: encodeApplicationKind(details.kind),
          message: details.message,
          retryable: details.retryable,
        },
      };
    case "poison":
      return {
        Poison: {
          attempt_count: wireInteger(details.attemptCount, "Poison.attempt_count"),
          max_attempts: wireInteger(details.maxAttempts, "Poison.max_attempts"),
          message_type: encodePoisonMessageType(details.messageType),
          message: details.message,
        },
      };
    default:
      return unreachable(details);
  }
}

/**
 * Reads what `encodeErrorDetails` made. `place` leads the message when the value is something else.
 *
 * @throws `DUROXIDE_CODEC` when the value is no recorded failure that this version understands.
 */
export function decodeErrorDetails(value: unknown, place = "details."): ErrorDetails {
  const { tag, content } = readVariant(value, place, DETAILS_TAGS);
  switch (tag) {
    case "Infrastructure":
      return {
        category: "infrastructure",
        operation: content.text("operation"),
        message: content.text("message"),
        retryable: content.boolean("retryable"),
      };
    case "Configuration":
      return {
        category: "configuration",
        kind: decodeConfigurationKind(content),
        resource: content.text("resource"),
        message: content.nullableText("message"),
      };
    case "Application":
      return {
        category: "application",
        kind: decodeApplicationKind(content),
        message: content.text("message"),
        retryable: content.boolean("retryable"),
      };
    case "Poison":
      return {
        category: "poison",
        attemptCount: content.integer("attempt_count"),
        maxAttempts: content.integer("max_attempts"),
        messageType: decodePoisonMessageType(content),
        message: content.text("message"),
      };
    default:
      return unreachable(tag);
  }
}

const DETAILS_TAGS: Tags<Capitalize<ErrorDetails["category"]>> = {
  Infrastructure: true,
  Configuration: true,
  Application: true,
  Poison: true,
};

function decodeConfigurationKind(content: WireObject): ConfigurationErrorKind {
  const kind = content.text("kind");
  if (kind === "Nondeterminism" || kind === "LimitExceeded") return kind;
  throw unknownType(content.at("kind."), kind);
}

/** On the wire a kind without content is a bare string. */
function encodeApplicationKind(kind: ApplicationErrorKind): string | object {
  return kind.type === "Cancelled" ? { Cancelled: { reason: kind.reason } } : kind.type;
}

function decodeApplicationKind(content: WireObject): ApplicationErrorKind {
  const kind = content.value("kind");
  const place = content.at("kind.");
  if (kind === "ActivityFailed" || kind === "OrchestrationFailed" || kind === "Panicked") return { type: kind };
  if (typeof kind === "string") throw unknownType(place, kind);
  return { type: "Cancelled", reason: readVariant(kind, place, { Cancelled: true }).content.text("reason") };
}

function encodePoisonMessageType(message: PoisonMessageType): object {
  const instance = message.instance;
  const execution_id = wireInteger(message.executionId, "Poison.message_type.execution_id");
  switch (message.type) {
    case "Orchestration":
      return { Orchestration: { instance, execution_id } };
    case "Activity": {
      const activity_id = wireInteger(message.activityId, "Poison.message_type.activity_id");
      return { Activity: { instance, execution_id, activity_name: message.activityName, activity_id } };
    }
    case "FailedDeserialization":
      return { FailedDeserialization: { instance, execution_id, error: message.error } };
    default:
      return unreachable(message);
  }
}

function decodePoisonMessageType(poison: WireObject): PoisonMessageType {
  const { tag, content } = readVariant(poison.value("message_type"), poison.at("message_type."), POISON_TAGS);
  const instance = content.text("instance");
  const executionId = content.integer("execution_id");
  switch (tag) {
    case "Orchestration":
      return { type: tag, instance, executionId };
    case "Activity": {
      const activityName = content.text("activity_name");
      const activityId = content.integer("activity_id");
      return { type: tag, instance, executionId, activityName, activityId };
    }
    case "FailedDeserialization":
      return { type: tag, instance, executionId, error: content.text("error") };
    default:
      return unreachable(tag);
  }
}

const POISON_TAGS: Tags<PoisonMessageType["type"]> = {
  Orchestration: true,
  Activity: true,
  FailedDeserialization: true,
};
