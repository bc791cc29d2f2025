// providers/postgres/migrations/turns/deliver.ts — messages are sent, and handed out at once where somebody waits for them.

import { INDEXES_ONLY, LOOPS_ONLY, OWN_NAMES } from "../fragments.js";

export const deliver = `
-- Removes activities whose lock is live, and sends messages: the outcomes of those activities, and whatever else is to be sent.
--   p_acts, p_act_tokens    the activities, by id; none twice
--   p_targets               the instances that are sent to; none twice
--     p_ready_at, p_places  when each is ready by these messages, and its place in line
--     p_firsts, p_lasts     its messages, which stand together
--     p_tokens, p_until     by which lock somebody wants it at once, if he may have it; null: nobody does. All until one time
--     p_expected            he has it already, as of this last commit; '': as of its start, which is all there is of it; null: he has not
--   p_of                    the messages, no more than a step of message_ids: for each the ordinal of its target
--     p_senders             the ordinal of the activity whose outcome it is, or 0
--     p_absent              a start that is sent only if the instance has not begun. Two starts of one instance are never in
--                           one call
--   p_foreseen              the ordinals of targets that somebody has already as of a commit
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
LANGUAGE plpgsql VOLATILE ${LOOPS_ONLY} ${OWN_NAMES} AS $$
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
        cardinality(p_until) - cardinality(array_positions(p_until, NULL))
          - cardinality(p_expected) + cardinality(array_positions(p_expected, NULL))
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

-- Starts of instances that most likely nothing is known of, which nobody waits for and which are ready at once: as deliver would send
-- them, in fewer statements. No more than a step of message_ids, and no instance twice. Answers false where there is anything
-- of any of them: then nothing is written.
CREATE FUNCTION {schema}.send_starts(p_now bigint, p_ids text[], p_items text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE ${INDEXES_ONLY} ${OWN_NAMES} AS $$
DECLARE
  v_id bigint := nextval('{schema}.message_ids');
  v_first bigint := nextval('{schema}.schedule_order');
BEGIN
  INSERT INTO {schema}.schedule (instance_id, ready_at, place, place_order)
  SELECT t.id, p_now, p_now, v_first + t.n
  FROM (SELECT unnest(p_ids) AS id, generate_subscripts(p_ids, 1) AS n) AS t
  ORDER BY t.id COLLATE "C"; -- S1, S2
  -- Who had no row in the schedule has no messages.
  IF EXISTS (SELECT 1 FROM {schema}.instances AS i WHERE i.instance_id = ANY (p_ids))
    OR EXISTS (SELECT 1 FROM {schema}.executions AS x WHERE x.instance_id = ANY (p_ids))
  THEN
    RAISE unique_violation;
  END IF;
  INSERT INTO {schema}.messages (id, instance_id, due_at, visible_at, kind, work_item)
  SELECT v_id + m.n - 1, m.id, p_now, p_now, 'start', m.item
  FROM (SELECT unnest(p_ids) AS id, unnest(p_items) AS item, generate_subscripts(p_ids, 1) AS n) AS m; -- T6
  RETURN true;
EXCEPTION WHEN unique_violation THEN
  RETURN false;
END
$$;
`;
