// providers/memory/sessions.ts — which worker process owns which session, and until when. Session ids are global.

import type { SessionFetch } from "../../provider/provider.js";

interface Session {
  ownerId: string;
  lockedUntil: number;
  lastActivityAt: number;
}

export class Sessions {
  readonly #sessions = new Map<string, Session>();

  /** Whether this owner may take work of the session: it owns it, or nobody does. */
  isOpenTo(sessionId: string, ownerId: string, now: number): boolean {
    const session = this.#live(sessionId, now);
    return session === null || session.ownerId === ownerId;
  }

  claim(sessionId: string, { ownerId, lockTimeoutMs }: SessionFetch, now: number): void {
    this.#sessions.set(sessionId, { ownerId, lockedUntil: now + lockTimeoutMs, lastActivityAt: now });
  }

  /** Work of the session was acked or renewed: it is not idle. An expired session stays expired. */
  touch(sessionId: string, now: number): void {
    const session = this.#live(sessionId, now);
    if (session !== null) session.lastActivityAt = now;
  }

  renew(ownerIds: readonly string[], extendForMs: number, idleTimeoutMs: number, now: number): number {
    let renewed = 0;
    for (const session of this.#sessions.values()) {
      const isLive = session.lockedUntil > now && session.lastActivityAt > now - idleTimeoutMs;
      if (!isLive || !ownerIds.includes(session.ownerId)) continue;
      session.lockedUntil = now + extendForMs;
      renewed += 1;
    }
    return renewed;
  }

  /** Forgets expired sessions, but for those in use: queued work must find its session as it was. */
  removeExpired(inUse: ReadonlySet<string>, now: number): number {
    let removed = 0;
    for (const [sessionId, session] of this.#sessions) {
      if (session.lockedUntil > now || inUse.has(sessionId)) continue;
      this.#sessions.delete(sessionId);
      removed += 1;
    }
    return removed;
  }

  /** When the session becomes free if nobody renews it; null: it is free. */
  lockedUntil(sessionId: string, now: number): number | null {
    return this.#live(sessionId, now)?.lockedUntil ?? null;
  }

  #live(sessionId: string, now: number): Session | null {
    const session = this.#sessions.get(sessionId);
    return session !== undefined && session.lockedUntil > now ? session : null;
  }
}
