// history/work-item-codec.ts — work items as the reference writes them: `{"CancelInstance":{"instance":…,"reason":…}}`.
//
// The order of the fields is the reference's; ours come last. Nullable fields are written as `null`, absent optional
// ones are left out. Literals list every field instead of spreading the common ones first: V8 takes microseconds to add
// fields to a spread object.

import { unreachable } from "../errors.js";
import type { ErrorDetails } from "./error-details.js";
import { decodeErrorDetails, encodeErrorDetails } from "./error-details-codec.js";
import { parseJson, readVariant, type Tags, type WireObject, wireInteger } from "./wire-object.js";
import type { ActivityExecute, ContinueAsNew, StartOrchestration, WorkItem } from "./work-item.js";

/**
 * The text of a work item, as it stands in a queue.
 *
 * @throws `DUROXIDE_CODEC` when a number is not one that the wire can carry.
 * @example
 * const text = encodeWorkItem({ type: "CancelInstance", instance: "order-1", reason: "too late" });
 */
export function encodeWorkItem(item: WorkItem): string {
  return `{"${item.type}":${JSON.stringify(encodeContent(item))}}`;
}

/**
 * Reads a queued work item. Fields that this version does not know are ignored.
 *
 * @throws `DUROXIDE_CODEC` when the text is no work item that this version understands.
 * @example
 * const item = decodeWorkItem('{"CancelInstance":{"instance":"order-1","reason":"too late"}}');
 */
export function decodeWorkItem(text: string): WorkItem {
  const { tag, content } = readVariant(parseJson(text, "work item: "), "work item: ", WORK_ITEM_TAGS);
  return decodeContent(tag, content);
}

const WORK_ITEM_TAGS: Tags<WorkItem["type"]> = {
  StartOrchestration: true,
  ContinueAsNew: true,
  ActivityExecute: true,
  ActivityCompleted: true,
  ActivityFailed: true,
  TimerFired: true,
  ExternalRaised: true,
  QueueMessage: true,
  SubOrchCompleted: true,
  SubOrchFailed: true,
  CancelInstance: true,
};

function encodeContent(item: WorkItem): object {
  switch (item.type) {
    case "StartOrchestration":
      return {
        instance: item.instance,
        orchestration: item.orchestration,
        input: item.input,
        version: item.version,
        parent_instance: item.parentInstance,
        parent_id: wireInteger(item.parentId, "StartOrchestration.parent_id"),
        parent_execution_id: wireInteger(item.parentExecutionId, "StartOrchestration.parent_execution_id"),
        execution_id: wireInteger(item.executionId, "StartOrchestration.execution_id"),
      };
    case "ContinueAsNew":
      return {
        instance: item.instance,
        orchestration: item.orchestration,
        input: item.input,
        version: item.version,
        parent_instance: item.parentInstance,
        parent_id: wireInteger(item.parentId, "ContinueAsNew.parent_id"),
        parent_execution_id: wireInteger(item.parentExecutionId, "ContinueAsNew.parent_execution_id"),
        carry_forward_events: item.carryForwardEvents,
        initial_custom_status: item.initialCustomStatus,
      };
    case "ActivityExecute":
      return {
        instance: item.instance,
        execution_id: wireInteger(item.executionId, "ActivityExecute.execution_id"),
        id: wireInteger(item.id, "ActivityExecute.id"),
        name: item.name,
        input: item.input,
        session_id: item.sessionId,
        tag: item.tag,
        orchestration_name: item.orchestrationName,
        orchestration_version: item.orchestrationVersion,
        retry_of: wireInteger(item.retryOf, "ActivityExecute.retry_of"),
      };
    case "ActivityCompleted":
      return {
        instance: item.instance,
        execution_id: wireInteger(item.executionId, "ActivityCompleted.execution_id"),
        id: wireInteger(item.id, "ActivityCompleted.id"),
        result: item.result,
      };
    case "ActivityFailed":
      return {
        instance: item.instance,
        execution_id: wireInteger(item.executionId, "ActivityFailed.execution_id"),
        id: wireInteger(item.id, "ActivityFailed.id"),
        details: encodeErrorDetails(item.details),
      };
    case "TimerFired":
      return {
        instance: item.instance,
        execution_id: wireInteger(item.executionId, "TimerFired.execution_id"),
        id: wireInteger(item.id, "TimerFired.id"),
        fire_at_ms: wireInteger(item.fireAtMs, "TimerFired.fire_at_ms"),
      };
    case "ExternalRaised":
    case "QueueMessage":
      return { instance: item.instance, name: item.name, data: item.data };
    case "SubOrchCompleted":
      return {
        parent_instance: item.parentInstance,
        parent_execution_id: wireInteger(item.parentExecutionId, "SubOrchCompleted.parent_execution_id"),
        parent_id: wireInteger(item.parentId, "SubOrchCompleted.parent_id"),
        result: item.result,
      };
    case "SubOrchFailed":
      return {
        parent_instance: item.parentInstance,
        parent_execution_id: wireInteger(item.parentExecutionId, "SubOrchFailed.parent_execution_id"),
        parent_id: wireInteger(item.parentId, "SubOrchFailed.parent_id"),
        details: encodeErrorDetails(item.details),
      };
    case "CancelInstance":
      return { instance: item.instance, reason: item.reason };
    default:
      return unreachable(item);
  }
}

