import pg from "pg";
export type * from "../../src/providers/postgres/connections.js";
export class Connections {
  constructor(private pool: pg.Pool, private s: any) {}
  static async open(s: any): Promise<any> {
    const url = process.env.DUROXIDE_TEST_PG_URL;
    const p = new pg.Pool({ connectionString: url, allowExitOnIdle: true, application_name: s.applicationName } as any);
    p.on("error", () => {});
    await p.query("select 1");
    return new Connections(p, s);
  }
  async query(_o: string, t: string, v: any = []) { return (await this.pool.query(t, v)).rows; }
  async dedicated() {
    const c = new pg.Client({ connectionString: process.env.DUROXIDE_TEST_PG_URL, application_name: this.s.applicationName });
    let lost: any = () => {}; let over = false;
    const lose = (e: any) => { if (!over) { over = true; lost(e); } };
    c.on("error", lose); c.on("end", () => lose(new Error("ended")));
    await c.connect();
    if (!process.env.NOUNREF) (c as any).unref();
    return {
      query: async (t: string) => (await c.query(t)).rows,
      onNotification: (l: any) => c.on("notification", (m) => l(m.channel, m.payload ?? "")),
      onLost: (l: any) => { lost = l; },
      close: async () => { over = true; await c.end(); },
    };
  }
  async close() { await this.pool.end(); }
}
