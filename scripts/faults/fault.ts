import type { Report } from './load.ts'

export type Fault = {
  name: string
  /** What is done, as a reader would do it again. */
  how: string
  /** In a directory of its own; rejects with `NotRun` where the fault cannot be made, otherwise if something was lost. */
  run(cwd: string): Promise<Report>
  /** What to say about the figures. */
  note?: string
}
