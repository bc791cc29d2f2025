// providers/postgres/migrations/0002-turns.ts — messages and turns: how they are sent, claimed, committed and given back.
//
// Every function takes many calls at once and answers for each of them; a call without a live lock is passed over, and
// its neighbours go on. The rules S1 to S5 stand in `0001-tables.ts`.
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
//   T5. Where a key is given, "+ 0" keeps a second condition, and another index, from being taken for a better one.
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
    ready_at = CASE WHEN s.locked_until IS NULL THEN LEAST(s.ready_at, excluded.ready_at) ELSE s.ready_at END,
    place = CASE WHEN s.locked_until IS NULL THEN LEAST(s.place, excluded.place) ELSE s.place END,
    place_order = CASE
      WHEN s.locked_until IS NULL AND excluded.place < s.place THEN excluded.place_order
      ELSE s.place_order
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

-- Whether the instance has run, or is about to.
CREATE FUNCTION {schema}.has_begun(p_id text) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = p_id)
    OR EXISTS (SELECT 1 FROM {schema}.executions AS e WHERE e.instance_id = p_id)
    OR EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = p_id AND m.kind = 'start')
$$;

-- p_messages: [{ call, instance, due, visible, kind, parent, timer_execution, timer, item, absent }]. With "absent" a start
-- is sent only if the instance has not begun. Two starts of one instance are never in one call. Answers which were sent.
CREATE FUNCTION {schema}.enqueue_messages(p_messages json) RETURNS TABLE (call integer)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_begun integer[];
  v_ids text[];
  v_visible bigint[];
  v_due bigint[];
BEGIN
  -- Once without a lock, so that a start of what has long begun touches nothing.
  v_begun := ARRAY (
    SELECT m.call FROM json_to_recordset(p_messages) AS m (call integer, instance text, absent boolean)
    WHERE m.absent AND {schema}.has_begun(m.instance)
  );
  SELECT array_agg(m.instance ORDER BY m.call), array_agg(m.visible ORDER BY m.call), array_agg(m.due ORDER BY m.call)
  INTO v_ids, v_visible, v_due
  FROM json_to_recordset(p_messages) AS m (call integer, instance text, visible bigint, due bigint)
  WHERE NOT m.call = ANY (v_begun);
  IF v_ids IS NULL THEN RETURN; END IF;

  PERFORM {schema}.lock_schedule(v_ids, v_visible, v_due); -- S1
  v_begun := v_begun || ARRAY (
    SELECT m.call FROM json_to_recordset(p_messages) AS m (call integer, instance text, absent boolean)
    WHERE m.absent AND NOT m.call = ANY (v_begun) AND {schema}.has_begun(m.instance)
  );
  RETURN QUERY
    WITH sent AS MATERIALIZED (
      SELECT m.* FROM json_to_recordset(p_messages) AS m (
        call integer, instance text, due bigint, visible bigint, kind text, parent text, timer_execution bigint,
        timer bigint, item text
      )
      WHERE NOT m.call = ANY (v_begun)
    ), stored AS (
      INSERT INTO {schema}.messages
        (instance_id, due_at, visible_at, kind, parent_instance_id, timer_execution_id, timer_id, work_item)
      SELECT s.instance, s.due, s.visible, s.kind, s.parent, s.timer_execution, s.timer, s.item FROM sent AS s
      ORDER BY s.call
    )
    SELECT s.call FROM sent AS s;
END
$$;

