import type { Bouncer } from '../helpers/bouncer.ts'
import type { Environment } from '../helpers/server-process.ts'
import { enginePair } from './engine-pair.ts'
import { enginePatroni } from './engine-patroni.ts'
import type { Options } from './options.ts'
import type { Wire } from './wire.ts'

/** A server that answers reads and can be killed, frozen and started again. */
export type Replica = {
  url: string
  start(): Promise<void>
  kill(): Promise<void>
  freeze(): Promise<void>
  thaw(): Promise<void>
}

/** What loads and checks need of the database, whichever engine manages it. */
export type Engine = {
  readonly primary: { url: string }
  readonly replicas: Replica[]
  /** The number of promotions and crashes, as each empties unlogged tables. */
  readonly crashes: number
  /** The times at which another server began to take writes, by `performance.now()`. */
  readonly promotions: number[]
  wires: Wire[]
  poolers: Bouncer[]
  /** Settings for the nodes; each node takes the next in turn. */
  settings: Environment[]
  /** Waits until every server follows the primary and commits wait for one of them. */
  settle(): Promise<void>
  remove(): Promise<void>
}

export const startEngine = (options: Options): Promise<Engine> =>
  options.engine === 'pair' ? enginePair(options) : enginePatroni(options)
