// cases/error-handling.ts — what is refused is refused clearly, and what cannot be decoded is never taken for nothing.

import { CORRUPT_HISTORY_EVENT_ID } from "../../history/event.js";
import type { ActivityExecute, OrchestratorItem } from "../../history/work-item.js";
import type { Provider } from "../../provider/provider.js";
import {
  act,
  continueAsNew,
  done,
  event,
  NAMED,
  raised,
  scheduled,
  semver,
  start,
  started,
  timer,
  turn,
} from "../builders.js";
import type { CaseContext, CaseStore } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { begin, create, fetchTurn, fetchWork, takeTurn, takeWork } from "../steps.js";

export const errorHandling: Category = {
  name: "error_handling",
  about: "What is refused is refused clearly, and what cannot be decoded is never taken for nothing.",
  cases: [
    {
      id: "invalid_lock_token_on_ack",
      promise: "An ack with a token that nobody was given is refused, and the refusal speaks of the token",
      async run(t) {
        const { provider } = await t.open();
        const error = await t.refused(
          provider.ackOrchestrationItem("invalid-token", turn({ events: [started("a")] })),
          "lock-lost",
          "an ack with an unknown token",
        );
        t.ok(/invalid lock token|lock_token/i.test(error.message), `that "${error.message}" speaks of the lock token`);
        t.equal(await provider.read("a"), [], "the history of the instance that the ack spoke of");
      },
    },
    {
      id: "invalid_lock_token_on_work_item",
      promise: "An activity cannot be acked or renewed with a token that nobody was given",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForWorker(act("a", 1));

        await t.refused(provider.ackWorkItem("unknown", null), "lock-lost", "an ack without completion");
        await t.refused(provider.ackWorkItem("unknown", done("a", 1)), "lock-lost", "an ack with a completion");
        await t.refused(provider.renewWorkItemLock("unknown", 1_000), "lock-lost", "a renewal");
        t.isNull(await fetchTurn(provider), "the completion of the refused ack");
        t.equal((await takeWork(provider)).item, act("a", 1), "the activity, which is still there");
      },
    },
    {
      id: "duplicate_event_id_rejection",
      promise: "An event id that the execution has already is refused, and the event that has it stays as it is",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);

        const ack = provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 1)] }));
        await t.refused(ack, "duplicate-event", "an ack with event id 1 for the second time");
        t.equal(await provider.read("a"), [started("a")], "the history after the refused ack");
      },
    },
    {
      id: "missing_instance_metadata",
      promise: "An instance that nobody has heard of has an empty history, no status and no values: that is no error",
      async run(t) {
        const { provider } = await t.open();
        t.equal(await provider.read("unknown"), [], "its history");
        t.equal(await provider.readWithExecution("unknown", 1), [], "the history of its first execution");
        t.isNull(await provider.getInstanceStatus("unknown"), "its status");
        t.isNull(await provider.getCustomStatus("unknown", 0), "its custom status");
        t.isNull(await provider.getKvValue("unknown", "key"), "a value of it");
        t.equal(await provider.getKvAllValues("unknown"), new Map(), "all its values");
        t.isNull(await provider.getInstanceStats("unknown"), "its stats");
      },
    },
    {
      id: "corrupted_serialization_data",
      promise: "A fetch from an empty store answers that there is nothing, time and again",
      async run(t) {
        const { provider } = await t.open();
        for (const attempt of ["first", "second"]) {
          t.isNull(await fetchTurn(provider), `an orchestration item, fetched for the ${attempt} time`);
          t.isNull(await fetchWork(provider), `a work item, fetched for the ${attempt} time`);
        }
      },
    },
    {
      id: "lock_expiration_during_ack",
      promise: "An ack that comes after the end of its lock is refused and writes nothing",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        const late = turn({ events: [started("a")], workerItems: [act("a", 2)], metadata: NAMED });
        await t.refused(provider.ackOrchestrationItem(lockToken, late), "lock-lost", "the late ack");
        t.equal(await provider.read("a"), [], "the history after the late ack");
        t.isNull(await fetchWork(provider), "an activity of the late ack");
        t.equal((await takeTurn(provider)).item.messages, [start("a")], "the messages, which are still there");
      },
    },

    // What does not belong where it is sent

    {
      id: "misrouted_activity",
      promise: "The orchestrator queue takes no activities",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const misrouted = provider.enqueueForOrchestrator(act("a", 1) as unknown as OrchestratorItem);
        await t.refused(misrouted, "invalid", "an activity that is enqueued for the orchestrator");
        t.isNull(await fetchTurn(provider), "the instance that it names");
        t.isNull(await fetchWork(provider), "the activity");
      },
    },
    {
      id: "misrouted_message",
      promise: "The worker queue takes nothing but activities, neither by itself nor from a turn",
      async run(t) {
        const { provider } = await t.open();
        const misrouted = start("b") as unknown as ActivityExecute;
        await t.refused(provider.enqueueForWorker(misrouted), "invalid", "a start that is enqueued for the worker");
        t.isNull(await fetchWork(provider), "the start as work");

        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        const refused = turn({ events: [started("a")], workerItems: [act("a", 2), misrouted] });
        await t.refused(provider.ackOrchestrationItem(lockToken, refused), "invalid", "a turn with such an activity");
        t.equal(await provider.read("a"), [], "the history after the refused turn");
        t.isNull(await fetchWork(provider), "the other activity of the refused turn");
      },
    },
    {
      id: "non_completion_acks_work",
      promise:
        "An activity ends with a completion or a failure: anything else is refused, and it stays with its worker",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider);
        const misuses: OrchestratorItem[] = [
          raised("a"),
          start("a"),
          continueAsNew("a"),
          timer("a", 1, 0),
          { type: "SubOrchCompleted", parentInstance: "a", parentExecutionId: 1, parentId: 1, result: "" },
          act("a", 1) as unknown as OrchestratorItem,
        ];
        for (const misuse of misuses) {
          await t.refused(provider.ackWorkItem(lockToken, misuse), "invalid", `an ack with ${misuse.type}`);
        }

        t.isNull(await fetchTurn(provider), "a message of the refused acks");
        t.isNull(await fetchWork(provider), "the activity, which is still locked");
        await provider.ackWorkItem(lockToken, done("a", 1));
        t.equal((await takeTurn(provider)).item.messages, [done("a", 1)], "the messages after a correct ack");
      },
    },

    // Appending

    {
      id: "append_is_atomic",
      promise: "An append writes all of its events or none",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const taken = provider.appendWithExecution("a", 1, [scheduled("a", 2), scheduled("a", 1)]);
        await t.refused(taken, "duplicate-event", "an append with an event id in use");
        const twice = provider.appendWithExecution("a", 1, [scheduled("a", 2), scheduled("a", 2)]);
        await t.refused(twice, "duplicate-event", "an append with one event id twice");
        const zero = provider.appendWithExecution("a", 1, [scheduled("a", 2), scheduled("a", 0)]);
        await t.refused(zero, "invalid", "an append with event id 0");

        t.equal(await provider.read("a"), [started("a")], "the history after the refused appends");
      },
    },
    {
      id: "concurrent_append_of_same_event_id",
      promise: "Of two appends of one event id at the same time exactly one succeeds",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        const names = ["One", "Other"];
        const appends = names.map((name) => provider.appendWithExecution("a", 1, [scheduled("a", 2, name)]));
        const outcomes = await Promise.allSettled(appends);

        t.equal(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"], "the outcomes of both appends");
        const loser = outcomes.findIndex(({ status }) => status === "rejected");
        await t.refused(appends[loser]!, "duplicate-event", "the append that came too late");
        const winner = names[1 - loser];
        t.equal(await provider.read("a"), [started("a"), scheduled("a", 2, winner)], "the history after both");
      },
    },

    // History that cannot be decoded

    {
      id: "read_corrupted_history_returns_error",
      promise: "Whoever reads a history that cannot be decoded is told so: it does not look empty",
      async run(t) {
        const { provider } = await openCorrupt(t);
        await t.refused(provider.read("a"), "corrupt", "reading the history");
      },
    },
    {
      id: "read_with_execution_corrupted_history_returns_error",
      promise: "Whoever reads one execution of a history that cannot be decoded is told so",
      async run(t) {
        const { provider } = await openCorrupt(t);
        await t.refused(provider.readWithExecution("a", 1), "corrupt", "reading the first execution");
      },
    },
    {
      id: "corrupt_history_is_fetched_and_counted",
      promise: "An instance whose history cannot be decoded is fetched as such, locked and counted like any other",
      async run(t) {
        const { provider } = await openCorrupt(t);
        for (let attempt = 1; attempt <= 5; attempt += 1) {
          const { item, lockToken, attemptCount } = await takeTurn(provider);
          t.equal(attemptCount, attempt, "the attempt count");
          t.matches(item, { instance: "a", history: [], warmAsOf: null, messages: [raised("a")] }, "what is fetched");
          t.found(item.historyError, "what is wrong with the history");
          t.equal(item.kvSnapshot, new Map(), "the values");
          t.isNull(await fetchTurn(provider), "the instance under its lock");
          await provider.abandonOrchestrationItem(lockToken);
        }
      },
    },
    {
      id: "corrupt_history_can_be_ended",
      promise: "A history that cannot be decoded takes a last event, and the rest of it is left alone",
      async run(t) {
        const { provider } = await openCorrupt(t);
        const { lockToken } = await takeTurn(provider);
        const failure = event("a", CORRUPT_HISTORY_EVENT_ID, {
          type: "OrchestrationFailed",
          details: { category: "infrastructure", operation: "read", message: "corrupt", retryable: false },
        });
        const metadata = { ...NAMED, status: "Failed", output: "history deserialization failed" } as const;
        await provider.ackOrchestrationItem(lockToken, turn({ events: [failure], metadata }));

        const status = await provider.getInstanceStatus("a");
        t.matches(status, { status: "Failed", output: metadata.output }, "the status");
        await t.refused(provider.read("a"), "corrupt", "reading the history, whose beginning is as bad as before");
        t.isNull(await fetchTurn(provider), "the instance, whose message is consumed");
      },
    },
    {
      id: "corrupt_history_is_nobody_elses",
      promise: "An instance whose history cannot be decoded does not disturb the others",
      async run(t) {
        const { provider } = await openCorrupt(t, async (provider) => {
          await create(provider, "b");
        });
        await takeTurn(provider);
        await provider.enqueueForOrchestrator(raised("b"));
        const { item } = await takeTurn(provider);
        t.matches(item, { instance: "b", history: [started("b")], historyError: null }, "the next instance");
      },
    },

    // Queued items that cannot be decoded

    {
      id: "corrupt_message_goes_with_its_batch",
      promise: "A message that cannot be decoded is not handed out, and goes with the ack of its batch",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a", "corrupt"));
        await store.corruptQueues("a");
        await provider.enqueueForOrchestrator(raised("a", "sound"));

        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [raised("a", "sound")], "the messages of the batch");
        await provider.ackOrchestrationItem(lockToken, turn());
        t.isNull(await fetchTurn(provider), "the instance after the ack");
        t.equal((await store.admin.getQueueDepths()).orchestratorQueue, 0, "the messages that are left");
      },
    },
    {
      id: "corrupt_message_starves_nobody",
      promise: "Messages that cannot be decoded do not keep other instances waiting, whether theirs is known or not",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await create(provider, "known");
        await provider.enqueueForOrchestrator(raised("known"));
        await provider.enqueueForOrchestrator(start("unknown"));
        await store.corruptQueues("known");
        await store.corruptQueues("unknown");
        await provider.enqueueForOrchestrator(start("b"));

        const taken: string[] = [];
        for (let locked = await fetchTurn(provider); locked !== null; locked = await fetchTurn(provider)) {
          taken.push(locked.item.instance);
          t.equal(locked.item.messages.length, locked.item.instance === "b" ? 1 : 0, "the messages that can be read");
          await provider.ackOrchestrationItem(locked.lockToken, turn());
        }
        t.ok(taken.includes("b"), "the instance behind those with corrupt messages is fetched");
        t.equal(new Set(taken).size, taken.length, "how often each was fetched");
      },
    },
    {
      id: "corrupt_activity_starves_nobody",
      promise: "An activity that cannot be decoded is handed to nobody, and does not keep others waiting",
      async run(t) {
        const store = await t.open();
        const { provider } = store;
        await provider.enqueueForWorker(act("a", 1));
        await store.corruptQueues("a");
        await provider.enqueueForWorker(act("b", 2));

        t.equal((await takeWork(provider)).item, act("b", 2), "the activity behind the corrupt one");
        t.isNull(await fetchWork(provider), "the corrupt one");
      },
    },
  ],
};

/** A store with the instance "a", which is pinned to 1.0.0 and has a message, and whose history cannot be decoded. */
async function openCorrupt(
  t: CaseContext,
  prepare: (provider: Provider) => Promise<void> = async () => {},
): Promise<CaseStore> {
  const store = await t.open();
  await prepare(store.provider);
  await create(store.provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("1.0.0") } });
  t.equal(await store.provider.read("a"), [started("a")], "the history before it is corrupted");
  await store.provider.enqueueForOrchestrator(raised("a"));
  await store.corruptHistory("a");
  return store;
}
