import { describe, expect, onTestFinished, test, vi } from "vitest";
import { InvalidOptionsError, MisuseError, ProviderError } from "../../src/errors.js";
import { Batcher, type BatcherOptions, type Outcome } from "../../src/provider/kit/batcher.js";

type Answer = readonly Outcome<string>[];

/** A batch on its way, until the test lets it come back. */
interface Flight {
  readonly calls: readonly string[];
  readonly land: (answer?: Answer) => Promise<void>;
  readonly fail: (error: unknown) => Promise<void>;
}

/** A batcher whose batches stay on their way until told otherwise. */
function inTheAir(options: Partial<BatcherOptions<string, string>> = {}): {
  readonly batcher: Batcher<string, string>;
  readonly flights: readonly Flight[];
} {
  const flights: Flight[] = [];
  const run = (calls: readonly string[]): Promise<Answer> =>
    new Promise((resolve, reject) => {
      flights.push({
        calls,
        land: (answer = echo(calls)) => {
          resolve(answer);
          return rounds();
        },
        fail: (error) => {
          reject(error);
          return rounds();
        },
      });
    });
  return { batcher: new Batcher({ run, ...options }), flights };
}

/** A batcher whose batches come back at once, as `answer` says. */
function atOnce(
  answer: (calls: readonly string[]) => Answer,
  options: Partial<BatcherOptions<string, string>> = {},
): { readonly batcher: Batcher<string, string>; readonly batches: readonly (readonly string[])[] } {
  const batches: (readonly string[])[] = [];
  const run = (calls: readonly string[]): Answer => {
    batches.push(calls);
    return answer(calls);
  };
  return { batcher: new Batcher({ run, ...options }), batches };
}

function echo(calls: readonly string[]): Answer {
  return calls.map((call) => ({ value: `${call}!` }));
}

