// fleet/oracles.mjs — what must hold when all is over, whatever went wrong on the way. Every sentence is a problem.
//
//   O1. Every history of every execution is valid, and everything that was asked for has exactly one answer.
//   O2. There are exactly the instances and executions that the load leads to, and only the failures that it asks for.
//
// What must hold of the tables stands in tables.mjs.

import { historyProblems } from "duroxide-ts/testing";
import pg from "pg";
import { orchestrationAt } from "./load.mjs";

const READERS = 8;

/** By what is asked for: the answers to it. */
const ANSWERS = {
  ActivityScheduled: ["ActivityCompleted", "ActivityFailed"],
  TimerCreated: ["TimerFired"],
  SubOrchestrationScheduled: ["SubOrchestrationCompleted", "SubOrchestrationFailed"],
};

/** O1, O2. Answers with the problems, and with how many results of activities are recorded. */
export async function checkHistories(provider, orchestrations) {
  const problems = [];
  const load = new Map();
  for (let n = 0; n < orchestrations; n += 1) {
    const { instanceId, expected } = orchestrationAt(n);
    load.set(instanceId, expected);
  }
  const ids = await provider.admin.listInstances();
  const wanted = [...load.values()].reduce((sum, { children }) => sum + 1 + children, 0);
  if (ids.length !== wanted) problems.push(`there are ${ids.length} instances instead of ${wanted}`);
  let results = 0;
  await inParallel(ids, async (id) => {
    const executions = await provider.admin.listExecutions(id);
    const expected = load.get(id) ?? { executions: 1, failures: 0 };
    if (executions.length !== expected.executions) problems.push(`${id} has ${executions.length} executions`);
    for (const execution of executions) {
      const events = await provider.admin.readHistoryWithExecutionId(id, execution);
      problems.push(
        ...problemsOf(events, expected.failures).map((problem) => `${id}, execution ${execution}: ${problem}`),
      );
      results += countOf(events, ANSWERS.ActivityScheduled);
    }
  });
  return { problems, results };
}

function problemsOf(events, failures) {
  const problems = [...historyProblems(events)];
  for (const [asked, answers] of Object.entries(ANSWERS)) {
    const open = countOf(events, [asked]) - countOf(events, answers);
    if (open !== 0) problems.push(`${open} of ${asked} have no answer`);
  }
  const failed = countOf(events, ["ActivityFailed", "SubOrchestrationFailed"]);
  if (failed !== failures) problems.push(`${failed} failures instead of ${failures}`);
  return problems;
}

function countOf(events, types) {
  return events.filter(({ type }) => types.includes(type)).length;
}

/** Does the work for each, some at a time. */
export async function inParallel(items, work) {
  const left = [...items];
  const reader = async () => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: READERS }, reader));
}

/** What one wants to know of a fleet that stands still. */
export async function standstill(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const answers = [];
    for (const question of STANDSTILL) answers.push(...(await client.query(question, [Date.now()])).rows);
    return answers.map((row) => `at the standstill: ${JSON.stringify(row)}`);
  } finally {
    await client.end();
  }
}

const STANDSTILL = [
  `SELECT s.*, $1::bigint AS now, (SELECT count(*) FROM duroxide.messages AS m WHERE m.instance_id = s.instance_id) AS messages
   FROM duroxide.schedule AS s ORDER BY s.place LIMIT 20`,
  `SELECT a.*, $1::bigint AS now FROM duroxide.activities AS a ORDER BY a.ready_at LIMIT 20`,
  `SELECT s.*, $1::bigint AS now FROM duroxide.sessions AS s ORDER BY s.locked_until LIMIT 20`,
  `SELECT x.instance_id, x.execution_id, x.started_at, $1::bigint AS now
   FROM duroxide.executions AS x WHERE x.status = 'Running' ORDER BY x.started_at LIMIT 20`,
  `SELECT pid, state, wait_event_type, wait_event, left(query, 100) AS query, now() - query_start AS age, $1::bigint AS now
   FROM pg_stat_activity WHERE application_name = 'fleet'`,
];
