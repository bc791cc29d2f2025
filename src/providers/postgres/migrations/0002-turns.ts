// providers/postgres/migrations/0002-turns.ts — messages and turns: how they are sent, claimed, committed and given back.
//
// Every function takes many calls at once and answers for each of them; a call without a live lock is passed over, and
// its neighbours go on. The rules S1 to S9 stand in `0001-tables.ts`.
//
// Every row is found by index, one by one, whatever the planner believes of the tables. It believes a queue that was empty when
// it was last vacuumed to be empty for ever, and then rather reads a whole index, for each row of another. So:
//
//   T1. The settings of the planner leave it nothing but nested loops and indexes. It plans once: planning anew for each call
//       costs more than the call.
//   T2. What is looked up for each row of a list stands in LATERAL (… OFFSET 0), or in EXISTS (… OFFSET 0): no planner turns
//       these around.
//   T3. What is changed for each row of a list is looked up in the same way, and changed by its ctid. Nobody else changes it
//       meanwhile: the row, or that of its instance in the schedule, is locked.
//   T4. Rows are locked by key, in its order: a look without a lock has found the keys.
//   T5. Where a key is given, "+ 0" keeps a second condition, and another index, from being taken for a better one; and COALESCE
//       hides that what it is about is not null, which is all that the index of locks asks for.
//   T6. Long lists that are read side by side stand in the list of a SELECT. In FROM each of them would be written to a store of
//       its own first, which takes three times as long.
//   T7. Where a key is all that is looked for, "= ANY" walks along the index once, which costs half of a look for each.
//
// Nobody else's functions and operators are ever called, whatever is in `public`: an overload for exactly our types would
// come before a function of the system's for any type. So PL/pgSQL looks into the system's schema alone; functions in SQL,
// which the planner could then not take into the calling statement, name that schema where an overload could come first.

