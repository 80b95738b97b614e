import type { Counted, Observed } from './catalogue.ts'
import type { Tracer } from './tracer.ts'

/** Where the code reports its work to metrics and traces; label values are in the order of the catalogue. */
export type Observer = {
  count(metric: Counted, a?: string, b?: string, c?: string): void
  add(metric: Counted, by: number, a?: string, b?: string, c?: string): void
  /** `value` is in the unit of the metric: seconds, or a number. */
  observe(metric: Observed, value: number, a?: string, b?: string, c?: string): void
  /** Undefined unless traces are on. */
  readonly tracer: Tracer | undefined
}

/** Ignores everything. */
export const noObserver: Observer = { count() {}, add() {}, observe() {}, tracer: undefined }

/** Seconds since a moment of `performance.now()`. */
export const since = (began: number): number => (performance.now() - began) / 1000
