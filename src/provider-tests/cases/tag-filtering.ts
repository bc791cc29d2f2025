// cases/tag-filtering.ts — a worker is given only work with tags that it asks for.

import type { Provider, TagFilter } from "../../provider/provider.js";
import { act } from "../builders.js";
import type { Category } from "../provider-case.js";
import { begin, fetchWork, LONG_LOCK_MS, takeWork } from "../steps.js";

/** More than any case queues, so that a provider which hands out the same work for ever is found out. */
const MOST_WORK = 50;

const UNTAGGED: TagFilter = { kind: "default-only" };
const ANY: TagFilter = { kind: "any" };

export const tagFiltering: Category = {
  name: "tag_filtering",
  about: "A worker is given only work with tags that it asks for.",
  cases: [
    {
      id: "default_only_fetches_untagged",
      promise: "A worker takes only untagged work unless it says otherwise",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, null, "gpu", null, null);
        t.equal((await takeWork(provider)).item.id, 1, "the work for a fetch without a filter");

        t.equal(await drain(provider, UNTAGGED), [3, 4], "the work for a fetch that asks for untagged work");
        t.isNull(await fetchWork(provider), "the tagged work, for a fetch without a filter");
      },
    },
    {
      id: "tags_fetches_only_matching",
      promise: "A worker that asks for a tag takes work of that tag, and no untagged work",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, null, "gpu", "cpu", "gpu");
        t.equal(await drain(provider, tags("gpu")), [2, 4], "the work with the tag");
      },
    },
    {
      id: "default_and_fetches_untagged_and_matching",
      promise: "A worker can ask for untagged work and for a tag",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, null, "gpu", "cpu");
        t.equal(await drain(provider, { kind: "default-and", tags: ["gpu"] }), [1, 2], "the work that fits");
      },
    },
    {
      id: "none_filter_returns_nothing",
      promise: "A worker that asks for no work gets none, and does not wait for it",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, null, "gpu");
        const fetch = fetchWork(provider, { tagFilter: { kind: "none" }, pollTimeoutMs: LONG_LOCK_MS });
        t.isNull(await t.soon(fetch, "the answer to a fetch that asks for no work"), "the work for it");
        t.equal(await drain(provider, ANY), [1, 2], "the work for another worker");
      },
    },
    {
      id: "multi_tag_filter",
      promise: "A worker that asks for several tags takes work of any of them",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, "gpu", "tpu", "cpu", null);
        t.equal(await drain(provider, tags("gpu", "tpu")), [1, 2], "the work that fits");
      },
    },
    {
      id: "tag_round_trip_preservation",
      promise: "The tag is part of the work that is handed out",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, "gpu", null);
        const tagged = await takeWork(provider, { tagFilter: tags("gpu") });
        t.equal(tagged.item, act("a", 1, { tag: "gpu" }), "the tagged work");
        t.equal((await takeWork(provider)).item, act("a", 2), "the untagged work");
      },
    },
    {
      id: "any_filter_fetches_everything",
      promise: "A worker can ask for all work, tagged or not",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, null, "gpu", "tpu", "cpu", "dsp", null, "gpu");
        t.equal(await drain(provider, ANY), [1, 2, 3, 4, 5, 6, 7], "all the work");
      },
    },
    {
      id: "tag_survives_abandon_and_refetch",
      promise: "Work that is abandoned keeps its tag",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, "gpu", null);
        const first = await takeWork(provider, { tagFilter: tags("gpu") });
        t.equal(first.item.id, 1, "the tagged work");
        await provider.abandonWorkItem(first.lockToken);

        const again = await takeWork(provider, { tagFilter: tags("gpu") });
        t.equal(again.item, act("a", 1, { tag: "gpu" }), "the tagged work after the abandon");
        t.equal(again.attemptCount, 2, "its attempts");
        t.ok(again.lockToken !== first.lockToken, "it has a new lock token");
        t.equal(await drain(provider, UNTAGGED), [2], "the untagged work");
      },
    },
    {
      id: "multi_runtime_tag_isolation",
      promise: "Workers with different tags do not take each other's work",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, null, "gpu", "cpu", "fpga", "gpu");
        t.equal(await drain(provider, UNTAGGED), [1], "the work of the first worker, which takes untagged work");
        for (const id of [2, 3]) {
          const { item } = await takeWork(provider, { tagFilter: tags("gpu", "cpu") });
          t.equal(item.id, id, "the next work of the second worker, which takes gpu and cpu");
        }

        t.equal(await drain(provider, tags("cpu", "fpga")), [4], "the work of the third, which takes cpu and fpga");
        t.equal(await drain(provider, ANY), [5], "what is left");
      },
    },
    {
      id: "tag_preserved_through_ack_orchestration_item",
      promise: "The tag of an activity that a turn schedules counts as any other",
      async run(t) {
        const { provider } = await t.open();
        const gpuWork = act("a", 10, { name: "GpuWork", tag: "gpu" });
        const cpuWork = act("a", 11, { name: "CpuWork" });
        await begin(provider, "a", { workerItems: [gpuWork, cpuWork] });

        const untagged = await takeWork(provider);
        t.equal(untagged.item, cpuWork, "the untagged activity");
        await provider.ackWorkItem(untagged.lockToken, null);
        t.isNull(await fetchWork(provider), "another untagged activity");
        const tagged = await takeWork(provider, { tagFilter: tags("gpu") });
        t.equal(tagged.item, gpuWork, "the tagged activity");
      },
    },
    {
      id: "oldest_work_first_whatever_its_tag",
      promise: "Of all the work that fits the oldest comes first, whatever its tag",
      async run(t) {
        const { provider } = await t.open();
        await enqueue(provider, "tpu", null, "gpu", "tpu", null, "gpu");
        t.equal((await takeWork(provider, { tagFilter: tags("gpu", "tpu") })).item.id, 1, "the work with either tag");
        const second = await takeWork(provider, { tagFilter: { kind: "default-and", tags: ["gpu"] } });
        t.equal(second.item.id, 2, "the work that is untagged or has the tag");
        t.equal(await drain(provider, ANY), [3, 4, 5, 6], "all the other work");
      },
    },
    {
      id: "tags_that_look_alike",
      promise: "Tags that differ only in case, in an accent or in a space at the end are different tags",
      async run(t) {
        const { provider } = await t.open();
        const alike = ["gpu", "GPU", "gpu ", "gpú"];
        await enqueue(provider, ...alike);
        for (const [index, tag] of alike.entries()) {
          t.equal(await drain(provider, tags(tag)), [index + 1], `the work with the tag '${tag}'`);
        }
      },
    },
    {
      id: "tags_are_taken_literally",
      promise: "No character of a tag has a meaning of its own",
      async run(t) {
        const { provider } = await t.open();
        const literal = ["%", "g_u", "a,b", '"', "it's", "[a]"];
        await enqueue(provider, ...literal, "gpu");
        t.equal(
          await drain(provider, tags("a", "b")),
          [],
          "the work with the tags 'a' and 'b', of which there is none",
        );
        for (const [index, tag] of literal.entries()) {
          t.equal(await drain(provider, tags(tag)), [index + 1], `the work with the tag '${tag}'`);
        }
      },
    },
    {
      id: "tags_as_many_and_as_long_as_allowed",
      promise: "A worker can ask for five tags of 256 bytes each",
      async run(t) {
        const { provider } = await t.open();
        const long = [..."abcde"].map((last) => "é".repeat(127) + last.repeat(2));
        await enqueue(provider, ...long, `${"é".repeat(127)}ff`);
        t.equal(await drain(provider, tags(...long)), [1, 2, 3, 4, 5], "the work with these tags");
      },
    },
    {
      id: "tag_and_session_must_both_fit",
      promise: "Work with a tag and a session is for a worker that takes both",
      async run(t) {
        const { provider } = await t.open();
        await provider.enqueueForWorker(act("a", 1, { tag: "gpu", sessionId: "s" }));
        const session = { ownerId: "A", lockTimeoutMs: LONG_LOCK_MS };
        t.isNull(await fetchWork(provider, { tagFilter: tags("gpu") }), "the work for a worker without sessions");
        t.isNull(await fetchWork(provider, { session }), "the work for a worker without tags");

        const { item } = await takeWork(provider, { tagFilter: tags("gpu"), session });
        t.equal(item, act("a", 1, { tag: "gpu", sessionId: "s" }), "the work for a worker with both");
      },
    },
  ],
};

function tags(...wanted: readonly string[]): TagFilter {
  return { kind: "tags", tags: wanted };
}

/** Activities 1, 2, 3 … with these tags. */
async function enqueue(provider: Provider, ...tagged: ReadonlyArray<string | null>): Promise<void> {
  for (const [index, tag] of tagged.entries()) {
    await provider.enqueueForWorker(act("a", index + 1, tag === null ? {} : { tag }));
  }
}

/** Everything that the filter lets through, in order. It stays locked. */
async function drain(provider: Provider, tagFilter: TagFilter): Promise<readonly number[]> {
  const ids: number[] = [];
  while (ids.length < MOST_WORK) {
    const locked = await fetchWork(provider, { tagFilter });
    if (locked === null) break;
    ids.push(locked.item.id);
  }
  return ids;
}
