// providers/postgres/news.ts — what one process tells the others after a commit, and the note that it writes for it.
//
//   N1. A note always fits into a notification: instances by name while there is room for them, else "any".
//   N2. A note is text that PostgreSQL takes, whatever the ids hold: JSON escapes NUL and halves of surrogate pairs.
//   N3. Of two times the earlier counts: waking too early costs a look, waking too late costs the time.
//   N4. Reading never throws. What is no note of ours is nobody's: anything may have happened. So anybody may write to
//       the channel, and a later version may write otherwise.

import { createHash } from "node:crypto";

/** What a commit made possible. */
export interface News {
  /** For how many fetches there are messages, and activities, that could not be fetched before. */
  readonly messages: number;
  readonly activities: number;
  /** When the next can be, by the passing of time; null: none is known. */
  readonly nextMessageAt: number | null;
  readonly nextActivityAt: number | null;
  /** Instances that changed; "any": too many to name. */
  readonly instances: readonly string[] | "any";
}

/** Nobody knows what happened: everybody looks. */
export const EVERYTHING: News = Object.freeze({
  messages: Number.MAX_SAFE_INTEGER,
  activities: Number.MAX_SAFE_INTEGER,
  nextMessageAt: null,
  nextActivityAt: null,
  instances: "any",
});

/** What comes by the channel. A probe only shows that something comes. */
export type Note =
  | { readonly kind: "news"; readonly from: string; readonly news: News }
  | { readonly kind: "probe"; readonly from: string };

/**
 * A notification holds fewer than 8,000 bytes, and a note stays below 7,900. What is not names takes about 160: two
 * times, two flags, the sender.
 */
const MOST_BYTES_OF_NAMES = 7_600;

/** The channel of a schema. A hash, because a channel's name is an identifier of at most 63 bytes, and a schema's may be any. */
export function channelOf(schema: string): string {
  return `duroxide_${createHash("sha256").update(schema).digest("hex").slice(0, 16)}`;
}

/** News of several commits, on their way to become one note. */
export class NewsBundle {
  #messages = 0;
  #activities = 0;
  #nextMessageAt: number | null = null;
  #nextActivityAt: number | null = null;
  readonly #names = new Set<string>();
  #bytesOfNames = 0;
  #isAny = false;

  add(news: News): void {
    this.#messages = Math.min(this.#messages + news.messages, Number.MAX_SAFE_INTEGER);
    this.#activities = Math.min(this.#activities + news.activities, Number.MAX_SAFE_INTEGER);
    this.#nextMessageAt = earlier(this.#nextMessageAt, news.nextMessageAt); // N3
    this.#nextActivityAt = earlier(this.#nextActivityAt, news.nextActivityAt);
    if (news.instances === "any") this.#nameNobody();
    else for (const instance of news.instances) this.#name(instance);
  }

  /** What was added, as one piece of news that fits into a note. The bundle is empty afterwards. */
  take(): News {
    const news: News = {
      messages: this.#messages,
      activities: this.#activities,
      nextMessageAt: this.#nextMessageAt,
      nextActivityAt: this.#nextActivityAt,
      instances: this.#isAny ? "any" : [...this.#names],
    };
    this.#messages = this.#activities = 0;
    this.#isAny = false;
    this.#nextMessageAt = this.#nextActivityAt = null;
    this.#names.clear();
    this.#bytesOfNames = 0;
    return news;
  }

  #name(instance: string): void {
    if (this.#isAny || this.#names.has(instance)) return;
    this.#names.add(instance);
    this.#bytesOfNames += Buffer.byteLength(JSON.stringify(instance)) + 1;
    if (this.#bytesOfNames > MOST_BYTES_OF_NAMES) this.#nameNobody(); // N1
  }

  #nameNobody(): void {
    this.#isAny = true;
    this.#names.clear();
  }
}

/** Whether it is not worth telling. */
export function isNothing({ messages, activities, nextMessageAt, nextActivityAt, instances }: News): boolean {
  return (
    messages === 0 && activities === 0 && nextMessageAt === null && nextActivityAt === null && instances.length === 0
  );
}

/** `news` must come from a bundle: then the note fits (N1). */
export function writeNews(from: string, news: News): string {
  return JSON.stringify({ from, ...news });
}

/** `probe` tells one probe of a process from another. */
export function writeProbe(from: string, probe: string): string {
  return JSON.stringify({ from, probe });
}

/** Null: nobody knows what it means (N4). */
export function readNote(payload: string): Note | null {
  const note = parsed(payload);
  if (typeof note !== "object" || note === null || !("from" in note) || typeof note.from !== "string") return null;
  if ("probe" in note) return { kind: "probe", from: note.from };
  if (!isNews(note)) return null;
  const { messages, activities, nextMessageAt, nextActivityAt, instances } = note;
  return { kind: "news", from: note.from, news: { messages, activities, nextMessageAt, nextActivityAt, instances } };
}

function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    return null;
  }
}

function isNews(note: object): note is News {
  const { messages, activities, nextMessageAt, nextActivityAt, instances } = note as Partial<
    Record<keyof News, unknown>
  >;
  return (
    isNatural(messages) &&
    isNatural(activities) &&
    isTime(nextMessageAt) &&
    isTime(nextActivityAt) &&
    (instances === "any" || (Array.isArray(instances) && instances.every((name) => typeof name === "string")))
  );
}

function isTime(value: unknown): boolean {
  return value === null || isNatural(value);
}

function isNatural(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function earlier(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