-- Claims the instances that have been ready longest, one for every token, of versions from p_min to p_max. With p_waits it
-- waits first, for whoever has the row of the oldest locked at the moment. Raises lock_not_available where that takes long (S5).
--
-- Answers in parts, of which "turn" says the ordinal of the token:
--   cold     id: execution, a: instance, b: name, c: version, d: last commit, e: start event (without a row), n: attempts
--   warm     the same, where p_reader has committed last: it may know the history
--   message  id: row, a: work item                  in the order of their due times
--   event    id: event id, a: event                 of cold ones
--   value    id: last update, a: key, b: value      of the key-value store, likewise
--   dropped  a: instance, n: how many queue messages to an instance that nobody has started
--   next     n: when the next row is ready          where there was less than was asked for
--   passed   somebody else had a ready row locked   likewise
CREATE FUNCTION {schema}.fetch_turns(
  p_now bigint, p_until bigint, p_tokens text[], p_reader text, p_min bigint[], p_max bigint[], p_waits boolean
) RETURNS TABLE (part text, turn integer, id bigint, a text, b text, c text, d text, e text, n bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET lock_timeout = '100ms'
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_found text[];
  v_unknown text[];
  v_taken text[] := '{}';
  v_executions bigint[];
  v_cold boolean[];
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
      WHERE s.place <= p_now AND s.ready_at <= p_now
        AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
          BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
      ORDER BY s.place, s.place_order LIMIT 1
    );
    BEGIN
      PERFORM 1 FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_found) FOR UPDATE;
    EXCEPTION WHEN lock_not_available THEN
      NULL; -- S5: others may have it for long. It is passed over.
    END;
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
      WHERE s.place <= p_now AND s.ready_at <= p_now
        AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
          BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
      ORDER BY s.place, s.place_order LIMIT cardinality(p_tokens) - cardinality(v_taken)
      FOR UPDATE OF s SKIP LOCKED
    );
    EXIT WHEN v_found = '{}';

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

  IF cardinality(v_taken) < cardinality(p_tokens) THEN
    -- In this order: whoever commits his claim in between is passed, or the end of his lock is seen.
    RETURN QUERY
      SELECT 'passed', 0, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::bigint
      WHERE EXISTS (
        SELECT 1
        FROM {schema}.schedule AS s
        LEFT JOIN LATERAL (
          SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = s.instance_id OFFSET 0
        ) AS i ON true
        LEFT JOIN LATERAL (
          SELECT x.pinned_major, x.pinned_minor, x.pinned_patch FROM {schema}.executions AS x
          WHERE x.instance_id = s.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
        ) AS x ON true
        WHERE s.place <= p_now AND s.ready_at <= p_now
          AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
            BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))
      );
    RETURN QUERY
      SELECT 'next', 0, 0::bigint, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text,
             LEAST(
               (
                 SELECT s.place FROM {schema}.schedule AS s
                 WHERE s.place > p_now AND s.ready_at IS NOT NULL
                 ORDER BY s.place LIMIT 1
               ),
               (SELECT min(s.ready_at) FROM {schema}.schedule AS s WHERE s.place <= p_now AND s.ready_at > p_now)
             );
  END IF;
  IF v_taken = '{}' THEN RETURN; END IF;

  SELECT array_agg(known.execution_id ORDER BY known.n), array_agg(known.is_cold ORDER BY known.n)
  INTO v_executions, v_cold
  FROM (
    SELECT t.n,
           COALESCE(
             i.current_execution_id,
             (SELECT max(x.execution_id) FROM {schema}.executions AS x WHERE x.instance_id = t.id),
             1
           ) AS execution_id,
           i.last_commit IS NULL OR i.last_committer IS DISTINCT FROM p_reader AS is_cold
    FROM unnest(v_taken) WITH ORDINALITY AS t (id, n)
    LEFT JOIN LATERAL (
      SELECT i.current_execution_id, i.last_commit, i.last_committer FROM {schema}.instances AS i
      WHERE i.instance_id = t.id OFFSET 0
    ) AS i ON true
  ) AS known;

  RETURN QUERY
    SELECT CASE WHEN v_cold[t.n] THEN 'cold' ELSE 'warm' END, t.n::integer, v_executions[t.n], t.id,
           i.orchestration_name, i.orchestration_version, i.last_commit,
           CASE WHEN i.instance_id IS NULL THEN (
             SELECT h.event_data FROM {schema}.history AS h
             WHERE h.instance_id = t.id AND h.event_type = 'OrchestrationStarted'
             ORDER BY h.execution_id DESC LIMIT 1
           ) END,
           s.attempts::bigint
    FROM unnest(v_taken) WITH ORDINALITY AS t (id, n)
    CROSS JOIN LATERAL (SELECT s.attempts FROM {schema}.schedule AS s WHERE s.instance_id = t.id OFFSET 0) AS s
    LEFT JOIN LATERAL (
      SELECT i.instance_id, i.orchestration_name, i.orchestration_version, i.last_commit FROM {schema}.instances AS i
      WHERE i.instance_id = t.id OFFSET 0
    ) AS i ON true
    ORDER BY t.n;
  RETURN QUERY
    SELECT 'message', t.n::integer, m.id, m.work_item, NULL, NULL, NULL, NULL, NULL::bigint
    FROM unnest(v_taken) WITH ORDINALITY AS t (id, n)
    CROSS JOIN LATERAL (
      SELECT m.id, m.due_at, m.work_item FROM {schema}.messages AS m
      WHERE m.instance_id = t.id AND m.visible_at <= p_now OFFSET 0
    ) AS m
    ORDER BY t.n, m.due_at, m.id;
  IF NOT (true = ANY (v_cold)) THEN RETURN; END IF;
  RETURN QUERY
    SELECT 'event', t.n::integer, h.event_id, h.event_data, NULL, NULL, NULL, NULL, NULL::bigint
    FROM unnest(v_taken) WITH ORDINALITY AS t (id, n)
    CROSS JOIN LATERAL (
      SELECT h.event_id, h.event_data FROM {schema}.history AS h
      WHERE h.instance_id = t.id AND h.execution_id = v_executions[t.n] OFFSET 0
    ) AS h
    WHERE v_cold[t.n]
    ORDER BY t.n, h.event_id;
  RETURN QUERY
    SELECT 'value', t.n::integer, k.last_updated_at, k.key, k.value, NULL, NULL, NULL, NULL::bigint
    FROM unnest(v_taken) WITH ORDINALITY AS t (id, n)
    CROSS JOIN LATERAL (
      SELECT k.key, k.value, k.last_updated_at FROM {schema}.kv_store AS k WHERE k.instance_id = t.id OFFSET 0
    ) AS k
    WHERE v_cold[t.n];
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

