// cases/fidelity.ts — what is stored comes back as it was written.

import { activityFailed, type ErrorDetails } from "../../history/error-details.js";
import type { Event, EventEnvelope, EventPayload, EventType } from "../../history/event.js";
import { MAX_NAME_BYTES } from "../../history/limits.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import type { Provider } from "../../provider/provider.js";
import {
  act,
  completed,
  done,
  event,
  kvSet,
  NAMED,
  queued,
  raised,
  scheduled,
  start,
  started,
  statusSet,
  turn,
} from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { commitNext, create, LONG_LOCK_MS, runTurn, takeTurn, takeWork } from "../steps.js";

export const fidelity: Category = {
  name: "fidelity",
  about: "What is stored comes back as it was written.",
  cases: [
    // Events

    {
      id: "every_event_comes_back",
      promise: "Events of every kind come back as a turn wrote them, envelope and all, to readers and to dispatchers",
      async run(t) {
        const { provider } = await t.open();
        const events = everyEvent("a");
        await create(provider, "a", { events });
        await provider.enqueueForOrchestrator(raised("a"));

        const read = await provider.read("a");
        const readWithExecution = await provider.readWithExecution("a", 1);
        const fetched = (await takeTurn(provider)).item.history;
        t.equal(read.length, events.length, "how many events are read");
        for (const [index, written] of events.entries()) {
          const what = `event ${index + 1} (${written.type})`;
          t.equal(read[index], written, `${what} as it is read`);
          t.equal(readWithExecution[index], written, `${what} as it is read by its execution`);
          t.equal(fetched[index], written, `${what} as it is fetched`);
        }
      },
    },
    {
      id: "every_appended_event_comes_back",
      promise: "Events of every kind come back as they were appended",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { events: [] });
        const events = everyEvent("a");
        await provider.appendWithExecution("a", 1, events);
        await provider.enqueueForOrchestrator(raised("a"));

        t.equal(await provider.read("a"), events, "the events as they are read");
        t.equal((await takeTurn(provider)).item.history, events, "the events as they are fetched");
      },
    },
    {
      id: "events_belong_where_they_are_committed",
      promise: "Events belong to the locked instance and the turn's execution, whatever they say of themselves",
      async run(t) {
        const { provider } = await t.open();
        const foreign = started("somebody-else", { executionId: 7 });
        await create(provider, "a", { events: [foreign] });

        t.equal(await provider.readWithExecution("a", 1), [foreign], "the history that they were committed to");
        t.equal(await provider.read("somebody-else"), [], "the history of the instance that they name");
        t.equal(await provider.readWithExecution("a", 7), [], "the history of the execution that they name");
      },
    },
    {
      id: "history_is_ascending",
      promise: "A history is in the order of event ids, whatever the order of writing, and ids may have gaps",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await runTurn(provider, "a", { events: [scheduled("a", 99_999)] });
        await runTurn(provider, "a", { events: [scheduled("a", 10), scheduled("a", 9)] });
        await provider.enqueueForOrchestrator(raised("a"));

        const history = [started("a"), scheduled("a", 9), scheduled("a", 10), scheduled("a", 99_999)];
        t.equal(await provider.read("a"), history, "the history as it is read");
        t.equal((await takeTurn(provider)).item.history, history, "the history as it is fetched");
      },
    },
    {
      id: "history_is_a_snapshot",
      promise: "A history that was handed out does not change under its reader",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const read = await provider.read("a");
        await provider.enqueueForOrchestrator(raised("a"));
        const { item, lockToken } = await takeTurn(provider);
        await provider.abandonOrchestrationItem(lockToken);
        await commitNext(provider, "a", { events: [scheduled("a", 2)] });

        t.equal(read, [started("a")], "what was read before the turn");
        t.equal(item.history, [started("a")], "what was fetched before the turn");
      },
    },
    {
      id: "three_megabytes",
      promise: "An event, a message and an activity of three megabytes are stored like any other",
      async run(t) {
        const { provider } = await t.open();
        const large = `${"x".repeat(3 * 1024 * 1024 - 4)}🚀`;
        const events = [started("a"), event("a", 2, { type: "ActivityCompleted", result: large })];
        const activity = act("a", 3, { input: large });
        const message = raised("a", "signal", large);
        await create(provider, "a", { events, workerItems: [activity], orchestratorItems: [message] });

        // Not with `equal`: nobody wants to read three megabytes.
        t.ok(textOf((await provider.read("a"))[1]) === large, "that the event comes back as it was written");
        t.ok((await takeWork(provider)).item.input === large, "that the activity comes back as it was written");
        const { history, messages } = (await takeTurn(provider)).item;
        t.ok(textOf(history[1]) === large, "that the event is fetched as it was written");
        t.ok(textOf(messages[0]) === large, "that the message comes back as it was written");
      },
    },

    // Messages and activities

    {
      id: "every_message_comes_back",
      promise: "Messages of every kind come back as a client wrote them",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const messages = everyMessage("a");
        for (const message of messages) await provider.enqueueForOrchestrator(message);
        checkEach(t, (await takeTurn(provider)).item.messages, messages);
      },
    },
    {
      id: "every_message_of_turn_comes_back",
      promise: "Messages of every kind come back as a turn wrote them",
      async run(t) {
        const { provider } = await t.open();
        const messages = everyMessage("a");
        await create(provider, "a", { orchestratorItems: messages });
        checkEach(t, (await takeTurn(provider)).item.messages, messages);
      },
    },
    {
      id: "every_completion_comes_back",
      promise: "Completions and failures of every kind come back as a worker wrote them",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const completions = everyMessage("a").filter(({ type }) => type.startsWith("Activity"));
        for (const completion of completions) {
          await provider.enqueueForWorker(act("a", 2));
          await provider.ackWorkItem((await takeWork(provider)).lockToken, completion);
        }
        checkEach(t, (await takeTurn(provider)).item.messages, completions);
      },
    },
    {
      id: "every_activity_comes_back",
      promise: "Activities come back as they were written, with all of their fields or only some",
      async run(t) {
        const { provider } = await t.open();
        const activities = everyActivity("a");
        for (const activity of activities) await provider.enqueueForWorker(activity);
        await create(provider, "a", { workerItems: activities });

        for (const written of [...activities, ...activities]) t.equal(await takeAny(provider), written, "the activity");
      },
    },

    // Text

    {
      id: "any_text_in_payloads",
      promise: "Payloads may be any text: of any script, with NUL, half surrogate pairs, quotes, line ends, or empty",
      async run(t) {
        const { provider } = await t.open();
        const events = ANY_TEXT.map((text, index) =>
          event("a", index + 2, { type: "ExternalEvent", name: "signal", data: text }),
        );
        const messages = ANY_TEXT.flatMap((text): OrchestratorItem[] => [
          raised("a", text, text),
          done("a", 1, { result: text }),
          { type: "ActivityFailed", instance: "a", executionId: 1, id: 2, details: activityFailed(text) },
          start("a", { input: text }),
        ]);
        const activities = ANY_TEXT.map((text, index) => act("a", index, { input: text }));
        await create(provider, "a", {
          events: [started("a"), ...events],
          workerItems: activities,
          orchestratorItems: messages,
        });

        checkEach(t, (await provider.read("a")).slice(1), events);
        for (const activity of activities) t.equal((await takeWork(provider)).item, activity, "the activity");
        const { item } = await takeTurn(provider);
        checkEach(t, item.history.slice(1), events);
        checkEach(t, item.messages, messages);
      },
    },
    {
      id: "any_text_in_values",
      promise: "Output, custom status and values may be any text",
      async run(t) {
        const { provider } = await t.open();
        for (const [index, text] of ANY_TEXT.entries()) {
          const id = `instance-${index}`;
          const metadata = { ...NAMED, status: "ContinuedAsNew", output: text } as const;
          await create(provider, id, {
            events: [started(id), kvSet(id, 2, "key", text), statusSet(id, 3, text)],
            metadata,
          });
          const what = JSON.stringify(text);

          t.matches(await provider.getInstanceStatus(id), { output: text, customStatus: text }, `the status ${what}`);
          t.equal(await provider.getCustomStatus(id, 0), { status: text, version: 1 }, `the custom status ${what}`);
          t.equal(await provider.getKvValue(id, "key"), text, `the value ${what}`);
          t.equal(await provider.getKvAllValues(id), new Map([["key", text]]), `all values ${what}`);
          await provider.enqueueForOrchestrator(raised(id));
          const snapshot = (await takeTurn(provider)).item.kvSnapshot;
          t.equal(snapshot, new Map([["key", { value: text, lastUpdatedAtMs: 0 }]]), `the fetched value ${what}`);
        }
      },
    },
    {
      id: "any_name",
      promise: "Ids, names, queues and keys of any script are what they were, up to the longest that is allowed",
      async run(t) {
        const { provider } = await t.open();
        for (const name of ANY_NAME) {
          const metadata = { orchestrationName: name, orchestrationVersion: "1.0.0" };
          const what = `of ${JSON.stringify(name)}`;
          await provider.enqueueForOrchestrator(start(name, { orchestration: name }));
          const first = await takeTurn(provider);
          t.matches(first.item, { instance: name, orchestrationName: name }, `the new instance ${what}`);
          await provider.abandonOrchestrationItem(first.lockToken);
          await commitNext(provider, name, { events: [started(name, { name }), kvSet(name, 2, name, "v")], metadata });
          await provider.enqueueForOrchestrator(queued(name, name));

          const { item, lockToken } = await takeTurn(provider);
          t.matches(
            item,
            { instance: name, orchestrationName: name, messages: [queued(name, name)] },
            `the item ${what}`,
          );
          await provider.abandonOrchestrationItem(lockToken);
          await commitNext(provider, name);
          t.equal((await provider.read(name)).length, 2, `the events ${what}`);
          t.matches(await provider.getInstanceStatus(name), { orchestrationName: name }, `the status ${what}`);
          t.equal(await provider.getKvAllValues(name), new Map([[name, "v"]]), `the values ${what}`);
        }
      },
    },
    {
      id: "similar_ids_are_different_instances",
      promise:
        "Ids that differ in case, in accents, in spaces at either end, or only in their encoding are different instances",
      async run(t) {
        const { provider } = await t.open();
        for (const id of SIMILAR) {
          const outcome = await provider.enqueueForOrchestrator(start(id), { ifAbsent: true });
          t.equal(outcome, "enqueued", `a conditional start of ${JSON.stringify(id)}`);
          await commitNext(provider, id, {
            events: [started(id), kvSet(id, 2, "whose", id)],
            metadata: { ...NAMED, status: "Completed", output: id },
          });
        }
        for (const id of SIMILAR) await provider.enqueueForOrchestrator(raised(id, id));

        for (const id of SIMILAR) {
          const what = JSON.stringify(id);
          const { item } = await takeTurn(provider);
          t.matches(item, { instance: id, messages: [raised(id, id)] }, `the item of ${what}`);
          t.equal(await provider.read(id), [started(id), kvSet(id, 2, "whose", id)], `the history of ${what}`);
          t.matches(await provider.getInstanceStatus(id), { output: id }, `the status of ${what}`);
          t.equal(await provider.getKvValue(id, "whose"), id, `the value of ${what}`);
        }
      },
    },
    {
      id: "similar_tags_and_sessions_are_different",
      promise: "Tags and sessions that differ in case, accents or spaces are different ones",
      async run(t) {
        const { provider } = await t.open();
        for (const [id, tag] of SIMILAR.entries()) await provider.enqueueForWorker(act("a", id, { tag }));
        for (const [id, tag] of SIMILAR.entries()) {
          const { item } = await takeWork(provider, { tagFilter: { kind: "tags", tags: [tag] } });
          t.equal(item, act("a", id, { tag }), `the activity with tag '${tag}'`);
        }

        for (const [id, sessionId] of SIMILAR.entries()) await provider.enqueueForWorker(act("a", id, { sessionId }));
        for (const [id, sessionId] of SIMILAR.entries()) {
          // Had one of the earlier owners this session, this one would find nothing.
          const session = { ownerId: `owner of ${sessionId}`, lockTimeoutMs: LONG_LOCK_MS };
          t.equal((await takeWork(provider, { session })).item, act("a", id, { sessionId }), `session '${sessionId}'`);
        }
      },
    },

    // Who reads it

    {
      id: "another_process_reads_the_same",
      promise: "What one process has written another one reads at once, all of it and unchanged",
      async run(t) {
        const store = await t.open();
        const other = await store.openAnother();
        const events = everyEvent("a");
        const messages = everyMessage("a");
        const activities = everyActivity("a");
        await create(store.provider, "a", { events, orchestratorItems: messages, workerItems: activities });

        t.equal(await other.read("a"), events, "the events as they are read");
        for (const activity of activities) t.equal(await takeAny(other), activity, "the activity");
        const { item, lockToken } = await takeTurn(other);
        t.equal(item.history, events, "the events as they are fetched");
        t.equal(item.messages, messages, "the messages");
        const last = completed("a", events.length + 1);
        await other.ackOrchestrationItem(lockToken, turn({ events: [last], orchestratorItems: [done("a", 1)] }));
        t.equal((await store.provider.read("a")).at(-1), last, "the last event, which the other one wrote");
        t.equal((await takeTurn(store.provider)).item.messages, [done("a", 1)], "the message that the other one sent");
      },
    },
  ],
};

