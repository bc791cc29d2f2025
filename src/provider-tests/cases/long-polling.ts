// cases/long-polling.ts — a fetch waits for work no longer than it may, and not when there is some.
//
// Where a fetch is to end it is given the time that its store needs (`soon`), but no time of the contract: a provider that
// long-polls knows of its own commits at once, and of what falls due when it does.

import type { FetchWorkOptions, Provider } from "../../provider/provider.js";
import { act, done, NAMED, raised, semver, start, started, supports, timer, turn } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import { onlyLongPolls, POLL_LOCKS, pollTurn, pollWork, unattended, waits } from "../polls.js";
import type { Category } from "../provider-case.js";
import { create, fetchTurn, fetchWork, runTurn, takeTurn, takeWork } from "../steps.js";

export const longPolling: Category = {
  name: "long_polling",
  about: "A fetch waits for work no longer than it may, and not when there is some.",
  cases: [
    // How long a fetch waits
    {
      id: "short_poll_returns_immediately",
      promise: "A provider that polls short answers at once that there is no turn, whatever time it is given",
      async run(t) {
        onlyShortPolls(t);
        const { provider } = await t.open();
        const fetch = fetchTurn(provider, { pollTimeoutMs: 2 * t.shortPollThresholdMs });
        t.isNull(await atOnce(t, fetch, "a fetch from an empty queue"), "the turn from an empty queue");
      },
    },
    {
      id: "long_poll_waits_for_timeout",
      promise: "A provider that polls long waits its whole time for a turn before it says that there is none",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await checkWait(t, provider, (options) => fetchTurn(provider, options));
      },
    },
    {
      id: "fetch_respects_timeout_upper_bound",
      promise: "No fetch waits longer than it may",
      async run(t) {
        const { provider } = await t.open();
        await checkUpperBound(t, provider, (options) => fetchTurn(provider, options));
        await checkUpperBound(t, provider, (options) => fetchWork(provider, options));
      },
    },
    {
      id: "short_poll_work_item_returns_immediately",
      promise: "A provider that polls short answers at once that there is no activity, whatever time it is given",
      async run(t) {
        onlyShortPolls(t);
        const { provider } = await t.open();
        const fetch = fetchWork(provider, { pollTimeoutMs: 2 * t.shortPollThresholdMs });
        t.isNull(await atOnce(t, fetch, "a fetch from an empty queue"), "the activity from an empty queue");
      },
    },
    {
      id: "long_poll_work_item_waits_for_timeout",
      promise: "A provider that polls long waits its whole time for an activity before it says that there is none",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await checkWait(t, provider, (options) => fetchWork(provider, options));
      },
    },
    {
      id: "poll_ends_to_the_millisecond",
      promise: "A fetch that finds nothing waits to the last millisecond of its time, and not one longer",
      async run(t) {
        onlyLongPolls(t);
        const clock = t.exactTime;
        const { provider } = await t.open();
        const forTurn = pollTurn(t, provider, { pollTimeoutMs: 500 });
        const forWork = pollWork(t, provider, { pollTimeoutMs: 500 });
        await begun(provider);
        await clock.advance(499);
        await waits(t, forTurn, "the fetch of a turn in its last millisecond");
        await waits(t, forWork, "the fetch of an activity in its last millisecond");

        await clock.advance(1);
        t.isNull(await t.soon(forTurn, "the end of the fetch of a turn"), "the turn that it brings");
        t.isNull(await t.soon(forWork, "the end of the fetch of an activity"), "the activity that it brings");
      },
    },
    {
      id: "fetch_answers_at_once_when_it_can",
      promise: "A fetch does not wait where it may not, nor where there is work",
      async run(t) {
        const { provider } = await t.open();
        t.isNull(
          await atOnce(t, fetchTurn(provider), "a fetch without a time to wait"),
          "the turn, of which there is none",
        );
        t.isNull(await atOnce(t, fetchWork(provider), "a fetch without a time to wait"), "the activity");
        const none = fetchTurn(provider, { pollTimeoutMs: 0 });
        t.isNull(await atOnce(t, none, "a fetch with no time to wait"), "the turn, of which there is still none");

        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        const locked = await atOnce(t, pollTurn(t, provider), "a fetch where there is a turn");
        t.equal(locked?.item.instance, "a", "the turn that it brings");
        t.equal((await atOnce(t, pollWork(t, provider), "a fetch where there is work"))?.item.id, 1, "the activity");
      },
    },

    // What ends the wait for a turn
    {
      id: "poll_ends_when_a_message_arrives",
      promise: "A wait for a turn ends as soon as a message arrives",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const poll = pollTurn(t, provider);
        await t.wait(2 * t.lockMs);
        await waits(t, poll, "a fetch from an empty queue");
        await provider.enqueueForOrchestrator(start("a"));

        const locked = await t.soon(poll, "the end of the wait when a message has arrived");
        t.matches(locked, { attemptCount: 1, item: { messages: [start("a")] } }, "what it brings");
      },
    },
    {
      id: "poll_ends_when_a_delayed_message_is_due",
      promise: "A wait for a turn ends when a delayed message becomes visible, sent before the wait or during it",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("early"), { delayMs: t.lockMs });
        const polls = [pollTurn(t, provider), pollTurn(t, provider)];
        await provider.enqueueForOrchestrator(start("late"), { delayMs: 2 * t.lockMs });
        await t.wait(t.lockMs / 2);
        for (const poll of polls) await waits(t, poll, "a fetch before the first delay is over");

        await t.outlive(t.lockMs / 2);
        const first = await ended(t, 1, polls, "the end of one wait after the first delay");
        t.equal(instancesOf(first), ["early"], "what is fetched after the first delay");
        await t.outlive(t.lockMs);
        const both = await ended(t, 2, polls, "the end of the other wait after the second delay");
        t.equal(instancesOf(both), ["early", "late"], "what is fetched after the second delay");
      },
    },
    {
      id: "poll_ends_when_a_timer_fires",
      promise: "A wait for a turn ends when a timer fires that a turn has set meanwhile",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        const poll = pollTurn(t, provider);
        await waits(t, poll, "a fetch while the only instance is locked");
        const orchestratorItems = [timer("a", 2, t.now() + t.lockMs)];
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")], orchestratorItems }));
        await t.wait(t.lockMs / 2);
        await waits(t, poll, "a fetch before the timer fires");

        await t.outlive(t.lockMs / 2);
        const locked = await t.soon(poll, "the end of the wait when the timer has fired");
        t.equal(locked?.item.messages, orchestratorItems, "the messages that it brings");
      },
    },
    {
      id: "poll_ends_when_a_lock_expires",
      promise: "A wait for a turn ends when a lock expires that was taken before it began",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        const poll = pollTurn(t, provider);
        await t.wait(t.lockMs / 2);
        await waits(t, poll, "a fetch while the only instance is locked");

        await t.outlive(t.lockMs / 2);
        const locked = await t.soon(poll, "the end of the wait when the lock has expired");
        t.matches(locked, { attemptCount: 2, item: { instance: "a" } }, "what it brings");
      },
    },
    {
      id: "poll_ends_when_a_later_lock_expires",
      promise: "Of two that wait for a turn one gets it, and the other when the lock of the first expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const polls = [0, 1].map(() => pollTurn(t, provider, { lockTimeoutMs: t.lockMs }));
        for (const poll of polls) await waits(t, poll, "a fetch from an empty queue");
        await provider.enqueueForOrchestrator(start("a"));
        const first = await ended(t, 1, polls, "the end of one wait when a message has arrived");
        t.equal(first[0]?.attemptCount, 1, "the attempts of the first to get it");

        await t.outlive(t.lockMs);
        const both = await ended(t, 2, polls, "the end of the other wait when the lock has expired");
        t.equal(both.map((locked) => locked?.attemptCount).sort(), [1, 2], "the attempts of both");
      },
    },
    {
      id: "poll_goes_on_when_a_lock_is_renewed",
      promise: "A wait for a turn goes on when the lock is renewed that it waits for, and ends when that expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        const poll = pollTurn(t, provider);
        await t.wait(t.lockMs / 2);
        await provider.renewOrchestrationItemLock(lockToken, 2 * t.lockMs);
        await t.wait(t.lockMs);
        await waits(t, poll, "a fetch after the first end of a lock that was renewed");

        await t.outlive(t.lockMs);
        const locked = await t.soon(poll, "the end of the wait when the renewed lock has expired");
        t.equal(locked?.item.instance, "a", "what it brings");
      },
    },
    {
      id: "poll_outlasts_a_time_that_brings_nothing",
      promise: "A wait for a turn goes on past a time at which nothing became free, and ends at the next one",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(start(instance));
        const a = await takeTurn(provider, { lockTimeoutMs: t.lockMs });
        await takeTurn(provider, { lockTimeoutMs: 2 * t.lockMs });
        const poll = pollTurn(t, provider);
        await t.wait(t.lockMs / 2);
        await provider.ackOrchestrationItem(a.lockToken, turn());
        await t.wait((t.lockMs * 3) / 4);
        await waits(t, poll, "a fetch after the time at which a lock would have ended that was acked before");

        await t.outlive((t.lockMs * 3) / 4);
        t.equal((await t.soon(poll, "the end of the wait"))?.item.instance, "b", "what it brings");
      },
    },
    {
      id: "poll_ends_when_an_ack_releases_messages",
      promise: "A wait for a turn ends when an ack releases an instance that has got messages meanwhile",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"));
        const { lockToken } = await takeTurn(provider);
        const poll = pollTurn(t, provider);
        await provider.enqueueForOrchestrator(raised("a"));
        await waits(t, poll, "a fetch while the instance with the message is locked");
        await provider.ackOrchestrationItem(lockToken, turn({ events: [started("a")] }));

        const locked = await t.soon(poll, "the end of the wait when the instance is released");
        t.equal(locked?.item.messages, [raised("a")], "the messages that it brings");
      },
    },
    {
      id: "poll_ends_when_an_instance_is_abandoned",
      promise: "A wait for a turn ends when an instance is abandoned: at once, or after its delay",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const instance of ["a", "b"]) await provider.enqueueForOrchestrator(start(instance));
        const [a, b] = [await takeTurn(provider), await takeTurn(provider)];
        const polls = [pollTurn(t, provider), pollTurn(t, provider)];
        for (const poll of polls) await waits(t, poll, "a fetch while both instances are locked");
        await provider.abandonOrchestrationItem(a.lockToken);
        await provider.abandonOrchestrationItem(b.lockToken, { delayMs: t.lockMs, ignoreAttempt: true });
        const first = await ended(t, 1, polls, "the end of one wait when an instance is abandoned");
        t.equal(instancesOf(first), ["a"], "what is fetched at once");
        await t.wait(t.lockMs / 2);
        await ended(t, 1, polls, "the end of one wait, and of one only during the delay");

        await t.outlive(t.lockMs / 2);
        const both = await ended(t, 2, polls, "the end of the other wait after the delay");
        t.equal(instancesOf(both), ["a", "b"], "what is fetched after the delay");
        t.equal(both.map((locked) => locked?.attemptCount).sort(), [1, 2], "the attempts, of which 'b' got one back");
      },
    },
    {
      id: "poll_ends_when_an_activity_is_acked",
      promise: "A wait for a turn ends when an activity is completed",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [act("a", 2)] });
        const poll = pollTurn(t, provider);
        await waits(t, poll, "a fetch while the activity runs");
        await provider.ackWorkItem((await takeWork(provider)).lockToken, done("a", 2));

        const locked = await t.soon(poll, "the end of the wait when the activity is acked");
        t.equal(locked?.item.messages, [done("a", 2)], "the messages that it brings");
      },
    },
    {
      id: "polls_end_for_as_many_as_there_are_instances",
      promise: "When one commit has news for three instances, three of those that wait for a turn get one each",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a");
        await provider.enqueueForOrchestrator(raised("a"));
        const { lockToken } = await takeTurn(provider);
        const polls = Array.from({ length: 4 }, () => pollTurn(t, provider));
        for (const poll of polls) await waits(t, poll, "a fetch while the only instance is locked");
        const orchestratorItems = [start("b"), raised("b"), start("c"), raised("a")];
        await provider.ackOrchestrationItem(lockToken, turn({ orchestratorItems }));

        const got = await ended(t, 3, polls, "the end of three waits");
        t.equal(instancesOf(got), ["a", "b", "c"], "what they bring");
      },
    },
    {
      id: "poll_is_not_kept_from_its_turn_by_others",
      promise: "A wait for a turn ends although others wait longer that cannot replay it",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a", { metadata: { ...NAMED, pinnedVersion: semver("2.0.0") } });
        const old = pollTurn(t, provider, { capability: supports("1.0.0..1.9.9") });
        await waits(t, old, "the fetch that cannot replay the instance");
        const current = pollTurn(t, provider, { capability: supports("1.0.0..2.9.9") });
        await waits(t, current, "the fetch that can");
        await provider.enqueueForOrchestrator(raised("a"));

        const locked = await t.soon(current, "the end of the wait of the one that can");
        t.equal(locked?.item.instance, "a", "what it brings");
        await waits(t, old, "the fetch that cannot");
      },
    },

    // What ends the wait for an activity
    {
      id: "poll_ends_when_work_arrives",
      promise: "A wait for an activity ends as soon as one is enqueued",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const poll = pollWork(t, provider);
        await t.wait(2 * t.lockMs);
        await waits(t, poll, "a fetch from an empty queue");
        await provider.enqueueForWorker(act("a", 1));

        const locked = await t.soon(poll, "the end of the wait when work has arrived");
        t.matches(locked, { attemptCount: 1, item: { id: 1 } }, "what it brings");
      },
    },
    {
      id: "polls_end_for_as_many_as_there_are_activities",
      promise: "When a turn schedules two activities, two of those that wait for one get one each",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await create(provider, "a");
        const polls = Array.from({ length: 3 }, () => pollWork(t, provider));
        for (const poll of polls) await waits(t, poll, "a fetch from an empty queue");
        await runTurn(provider, "a", { workerItems: [act("a", 2), act("a", 3)] });

        const got = await ended(t, 2, polls, "the end of two waits");
        t.equal(got.map((locked) => locked?.item.id).sort(), [2, 3], "what they bring");
      },
    },
    {
      id: "poll_is_not_kept_from_its_work_by_others",
      promise: "A wait for an activity ends although others wait longer that do not want it",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const plain = pollWork(t, provider);
        await waits(t, plain, "the fetch of work without a tag or session");
        const gpu = pollWork(t, provider, { tagFilter: { kind: "tags", tags: ["gpu"] } });
        const owner = pollWork(t, provider, { session: { ownerId: "A", lockTimeoutMs: 10 * t.lockMs } });
        await waits(t, gpu, "the fetch of work with a tag");
        await waits(t, owner, "the fetch of work with a session");
        await provider.enqueueForWorker(act("a", 1, { tag: "gpu" }));
        await provider.enqueueForWorker(act("a", 2, { sessionId: "s" }));

        t.equal((await t.soon(gpu, "the end of the wait for the tag"))?.item.id, 1, "the activity with the tag");
        t.equal((await t.soon(owner, "the end of the wait for a session"))?.item.id, 2, "the activity of the session");
        await waits(t, plain, "the fetch that wants neither");
      },
    },
    {
      id: "poll_ends_when_the_lock_of_an_activity_expires",
      promise: "Of two that wait for an activity one gets it, and the other when the lock of the first expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const polls = [0, 1].map(() => pollWork(t, provider, { lockTimeoutMs: t.lockMs }));
        for (const poll of polls) await waits(t, poll, "a fetch from an empty queue");
        await provider.enqueueForWorker(act("a", 1));
        await ended(t, 1, polls, "the end of one wait when work has arrived");
        await t.wait(t.lockMs / 2);
        await ended(t, 1, polls, "the end of one wait, and of one only under its lock");

        await t.outlive(t.lockMs / 2);
        const both = await ended(t, 2, polls, "the end of the other wait when the lock has expired");
        t.equal(both.map((locked) => locked?.attemptCount).sort(), [1, 2], "the attempts of both");
      },
    },
    {
      id: "poll_ends_when_an_activity_is_abandoned",
      promise: "A wait for an activity ends when one is abandoned: at once, or after its delay",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
        const [one, two] = [await takeWork(provider), await takeWork(provider)];
        const polls = [pollWork(t, provider), pollWork(t, provider)];
        for (const poll of polls) await waits(t, poll, "a fetch while both activities are locked");
        await provider.abandonWorkItem(one.lockToken, { delayMs: t.lockMs });
        await provider.abandonWorkItem(two.lockToken);
        const first = await ended(t, 1, polls, "the end of one wait when an activity is abandoned");
        t.equal(first[0]?.item.id, 2, "what is fetched at once");
        await t.wait(t.lockMs / 2);
        await ended(t, 1, polls, "the end of one wait, and of one only during the delay");

        await t.outlive(t.lockMs / 2);
        const both = await ended(t, 2, polls, "the end of the other wait after the delay");
        t.equal(both.map((locked) => locked?.item.id).sort(), [1, 2], "what is fetched after the delay");
      },
    },
    {
      id: "work_poll_outlasts_a_time_that_brings_nothing",
      promise: "A wait for an activity goes on past a time at which nothing became free, and ends at the next one",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id));
        const first = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        await takeWork(provider, { lockTimeoutMs: 2 * t.lockMs });
        const poll = pollWork(t, provider);
        await t.wait(t.lockMs / 2);
        await provider.ackWorkItem(first.lockToken, null);
        await t.wait((t.lockMs * 3) / 4);
        await waits(t, poll, "a fetch after the time at which a lock would have ended that was acked before");

        await t.outlive((t.lockMs * 3) / 4);
        t.equal((await t.soon(poll, "the end of the wait"))?.item.id, 2, "what it brings");
      },
    },
    {
      id: "work_poll_goes_on_when_a_lock_is_renewed",
      promise: "A wait for an activity goes on when the lock is renewed that it waits for, and ends when that expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1));
        const { lockToken } = await takeWork(provider, { lockTimeoutMs: t.lockMs });
        const poll = pollWork(t, provider);
        await t.wait(t.lockMs / 2);
        await provider.renewWorkItemLock(lockToken, 2 * t.lockMs);
        await t.wait(t.lockMs);
        await waits(t, poll, "a fetch after the first end of a lock that was renewed");

        await t.outlive(t.lockMs);
        t.equal((await t.soon(poll, "the end of the wait"))?.item.id, 1, "what it brings");
      },
    },
    {
      id: "poll_ends_when_a_session_becomes_free",
      promise: "A wait for work of a session ends when another owner's lock on the session expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id, { sessionId: "s" }));
        await takeWork(provider, ofSession(t, "A"));
        const poll = pollWork(t, provider, ofSession(t, "B"));
        await t.wait(t.lockMs / 2);
        await waits(t, poll, "a fetch while somebody else has the session");

        await t.outlive(t.lockMs / 2);
        t.equal((await t.soon(poll, "the end of the wait when the session is free"))?.item.id, 2, "what it brings");
      },
    },
    {
      id: "poll_ends_when_the_first_of_several_sessions_becomes_free",
      promise: "A wait for work of several sessions ends when the first of their locks expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const [index, sessionId] of ["s1", "s1", "s2", "s2"].entries()) {
          await provider.enqueueForWorker(act("a", index, { sessionId }));
        }
        const long = { session: { ownerId: "A", lockTimeoutMs: 4 * t.lockMs } };
        await takeWork(provider, long);
        await takeWork(provider, long);
        await takeWork(provider, ofSession(t, "A"));
        const poll = pollWork(t, provider, ofSession(t, "B"));
        await t.wait(t.lockMs / 2);
        await waits(t, poll, "a fetch while somebody else has both sessions");

        await t.outlive(t.lockMs / 2);
        t.equal((await t.soon(poll, "the end of the wait when one session is free"))?.item.id, 3, "what it brings");
      },
    },
    {
      id: "poll_ends_when_a_renewed_session_becomes_free",
      promise: "A wait for work of a session goes on when the session is renewed, and ends when that expires",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        for (const id of [1, 2]) await provider.enqueueForWorker(act("a", id, { sessionId: "s" }));
        await takeWork(provider, ofSession(t, "A"));
        const poll = pollWork(t, provider, ofSession(t, "B"));
        await t.wait(t.lockMs / 2);
        await provider.renewSessionLock(["A"], { extendForMs: 2 * t.lockMs, idleTimeoutMs: 100 * t.lockMs });
        await t.wait(t.lockMs);
        await waits(t, poll, "a fetch after the first end of a session that was renewed");

        await t.outlive(t.lockMs);
        t.equal((await t.soon(poll, "the end of the wait when the session is free"))?.item.id, 2, "what it brings");
      },
    },

    // Others
    {
      id: "poll_hears_of_another_process",
      promise: "A wait ends early when another process sends a message or schedules an activity",
      async run(t) {
        onlyLongPolls(t);
        const store = await t.open();
        const { provider } = store;
        const other = await store.openAnother();
        const forTurn = pollTurn(t, provider);
        const forWork = pollWork(t, provider);
        await waits(t, forTurn, "the fetch of a turn");
        await waits(t, forWork, "the fetch of an activity");
        await other.enqueueForOrchestrator(start("a"));
        await other.enqueueForWorker(act("a", 1));

        await t.wait(t.lockMs);
        t.equal((await t.soon(forTurn, "the end of the wait for a turn"))?.item.instance, "a", "the turn");
        t.equal((await t.soon(forWork, "the end of the wait for an activity"))?.item.id, 1, "the activity");
      },
    },
    {
      id: "poll_ends_when_its_caller_gives_up",
      promise: "A wait ends without work, and without an error, as soon as its caller gives up",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const signal = AbortSignal.abort();
        const tooLate = pollTurn(t, provider, { signal });
        t.isNull(await t.soon(tooLate, "the end of a fetch whose caller had given up before"), "what it brings");

        const caller = new AbortController();
        const forTurn = pollTurn(t, provider, { signal: caller.signal });
        const forWork = pollWork(t, provider, { signal: caller.signal });
        await waits(t, forTurn, "the fetch of a turn");
        await waits(t, forWork, "the fetch of an activity");
        caller.abort();
        t.isNull(await t.soon(forTurn, "the end of the wait for a turn"), "the turn that it brings");
        t.isNull(await t.soon(forWork, "the end of the wait for an activity"), "the activity that it brings");

        await provider.enqueueForOrchestrator(start("a"));
        await provider.enqueueForWorker(act("a", 1));
        t.equal((await takeTurn(provider)).attemptCount, 1, "the attempts of a turn that comes after it");
        t.equal((await takeWork(provider)).attemptCount, 1, "the attempts of an activity that comes after it");
      },
    },
    {
      id: "poll_that_gives_up_leaves_its_work_to_others",
      promise: "When a caller gives up at the moment at which work arrives, the work is not lost to the next in line",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        const caller = new AbortController();
        const first = pollTurn(t, provider, { signal: caller.signal });
        await waits(t, first, "the first of two fetches");
        const second = pollTurn(t, provider);
        await waits(t, second, "the second of two fetches");
        const enqueued = provider.enqueueForOrchestrator(start("a"));
        caller.abort();
        await enqueued;

        // A store that had found the turn already may still hand it out; but somebody must get it.
        const got =
          (await t.soon(first, "the end of the wait that is given up")) ?? (await t.soon(second, "the other"));
        t.equal(got?.item.instance, "a", "what one of them brings");
      },
    },
    {
      id: "poll_ends_when_the_provider_is_closed",
      promise: "To close a provider ends all waits without work and without an error; to close it twice does nothing",
      async run(t) {
        onlyLongPolls(t);
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"), { delayMs: 10 * t.lockMs });
        const forTurn = pollTurn(t, provider);
        const forWork = pollWork(t, provider);
        await waits(t, forTurn, "the fetch of a turn");
        await waits(t, forWork, "the fetch of an activity");
        await provider[Symbol.asyncDispose]();

        t.isNull(await t.soon(forTurn, "the end of the wait for a turn"), "the turn that it brings");
        t.isNull(await t.soon(forWork, "the end of the wait for an activity"), "the activity that it brings");
        await provider[Symbol.asyncDispose]();
      },
    },
    {
      id: "closed_provider_leaves_no_timer",
      promise: "A provider that is closed while fetches wait leaves no timer behind",
      async run(t) {
        onlyLongPolls(t);
        const clock = t.exactTime;
        const { provider } = await t.open();
        await provider.enqueueForOrchestrator(start("a"), { delayMs: 10 * t.lockMs });
        const polls = [pollTurn(t, provider), pollWork(t, provider)];
        await clock.advance(100);
        await provider[Symbol.asyncDispose]();
        await t.soon(Promise.allSettled(polls), "the end of all waits");
        t.equal(clock.pendingTimers, 0, "timers that are pending when the provider is closed");
      },
    },
  ],
};

