// cases/sessions.ts — the work of a session stays with one owner, as long as that one lives.

import type { ActivityExecute } from "../../history/work-item.js";
import type { FetchWorkOptions, Provider } from "../../provider/provider.js";
import { act, done } from "../builders.js";
import type { CaseContext } from "../case-context.js";
import type { Category } from "../provider-case.js";
import { create, fetchWork, LONG_LOCK_MS, patiently, takeWork } from "../steps.js";

/** Longer than any case lasts: nothing is idle by this measure. */
const NEVER_IDLE_MS = 300_000;

export const sessions: Category = {
  name: "sessions",
  about: "The work of a session stays with one owner, as long as that one lives.",
  cases: [
    {
      id: "non_session_items_fetchable_by_any_worker",
      promise: "Work without a session goes to any worker, whether it takes sessions or not",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, act("a", 1), act("a", 2), act("a", 3));

        t.matches(await fetchWork(provider, as("A")), { item: act("a", 1) }, "the work that worker A gets");
        t.matches(await fetchWork(provider, as("B")), { item: act("a", 2) }, "the work that worker B gets");
        t.matches(await fetchWork(provider), { item: act("a", 3) }, "the work that a worker without sessions gets");
      },
    },
    {
      id: "session_item_claimable_when_no_session",
      promise: "The work of a session that nobody owns goes to whoever comes first",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));

        const locked = await takeWork(provider, as("A"));
        t.equal(locked.item, inSession("s", 1), "the work that the first worker gets");
        t.equal(locked.attemptCount, 1, "its attempt count");
      },
    },
    {
      id: "session_affinity_same_worker",
      promise: "The owner of a session gets its further work",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A"));
        await enqueue(provider, inSession("s", 2));

        t.equal((await takeWork(provider, as("A"))).item, inSession("s", 2), "the work that the owner gets next");
      },
    },
    {
      id: "session_affinity_blocks_other_worker",
      promise: "Nobody but its owner gets the work of a session, be the owner busy with some of it or not",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2));
        const { lockToken } = await takeWork(provider, as("A"));

        t.isNull(await fetchWork(provider, as("B")), "the work that another worker gets while the owner is busy");
        await provider.ackWorkItem(lockToken, null);
        t.isNull(await fetchWork(provider, as("B")), "the work that another worker gets while the owner is not busy");
        t.equal(await takeAndAck(provider, as("A")), 2, "the work that the owner gets next");
      },
    },
    {
      id: "different_sessions_different_workers",
      promise: "Two sessions have two owners, each of whom gets its own work only",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s1", as("A"), 1);
        await claim(provider, "s2", as("B"), 2);
        await enqueue(provider, inSession("s2", 3), inSession("s1", 4));

        t.equal(await takeAndAck(provider, as("A")), 4, "the work that the owner of s1 gets");
        t.equal(await takeAndAck(provider, as("B")), 3, "the work that the owner of s2 gets");
      },
    },
    {
      id: "mixed_session_and_non_session_items",
      promise: "Work of somebody else's session does not hide the work behind it",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A"));
        await enqueue(provider, inSession("s", 2), act("a", 3), inSession("free", 4));

        t.equal(await takeAndAck(provider, as("B")), 3, "the work that another worker gets");
        t.equal(await takeAndAck(provider, as("B")), 4, "the work that the other worker gets next");
        t.isNull(await fetchWork(provider, as("B")), "any more work for the other worker");
        t.equal(await takeAndAck(provider, as("A")), 2, "the work that the owner gets");
      },
    },
    {
      id: "session_claimable_after_lock_expiry",
      promise: "A session whose lock has ended is free for anybody",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await t.outlive(t.lockMs);
        await enqueue(provider, inSession("s", 2));

        t.equal(await takeAndAck(provider, as("B")), 2, "the work that another worker gets when the lock has ended");
      },
    },
    {
      id: "none_session_skips_session_items",
      promise: "A fetch without a session gets no work of any session",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), act("a", 2));

        t.equal(await takeAndAck(provider, {}), 2, "the work that a worker without sessions gets");
        t.isNull(await fetchWork(provider), "any more work for a worker without sessions");
        t.equal(await takeAndAck(provider, as("A")), 1, "the work that a worker with sessions gets");
      },
    },
    {
      id: "some_session_returns_all_items",
      promise: "A fetch with a session gets the work of all free sessions and that of none, in order",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s1", 1), inSession("s2", 2), inSession("s3", 3), act("a", 4));

        for (const id of [1, 2, 3, 4]) t.equal(await takeAndAck(provider, as("A")), id, "the next work");
        t.isNull(await fetchWork(provider, as("A")), "any more work");
      },
    },
    {
      id: "renew_session_lock_active",
      promise: "Renewing renews all live sessions of an owner, and tells how many",
      async run(t) {
        const { provider } = await t.open();
        const renew = () => renewSessions(provider, ["A"]);
        await claim(provider, "s1", as("A"), 1);
        t.equal(await renew(), 1, "sessions renewed when the owner has one");
        await claim(provider, "s2", as("A"), 2);
        t.equal(await renew(), 2, "sessions renewed when the owner has two");
      },
    },
    {
      id: "renew_session_lock_skips_idle",
      promise: "A session that was not used for the idle timeout is not renewed",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A"));
        t.equal(await renewSessions(provider, ["A"], { idleTimeoutMs: 0 }), 0, "renewed with an idle timeout of 0");

        await t.outlive(t.lockMs);
        const renewed = await renewSessions(provider, ["A"], { idleTimeoutMs: t.lockMs / 2 });
        t.equal(renewed, 0, "renewed after twice the idle timeout");
        t.equal(await renewSessions(provider, ["A"]), 1, "renewed with an idle timeout that is not over");
      },
    },
    {
      id: "renew_session_lock_no_sessions",
      promise: "For owners without a session, and for no owners, renewing renews nothing",
      async run(t) {
        const { provider } = await t.open();
        t.equal(await renewSessions(provider, ["A"]), 0, "renewed in an empty store");
        await claim(provider, "s", as("A"));

        t.equal(await renewSessions(provider, ["B"]), 0, "renewed for an owner without a session");
        t.equal(await renewSessions(provider, []), 0, "renewed for no owners");
      },
    },
    {
      id: "cleanup_removes_expired_no_items",
      promise: "Cleaning up removes the sessions with an ended lock and no work, and tells how many",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s1", as("A", t.lockMs), 1);
        await claim(provider, "s2", as("B", t.lockMs), 2);
        await t.outlive(t.lockMs);

        t.equal(await cleanUp(provider), 2, "sessions removed");
        t.equal(await cleanUp(provider), 0, "sessions removed the second time");
      },
    },
    {
      id: "cleanup_keeps_sessions_with_pending_items",
      promise: "Cleaning up keeps sessions that have work, be it ready, locked or delayed",
      async run(t) {
        const { provider } = await t.open();
        const worker = as("A", t.lockMs);
        await enqueue(provider, inSession("delayed", 1), inSession("locked", 2), inSession("ready", 3));
        await provider.abandonWorkItem((await takeWork(provider, worker)).lockToken, { delayMs: LONG_LOCK_MS });
        await takeWork(provider, worker);
        await takeAndAck(provider, worker);
        await enqueue(provider, inSession("ready", 4));
        await t.outlive(t.lockMs);

        t.equal(await cleanUp(provider), 0, "sessions removed of three that have work");
      },
    },
    {
      id: "cleanup_keeps_active_sessions",
      promise: "Cleaning up keeps sessions with a live lock, however idle",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A"));

        t.equal(await provider.cleanupOrphanedSessions({ idleTimeoutMs: 0 }), 0, "sessions removed");
        await enqueue(provider, inSession("s", 2));
        t.isNull(await fetchWork(provider, as("B")), "the session's work for another worker after the clean-up");
      },
    },
    {
      id: "ack_updates_session_last_activity",
      promise: "A session is not idle when work of it was acked lately",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const { lockToken } = await takeWork(provider, as("A"));
        await t.outlive(t.lockMs);
        await provider.ackWorkItem(lockToken, done("a", 1));

        const renewed = await renewSessions(provider, ["A"], { idleTimeoutMs: t.lockMs / 2 });
        t.equal(renewed, 1, "sessions renewed after the ack");
      },
    },
    {
      id: "renew_work_item_updates_session_last_activity",
      promise: "A session is not idle when work of it was renewed lately",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const { lockToken } = await takeWork(provider, as("A"));
        await t.outlive(t.lockMs);
        await provider.renewWorkItemLock(lockToken, LONG_LOCK_MS);

        const renewed = await renewSessions(provider, ["A"], { idleTimeoutMs: t.lockMs / 2 });
        t.equal(renewed, 1, "sessions renewed after the renewal of the work");
      },
    },
    {
      id: "fetch_updates_session_last_activity",
      promise: "A session is not idle when work of it was fetched lately",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2));
        await takeWork(provider, as("A"));
        await t.outlive(t.lockMs);
        await takeWork(provider, as("A"));

        const renewed = await renewSessions(provider, ["A"], { idleTimeoutMs: t.lockMs / 2 });
        t.equal(renewed, 1, "sessions renewed after the second fetch");
      },
    },
    {
      id: "use_of_one_session_is_not_use_of_another",
      promise: "A session is idle when only work of another session of its owner was acked or renewed lately",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("used", 1), inSession("idle", 2), inSession("used", 3));
        const [first, , third] = [
          await takeWork(provider, as("A")),
          await takeWork(provider, as("A")),
          await takeWork(provider, as("A")),
        ];
        await t.outlive(t.lockMs);
        await provider.renewWorkItemLock(first.lockToken, LONG_LOCK_MS);
        const options = { idleTimeoutMs: t.lockMs / 2 };
        t.equal(await renewSessions(provider, ["A"], options), 1, "sessions renewed after the renewal");
        await t.outlive(t.lockMs);
        await provider.ackWorkItem(third.lockToken, null);
        t.equal(await renewSessions(provider, ["A"], options), 1, "sessions renewed after the ack");
      },
    },
    {
      id: "session_items_processed_in_order",
      promise: "The work of a session comes in the order in which it was enqueued",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2), inSession("s", 3));

        for (const id of [1, 2, 3]) t.equal(await takeAndAck(provider, as("A")), id, "the next work");
      },
    },
    {
      id: "non_session_items_returned_with_session_config",
      promise: "The owner of a session gets work without a session too",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A"));
        await enqueue(provider, act("a", 2));

        t.equal((await takeWork(provider, as("A"))).item, act("a", 2), "the work that the owner gets");
      },
    },
    {
      id: "shared_worker_id_any_caller_can_fetch_owned_session",
      promise: "All slots of the process that owns a session get its work, at once, and no other process does",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2), inSession("s", 3));
        const first = await takeWork(provider, as("process-1"));
        t.equal(first.item.id, 1, "the work of the first slot");
        t.equal((await takeWork(provider, as("process-1"))).item.id, 2, "the work of the second slot");
        await provider.ackWorkItem(first.lockToken, null);

        t.isNull(await fetchWork(provider, as("process-2")), "the work of another process");
        t.equal((await takeWork(provider, as("process-1"))).item.id, 3, "the work of the third slot");
      },
    },
    {
      id: "concurrent_session_claim_only_one_wins",
      promise: "Of two workers that come at the same time exactly one gets the session",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2));
        await raceForSession(t, provider, provider);
      },
    },
    {
      id: "session_takeover_after_lock_expiry",
      promise: "A session whose lock has ended belongs to the one who takes its work next",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await enqueue(provider, inSession("s", 2), inSession("s", 3));
        t.isNull(await fetchWork(provider, as("B")), "the work that another worker gets before the lock has ended");
        await t.outlive(t.lockMs);

        t.equal(await takeAndAck(provider, as("B")), 2, "the work that another worker gets when it has ended");
        t.isNull(await fetchWork(provider, as("A")), "the work that the former owner gets");
        t.equal(await takeAndAck(provider, as("B")), 3, "the work that the new owner gets next");
      },
    },
    {
      id: "cleanup_then_new_item_recreates_session",
      promise: "A session that was cleaned up comes back with its next work, for whoever takes that",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await t.outlive(t.lockMs);
        t.equal(await cleanUp(provider), 1, "sessions removed");
        await enqueue(provider, inSession("s", 2));

        t.equal((await takeWork(provider, as("B"))).item.id, 2, "the work that another worker gets");
        await enqueue(provider, inSession("s", 3));
        t.isNull(await fetchWork(provider, as("A")), "the work that the former owner gets");
      },
    },
    {
      id: "abandoned_session_item_retryable",
      promise: "Abandoned work of a session goes back to its owner, and its attempts are counted",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const first = await takeWork(provider, as("A"));
        t.equal(first.attemptCount, 1, "the attempt count of the first fetch");
        await provider.abandonWorkItem(first.lockToken);

        t.isNull(await fetchWork(provider, as("B")), "the abandoned work for another worker");
        const second = await takeWork(provider, as("A"));
        t.matches(second, { item: { id: 1 }, attemptCount: 2 }, "the abandoned work for the owner");
        await provider.ackWorkItem(second.lockToken, null);
        t.isNull(await fetchWork(provider, as("A")), "any more work");
      },
    },
    {
      id: "abandoned_session_item_ignore_attempt",
      promise: "Work of a session can be abandoned with a delay and without its attempt, and keeps its owner",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const first = await takeWork(provider, as("A"));
        t.equal(first.attemptCount, 1, "the attempt count of the first fetch");
        await provider.abandonWorkItem(first.lockToken, { delayMs: t.lockMs, ignoreAttempt: true });
        t.isNull(await fetchWork(provider, as("A")), "the work before its delay is over");
        await t.outlive(t.lockMs);

        t.isNull(await fetchWork(provider, as("B")), "the work for another worker after its delay");
        const second = await takeWork(provider, as("A"));
        t.matches(second, { item: { id: 1 }, attemptCount: 1 }, "the work for the owner after its delay");
        await provider.ackWorkItem(second.lockToken, null);
      },
    },
    {
      id: "renew_session_lock_after_expiry_returns_zero",
      promise: "Renewing never revives a session whose lock has ended",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await t.outlive(t.lockMs);

        t.equal(await renewSessions(provider, ["A"]), 0, "sessions renewed");
        await enqueue(provider, inSession("s", 2));
        t.equal(await takeAndAck(provider, as("B")), 2, "the work that another worker gets");
      },
    },
    {
      id: "original_worker_reclaims_expired_session",
      promise: "A session whose lock has ended gives the work that has waited in it to its last owner too",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await enqueue(provider, inSession("s", 2), inSession("s", 3));
        await t.outlive(t.lockMs);

        t.equal(await takeAndAck(provider, as("A")), 2, "the work that the last owner gets");
        t.isNull(await fetchWork(provider, as("B")), "the work that another worker gets after that");
      },
    },
    {
      id: "activity_lock_expires_session_lock_valid_same_worker_refetches",
      promise: "When the lock of a session's work ends before that of the session, only the owner gets the work again",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        await takeWork(provider, { ...as("A"), lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        t.isNull(await fetchWork(provider, as("B")), "the work for another worker");
        const again = await takeWork(provider, as("A"));
        t.matches(again, { item: { id: 1 }, attemptCount: 2 }, "the work for the owner");
        await provider.ackWorkItem(again.lockToken, null);
      },
    },
    {
      id: "session_lock_expires_new_owner_gets_redelivery",
      promise: "Who takes a session over gets the work that its former owner abandons, too",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const first = await takeWork(provider, as("A", t.lockMs));
        await t.outlive(t.lockMs);
        await enqueue(provider, inSession("s", 2));
        t.equal(await takeAndAck(provider, as("B")), 2, "the work with which another worker takes the session over");
        await provider.abandonWorkItem(first.lockToken);

        t.isNull(await fetchWork(provider, as("A")), "the abandoned work for the former owner");
        const again = await takeWork(provider, as("B"));
        t.matches(again, { item: { id: 1 }, attemptCount: 2 }, "the abandoned work for the new owner");
        await provider.ackWorkItem(again.lockToken, null);
      },
    },
    {
      id: "session_lock_expires_same_worker_reacquires",
      promise: "A session whose lock has ended gives new work to its last owner too",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await t.outlive(t.lockMs);
        await enqueue(provider, inSession("s", 2));

        t.equal(await takeAndAck(provider, as("A")), 2, "the work that the last owner gets");
      },
    },
    {
      id: "both_locks_expire_different_worker_claims",
      promise: "When the locks of a session and of its work have both ended, the work is free for anybody",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const late = await takeWork(provider, { ...as("A", t.lockMs), lockTimeoutMs: t.lockMs });
        await t.outlive(t.lockMs);

        const again = await takeWork(provider, as("B"));
        t.matches(again, { item: { id: 1 }, attemptCount: 2 }, "the work for another worker");
        await t.refused(provider.ackWorkItem(late.lockToken, null), "lock-lost", "the ack of the former owner");
        await provider.ackWorkItem(again.lockToken, null);
      },
    },
    {
      id: "session_lock_expires_activity_lock_valid_ack_succeeds",
      promise: "Work is acked by its own lock, even when that of its session has ended",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1));
        const { lockToken } = await takeWork(provider, as("A", t.lockMs));
        await t.outlive(t.lockMs);
        await provider.ackWorkItem(lockToken, done("a", 1));

        t.isNull(await fetchWork(provider, as("A")), "the work after its ack");
      },
    },
    {
      id: "session_lock_renewal_extends_past_original_timeout",
      promise: "A renewed session stays with its owner past the end that its lock had before",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await t.wait(t.lockMs / 2);
        t.equal(await renewSessions(provider, ["A"]), 1, "sessions renewed");
        await t.outlive(t.lockMs);
        await enqueue(provider, inSession("s", 2));

        t.isNull(await fetchWork(provider, as("B")), "the work that another worker gets");
        t.equal(await takeAndAck(provider, as("A")), 2, "the work that the owner gets");
      },
    },

    // What follows has no counterpart in the reference's suite.
    {
      id: "session_spans_instances",
      promise: "A session is one over all instances",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, act("a", 1, { sessionId: "s" }), act("b", 1, { sessionId: "s" }));
        await takeWork(provider, as("A"));

        t.isNull(await fetchWork(provider, as("B")), "the session's work for another instance and another worker");
        t.equal((await takeWork(provider, as("A"))).item.instance, "b", "the instance whose work the owner gets next");
      },
    },
    {
      id: "session_outlives_deleted_instance",
      promise: "The deletion of an instance does not end the sessions that its work was in",
      async run(t) {
        const { provider, admin } = await t.open();
        await create(provider, "a");
        await claim(provider, "s", as("A"));
        await admin.deleteInstance("a", true);
        await enqueue(provider, act("b", 1, { sessionId: "s" }));

        t.isNull(await fetchWork(provider, as("B")), "the session's work for another instance and another worker");
        t.equal((await takeWork(provider, as("A"))).item.instance, "b", "the instance whose work the owner gets next");
      },
    },
    {
      id: "session_of_scheduled_activity",
      promise: "An activity that a turn schedules belongs to its session",
      async run(t) {
        const { provider } = await t.open();
        await create(provider, "a", { workerItems: [inSession("s", 2), inSession("s", 3)] });

        t.isNull(await fetchWork(provider), "the activity for a worker without sessions");
        t.equal((await takeWork(provider, as("A"))).item, inSession("s", 2), "the activity for the first worker");
        t.isNull(await fetchWork(provider, as("B")), "the second activity for another worker");
      },
    },
    {
      id: "session_and_owner_ids_are_exact",
      promise: "Ids of sessions and of owners that differ in case or in trailing space are different ones",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "session", as("worker"), 1);
        await enqueue(provider, inSession("session", 2), inSession("Session", 3), inSession("session ", 4));

        for (const id of [3, 4]) t.equal(await takeAndAck(provider, as("Worker")), id, "work of a session not owned");
        t.isNull(await fetchWork(provider, as("Worker")), "the owned session's work for an owner in other case");
        t.isNull(await fetchWork(provider, as("worker ")), "the owned session's work for an owner with a space more");
        t.equal(await takeAndAck(provider, as("worker")), 2, "the owned session's work for its owner");
        t.equal(await renewSessions(provider, ["worker"]), 1, "sessions renewed for the first owner");
      },
    },
    {
      id: "unwanted_work_claims_no_session",
      promise: "A fetch claims no session of which it gets no work",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, act("a", 1, { sessionId: "s", tag: "gpu" }), act("a", 2));

        t.equal(await takeAndAck(provider, as("A")), 2, "the work of a worker that does not take the tag");
        t.isNull(await fetchWork(provider, as("A")), "any more work of a worker that does not take the tag");
        t.equal(await renewSessions(provider, ["A"]), 0, "sessions that it owns");
        const tagged = await takeWork(provider, { ...as("B"), tagFilter: { kind: "tags", tags: ["gpu"] } });
        t.equal(tagged.item.id, 1, "the work of a worker that takes the tag");
      },
    },
    {
      id: "fetch_restarts_session_lock",
      promise: "The lock of a session starts anew with every fetch of its work",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await t.wait(t.lockMs / 2);
        await enqueue(provider, inSession("s", 2), inSession("s", 3));
        await takeAndAck(provider, as("A"));
        await t.outlive(t.lockMs);

        t.isNull(await fetchWork(provider, as("B")), "the work for another worker after the end of the first lock");
        t.equal(await takeAndAck(provider, as("A")), 3, "the work for the owner");
      },
    },
    {
      id: "renew_session_lock_several_owners",
      promise: "Renewing is for the named owners only; one that is named twice counts once",
      async run(t) {
        const { provider } = await t.open();
        await claim(provider, "s1", as("A", t.lockMs), 1);
        await claim(provider, "s2", as("B", t.lockMs), 2);
        await claim(provider, "s3", as("C", t.lockMs), 3);
        t.equal(await renewSessions(provider, ["A", "A"]), 1, "sessions renewed for one owner, named twice");
        t.equal(await renewSessions(provider, ["A", "B", "nobody"]), 2, "sessions renewed for two owners of three");
        await t.outlive(t.lockMs);
        await enqueue(provider, inSession("s1", 4), inSession("s2", 5), inSession("s3", 6));

        t.equal(await takeAndAck(provider, as("D")), 6, "the work of the session that was not renewed");
        t.isNull(await fetchWork(provider, as("D")), "the work of the renewed sessions for another worker");
        t.equal(await takeAndAck(provider, as("B")), 5, "the work of a renewed session for its owner");
      },
    },
    {
      id: "ack_does_not_revive_expired_session",
      promise: "A session whose lock has ended stays free when its last owner acks or renews work of it",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2));
        const first = await takeWork(provider, as("A", t.lockMs));
        const second = await takeWork(provider, as("A", t.lockMs));
        await t.outlive(t.lockMs);
        await provider.ackWorkItem(first.lockToken, done("a", 1));
        await provider.renewWorkItemLock(second.lockToken, LONG_LOCK_MS);
        t.equal(await renewSessions(provider, ["A"]), 0, "sessions renewed for the last owner");
        await enqueue(provider, inSession("s", 3));

        t.equal(await takeAndAck(provider, as("B")), 3, "the work that another worker gets");
      },
    },
    {
      id: "ack_does_not_extend_session_lock",
      promise: "An ack does not prolong the lock of the session",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, inSession("s", 1), inSession("s", 2));
        const { lockToken } = await takeWork(provider, as("A", t.lockMs));
        await t.wait(t.lockMs / 2);
        await provider.ackWorkItem(lockToken, done("a", 1));
        await t.outlive(t.lockMs / 2);

        t.equal(await takeAndAck(provider, as("B")), 2, "the work that another worker gets when the lock has ended");
      },
    },
    {
      id: "session_lock_ends_on_time",
      promise: "A session is its owner's until the very millisecond at which its lock ends",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await enqueue(provider, inSession("s", 2), inSession("s", 3));
        await clock.advance(t.lockMs - 1);
        t.isNull(await fetchWork(provider, as("B")), "the work for another worker one millisecond before the end");
        t.equal(await cleanUp(provider), 0, "sessions removed one millisecond before the end");

        await clock.advance(1);
        t.equal(await renewSessions(provider, ["A"]), 0, "sessions renewed at the end");
        t.equal((await takeWork(provider, as("B"))).item.id, 2, "the work for another worker at the end");
        t.isNull(await fetchWork(provider, as("A")), "the work for the former owner after that");
      },
    },
    {
      id: "renewed_session_lock_ends_on_time",
      promise: "A renewed lock of a session lasts from the renewal on for as long as it was renewed",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await claim(provider, "s", as("A", t.lockMs));
        await clock.advance(t.lockMs / 2);
        t.equal(await renewSessions(provider, ["A"], { extendForMs: t.lockMs }), 1, "sessions renewed");
        await enqueue(provider, inSession("s", 2));
        await clock.advance(t.lockMs - 1);
        t.isNull(await fetchWork(provider, as("B")), "the work for another worker one millisecond before the end");

        await clock.advance(1);
        t.equal((await takeWork(provider, as("B"))).item.id, 2, "the work for another worker at the end");
      },
    },
    {
      id: "idle_timeout_ends_on_time",
      promise: "A session is idle from the very millisecond at which the idle timeout has passed since its last use",
      async run(t) {
        const clock = t.exactTime;
        const { provider } = await t.open();
        await claim(provider, "s", as("A"));
        await clock.advance(200);

        t.equal(await renewSessions(provider, ["A"], { idleTimeoutMs: 200 }), 0, "renewed after exactly the timeout");
        t.equal(await renewSessions(provider, ["A"], { idleTimeoutMs: 201 }), 1, "renewed one millisecond before it");
      },
    },
    {
      id: "session_claim_across_processes",
      promise: "Of two processes that come at the same time exactly one gets the session",
      async run(t) {
        const store = await t.open();
        const another = await store.openAnother();
        await enqueue(store.provider, inSession("s", 1), inSession("s", 2));
        await raceForSession(t, store.provider, another);
      },
    },
  ],
};