// Text that stores like to change

const ANY_TEXT: readonly string[] = [
  "",
  " ",
  " spaces at both ends ",
  "\t tab, \r\n line \n ends \r",
  "quote \" apostrophe ' backslash \\ back\\slash-n \\n",
  '"all of it in quotes"',
  "漢字 かな 한국어 עברית العربية",
  "emoji 🚀 family 👩‍👩‍👧 flag 🇦🇹",
  "composed é, decomposed e\u0301",
  "byte order mark \ufeff, line separator \u2028, not a character \uffff",
  "\u0000",
  "zero \u0000 in the middle",
  "\u0001 \u001b \u007f \u0085",
  "\ud83d the first half of a pair alone",
  "the second half alone \ude80",
  "\\u0000 \\ud83d",
  "null",
  "{",
  "1e999",
  "%s $1 ?1 :name @p '; DROP TABLE history; --",
];

/** All of these are accepted as ids, as names and as keys. */
const ANY_NAME: readonly string[] = [
  "order-1",
  " ",
  '"in quotes"',
  "it's 100% [a_b]*",
  "a::b/c\\d?e#f",
  "漢字 עברית",
  "🚀👩‍👩‍👧",
  "\u2028",
  "null",
  "x".repeat(MAX_NAME_BYTES),
  "漢".repeat(Math.floor(MAX_NAME_BYTES / 3)),
];

