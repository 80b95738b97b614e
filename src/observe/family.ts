import type { Metric } from './catalogue.ts'

/** A value and the values of its labels, in the order of the catalogue. */
export type Sample = readonly [value: number, ...labels: string[]]

/** A metric as `prom-client` writes it. */
export type RegistryMetric = {
  name: string
  help: string
  type: string
  get(): Promise<object>
}

/** `sum` is the value of a counter; `counts` are the counts per bucket of a histogram. */
type Series = { labels: Record<string, string>; sum: number; counts: number[] }

/** The series of one metric. */
export class Family {
  readonly #metric: Metric
  readonly #buckets: readonly number[]
  readonly #series = new Map<string, Series>()

  constructor(metric: Metric) {
    this.#metric = metric
    this.#buckets = metric.buckets ?? []
    // A metric without labels exists from the start, so that its first increase is seen.
    if (metric.labels.length === 0 && metric.type !== 'gauge') this.#add('', [])
  }

  of(a = '', b = '', c = ''): Series {
    const { labels, max = Number.POSITIVE_INFINITY } = this.#metric
    const key = labels.length > 1 ? `${a} ${b} ${c}` : a
    const known = this.#series.get(key)
    if (known) return known
    // The last series is reserved for `other`.
    if (labels.length === 0 || this.#series.size < max - 1) return this.#add(key, [a, b, c])
    return this.#series.get(other) ?? this.#add(other, [other, other, other])
  }

  #add(key: string, values: string[]): Series {
    const labels = labelled(this.#metric.labels, values)
    const series = { labels, sum: 0, counts: new Array(this.#buckets.length + 1).fill(0) }
    this.#series.set(key, series)
    return series
  }

  /** The index of the bucket of a value; the last bucket has no bound. */
  bucketOf(value: number): number {
    const at = this.#buckets.findIndex((bound) => value <= bound)
    return at < 0 ? this.#buckets.length : at
  }

  as(name: string, source: (() => readonly Sample[]) | undefined): RegistryMetric {
    const { help, type, labels } = this.#metric
    const values = () =>
      source
        ? source().map(([value, ...of]) => ({ value, labels: labelled(labels, of) }))
        : [...this.#series.values()].flatMap((one) =>
            type === 'histogram' ? this.#histogram(name, one) : [{ value: one.sum, labels: one.labels }],
          )
    return { name, help, type, get: async () => ({ name, help, type, aggregator: 'sum', values: values() }) }
  }

  #histogram(name: string, { labels, sum, counts }: Series): object[] {
    let count = 0
    const buckets = counts.map((own, at) => {
      count += own
      const le = this.#buckets[at] ?? '+Inf'
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ]
  }
}

const other = 'other'

const labelled = (names: readonly string[], values: readonly string[]): Record<string, string> =>
  Object.fromEntries(names.map((name, at) => [name, values[at] ?? '']))