/** Fetches as a worker process; its session lock lasts `lockTimeoutMs`. */
function as(ownerId: string, lockTimeoutMs = LONG_LOCK_MS): Partial<FetchWorkOptions> {
  return { session: { ownerId, lockTimeoutMs } };
}

function inSession(sessionId: string, id: number): ActivityExecute {
  return act("a", id, { sessionId });
}

async function enqueue(provider: Provider, ...items: readonly ActivityExecute[]): Promise<void> {
  for (const item of items) await provider.enqueueForWorker(item);
}

/** Makes the worker the owner of a session without work: it has taken and acked the first. */
async function claim(provider: Provider, sessionId: string, worker: Partial<FetchWorkOptions>, id = 1): Promise<void> {
  await enqueue(provider, inSession(sessionId, id));
  await takeAndAck(provider, worker);
}

async function takeAndAck(provider: Provider, worker: Partial<FetchWorkOptions>): Promise<number> {
  const { item, lockToken } = await takeWork(provider, worker);
  await provider.ackWorkItem(lockToken, null);
  return item.id;
}

function renewSessions(
  provider: Provider,
  ownerIds: readonly string[],
  { extendForMs = LONG_LOCK_MS, idleTimeoutMs = NEVER_IDLE_MS } = {},
): Promise<number> {
  return provider.renewSessionLock(ownerIds, { extendForMs, idleTimeoutMs });
}

function cleanUp(provider: Provider): Promise<number> {
  return provider.cleanupOrphanedSessions({ idleTimeoutMs: NEVER_IDLE_MS });
}

/** Two workers want the first of two items in one free session. */
async function raceForSession(t: CaseContext, ofA: Provider, ofB: Provider): Promise<void> {
  const [a, b] = await Promise.all([
    patiently(t, () => fetchWork(ofA, as("A"))),
    patiently(t, () => fetchWork(ofB, as("B"))),
  ]);
  const got = [a, b].flatMap((locked) => locked?.item.id ?? []);
  t.equal(got, [1], "what two workers got that came at the same time");

  const [winner, provider] = a !== null ? ["A", ofA] : ["B", ofB];
  const [loser, other] = a !== null ? ["B", ofB] : ["A", ofA];
  t.isNull(await fetchWork(other, as(loser)), "the session's other work for the one who came too late");
  const { lockToken } = t.found(a ?? b, "the work of the one who was first");
  await provider.ackWorkItem(lockToken, null);
  t.isNull(await fetchWork(other, as(loser)), "the session's other work for the one who came too late, after the ack");
  t.equal(await takeAndAck(provider, as(winner)), 2, "the session's other work for its owner");
}
