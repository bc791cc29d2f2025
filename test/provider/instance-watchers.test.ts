import { expect, test } from "vitest";
import { InstanceWatchers } from "../../src/provider/kit/instance-watchers.js";

test("a watcher that throws keeps nobody from hearing, neither its neighbours nor whoever has committed", () => {
  const watchers = new InstanceWatchers();
  const heard: string[] = [];
  watchers.watchInstance("a", () => {
    throw new Error("this one cannot be told");
  });
  watchers.watchInstance("a", (change) => heard.push(change));
  watchers.changed("a", "turn");
  watchers.anythingChanged();

  expect(heard).toEqual(["turn", "state"]);
});