const SIMILAR: readonly string[] = [
  "order",
  "Order",
  "ORDER",
  "order ",
  " order",
  "order  ",
  "órder",
  "o\u0301rder",
  "ｏｒｄｅｒ",
  '"order"',
  "straße",
  "strasse",
];

// One of everything

/** Every way to have failed. */
const EVERY_FAILURE: readonly ErrorDetails[] = [
  { category: "infrastructure", operation: "read", message: "disk", retryable: true },
  { category: "infrastructure", operation: "", message: "", retryable: false },
  { category: "configuration", kind: "Nondeterminism", resource: "TestOrch", message: "changed" },
  { category: "configuration", kind: "LimitExceeded", resource: "", message: null },
  { category: "application", kind: { type: "ActivityFailed" }, message: "no", retryable: true },
  { category: "application", kind: { type: "OrchestrationFailed" }, message: "no", retryable: false },
  { category: "application", kind: { type: "Panicked" }, message: "oh", retryable: false },
  { category: "application", kind: { type: "Cancelled", reason: "enough" }, message: "", retryable: false },
  {
    category: "poison",
    attemptCount: 11,
    maxAttempts: 10,
    messageType: { type: "Orchestration", instance: "a", executionId: 3 },
    message: "[]",
  },
  {
    category: "poison",
    attemptCount: 11,
    maxAttempts: 10,
    messageType: { type: "Activity", instance: "a", executionId: 3, activityName: "Charge", activityId: 4 },
    message: "{}",
  },
  {
    category: "poison",
    attemptCount: 11,
    maxAttempts: 10,
    messageType: { type: "FailedDeserialization", instance: "a", executionId: 3, error: "not JSON" },
    message: "",
  },
];

