// Virtual time waits for a store that does real I/O, and for as long as it takes.

import { readFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Clock, holding, sleep } from "../../src/clock.js";
import { activity, orchestration } from "../../src/define.js";
import { type ProviderOperation, ProviderWrapper } from "../../src/provider/kit/provider-wrapper.js";
import type { Provider } from "../../src/provider/provider.js";
import { MemoryProvider } from "../../src/providers/memory/index.js";
import { MortalClock } from "../../src/testing/mortality.js";
import { PatientClock } from "../../src/testing/patient-clock.js";
import { type StoreTools, TestWorld } from "../../src/testing/test-world.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const never = new Promise<never>(() => {});

describe("held time", () => {
  test("stands still until the work has ended, and answers as it does", async () => {
    const clock = new VirtualClock(0);
    const ends: unknown[] = [];
    const work = async (): Promise<void> => {
      await sleep(clock, 1);
      ends.push(await holding(clock, realWork()), clock.now());
      await expect(holding(clock, realWork("no such file"))).rejects.toMatchObject({ code: "ENOENT" });
      ends.push(clock.now());
    };
    clock.setTimer(2, () => ends.push("the next timer"));
    await Promise.all([work(), clock.advance(10)]);

    expect(ends).toEqual(["read", 1, 1, "the next timer"]);
    expect(clock.now()).toBe(10);
  });

  test("goes on when the last of many has ended, and whatever that woke is at rest", async () => {
    const clock = new VirtualClock(0);
    const ends: number[] = [];
    const work = async (turns: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn += 1) {
        await holding(clock, realWork());
        for (let round = 0; round < 8; round += 1) await eventLoopRound();
      }
      ends.push(clock.now());
    };
    clock.setTimer(1, () => void Promise.all([work(1), work(2), work(4)]));
    clock.setTimer(2, () => {});
    await clock.advance(5);

    expect(ends).toEqual([1, 1, 1]);
  });

  test("counts work that has ended within a round as work", async () => {
    const clock = new VirtualClock(0);
    let endedAt = -1;
    clock.setTimer(1, async () => {
      for (let round = 0; round < 40; round += 1) {
        await holding(clock, Promise.resolve());
        await eventLoopRound();
      }
      endedAt = clock.now();
    });
    clock.setTimer(2, () => {});
    await clock.advance(5);

    expect(endedAt).toBe(1);
  });

  test("is the same time for all who move it", async () => {
    const clock = new VirtualClock(0);
    const ends: number[] = [];
    const work = async (startsIn: number): Promise<void> => {
      await sleep(clock, startsIn);
      await holding(clock, realWork());
      ends.push(clock.now());
    };
    await Promise.all([...[1, 2, 3].map((startsIn) => clock.run(work(startsIn))), clock.advance(3)]);

    expect(ends).toEqual([1, 2, 3]);
    expect(clock.now()).toBe(3);
  });

  test("keeps nobody waiting whose promise has settled", async () => {
    const clock = new VirtualClock();
    void holding(clock, never);
    await clock.run(eventLoopRound());
    expect(await clock.run(realWork())).toBe("read");
  });

  test("is handed on by the clocks that a world gives away", async () => {
    const world = new PatientClock(0, 0);
    for (const clock of [world.housekeeping, new MortalClock(world.housekeeping)]) {
      const begin = world.now();
      const endedAt = holding(clock, realWork()).then(() => world.now());
      await world.advance(1);

      expect(await endedAt).toBe(begin);
    }
  });
});

describe("time that nobody lets go", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("is an error that says so, when no work ends for long", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    vi.resetModules(); // The clock takes hold of the real timers when it is loaded.
    const loaded = await import("../../src/testing/virtual-clock.js");
    const clock = new loaded.VirtualClock();
    void holding(clock, never);
    let letGo = (): void => {};
    void holding(clock, new Promise<void>((resolve) => (letGo = resolve)));
    const [advanced, ran] = [clock.advance(1), clock.run(never)].map(told);

    await eventLoopRounds();
    await vi.advanceTimersByTimeAsync(19_000);
    letGo();
    await eventLoopRounds();
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(19_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await advanced).toMatch(
      /^DUROXIDE_TIMEOUT: Time is held for 1 call of a store .* the store does not answer/,
    );

    await eventLoopRounds();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await ran).toMatch(/^DUROXIDE_TIMEOUT: Time is held/);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is an error that says so, when work follows on work without end", async () => {
    const clock = new VirtualClock();
    let isOver = false;
    const onAndOn = async (): Promise<void> => {
      while (!isOver) {
        const work = eventLoopRound();
        await Promise.all(Array.from({ length: 10_000 }, () => holding(clock, work)));
      }
    };
    const ended = onAndOn();
    const said = await told(clock.advance(1));
    isOver = true;
    await ended;

    expect(said).toMatch(/^DUROXIDE_TIMEOUT: .*something calls its store on and on/);
  });
});

