import { type Counted, catalogue, type Gauge, type Metric, type MetricName } from './catalogue.ts'
import { Family, type RegistryMetric, type Sample } from './family.ts'
import type { Observer } from './observer.ts'

/** Metrics that are read at each scrape: every gauge, and counts that are kept elsewhere. */
export type Sources = { readonly [K in Gauge]: () => readonly Sample[] } & {
  readonly [K in Counted]?: () => readonly Sample[]
}

/** A registry of `prom-client`. */
export type MetricRegistry = {
  registerMetric(metric: never): void
  removeSingleMetric(name: string): void
}

export type Meter = Omit<Observer, 'tracer'> & {
  /** Adds all metrics to a registry; call the returned function to take them out. */
  register(registry: MetricRegistry, sources: Sources): () => void
}

/** The counts of one service. `prom-client` only writes them out: its own cost several times as much per value. */
export function createMeter(): Meter {
  const families = Object.fromEntries(
    Object.entries<Metric>(catalogue).map(([name, metric]) => [name, new Family(metric)]),
  ) as Record<MetricName, Family>
  return {
    count: (metric, a, b, c) => {
      families[metric].of(a, b, c).sum += 1
    },
    add: (metric, by, a, b, c) => {
      families[metric].of(a, b, c).sum += by
    },
    observe: (metric, value, a, b, c) => {
      const family = families[metric]
      const series = family.of(a, b, c)
      series.sum += value
      const bucket = family.bucketOf(value)
      series.counts[bucket] = (series.counts[bucket] as number) + 1
    },
    register: (registry, sources) => {
      const metrics = Object.entries(families).map(
        ([name, family]): RegistryMetric => family.as(`cellkeep_${name}`, sources[name as Gauge]),
      )
      const added: string[] = []
      const remove = (): void => {
        for (const name of added.splice(0)) registry.removeSingleMetric(name)
      }
      try {
        for (const metric of metrics) {
          registry.registerMetric(metric as never)
          added.push(metric.name)
        }
      } catch (error) {
        remove()
        throw error
      }
      return remove
    },
  }
}