type Fields<Union, Type> = Omit<Extract<Union, { readonly type: Type }>, "type">;

/** Every kind of event, with all optional fields and without. The compiler asks for those that are missing. */
const EVERY_EVENT: { readonly [T in EventType]: readonly Fields<EventPayload, T>[] } = {
  OrchestrationStarted: [
    { name: "TestOrch", version: "1.0.0", input: "{}", parentInstance: null, parentId: null },
    {
      name: "TestOrch",
      version: "1.0.0",
      input: "",
      parentInstance: "p",
      parentId: 7,
      parentExecutionId: 2,
      carryForwardEvents: [
        ["inbox", "1"],
        ["inbox", ""],
      ],
      initialCustomStatus: "",
    },
  ],
  OrchestrationCompleted: [{ output: "done" }],
  OrchestrationFailed: EVERY_FAILURE.map((details) => ({ details })),
  OrchestrationContinuedAsNew: [{ input: "next" }],
  OrchestrationCancelRequested: [{ reason: "enough" }],
  ActivityScheduled: [
    { name: "Charge", input: "{}" },
    { name: "Charge", input: "{}", sessionId: "session", tag: "gpu" },
  ],
  ActivityCompleted: [{ result: "" }],
  ActivityFailed: EVERY_FAILURE.map((details) => ({ details })),
  ActivityCancelRequested: [{ reason: "lost a race" }],
  TimerCreated: [{ fireAtMs: 0 }, { fireAtMs: Number.MAX_SAFE_INTEGER }],
  TimerFired: [{ fireAtMs: 1_700_000_000_001 }],
  ExternalSubscribed: [{ name: "signal" }],
  ExternalEvent: [{ name: "signal", data: "{}" }],
  ExternalSubscribedCancelled: [{ reason: "lost a race" }],
  ExternalSubscribedPersistent: [{ name: "inbox" }],
  ExternalEventPersistent: [{ name: "inbox", data: "{}" }],
  ExternalSubscribedPersistentCancelled: [{ reason: "lost a race" }],
  SubOrchestrationScheduled: [{ name: "Child", instance: "sub::5", input: "{}" }],
  SubOrchestrationCompleted: [{ result: "ok" }],
  SubOrchestrationFailed: EVERY_FAILURE.map((details) => ({ details })),
  SubOrchestrationCancelRequested: [{ reason: "enough" }],
  OrchestrationChained: [{ name: "Next", instance: "next", input: "{}" }],
  CustomStatusUpdated: [{ status: "half" }, { status: "" }, { status: null }],
  KeyValueSet: [{ key: "k", value: "v", lastUpdatedAtMs: 1_700_000_000_002 }],
  KeyValueCleared: [{ key: "k" }],
  KeyValuesCleared: [{}],
};

