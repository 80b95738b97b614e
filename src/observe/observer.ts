import type { Counted, Observed } from './catalogue.ts'
import type { Tracer } from './tracer.ts'

/** What the code tells of its work, at one place for each kind; the values of labels are in the catalogue's order. */
export type Observer = {
  count(metric: Counted, a?: string, b?: string, c?: string): void
  add(metric: Counted, by: number, a?: string, b?: string, c?: string): void
  /** `value` is in the unit of the metric: seconds, or a number. */
  observe(metric: Observed, value: number, a?: string, b?: string, c?: string): void
  /** Undefined unless traces are on. */
  readonly tracer: Tracer | undefined
}

/** Nobody looks. */
export const noObserver: Observer = { count() {}, add() {}, observe() {}, tracer: undefined }

/** Seconds since a moment of `performance.now()`. */
export const since = (began: number): number => (performance.now() - began) / 1000
