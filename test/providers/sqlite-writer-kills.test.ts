// Whatever a process was told of is on the disk, though a thread of its own writes, and though it is killed in the midst of it.

import { expect, onTestFinished, test } from "vitest";
import { checkHistory } from "../../src/history/valid-history.js";
import { SqliteProvider } from "../../src/providers/sqlite/index.js";
import { ChildProgram } from "./sqlite-child.js";
import { openConnection } from "./sqlite-connection.js";
import { openStore } from "./sqlite-store.js";

const CHAINS = 1_000;
/** After so many lines the process is killed, and another one goes on. */
const KILLS = [1, 40, 333, 120, 777, 501];

/** What it was told of by the lines that it has printed. */
async function linesOf(child: ChildProgram, kill: number): Promise<string[]> {
  const lines: string[] = [];
  for (let line = await child.next(); line !== null; line = await child.next()) {
    lines.push(line);
    if (lines.length === kill) child.kill();
  }
  return lines;
}

test("nothing is lost or done twice, however often the process is killed", async () => {
  const { provider: first, file } = await openStore();
  await first.close();
  const ended = new Map<string, string>();
  for (const kill of [...KILLS, Number.POSITIVE_INFINITY]) {
    const lines = await linesOf(new ChildProgram("writer-load", file, String(CHAINS)), kill);
    await using provider = await SqliteProvider.open(file, { writerThread: "never" });
    for (const line of lines) {
      const [what, instance, output] = line.split(" ");
      if (what === "done") continue;
      const status = await provider.getInstanceStatus(instance!);
      expect(status, line).not.toBeNull();
      if (what === "ended") expect(status, line).toMatchObject({ status: "Completed", output });
      if (what === "ended") ended.set(instance!, output!);
    }
    if (kill === Number.POSITIVE_INFINITY) expect(lines.at(-1)).toBe("done");
    else expect(lines.at(-1)).not.toBe("done");
  }

  await using provider = await SqliteProvider.open(file, { writerThread: "never" });
  for (let nr = 0; nr < CHAINS; nr += 1) {
    const history = await provider.read(String(nr));
    checkHistory(history);
    expect(history).toHaveLength(8); // Begun, three activities asked for and done, completed.
    expect(ended.get(String(nr))).toBe(String(nr + 3));
  }
  const connection = await openConnection(file);
  onTestFinished(() => connection.close());
  for (const table of ["orchestrator_queue", "worker_queue", "instance_locks"]) {
    expect(connection.prepare(`SELECT COUNT(*) AS rows FROM duroxide_${table}`).get(), table).toEqual({ rows: 0 });
  }
}, 60_000);
