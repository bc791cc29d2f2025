// providers/postgres/migrations/turns/fetch.ts — instances are claimed, the one that has waited longest first.

import { LOOPS_ONLY, OWN_NAMES } from "../fragments.js";

/** Instances that somebody who replays the versions from `p_min` to `p_max` could claim. */
const READY = `FROM {schema}.schedule AS s
      LEFT JOIN LATERAL (
        SELECT i.current_execution_id FROM {schema}.instances AS i WHERE i.instance_id = s.instance_id OFFSET 0
      ) AS i ON true
      LEFT JOIN LATERAL (
        SELECT x.pinned_major, x.pinned_minor, x.pinned_patch FROM {schema}.executions AS x
        WHERE x.instance_id = s.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
      ) AS x ON true
      WHERE s.locked_until IS NULL AND s.place <= p_now AND s.ready_at <= p_now
        AND (x.pinned_major IS NULL OR (x.pinned_major, x.pinned_minor, x.pinned_patch)
          BETWEEN (p_min[1], p_min[2], p_min[3]) AND (p_max[1], p_max[2], p_max[3]))`;

export const fetch = `
-- How many instances somebody who replays these versions could claim; as many as one wants to know of. With p_lapses, also those
-- whose lock is over.
CREATE FUNCTION {schema}.count_ready_turns(
  p_now bigint, p_min bigint[], p_max bigint[], p_lapses boolean, p_most integer
) RETURNS integer
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_count integer;
BEGIN
  v_count := (
    SELECT count(*) FROM (
      SELECT 1
      ${READY}
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} SET lock_timeout = '100ms'
${OWN_NAMES} AS $$
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
      ${READY}
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
      ${READY}
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
`;
