// providers/postgres/migrations/turns/locks.ts — what the holder of a lock does beside committing; and events that come beside all turns.

import { INDEXES_ONLY, LOOPS_ONLY, OWN_NAMES } from "../fragments.js";

export const locks = `
-- Gives instances back. p_turns: [{ call, id, token, until, taken_back }], no instance twice; "until" keeps the instance back
-- until then, "taken_back" is how many attempts are not to count. Answers for those that were there: when each is ready again;
-- null: when somebody sends to it.
CREATE FUNCTION {schema}.abandon_turns(p_turns json) RETURNS TABLE (call integer, ready_at bigint)
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
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
