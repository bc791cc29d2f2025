// bench/floor/chain.mjs — what one chain of W1 makes of itself, stage by stage, whatever the store.
//
// A chain of five activities is twelve stages: its start, then six turns with five activities in between. Each stage
// depends on what the stage before it has committed.
//
// Whatever is written is made here beforehand: the floor measures a store, not the making of texts. The texts are those of
// the real codec, with the id of their own chain in them.

import { encodeEvent, encodeWorkItem } from "../../dist/history/codec.js";
import { ENGINE_VERSION } from "../../dist/history/event.js";
import { CHAIN_STEPS, chain, step } from "../lib/orchestrations.mjs";

/** Those of W1 count up from 1. Most have four digits. */
const INPUT = 1_000;

export const EVENTS_PER_CHAIN = 2 + 2 * CHAIN_STEPS;
export const OUTPUT = String(INPUT + CHAIN_STEPS);
/** An orchestration without a version has this one. */
export const ORCHESTRATION = { name: chain.name, version: chain.version ?? "1.0.0" };
/** Major, minor and patch of the engine that may replay it, as SQL lists them. */
export const PINNED_VERSION = ENGINE_VERSION.split(".").join(", ");

/** All rows of one round bear the same time: what they cost does not depend on it. */
export const NOW = Date.now();
/** Locks do not end while the floor runs. */
export const LOCKED_UNTIL = NOW + 3_600_000;

const SOME_INSTANCE = instanceId(0);

/**
 * @typedef {object} StageEvent
 * @property {number} id
 * @property {string} type
 * @property {(instance: string) => string} text
 *
 * @typedef {object} Stage
 * @property {"start" | "activity" | "first-turn" | "turn" | "last-turn"} kind
 * @property {readonly StageEvent[]} events   what a turn appends to the history
 * @property {((instance: string) => string) | null} message   the work item that the orchestration is sent
 * @property {number | null} activityId   the event that schedules the activity which the stage queues
 * @property {((instance: string) => string) | null} activity   its work item
 *
 * @typedef {object} Step   one stage of one chain
 * @property {string} instance
 * @property {number} number   of the chain
 * @property {number} messageRow   the message that the stage sends, or that its turn consumes
 * @property {string} lockToken   under which that message is locked
 * @property {number} activityRow   the activity that the stage queues, or that is done with it
 * @property {string} activityToken   under which that activity is locked
 * @property {string | null} message
 * @property {string | null} activity
 * @property {readonly string[]} events
 */

/** @type {readonly Stage[]} */
export const STAGES = [
  { kind: "start", events: [], message: startText(), activityId: null, activity: null },
  turn("first-turn", started(), 1),
  ...Array.from({ length: CHAIN_STEPS - 1 }, (_, n) => [
    activityDone(n + 1),
    turn("turn", completed(n + 1), n + 2),
  ]).flat(),
  activityDone(CHAIN_STEPS),
  { kind: "last-turn", events: [completed(CHAIN_STEPS), ended()], message: null, activityId: null, activity: null },
];

let chains = 0;
let rows = 0;
let tokens = 0;

/**
 * New chains: for each stage, the step of each of them.
 *
 * @returns {readonly (readonly Step[])[]}
 */
export function makeChains(count) {
  const made = Array.from({ length: count }, makeChain);
  return STAGES.map((stage) => made.map((one) => stepOf(stage, one)));
}

function makeChain() {
  chains += 1;
  return {
    instance: instanceId(chains),
    number: chains,
    messageRow: 0,
    lockToken: "",
    activityRow: 0,
    activityToken: "",
  };
}

/** @returns {Step} */
function stepOf(stage, one) {
  if (stage.message !== null) {
    one.messageRow = nextRow();
    one.lockToken = nextToken();
  }
  if (stage.activity !== null) {
    one.activityRow = nextRow();
    one.activityToken = nextToken();
  }
  return {
    ...one,
    message: stage.message?.(one.instance) ?? null,
    activity: stage.activity?.(one.instance) ?? null,
    events: stage.events.map(({ text }) => text(one.instance)),
  };
}

function nextRow() {
  rows += 1;
  return rows;
}

function nextToken() {
  tokens += 1;
  return countingUuid(tokens);
}

/** Of the chain with this number, counted from 1. */
export function instanceId(number) {
  return countingUuid(number);
}

/** As long as the random ones that W1 has. Counting up is cheaper for every index: neighbours share pages. */
function countingUuid(number) {
  return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

// The stages.

/** Asks for the nth step. @returns {Stage} */
function turn(kind, heard, nth) {
  const asked = scheduled(nth);
  return { kind, events: [heard, asked], message: null, activityId: asked.id, activity: executeText(nth) };
}

/** @returns {Stage} */
function activityDone(nth) {
  return { kind: "activity", events: [], message: completionText(nth), activityId: null, activity: null };
}

/** The event that schedules the nth step, counted from 1: after the start, each step is two events. */
function scheduledId(nth) {
  return 2 * nth;
}

/** The steps count up from the input. */
function inputOf(nth) {
  return String(INPUT + nth - 1);
}

function resultOf(nth) {
  return String(INPUT + nth);
}

function started() {
  return event(1, null, {
    type: "OrchestrationStarted",
    ...ORCHESTRATION,
    input: String(INPUT),
    parentInstance: null,
    parentId: null,
  });
}

function scheduled(nth) {
  return event(scheduledId(nth), null, { type: "ActivityScheduled", name: step.name, input: inputOf(nth) });
}

function completed(nth) {
  return event(scheduledId(nth) + 1, scheduledId(nth), { type: "ActivityCompleted", result: resultOf(nth) });
}

function ended() {
  return event(EVENTS_PER_CHAIN, null, { type: "OrchestrationCompleted", output: OUTPUT });
}

/** @returns {StageEvent} */
function event(id, sourceEventId, payload) {
  const envelope = { eventId: id, sourceEventId, instanceId: SOME_INSTANCE, executionId: 1 };
  const written = { timestampMs: NOW, duroxideVersion: ENGINE_VERSION };
  return { id, type: payload.type, text: forAnyInstance(encodeEvent({ ...envelope, ...written, ...payload })) };
}

function startText() {
  return workItem({
    type: "StartOrchestration",
    instance: SOME_INSTANCE,
    orchestration: ORCHESTRATION.name,
    input: String(INPUT),
    version: null,
    parentInstance: null,
    parentId: null,
    executionId: 1,
  });
}

function executeText(nth) {
  return workItem({
    type: "ActivityExecute",
    instance: SOME_INSTANCE,
    executionId: 1,
    id: scheduledId(nth),
    name: step.name,
    input: inputOf(nth),
    orchestrationName: ORCHESTRATION.name,
    orchestrationVersion: ORCHESTRATION.version,
  });
}

function completionText(nth) {
  return workItem({
    type: "ActivityCompleted",
    instance: SOME_INSTANCE,
    executionId: 1,
    id: scheduledId(nth),
    result: resultOf(nth),
  });
}

function workItem(item) {
  return forAnyInstance(encodeWorkItem(item));
}

/** Encoded once, by the real codec; then only the id is another. */
function forAnyInstance(text) {
  const parts = text.split(SOME_INSTANCE);
  return (instance) => parts.join(instance);
}