-- Commits turns.
--   p_turns       [{ call, token, execution, name, version, parent, status, output, major, minor, patch }]
--   p_events      [{ call, id, type, data }]
--   p_statuses    [{ call, status }]                       custom statuses; null: none
--   p_values      [{ call, key, value, at, all }]          changes of key-values, each key once, "all" first; null: none
--   p_activities  [{ n, call, instance, execution, id, tag, session, item }]   in the order of n
--   p_messages    [{ n, call, instance, due, visible, kind, parent, timer_execution, timer, item }]   likewise
--   p_cancelled   [{ call, instance, execution, id }]      activities; null: none
--   p_timers      [{ call, instance, execution, id }]      timers to cancel; null: none
-- An event that is there already raises unique_violation, and nothing of anybody is written. Answers for those whose lock
-- was live: the instance, and when it is ready again; null: when somebody sends to it.
CREATE FUNCTION {schema}.ack_turns(
  p_now bigint, p_committer text, p_turns json, p_events json, p_statuses json, p_values json, p_activities json,
  p_messages json, p_cancelled json, p_timers json
) RETURNS TABLE (call integer, instance text, ready_at bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_seen integer[];
  v_ids text[];
  v_others text[];
  v_visible bigint[];
  v_due bigint[];
  -- By call, which count from 0: whose turn it is (null: the lock is not live), and of which execution.
  v_instances text[];
  v_executions bigint[];
  v_cancelled bigint[];
BEGIN
  -- A look, to know which rows to lock. A lock that is not live now never will be again.
  SELECT array_agg(t.call), array_agg(s.instance_id) INTO v_seen, v_ids
  FROM json_to_recordset(p_turns) AS t (call integer, token text)
  CROSS JOIN LATERAL (
    SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.lock_token = t.token AND s.locked_until > p_now OFFSET 0
  ) AS s;
  IF v_seen IS NULL THEN RETURN; END IF;
  SELECT array_agg(m.instance ORDER BY m.n), array_agg(m.visible ORDER BY m.n), array_agg(m.due ORDER BY m.n)
  INTO v_others, v_visible, v_due
  FROM json_to_recordset(p_messages) AS m (n integer, call integer, instance text, visible bigint, due bigint)
  JOIN unnest(v_seen, v_ids) AS sender (call, id) ON sender.call = m.call
  WHERE m.instance <> sender.id;

  -- S2: their own rows and those of whom they write to, in one order. Whom a neighbour in this batch writes to may lose its
  -- own lock before it is our turn; the message is to be found all the same (S3).
  IF v_others IS NULL THEN
    PERFORM 1 FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_ids) ORDER BY s.instance_id FOR UPDATE;
  ELSE
    PERFORM {schema}.lock_schedule(v_others || v_ids, v_visible, v_due);
  END IF;
  -- S1
  SELECT array_agg(s.instance_id ORDER BY t.call), array_agg(t.execution ORDER BY t.call)
  INTO v_instances, v_executions
  FROM json_to_recordset(p_turns) AS t (call integer, token text, execution bigint)
  LEFT JOIN LATERAL (
    SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.lock_token = t.token AND s.locked_until > p_now OFFSET 0
  ) AS s ON true;
  IF cardinality(array_remove(v_instances, NULL)) < cardinality(v_ids) THEN
    -- Somebody was deleted or taken over in between; its row may be one that the lock has made.
    DELETE FROM {schema}.schedule AS s
    WHERE s.instance_id = ANY (v_ids) AND s.locked_until IS NULL AND s.ready_at IS NULL
      AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id OFFSET 0);
  END IF;
  v_ids := array_remove(v_instances, NULL);
  IF v_ids = '{}' THEN RETURN; END IF;

  DELETE FROM {schema}.messages AS m
  WHERE m.id = ANY (ARRAY (SELECT unnest(s.batch) FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_ids)));

  INSERT INTO {schema}.instances AS i
    (instance_id, orchestration_name, orchestration_version, current_execution_id, parent_instance_id, last_commit,
     last_committer, created_at, updated_at)
  SELECT v_instances[t.call + 1], t.name, t.version, t.execution, t.parent, t.token, p_committer, p_now, p_now
  FROM json_to_recordset(p_turns) AS t (call integer, token text, execution bigint, name text, version text, parent text)
  WHERE v_instances[t.call + 1] IS NOT NULL AND t.name IS NOT NULL AND t.version IS NOT NULL
  ORDER BY t.call
  ON CONFLICT (instance_id) DO UPDATE SET
    orchestration_name = excluded.orchestration_name,
    orchestration_version = excluded.orchestration_version,
    current_execution_id = GREATEST(i.current_execution_id, excluded.current_execution_id),
    last_commit = excluded.last_commit,
    last_committer = excluded.last_committer,
    updated_at = excluded.updated_at;
  UPDATE {schema}.instances AS i SET
    current_execution_id = GREATEST(i.current_execution_id, t.execution),
    last_commit = t.token,
    last_committer = p_committer,
    updated_at = p_now
  FROM json_to_recordset(p_turns) AS t (call integer, token text, execution bigint, name text, version text)
  CROSS JOIN LATERAL (
    SELECT r.ctid AS tid FROM {schema}.instances AS r WHERE r.instance_id = v_instances[t.call + 1] OFFSET 0
  ) AS r
  WHERE i.ctid = r.tid AND (t.name IS NULL OR t.version IS NULL);

  INSERT INTO {schema}.executions (instance_id, execution_id, started_at)
  SELECT v_instances[t.call + 1], t.execution, p_now
  FROM json_to_recordset(p_turns) AS t (call integer, execution bigint)
  WHERE v_instances[t.call + 1] IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM {schema}.executions AS x
    WHERE x.instance_id = v_instances[t.call + 1] AND x.execution_id = t.execution
    OFFSET 0
  );
  UPDATE {schema}.executions AS x SET
    status = COALESCE(t.status, x.status),
    output = CASE WHEN t.status IS NULL THEN x.output ELSE t.output END,
    completed_at = CASE WHEN t.status IS NULL THEN x.completed_at WHEN t.status = 'Running' THEN NULL ELSE p_now END,
    pinned_major = COALESCE(t.major, x.pinned_major),
    pinned_minor = COALESCE(t.minor, x.pinned_minor),
    pinned_patch = COALESCE(t.patch, x.pinned_patch)
  FROM json_to_recordset(p_turns) AS t (
    call integer, execution bigint, status text, output text, major bigint, minor bigint, patch bigint
  )
  CROSS JOIN LATERAL (
    SELECT r.ctid AS tid FROM {schema}.executions AS r
    WHERE r.instance_id = v_instances[t.call + 1] AND r.execution_id = t.execution OFFSET 0
  ) AS r
  WHERE x.ctid = r.tid AND (t.status IS NOT NULL OR t.major IS NOT NULL);

  INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
  SELECT v_instances[e.call + 1], v_executions[e.call + 1], e.id, e.type, e.data
  FROM json_to_recordset(p_events) AS e (call integer, id bigint, type text, data text)
  WHERE v_instances[e.call + 1] IS NOT NULL;

  IF p_statuses IS NOT NULL THEN
    UPDATE {schema}.instances AS i SET
      custom_status = c.status,
      custom_status_version = i.custom_status_version + 1
    FROM json_to_recordset(p_statuses) AS c (call integer, status text)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.instances AS r WHERE r.instance_id = v_instances[c.call + 1] OFFSET 0
    ) AS r
    WHERE i.ctid = r.tid;
  END IF;
  PERFORM {schema}.change_values(p_now, v_instances, p_values);
  PERFORM {schema}.merge_values(ARRAY (
    SELECT v_instances[t.call + 1] FROM json_to_recordset(p_turns) AS t (call integer, status text)
    WHERE v_instances[t.call + 1] IS NOT NULL AND t.status <> 'Running'
  ));

  INSERT INTO {schema}.activities
    (instance_id, execution_id, activity_id, tag, session_id, ready_at, enqueued_at, work_item)
  SELECT a.instance, a.execution, a.id, a.tag, a.session, p_now, p_now, a.item
  FROM json_to_recordset(p_activities) AS a (
    n integer, call integer, instance text, execution bigint, id bigint, tag text, session text, item text
  )
  WHERE v_instances[a.call + 1] IS NOT NULL
  ORDER BY a.n;
  INSERT INTO {schema}.messages
    (instance_id, due_at, visible_at, kind, parent_instance_id, timer_execution_id, timer_id, work_item)
  SELECT m.instance, m.due, m.visible, m.kind, m.parent, m.timer_execution, m.timer, m.item
  FROM json_to_recordset(p_messages) AS m (
    n integer, call integer, instance text, due bigint, visible bigint, kind text, parent text, timer_execution bigint,
    timer bigint, item text
  )
  WHERE v_instances[m.call + 1] IS NOT NULL
  ORDER BY m.n;

  -- After what was added: what stands in both lists is gone.
  IF p_cancelled IS NOT NULL THEN
    v_cancelled := ARRAY (
      SELECT a.id
      FROM json_to_recordset(p_cancelled) AS c (call integer, instance text, execution bigint, id bigint)
      CROSS JOIN LATERAL (
        SELECT a.id FROM {schema}.activities AS a
        WHERE a.instance_id = c.instance AND a.execution_id = c.execution AND a.activity_id = c.id OFFSET 0
      ) AS a
      WHERE v_instances[c.call + 1] IS NOT NULL
    );
    PERFORM 1 FROM {schema}.activities AS a WHERE a.id = ANY (v_cancelled) ORDER BY a.id FOR UPDATE; -- S2
    DELETE FROM {schema}.activities AS a WHERE a.id = ANY (v_cancelled);
  END IF;
  IF p_timers IS NOT NULL THEN
    DELETE FROM {schema}.messages AS m WHERE m.id = ANY (ARRAY (
      SELECT timer.id
      FROM json_to_recordset(p_timers) AS c (call integer, instance text, execution bigint, id bigint)
      CROSS JOIN LATERAL (
        SELECT m.id FROM {schema}.messages AS m
        WHERE m.instance_id = c.instance AND m.timer_execution_id = c.execution AND m.timer_id = c.id OFFSET 0
      ) AS timer
      WHERE v_instances[c.call + 1] IS NOT NULL
    ));
  END IF;

  PERFORM {schema}.release_schedule(v_ids, true);
  RETURN QUERY
    SELECT v.n::integer - 1, v.id, s.ready_at
    FROM unnest(v_instances) WITH ORDINALITY AS v (id, n)
    LEFT JOIN LATERAL (SELECT s.ready_at FROM {schema}.schedule AS s WHERE s.instance_id = v.id OFFSET 0) AS s ON true
    WHERE v.id IS NOT NULL;
