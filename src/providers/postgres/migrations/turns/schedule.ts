// providers/postgres/migrations/turns/schedule.ts — the rows of instances in the schedule, and those that say who they are: locked, and let go of.

import { INDEXES_ONLY, LOOPS_ONLY, OWN_NAMES } from "../fragments.js";

export const schedule = `
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
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
`;