/** What an envelope may say beside ids. */
const ENVELOPES: readonly Partial<EventEnvelope>[] = [
  { sourceEventId: null, timestampMs: 1_700_000_000_123, duroxideVersion: "0.1.30" },
  { sourceEventId: 2, timestampMs: 0, duroxideVersion: "0.1.7" },
  { sourceEventId: 99_999, timestampMs: Number.MAX_SAFE_INTEGER, duroxideVersion: "1.0.0-beta.1+build" },
];

function everyEvent(instance: string): readonly Event[] {
  return everyKind<EventPayload>(EVERY_EVENT).map((payload, index) =>
    event(instance, index + 1, payload, ENVELOPES[index % ENVELOPES.length]),
  );
}

/** Timers come first: they have long been due. */
function everyMessage(instance: string): readonly OrchestratorItem[] {
  const parent = { parentInstance: instance, parentExecutionId: 1, parentId: 2 };
  const activity = { instance, executionId: 3, id: 2 };
  const messages: { readonly [T in OrchestratorItem["type"]]: readonly Fields<OrchestratorItem, T>[] } = {
    TimerFired: [
      { ...activity, fireAtMs: 0 },
      { ...activity, fireAtMs: 1_234_567_890 },
    ],
    StartOrchestration: [
      start(instance),
      start(instance, { version: null, parentInstance: "p", parentId: 7, parentExecutionId: 2, executionId: 4 }),
    ],
    ContinueAsNew: [
      { instance, orchestration: "TestOrch", input: "", version: null, carryForwardEvents: [] },
      {
        instance,
        orchestration: "TestOrch",
        input: "{}",
        version: "1.0.0",
        carryForwardEvents: [["inbox", "1"]],
        initialCustomStatus: "half",
        parentInstance: "p",
        parentId: 7,
        parentExecutionId: 2,
      },
    ],
    ActivityCompleted: [{ ...activity, result: "" }],
    ActivityFailed: EVERY_FAILURE.map((details) => ({ ...activity, details })),
    ExternalRaised: [{ instance, name: "signal", data: "" }],
    QueueMessage: [{ instance, name: "inbox", data: "{}" }],
    SubOrchCompleted: [{ ...parent, result: "ok" }],
    SubOrchFailed: EVERY_FAILURE.map((details) => ({ ...parent, details })),
    CancelInstance: [{ instance, reason: "enough" }],
  };
  return everyKind<OrchestratorItem>(messages);
}