END
$$;

-- What turns change in key-values. p_instances: by call, as in ack_turns.
CREATE FUNCTION {schema}.change_values(p_now bigint, p_instances text[], p_values json) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF p_values IS NULL THEN RETURN; END IF;
  -- A clear of everything hides every key that the instance has, in either table.
  INSERT INTO {schema}.kv_delta AS d (instance_id, key, value, last_updated_at)
  SELECT had.instance_id, had.key, NULL, p_now
  FROM json_to_recordset(p_values) AS c (call integer, "all" boolean)
  CROSS JOIN LATERAL (
    SELECT k.instance_id, k.key FROM {schema}.kv_store AS k WHERE k.instance_id = p_instances[c.call + 1]
    UNION
    SELECT k.instance_id, k.key FROM {schema}.kv_delta AS k WHERE k.instance_id = p_instances[c.call + 1]
  ) AS had
  WHERE c."all"
  ON CONFLICT (instance_id, key) DO UPDATE SET value = NULL, last_updated_at = excluded.last_updated_at;
  INSERT INTO {schema}.kv_delta AS d (instance_id, key, value, last_updated_at)
  SELECT p_instances[c.call + 1], c.key, c.value, c.at
  FROM json_to_recordset(p_values) AS c (call integer, key text, value text, at bigint, "all" boolean)
  WHERE p_instances[c.call + 1] IS NOT NULL AND NOT c."all"
  ON CONFLICT (instance_id, key) DO UPDATE SET value = excluded.value, last_updated_at = excluded.last_updated_at;
