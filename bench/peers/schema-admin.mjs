// bench/peers/schema-admin.mjs — what is asked of a peer's schema past the peer itself.

import postgres from "postgres";

export async function analyzeTables({ url, schema }) {
  await withConnection(url, async (sql) => {
    const tables = await sql`SELECT tablename FROM pg_tables WHERE schemaname = ${schema}`;
    for (const { tablename } of tables) await sql`ANALYZE ${sql(schema)}.${sql(tablename)}`;
  });
}

export async function countRows({ url, schema }, table) {
  return withConnection(url, async (sql) => {
    const [{ count }] = await sql`SELECT count(*)::int AS count FROM ${sql(schema)}.${sql(table)}`;
    return count;
  });
}

async function withConnection(url, use) {
  const sql = postgres(url, { max: 1 });
  try {
    return await use(sql);
  } finally {
    await sql.end();
  }
}
