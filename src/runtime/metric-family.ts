// runtime/metric-family.ts — counters, gauges and histograms by label, and their text for Prometheus.
//
//   F1. A family holds a bounded number of series. Labels beyond it are counted together, every one as `other`: a metric
//       may become coarse, but never a leak.

interface Series<V> {
  readonly labels: readonly string[];
  value: V;
}

/** Series by their labels, one step for each: no key must be put together to find one. */
class Branch<V> {
  readonly next = new Map<string, Branch<V>>();
  series: Series<V> | null = null;
}

const MOST_SERIES = 1_000;
const OVERFLOW_LABEL = "other";

abstract class MetricFamily<V> {
  readonly name: string;
  readonly #help: string;
  readonly #labelNames: readonly string[];
  readonly #series: Series<V>[] = [];
  readonly #root = new Branch<V>();
  /** The last that was asked for: of calls that come together most are alike. */
  #last: Series<V> | null = null;

  constructor(name: string, help: string, labelNames: readonly string[]) {
    this.name = name;
    this.#help = help;
    this.#labelNames = labelNames;
  }

  protected abstract readonly kind: "counter" | "gauge" | "histogram";
  protected abstract empty(): V;
  /** The lines of one series; `labelled` writes a sample's name with its labels and a few more. */
  protected abstract samples(value: V, labelled: Labelled): string[];

  /** The text exposition of the whole family; nothing while there are no series. */
  lines(): string[] {
    if (this.#series.length === 0) return [];
    const samples = this.#series.flatMap(({ labels, value }) =>
      this.samples(value, (suffix, extra) => `${this.name}${suffix}${this.#labelText(labels, extra)}`),
    );
    return [`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.kind}`, ...samples];
  }

  protected series(labels: readonly string[]): Series<V> {
    if (this.#last !== null && areSame(this.#last.labels, labels)) return this.#last;
    const known = this.#find(labels);
    if (known !== null) {
      this.#last = known;
      return known;
    }
    if (this.#series.length < MOST_SERIES) return this.#add(labels);
    const other = labels.map(() => OVERFLOW_LABEL); // F1
    return this.#find(other) ?? this.#add(other);
  }

  #find(labels: readonly string[]): Series<V> | null {
    let branch: Branch<V> | undefined = this.#root;
    for (const label of labels) {
      branch = branch.next.get(label);
      if (branch === undefined) return null;
    }
    return branch.series;
  }

  #add(labels: readonly string[]): Series<V> {
    let branch = this.#root;
    for (const label of labels) {
      const next = branch.next.get(label) ?? new Branch<V>();
      branch.next.set(label, next);
      branch = next;
    }
    branch.series = { labels, value: this.empty() };
    this.#series.push(branch.series);
    return branch.series;
  }

  #labelText(labels: readonly string[], extra: string | null): string {
    const pairs = labels.map((label, index) => `${this.#labelNames[index]}="${escapeLabel(label)}"`);
    if (extra !== null) pairs.push(extra);
    return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
  }
}

/** Of one family, so that there are as many of both. */
function areSame(one: readonly string[], other: readonly string[]): boolean {
  for (let place = 0; place < one.length; place += 1) if (one[place] !== other[place]) return false;
  return true;
}

type Labelled = (suffix: string, extra: string | null) => string;

/** Only ever grows. */
export class Counter extends MetricFamily<number> {
  protected override readonly kind = "counter";

  add(labels: readonly string[], by = 1): void {
    this.series(labels).value += by;
  }

  protected override empty(): number {
    return 0;
  }

  protected override samples(value: number, labelled: Labelled): string[] {
    return [`${labelled("", null)} ${value}`];
  }
}

/** The last value that was set; without labels. */
export class Gauge extends MetricFamily<number> {
  protected override readonly kind = "gauge";

  constructor(name: string, help: string) {
    super(name, help, []);
    this.set(0);
  }

  get value(): number {
    return this.series([]).value;
  }

  set(value: number): void {
    this.series([]).value = value;
  }

  protected override empty(): number {
    return 0;
  }

  protected override samples(value: number, labelled: Labelled): string[] {
    return [`${labelled("", null)} ${value}`];
  }
}

interface Distribution {
  /** By bucket, not yet cumulative; the last one has no upper bound. */
  readonly counts: number[];
  sum: number;
}

/** Counts values by upper bounds. */
export class Histogram extends MetricFamily<Distribution> {
  protected override readonly kind = "histogram";
  readonly #bounds: readonly number[];

  constructor(name: string, help: string, labelNames: readonly string[], bounds: readonly number[]) {
    super(name, help, labelNames);
    this.#bounds = bounds;
  }

  observe(labels: readonly string[], value: number): void {
    const distribution = this.series(labels).value;
    let bucket = 0;
    while (bucket < this.#bounds.length && !(value <= this.#bounds[bucket]!)) bucket += 1;
    distribution.counts[bucket]! += 1;
    distribution.sum += value;
  }

  protected override empty(): Distribution {
    return { counts: new Array<number>(this.#bounds.length + 1).fill(0), sum: 0 };
  }

  protected override samples({ counts, sum }: Distribution, labelled: Labelled): string[] {
    let total = 0;
    const buckets = counts.map((count, index) => {
      total += count;
      const bound = this.#bounds[index];
      return `${labelled("_bucket", `le="${bound === undefined ? "+Inf" : bound}"`)} ${total}`;
    });
    return [...buckets, `${labelled("_sum", null)} ${sum}`, `${labelled("_count", null)} ${total}`];
  }
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