function decodeContent(type: WorkItem["type"], wire: WireObject): WorkItem {
  switch (type) {
    case "StartOrchestration":
      return decodeStart(wire);
    case "ContinueAsNew":
      return decodeContinueAsNew(wire);
    case "ActivityExecute":
      return decodeActivityExecute(wire);
    case "ActivityCompleted":
      return {
        type,
        instance: wire.text("instance"),
        executionId: wire.integer("execution_id"),
        id: wire.integer("id"),
        result: wire.text("result"),
      };
    case "ActivityFailed":
      return {
        type,
        instance: wire.text("instance"),
        executionId: wire.integer("execution_id"),
        id: wire.integer("id"),
        details: decodeDetails(wire),
      };
    case "TimerFired":
      return {
        type,
        instance: wire.text("instance"),
        executionId: wire.integer("execution_id"),
        id: wire.integer("id"),
        fireAtMs: wire.integer("fire_at_ms"),
      };
    case "ExternalRaised":
    case "QueueMessage":
      return { type, instance: wire.text("instance"), name: wire.text("name"), data: wire.text("data") };
    case "SubOrchCompleted":
      return {
        type,
        parentInstance: wire.text("parent_instance"),
        parentExecutionId: wire.integer("parent_execution_id"),
        parentId: wire.integer("parent_id"),
        result: wire.text("result"),
      };
    case "SubOrchFailed":
      return {
        type,
        parentInstance: wire.text("parent_instance"),
        parentExecutionId: wire.integer("parent_execution_id"),
        parentId: wire.integer("parent_id"),
        details: decodeDetails(wire),
      };
    case "CancelInstance":
      return { type, instance: wire.text("instance"), reason: wire.text("reason") };
    default:
      return unreachable(type);
  }
}

function decodeStart(wire: WireObject): StartOrchestration {
  const parentExecutionId = wire.optionalInteger("parent_execution_id");
  return {
    type: "StartOrchestration",
    instance: wire.text("instance"),
    orchestration: wire.text("orchestration"),
    input: wire.text("input"),
    version: wire.nullableText("version"),
    parentInstance: wire.nullableText("parent_instance"),
    parentId: wire.nullableInteger("parent_id"),
    executionId: wire.integer("execution_id"),
    ...(parentExecutionId !== undefined && { parentExecutionId }),
  };
}

function decodeContinueAsNew(wire: WireObject): ContinueAsNew {
  const parentInstance = wire.optionalText("parent_instance");
  const parentId = wire.optionalInteger("parent_id");
  const parentExecutionId = wire.optionalInteger("parent_execution_id");
  const initialCustomStatus = wire.optionalText("initial_custom_status");
  return {
    type: "ContinueAsNew",
    instance: wire.text("instance"),
    orchestration: wire.text("orchestration"),
    input: wire.text("input"),
    version: wire.nullableText("version"),
    carryForwardEvents: wire.optionalCarriedEvents("carry_forward_events") ?? [],
    ...(initialCustomStatus !== undefined && { initialCustomStatus }),
    ...(parentInstance !== undefined && { parentInstance }),
    ...(parentId !== undefined && { parentId }),
    ...(parentExecutionId !== undefined && { parentExecutionId }),
  };
}

function decodeActivityExecute(wire: WireObject): ActivityExecute {
  const sessionId = wire.optionalText("session_id");
  const tag = wire.optionalText("tag");
  const orchestrationName = wire.optionalText("orchestration_name");
  const orchestrationVersion = wire.optionalText("orchestration_version");
  const retryOf = wire.optionalInteger("retry_of");
  return {
    type: "ActivityExecute",
    instance: wire.text("instance"),
    executionId: wire.integer("execution_id"),
    id: wire.integer("id"),
    name: wire.text("name"),
    input: wire.text("input"),
    ...(sessionId !== undefined && { sessionId }),
    ...(tag !== undefined && { tag }),
    ...(orchestrationName !== undefined && { orchestrationName }),
    ...(orchestrationVersion !== undefined && { orchestrationVersion }),
    ...(retryOf !== undefined && { retryOf }),
  };
}

function decodeDetails(wire: WireObject): ErrorDetails {
  return decodeErrorDetails(wire.value("details"), wire.at("details."));
}
