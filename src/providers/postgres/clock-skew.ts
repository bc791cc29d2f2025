// providers/postgres/clock-skew.ts — whether this machine's clock agrees with the server's.
//
// All times in the schema are those of the processes that wrote them. Clocks that disagree never lose or double anything: a
// lock belongs to whoever holds its token. But a process whose clock is ahead takes the locks of others for expired too
// early, and one whose clock is behind sees timers too late. So whoever is far off is told.

import { systemClock } from "../../clock.js";
import type { Connections } from "./connections.js";
import type { PostgresSettings } from "./options.js";

/** A fifth of the shortest lock that is usual. Clocks that are kept by NTP differ by some milliseconds. */
const LARGEST_SKEW_MS = 1_000;

const selectTime = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now`;

export async function warnOfClockSkew(
  connections: Pick<Connections, "query">,
  settings: Pick<PostgresSettings, "clock" | "onWarning">,
): Promise<void> {
  const { clock, onWarning } = settings;
  if (clock !== systemClock) return; // Another clock need not know what time it is.
  const askedAt = clock.now();
  const [row] = await connections.query<{ readonly now: number }>("open", selectTime);
  const answeredAt = clock.now();
  if (row === undefined) return;
  // The server read its clock at some time between the two.
  const aheadMs = askedAt - row.now;
  const behindMs = row.now - answeredAt;
  if (Math.max(aheadMs, behindMs) <= LARGEST_SKEW_MS) return;
  const skew = aheadMs > behindMs ? `${aheadMs} ms ahead of` : `${behindMs} ms behind`;
  try {
    onWarning(
      `The clock of this machine is ${skew} the database's. Locks and timers go by the clocks of the workers: keep them together, by NTP.`,
    );
  } catch {
    // The store is as good as without a warning, whatever its listener makes of it.
  }
}
