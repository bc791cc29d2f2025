// test/providers/postgres-transactions.ts — what is written together, as the database sees it.

import type { OwnDatabase } from "./postgres-rivals.js";

/** Notes which transactions remove activities, store messages and write history, in their order. */
export async function watchTransactions(database: OwnDatabase): Promise<() => Promise<readonly (readonly string[])[]>> {
  await database.query("CREATE TABLE {schema}.noted (what text, by_whom text, n bigint GENERATED ALWAYS AS IDENTITY)");
  await database.query(`CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO {schema}.noted (what, by_whom) VALUES (TG_ARGV[0], pg_current_xact_id()::text);
      RETURN NULL;
    END $$`);
  for (const [what, when] of [
    ["outcome", "DELETE ON {schema}.activities"],
    ["message", "INSERT ON {schema}.messages"],
    ["event", "INSERT ON {schema}.history"],
  ]) {
    await database.query(
      `CREATE TRIGGER note_${what} AFTER ${when} FOR EACH ROW EXECUTE FUNCTION {schema}.note('${what}')`,
    );
  }
  return async () => {
    const rows = await database.query<{ readonly what: string }>(
      `SELECT string_agg(DISTINCT what, ' ' ORDER BY what) AS what FROM {schema}.noted GROUP BY by_whom ORDER BY min(n)`,
    );
    return rows.map(({ what }) => what.split(" "));
  };
}
