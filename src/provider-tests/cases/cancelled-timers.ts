// cases/cancelled-timers.ts — a cancelled timer never fires.

import type { ScheduledId } from "../../provider/provider.js";
import { done, raised, scheduled, timer, turn } from "../builders.js";
import type { Category } from "../provider-case.js";
import { create, fetchTurn, runTurn, takeTurn } from "../steps.js";

/** More than the parameters that one statement of a database may have. */
const VERY_MANY = 1_500;

export const cancelledTimers: Category = {
  name: "cancelled_timers",
  about: "A cancelled timer never fires.",
  cases: [
    {
      id: "cancelled_timer_never_fires",
      promise: "A cancelled timer never fires, the others do",
      async run(t) {
        const { provider } = await t.open();
        const delayMs = 2 * t.lockMs;
        const fireAtMs = t.now() + delayMs;
        await create(provider, "a", { orchestratorItems: [timer("a", 2, fireAtMs), timer("a", 3, fireAtMs)] });
        await runTurn(provider, "a", { cancelledTimers: [cancelled("a", 2)] });
        t.isNull(await fetchTurn(provider), "the instance before the time of its timers");
        await t.outlive(delayMs);

        t.equal((await takeTurn(provider)).item.messages, [timer("a", 3, fireAtMs)], "the timers that have fired");
      },
    },
    {
      id: "timer_of_the_same_turn",
      promise: "A timer that one turn both sets and cancels never fires",
      async run(t) {
        const { provider } = await t.open();
        const items = [timer("a", 2, t.now() + t.lockMs), timer("a", 3, t.now())];
        await create(provider, "a", {
          orchestratorItems: items,
          cancelledTimers: [cancelled("a", 2), cancelled("a", 3)],
        });
        t.isNull(await fetchTurn(provider), "the timer that was due at once");
        await t.outlive(t.lockMs);

        t.isNull(await fetchTurn(provider), "the other timer at its time");
      },
    },
    {
      id: "due_timer_that_no_turn_had",
      promise: "A cancelled timer is gone even if it was due already, as long as no turn had it",
      async run(t) {
        const { provider } = await t.open();
        const delayMs = 2 * t.lockMs;
        const fireAtMs = t.now() + delayMs;
        await create(provider, "a", { orchestratorItems: [timer("a", 2, fireAtMs)] });
        await provider.enqueueForOrchestrator(raised("a"));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [raised("a")], "the messages of the turn, which has begun before the timer's time");
        await t.outlive(delayMs);
        t.isNull(await fetchTurn(provider), "the instance under its lock, when the timer is due");
        await provider.ackOrchestrationItem(lockToken, turn({ cancelledTimers: [cancelled("a", 2)] }));

        t.isNull(await fetchTurn(provider), "the cancelled timer");
      },
    },
    {
      id: "timer_that_has_fired_or_is_unknown",
      promise: "A timer may have fired in the turn that cancels it, or may be unknown",
      async run(t) {
        const { provider } = await t.open();
        const due = timer("a", 2, t.now());
        await create(provider, "a", { orchestratorItems: [due] });
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [due], "the timer that has fired");
        const cancelledTimers = [cancelled("a", 2), cancelled("a", 99), cancelled("unknown", 2)];
        await provider.ackOrchestrationItem(lockToken, turn({ events: [scheduled("a", 2)], cancelledTimers }));

        t.equal((await provider.read("a")).length, 2, "events after the turn that cancels them");
        t.isNull(await fetchTurn(provider), "the cancelled timers");
        t.isNull(await provider.getInstanceStatus("unknown"), "the status of the unknown instance");
      },
    },
    {
      id: "cancellation_takes_no_other_message",
      promise: "A cancellation takes no other message of that id along, and no timer of another execution or instance",
      async run(t) {
        const { provider } = await t.open();
        const delayMs = 2 * t.lockMs;
        const fireAtMs = t.now() + delayMs;
        const ofNext = timer("a", 2, fireAtMs, { executionId: 2 });
        const ofOther = timer("b", 2, fireAtMs);
        await create(provider, "b");
        await create(provider, "a", { orchestratorItems: [timer("a", 2, fireAtMs), ofNext, ofOther] });
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        await provider.enqueueForOrchestrator(done("a", 2));
        await provider.ackOrchestrationItem(lockToken, turn({ cancelledTimers: [cancelled("a", 2)] }));
        await t.outlive(delayMs);

        const left = [(await takeTurn(provider)).item, (await takeTurn(provider)).item];
        const messagesOf = (id: string) => left.find(({ instance }) => instance === id)?.messages;
        t.equal(messagesOf("a"), [done("a", 2), ofNext], "the messages of the instance whose timer was cancelled");
        t.equal(messagesOf("b"), [ofOther], "the messages of the other instance");
      },
    },
    {
      id: "timer_that_was_set_twice",
      promise: "A timer may have been set twice: its cancellation takes all that is left of it",
      async run(t) {
        const { provider } = await t.open();
        const delayMs = 2 * t.lockMs;
        const [due, later] = [t.now(), t.now() + delayMs];
        const sets = [timer("a", 2, due), timer("a", 2, later), timer("a", 3, later), timer("a", 3, later)];
        await create(provider, "a", { orchestratorItems: sets });
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.messages, [timer("a", 2, due)], "the timer that is due");
        await provider.ackOrchestrationItem(lockToken, turn());
        await runTurn(provider, "a", { cancelledTimers: [cancelled("a", 2), cancelled("a", 3)] });
        await t.outlive(delayMs);

        t.isNull(await fetchTurn(provider), "the cancelled timers at their time");
      },
    },
    {
      id: "timer_of_another_instance",
      promise:
        "A turn may cancel a timer of another instance, be it due or in somebody's hands, and takes nothing else",
      async run(t) {
        const { provider } = await t.open();
        for (const instance of ["a", "due", "held"]) await create(provider, instance);
        await provider.enqueueForOrchestrator(timer("held", 2, 0));
        const { item, lockToken } = await takeTurn(provider);
        t.equal(item.instance, "held", "the instance that somebody holds");
        await provider.enqueueForOrchestrator(raised("held"));
        await provider.enqueueForOrchestrator(raised("a"));
        const own = await takeTurn(provider);
        await provider.enqueueForOrchestrator(timer("due", 2, 0));
        const cancelledTimers = [cancelled("due", 2), cancelled("held", 2)];
        await provider.ackOrchestrationItem(own.lockToken, turn({ cancelledTimers }));

        t.isNull(await fetchTurn(provider), "the instance whose timer was due");
        await provider.ackOrchestrationItem(lockToken, turn());
        const left = (await takeTurn(provider)).item.messages;
        t.equal(left, [raised("held")], "what has come for the other one meanwhile");
      },
    },
    {
      id: "refused_turn_cancels_no_timer",
      promise: "A timer is set as before when the turn that cancels it is refused",
      async run(t) {
        const { provider } = await t.open();
        const delayMs = 2 * t.lockMs;
        const set = timer("a", 2, t.now() + delayMs);
        await create(provider, "a", { orchestratorItems: [set] });
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const refused = turn({ events: [scheduled("a", 1)], cancelledTimers: [cancelled("a", 2)] });
        const ack = provider.ackOrchestrationItem(lockToken, refused);
        await t.refused(ack, "duplicate-event", "an ack with an event id in use");
        await provider.abandonOrchestrationItem(lockToken);
        await t.outlive(delayMs);

        t.equal((await takeTurn(provider)).item.messages, [raised("a"), set], "the messages at the timer's time");
      },
    },
    {
      id: "very_many_cancelled_timers",
      promise: "One turn can cancel very many timers",
      async run(t) {
        const { provider } = await t.open();
        const delayMs = 2 * t.lockMs;
        const fireAtMs = t.now() + delayMs;
        const ids = Array.from({ length: VERY_MANY }, (_, index) => index + 2);
        await create(provider, "a", { orchestratorItems: ids.map((id) => timer("a", id, fireAtMs)) });
        await runTurn(provider, "a", { cancelledTimers: ids.slice(1).map((id) => cancelled("a", id)) });
        await t.outlive(delayMs);

        const { messages } = (await takeTurn(provider)).item;
        t.equal(messages, [timer("a", 2, fireAtMs)], "the one timer that is not cancelled");
      },
    },
  ],
};

function cancelled(instance: string, id: number): ScheduledId {
  return { instance, executionId: 1, id };
}
