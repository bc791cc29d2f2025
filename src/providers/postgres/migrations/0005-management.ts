// providers/postgres/migrations/0005-management.ts — what operators ask: lists, counts, and the removal of what is over.
//
// Lists and counts are single statements: each sees one state of the store. The order of creation is (created_at,
// created_order). Nothing here decodes an event or a work item: what is corrupt can be listed, counted and deleted.
//
// Deletion:
//
//   X1. An instance goes with everything that is its own. Its lock goes too, and its activities: whoever works on either
//       finds the token unknown, also when an instance of the same name has begun since.
//   X2. Everything is checked before anything is removed, under the locks of X5: no child can be born in between.
//   X3. An id without an instance's row is nobody's: what is queued for it stays.
//   X4. The starts that an instance has queued go with it, and the lock of whoever works on one: nobody may answer a new
//       instance of the same name. What else was sent to a child that has not begun goes along, unless somebody else has
//       started it too.
//   X5. The scope of a deletion is the given instances and the targets of the starts that they have queued. All their
//       rows of the schedule are locked, in one pass (S2); then one looks again (S1). What has come into the scope
//       meanwhile is not locked, and must not be locked any more: the caller gives up its locks and begins anew ("again").
//   X6. The look at the starts comes before the look at the children. A child gets its row by the ack that consumes its
//       start. So whoever is neither start at the first look nor child at the second is no child at all.
//   X7. After that nothing can change for the given ones. Turns of a parent queue starts, and need its row of the schedule:
//       we have it. Turns of a child make it known, and need the child's: we have that, too, and take its lock away. A
//       start that a client sends in the name of a parent may still arrive for somebody outside of the scope: it counts
//       as sent after the deletion, and is left alone.
//   X8. Rows of instances are locked after those of the schedule, by id. Whoever removes events or executions has locked
//       the instance's row before, so that no two of them meet in the same rows in different order.
//   X9. A deletion that is refused has still kept ready instances from those who looked for work. So it says, whatever its
//       outcome, how many of the scope are ready.
//
// Pruning needs no row of the schedule: it takes executions that are neither current nor running, and a turn writes only
// the current one, or a newer. Under the lock of the instance's row (X8) the current one stays the current one.

import { INDEXES_ONLY, OWN_NAMES } from "./fragments.js";

