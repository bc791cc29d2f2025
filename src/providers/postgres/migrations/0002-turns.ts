// providers/postgres/migrations/0002-turns.ts — messages and turns: how they are sent, claimed, committed and given back.
//
// Every function takes many calls at once and answers for each of them; a call without a live lock is passed over, and
// its neighbours go on. The rules S1 to S10 stand in `0001-tables.ts`.
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
//   T5. Where a key is given, "+ 0" keeps a second condition, and another index, from being taken for a better one; and COALESCE
//       hides that what it is about is not null, which is all that the index of locks asks for.
//   T6. Long lists that are read side by side stand in the list of a SELECT. In FROM each of them would be written to a store of
//       its own first, which takes three times as long.
//   T7. Where a key is all that is looked for, "= ANY" walks along the index once, which costs half of a look for each.
//
// Nobody else's functions and operators are ever called, whatever is in `public`: an overload for exactly our types would
// come before a function of the system's for any type. So PL/pgSQL looks into the system's schema alone; functions in SQL,
// which the planner could then not take into the calling statement, name that schema where an overload could come first.

import { commit } from "./turns/commit.js";
import { deliver } from "./turns/deliver.js";
import { fetch } from "./turns/fetch.js";
import { locks } from "./turns/locks.js";
import { schedule } from "./turns/schedule.js";
import { values } from "./turns/values.js";

export const turns = schedule + deliver + fetch + commit + values + locks;