export const turns = `
-- Locks the schedule rows of these instances in the order of their ids (S2), makes those that are not there, and lets each
-- be ready at its time at the latest (S3), with its place in line (S4). Where there is no time, nothing changes but the lock.
CREATE FUNCTION {schema}.lock_schedule(p_ids text[], p_ready_at bigint[] DEFAULT '{}', p_places bigint[] DEFAULT '{}')
RETURNS void
LANGUAGE sql VOLATILE AS $$
  WITH turn AS MATERIALIZED (SELECT pg_catalog.nextval('{schema}.schedule_order') AS first)
  INSERT INTO {schema}.schedule AS s (instance_id, ready_at, place, place_order)
  SELECT wish.id, wish.ready_at, COALESCE(wish.place, 9007199254740991), turn.first + wish.n
  FROM (
    SELECT id COLLATE "C" AS id, min(ready_at) AS ready_at, min(place) AS place, min(n) AS n
    FROM unnest(p_ids, p_ready_at, p_places) WITH ORDINALITY AS w (id, ready_at, place, n)
    GROUP BY id COLLATE "C"
  ) AS wish, turn
  ORDER BY wish.id
  ON CONFLICT (instance_id) DO UPDATE SET
    ready_at = LEAST(s.ready_at, excluded.ready_at),
    place = LEAST(s.place, excluded.place),
    place_order = CASE WHEN excluded.place < s.place THEN excluded.place_order ELSE s.place_order END
  -- The others are locked all the same.
  WHERE s.locked_until IS NULL AND (
    excluded.ready_at < s.ready_at OR (s.ready_at IS NULL AND excluded.ready_at IS NOT NULL) OR excluded.place < s.place
  )
$$;

-- S9: for whoever has locked the rows of these in the schedule, and is about to hand them out. Nobody begins a step of one before the
-- caller has committed; what others have done, later statements see. Answers which of them somebody has locked: they are passed over.
CREATE FUNCTION {schema}.lock_instances(p_ids text[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_locked text[] := ARRAY (
    SELECT i.instance_id FROM {schema}.instances AS i
    WHERE i.instance_id = ANY (p_ids) ORDER BY i.instance_id FOR SHARE SKIP LOCKED
  );
BEGIN
  IF cardinality(v_locked) = cardinality(p_ids) THEN RETURN '{}'; END IF;
  RETURN ARRAY (
    SELECT i.instance_id FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_ids) AND i.instance_id <> ALL (v_locked)
  );
END
$$;

-- Takes the locks off these rows, which the caller has locked: each is ready when its oldest message is visible. Those
-- without messages go. After an ack, what is left was never handed out: its attempts begin anew.
CREATE FUNCTION {schema}.release_schedule(p_ids text[], p_is_acked boolean) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM {schema}.schedule AS s
  WHERE s.instance_id = ANY (p_ids)
    AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id OFFSET 0);
  UPDATE {schema}.schedule AS s SET
    lock_token = NULL,
    locked_until = NULL,
    batch = NULL,
    attempts = CASE WHEN p_is_acked THEN 0 ELSE s.attempts END,
    (ready_at, place) = (
      SELECT m.visible_at, m.due_at FROM {schema}.messages AS m
      WHERE m.instance_id = s.instance_id
      ORDER BY m.visible_at LIMIT 1
    )
  WHERE s.instance_id = ANY (p_ids);
END
$$;

-- Nobody has said yet what these instances are; the caller has locked their rows. Queue messages with no start on its way
-- are dropped, by design; anything else waits for a start. Answers what was dropped.
CREATE FUNCTION {schema}.set_instances_aside(p_now bigint, p_ids text[])
RETURNS TABLE (dropped_for text, dropped bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_hopeless text[];
BEGIN
  v_hopeless := ARRAY (
    SELECT x.id FROM unnest(p_ids) AS x (id)
    WHERE NOT EXISTS (
      SELECT 1 FROM {schema}.messages AS m
      WHERE m.instance_id = x.id AND (m.kind = 'start' OR (m.visible_at <= p_now AND m.kind <> 'queue'))
      OFFSET 0
    )
  );
  RETURN QUERY
    WITH gone AS (
      DELETE FROM {schema}.messages AS m
      WHERE m.instance_id = ANY (v_hopeless) AND m.visible_at <= p_now
      RETURNING m.instance_id
    )
    SELECT gone.instance_id, count(*) FROM gone GROUP BY gone.instance_id;
  DELETE FROM {schema}.schedule AS s
  WHERE s.instance_id = ANY (p_ids)
    AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id OFFSET 0);
  UPDATE {schema}.schedule AS s SET
    lock_token = NULL,
    locked_until = NULL,
    batch = NULL,
    ready_at = (
      SELECT min(m.visible_at) FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id AND m.visible_at > p_now
    )
  WHERE s.instance_id = ANY (p_ids);
END
$$;

-- Removes activities whose lock is live, and sends messages: the outcomes of those activities, and whatever else is to be sent.
--   p_acts, p_act_tokens    the activities, by id; none twice
--   p_targets               the instances that are sent to; none twice
--     p_ready_at, p_places  when each is ready by these messages, and its place in line
--     p_firsts, p_lasts     its messages, which stand together
--     p_tokens, p_until     by which lock somebody wants it at once, if he may have it; null: nobody does. All until one time
--     p_expected            he has it already, as of this last commit; null: he has not
--   p_of                    the messages, no more than a step of message_ids: for each the ordinal of its target
--     p_senders             the ordinal of the activity whose outcome it is, or 0
--     p_absent              a start that is sent only if the instance has not begun. Two starts of one instance are never in
--                           one call
--   p_foreseen              the ordinals of targets that somebody has already
--   p_spares                the locks of others, who want to claim what is in line, as fetch_turns does, after all is sent
--   p_claims_until          until when whoever claims has his lock
-- An instance is given to who wants it where its row is made here (S7), if he can replay it: versions from p_min to p_max. Where
-- more are ready that have waited longer than there are spares, as many of those who want an instance claim with them instead, the
-- last ones: whoever is left is given what nothing older waits for. Not those who have one already: they cannot claim another before
-- this call is over, and then they can in any case. With p_lapses one also looks for locks that are over.
--
-- Answers in parts, of which "turn" says an ordinal:
--   cold, warm, event, value  of targets that were given away, as describe_turns
--   lost                      of an activity whose lock was not live
--   begun                     of a message that was not sent: the instance has begun
--   unlike                    of a target that is not, under its lock, what who has it expects: it is in line, or another's
--   open                      turn: how many of the others can be claimed now, n: when the next of them can be
--   beside                    others are in line. n: how many are ready that have waited longer, turn: how many of those who want
--                             an instance claim instead. What fetch_turns answers to the spares, and then to them, follows, and
--                             there "turn" is counted on: 0 is one more than the last of the targets
CREATE FUNCTION {schema}.deliver(
  p_now bigint, p_reader text, p_min bigint[], p_max bigint[], p_lapses boolean, p_spares text[], p_claims_until bigint,
  p_acts bigint[], p_act_tokens text[],
  p_targets text[], p_ready_at bigint[], p_places bigint[], p_firsts integer[], p_lasts integer[], p_tokens text[],
  p_until bigint[], p_expected text[],
  p_of integer[], p_senders integer[], p_due bigint[], p_visible bigint[], p_kinds text[], p_parents text[],
  p_timer_executions bigint[], p_timers bigint[], p_items text[], p_absent boolean[],
  p_foreseen integer[]
) RETURNS TABLE (part text, turn integer, id bigint, a text, b text, c text, d text, e text, n bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_gives boolean := array_remove(p_until, NULL) <> '{}';
  -- The id of the first message, and those of all.
  v_id bigint := nextval('{schema}.message_ids');
  v_ids bigint[];
  v_first bigint;
  v_looks boolean := false;
  v_counts boolean := false;
  -- Whether all of it are starts of instances that have not begun, one for each target.
  v_starts boolean := false <> ALL (p_absent) AND cardinality(p_absent) = cardinality(p_targets);
  v_is_new boolean := false;
  v_older integer := 0;
  -- How many of those who want a target claim instead, the first of these targets, and the tokens of all who claim.
  v_giving integer;
  v_last integer;
  v_claims text[];
  v_until bigint[] := p_until;
  -- Ordinals of targets.
  v_given integer[] := '{}';
  -- Targets whose instances somebody has locked.
  v_passed text[];
  v_open integer;
  v_next bigint;
  v_acked bigint[] := '{}';
  v_sessions text[];
  -- Ordinals of activities, and of messages.
  v_lost integer[] := '{}';
  v_begun integer[] := '{}';
  -- Targets of which there was nothing yet, unless they have begun: their ordinals, and their ids.
  v_fresh integer[] := '{}';
  v_absent text[];
  v_undone integer[];
  -- Of those that somebody has already, the ones that are as he expects, and the others.
  v_alike integer[];
  v_unlike integer[] := '{}';
  v_warm integer;
  v_cold integer[];
BEGIN
  -- Mostly nothing is in line, which is seen at once.
  IF p_spares <> '{}' THEN
    v_looks := EXISTS (SELECT 1 FROM {schema}.schedule AS s WHERE s.locked_until IS NULL AND s.ready_at IS NOT NULL);
  END IF;
  IF NOT v_looks AND (v_gives OR p_targets = '{}') THEN
    v_counts := p_lapses OR v_gives AND EXISTS (
      SELECT 1 FROM {schema}.schedule AS s WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now
    );
  END IF;
  IF v_looks OR v_counts THEN
    v_older := {schema}.count_ready_turns(p_now, p_min, p_max, p_lapses, 100);
    IF v_older > 0 OR v_looks THEN
      -- Those who want the last of the targets give way, if more is older than others can claim.
      v_claims := p_spares;
      v_giving := LEAST(
        GREATEST(v_older - cardinality(p_spares), 0),
        cardinality(p_until) - cardinality(array_positions(p_until, NULL)) - cardinality(p_foreseen)
      );
      IF v_giving > 0 THEN
        v_last := (
          SELECT min(w.n) FROM (
            SELECT w.n FROM unnest(p_until, p_expected) WITH ORDINALITY AS w (until, expected, n)
            WHERE w.until IS NOT NULL AND w.expected IS NULL
            ORDER BY w.n DESC LIMIT v_giving
          ) AS w
        );
        v_claims := p_spares || ARRAY (
          SELECT w.token FROM unnest(p_tokens, p_expected) WITH ORDINALITY AS w (token, expected, n)
          WHERE w.n >= v_last AND w.token IS NOT NULL AND w.expected IS NULL
          ORDER BY w.n
        );
        v_until := ARRAY (
          SELECT CASE WHEN w.n < v_last OR w.expected IS NOT NULL THEN w.until END
          FROM unnest(p_until, p_expected) WITH ORDINALITY AS w (until, expected, n) ORDER BY w.n
        );
      END IF;
      RETURN QUERY
        SELECT 'beside', v_giving, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, v_older::bigint;
    END IF;
  END IF;
  IF v_gives THEN
    v_ids := ARRAY (SELECT generate_series(v_id, v_id + cardinality(p_of) - 1));
  END IF;

  IF p_targets <> '{}' THEN
    v_first := nextval('{schema}.schedule_order');
    -- Many starts, and nobody to serve: mostly no row is there, and a plain insert costs a third less than one that expects others.
    -- Whoever comes in between makes it one that does.
    IF NOT v_gives AND cardinality(p_targets) >= 8 THEN
      v_is_new := v_starts;
      IF NOT v_starts THEN
        v_is_new := NOT EXISTS (SELECT 1 FROM {schema}.schedule AS s WHERE s.instance_id = ANY (p_targets));
      END IF;
    END IF;
    IF v_is_new THEN
      BEGIN
        INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order)
        SELECT t.id, t.ready_at, t.place, v_first + t.n
        FROM ( -- T6
          SELECT unnest(p_targets) AS id, unnest(p_ready_at) AS ready_at, unnest(p_places) AS place,
                 generate_subscripts(p_targets, 1) AS n
        ) AS t
        ORDER BY t.id COLLATE "C"; -- S1, S2
        IF p_now >= ALL (p_ready_at) THEN
          v_open := cardinality(p_targets);
        ELSE
          SELECT count(*) FILTER (WHERE t.ready_at <= p_now), min(t.ready_at) FILTER (WHERE t.ready_at > p_now)
          INTO v_open, v_next FROM unnest(p_ready_at) AS t (ready_at);
        END IF;
      EXCEPTION WHEN unique_violation THEN
        v_is_new := false;
      END;
    END IF;
    IF NOT v_is_new THEN
      WITH made AS (
        INSERT INTO {schema}.schedule AS s
          (instance_id, ready_at, place, place_order, lock_token, locked_until, attempts, batch)
        SELECT t.id, COALESCE(t.until, t.ready_at), t.place, v_first + t.n,
               CASE WHEN t.until IS NOT NULL THEN t.token END, t.until,
               CASE WHEN t.until IS NOT NULL THEN 1 ELSE 0 END,
               CASE WHEN t.until IS NOT NULL THEN v_ids[t.first:t.last] END
        FROM ( -- T6
          SELECT unnest(p_targets) AS id, unnest(p_ready_at) AS ready_at, unnest(p_places) AS place, unnest(p_firsts) AS first,
                 unnest(p_lasts) AS last, unnest(p_tokens) AS token, unnest(v_until) AS until,
                 generate_subscripts(p_targets, 1) AS n
        ) AS t
        ORDER BY t.id COLLATE "C" -- S1, S2
        ON CONFLICT (instance_id) DO UPDATE SET
          -- What is wanted at once is ready since its place in line, at the latest (S3).
          ready_at = LEAST(s.ready_at, CASE WHEN excluded.locked_until IS NULL THEN excluded.ready_at ELSE excluded.place END),
          place = LEAST(s.place, excluded.place),
          place_order = CASE WHEN excluded.place < s.place THEN excluded.place_order ELSE s.place_order END
        -- The others are locked all the same.
        WHERE s.locked_until IS NULL AND (
          s.ready_at IS NULL OR excluded.place < s.place
          OR CASE WHEN excluded.locked_until IS NULL THEN excluded.ready_at ELSE excluded.place END < s.ready_at
        )
        RETURNING s.place_order, s.ready_at, s.locked_until
      )
      SELECT COALESCE(array_agg((made.place_order - v_first)::integer) FILTER (WHERE made.locked_until IS NOT NULL), '{}'),
             count(*) FILTER (WHERE made.locked_until IS NULL AND made.ready_at <= p_now),
             min(made.ready_at) FILTER (WHERE made.locked_until IS NULL AND made.ready_at > p_now)
      INTO v_given, v_open, v_next FROM made;
      -- Of what is to begin there is nothing yet, or it is not given after all.
      IF v_given <> '{}' AND NOT v_starts THEN
        v_passed := {schema}.lock_instances(ARRAY (SELECT p_targets[g.n] FROM unnest(v_given) AS g (n))); -- S9
        IF v_passed <> '{}' THEN
          UPDATE {schema}.schedule AS s SET
            lock_token = NULL,
            locked_until = NULL,
            batch = NULL,
            attempts = 0,
            ready_at = p_ready_at[array_position(p_targets, s.instance_id)]
          WHERE s.instance_id = ANY (v_passed);
          v_open := v_open + cardinality(v_passed);
          v_given := ARRAY (SELECT g.n FROM unnest(v_given) AS g (n) WHERE p_targets[g.n] <> ALL (v_passed));
        END IF;
      END IF;
    END IF;
  END IF;

  IF p_acts <> '{}' THEN
    WITH gone AS (
      DELETE FROM {schema}.activities AS q -- S2: in the order of their ids, by index.
      WHERE q.id = ANY (p_acts) AND q.ready_at + 0 > p_now
        AND q.lock_token = p_act_tokens[array_position(p_acts, q.id)]
      RETURNING q.id, q.session_id
    )
    SELECT COALESCE(array_agg(gone.id), '{}'), array_agg(gone.session_id) FILTER (WHERE gone.session_id IS NOT NULL)
    INTO v_acked, v_sessions FROM gone;
    IF cardinality(v_acked) < cardinality(p_acts) THEN
      v_lost := ARRAY (
        SELECT q.n::integer FROM unnest(p_acts) WITH ORDINALITY AS q (id, n) WHERE q.id <> ALL (v_acked)
      );
    END IF;
    IF v_sessions IS NOT NULL THEN
      PERFORM {schema}.touch_sessions(p_now, v_sessions);
    END IF;
  END IF;
  IF true = ANY (p_absent) THEN
    IF v_starts THEN
      v_fresh := p_of;
      v_absent := p_targets;
    ELSE
      SELECT array_agg(m.target), array_agg(p_targets[m.target]) INTO v_fresh, v_absent
      FROM (SELECT unnest(p_absent) AS absent, unnest(p_of) AS target) AS m WHERE m.absent;
    END IF;
    -- Mostly none has begun (T7).
    IF EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = ANY (v_absent))
      OR EXISTS (SELECT 1 FROM {schema}.executions AS x WHERE x.instance_id = ANY (v_absent))
      -- Who had no row in the schedule has no messages.
      OR NOT v_is_new AND EXISTS (SELECT 1 FROM {schema}.messages AS s WHERE s.instance_id = ANY (v_absent) AND s.kind = 'start')
    THEN
      v_begun := ARRAY (
        SELECT m.n::integer FROM unnest(p_absent, p_of) WITH ORDINALITY AS m (absent, target, n)
        WHERE m.absent AND (
          EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_targets[m.target] OFFSET 0)
          OR EXISTS (SELECT 1 FROM {schema}.executions AS x WHERE x.instance_id = p_targets[m.target] OFFSET 0)
          OR EXISTS (
            SELECT 1 FROM {schema}.messages AS s WHERE s.instance_id = p_targets[m.target] AND s.kind = 'start' OFFSET 0
          )
        )
      );
    END IF;
  END IF;

  IF p_foreseen <> '{}' THEN
    -- Nobody can commit a turn of what is given (S1, S9), and its row was made here: there is no message but those of this call.
    v_alike := ARRAY (
      SELECT array_position(p_targets, i.instance_id) FROM {schema}.instances AS i
      WHERE i.instance_id = ANY (ARRAY (SELECT p_targets[f.n] FROM unnest(p_foreseen) AS f (n))) -- T7
        AND i.last_commit = p_expected[array_position(p_targets, i.instance_id)] AND i.last_committer = p_reader
        AND array_position(p_targets, i.instance_id) = ANY (v_given)
        AND EXISTS (
          SELECT 1 FROM {schema}.executions AS x
          WHERE x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
            AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
              BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
          OFFSET 0
        )
    );
    IF v_lost <> '{}' OR v_begun <> '{}' THEN
      v_alike := ARRAY (
        SELECT a.n FROM unnest(v_alike) AS a (n) WHERE NOT EXISTS (
          SELECT 1 FROM unnest(p_of, p_senders) WITH ORDINALITY AS m (target, sender, n)
          WHERE m.target = a.n AND (m.sender = ANY (v_lost) OR m.n = ANY (v_begun))
        )
      );
    END IF;
    IF cardinality(v_alike) < cardinality(p_foreseen) THEN
      v_unlike := ARRAY (SELECT f.n FROM unnest(p_foreseen) AS f (n) WHERE f.n <> ALL (v_alike));
    END IF;
  END IF;
  INSERT INTO {schema}.messages
    (id, instance_id, due_at, visible_at, kind, parent_instance_id, timer_execution_id, timer_id, work_item)
  SELECT v_id + m.n - 1, p_targets[m.target], m.due, m.visible, m.kind, m.parent, m.timer_execution, m.timer, m.item
  FROM ( -- T6
    SELECT unnest(p_of) AS target, unnest(p_senders) AS sender, unnest(p_due) AS due, unnest(p_visible) AS visible,
           unnest(p_kinds) AS kind, unnest(p_parents) AS parent, unnest(p_timer_executions) AS timer_execution,
           unnest(p_timers) AS timer, unnest(p_items) AS item, generate_subscripts(p_of, 1) AS n
  ) AS m
  WHERE m.sender <> ALL (v_lost) AND m.n <> ALL (v_begun);

  IF v_lost <> '{}' OR v_begun <> '{}' THEN
    -- Their rows were locked, or made, for nothing.
    v_undone := ARRAY (
      SELECT DISTINCT m.target FROM unnest(p_of, p_senders) WITH ORDINALITY AS m (target, sender, n)
      WHERE m.sender = ANY (v_lost) OR m.n = ANY (v_begun)
    );
    PERFORM {schema}.release_schedule(
      ARRAY (SELECT p_targets[g.n] FROM unnest(v_given) AS g (n) WHERE g.n = ANY (v_undone)), true
    );
    v_given := ARRAY (SELECT g.n FROM unnest(v_given) AS g (n) WHERE g.n <> ALL (v_undone));
    v_open := v_open + cardinality(v_undone); -- Others may have sent to them, too.
    PERFORM {schema}.release_schedule(
      ARRAY (
        SELECT s.instance_id FROM unnest(v_undone) AS u (n)
        CROSS JOIN LATERAL (
          SELECT s.instance_id FROM {schema}.schedule AS s
          WHERE s.instance_id = p_targets[u.n] AND s.locked_until IS NULL OFFSET 0
        ) AS s
      ),
      false
    );
    RETURN QUERY
      SELECT 'lost', lost.n, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint
      FROM unnest(v_lost) AS lost (n)
      UNION ALL
      SELECT 'begun', begun.n, 0::bigint, NULL, NULL, NULL, NULL, NULL, NULL FROM unnest(v_begun) AS begun (n);
  END IF;

  IF v_unlike <> '{}' THEN
    v_undone := ARRAY (SELECT u.n FROM unnest(v_unlike) AS u (n) WHERE u.n = ANY (v_given));
    PERFORM {schema}.release_schedule(ARRAY (SELECT p_targets[u.n] FROM unnest(v_undone) AS u (n)), true);
    v_open := v_open + cardinality(v_undone);
    RETURN QUERY
      SELECT 'unlike', u.n, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint
      FROM unnest(v_unlike) AS u (n);
  END IF;
  IF p_foreseen <> '{}' THEN
    v_given := CASE -- Mostly none is left, which takes no look.
      WHEN v_given <@ p_foreseen THEN '{}'
      ELSE ARRAY (SELECT g.n FROM unnest(v_given) AS g (n) WHERE g.n <> ALL (p_foreseen))
    END;
  END IF;

  IF v_fresh <> '{}' AND v_given <> '{}' THEN
    RETURN QUERY
      SELECT 'cold', g.n, 1::bigint, p_targets[g.n], NULL::text, NULL::text, NULL::text, NULL::text, 1::bigint
      FROM unnest(v_given) AS g (n) WHERE g.n = ANY (v_fresh);
    IF v_starts THEN
      v_given := '{}';
    ELSE
      v_given := ARRAY (SELECT g.n FROM unnest(v_given) AS g (n) WHERE g.n <> ALL (v_fresh));
    END IF;
  END IF;
  IF v_given <> '{}' THEN
    -- S1, S9: nobody can commit a turn of these any more. Most of them p_reader knows, and their new owner can replay.
    RETURN QUERY
      SELECT 'warm', array_position(p_targets, i.instance_id), i.current_execution_id, i.instance_id, i.orchestration_name,
             i.orchestration_version, i.last_commit, NULL::text, 1::bigint
      FROM {schema}.instances AS i
      WHERE i.instance_id = ANY (ARRAY (SELECT p_targets[g.n] FROM unnest(v_given) AS g (n))) -- T7
        AND i.last_committer = p_reader AND EXISTS (
          SELECT 1 FROM {schema}.executions AS x
          WHERE x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
            AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
              BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
          OFFSET 0
        );
    GET DIAGNOSTICS v_warm = ROW_COUNT;
    IF v_warm < cardinality(v_given) THEN
      -- Of the others: whom the new owner cannot replay, or nobody has started, is for somebody else.
      SELECT COALESCE(array_agg(g.n) FILTER (WHERE known.fits), '{}'),
             COALESCE(array_agg(g.n) FILTER (WHERE NOT known.fits), '{}')
      INTO v_cold, v_undone
      FROM unnest(v_given) AS g (n)
      LEFT JOIN LATERAL (
        SELECT i.instance_id, i.current_execution_id, i.last_committer FROM {schema}.instances AS i
        WHERE i.instance_id = p_targets[g.n] OFFSET 0
      ) AS i ON true
      LEFT JOIN LATERAL (
        SELECT x.execution_id, x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
                 BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]) AS fits
        FROM {schema}.executions AS x
        WHERE x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
      ) AS x ON true
      CROSS JOIN LATERAL (
        SELECT COALESCE(x.fits, true) AND (i.instance_id IS NOT NULL OR EXISTS (
          SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = p_targets[g.n] AND m.kind = 'start' OFFSET 0
        )) AS fits
      ) AS known
      WHERE NOT (known.fits AND x.execution_id IS NOT NULL AND COALESCE(i.last_committer = p_reader, false));
      IF v_undone <> '{}' THEN
        PERFORM {schema}.release_schedule(ARRAY (SELECT p_targets[u.n] FROM unnest(v_undone) AS u (n)), true);
        v_open := v_open + cardinality(v_undone);
      END IF;
      RETURN QUERY
        SELECT * FROM {schema}.describe_turns(
          ARRAY (SELECT p_targets[c.n] FROM unnest(v_cold) AS c (n)), v_cold, p_reader
        );
    END IF;
  END IF;
  IF v_claims <> '{}' THEN
    BEGIN
      RETURN QUERY
        SELECT f.part, cardinality(p_targets) + 1 + f.turn, f.id, f.a, f.b, f.c, f.d, f.e, f.n
        FROM {schema}.fetch_turns(p_now, p_claims_until, v_claims, p_reader, p_min, p_max, p_lapses, false) AS f;
    EXCEPTION WHEN lock_not_available THEN -- S5: what was sent stays sent.
      RETURN QUERY
        SELECT 'passed', cardinality(p_targets) + 1, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint;
    END;
    v_open := (
      SELECT count(*) FROM {schema}.schedule AS s
      WHERE s.instance_id = ANY (p_targets) AND s.locked_until IS NULL AND s.ready_at + 0 <= p_now
    );
  END IF;
  IF v_open > 0 OR v_next IS NOT NULL THEN
    RETURN QUERY
      SELECT 'open', v_open, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, v_next;
  END IF;
END
$$;

-- How many instances somebody who replays these versions could claim; as many as one wants to know of. With p_lapses, also those
-- whose lock is over.
CREATE FUNCTION {schema}.count_ready_turns(
  p_now bigint, p_min bigint[], p_max bigint[], p_lapses boolean, p_most integer
) RETURNS integer
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_count integer;
BEGIN
  v_count := (
    SELECT count(*) FROM (
      SELECT 1
      FROM {schema}.schedule AS s
      LEFT JOIN LATERAL (
        SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = s.instance_id OFFSET 0
      ) AS i ON true
      LEFT JOIN LATERAL (
        SELECT x.pinned_major, x.pinned_minor, x.pinned_patch FROM {schema}.executions AS x
        WHERE x.instance_id = s.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
      ) AS x ON true
      WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now
        AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
          BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
      ORDER BY s.place, s.place_order LIMIT p_most
    ) AS ready
  );
  IF p_lapses AND v_count < p_most THEN
    v_count := v_count + (
      SELECT count(*) FROM (SELECT 1 FROM {schema}.schedule AS s WHERE s.locked_until <= p_now LIMIT p_most) AS ended
    );
  END IF;
  RETURN v_count;
END
$$;

-- S6: those whose lock or delay is over stand in line again, but for those whom somebody has locked at the moment. Answers how
-- many they are.
CREATE FUNCTION {schema}.lapse_turns(p_now bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_ids text[];
BEGIN
  v_ids := ARRAY (
    SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.locked_until <= p_now FOR UPDATE SKIP LOCKED
  );
  IF v_ids <> '{}' THEN
    UPDATE {schema}.schedule AS s SET
      locked_until = NULL,
      ready_at = COALESCE(m.visible_at, s.place), -- S3
      place = LEAST(s.place, m.visible_at) -- S4
    FROM unnest(v_ids) AS ended (id)
    CROSS JOIN LATERAL (SELECT r.ctid AS tid FROM {schema}.schedule AS r WHERE r.instance_id = ended.id OFFSET 0) AS r
    CROSS JOIN LATERAL (
      SELECT min(m.visible_at) AS visible_at FROM {schema}.messages AS m WHERE m.instance_id = ended.id
    ) AS m
    WHERE s.ctid = r.tid;
  END IF;
  RETURN cardinality(v_ids);
END
$$;

-- What the holder of these locks needs to know, beside the messages. p_turns: what to call them.
--   cold   id: execution, a: instance, b: name, c: version, d: last commit, e: start event (without a row), n: attempts
--   warm   the same, where p_reader has committed last: it may know the history
--   event  id: event id, a: event                 of cold ones
--   value  id: last update, a: key, b: value      of the key-value store, likewise
CREATE FUNCTION {schema}.describe_turns(p_ids text[], p_turns integer[], p_reader text)
RETURNS TABLE (part text, turn integer, id bigint, a text, b text, c text, d text, e text, n bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_executions bigint[];
  v_cold boolean[];
  v_names text[];
  v_versions text[];
  v_commits text[];
  v_starts text[];
BEGIN
  SELECT array_agg(known.execution_id ORDER BY known.n), array_agg(known.is_cold ORDER BY known.n),
         array_agg(known.name ORDER BY known.n), array_agg(known.version ORDER BY known.n),
         array_agg(known.last_commit ORDER BY known.n), array_agg(known.start ORDER BY known.n)
  INTO v_executions, v_cold, v_names, v_versions, v_commits, v_starts
  FROM (
    SELECT t.n, i.orchestration_name AS name, i.orchestration_version AS version, i.last_commit,
           COALESCE(
             i.current_execution_id,
             (SELECT max(x.execution_id) FROM {schema}.executions AS x WHERE x.instance_id = t.id),
             1
           ) AS execution_id,
           i.last_commit IS NULL OR i.last_committer IS DISTINCT FROM p_reader AS is_cold,
           CASE WHEN i.current_execution_id IS NULL THEN (
             SELECT h.event_data FROM {schema}.history AS h
             WHERE h.instance_id = t.id AND h.event_type = 'OrchestrationStarted'
             ORDER BY h.execution_id DESC LIMIT 1
           ) END AS start
    FROM unnest(p_ids) WITH ORDINALITY AS t (id, n)
    LEFT JOIN LATERAL (
      SELECT i.current_execution_id, i.orchestration_name, i.orchestration_version, i.last_commit, i.last_committer
      FROM {schema}.instances AS i WHERE i.instance_id = t.id OFFSET 0
    ) AS i ON true
  ) AS known;
  RETURN QUERY
    SELECT CASE WHEN t.is_cold THEN 'cold' ELSE 'warm' END, t.turn, t.execution_id, t.id, t.name, t.version,
           t.last_commit, t.start, s.attempts::bigint
    FROM unnest(p_ids, p_turns, v_executions, v_cold, v_names, v_versions, v_commits, v_starts)
      AS t (id, turn, execution_id, is_cold, name, version, last_commit, start)
    CROSS JOIN LATERAL (SELECT s.attempts FROM {schema}.schedule AS s WHERE s.instance_id = t.id OFFSET 0) AS s;
  IF NOT (true = ANY (v_cold)) THEN RETURN; END IF;
  RETURN QUERY
    SELECT 'event', t.turn, h.event_id, h.event_data, NULL, NULL, NULL, NULL, NULL::bigint
    FROM unnest(p_ids, p_turns, v_executions, v_cold) AS t (id, turn, execution_id, is_cold)
    CROSS JOIN LATERAL (
      SELECT h.event_id, h.event_data FROM {schema}.history AS h
      WHERE h.instance_id = t.id AND h.execution_id = t.execution_id OFFSET 0
    ) AS h
    WHERE t.is_cold
    ORDER BY t.turn, h.event_id;
  RETURN QUERY
    SELECT 'value', t.turn, k.last_updated_at, k.key, k.value, NULL, NULL, NULL, NULL::bigint
    FROM unnest(p_ids, p_turns, v_cold) AS t (id, turn, is_cold)
    CROSS JOIN LATERAL (
      SELECT k.key, k.value, k.last_updated_at FROM {schema}.kv_store AS k WHERE k.instance_id = t.id OFFSET 0
    ) AS k
    WHERE t.is_cold;
END
$$;

-- Claims the instances that have been ready longest, one for every token, of versions from p_min to p_max. With p_lapses it
-- looks first for locks that are over; else only where it finds too little. With p_waits it waits first, for whoever has the row
-- of the oldest locked at the moment. Raises lock_not_available where that takes long (S5).
--
-- Answers in parts, of which "turn" says the ordinal of the token:
--   cold, warm, event, value   as describe_turns
--   message  id: row, a: work item                  in the order of their due times
--   dropped  a: instance, n: how many queue messages to an instance that nobody has started
--   next     n: when the next row is ready          where nothing more is ready
--   passed   somebody else had a ready row locked   where there was less than was asked for
CREATE FUNCTION {schema}.fetch_turns(
  p_now bigint, p_until bigint, p_tokens text[], p_reader text, p_min bigint[], p_max bigint[], p_lapses boolean,
  p_waits boolean
) RETURNS TABLE (part text, turn integer, id bigint, a text, b text, c text, d text, e text, n bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '100ms'
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_found text[];
  v_unknown text[];
  v_taken text[] := '{}';
  -- Those whose instances somebody has locked.
  v_passed text[] := '{}';
  v_is_lapsed boolean := false;
BEGIN
  IF p_waits THEN
    -- S2: for just this one, while it holds nothing. Who waits along the line keeps the locks of those that turn out to be
    -- taken. What has become of it, later statements see.
    v_found := ARRAY (
      SELECT s.instance_id
      FROM {schema}.schedule AS s
      LEFT JOIN LATERAL (
        SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = s.instance_id OFFSET 0
      ) AS i ON true
      LEFT JOIN LATERAL (
        SELECT x.pinned_major, x.pinned_minor, x.pinned_patch FROM {schema}.executions AS x
        WHERE x.instance_id = s.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
      ) AS x ON true
      WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now
        AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
          BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
      ORDER BY s.place, s.place_order LIMIT 1
    );
    IF v_found = '{}' THEN
      v_found := ARRAY (
        SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.locked_until <= p_now ORDER BY s.locked_until LIMIT 1
      );
    END IF;
    BEGIN
      PERFORM 1 FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_found) FOR UPDATE;
      PERFORM 1 FROM {schema}.instances AS i WHERE i.instance_id = ANY (v_found) FOR SHARE; -- S9
    EXCEPTION WHEN lock_not_available THEN
      NULL; -- S5: others may have it for long. It is passed over.
    END;
  END IF;
  IF p_lapses THEN
    PERFORM {schema}.lapse_turns(p_now);
    v_is_lapsed := true;
  END IF;
  WHILE cardinality(v_taken) < cardinality(p_tokens) LOOP
    v_found := ARRAY (
      SELECT s.instance_id
      FROM {schema}.schedule AS s
      LEFT JOIN LATERAL (
        SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = s.instance_id OFFSET 0
      ) AS i ON true
      LEFT JOIN LATERAL (
        SELECT x.pinned_major, x.pinned_minor, x.pinned_patch FROM {schema}.executions AS x
        WHERE x.instance_id = s.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
      ) AS x ON true
      WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now
        AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
          BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
        AND s.instance_id <> ALL (v_passed)
      ORDER BY s.place, s.place_order LIMIT cardinality(p_tokens) - cardinality(v_taken)
      FOR UPDATE OF s SKIP LOCKED
    );
    IF v_found = '{}' THEN
      EXIT WHEN v_is_lapsed;
      v_is_lapsed := true;
      EXIT WHEN {schema}.lapse_turns(p_now) = 0;
      CONTINUE;
    END IF;

    -- From here on, later statements: they see all messages that were committed before the rows were locked (S1).
    v_unknown := ARRAY (
      SELECT f.id FROM unnest(v_found) AS f (id)
      WHERE NOT EXISTS (
        SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = f.id AND m.visible_at <= p_now OFFSET 0
      )
    );
    IF v_unknown <> '{}' THEN
      PERFORM {schema}.release_schedule(v_unknown, false); -- S3
      v_found := ARRAY (SELECT f.id FROM unnest(v_found) WITH ORDINALITY AS f (id, n) WHERE f.id <> ALL (v_unknown) ORDER BY f.n);
    END IF;
    v_unknown := ARRAY (
      SELECT f.id FROM unnest(v_found) AS f (id)
      WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = f.id OFFSET 0)
        AND NOT EXISTS (
          SELECT 1 FROM {schema}.messages AS m
          WHERE m.instance_id = f.id AND m.visible_at <= p_now AND m.kind = 'start'
          OFFSET 0
        )
        AND NOT EXISTS (
          SELECT 1 FROM {schema}.history AS h
          WHERE h.instance_id = f.id AND h.event_type = 'OrchestrationStarted'
          OFFSET 0
        )
    );
    IF v_unknown <> '{}' THEN
      RETURN QUERY
        SELECT 'dropped', 0, 0::bigint, aside.dropped_for, NULL, NULL, NULL, NULL, aside.dropped
        FROM {schema}.set_instances_aside(p_now, v_unknown) AS aside;
      v_found := ARRAY (SELECT f.id FROM unnest(v_found) WITH ORDINALITY AS f (id, n) WHERE f.id <> ALL (v_unknown) ORDER BY f.n);
    END IF;
    v_unknown := {schema}.lock_instances(v_found); -- S9
    IF v_unknown <> '{}' THEN
      v_passed := v_passed || v_unknown;
      v_found := ARRAY (SELECT f.id FROM unnest(v_found) WITH ORDINALITY AS f (id, n) WHERE f.id <> ALL (v_unknown) ORDER BY f.n);
    END IF;

    UPDATE {schema}.schedule AS s SET
      lock_token = p_tokens[cardinality(v_taken) + f.n],
      locked_until = p_until,
      ready_at = p_until,
      attempts = s.attempts + 1,
      batch = ARRAY (
        SELECT m.id FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id AND m.visible_at <= p_now
      )
    FROM unnest(v_found) WITH ORDINALITY AS f (id, n)
    CROSS JOIN LATERAL (SELECT r.ctid AS tid FROM {schema}.schedule AS r WHERE r.instance_id = f.id OFFSET 0) AS r
    WHERE s.ctid = r.tid;
    v_taken := v_taken || v_found;
  END LOOP;

  -- In this order: whoever commits his claim in between is passed, or the end of his lock is seen.
  IF {schema}.count_ready_turns(p_now, p_min, p_max, true, 1) > 0 THEN
    RETURN QUERY
      SELECT 'passed', 0, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint
      WHERE cardinality(v_taken) < cardinality(p_tokens);
  ELSE
    RETURN QUERY
      SELECT 'next', 0, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text,
             LEAST(
               (
                 SELECT s.place FROM {schema}.schedule AS s
                 WHERE s.locked_until IS NULL AND s.place > p_now AND s.ready_at IS NOT NULL
                 ORDER BY s.place LIMIT 1
               ),
               (
                 SELECT min(s.ready_at) FROM {schema}.schedule AS s
                 WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at > p_now
               ),
               (
                 SELECT s.locked_until FROM {schema}.schedule AS s
                 WHERE s.locked_until > p_now
                 ORDER BY s.locked_until LIMIT 1
               )
             );
  END IF;
  IF v_taken = '{}' THEN RETURN; END IF;

  RETURN QUERY
    SELECT * FROM {schema}.describe_turns(
      v_taken, ARRAY (SELECT generate_series(1, cardinality(v_taken))), p_reader
    );
  RETURN QUERY
    SELECT 'message', t.n::integer, m.id, m.work_item, NULL, NULL, NULL, NULL, NULL::bigint
    FROM unnest(v_taken) WITH ORDINALITY AS t (id, n)
    CROSS JOIN LATERAL (
      SELECT m.id, m.due_at, m.work_item FROM {schema}.messages AS m
      WHERE m.instance_id = t.id AND m.visible_at <= p_now OFFSET 0
    ) AS m
    ORDER BY t.n, m.due_at, m.id;
END
$$;

-- The history and the key-value store of one instance, for whoever holds its lock and finds that it needs them after all.
-- Parts as of fetch_turns.
CREATE FUNCTION {schema}.load_instance(p_id text, p_execution bigint)
RETURNS TABLE (part text, id bigint, a text, b text)
LANGUAGE sql STABLE AS $$
  SELECT * FROM (
    SELECT 'event' AS part, h.event_id AS id, h.event_data AS a, NULL AS b
    FROM {schema}.history AS h WHERE h.instance_id = p_id AND h.execution_id = p_execution
    UNION ALL
    SELECT 'value', k.last_updated_at, k.key, k.value FROM {schema}.kv_store AS k WHERE k.instance_id = p_id
  ) AS parts
  ORDER BY parts.part, parts.id
$$;

-- Commits turns: those whose instances are locked, and then steps (S9).
--   p_ids, p_tokens         whose they are, and by which locks; no instance twice
--     p_executions          of which executions
--     p_heads               the ordinal of what is said of the execution, or null
--   p_locked                so many of them are of locked instances. The others are steps: they say nothing new of their instance,
--                           send nothing and cancel nothing
--   p_expected              the last commit that each step expects, after which its execution runs; nobody has it locked, and its
--                           token is new
--   p_done, p_done_tokens   the activities whose outcomes the steps answer, by id, and their locks; none twice
--     p_done_of             for each the ordinal of its turn
--   p_min, p_max            the versions that who has computed a step replays: others in line matter where they are of these
--   p_names                 what is said of executions; null: nothing new
--     p_versions, p_parents, p_statuses, p_outputs, p_majors, p_minors, p_patches
--   p_event_turns           the events: for each the ordinal of its turn
--     p_event_ids, p_event_types, p_event_data
--   p_act_turns             the activities, in their order: likewise
--     p_act_instances, p_act_executions, p_act_ids, p_act_tags, p_act_sessions, p_act_items
--     p_act_tokens          by which lock somebody wants it at once, if he may have it (S7); null: nobody does
--     p_act_until           all until one time
--   p_wanted, p_owners      the tags that they may take, as stored (null: any), and for each of them who may have the sessions of
--                           the work; null: only work without a session
--     p_session_until
--   p_lapses                also look for locks that are over
--   p_custom      [{ turn, status }]                       custom statuses; null: none
--   p_values      [{ turn, key, value, at, all }]          changes of key-values, each key once, "all" first; null: none
--   p_messages    [{ n, turn, instance, due, visible, kind, parent, timer_execution, timer, item }]   in the order of n
--   p_cancelled   [{ turn, instance, execution, id }]      activities; null: none
--   p_cancelled_timers   the same of timers
-- An event that is there already raises unique_violation, and nothing of anybody is written.
--
-- Answers in parts, of which "turn" says an ordinal:
--   beside others are in line, and nobody of those who take steps gives way to them
--   lost   of a turn whose lock was not live, or of a step that did not find what it expects
--   left   of a turn whose instance has messages left. n: when it can be claimed; null: when somebody sends to it
--   over   of a turn after which its execution does not run
--   all    every activity was given to who wanted it. id: the row of the first; those of the others count on from it
--   given  of an activity that was given to who wanted it. id: its row
--   older  none was, because others are ready that have waited longer. n: how many. Then those who want something claim as
--          fetch_activities does, after all is committed: what it answers follows, and "turn" is the ordinal among them
CREATE FUNCTION {schema}.commit_turns(
  p_now bigint, p_committer text, p_ids text[], p_tokens text[], p_executions bigint[], p_heads integer[],
  p_locked integer, p_expected text[], p_done bigint[], p_done_tokens text[], p_done_of integer[], p_min bigint[], p_max bigint[],
  p_names text[], p_versions text[], p_parents text[], p_statuses text[], p_outputs text[], p_majors bigint[],
  p_minors bigint[], p_patches bigint[],
  p_event_turns integer[], p_event_ids bigint[], p_event_types text[], p_event_data text[],
  p_act_turns integer[], p_act_instances text[], p_act_executions bigint[], p_act_ids bigint[], p_act_tags text[],
  p_act_sessions text[], p_act_items text[], p_act_tokens text[], p_act_until bigint[],
  p_wanted text[], p_owners text[], p_session_until bigint, p_lapses boolean,
  p_custom json, p_values json, p_messages json, p_cancelled json, p_cancelled_timers json
) RETURNS TABLE (part text, turn integer, id bigint, a text, n bigint, is_over boolean)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_gives boolean := array_remove(p_act_until, NULL) <> '{}';
  v_older bigint := 0;
  v_seen text[];
  v_others text[];
  v_visible bigint[];
  v_due bigint[];
  v_locked text[] := p_ids[:p_locked];
  v_steps text[] := p_ids[p_locked + 1:];
  v_acked bigint[];
  v_sessions text[];
  v_is_met boolean;
  v_is_beside boolean := false;
  v_done bigint[] := p_done;
  -- Steps that do not find what they expect.
  v_refused integer[];
  -- Those whose lock is live, and their places among those of the same millisecond.
  v_ids text[] := '{}';
  v_orders bigint[];
  -- By turn: whose it is. Null: the lock is not live.
  v_live text[] := p_ids;
  -- Turns that say who the instance is, and whether nothing was there of any of these; instances of the others, how many of them are
  -- current, and how many are of steps.
  v_named integer[] := '{}';
  v_begins boolean := false;
  v_rest text[];
  v_current bigint;
  v_stepped bigint := 0;
  v_is_usual boolean := true;
  -- The execution of all turns, if it is the same.
  v_execution bigint := CASE WHEN p_executions[1] = ALL (p_executions) THEN p_executions[1] END;
  -- Turns that begin an execution; whose execution does not run.
  v_new integer[] := '{}';
  v_over integer[];
  v_ended text[];
  -- The id of the first activity, if all of them count on from it; otherwise those of all.
  v_act bigint;
  v_acts bigint[];
  v_cancelled bigint[];
BEGIN
  -- Mostly nothing is in line, which is seen at once.
  IF v_gives AND (p_lapses OR p_wanted IS NULL OR EXISTS (
    SELECT 1 FROM {schema}.activities AS q WHERE q.tag = ANY (p_wanted) AND NOT q.is_held AND q.ready_at <= p_now
  )) THEN
    v_older := {schema}.count_ready_activities(p_now, p_wanted, p_owners, p_lapses);
    IF v_older > 0 THEN
      v_gives := false;
      RETURN QUERY SELECT 'older', 0, 0::bigint, NULL::text, v_older, false;
    END IF;
  END IF;

  IF p_messages IS NOT NULL THEN
    -- S2: their own rows and those of whom they write to, in one order. A look, to know whose rows to lock. A lock that is not
    -- live now never will be again.
    v_seen := ARRAY (
      SELECT t.id FROM unnest(p_ids, p_tokens) AS t (id, token)
      CROSS JOIN LATERAL (
        SELECT 1 FROM {schema}.schedule AS s
        WHERE s.instance_id = t.id AND s.lock_token = t.token AND COALESCE(s.locked_until, 0) > p_now OFFSET 0
      ) AS s
    );
    SELECT array_agg(m.instance ORDER BY m.n), array_agg(m.visible ORDER BY m.n), array_agg(m.due ORDER BY m.n)
    INTO v_others, v_visible, v_due
    FROM json_to_recordset(p_messages) AS m (n integer, turn integer, instance text, visible bigint, due bigint)
    WHERE m.instance <> p_ids[m.turn] AND p_ids[m.turn] = ANY (v_seen);
    -- Whom a neighbour in this batch writes to may lose its own lock before it is our turn; the message is to be found all
    -- the same (S3).
    PERFORM {schema}.lock_schedule(v_others || v_seen, v_visible, v_due);
  END IF;
  IF p_locked > 0 THEN
    -- S8: the row goes, whoever sends to it waits for us, and later statements see all that was sent before (S1). In the order of
    -- their ids, by index (S2). What was handed out goes with it.
    WITH gone AS (
      DELETE FROM {schema}.schedule AS s
      WHERE s.instance_id = ANY (v_locked) AND COALESCE(s.locked_until, 0) > p_now
        AND s.lock_token = p_tokens[array_position(p_ids, s.instance_id)]
      RETURNING s.instance_id, s.place_order, s.batch
    ), taken AS (
      DELETE FROM {schema}.messages AS m WHERE m.id = ANY (ARRAY (SELECT unnest(gone.batch) FROM gone))
    )
    SELECT COALESCE(array_agg(gone.instance_id), '{}'), array_agg(gone.place_order) INTO v_ids, v_orders FROM gone;
    IF cardinality(v_ids) < p_locked THEN
      v_live := ARRAY (
        SELECT CASE WHEN t.n > p_locked OR t.id = ANY (v_ids) THEN t.id END
        FROM unnest(p_ids) WITH ORDINALITY AS t (id, n) ORDER BY t.n
      );
      RETURN QUERY
        SELECT 'lost', t.n::integer, 0::bigint, NULL::text, NULL::bigint, false
        FROM unnest(v_live) WITH ORDINALITY AS t (id, n) WHERE t.id IS NULL;
      -- Somebody was deleted or taken over in between; its row may be one that the lock has made.
      DELETE FROM {schema}.schedule AS s
      WHERE s.instance_id = ANY (v_seen) AND s.locked_until IS NULL AND s.ready_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id OFFSET 0);
    END IF;
  END IF;

  v_rest := v_ids;
  IF array_remove(p_names, NULL) <> '{}' THEN
    v_named := ARRAY (
      SELECT t.n::integer FROM unnest(v_live, p_heads) WITH ORDINALITY AS t (id, head, n)
      WHERE t.id IS NOT NULL AND p_names[t.head] IS NOT NULL AND p_versions[t.head] IS NOT NULL
    );
  END IF;
  IF v_named <> '{}' THEN
    IF cardinality(v_named) = cardinality(v_ids) THEN -- Steps are never among them.
      v_rest := '{}';
    ELSE
      v_rest := ARRAY (
        SELECT t.id FROM unnest(v_live[:p_locked]) WITH ORDINALITY AS t (id, n) WHERE t.id IS NOT NULL AND t.n <> ALL (v_named)
      );
    END IF;
    -- Mostly all of them begin, and nothing is there of them: a plain insert costs a third less than one that expects others.
    IF v_rest = '{}' AND v_execution = 1 THEN
      v_begins := NOT EXISTS (SELECT 1 FROM {schema}.executions AS x WHERE x.instance_id = ANY (v_ids));
    END IF;
    IF v_begins THEN
      BEGIN
        INSERT INTO {schema}.instances
          (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, last_commit,
           last_committer, created_at, updated_at)
        SELECT p_ids[t.n], p_names[p_heads[t.n]], p_versions[p_heads[t.n]], 1, p_parents[p_heads[t.n]], p_tokens[t.n],
               p_committer, p_now, p_now
        FROM unnest(v_named) AS t (n);
      EXCEPTION WHEN unique_violation THEN
        v_begins := false;
      END;
    END IF;
  END IF;
  -- S9: all that are there, in one order; a single statement below has its own.
  IF v_rest <> '{}' AND v_steps <> '{}' OR v_named <> '{}' AND NOT v_begins THEN
    PERFORM 1 FROM {schema}.instances AS i WHERE i.instance_id = ANY (v_ids || v_steps) ORDER BY i.instance_id FOR UPDATE;
  END IF;
  IF v_named <> '{}' AND NOT v_begins THEN
    INSERT INTO {schema}.instances AS i
      (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, last_commit,
       last_committer, created_at, updated_at)
    SELECT p_ids[t.n], p_names[p_heads[t.n]], p_versions[p_heads[t.n]], p_executions[t.n], p_parents[p_heads[t.n]],
           p_tokens[t.n], p_committer, p_now, p_now
    FROM unnest(v_named) AS t (n)
    ON CONFLICT (instance_id) DO UPDATE SET
      orchestration_name = excluded.orchestration_name,
      orchestration_version = excluded.orchestration_version,
      current_execution_id = GREATEST(i.current_execution_id, excluded.current_execution_id),
      last_commit = excluded.last_commit,
      last_committer = excluded.last_committer,
      updated_at = excluded.updated_at;
  END IF;
  IF v_rest <> '{}' THEN
    -- One walk along each index (T7). Mostly all of them are known, current, and run.
    WITH changed AS (
      UPDATE {schema}.instances AS i SET
        current_execution_id = GREATEST(
          i.current_execution_id, COALESCE(v_execution, p_executions[array_position(p_ids, i.instance_id)])
        ),
        last_commit = p_tokens[array_position(p_ids, i.instance_id)],
        last_committer = p_committer,
        updated_at = p_now
      WHERE i.instance_id = ANY (v_rest)
      RETURNING i.current_execution_id
    )
    SELECT count(*) FILTER (WHERE changed.current_execution_id = v_execution) INTO v_current FROM changed;
    v_is_usual := v_current = cardinality(v_rest) AND v_current = (
      SELECT count(*) FROM {schema}.executions AS x
      WHERE x.instance_id = ANY (v_rest) AND x.execution_id = v_execution AND x.status = 'Running'
    );
  END IF;
  -- Mostly all steps find what they expect. Otherwise what was done for them is undone, and done again without those that do not.
  WHILE v_steps <> '{}' LOOP
    BEGIN
      UPDATE {schema}.instances AS i SET
        last_commit = p_tokens[array_position(p_ids, i.instance_id)],
        last_committer = p_committer,
        updated_at = p_now
      WHERE i.instance_id = ANY (v_steps)
        AND i.last_commit = p_expected[array_position(p_ids, i.instance_id) - p_locked];
      GET DIAGNOSTICS v_stepped = ROW_COUNT;
      IF p_cancelled IS NOT NULL THEN
        -- S2: what the steps remove and what others cancel, in one order.
        PERFORM 1 FROM {schema}.activities AS a
        WHERE a.id = ANY (v_done || ARRAY (
          SELECT a.id
          FROM json_to_recordset(p_cancelled) AS c (turn integer, instance text, execution bigint, id bigint)
          CROSS JOIN LATERAL (
            SELECT a.id FROM {schema}.activities AS a
            WHERE a.instance_id = c.instance AND a.execution_id = c.execution AND a.activity_id = c.id OFFSET 0
          ) AS a
          WHERE v_live[c.turn] IS NOT NULL
        ))
        ORDER BY a.id
        FOR UPDATE;
      END IF;
      -- S9: a later statement. Whoever has handed one of them out, and was waited for, is seen.
      WITH gone AS (
        DELETE FROM {schema}.activities AS q -- S2: in the order of their ids, by index.
        WHERE q.id = ANY (v_done) AND q.ready_at + 0 > p_now AND q.lock_token = p_done_tokens[array_position(p_done, q.id)]
        RETURNING q.id, q.session_id
      )
      SELECT COALESCE(array_agg(gone.id), '{}'), array_agg(gone.session_id) FILTER (WHERE gone.session_id IS NOT NULL),
             EXISTS (SELECT 1 FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_steps)),
             EXISTS (SELECT 1 FROM {schema}.schedule AS s WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now)
      INTO v_acked, v_sessions, v_is_met, v_is_beside FROM gone;
      EXIT WHEN NOT v_is_met AND v_stepped = cardinality(v_steps) AND cardinality(v_acked) = cardinality(v_done);
      v_refused := ARRAY (
        SELECT t.n
        FROM unnest(v_steps) AS s (id)
        CROSS JOIN LATERAL (SELECT array_position(p_ids, s.id) AS n) AS t
        WHERE EXISTS (SELECT 1 FROM {schema}.schedule AS r WHERE r.instance_id = s.id OFFSET 0)
          OR NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = s.id AND i.last_commit = p_tokens[t.n] OFFSET 0)
          OR EXISTS (SELECT 1 FROM unnest(p_done, p_done_of) AS d (id, of_turn) WHERE d.of_turn = t.n AND d.id <> ALL (v_acked))
      );
      RAISE EXCEPTION USING ERRCODE = 'DX001';
    EXCEPTION WHEN SQLSTATE 'DX001' THEN
      v_sessions := NULL;
    END;
    RETURN QUERY
      SELECT 'lost', r.n, 0::bigint, NULL::text, NULL::bigint, false FROM unnest(v_refused) AS r (n);
    v_live := ARRAY (
      SELECT CASE WHEN t.n <> ALL (v_refused) THEN t.id END FROM unnest(v_live) WITH ORDINALITY AS t (id, n) ORDER BY t.n
    );
    v_steps := ARRAY (SELECT s.id FROM unnest(v_steps) AS s (id) WHERE array_position(p_ids, s.id) <> ALL (v_refused));
    v_done := ARRAY (SELECT d.id FROM unnest(v_done) AS d (id) WHERE p_done_of[array_position(p_done, d.id)] <> ALL (v_refused));
  END LOOP;
  -- Mostly nobody is in line at all.
  IF v_is_beside THEN
    v_is_beside := {schema}.count_ready_turns(p_now, p_min, p_max, false, 1) > 0;
  END IF;
  IF v_is_beside THEN
    RETURN QUERY SELECT 'beside', 0, 0::bigint, NULL::text, 1::bigint, false;
  END IF;
  IF v_ids = '{}' AND v_steps = '{}' THEN RETURN; END IF; -- Those who want something look for themselves.
  IF v_begins THEN
    v_new := v_named;
  ELSIF v_named <> '{}' OR NOT v_is_usual THEN
    SELECT COALESCE(array_agg(t.n::integer) FILTER (WHERE x.status IS NULL), '{}'),
           array_agg(t.n::integer) FILTER (WHERE x.status <> 'Running' OR i.current_execution_id > t.execution)
    INTO v_new, v_over
    FROM unnest(v_live, p_executions) WITH ORDINALITY AS t (id, execution, n)
    LEFT JOIN LATERAL (
      SELECT x.status FROM {schema}.executions AS x WHERE x.instance_id = t.id AND x.execution_id = t.execution OFFSET 0
    ) AS x ON true
    LEFT JOIN LATERAL (
      SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = t.id OFFSET 0
    ) AS i ON true
    WHERE t.id IS NOT NULL AND (NOT v_is_usual OR t.n = ANY (v_named));
  END IF;
  IF v_new <> '{}' THEN
    INSERT INTO {schema}.executions
      (instance_id, execution_id, status, output, started_at, completed_at, pinned_major, pinned_minor, pinned_patch)
    SELECT p_ids[t.n], p_executions[t.n], COALESCE(said.status, 'Running'),
           CASE WHEN said.status IS NOT NULL THEN p_outputs[said.n] END, p_now,
           CASE WHEN said.status <> 'Running' THEN p_now END, p_majors[said.n], p_minors[said.n], p_patches[said.n]
    FROM unnest(v_new) AS t (n)
    CROSS JOIN LATERAL (SELECT p_heads[t.n] AS n, p_statuses[p_heads[t.n]] AS status) AS said;
  END IF;
  IF cardinality(p_names) > (SELECT count(p_heads[t.n]) FROM unnest(v_new) AS t (n)) THEN
    UPDATE {schema}.executions AS x SET
      status = COALESCE(said.status, x.status),
      output = CASE WHEN said.status IS NULL THEN x.output ELSE p_outputs[said.n] END,
      completed_at = CASE
        WHEN said.status IS NULL THEN x.completed_at WHEN said.status = 'Running' THEN NULL ELSE p_now
      END,
      pinned_major = COALESCE(p_majors[said.n], x.pinned_major),
      pinned_minor = COALESCE(p_minors[said.n], x.pinned_minor),
      pinned_patch = COALESCE(p_patches[said.n], x.pinned_patch)
    FROM unnest(v_live, p_executions, p_heads) WITH ORDINALITY AS t (id, execution, head, n)
    CROSS JOIN LATERAL (SELECT t.head AS n, p_statuses[t.head] AS status) AS said
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.executions AS r
      WHERE r.instance_id = t.id AND r.execution_id = t.execution OFFSET 0
    ) AS r
    WHERE x.ctid = r.tid AND t.n <> ALL (v_new) AND (said.status IS NOT NULL OR p_majors[said.n] IS NOT NULL);
  END IF;

  INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
  SELECT v_live[e.turn], p_executions[e.turn], e.id, e.type, e.data
  FROM ( -- T6
    SELECT unnest(p_event_turns) AS turn, unnest(p_event_ids) AS id, unnest(p_event_types) AS type, unnest(p_event_data) AS data
  ) AS e
  WHERE v_live[e.turn] IS NOT NULL;

  IF p_custom IS NOT NULL THEN
    UPDATE {schema}.instances AS i SET
      custom_status = c.status,
      custom_status_version = i.custom_status_version + 1
    FROM json_to_recordset(p_custom) AS c (turn integer, status text)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.instances AS r WHERE r.instance_id = v_live[c.turn] OFFSET 0
    ) AS r
    WHERE i.ctid = r.tid;
  END IF;
  IF p_values IS NOT NULL THEN
    PERFORM {schema}.change_values(p_now, v_live, p_values);
  END IF;
  IF array_remove(array_remove(p_statuses, NULL), 'Running') <> '{}' THEN
    v_ended := ARRAY (
      SELECT t.id FROM unnest(v_live, p_heads) AS t (id, head) WHERE t.id IS NOT NULL AND p_statuses[t.head] <> 'Running'
    );
    IF EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = ANY (v_ended)) THEN
      PERFORM {schema}.merge_values(v_ended);
    END IF;
  END IF;

  IF p_act_turns <> '{}' THEN
    IF cardinality(p_act_turns) <= 1000 THEN
      v_act := nextval('{schema}.activity_ids');
    ELSE
      v_acts := ARRAY (SELECT nextval('{schema}.activity_ids') FROM generate_series(1, cardinality(p_act_turns)));
    END IF;
    INSERT INTO {schema}.activities
      (id, instance_id, execution_id, activity_id, tag, session_id, ready_at, is_held, lock_token, attempts, enqueued_at,
       work_item)
    SELECT COALESCE(v_act + a.n - 1, v_acts[a.n]), a.instance, a.execution, a.id, a.tag, a.session,
           CASE WHEN v_gives THEN COALESCE(a.until, p_now) ELSE p_now END,
           v_gives AND a.until IS NOT NULL, CASE WHEN v_gives THEN a.token END,
           CASE WHEN v_gives AND a.until IS NOT NULL THEN 1 ELSE 0 END, p_now, a.item
    FROM ( -- T6
      SELECT unnest(p_act_turns) AS turn, unnest(p_act_instances) AS instance, unnest(p_act_executions) AS execution,
             unnest(p_act_ids) AS id, unnest(p_act_tags) AS tag, unnest(p_act_sessions) AS session,
             unnest(p_act_items) AS item, unnest(p_act_tokens) AS token, unnest(p_act_until) AS until,
             generate_subscripts(p_act_turns, 1) AS n
    ) AS a
    WHERE v_live[a.turn] IS NOT NULL;
  END IF;
  IF p_messages IS NOT NULL THEN
    INSERT INTO {schema}.messages
      (instance_id, due_at, visible_at, kind, parent_instance_id, timer_execution_id, timer_id, work_item)
    SELECT m.instance, m.due, m.visible, m.kind, m.parent, m.timer_execution, m.timer, m.item
    FROM json_to_recordset(p_messages) AS m (
      n integer, turn integer, instance text, due bigint, visible bigint, kind text, parent text, timer_execution bigint,
      timer bigint, item text
    )
    WHERE v_live[m.turn] IS NOT NULL
    ORDER BY m.n;
  END IF;

  -- After what was added: what stands in both lists is gone.
  IF p_cancelled IS NOT NULL THEN
    v_cancelled := ARRAY (
      SELECT a.id
      FROM json_to_recordset(p_cancelled) AS c (turn integer, instance text, execution bigint, id bigint)
      CROSS JOIN LATERAL (
        SELECT a.id FROM {schema}.activities AS a
        WHERE a.instance_id = c.instance AND a.execution_id = c.execution AND a.activity_id = c.id OFFSET 0
      ) AS a
      WHERE v_live[c.turn] IS NOT NULL
    );
    PERFORM 1 FROM {schema}.activities AS a WHERE a.id = ANY (v_cancelled) ORDER BY a.id FOR UPDATE; -- S2
    DELETE FROM {schema}.activities AS a WHERE a.id = ANY (v_cancelled);
  END IF;
  IF v_sessions IS NOT NULL THEN
    PERFORM {schema}.touch_sessions(p_now, v_sessions); -- S2: after all activities.
  END IF;
  IF p_cancelled_timers IS NOT NULL THEN
    DELETE FROM {schema}.messages AS m WHERE m.id = ANY (ARRAY (
      SELECT timer.id
      FROM json_to_recordset(p_cancelled_timers) AS c (turn integer, instance text, execution bigint, id bigint)
      CROSS JOIN LATERAL (
        SELECT m.id FROM {schema}.messages AS m
        WHERE m.instance_id = c.instance AND m.timer_execution_id = c.execution AND m.timer_id = c.id OFFSET 0
      ) AS timer
      WHERE v_live[c.turn] IS NOT NULL
    ));
  END IF;

  -- S8: whoever has messages left stands in line again.
  IF v_ids <> '{}' THEN
    IF EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = ANY (v_ids)) THEN
      RETURN QUERY
        WITH back AS (
          INSERT INTO {schema}.schedule AS s (instance_id, ready_at, place, place_order)
          SELECT t.id, m.visible_at, m.due_at, t.place_order
          FROM unnest(v_ids, v_orders) AS t (id, place_order)
          CROSS JOIN LATERAL (
            SELECT m.visible_at, m.due_at FROM {schema}.messages AS m WHERE m.instance_id = t.id ORDER BY m.visible_at LIMIT 1
          ) AS m
          RETURNING s.instance_id, s.ready_at
        )
        SELECT 'left', array_position(p_ids, back.instance_id), 0::bigint, NULL::text, back.ready_at, false FROM back;
    END IF;
  END IF;
  IF v_gives THEN
    IF v_over IS NOT NULL THEN
      RETURN QUERY SELECT 'over', over.n, 0::bigint, NULL::text, NULL::bigint, true FROM unnest(v_over) AS over (n);
    END IF;
    IF v_act IS NOT NULL AND v_cancelled IS NULL AND array_position(v_live, NULL) IS NULL THEN
      RETURN QUERY SELECT 'all', 0, v_act, NULL::text, NULL::bigint, false;
    ELSE
      RETURN QUERY
        SELECT 'given', a.n, a.id, NULL::text, NULL::bigint, false
        FROM generate_subscripts(p_act_turns, 1) AS s (n)
        CROSS JOIN LATERAL (SELECT s.n, COALESCE(v_act + s.n - 1, v_acts[s.n]) AS id) AS a
        WHERE p_act_until[a.n] IS NOT NULL AND v_live[p_act_turns[a.n]] IS NOT NULL
          AND (v_cancelled IS NULL OR a.id <> ALL (v_cancelled));
    END IF;
  END IF;
  IF v_older > 0 THEN
    BEGIN
      RETURN QUERY
        SELECT * FROM {schema}.fetch_activities(
          p_now, (array_remove(p_act_until, NULL))[1], array_remove(p_act_tokens, NULL), p_wanted, p_owners,
          p_session_until, p_lapses, false
        );
    EXCEPTION WHEN lock_not_available THEN -- S5: what was committed stays committed.
      RETURN QUERY SELECT 'passed', 0, 0::bigint, NULL::text, NULL::bigint, false;
    END;
  END IF;
END
$$;

-- What turns change in key-values. p_instances: by turn, as in commit_turns.
CREATE FUNCTION {schema}.change_values(p_now bigint, p_instances text[], p_values json) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- A clear of everything hides every key that the instance has, in either table.
  INSERT INTO {schema}.kv_delta AS d (instance_id, key, value, last_updated_at)
  SELECT had.instance_id, had.key, NULL, p_now
  FROM json_to_recordset(p_values) AS c (turn integer, "all" boolean)
  CROSS JOIN LATERAL (
    SELECT k.instance_id, k.key FROM {schema}.kv_store AS k WHERE k.instance_id = p_instances[c.turn]
    UNION
    SELECT k.instance_id, k.key FROM {schema}.kv_delta AS k WHERE k.instance_id = p_instances[c.turn]
  ) AS had
  WHERE c."all"
  ON CONFLICT (instance_id, key) DO UPDATE SET value = NULL, last_updated_at = excluded.last_updated_at;
  INSERT INTO {schema}.kv_delta AS d (instance_id, key, value, last_updated_at)
  SELECT p_instances[c.turn], c.key, c.value, c.at
  FROM json_to_recordset(p_values) AS c (turn integer, key text, value text, at bigint, "all" boolean)
  WHERE p_instances[c.turn] IS NOT NULL AND NOT c."all"
  ON CONFLICT (instance_id, key) DO UPDATE SET value = excluded.value, last_updated_at = excluded.last_updated_at;
END
$$;

-- The executions of these are over, and some have changed something: that is what the next ones start from.
CREATE FUNCTION {schema}.merge_values(p_ids text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO {schema}.kv_store AS k (instance_id, key, value, last_updated_at)
  SELECT d.instance_id, d.key, d.value, d.last_updated_at
  FROM {schema}.kv_delta AS d WHERE d.instance_id = ANY (p_ids) AND d.value IS NOT NULL
  ON CONFLICT (instance_id, key) DO UPDATE SET value = excluded.value, last_updated_at = excluded.last_updated_at;
  DELETE FROM {schema}.kv_store AS k
  USING {schema}.kv_delta AS d
  CROSS JOIN LATERAL (
    SELECT r.ctid AS tid FROM {schema}.kv_store AS r WHERE r.instance_id = d.instance_id AND r.key = d.key OFFSET 0
  ) AS r
  WHERE d.instance_id = ANY (p_ids) AND d.value IS NULL AND k.ctid = r.tid;
  DELETE FROM {schema}.kv_delta WHERE instance_id = ANY (p_ids);
END
$$;

-- Gives instances back. p_turns: [{ call, id, token, until, taken_back }], no instance twice; "until" keeps the instance back
-- until then, "taken_back" is how many attempts are not to count. Answers for those that were there: when each is ready again;
-- null: when somebody sends to it.
CREATE FUNCTION {schema}.abandon_turns(p_turns json) RETURNS TABLE (call integer, ready_at bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_calls integer[];
  v_ids text[];
BEGIN
  -- S1, S2
  PERFORM 1 FROM {schema}.schedule AS s
  WHERE s.instance_id = ANY (ARRAY (SELECT t.id FROM json_to_recordset(p_turns) AS t (id text)))
  ORDER BY s.instance_id
  FOR UPDATE;
  WITH given_back AS (
    UPDATE {schema}.schedule AS s SET
      lock_token = NULL,
      batch = NULL,
      attempts = GREATEST(s.attempts - t.taken_back, 0),
      locked_until = t.until,
      ready_at = COALESCE(t.until, s.ready_at)
    FROM json_to_recordset(p_turns) AS t (call integer, id text, token text, until bigint, taken_back integer)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.schedule AS r WHERE r.instance_id = t.id AND r.lock_token = t.token OFFSET 0
    ) AS r
    WHERE s.ctid = r.tid
    RETURNING t.call, s.instance_id
  )
  SELECT array_agg(g.call), array_agg(g.instance_id) INTO v_calls, v_ids FROM given_back AS g;
  IF v_calls IS NULL THEN RETURN; END IF;
  PERFORM {schema}.release_schedule(
    ARRAY (SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_ids) AND s.locked_until IS NULL),
    false
  );
  RETURN QUERY
    SELECT v.call, s.ready_at
    FROM unnest(v_calls, v_ids) AS v (call, id)
    LEFT JOIN LATERAL (SELECT s.ready_at FROM {schema}.schedule AS s WHERE s.instance_id = v.id OFFSET 0) AS s ON true;
END
$$;

-- Renews live locks. p_turns: [{ call, id, token, until }], no instance twice. Answers which were live.
CREATE FUNCTION {schema}.renew_turns(p_now bigint, p_turns json) RETURNS TABLE (call integer)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  -- S2. What is over is not even locked: whoever looks for work passes over what is.
  PERFORM 1 FROM {schema}.schedule AS s
  WHERE s.instance_id = ANY (ARRAY (SELECT t.id FROM json_to_recordset(p_turns) AS t (id text)))
    AND COALESCE(s.locked_until, 0) > p_now
  ORDER BY s.instance_id
  FOR UPDATE;
  RETURN QUERY
    UPDATE {schema}.schedule AS s SET locked_until = t.until, ready_at = t.until
    FROM json_to_recordset(p_turns) AS t (call integer, id text, token text, until bigint)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.schedule AS r
      WHERE r.instance_id = t.id AND r.lock_token = t.token AND COALESCE(r.locked_until, 0) > p_now OFFSET 0
    ) AS r
    WHERE s.ctid = r.tid
    RETURNING t.call;
END
$$;

-- The holder of this lock finds that its start cannot be read: nobody has said what the instance is. No attempt counts. Of
-- what has come meanwhile nobody knows anything yet: it is to be fetched.
CREATE FUNCTION {schema}.set_turn_aside(p_now bigint, p_id text, p_token text)
RETURNS TABLE (dropped_for text, dropped bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_batch bigint[];
BEGIN
  SELECT s.batch INTO v_batch FROM {schema}.schedule AS s
  WHERE s.instance_id = p_id AND s.lock_token = p_token FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE {schema}.schedule SET attempts = GREATEST(attempts - 1, 0) WHERE instance_id = p_id;
  IF EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = p_id AND m.id <> ALL (v_batch)) THEN
    PERFORM {schema}.release_schedule(ARRAY[p_id], false);
  ELSE
    RETURN QUERY SELECT * FROM {schema}.set_instances_aside(p_now, ARRAY[p_id]);
  END IF;
END
$$;

-- Events beside all turns, for tests and import. What waited for a start may begin. p_events: [{ id, type, data }]. Answers
-- whether the instance is ready.
CREATE FUNCTION {schema}.append_events(p_now bigint, p_id text, p_execution bigint, p_events json)
RETURNS TABLE (is_ready boolean)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM {schema}.lock_schedule(ARRAY[p_id]); -- S1
  INSERT INTO {schema}.executions (instance_id, execution_id, started_at) VALUES (p_id, p_execution, p_now)
  ON CONFLICT DO NOTHING;
  UPDATE {schema}.instances SET last_commit = NULL, last_committer = NULL WHERE instance_id = p_id; -- S9: before its events.
  INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
  SELECT p_id, p_execution, e.id, e.type, e.data
  FROM json_to_recordset(p_events) AS e (id bigint, type text, data text);
  PERFORM {schema}.release_schedule(
    ARRAY (SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.instance_id = p_id AND s.locked_until IS NULL),
    false
  );
  RETURN QUERY SELECT COALESCE((SELECT s.ready_at <= p_now FROM {schema}.schedule AS s WHERE s.instance_id = p_id), false);
END
$$;
`;