export const management = `
-- Newest first.
CREATE FUNCTION {schema}.list_instances() RETURNS TABLE (instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.instance_id FROM {schema}.instances AS i ORDER BY i.created_at DESC, i.created_order DESC
$$;

-- Those whose current execution has this status, newest first.
CREATE FUNCTION {schema}.list_instances_by_status(p_status text) RETURNS TABLE (instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.instance_id
  FROM {schema}.instances AS i
  JOIN {schema}.executions AS x ON x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
  WHERE x.status = p_status
  ORDER BY i.created_at DESC, i.created_order DESC
$$;

CREATE FUNCTION {schema}.list_executions(p_id text) RETURNS TABLE (execution_id bigint)
LANGUAGE sql STABLE AS $$
  SELECT x.execution_id FROM {schema}.executions AS x WHERE x.instance_id = p_id ORDER BY x.execution_id
$$;

-- Oldest first.
CREATE FUNCTION {schema}.list_children(p_id text) RETURNS TABLE (instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.instance_id FROM {schema}.instances AS i
  WHERE i.parent_instance_id = p_id
  ORDER BY i.created_at, i.created_order
$$;

CREATE FUNCTION {schema}.parent_of(p_id text) RETURNS TABLE (parent_instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.parent_instance_id FROM {schema}.instances AS i WHERE i.instance_id = p_id
$$;

CREATE FUNCTION {schema}.instance_info(p_id text) RETURNS TABLE (
  orchestration_name text, orchestration_version text, current_execution_id bigint, status text, output text,
  created_at bigint, updated_at bigint, parent_instance_id text
)
LANGUAGE sql STABLE AS $$
  SELECT i.orchestration_name, i.orchestration_version, i.current_execution_id, x.status, x.output,
         i.created_at, i.updated_at, i.parent_instance_id
  FROM {schema}.instances AS i
  JOIN {schema}.executions AS x ON x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
  WHERE i.instance_id = p_id
$$;

-- Known by its own row, whether the instance has one or not.
CREATE FUNCTION {schema}.execution_info(p_id text, p_execution bigint)
RETURNS TABLE (status text, output text, started_at bigint, completed_at bigint, events bigint)
LANGUAGE sql STABLE AS $$
  SELECT x.status, x.output, x.started_at, x.completed_at,
         (SELECT count(*) FROM {schema}.history AS h
          WHERE h.instance_id = x.instance_id AND h.execution_id = x.execution_id)
  FROM {schema}.executions AS x
  WHERE x.instance_id = p_id AND x.execution_id = p_execution
$$;

-- Reads the whole store: a counter would have to be written by every turn.
CREATE FUNCTION {schema}.system_metrics() RETURNS TABLE (
  instances bigint, executions bigint, events bigint, running bigint, completed bigint, failed bigint
)
LANGUAGE sql STABLE AS $$
  SELECT count(*),
         (SELECT count(*) FROM {schema}.executions),
         (SELECT count(*) FROM {schema}.history),
         count(*) FILTER (WHERE x.status = 'Running'),
         count(*) FILTER (WHERE x.status = 'Completed'),
         count(*) FILTER (WHERE x.status = 'Failed')
  FROM {schema}.instances AS i
  JOIN {schema}.executions AS x ON x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
$$;

-- All messages but those in the batch of a live lock that somebody owns, and all activities but those that somebody's live
-- lock holds. What is only held back by a delay counts.
CREATE FUNCTION {schema}.queue_depths(p_now bigint) RETURNS TABLE (messages bigint, activities bigint)
LANGUAGE sql STABLE AS $$
  SELECT (SELECT count(*) FROM {schema}.messages) - (
           SELECT count(*)
           FROM {schema}.schedule AS s
           CROSS JOIN LATERAL pg_catalog.unnest(s.batch) AS taken (id)
           JOIN {schema}.messages AS m ON m.id = taken.id
           WHERE s.lock_token IS NOT NULL AND s.locked_until > p_now
         ),
         (SELECT count(*) FROM {schema}.activities AS a WHERE a.lock_token IS NULL OR a.ready_at <= p_now)
$$;

-- What a bulk operation is about, oldest first: of all, or of some. Of what still runs nobody can say that it ended before a
-- certain time; whoever does not ask for a time gets it, too.

-- A root is whose parent is not there, or not there any more.
CREATE FUNCTION {schema}.ended_roots(p_ended_before bigint, p_ids text[], p_limit bigint)
RETURNS TABLE (instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.instance_id
  FROM {schema}.instances AS i
  JOIN {schema}.executions AS x ON x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
  WHERE x.status IN ('Completed', 'Failed')
    AND (p_ended_before IS NULL OR x.completed_at < p_ended_before)
    AND (p_ids IS NULL OR i.instance_id = ANY (p_ids))
    AND NOT EXISTS (SELECT 1 FROM {schema}.instances AS p WHERE p.instance_id = i.parent_instance_id)
  ORDER BY i.created_at, i.created_order LIMIT p_limit
$$;

CREATE FUNCTION {schema}.prunable_instances(p_ended_before bigint, p_more_than bigint, p_ids text[], p_limit bigint)
RETURNS TABLE (instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.instance_id
  FROM {schema}.instances AS i
  JOIN {schema}.executions AS x ON x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id
  WHERE (p_ended_before IS NULL OR x.completed_at < p_ended_before)
    AND (p_ids IS NULL OR i.instance_id = ANY (p_ids))
    AND (SELECT count(*) FROM {schema}.executions AS all_of WHERE all_of.instance_id = i.instance_id) > p_more_than
  ORDER BY i.created_at, i.created_order LIMIT p_limit
$$;

-- Removes executions that ended before a certain time (null: at any) and are neither current nor among the newest. Answers
-- nothing where the instance is not known.
CREATE FUNCTION {schema}.prune_executions(p_id text, p_keep bigint, p_ended_before bigint)
RETURNS TABLE (executions_deleted bigint, events_deleted bigint)
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_current bigint;
  v_over bigint[];
BEGIN
  SELECT i.current_execution_id INTO v_current FROM {schema}.instances AS i WHERE i.instance_id = p_id FOR UPDATE; -- X8
  IF NOT FOUND THEN RETURN; END IF;
  v_over := ARRAY (
    SELECT x.execution_id
    FROM {schema}.executions AS x
    WHERE x.instance_id = p_id
      AND x.execution_id <> v_current
      AND x.completed_at IS NOT NULL
      AND (p_ended_before IS NULL OR x.completed_at < p_ended_before)
      AND x.execution_id NOT IN (
        SELECT newest.execution_id FROM {schema}.executions AS newest
        WHERE newest.instance_id = p_id
        ORDER BY newest.execution_id DESC LIMIT p_keep
      )
  );
  DELETE FROM {schema}.history AS h WHERE h.instance_id = p_id AND h.execution_id = ANY (v_over);
  GET DIAGNOSTICS events_deleted = ROW_COUNT;
  DELETE FROM {schema}.executions AS x WHERE x.instance_id = p_id AND x.execution_id = ANY (v_over);
  GET DIAGNOSTICS executions_deleted = ROW_COUNT;
  RETURN NEXT;
END
$$;

-- X5: whom a deletion of these concerns. Ids that are not known concern nobody.
CREATE FUNCTION {schema}.deletion_scope(p_ids text[]) RETURNS TABLE (instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT i.instance_id FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_ids)
  UNION
  SELECT m.instance_id
  FROM (
    SELECT s.instance_id, s.parent_instance_id FROM {schema}.messages AS s
    WHERE s.parent_instance_id = ANY (p_ids) OFFSET 0 -- T2
  ) AS m
  WHERE EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = m.parent_instance_id OFFSET 0)
$$;

-- Why these may not be deleted; no row: they may. What runs is named before who would be an orphan.
CREATE FUNCTION {schema}.deletion_refusal(p_known text[], p_force boolean)
RETURNS TABLE (outcome text, instance_id text, parent_instance_id text)
LANGUAGE sql STABLE AS $$
  SELECT refusal.outcome, refusal.instance_id, refusal.parent_instance_id
  FROM (
    (SELECT 'running' AS outcome, i.instance_id, NULL AS parent_instance_id, 1 AS rank
     FROM {schema}.instances AS i
     CROSS JOIN LATERAL (
       SELECT x.status FROM {schema}.executions AS x
       WHERE x.instance_id = i.instance_id AND x.execution_id = i.current_execution_id OFFSET 0
     ) AS x
     WHERE NOT p_force AND i.instance_id = ANY (p_known) AND x.status NOT IN ('Completed', 'Failed')
     LIMIT 1)
    UNION ALL
    (SELECT 'orphans', child.instance_id, child.parent_instance_id, 2
     FROM (
       SELECT i.instance_id, i.parent_instance_id FROM {schema}.instances AS i
       WHERE i.parent_instance_id = ANY (p_known) OFFSET 0
     ) AS child
     WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.unnest(p_known) AS known (id) WHERE known.id = child.instance_id)
     LIMIT 1)
  ) AS refusal
  ORDER BY refusal.rank LIMIT 1
$$;

-- Removes what the caller has locked and checked: the instances (X1), these starts that they have queued, and what else
-- was sent to the targets of these starts (X4). Rows of the schedule are left as they are.
CREATE FUNCTION {schema}.remove_instances(
  p_known text[], p_starts bigint[], p_targets text[],
  OUT instances_deleted bigint, OUT executions_deleted bigint, OUT events_deleted bigint, OUT queued_deleted bigint
)
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_activities bigint[];
  v_deleted bigint;
BEGIN
  v_activities := ARRAY (SELECT a.id FROM {schema}.activities AS a WHERE a.instance_id = ANY (p_known)); -- T4
  PERFORM 1 FROM {schema}.activities AS a WHERE a.id = ANY (v_activities) ORDER BY a.id FOR UPDATE; -- S2
  DELETE FROM {schema}.activities AS a WHERE a.id = ANY (v_activities);
  GET DIAGNOSTICS queued_deleted = ROW_COUNT;

  DELETE FROM {schema}.messages AS m WHERE m.instance_id = ANY (p_known);
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  queued_deleted := queued_deleted + v_deleted;
  DELETE FROM {schema}.messages AS m WHERE m.id = ANY (p_starts);
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  queued_deleted := queued_deleted + v_deleted;
  -- To those who have not begun, and whom nobody starts any more.
  DELETE FROM {schema}.messages AS m
  WHERE m.instance_id = ANY (p_targets)
    AND NOT EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = m.instance_id OFFSET 0)
    AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS s WHERE s.instance_id = m.instance_id AND s.kind = 'start' OFFSET 0);
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  queued_deleted := queued_deleted + v_deleted;

  DELETE FROM {schema}.history AS h WHERE h.instance_id = ANY (p_known);
  GET DIAGNOSTICS events_deleted = ROW_COUNT;
  DELETE FROM {schema}.executions AS x WHERE x.instance_id = ANY (p_known);
  GET DIAGNOSTICS executions_deleted = ROW_COUNT;
  DELETE FROM {schema}.kv_store AS k WHERE k.instance_id = ANY (p_known);
  DELETE FROM {schema}.kv_delta AS d WHERE d.instance_id = ANY (p_known);
  DELETE FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_known);
  GET DIAGNOSTICS instances_deleted = ROW_COUNT;
END
$$;

-- Deletes just these, all or none. One row, whose outcome is
--   deleted  the counts say what; "changed" are the deleted ones, and those whose start is gone
--   running  instance_id has not ended, and nobody forces it
--   orphans  instance_id is a child of parent_instance_id, and not among these
--   again    others have come into the scope meanwhile (X5)
-- "ready" says how many others have messages that can be fetched now (X9).
CREATE FUNCTION {schema}.delete_instances(p_ids text[], p_force boolean, p_now bigint) RETURNS TABLE (
  outcome text, instance_id text, parent_instance_id text,
  instances_deleted bigint, executions_deleted bigint, events_deleted bigint, queued_deleted bigint,
  changed text[], ready bigint
)
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
#variable_conflict use_column
DECLARE
  v_known text[];
  v_scope text[];
  v_starts bigint[];
  v_targets text[];
BEGIN
  v_known := ARRAY (SELECT i.instance_id FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_ids)); -- X3
  v_scope := ARRAY (SELECT scope.instance_id FROM {schema}.deletion_scope(v_known) AS scope);
  PERFORM {schema}.lock_schedule(v_scope); -- X5
  v_known := ARRAY (
    SELECT i.instance_id FROM {schema}.instances AS i
    WHERE i.instance_id = ANY (v_known)
    ORDER BY i.instance_id
    FOR UPDATE -- X8
  );

  -- X6: the starts, and then the children.
  IF EXISTS (
    SELECT scope.instance_id FROM {schema}.deletion_scope(p_ids) AS scope
    EXCEPT
    SELECT locked.id FROM unnest(v_scope) AS locked (id)
  ) THEN
    outcome := 'again';
  ELSE
    SELECT refusal.outcome, refusal.instance_id, refusal.parent_instance_id
    INTO outcome, instance_id, parent_instance_id
    FROM {schema}.deletion_refusal(v_known, p_force) AS refusal;
  END IF;

  IF outcome IS NULL THEN
    outcome := 'deleted';
    SELECT COALESCE(array_agg(m.id), '{}'), COALESCE(array_agg(DISTINCT m.instance_id), '{}') INTO v_starts, v_targets
    FROM {schema}.messages AS m
    WHERE m.parent_instance_id = ANY (v_known) AND m.instance_id = ANY (v_scope); -- X7
    SELECT removed.instances_deleted, removed.executions_deleted, removed.events_deleted, removed.queued_deleted
    INTO instances_deleted, executions_deleted, events_deleted, queued_deleted
    FROM {schema}.remove_instances(v_known, v_starts, v_targets) AS removed;
    -- X4: what else was in the batch of a lock that is gone keeps its attempts; what came later was never handed out.
    UPDATE {schema}.schedule AS s SET attempts = 0
    WHERE s.instance_id = ANY (v_targets) AND s.attempts > 0 AND s.batch IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.id = ANY (s.batch) OFFSET 0);
    changed := ARRAY (SELECT unnest(v_known) UNION SELECT unnest(v_targets));
    PERFORM {schema}.release_schedule(changed, false);
  END IF;

  -- What was made only to be locked.
  DELETE FROM {schema}.schedule AS s
  WHERE s.instance_id = ANY (v_scope) AND s.locked_until IS NULL
    AND NOT EXISTS (SELECT 1 FROM {schema}.messages AS m WHERE m.instance_id = s.instance_id OFFSET 0);
  ready := (
    SELECT count(*) FILTER (WHERE s.ready_at <= p_now) FROM {schema}.schedule AS s WHERE s.instance_id = ANY (v_scope)
  );
  RETURN NEXT;
END
$$;
`;
