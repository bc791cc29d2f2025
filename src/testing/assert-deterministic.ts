// testing/assert-deterministic.ts — whether code decides the same however often, from wherever and whenever it is replayed.

import { ReplayDivergedError } from "../errors.js";
import type { History } from "./exported-history.js";
import { OtherWorld } from "./other-world.js";
import { keepingRejections, type ReplayedCode, type ReplayOptions, subjectOf } from "./replay.js";
import { ReplayCheck, type ReplaySubject } from "./replay-check.js";

/** Often enough for code that counts its own runs to be found. */
const WHOLE_REPLAYS = 3;
/** Every one of them is a replay of its own. */
const MOST_WAITS = 200;
/** A long history still takes but a second or two: so many waits times events at most, if these waits are left. */
const MOST_WAITS_TIMES_EVENTS = 400_000;
const LEAST_WAITS = 10;

/**
 * As `replay`, and more: the history is replayed several times, whole and up to the end of every turn (of some, in a long
 * one), where code must wait as it did. Meanwhile `Date`, `performance.now`, `Math.random` and `crypto` answer that code with
 * other values than real ones, years away, and its looking at them alone is an error: what it learns there is in no history.
 * So is its use of timers and `fetch`. Everybody else in the process sees the real ones. Not seen is what a module took hold of when it was loaded: `const { now } =
 * Date`, a subclass of `Date`.
 *
 * @throws as `replay`
 * @example
 * await assertDeterministic(await world.history("order-1"), checkout);
 */
export async function assertDeterministic(
  history: History,
  orchestration: ReplayedCode,
  options: ReplayOptions = {},
): Promise<void> {
  await checkDeterministic(subjectOf("assertDeterministic", history, orchestration, options));
}

/** @throws ReplayDivergedError */
export async function checkDeterministic(subject: ReplaySubject): Promise<void> {
  const world = new OtherWorld();
  const check = new ReplayCheck({ ...subject, watch: () => world.newcomer() });
  await world.visit(() =>
    keepingRejections(async () => {
      try {
        for (let times = 0; times < WHOLE_REPLAYS; times += 1) await check.whole();
        for (const count of spread(check.waits, mostWaits(subject))) await check.waitsAfter(count);
      } catch (error) {
        throw error instanceof ReplayDivergedError ? withRemedy(error, world) : error;
      }
    }),
  );
  if (world.looks.length > 0) throw lookedAround(subject, world);
}

function mostWaits({ events }: ReplaySubject): number {
  return Math.max(LEAST_WAITS, Math.min(MOST_WAITS, Math.floor(MOST_WAITS_TIMES_EVENTS / events.length)));
}

/** As many as that, evenly from the first to the last. */
function spread(places: readonly number[], most: number): readonly number[] {
  if (places.length <= most) return places;
  return Array.from({ length: most }, (_, nth) => places[Math.round((nth * (places.length - 1)) / (most - 1))]!);
}

function withRemedy(error: ReplayDivergedError, world: OtherWorld): ReplayDivergedError {
  if (world.looks.length === 0) return error;
  const remedy = `The code ${looksInWords(world)}.`;
  return new ReplayDivergedError(error.divergences.map((divergence) => ({ ...divergence, remedy })));
}

function lookedAround({ events }: ReplaySubject, world: OtherWorld): ReplayDivergedError {
  const { instanceId, executionId } = events[0]!;
  const decided = `the code ${looksInWords(world)}`;
  return new ReplayDivergedError([{ instanceId, executionId, eventId: null, recorded: null, decided, remedy: null }]);
}

function looksInWords({ looks }: OtherWorld): string {
  const seen = looks.map(({ name }) => name).join(", ");
  const instead = [...new Set(looks.map((look) => look.instead))].join(" and ");
  return `uses ${seen}, which no history records; use ${instead} instead`;
}