/** A timer of Node may be a millisecond early. */
const TIMER_EARLY_MS = 2;

function onlyShortPolls(t: CaseContext): void {
  if (t.polling === "long") t.skip("is about providers that poll short");
}

/** Work of a session, for which the session's lock ends long before the work's own. */
function ofSession(t: CaseContext, ownerId: string): Partial<FetchWorkOptions> {
  return { lockTimeoutMs: POLL_LOCKS * t.lockMs, session: { ownerId, lockTimeoutMs: t.lockMs } };
}

/** Lets a fetch that was made before look and begin to wait: a call that was made after it has been answered. */
async function begun(provider: Provider): Promise<void> {
  await provider.read("nobody");
}

/** What this many of the fetches bring when they end. The others must go on waiting. */
async function ended<T>(t: CaseContext, count: number, fetches: readonly Promise<T>[], what: string): Promise<T[]> {
  const values: T[] = [];
  const enough = new Promise<void>((resolve, reject) => {
    for (const fetch of fetches) {
      fetch.then((value) => {
        values.push(value);
        if (values.length === count) resolve();
      }, reject);
    }
  });
  await t.soon(enough, what);
  await t.isPending(new Promise(() => {}));
  t.equal(values.length, count, `${what}: how many have ended`);
  return values;
}

