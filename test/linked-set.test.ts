import { expect, test } from "vitest";
import { LinkedSet } from "../src/linked-set.js";

interface Member {
  readonly name: string;
}

const [A, B, C] = [{ name: "a" }, { name: "b" }, { name: "c" }] as const;

function names(set: LinkedSet<Member>): string {
  return set
    .values()
    .map(({ name }) => name)
    .join("");
}

test("members stand in the order in which they came, whichever of them goes", () => {
  for (const leaves of [0, 1, 2]) {
    const set = new LinkedSet<Member>();
    const places = [A, B, C].map((member) => set.add(member));
    expect(set.delete(places[leaves]!)).toBe(true);
    expect([names(set), set.size, set.first]).toEqual([["bc", "ac", "ab"][leaves], 2, leaves === 0 ? B : A]);

    set.add(places[leaves]!.value ?? [A, B, C][leaves]!);
    expect(names(set)).toBe(["bca", "acb", "abc"][leaves]);
  }
});

test("who is gone cannot go again, nor take others along", () => {
  const set = new LinkedSet<Member>();
  const [a, b] = [set.add(A), set.add(B)];
  expect([set.delete(a), set.delete(a), set.delete(b), set.delete(b)]).toEqual([true, false, true, false]);
  expect([set.size, set.first, set.values()]).toEqual([0, undefined, []]);
  set.add(C);
  expect([set.delete(a), names(set), set.size]).toEqual([false, "c", 1]);
});

test("the same member may be there twice", () => {
  const set = new LinkedSet<Member>();
  const first = set.add(A);
  set.add(A);
  set.delete(first);
  expect(names(set)).toBe("a");
});

test("whoever goes through them may add and delete", () => {
  const set = new LinkedSet<Member>();
  const places = [A, B].map((member) => set.add(member));
  const seen: string[] = [];
  for (const { name } of set.values()) {
    seen.push(name);
    for (const place of places) set.delete(place);
    set.add(C);
  }
  expect([seen.join(""), names(set)]).toEqual(["ab", "cc"]);
});

test("the first few are the oldest", () => {
  const set = new LinkedSet<Member>();
  for (const member of [A, B, C]) set.add(member);
  expect([0, 2, 9, Number.POSITIVE_INFINITY].map((most) => set.values(most))).toEqual([
    [],
    [A, B],
    [A, B, C],
    [A, B, C],
  ]);
});

test("a place that was left points to nothing: garbage that knows of it keeps nothing else", () => {
  const set = new LinkedSet<Member>();
  const [a, b] = [set.add(A), set.add(B)];
  set.delete(a);
  expect([a.value, a.previous, a.next, b.previous]).toEqual([undefined, null, null, null]);
});
