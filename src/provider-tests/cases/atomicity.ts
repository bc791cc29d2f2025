// cases/atomicity.ts — a turn is committed whole, once, or not at all.

import type { OrchestratorItem } from "../../history/work-item.js";
import { act, done, event, NAMED, raised, scheduled, start, started, timer, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, create, fetchTurn, fetchWork, takeTurn, takeWork } from "../steps.js";

export const atomicity: Category = {
  name: "atomicity",
  about: "A turn is committed whole, once, or not at all.",
  cases: [
    {
      id: "atomicity_failure_rollback",
      promise: "A refused turn changes nothing, and its lock is still held",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);

        const refused = turn({
          events: [scheduled("a", 2), scheduled("a", 1)],
          workerItems: [act("a", 2)],
          orchestratorItems: [raised("b"), start("b")],
          metadata: { ...NAMED, orchestrationVersion: "9.9.9", status: "Failed", output: "no" },
        });
        const ack = provider.ackOrchestrationItem(lockToken, refused);
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");

        t.equal(await provider.read("a"), [started("a")], "the history after the refused ack");
        t.isNull(await fetchWork(provider), "an activity of the refused ack");
        t.isNull(await fetchTurn(provider), "the instance, or a message of the refused ack, while the lock is held");
        const status = await provider.getInstanceStatus("a");
        t.matches(status, { status: "Running", orchestrationVersion: "1.0.0" }, "the status after the refused ack");
        await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)] }));
        t.equal((await provider.read("a")).length, 2, "events after a second, correct ack with the same lock");
      },
    },
    {
      id: "multi_operation_atomic_ack",
      promise: "One ack writes history, activities and messages, in their order",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        const fireAtMs = 1_234_567_890;
        const timerCreated = event("a", 5, { type: "TimerCreated", fireAtMs });
        const messages = [timer("a", 5, fireAtMs), raised("a")];

        await provider.ackOrchestrationItem(
          lockToken,
          turn({
            events: [started("a"), scheduled("a", 2), scheduled("a", 3), scheduled("a", 4), timerCreated],
            workerItems: [act("a", 2), act("a", 3), act("a", 4)],
            orchestratorItems: messages,
          }),
        );

        const eventIds = (await provider.read("a")).map(({ eventId }) => eventId);
        t.equal(eventIds, [1, 2, 3, 4, 5], "the events of the history");
        for (const id of [2, 3, 4]) t.equal((await takeWork(provider)).item.id, id, "the next activity");
        t.isNull(await fetchWork(provider), "a fourth activity");
        t.equal((await takeTurn(provider)).item.messages, messages, "the messages, of which the timer is long due");
      },
    },
    {
      id: "lock_released_only_on_successful_ack",
      promise: "A refused ack does not release the lock: only its end does, and the messages are all there",
      async run(t) {
        const { provider } = await t.open();
        await begin(provider, "a");
        await provider.enqueueForOrchestrator(done("a", 2));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        t.isNull(await fetchTurn(provider), "the instance under its lock");

        await t.refused(
          provider.ackOrchestrationItem("no-such-token", turn()),
          "lock-lost",
          "an ack with a wrong token",
        );
        t.isNull(await fetchTurn(provider), "the instance after the ack with a wrong token");
        const taken = provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 1)] }));
        await t.refused(taken, "duplicate-event", "an ack with an event id in use");
        t.isNull(await fetchTurn(provider), "the instance after the refused ack");

        await t.outlive(t.lockMs);
        t.equal((await takeTurn(provider)).item.messages, [done("a", 2)], "its messages when the lock has ended");
      },
    },
    {
      id: "concurrent_ack_prevention",
      promise: "Of two acks with one lock exactly one succeeds",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        const commit = turn({ events: [started("a")] });

        const outcomes = await Promise.allSettled([
          provider.ackOrchestrationItem(lockToken, commit),
          provider.ackOrchestrationItem(lockToken, commit),
        ]);

        t.equal(outcomes.map(({ status }) => status).sort(), ["fulfilled", "rejected"], "the outcomes of both acks");
        await t.refused(provider.ackOrchestrationItem(lockToken, commit), "lock-lost", "a third ack");
        t.equal(await provider.read("a"), [started("a")], "the history after three acks");
      },
    },
    {
      id: "empty_turn",
      promise: "A turn that decides nothing consumes its messages",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await provider.ackOrchestrationItem((await takeTurn(provider)).lockToken, turn());

        t.isNull(await fetchTurn(provider), "the instance after the empty turn");
        t.equal(await provider.read("a"), [], "its history");
      },
    },
    {
      id: "duplicate_within_turn",
      promise: "A turn with one event id twice is refused as a whole",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);

        const ack = provider.ackOrchestrationItem(lockToken, turn({ events: [started("a"), scheduled("a", 1)] }));
        await t.refused(ack, "duplicate-event", "the ack");
        t.equal(await provider.read("a"), [], "the history");
      },
    },
    {
      id: "event_id_zero",
      promise: "A turn with an event id that is no positive integer is refused as a whole, and its lock is still held",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        for (const eventId of [0, -1, 1.5]) {
          const ack = provider.ackOrchestrationItem(
            lockToken,
            turn({ events: [started("a"), scheduled("a", eventId)] }),
          );
          await t.refused(ack, "invalid", `an ack with event id ${eventId}`);
          t.equal(await provider.read("a"), [], `the history after event id ${eventId}`);
        }
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));
        t.equal(await provider.read("a"), [started("a")], "the history after a correct ack with the same lock");
      },
    },
    {
      id: "misrouted_activity_in_turn",
      promise: "A turn that sends an activity to the orchestrator queue is refused as a whole",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);

        const misrouted = act("a", 2) as unknown as OrchestratorItem;
        const refused = turn({ events: [started("a")], orchestratorItems: [raised("a"), misrouted] });
        await t.refused(provider.ackOrchestrationItem(lockToken, refused), "invalid", "the ack");
        t.equal(await provider.read("a"), [], "the history");
        t.isNull(await fetchTurn(provider), "the instance, whose lock is still held");
      },
    },
    {
      id: "sub_orchestration_completion_routed_to_parent",
      promise: "The completion of a child reaches the parent that it names",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "p");
        const completion: OrchestratorItem = {
          type: "SubOrchCompleted",
          parentInstance: "p",
          parentExecutionId: 1,
          parentId: 2,
          result: "ok",
        };
        await create(provider, "child", { orchestratorItems: [completion] });

        const { item } = await takeTurn(provider);
        t.equal(item.instance, "p", "the instance that has got a message");
        t.equal(item.messages, [completion], "its messages");
      },
    },
  ],
};
