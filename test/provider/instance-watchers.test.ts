import { expect, test } from "vitest";
import { InstanceWatchers } from "../../src/provider/kit/instance-watchers.js";
import type { InstanceChange } from "../../src/provider/provider.js";

test("a watcher that throws keeps nobody from hearing, neither its neighbours nor whoever has committed", () => {
  const watchers = new InstanceWatchers();
  const heard: InstanceChange[] = [];
  watchers.watchInstance("a", () => {
    throw new Error("this one cannot be told");
  });
  watchers.watchInstance("a", (change) => heard.push(change));
  watchers.changed("a", "turn");
  watchers.anythingChanged();

  expect(heard).toEqual(["turn", "state"]);
});

test("a completion is told to those who watched when its commit was sent; whoever came later hears that something has changed", () => {
  const watchers = new InstanceWatchers();
  const heard: (readonly [string, InstanceChange])[] = [];
  watchers.watchInstance("a", (change) => heard.push(["early", change]));
  const sentAsOf = watchers.lastNr;
  watchers.watchInstance("a", (change) => heard.push(["late", change]));
  watchers.changed("a", { output: "7" }, sentAsOf);
  watchers.changed("a", "turn", sentAsOf);
  watchers.changed("a", { output: "8" });

  expect(heard).toEqual([
    ["early", { output: "7" }],
    ["late", "state"],
    ["early", "turn"],
    ["late", "turn"],
    ["early", { output: "8" }],
    ["late", { output: "8" }],
  ]);
});

test("all that is told is counted, also where nobody hears it", () => {
  const watchers = new InstanceWatchers();
  watchers.watchInstance("a", () => {});
  const counts = [watchers.changes];
  for (const tell of [
    () => watchers.changed("a", "turn"),
    () => watchers.changed("b"),
    () => watchers.anythingChanged(),
  ]) {
    tell();
    counts.push(watchers.changes);
  }
  expect(new Set(counts).size).toBe(4);
});
