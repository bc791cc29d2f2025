// providers/postgres/migrations/turns/values.ts — what turns change in key-values.

import { LOOPS_ONLY, OWN_NAMES } from "../fragments.js";

export const values = `
-- What turns change in key-values. p_instances: by turn, as in commit_turns.
CREATE FUNCTION {schema}.change_values(p_now bigint, p_instances text[], p_values json) RETURNS void
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
`;
