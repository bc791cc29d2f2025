// providers/postgres/migrations/0003-activities.ts — activities and sessions: how they are queued, claimed, done and kept.
//
// As in `0002-turns.ts`: many calls at once, an answer for each, always by index (T1 to T5).

import { INDEXES_ONLY, LOOPS_ONLY, OWN_NAMES } from "./fragments.js";

export const activities = `
-- p_activities: [{ n, instance, execution, id, tag, session, item }], in the order of n.
CREATE FUNCTION {schema}.enqueue_activities(p_now bigint, p_activities json) RETURNS void
LANGUAGE sql VOLATILE AS $$
  INSERT INTO {schema}.activities
    (instance_id, execution_id, activity_id, tag, session_id, ready_at, enqueued_at, work_item)
  SELECT a.instance, a.execution, a.id, a.tag, a.session, p_now, p_now, a.item
  FROM json_to_recordset(p_activities) AS a (
    n integer, instance text, execution bigint, id bigint, tag text, session text, item text
  )
  ORDER BY a.n
$$;

-- The tags of all work that stands in line, each found by one step in the index.
CREATE FUNCTION {schema}.queued_tags() RETURNS text[]
LANGUAGE sql STABLE AS $$
  WITH RECURSIVE queued (tag) AS (
    (SELECT a.tag FROM {schema}.activities AS a WHERE NOT a.is_held ORDER BY a.tag LIMIT 1)
    UNION ALL
    SELECT (SELECT a.tag FROM {schema}.activities AS a WHERE NOT a.is_held AND a.tag > queued.tag ORDER BY a.tag LIMIT 1)
    FROM queued WHERE queued.tag IS NOT NULL
  )
  SELECT COALESCE(pg_catalog.array_agg(queued.tag), '{}') FROM queued WHERE queued.tag IS NOT NULL
$$;

-- Claims the oldest activities that suit, at most one for every token. p_tags: as stored; null: any. p_owners: for each token
-- who may have the sessions of the work, until p_session_until; null: only work without a session. With p_lapses it looks first
-- for locks that are over; else only where it finds too little. With p_waits it waits first, for whoever has the oldest of them
-- locked at the moment. Raises lock_not_available where that takes long (S5).
--
-- Answers in parts:
--   work    turn: the ordinal of the token, id: row, a: work item, n: attempts, is_over: whether nobody wants its outcome
--   next    n: when the next of them is ready, or a session ends, is_over: whether nothing more is ready for whomever
--   passed  there may be more: others had some locked, or have just taken a session, and there was less than was asked for
CREATE FUNCTION {schema}.fetch_activities(
  p_now bigint, p_until bigint, p_tokens text[], p_tags text[], p_owners text[], p_session_until bigint,
  p_lapses boolean, p_waits boolean
) RETURNS TABLE (part text, turn integer, id bigint, a text, n bigint, is_over boolean)
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} SET lock_timeout = '100ms'
${OWN_NAMES} AS $$
#variable_conflict use_column
DECLARE
  v_tags text[];
  v_owners text[] := array_remove(p_owners, NULL);
  v_left integer := cardinality(p_tokens);
  v_tried bigint[] := '{}';
  v_locked bigint[] := '{}';
  v_found bigint[];
  v_given integer[];
  -- What is handed out, and to whom.
  v_taken bigint[] := '{}';
  v_turns integer[] := '{}';
  -- Sessions whose owners have all that they asked for.
  v_closed text[] := '{}';
  v_waits boolean := p_waits;
  v_is_lapsed boolean := false;
BEGIN
  IF p_lapses AND NOT p_waits THEN
    PERFORM {schema}.lapse_activities(p_now);
    v_is_lapsed := true;
  END IF;
  v_tags := COALESCE(p_tags, {schema}.queued_tags());
  WHILE v_left > 0 LOOP
    v_found := ARRAY (
      SELECT best.id
      FROM unnest(v_tags) AS wanted (tag)
      CROSS JOIN LATERAL (
        SELECT q.id, q.ready_at
        FROM {schema}.activities AS q
        WHERE q.tag = wanted.tag AND NOT q.is_held AND q.ready_at <= p_now
          -- Not one by one: a few sessions may have much in the queue. They are gathered once, when the first is met.
          AND (q.session_id IS NULL OR (v_owners <> '{}' AND q.session_id <> ALL (v_closed) AND q.session_id NOT IN (
            SELECT s.session_id FROM {schema}.sessions AS s
            WHERE s.locked_until > p_now AND s.owner_id <> ALL (v_owners)
          )))
          AND q.id <> ALL (v_tried)
        ORDER BY q.ready_at, q.id + 0
        LIMIT v_left
      ) AS best
      ORDER BY best.ready_at, best.id
      LIMIT v_left
    );
    IF v_found = '{}' AND v_waits THEN
      v_found := ARRAY (
        SELECT q.id FROM {schema}.activities AS q
        WHERE q.is_held AND q.ready_at <= p_now AND (p_tags IS NULL OR q.tag || '' = ANY (p_tags))
        ORDER BY q.ready_at LIMIT 1
      );
    END IF;
    IF v_waits THEN
      v_waits := false;
      BEGIN
        PERFORM 1 FROM {schema}.activities AS q WHERE q.id = v_found[1] FOR UPDATE; -- S2: it holds nothing yet.
      EXCEPTION WHEN lock_not_available THEN
        NULL; -- S5: others may have it for long. It is passed over.
      END;
      CONTINUE;
    END IF;
    IF v_found = '{}' THEN
      EXIT WHEN v_is_lapsed;
      v_is_lapsed := true;
      EXIT WHEN {schema}.lapse_activities(p_now) = 0;
      v_tags := COALESCE(p_tags, {schema}.queued_tags());
      CONTINUE;
    END IF;
    v_tried := v_tried || v_found;

    -- What somebody else has locked he is taking, giving back or removing; or he leaves it after all, and does not tell.
    v_found := ARRAY (
      SELECT locked.id FROM (
        SELECT q.id, q.ready_at FROM {schema}.activities AS q
        WHERE q.id = ANY (v_found) AND NOT q.is_held AND q.ready_at + 0 <= p_now
        ORDER BY q.id
        FOR UPDATE SKIP LOCKED
      ) AS locked
      ORDER BY locked.ready_at, locked.id
    );
    v_locked := v_locked || v_found;
    CONTINUE WHEN v_found = '{}';
    v_given := {schema}.hand_out_activities(p_now, v_found, v_tags, p_owners, v_taken, v_turns);
    SELECT v_taken || array_agg(f.id) FILTER (WHERE f.turn IS NOT NULL),
           v_turns || array_agg(f.turn) FILTER (WHERE f.turn IS NOT NULL),
           v_closed || array_agg(q.session_id) FILTER (WHERE f.turn IS NULL AND q.session_id IS NOT NULL)
    INTO v_taken, v_turns, v_closed
    FROM unnest(v_found, v_given) AS f (id, turn)
    CROSS JOIN LATERAL (SELECT q.session_id FROM {schema}.activities AS q WHERE q.id = f.id OFFSET 0) AS q;
    v_left := cardinality(p_tokens) - cardinality(v_taken);
  END LOOP;

  -- S2: all activities are locked by now.
  v_turns := {schema}.claim_sessions(p_now, v_taken, v_turns, p_owners, p_session_until);
  v_left := cardinality(p_tokens) - cardinality(array_remove(v_turns, NULL));
  UPDATE {schema}.activities AS q SET
    lock_token = p_tokens[f.turn],
    ready_at = p_until,
    is_held = true,
    attempts = q.attempts + 1
  FROM unnest(v_taken, v_turns) AS f (id, turn)
  CROSS JOIN LATERAL (SELECT r.ctid AS tid FROM {schema}.activities AS r WHERE r.id = f.id OFFSET 0) AS r
  WHERE q.ctid = r.tid AND f.turn IS NOT NULL;

  IF v_left > 0 THEN
    RETURN QUERY
      SELECT 'passed', 0, 0::bigint, NULL::text, NULL::bigint, false
      WHERE array_position(v_turns, NULL) IS NOT NULL OR EXISTS (
        SELECT 1 FROM {schema}.activities AS q
        WHERE q.id = ANY (v_tried) AND q.id <> ALL (v_locked) AND q.ready_at + 0 <= p_now
      ) OR EXISTS (
        SELECT 1 FROM {schema}.activities AS q
        WHERE q.is_held AND q.ready_at <= p_now AND (p_tags IS NULL OR q.tag || '' = ANY (p_tags))
      );
  END IF;
  RETURN QUERY
    SELECT 'next', 0, 0::bigint, NULL::text, LEAST(
      (
        SELECT min(soonest.ready_at)
        FROM unnest(v_tags) AS wanted (tag)
        CROSS JOIN LATERAL (
          SELECT q.ready_at FROM {schema}.activities AS q
          WHERE q.tag = wanted.tag AND NOT q.is_held AND q.ready_at > p_now
          ORDER BY q.ready_at LIMIT 1
        ) AS soonest
      ),
      (
        SELECT q.ready_at FROM {schema}.activities AS q
        WHERE q.is_held AND q.ready_at > p_now AND (p_tags IS NULL OR q.tag || '' = ANY (p_tags))
        ORDER BY q.ready_at LIMIT 1
      ),
      (
        SELECT s.locked_until FROM {schema}.sessions AS s
        WHERE v_owners <> '{}' AND s.locked_until > p_now
        ORDER BY s.locked_until LIMIT 1
      )
    ), NOT EXISTS (
      SELECT 1 FROM unnest(v_tags) AS wanted (tag)
      WHERE EXISTS (
        SELECT 1 FROM {schema}.activities AS q
        WHERE q.tag = wanted.tag AND NOT q.is_held AND q.ready_at <= p_now OFFSET 0
      )
    ) AND NOT EXISTS (
      SELECT 1 FROM {schema}.activities AS q
      WHERE q.is_held AND q.ready_at <= p_now AND (p_tags IS NULL OR q.tag || '' = ANY (p_tags))
    );
  RETURN QUERY
    SELECT 'work', t.turn, q.id, q.work_item, q.attempts::bigint,
           COALESCE(i.current_execution_id <> q.execution_id OR x.status <> 'Running', false)
    FROM unnest(v_taken, v_turns) AS t (id, turn)
    CROSS JOIN LATERAL (
      SELECT q.id, q.instance_id, q.execution_id, q.work_item, q.attempts FROM {schema}.activities AS q
      WHERE q.id = t.id OFFSET 0
    ) AS q
    LEFT JOIN LATERAL (
      SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = q.instance_id OFFSET 0
    ) AS i ON true
    LEFT JOIN LATERAL (
      SELECT x.status FROM {schema}.executions AS x
      WHERE x.instance_id = q.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
    ) AS x ON true
    WHERE t.turn IS NOT NULL
    ORDER BY t.turn;
END
$$;

-- Who gets which of these activities, oldest first: for each the ordinal of an owner that has nothing yet, or null. Work of a
-- session goes to its owner, or to the first who may take it on; work without one to anybody. A session of which somebody
-- else has older work locked he is about to take. p_taken, p_turns: what was handed out before.
CREATE FUNCTION {schema}.hand_out_activities(
  p_now bigint, p_ids bigint[], p_tags text[], p_owners text[], p_taken bigint[], p_turns integer[]
) RETURNS integer[]
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_row record;
  v_turn integer;
  v_turns integer[] := p_turns;
  v_given integer[] := '{}';
  v_sessions text[];
  v_session_owners text[];
  v_owner text;
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM unnest(p_ids) AS f (id)
    CROSS JOIN LATERAL (SELECT q.session_id FROM {schema}.activities AS q WHERE q.id = f.id OFFSET 0) AS q
    WHERE q.session_id IS NOT NULL
  ) THEN
    RETURN (ARRAY (
      SELECT o.n::integer FROM generate_subscripts(p_owners, 1) AS o (n) WHERE o.n <> ALL (p_turns) ORDER BY o.n
    ))[1:cardinality(p_ids)];
  END IF;
  SELECT array_agg(q.session_id), array_agg(p_owners[t.turn]) INTO v_sessions, v_session_owners
  FROM unnest(p_taken, p_turns) AS t (id, turn)
  CROSS JOIN LATERAL (SELECT q.session_id FROM {schema}.activities AS q WHERE q.id = t.id OFFSET 0) AS q
  WHERE q.session_id IS NOT NULL;
  FOR v_row IN
    SELECT q.session_id, s.owner_id, EXISTS (
      SELECT 1 FROM {schema}.activities AS older
      WHERE older.session_id = q.session_id AND older.tag || '' = ANY (p_tags) AND older.ready_at + 0 <= p_now
        AND (older.ready_at, older.id) < (q.ready_at, q.id) AND older.id <> ALL (p_ids || p_taken)
      OFFSET 0
    ) AS is_behind
    FROM unnest(p_ids) WITH ORDINALITY AS f (id, n)
    CROSS JOIN LATERAL (
      SELECT q.id, q.session_id, q.ready_at FROM {schema}.activities AS q WHERE q.id = f.id OFFSET 0
    ) AS q
    LEFT JOIN LATERAL (
      SELECT s.owner_id FROM {schema}.sessions AS s
      WHERE s.session_id = q.session_id AND s.locked_until + 0 > p_now OFFSET 0
    ) AS s ON true
    ORDER BY f.n
  LOOP
    -- A session that is given away here has its new owner at once.
    v_owner := COALESCE(v_row.owner_id, v_session_owners[array_position(v_sessions, v_row.session_id)]);
    v_turn := (
      SELECT min(o.n)::integer FROM unnest(p_owners) WITH ORDINALITY AS o (owner, n)
      WHERE NOT v_row.is_behind AND o.n <> ALL (v_turns)
        AND (v_row.session_id IS NULL OR (o.owner IS NOT NULL AND (v_owner IS NULL OR o.owner = v_owner)))
    );
    v_given := array_append(v_given, v_turn);
    CONTINUE WHEN v_turn IS NULL;
    v_turns := v_turns || v_turn;
    IF v_row.session_id IS NOT NULL AND v_owner IS NULL THEN
      v_sessions := v_sessions || v_row.session_id;
      v_session_owners := v_session_owners || p_owners[v_turn];
    END IF;
  END LOOP;
  RETURN v_given;
END
$$;

-- Takes the sessions of these activities, which the caller has locked, for those who were to get them. Answers who gets which
-- after all: somebody else may have been faster.
CREATE FUNCTION {schema}.claim_sessions(
  p_now bigint, p_ids bigint[], p_given integer[], p_owners text[], p_session_until bigint
) RETURNS integer[]
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
BEGIN
  IF NOT EXISTS (
    SELECT 1 FROM unnest(p_ids) AS f (id)
    CROSS JOIN LATERAL (SELECT q.session_id FROM {schema}.activities AS q WHERE q.id = f.id OFFSET 0) AS q
    WHERE q.session_id IS NOT NULL
  ) THEN
    RETURN p_given;
  END IF;
  INSERT INTO {schema}.sessions AS s (session_id, owner_id, locked_until, last_activity_at)
  SELECT DISTINCT q.session_id, p_owners[f.turn], p_session_until, p_now
  FROM unnest(p_ids, p_given) AS f (id, turn)
  CROSS JOIN LATERAL (SELECT q.session_id FROM {schema}.activities AS q WHERE q.id = f.id OFFSET 0) AS q
  WHERE f.turn IS NOT NULL AND q.session_id IS NOT NULL
  ORDER BY q.session_id -- S2
  ON CONFLICT (session_id) DO UPDATE SET
    owner_id = excluded.owner_id,
    locked_until = excluded.locked_until,
    last_activity_at = excluded.last_activity_at
  WHERE s.owner_id = excluded.owner_id OR s.locked_until <= p_now;

  RETURN ARRAY (
    SELECT CASE
      WHEN q.session_id IS NULL OR EXISTS (
        SELECT 1 FROM {schema}.sessions AS s
        WHERE s.session_id = q.session_id AND s.owner_id || '' = p_owners[f.turn] AND s.locked_until + 0 > p_now
        OFFSET 0
      ) THEN f.turn
    END
    FROM unnest(p_ids, p_given) WITH ORDINALITY AS f (id, turn, n)
    CROSS JOIN LATERAL (SELECT q.session_id FROM {schema}.activities AS q WHERE q.id = f.id OFFSET 0) AS q
    ORDER BY f.n
  );
END
$$;

-- How many activities any of these owners could claim; a hundred of a tag at most. p_tags, p_owners: as of fetch_activities. With
-- p_lapses, also those whose lock is over.
CREATE FUNCTION {schema}.count_ready_activities(p_now bigint, p_tags text[], p_owners text[], p_lapses boolean)
RETURNS bigint
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_tags text[] := COALESCE(p_tags, {schema}.queued_tags());
  v_owners text[] := array_remove(p_owners, NULL);
  v_count bigint;
BEGIN
  v_count := (
    SELECT count(*) FROM unnest(v_tags) AS wanted (tag)
    CROSS JOIN LATERAL (
      SELECT 1 FROM {schema}.activities AS q
      WHERE q.tag = wanted.tag AND NOT q.is_held AND q.ready_at <= p_now
        AND (q.session_id IS NULL OR (v_owners <> '{}' AND q.session_id NOT IN (
          SELECT s.session_id FROM {schema}.sessions AS s
          WHERE s.locked_until > p_now AND s.owner_id <> ALL (v_owners)
        )))
      LIMIT 100
    ) AS ready
  );
  IF p_lapses THEN
    v_count := v_count + (
      SELECT count(*) FROM (SELECT 1 FROM {schema}.activities AS q WHERE q.is_held AND q.ready_at <= p_now LIMIT 100) AS ended
    );
  END IF;
  RETURN v_count;
END
$$;

-- S6: those whose lock is over stand in line again, but for those whom somebody has locked at the moment. Answers how many they
-- are.
CREATE FUNCTION {schema}.lapse_activities(p_now bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_lapsed bigint;
BEGIN
  WITH ended AS MATERIALIZED (
    SELECT q.ctid AS tid FROM {schema}.activities AS q WHERE q.is_held AND q.ready_at <= p_now FOR UPDATE SKIP LOCKED
  )
  UPDATE {schema}.activities AS q SET is_held = false FROM ended WHERE q.ctid = ended.tid;
  GET DIAGNOSTICS v_lapsed = ROW_COUNT;
  RETURN v_lapsed;
END
$$;

-- Work of these sessions was acked or renewed: they are not idle. An expired session stays expired.
CREATE FUNCTION {schema}.touch_sessions(p_now bigint, p_sessions text[]) RETURNS void
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
BEGIN
  PERFORM 1 FROM {schema}.sessions AS s WHERE s.session_id = ANY (p_sessions) ORDER BY s.session_id FOR UPDATE; -- S2
  UPDATE {schema}.sessions SET last_activity_at = p_now
  WHERE session_id = ANY (p_sessions) AND locked_until + 0 > p_now;
END
$$;

-- Gives activities back. p_acts: [{ call, id, token, until, taken_back }], none twice: "until" keeps it back until then. Answers
-- which were there.
CREATE FUNCTION {schema}.abandon_activities(p_acts json) RETURNS TABLE (call integer)
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
#variable_conflict use_column
BEGIN
  PERFORM 1 FROM {schema}.activities AS q
  WHERE q.id = ANY (ARRAY (SELECT t.id FROM json_to_recordset(p_acts) AS t (id bigint)))
  ORDER BY q.id -- S2
  FOR UPDATE;
  RETURN QUERY
    UPDATE {schema}.activities AS q SET
      lock_token = NULL,
      is_held = false,
      ready_at = COALESCE(t.until, q.enqueued_at),
      attempts = GREATEST(q.attempts - t.taken_back, 0)
    FROM json_to_recordset(p_acts) AS t (call integer, id bigint, token text, until bigint, taken_back integer)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.activities AS r WHERE r.id = t.id AND r.lock_token = t.token OFFSET 0
    ) AS r
    WHERE q.ctid = r.tid
    RETURNING t.call;
END
$$;

-- Renews live locks. p_acts: [{ call, id, token, until }], none twice. Answers which were live, and whether nobody wants the
-- outcome any more.
CREATE FUNCTION {schema}.renew_activities(p_now bigint, p_acts json) RETURNS TABLE (call integer, is_over boolean)
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
#variable_conflict use_column
DECLARE
  v_calls integer[];
  v_ids bigint[];
  v_sessions text[];
BEGIN
  -- S2. What is over is not even locked: whoever looks for work passes over what is.
  PERFORM 1 FROM {schema}.activities AS q
  WHERE q.id = ANY (ARRAY (SELECT t.id FROM json_to_recordset(p_acts) AS t (id bigint))) AND q.ready_at + 0 > p_now
  ORDER BY q.id
  FOR UPDATE;
  WITH renewed AS (
    UPDATE {schema}.activities AS q SET ready_at = t.until
    FROM json_to_recordset(p_acts) AS t (call integer, id bigint, token text, until bigint)
    CROSS JOIN LATERAL (
      SELECT r.ctid AS tid FROM {schema}.activities AS r
      WHERE r.id = t.id AND r.lock_token = t.token AND r.ready_at + 0 > p_now OFFSET 0
    ) AS r
    WHERE q.ctid = r.tid
    RETURNING t.call, q.id, q.session_id
  )
  SELECT array_agg(renewed.call), array_agg(renewed.id), array_agg(renewed.session_id) FILTER (WHERE renewed.session_id IS NOT NULL)
  INTO v_calls, v_ids, v_sessions FROM renewed;
  IF v_calls IS NULL THEN RETURN; END IF;
  IF v_sessions IS NOT NULL THEN
    PERFORM {schema}.touch_sessions(p_now, v_sessions);
  END IF;
  RETURN QUERY
    SELECT v.call, COALESCE(i.current_execution_id <> q.execution_id OR x.status <> 'Running', false)
    FROM unnest(v_calls, v_ids) AS v (call, id)
    CROSS JOIN LATERAL (
      SELECT q.instance_id, q.execution_id FROM {schema}.activities AS q WHERE q.id = v.id OFFSET 0
    ) AS q
    LEFT JOIN LATERAL (
      SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = q.instance_id OFFSET 0
    ) AS i ON true
    LEFT JOIN LATERAL (
      SELECT x.status FROM {schema}.executions AS x
      WHERE x.instance_id = q.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
    ) AS x ON true;
END
$$;

-- Work that cannot be read is kept for whoever wants to look into it, and stands in nobody's way.
CREATE FUNCTION {schema}.set_activity_aside(p_id bigint, p_token text) RETURNS void
LANGUAGE sql VOLATILE AS $$
  UPDATE {schema}.activities SET lock_token = NULL, is_held = false, ready_at = 9007199254740991
  WHERE id = p_id AND lock_token = p_token
$$;

-- Renews the sessions of these owners that are live and were used since a certain time. Answers how many.
CREATE FUNCTION {schema}.renew_sessions(p_now bigint, p_owners text[], p_until bigint, p_used_after bigint)
RETURNS TABLE (renewed bigint)
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_ids text[];
BEGIN
  v_ids := ARRAY (SELECT s.session_id FROM {schema}.sessions AS s WHERE s.owner_id = ANY (p_owners)); -- T4
  PERFORM 1 FROM {schema}.sessions AS s WHERE s.session_id = ANY (v_ids) ORDER BY s.session_id FOR UPDATE; -- S2
  -- Only those: what has come to an owner since would be locked out of order.
  RETURN QUERY
    WITH kept AS (
      UPDATE {schema}.sessions SET locked_until = p_until
      WHERE session_id = ANY (v_ids) AND owner_id = ANY (p_owners)
        AND locked_until + 0 > p_now AND last_activity_at > p_used_after
      RETURNING 1
    )
    SELECT count(*) FROM kept;
END
$$;

-- Removes sessions that are over and have no queued work: that must find its session as it was. Answers how many.
CREATE FUNCTION {schema}.remove_sessions(p_now bigint) RETURNS TABLE (removed bigint)
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_ids text[];
BEGIN
  v_ids := ARRAY (SELECT s.session_id FROM {schema}.sessions AS s WHERE s.locked_until <= p_now); -- T4
  v_ids := ARRAY (
    SELECT s.session_id FROM {schema}.sessions AS s
    WHERE s.session_id = ANY (v_ids) AND s.locked_until + 0 <= p_now
      AND NOT EXISTS (SELECT 1 FROM {schema}.activities AS q WHERE q.session_id = s.session_id OFFSET 0)
    ORDER BY s.session_id
    FOR UPDATE SKIP LOCKED
  );
  DELETE FROM {schema}.sessions WHERE session_id = ANY (v_ids);
  RETURN QUERY SELECT cardinality(v_ids)::bigint;
END
$$;
`;
