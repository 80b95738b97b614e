import type pg from 'pg'
import type { Step } from './steps.ts'

/** Gets how many rows or blocks are done, and about how many there are. */
export type OnProgress = (done: number, of?: number) => void

/** Runs the work of one step, and may show how far it is. */
export type Around = (step: Step, work: (onProgress?: OnProgress) => Promise<void>) => Promise<void>

export type Patience = {
  /** How long a step may wait for a lock while others wait behind it. */
  lockMs: number
  /** How often it tries to get one. */
  tries: number
  /** The shortest and the longest pause between tries. */
  pauseMs: readonly [min: number, max: number]
  /** How long a step may pause between two statements: a process that stands still would keep its locks. */
  standstillMs: number
  /** How far a replica may be behind while columns are filled. */
  lagS: number
}

export type Runner = {
  client: pg.Client
  /** Opens another connection, from which the first one is watched. */
  connect: () => Promise<pg.Client>
  schema: string | undefined
  around: Around
  patience: Patience
  signal: AbortSignal | undefined
  /** What is being done, for the error message. */
  at: string
}