describe("a world on a store that is far away", () => {
  test("comes to the same end at the same time, with the same histories, as one in memory", async () => {
    const here = await lifeOn((tools) => new MemoryProvider(tools));
    const link = await Link.open();
    const there = await lifeOn((tools) => new FarProvider(new MemoryProvider(tools), link, tools.clock));

    expect(link.trips).toBeGreaterThan(40);
    expect(there).toEqual(here);
    expect(here).toMatchObject({ output: "paid, packed", minutesPassed: 4 * 24 * 60 + 5, activityAttempts: [1, 1, 1] });
  });
});

const charge = activity("Charge", async () => "paid");
const pack = activity("Pack", async () => "packed");
const inspect = activity("Inspect", async () => {});
const parcel = orchestration("Parcel", async (ctx) => {
  await ctx.scheduleTimer("1d");
  return ctx.scheduleActivity(pack);
});
const checkout = orchestration("Checkout", async (ctx) => {
  const first = await ctx.race({ paid: ctx.scheduleActivity(charge), late: ctx.scheduleTimer(5) });
  await ctx.scheduleTimer("3d");
  const sent = await ctx.scheduleSubOrchestration(parcel);
  await ctx.scheduleActivity(inspect);
  return `${first.winner}, ${sent}`;
});

/** An activity of minutes renews its lock. That of a turn lasts as long as a few calls do, in real time. */
const SHORT_LOCKS = { orchestratorLockTimeoutMs: 50, workerLockTimeoutMs: 60_000, workerLockRenewalBufferMs: 5_000 };

/** All that came of an order, for one store to be compared with another. */
async function lifeOn(provider: (tools: StoreTools) => Provider): Promise<object> {
  await using world = await TestWorld.open({ provider, patienceMs: 0 });
  const begin = world.clock.now();
  const takesMinutes = activity(inspect, () => sleep(world.clock, 5 * 60_000));
  await world.start({ orchestrations: [checkout, parcel], activities: [charge, pack, takesMinutes], ...SHORT_LOCKS });
  const output = await world.run(checkout, { instanceId: "order-1" });
  const minutesPassed = (world.clock.now() - begin) / 60_000;
  const instances = (await world.provider.admin?.listInstances()) ?? [];
  return {
    output,
    minutesPassed,
    activityAttempts: world.factsOf("activity-started").map(({ ref }) => ref.attempt),
    histories: await Promise.all(instances.toSorted().map((instance) => world.history(instance))),
  };
}

/** A store whose every call travels there and back before and after it is done. */
class FarProvider extends ProviderWrapper {
  readonly #link: Link;
  readonly #clock: Clock;

  constructor(inner: Provider, link: Link, clock: Clock) {
    super(inner);
    this.#link = link;
    this.#clock = clock;
  }

  protected override async around<T>(_operation: ProviderOperation, call: () => Promise<T>): Promise<T> {
    await holding(this.#clock, this.#link.trip());
    const answer = await call(); // Which may wait for virtual time.
    await holding(this.#clock, this.#link.trip());
    return answer;
  }
}

/** A way through a socket, on which every byte comes back, in order and late. */
class Link {
  trips = 0;
  readonly #socket: Socket;
  readonly #under: (() => void)[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes) => {
      for (const arrive of this.#under.splice(0, bytes.length)) arrive();
    });
  }

  static async open(): Promise<Link> {
    const server = createServer((socket) => {
      socket.on("data", (bytes) => void setTimeout(() => socket.write(bytes), 20)); // So far away is the store.
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const socket = connect(server.address() as { port: number });
    onTestFinished(() => {
      socket.destroy();
      server.close();
    });
    return new Link(socket);
  }

  trip(): Promise<void> {
    this.trips += 1;
    return new Promise((resolve) => {
      this.#under.push(resolve);
      this.#socket.write(".");
    });
  }
}

/** Takes some real milliseconds, at no time that anybody knows. */
async function realWork(file: string | URL = new URL(import.meta.url)): Promise<string> {
  for (let times = 0; times < 20; times += 1) await readFile(file);
  return "read";
}

function eventLoopRound(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** As many as it takes to come to rest. */
async function eventLoopRounds(): Promise<void> {
  for (let round = 0; round < 40; round += 1) await eventLoopRound();
}

/** The error, by its code and words. */
async function told(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "nothing",
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );
}