END
$$;

-- The executions of these are over: what they changed is what the next ones start from.
CREATE FUNCTION {schema}.merge_values(p_ids text[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = ANY (p_ids)) THEN RETURN; END IF;
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

-- Locks the rows of those who hold these tokens, in the order of their ids (S2, T4). p_turns: [{ token }].
CREATE FUNCTION {schema}.lock_turns(p_turns json) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_ids text[];
  v_tokens text[];
BEGIN
  SELECT array_agg(s.instance_id), array_agg(t.token) INTO v_ids, v_tokens
  FROM json_to_recordset(p_turns) AS t (token text)
  CROSS JOIN LATERAL (SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.lock_token = t.token OFFSET 0) AS s;
  PERFORM 1
  FROM {schema}.schedule AS s
  WHERE s.instance_id = ANY (v_ids) AND s.lock_token = ANY (v_tokens)
  ORDER BY s.instance_id
  FOR UPDATE;
END
$$;

-- Gives instances back. p_turns: [{ call, token, until, taken_back }]; "until" keeps the instance back until then,
-- "taken_back" is how many attempts are not to count. Answers for those that were there, as ack_turns.
CREATE FUNCTION {schema}.abandon_turns(p_turns json) RETURNS TABLE (call integer, instance text, ready_at bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  v_calls integer[];
  v_ids text[];
BEGIN
  PERFORM {schema}.lock_turns(p_turns); -- S1, S2
  SELECT array_agg(t.call), array_agg(s.instance_id) INTO v_calls, v_ids
  FROM json_to_recordset(p_turns) AS t (call integer, token text)
  CROSS JOIN LATERAL (SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.lock_token = t.token OFFSET 0) AS s;
  IF v_calls IS NULL THEN RETURN; END IF;

  UPDATE {schema}.schedule AS s SET
    lock_token = NULL,
    batch = NULL,
    attempts = GREATEST(s.attempts - t.taken_back, 0),
    locked_until = t.until,
    ready_at = COALESCE(t.until, s.ready_at)
  FROM json_to_recordset(p_turns) AS t (token text, until bigint, taken_back integer)
  CROSS JOIN LATERAL (SELECT r.ctid AS tid FROM {schema}.schedule AS r WHERE r.lock_token = t.token OFFSET 0) AS r
  WHERE s.ctid = r.tid;
  PERFORM {schema}.release_schedule(
    ARRAY (SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_ids) AND s.locked_until IS NULL),
    false
  );
  RETURN QUERY
    SELECT v.call, v.id, s.ready_at
    FROM unnest(v_calls, v_ids) AS v (call, id)
    LEFT JOIN LATERAL (SELECT s.ready_at FROM {schema}.schedule AS s WHERE s.instance_id = v.id OFFSET 0) AS s ON true;
END
$$;

-- Renews live locks. p_turns: [{ call, token, until }]. Answers which were live.
CREATE FUNCTION {schema}.renew_turns(p_now bigint, p_turns json) RETURNS TABLE (call integer)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
  PERFORM {schema}.lock_turns(p_turns); -- S2
  RETURN QUERY
    UPDATE {schema}.schedule AS s SET locked_until = t.until, ready_at = t.until
    FROM json_to_recordset(p_turns) AS t (call integer, token text, until bigint)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.schedule AS r WHERE r.lock_token = t.token AND r.locked_until > p_now OFFSET 0
    ) AS r
    WHERE s.ctid = r.tid
    RETURNING t.call;
