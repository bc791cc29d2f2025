// Mailbox lanes against a model that is too slow to be wrong.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type LaneWait, QueueLane } from "../../src/engine/lanes.js";

class Wait implements LaneWait {
  state: "live" | "assigned" | "consumed" | "dropped" = "live";
  data: string | null = null;

  accept(data: string): void {
    this.state = "assigned";
    this.data = data;
  }
}

/** R§3.16 word by word: the first live wait without an arrival gets the first arrival without a wait. */
class Model {
  readonly waits: { state: Wait["state"]; arrival: number | null }[] = [];
  readonly arrivals: { state: "free" | "assigned" | "consumed" }[] = [];

  match(): void {
    for (;;) {
      const wait = this.waits.find(({ state }) => state === "live");
      const arrival = this.arrivals.findIndex(({ state }) => state === "free");
      if (wait === undefined || arrival === -1) return;
      wait.state = "assigned";
      wait.arrival = arrival;
      this.arrivals[arrival]!.state = "assigned";
    }
  }

  finish(at: number, state: "consumed" | "dropped"): void {
    const wait = this.waits[at]!;
    if (wait.arrival !== null) this.arrivals[wait.arrival]!.state = state === "consumed" ? "consumed" : "free";
    wait.state = state;
    this.match();
  }

  /** The numbers of the arrivals that no code has seen. */
  unseen(): number[] {
    return this.arrivals.flatMap(({ state }, number) => (state === "consumed" ? [] : [number]));
  }
}

const operation = fc.record({
  kind: fc.constantFrom("arrive", "arrive", "bind", "bind", "consume", "drop"),
  pick: fc.nat(),
});

test("a mailbox lane gives every wait what the model gives it, and forgets nothing", () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400 }), (operations) => {
      const lane = new QueueLane();
      const model = new Model();
      const waits: Wait[] = [];
      for (const { kind, pick } of operations) {
        if (kind === "arrive") {
          const number = model.arrivals.push({ state: "free" }) - 1;
          lane.arrive({ order: number, name: "q", data: String(number) });
          model.match();
        } else if (kind === "bind") {
          const wait = new Wait();
          waits.push(wait);
          lane.bind(wait);
          model.waits.push({ state: "live", arrival: null });
          model.match();
        } else {
          const wanted = kind === "consume" ? ["assigned"] : ["live", "assigned"];
          const open = waits.flatMap(({ state }, at) => (wanted.includes(state) ? [at] : []));
          const at = open[pick % open.length];
          if (at === undefined) continue;
          if (kind === "consume") lane.consume(waits[at]!);
          else lane.drop(waits[at]!);
          waits[at]!.state = kind === "consume" ? "consumed" : "dropped";
          model.finish(at, kind === "consume" ? "consumed" : "dropped");
        }
        expect(waits.map(({ state }) => state)).toEqual(model.waits.map(({ state }) => state));
      }
      for (const [at, { state, data }] of waits.entries()) {
        if (state !== "dropped") expect(data).toBe(model.waits[at]!.arrival?.toString() ?? null);
      }
      const unseen = lane.unconsumed().map(({ order }) => order);
      expect(unseen.sort((a, b) => a - b)).toEqual(model.unseen());
    }),
    { numRuns: 300 },
  );
});