/** Sorted: who of those that wait gets what is not promised. */
function instancesOf(fetched: readonly ({ readonly item: { readonly instance: string } } | null)[]): string[] {
  return fetched.flatMap((locked) => locked?.item.instance ?? []).sort();
}

async function atOnce<T>(t: CaseContext, fetch: Promise<T>, what: string): Promise<T> {
  const startedAt = t.now();
  const value = await t.soon(fetch, what);
  const tookMs = t.now() - startedAt;
  t.ok(tookMs < t.shortPollThresholdMs, `${what} answers within ${t.shortPollThresholdMs} ms (it took ${tookMs})`);
  return value;
}

type Fetch = (options: { readonly pollTimeoutMs: number }) => Promise<unknown>;

/** Waits with a fetch for nothing, and answers how long it took. */
async function timed(t: CaseContext, provider: Provider, pollTimeoutMs: number, fetch: Fetch): Promise<number> {
  const startedAt = t.now();
  const took = unattended(
    fetch({ pollTimeoutMs }).then((found) => {
      t.isNull(found, "what a fetch from an empty queue brings");
      return t.now() - startedAt;
    }),
  );
  await begun(provider);
  await t.wait(pollTimeoutMs / 2);
  if (t.polling === "long") await waits(t, took, "a fetch in the middle of its time");
  await t.outlive(pollTimeoutMs / 2);
  return t.soon(took, `the end of a fetch with ${pollTimeoutMs} ms to wait`);
}

async function checkWait(t: CaseContext, provider: Provider, fetch: Fetch): Promise<void> {
  const tookMs = await timed(t, provider, t.lockMs, fetch);
  t.ok(tookMs >= t.lockMs - TIMER_EARLY_MS, `a fetch waits for its whole ${t.lockMs} ms (it waited ${tookMs})`);
}

async function checkUpperBound(t: CaseContext, provider: Provider, fetch: Fetch): Promise<void> {
  const pollTimeoutMs = Math.floor(t.lockMs / 2);
  const tookMs = await timed(t, provider, pollTimeoutMs, fetch);
  const mostMs = pollTimeoutMs + t.shortPollThresholdMs;
  t.ok(tookMs < mostMs, `a fetch with ${pollTimeoutMs} ms to wait answers within ${mostMs} ms (it took ${tookMs})`);
}