END
$$;

-- The holder of this lock finds that its start cannot be read: nobody has said what the instance is. No attempt counts. Of
-- what has come meanwhile nobody knows anything yet: it is to be fetched.
CREATE FUNCTION {schema}.set_turn_aside(p_now bigint, p_token text)
RETURNS TABLE (dropped_for text, dropped bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off
SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_id text;
  v_batch bigint[];
BEGIN
  SELECT s.instance_id, s.batch INTO v_id, v_batch FROM {schema}.schedule AS s WHERE s.lock_token = p_token FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  UPDATE {schema}.schedule SET attempts = GREATEST(attempts - 1, 0) WHERE instance_id = v_id;
  IF EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = v_id AND m.id <> ALL (v_batch)) THEN
    PERFORM {schema}.release_schedule(ARRAY[v_id], false);
  ELSE
    RETURN QUERY SELECT * FROM {schema}.set_instances_aside(p_now, ARRAY[v_id]);
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
  INSERT INTO {schema}.history (instance_id, execution_id, event_id, event_type, event_data)
  SELECT p_id, p_execution, e.id, e.type, e.data
  FROM json_to_recordset(p_events) AS e (id bigint, type text, data text);
  UPDATE {schema}.instances SET last_commit = NULL, last_committer = NULL WHERE instance_id = p_id;
  PERFORM {schema}.release_schedule(
    ARRAY (SELECT s.instance_id FROM {schema}.schedule AS s WHERE s.instance_id = p_id AND s.locked_until IS NULL),
    false
  );
  RETURN QUERY SELECT COALESCE((SELECT s.ready_at <= p_now FROM {schema}.schedule AS s WHERE s.instance_id = p_id), false);
END
$$;
`;
