// providers/postgres/migrations/turns/commit.ts — turns are committed.

import { LOOPS_ONLY, OWN_NAMES } from "../fragments.js";

export const commit = `
-- Commits turns: those whose instances are locked, then steps (S9), then beginnings (S10).
--   p_ids, p_tokens         whose they are, and by which locks; no instance twice
--     p_executions          of which executions
--     p_heads               the ordinal of what is said of the execution, or null
--   p_locked                so many of them are of locked instances, and then there are no beginnings. The others send nothing and
--                           cancel nothing, nobody has their instances locked, and their tokens are new
--   p_expected              the last commit that each step expects, after which its execution runs; it says nothing new of its
--                           instance. Those for whom there is none are beginnings: of the first execution of an instance that has
--                           nothing at all, and they say who it is
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
--   lost   of a turn whose lock was not live, of a step that did not find what it expects, or of a beginning that found anything
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
#variable_conflict use_column
DECLARE
  v_gives boolean := array_remove(p_act_until, NULL) <> '{}';
  v_older bigint := 0;
  v_seen text[];
  v_others text[];
  v_visible bigint[];
  v_due bigint[];
  v_locked text[] := p_ids[:p_locked];
  v_steps text[] := p_ids[p_locked + 1:p_locked + cardinality(p_expected)];
  v_beginning text[] := p_ids[p_locked + cardinality(p_expected) + 1:];
  v_acked bigint[];
  v_sessions text[];
  v_is_met boolean;
  v_is_beside boolean := false;
  v_done bigint[] := p_done;
  -- Steps that do not find what they expect.
  v_refused integer[];
  -- Those whose lock is live, or who have nothing yet, and the places of the former among those of the same millisecond.
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

  IF v_beginning <> '{}' THEN
    -- S10: whoever sends to them waits for us. The rows are locks, and gone at once; later statements see what others have begun.
    WITH made AS (
      INSERT INTO {schema}.schedule (instance_id, place, place_order)
      SELECT b.id, 0, 0 FROM unnest(v_beginning) AS b (id) ORDER BY b.id COLLATE "C" -- S2
      ON CONFLICT (instance_id) DO NOTHING
      RETURNING instance_id
    )
    SELECT COALESCE(array_agg(made.instance_id), '{}') INTO v_ids FROM made;
    DELETE FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_ids);
    IF EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = ANY (v_ids))
      OR EXISTS (SELECT 1 FROM {schema}.executions AS x WHERE x.instance_id = ANY (v_ids))
    THEN
      v_ids := ARRAY (
        SELECT b.id FROM unnest(v_ids) AS b (id)
        WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = b.id OFFSET 0)
          AND NOT EXISTS (SELECT 1 FROM {schema}.executions AS x WHERE x.instance_id = b.id OFFSET 0)
      );
    END IF;
    IF cardinality(v_ids) < cardinality(v_beginning) THEN
      v_live := ARRAY (
        SELECT CASE WHEN t.n <= p_locked + cardinality(p_expected) OR t.id = ANY (v_ids) THEN t.id END
        FROM unnest(p_ids) WITH ORDINALITY AS t (id, n) ORDER BY t.n
      );
      RETURN QUERY
        SELECT 'lost', t.n::integer, 0::bigint, NULL::text, NULL::bigint, false
        FROM unnest(v_live) WITH ORDINALITY AS t (id, n) WHERE t.id IS NULL;
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
    IF v_beginning <> '{}' THEN
      v_begins := true;
    ELSIF v_rest = '{}' AND v_execution = 1 THEN
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
  IF v_beginning <> '{}' AND p_expected = '{}' THEN
    v_is_beside := EXISTS (
      SELECT 1 FROM {schema}.schedule AS s WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now
    );
  END IF;
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
  IF p_locked > 0 AND v_ids <> '{}' THEN
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
`;
