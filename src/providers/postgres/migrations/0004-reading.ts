// providers/postgres/migrations/0004-reading.ts — what clients ask about one instance, or about many at once.
//
// Every function sees one state of the store: it is stable, and all it reads is as of the statement that calls it. Those of a
// single statement are taken into that one by the planner. The statuses, which many ask for all the time, are planned once
// for a connection, and always go by index. Nothing here looks into an event or a work item: they go out as text, and whoever
// decodes them says what is corrupt.

import { LOOPS_ONLY, OWN_NAMES } from "./fragments.js";

export const reading = `
-- The events of one execution, ascending.
CREATE FUNCTION {schema}.read_history(p_id text, p_execution bigint) RETURNS TABLE (event_data text)
LANGUAGE sql STABLE AS $$
  SELECT h.event_data FROM {schema}.history AS h
  WHERE h.instance_id = p_id AND h.execution_id = p_execution
  ORDER BY h.event_id
$$;

-- The newest execution that has an execution's row; where none has, the first.
CREATE FUNCTION {schema}.latest_execution(p_id text) RETURNS TABLE (execution_id bigint)
LANGUAGE sql STABLE AS $$
  SELECT COALESCE(max(x.execution_id), 1) FROM {schema}.executions AS x WHERE x.instance_id = p_id
$$;

CREATE FUNCTION {schema}.read_latest_history(p_id text) RETURNS TABLE (execution_id bigint, event_data text)
LANGUAGE sql STABLE AS $$
  SELECT h.execution_id, h.event_data
  FROM {schema}.latest_execution(p_id) AS latest
  JOIN {schema}.history AS h ON h.instance_id = p_id AND h.execution_id = latest.execution_id
  ORDER BY h.event_id
$$;

-- A row for each of these that is known: by its own row, else by how its latest execution that has begun was started, else
-- by the oldest start that is queued. Without a row of its own it has no name here, but a start event or a start item.
CREATE FUNCTION {schema}.instance_statuses(p_ids text[]) RETURNS TABLE (
  instance_id text, orchestration_name text, orchestration_version text, execution_id bigint, status text, output text,
  custom_status text, custom_status_version bigint, start_event text, start_item text
)
LANGUAGE plpgsql STABLE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
#variable_conflict use_column
DECLARE
  v_known bigint;
  v_strangers text[];
BEGIN
  RETURN QUERY
    SELECT i.instance_id, i.orchestration_name, i.orchestration_version, i.current_execution_id, x.status, x.output,
           i.custom_status, i.custom_status_version, NULL::text, NULL::text
    FROM {schema}.instances AS i
    LEFT JOIN LATERAL (
      SELECT x.status, x.output FROM {schema}.executions AS x
      WHERE x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
    ) AS x ON true
    WHERE i.instance_id = ANY (p_ids);
  GET DIAGNOSTICS v_known = ROW_COUNT;
  IF v_known = cardinality(p_ids) THEN RETURN; END IF; -- Nobody is asked for twice.
  v_strangers := ARRAY (
    SELECT asked.id FROM unnest(p_ids) AS asked (id)
    WHERE NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = asked.id OFFSET 0)
  );
  RETURN QUERY
    SELECT trace.id, NULL::text, NULL::text, trace.execution_id, x.status, x.output, NULL::text, 0::bigint,
           trace.start_event, trace.start_item
    FROM (
      SELECT asked.id,
             (SELECT COALESCE(max(e.execution_id), 1) FROM {schema}.executions AS e
              WHERE e.instance_id = asked.id) AS execution_id,
             (SELECT h.event_data FROM {schema}.history AS h
              WHERE h.instance_id = asked.id AND h.event_type = 'OrchestrationStarted'
              ORDER BY h.execution_id DESC, h.event_id DESC LIMIT 1) AS start_event,
             (SELECT m.work_item FROM {schema}.messages AS m
              WHERE m.instance_id = asked.id AND m.kind = 'start'
              ORDER BY m.due_at, m.id LIMIT 1) AS start_item
      FROM unnest(v_strangers) AS asked (id)
      OFFSET 0 -- Each of them is looked up once.
    ) AS trace
    LEFT JOIN LATERAL (
      SELECT x.status, x.output FROM {schema}.executions AS x
      WHERE x.instance_id = trace.id AND x.execution_id = trace.execution_id OFFSET 0
    ) AS x ON true
    WHERE trace.start_event IS NOT NULL OR trace.start_item IS NOT NULL;
END
$$;

-- Answers only where it is newer than what was seen last.
CREATE FUNCTION {schema}.newer_custom_status(p_id text, p_seen bigint)
RETURNS TABLE (custom_status text, custom_status_version bigint)
LANGUAGE sql STABLE AS $$
  SELECT i.custom_status, i.custom_status_version FROM {schema}.instances AS i
  WHERE i.instance_id = p_id AND i.custom_status_version > p_seen
$$;

-- The committed value of one key: the delta's, else the store's. A tombstone is a row with null, and hides the store's.
CREATE FUNCTION {schema}.kv_value(p_id text, p_key text) RETURNS TABLE (value text)
LANGUAGE sql STABLE AS $$
  SELECT found.value
  FROM (
    SELECT d.value, 1 AS rank FROM {schema}.kv_delta AS d WHERE d.instance_id = p_id AND d.key = p_key
    UNION ALL
    SELECT k.value, 2 FROM {schema}.kv_store AS k WHERE k.instance_id = p_id AND k.key = p_key
  ) AS found
  ORDER BY found.rank LIMIT 1
$$;

-- All committed values.
CREATE FUNCTION {schema}.kv_values(p_id text) RETURNS TABLE (key text, value text)
LANGUAGE sql STABLE AS $$
  SELECT d.key, d.value FROM {schema}.kv_delta AS d WHERE d.instance_id = p_id AND d.value IS NOT NULL
  UNION ALL
  SELECT k.key, k.value FROM {schema}.kv_store AS k
  WHERE k.instance_id = p_id
    AND NOT EXISTS (SELECT 1 FROM {schema}.kv_delta AS d WHERE d.instance_id = k.instance_id AND d.key = k.key)
$$;

-- How large an instance with a row is: its current execution, and its values. Values that are stored as they are count
-- here; those that are escaped have another length than their column, and go out to be measured.
CREATE FUNCTION {schema}.instance_stats(p_id text) RETURNS TABLE (
  execution_id bigint, events bigint, bytes bigint, first_event text, keys bigint, plain_bytes bigint, escaped text[]
)
LANGUAGE sql STABLE AS $$
  SELECT i.current_execution_id, h.events, h.bytes, first.event_data, v.keys, v.plain_bytes, v.escaped
  FROM {schema}.instances AS i
  CROSS JOIN LATERAL (
    SELECT count(*) AS events, COALESCE(sum(octet_length(e.event_data)), 0) AS bytes
    FROM {schema}.history AS e
    WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
  ) AS h
  LEFT JOIN LATERAL (
    SELECT e.event_data FROM {schema}.history AS e
    WHERE e.instance_id = i.instance_id AND e.execution_id = i.current_execution_id
    ORDER BY e.event_id LIMIT 1
  ) AS first ON true
  CROSS JOIN LATERAL (
    SELECT count(*) AS keys,
           COALESCE(sum(octet_length(kv.value)) FILTER (WHERE NOT starts_with(kv.value, '"')), 0) AS plain_bytes,
           COALESCE(pg_catalog.array_agg(kv.value) FILTER (WHERE starts_with(kv.value, '"')), '{}') AS escaped
    FROM {schema}.kv_values(p_id) AS kv
  ) AS v
  WHERE i.instance_id = p_id
$$;
`;
