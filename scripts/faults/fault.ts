import type { Report } from './load.ts'

export type Fault = {
  name: string
  /** What is done, as a reader would do it again. */
  how: string
  /** In a directory of its own; rejects where the fault cannot be made here, or something was lost. */
  run(cwd: string): Promise<Report>
  /** What to say about the figures. */
  note?: string
}

/** The machine does not allow this fault; the run goes on without it. */
export class NotHere extends Error {}
