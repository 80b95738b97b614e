import type { Report } from './load.ts'

export type Fault = {
  name: string
  /** How the fault is made, so that a reader can repeat it. */
  how: string
  /**
   * Runs in a directory of its own; rejects with `NotRun` if the fault cannot be made here, or with another error if
   * something was lost.
   */
  run(cwd: string): Promise<Report>
  /** A remark on the figures. */
  note?: string
}