/** Everything that is pending has begun, or never will by itself. */
async function rounds(count = 3): Promise<void> {
  for (let round = 0; round < count; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

function submitAll(batcher: Batcher<string, string>, ...calls: readonly string[]): Promise<unknown[]> {
  return Promise.all(calls.map((call) => batcher.submit(call).catch((error: unknown) => error)));
}

const refused = new ProviderError("lock-lost", "ack", "somebody else has it");
const transient = new ProviderError("transient", "ack", "try again");

describe("calls that are pending at one moment", () => {
  test("go together, in the order of their submission", async () => {
    const { batcher, batches } = atOnce(echo);

    const first = batcher.submit("a");
    const later = Promise.resolve().then(() => batcher.submit("b"));

    expect(await Promise.all([first, later, batcher.submit("c")])).toEqual(["a!", "b!", "c!"]);
    expect(batches).toEqual([["a", "c", "b"]]);
  });

  test("wait for the event loop, and so do those that follow from their answers: timers fire in between", async () => {
    const { batcher } = atOnce(echo);
    let hasFired = false;
    setTimeout(() => {
      hasFired = true;
    }, 1);

    for (let calls = 0; calls < 100_000 && !hasFired; calls += 1) await batcher.submit("again");

    expect(hasFired).toBe(true);
  });

  test("are run though a test framework fakes the timers", async () => {
    vi.useFakeTimers({ toFake: ["setImmediate", "setTimeout", "queueMicrotask"] });
    onTestFinished(() => void vi.useRealTimers());
    const { batcher } = atOnce(echo);

    expect(await batcher.submit("a")).toBe("a!");
  });

  test("are cut into batches of no more than the most calls", async () => {
    const { batcher, batches } = atOnce(echo, { maxCalls: 2 });

    expect(await submitAll(batcher, "a", "b", "c", "d", "e")).toEqual(["a!", "b!", "c!", "d!", "e!"]);
    expect(batches).toEqual([["a", "b"], ["c", "d"], ["e"]]);
  });

  test("are two hundred at most where nobody says otherwise", async () => {
    const { batcher, batches } = atOnce(echo);

    await submitAll(batcher, ...Array.from({ length: 450 }, (_, place) => String(place)));

    expect(batches.map((batch) => batch.length)).toEqual([200, 200, 50]);
  });
});

describe("while a batch is on its way", () => {
  test("the batcher is busy, and not a moment before or after, however it ends", async () => {
    const { batcher, flights } = inTheAir();
    const calls = [batcher.submit("a"), batcher.submit("b").catch(() => {})];
    expect(batcher.isBusy).toBe(false);
    await rounds();
    expect(batcher.isBusy).toBe(true);
    await flights[0]!.land();
    expect(batcher.isBusy).toBe(false);
    void batcher.submit("c").catch(() => {});
    await rounds();
    expect(batcher.isBusy).toBe(true);
    await flights[1]!.fail(new Error("no"));
    expect(batcher.isBusy).toBe(false);
    await Promise.all(calls);
  });

  test("others wait, and go together as soon as it has come back, with those that its answers caused", async () => {
    const { batcher, flights } = inTheAir();
    const caused = batcher.submit("a").then(() => batcher.submit("d"));
    await rounds();
    const others = submitAll(batcher, "b", "c");
    await rounds();
    expect(flights).toHaveLength(1);

    await flights[0]!.land();
    expect(flights.map(({ calls }) => calls)).toEqual([["a"], ["b", "c", "d"]]);

    await flights[1]!.land();
    expect(await others).toEqual(["b!", "c!"]);
    expect(await caused).toBe("d!");
  });

  test("the next one is put together a round of the event loop later, while it is executed", async () => {
    const { batcher, flights } = inTheAir({ maxInFlight: 3, maxCalls: 2 });
    const all = submitAll(batcher, "a", "b", "c", "d", "e");
    const seen: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      await rounds(1);
      seen.push(flights.length);
    }
    expect(seen).toEqual([1, 2, 3]);
    for (const flight of flights) await flight.land();
    expect(await all).toEqual(["a!", "b!", "c!", "d!", "e!"]);
  });

  test("as many others as allowed are on theirs, and each comes back by itself", async () => {
    const { batcher, flights } = inTheAir({ maxInFlight: 2, maxCalls: 1 });
    const answers: string[] = [];
    for (const call of ["a", "b", "c"]) void batcher.submit(call).then((answer) => answers.push(answer));
    await rounds();
    expect(flights.map(({ calls }) => calls)).toEqual([["a"], ["b"]]);

    await flights[1]!.land();
    expect(answers).toEqual(["b!"]);
    expect(flights.map(({ calls }) => calls)).toEqual([["a"], ["b"], ["c"]]);

    await flights[0]!.land();
    await flights[2]!.land();
    expect(answers).toEqual(["b!", "a!", "c!"]);
  });
});

describe("the share of a batch", () => {
  test("is what it takes of those who wait", async () => {
    const shares: (readonly [number, number])[] = [];
    const shareOf = (waiting: number, inFlight: number): number => {
      shares.push([waiting, inFlight]);
      return Math.ceil((waiting + inFlight) / 2);
    };
    const { batcher, flights } = inTheAir({ maxInFlight: 9, shareOf });
    const all = submitAll(batcher, "a", "b", "c", "d", "e");
    await rounds(5);

    expect(flights.map(({ calls }) => calls)).toEqual([
      ["a", "b", "c"],
      ["d", "e"],
    ]);
    expect(shares).toEqual([
      [5, 0],
      [2, 3],
    ]);
    for (const flight of flights) await flight.land();
    expect(await all).toEqual(["a!", "b!", "c!", "d!", "e!"]);
  });

  test("may be nothing as long as another batch is on its way, and is looked for again when that has ended", async () => {
    const { batcher, flights } = inTheAir({ maxInFlight: 9, shareOf: (_waiting, inFlight) => (inFlight > 0 ? 0 : 2) });
    const all = submitAll(batcher, "a", "b", "c");
    await rounds(5);
    expect(flights.map(({ calls }) => calls)).toEqual([["a", "b"]]);

    await flights[0]!.land();

    expect(flights.map(({ calls }) => calls)).toEqual([["a", "b"], ["c"]]);
    await flights[1]!.land();
    expect(await all).toEqual(["a!", "b!", "c!"]);
  });

  test.each<readonly [string, () => number]>([
    ["nothing", () => 0],
    ["less", () => -1],
  ])("is one where no batch is on its way, also if it is said to be %s", async (_, shareOf) => {
    const { batcher, batches } = atOnce(echo, { shareOf });
    expect(await submitAll(batcher, "a", "b")).toEqual(["a!", "b!"]);
    expect(batches).toEqual([["a"], ["b"]]);
  });

  test.each<readonly [string, () => number]>([
    ["no number", () => Number.NaN],
    [
      "an error",
      () => {
        throw new Error("no share");
      },
    ],
  ])("is all that a batch may take where it is %s", async (_, shareOf) => {
    const { batcher, batches } = atOnce(echo, { shareOf, maxCalls: 2 });
    expect(await submitAll(batcher, "a", "b", "c")).toEqual(["a!", "b!", "c!"]);
    expect(batches).toEqual([["a", "b"], ["c"]]);
  });
});

describe("a call that waits for others", () => {
  /** Calls are named after the rounds that they wait. */
  const roundsOf = Number;

  test.each(["0", "3", "60"])("goes alone when it has waited so many rounds, and not sooner: %s", async (call) => {
    const { batcher, flights } = inTheAir({ roundsOf });
    const answer = batcher.submit(call);
    await rounds(Number(call));
    expect(flights).toEqual([]);

    await rounds(1);

    expect(flights.map(({ calls }) => calls)).toEqual([[call]]);
    await flights[0]!.land();
    expect(await answer).toBe(`${call}!`);
  });

  test.each<readonly [string, readonly string[], number]>([
    ["at once, with one that does not wait", ["4", "0", "4"], 0],
    ["when the last one has waited enough", ["4", "4", "1"], 1],
    ["when the first one has waited enough", ["1", "4", "4"], 1],
  ])("goes %s", async (_, names, waited) => {
    const { batcher, flights } = inTheAir({ roundsOf });
    const all = submitAll(batcher, ...names);
    await rounds(waited);
    expect(flights).toEqual([]);

    await rounds(1);

    expect(flights.map(({ calls }) => calls)).toEqual([names]);
    await flights[0]!.land();
    expect(await all).toEqual(names.map((name) => `${name}!`));
  });

  test("goes with those who come meanwhile, however long these would wait", async () => {
    const { batcher, flights } = inTheAir({ roundsOf });
    const first = batcher.submit("3");
    await rounds(2);
    const second = batcher.submit("9");

    await rounds(2);

    expect(flights.map(({ calls }) => calls)).toEqual([["3", "9"]]);
    await flights[0]!.land();
    expect(await Promise.all([first, second])).toEqual(["3!", "9!"]);
  });

  test("does not wait where as many do as a batch takes", async () => {
    const { batcher, flights } = inTheAir({ roundsOf, maxCalls: 2 });
    const all = submitAll(batcher, "9", "8");
    await rounds(1);

    expect(flights.map(({ calls }) => calls)).toEqual([["9", "8"]]);
    await flights[0]!.land();
    expect(await all).toEqual(["9!", "8!"]);
  });

  test("waits when a batch may begin again, for those who come after its answer", async () => {
    const { batcher, flights } = inTheAir({ roundsOf });
    const first = batcher.submit("0");
    await rounds(1);
    const second = batcher.submit("2");
    await rounds(9);

    await flights[0]!.land();
    const third = first.then(() => batcher.submit("0"));
    await rounds(3);

    expect(flights.map(({ calls }) => calls)).toEqual([["0"], ["2", "0"]]);
    await flights[1]!.land();
    expect(await Promise.all([second, third])).toEqual(["2!", "0!"]);
  });

  test.each<readonly [string, number, number]>([
    ["a hundred rounds where it is to wait for ever", Number.POSITIVE_INFINITY, 100],
    ["none where it is told no number", Number.NaN, 0],
  ])("waits %s", async (_, told, waited) => {
    const { batcher, flights } = inTheAir({ roundsOf: () => told });
    const answer = batcher.submit("a");
    await rounds(waited);
    expect(flights).toEqual([]);

    await rounds(1);

    expect(flights.map(({ calls }) => calls)).toEqual([["a"]]);
    await flights[0]!.land();
    expect(await answer).toBe("a!");
  });
});

describe("a call that is refused", () => {
  test("rejects alone: its neighbours have their answers", async () => {
    const answer: Answer = [{ value: "first" }, { error: refused }, { value: "third" }];
    const { batcher, batches } = atOnce(() => answer);

    expect(await submitAll(batcher, "a", "b", "c")).toEqual(["first", refused, "third"]);
    expect(batches).toHaveLength(1);
  });

  test("may be refused with anything, even with nothing", async () => {
    const { batcher } = atOnce((calls) => calls.map(() => ({ error: undefined })));

    await expect(batcher.submit("a")).rejects.toBeUndefined();
  });
});

describe("a batch that fails as a whole", () => {
  const failsWith =
    (error: unknown) =>
    (calls: readonly string[]): Answer => {
      if (calls.includes("bad")) throw error;
      return echo(calls);
    };

  test("is run call by call, in order, so that only the culprit fails", async () => {
    const { batcher, batches } = atOnce(failsWith(refused));

    expect(await submitAll(batcher, "a", "bad", "c")).toEqual(["a!", refused, "c!"]);
    expect(batches).toEqual([["a", "bad", "c"], ["a"], ["bad"], ["c"]]);
  });

  test("fails all alike where the error is transient", async () => {
    const { batcher, batches } = atOnce(failsWith(transient));

    expect(await submitAll(batcher, "a", "bad", "c")).toEqual([transient, transient, transient]);
    expect(batches).toHaveLength(1);
  });

  test("is run call by call where its owner says so, and only there", async () => {
    const { batcher, batches } = atOnce(failsWith(transient), { runsSingly: (error) => error === transient });
    expect(await submitAll(batcher, "a", "bad")).toEqual(["a!", transient]);
    expect(batches).toHaveLength(3);

    const other = atOnce(failsWith(refused), { runsSingly: (error) => error === transient });
    expect(await submitAll(other.batcher, "a", "bad")).toEqual([refused, refused]);
  });

  test("is not tried again when it was one call", async () => {
    const { batcher, batches } = atOnce(failsWith(refused));

    await expect(batcher.submit("bad")).rejects.toBe(refused);
    expect(batches).toHaveLength(1);
  });

  test("keeps its place until the last of its calls has ended", async () => {
    const { batcher, flights } = inTheAir();
    const calls = submitAll(batcher, "a", "b");
    await rounds();
    const later = batcher.submit("c");
    await flights[0]!.fail(refused);
    await flights[1]!.land();
    expect(flights.map((flight) => flight.calls)).toEqual([["a", "b"], ["a"], ["b"]]);

    await flights[2]!.land();
    await flights[3]!.land();
    expect([await calls, await later]).toEqual([["a!", "b!"], "c!"]);
  });
});

describe("a call that is answered before its batch is over", () => {
  const refused = new ProviderError("invalid", "test", "refused");

  /** "early" is answered at once; the batch ends when the test says so. */
  function withEarly(options: Partial<BatcherOptions<string, string>> = {}) {
    const runs: string[][] = [];
    let end: (answer: Answer | Error) => void = () => {};
    const batcher = new Batcher<string, string>({
      run: (calls, answer) => {
        runs.push([...calls]);
        const place = calls.indexOf("early");
        if (place >= 0) answer(place, { value: "at once" });
        return new Promise((resolve, reject) => {
          end = (how) => (how instanceof Error ? reject(how) : resolve(how));
        });
      },
      keyOf: (call) => call,
      ...options,
    });
    return { batcher, runs, end: (how: Answer | Error) => end(how) };
  }

  test("hears of it at once, and not again", async () => {
    const { batcher, end } = withEarly();
    const [early, late] = [batcher.submit("early"), batcher.submit("late")];
    expect(await early).toBe("at once");
    end([{ error: refused }, { value: "later" }]);
    expect([await early, await late]).toEqual(["at once", "later"]);
  });

  test("is not run again when the others are run one by one", async () => {
    const { batcher, runs, end } = withEarly();
    const calls = ["early", "late", "later"].map((call) => batcher.submit(call));
    await rounds();
    end(refused);
    await rounds();
    end([{ value: "alone" }]);
    await rounds();
    end([{ value: "alone, too" }]);
    expect(await Promise.all(calls)).toEqual(["at once", "alone", "alone, too"]);
    expect(runs).toEqual([["early", "late", "later"], ["late"], ["later"]]);
  });

  test.each(["keyOf", "laneOf"])("leaves its place to the next at once: %s", async (kind) => {
    const { batcher, runs } = withEarly({ [kind]: (call: string) => call, maxInFlight: 2 });
    const late = [batcher.submit("early"), batcher.submit("late")];
    expect(await late[0]).toBe("at once");
    void batcher.submit("late");

    expect(await batcher.submit("early")).toBe("at once");

    expect(runs).toEqual([["early", "late"], ["early"]]); // The other one waits for the one before it.
  });

  test("leaves its lane when the last of those of the lane is answered that are on their way", async () => {
    const { batcher, runs, end } = withEarly({ keyOf: () => null, laneOf: () => "lane", maxInFlight: 2 });
    const [early, late] = [batcher.submit("early"), batcher.submit("late")];
    expect(await early).toBe("at once");
    const next = batcher.submit("early");
    await rounds();
    expect(runs).toEqual([["early", "late"]]);

    end([{ value: "over" }, { value: "over" }]);

    expect([await late, await next]).toEqual(["over", "at once"]);
  });
});

describe("calls with the same key", () => {
  const keyOf = (call: string): string | null => (call.includes(":") ? call.split(":")[0]! : null);

  test("never share a batch, and run in the order in which they came; others overtake them", async () => {
    const { batcher, batches } = atOnce(echo, { keyOf });

    await submitAll(batcher, "x:1", "x:2", "free", "y:1", "x:3", "y:2");

    expect(batches).toEqual([["x:1", "free", "y:1"], ["x:2", "y:2"], ["x:3"]]);
  });

  test("are not on their way at the same time, however many batches may be", async () => {
    const { batcher, flights } = inTheAir({ keyOf, maxInFlight: 3 });
    const calls = submitAll(batcher, "x:1", "x:2", "free");
    await rounds();
    expect(flights.map((flight) => flight.calls)).toEqual([["x:1", "free"]]);

    await flights[0]!.land();
    await flights[1]!.land();
    expect(await calls).toEqual(["x:1!", "x:2!", "free!"]);
  });

  test("go on after one of them has failed", async () => {
    const { batcher } = atOnce(
      (calls) => {
        if (calls.includes("x:1")) throw transient;
        return echo(calls);
      },
      { keyOf },
    );

    expect(await submitAll(batcher, "x:1", "x:2")).toEqual([transient, "x:2!"]);
  });
});

describe("calls of the same lane", () => {
  const laneOf = (call: string): string | null => (call.includes(":") ? call.split(":")[0]! : null);

  test("share a batch, in the order in which they came", async () => {
    const { batcher, batches } = atOnce(echo, { laneOf });

    await submitAll(batcher, "x:1", "free", "x:2");

    expect(batches).toEqual([["x:1", "free", "x:2"]]);
  });

  test("are never in two batches at once; others overtake them", async () => {
    const { batcher, flights } = inTheAir({ laneOf, maxInFlight: 2 });
    const first = batcher.submit("x:1");
    await rounds();
    const rest = submitAll(batcher, "x:2", "y:1", "x:3");
    await rounds();
    expect(flights.map((flight) => flight.calls)).toEqual([["x:1"], ["y:1"]]);

    await flights[0]!.land();
    expect(flights[2]!.calls).toEqual(["x:2", "x:3"]);
    await flights[1]!.land();
    await flights[2]!.land();
    expect([await first, ...(await rest)]).toEqual(["x:1!", "x:2!", "y:1!", "x:3!"]);
  });

  test("do not overtake one of them whose key somebody has", async () => {
    const keyOf = (call: string): string | null => (call.endsWith("k") ? "key" : null);
    const { batcher, flights } = inTheAir({ keyOf, laneOf, maxInFlight: 2 });
    const calls = submitAll(batcher, "y:k", "x:k", "x:2", "z:1");
    await rounds();
    expect(flights.map((flight) => flight.calls)).toEqual([["y:k", "z:1"]]);

    await flights[0]!.land();
    expect(flights[1]!.calls).toEqual(["x:k", "x:2"]);
    await flights[1]!.land();
    expect(await calls).toEqual(["y:k!", "x:k!", "x:2!", "z:1!"]);
  });
});

describe("calls with a size", () => {
  const sizes = { sizeOf: (call: string) => call.length, maxBytes: 5 };

  test("share a batch up to the limit, in order: a smaller one does not overtake", async () => {
    const { batcher, batches } = atOnce(echo, sizes);

    await submitAll(batcher, "aa", "bbb", "cccc", "dd", "e");

    expect(batches).toEqual([["aa", "bbb"], ["cccc"], ["dd", "e"]]);
  });

  test("go alone when they are larger than the limit", async () => {
    const { batcher, batches } = atOnce(echo, sizes);

    await submitAll(batcher, "a", "bbbbbbbb", "c");

    expect(batches).toEqual([["a"], ["bbbbbbbb"], ["c"]]);
  });
});

describe("what a caller is told of an error", () => {
  const errorOf = (call: string, error: unknown): unknown => `${call}: ${String((error as Error).message)}`;

  test("is what its owner makes of it, for each call by itself", async () => {
    const refuses = atOnce((calls) => calls.map(() => ({ error: refused })), { errorOf });
    expect(await submitAll(refuses.batcher, "a", "b")).toEqual(["a", "b"].map((call) => `${call}: ${refused.message}`));

    const fails = (calls: readonly string[]): Answer => {
      if (calls.includes("bad")) throw refused;
      return echo(calls);
    };
    const singly = atOnce(fails, { errorOf });
    expect(await submitAll(singly.batcher, "a", "bad", "c")).toEqual(["a!", `bad: ${refused.message}`, "c!"]);

    const alike = atOnce(fails, { errorOf, runsSingly: () => false });
    expect(await submitAll(alike.batcher, "a", "bad")).toEqual([`a: ${refused.message}`, `bad: ${refused.message}`]);
  });

  test("is the error itself where nobody says otherwise, and its owner decides by the error itself", async () => {
    const seen: unknown[] = [];
    const { batcher } = atOnce(
      () => {
        throw transient;
      },
      {
        errorOf,
        runsSingly: (error) => {
          seen.push(error);
          return false;
        },
      },
    );
    await submitAll(batcher, "a", "b");
    expect(seen).toEqual([transient]);
  });
});

describe("after calls were answered", () => {
  test("their owner is told, and the callers have heard before", async () => {
    const told: unknown[] = [];
    const { batcher } = atOnce(echo, { onAnswered: () => void queueMicrotask(() => told.push("owner")) });
    const tell = (answer: string): number => told.push(answer);
    await Promise.all(["a", "b"].map((call) => batcher.submit(call).then(tell)));
    await batcher.idle();

    expect(told).toEqual(["a!", "b!", "owner"]);
  });

  test("their owner is told of each that was run by itself, and not of a batch that failed", async () => {
    const answered: (readonly string[])[] = [];
    const { batcher, batches } = atOnce(
      (calls) => {
        if (calls.includes("bad")) throw refused;
        return echo(calls);
      },
      { onAnswered: () => void answered.push(batches.at(-1)!) },
    );
    await submitAll(batcher, "a", "bad", "c");

    expect(answered).toEqual([["a"], ["c"]]);
  });
});

describe("every call is answered", () => {
  test.each<[string, Answer]>([
    ["too few outcomes", [{ value: "one" }]],
    ["too many", [{ value: "one" }, { value: "two" }, { value: "three" }]],
    ["none", []],
  ])("by a rejection where the batch answers with %s: nobody can tell whose they are", async (_, answer) => {
    const { batcher, batches } = atOnce(() => answer);

    const answers = await submitAll(batcher, "a", "b");

    expect(answers).toEqual([expect.any(MisuseError), expect.any(MisuseError)]);
    expect((answers[0] as MisuseError).message).toContain(`2 calls and answered with ${answer.length} outcomes`);
    expect(batches).toHaveLength(1);
  });

  test("by a rejection where the outcomes are none", async () => {
    const nothing = undefined as unknown as Outcome<string>;
    const { batcher } = atOnce(() => [{ value: "one" }, nothing]);

    expect(await submitAll(batcher, "a", "b")).toEqual(["one", expect.any(TypeError)]);
    expect(await submitAll(atOnce(() => undefined as unknown as Answer).batcher, "a")).toEqual([expect.any(TypeError)]);
  });

  test("by a rejection where a function of its owner throws, and the next ones are run", async () => {
    const bug = new Error("bug");
    const throws = (call: string): never => {
      throw Object.assign(bug, { call });
    };
    const bad = (call: string): boolean => call === "bad";
    const { batcher } = atOnce(echo, { keyOf: (call) => (bad(call) ? throws(call) : null) });
    expect(await submitAll(batcher, "a", "bad", "c")).toEqual(["a!", bug, "c!"]);

    const other = atOnce((calls) => (calls.some(bad) ? throws("bad") : echo(calls)), { runsSingly: () => throws("") });
    expect(await submitAll(other.batcher, "a", "bad")).toEqual([bug, bug]);
    expect(await other.batcher.submit("c")).toBe("c!");
  });

  test("before the batcher is idle", async () => {
    const { batcher, flights } = inTheAir({ maxCalls: 1 });
    const told: unknown[] = [];
    await batcher.idle();
    const tell = (answer: unknown): number => told.push(answer);
    for (const call of ["a", "b"]) void batcher.submit(call).then(tell, tell);
    const idle = batcher.idle().then(() => told.push("idle"));
    await rounds();
    await flights[0]!.land();
    expect(told).toEqual(["a!"]);

    await flights[1]!.fail(refused);
    await idle;
    expect(told).toEqual(["a!", refused, "idle"]);
  });
});

describe("options", () => {
  const run = echo;

  test.each<[string, unknown, string]>([
    ["no way to run", {}, "'run' is missing"],
    ["no options at all", undefined, "'run' is missing"],
    ["no calls", { run, maxCalls: 0 }, "'maxCalls' must be an integer from 1"],
    ["no flights", { run, maxInFlight: 0 }, "'maxInFlight' must be an integer from 1"],
    ["a limit without sizes", { run, maxBytes: 10 }, "without 'sizeOf'"],
    ["a misspelled one", { run, maxCals: 10 }, "Did you mean 'maxCalls'?"],
  ])("are refused: %s", (_, options, message) => {
    const construct = (): unknown => new Batcher(options as BatcherOptions<string, string>);
    expect(construct).toThrow(InvalidOptionsError);
    expect(construct).toThrow(message);
  });

  test("that are undefined are the defaults", async () => {
    const batcher = new Batcher({ run, maxCalls: undefined, keyOf: undefined } as BatcherOptions<string, string>);
    expect(await batcher.submit("a")).toBe("a!");
  });
});