function everyActivity(instance: string): readonly ActivityExecute[] {
  return [
    act(instance, 1),
    act(instance, 2, { input: "", sessionId: "session" }),
    act(instance, 3, { tag: "gpu", executionId: 3 }),
    act(instance, 4, {
      sessionId: "session",
      tag: "gpu",
      orchestrationName: "TestOrch",
      orchestrationVersion: "1.2.3",
      retryOf: 2,
    }),
  ];
}

function everyKind<Union extends { readonly type: string }>(
  fieldsByType: {
    readonly [T in Union["type"]]: readonly Fields<Union, T>[];
  },
): readonly Union[] {
  const entries: [string, readonly object[]][] = Object.entries(fieldsByType);
  return entries.flatMap(([type, kinds]) => kinds.map((fields) => ({ type, ...fields }) as unknown as Union));
}

/** Takes an activity of whatever tag and session. */
async function takeAny(provider: Provider): Promise<ActivityExecute> {
  const session = { ownerId: "owner", lockTimeoutMs: LONG_LOCK_MS };
  return (await takeWork(provider, { tagFilter: { kind: "any" }, session })).item;
}

function checkEach<T extends { readonly type: string }>(
  t: CaseContext,
  actual: readonly T[],
  expected: readonly NoInfer<T>[],
): void {
  t.equal(actual.length, expected.length, "how many there are");
  for (const [index, item] of expected.entries()) t.equal(actual[index], item, `number ${index + 1} (${item.type})`);
}

/** The payload of an event or a message that has one. */
function textOf(item: Event | OrchestratorItem | undefined): string | null {
  if (item?.type === "ActivityCompleted") return item.result;
  return item?.type === "ExternalRaised" ? item.data : null;
}
