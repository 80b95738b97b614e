import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { noteTarget } from '../../observe/work.ts'
import type { Clock } from '../clock.ts'
import { joiner } from '../joined.ts'
import { type DatabaseOptions, type Pool, queryable, type ReadOnly } from '../pool.ts'
import type { Sql } from '../sql.ts'
import type { Answered } from '../statement.ts'
import { codeOf, withoutValues } from './failure.ts'
import { createFence, type Fence } from './fence.ts'
import { openReplica, type Replica } from './replica.ts'

/** Standbys answer only what the primary would have answered: every read from them has a fence. */
export type Replicas = {
  readonly fence: Fence
  /** For the reads of one request, which all go to one replica, or to the primary if none is fit. */
  reads(): ReadOnly
  /** In the order of their URLs. */
  readonly all: readonly Replica[]
  close(): Promise<void>
}

const pausesMs = [0, 1, 3, 10]

/** Resolves to undefined if the primary does not reveal its place in the log. */
export async function openReplicas(
  options: DatabaseOptions,
  pool: Pool,
  clock: Clock,
): Promise<Replicas | undefined> {
  const { connections = [], lagMaxMs = 0, warnings } = options.replicas ?? {}
  if (connections.length === 0) return undefined
  const { onError, primary, observer } = pool
  const fence = createFence(pool.point, { primary, observer })
  const isMissing = await fence.take().then(
    () => false,
    (error) => {
      // SQLSTATEs: undefined function, not allowed, not supported.
      if (!/^(42|0A)/.test(codeOf(error))) throw error
      onError(
        withoutValues(error),
        'no replica is used, because the primary does not tell its position in the write-ahead log',
        'replica_down',
      )
      return true
    },
  )
  if (isMissing) {
    warnings?.add('replica_down')
    return undefined
  }
  const all = connections.map((connection, index) =>
    openReplica(connection, {
      ...options,
      pool,
      fence,
      clock,
      lagMaxMs,
      onChange: (why) => {
        warnings?.[all.every(({ isFit }) => isFit) ? 'delete' : 'add']('replica_down')
        if (why !== undefined)
          onError(why, `replica ${index + 1} is not used; other servers answer its reads`, 'replica_down')
      },
    }),
  )
  warnings?.add('replica_down')
  const name = (replica: Replica): string => String(all.indexOf(replica) + 1)
  const choose = (): Replica | undefined =>
    all.filter(({ isFit }) => isFit).sort((a, b) => a.running - b.running)[0]

  /** Undefined: the primary has to answer. */
  const tryOn = async (replica: Replica, query: Sql, shared?: string): Promise<Answered | undefined> => {
    const told = (outcome: string): void => observer.count('replica_reads_total', name(replica), outcome)
    const { newest } = fence
    if (newest === null) return undefined
    try {
      for (const pause of pausesMs) {
        if (pause > 0) await delay(pause)
        const answer = await replica.read(query, newest, shared)
        if (!answer) continue
        told('served')
        return answer
      }
      told('behind')
    } catch {
      told('failed')
      await primary.repeats('replica')
    }
    return undefined
  }
  /** Once the primary has answered a request, its later reads go there too, so that it never sees an older state. */
  const ask = async <A extends Rows>(
    choice: Choice,
    query: Sql,
    onPrimary: () => Promise<A>,
    shared?: string,
  ): Promise<A | Answered> => {
    const answer = choice.replica && (await tryOn(choice.replica, query, shared))
    if (answer) return answer
    choice.replica = undefined
    if (shared === undefined) noteTarget('primary')
    return await onPrimary()
  }
  const pointOn = async <T>(choice: Choice, query: Sql, shared?: string): Promise<T[]> => {
    const onPrimary = async () => ({ rows: await pool.pointOfMethod<T>(query, shared) })
    return (await ask(choice, query, onPrimary, shared)).rows as T[]
  }
  const joined = joiner((query, shared) => pointOn({ replica: choose() }, query, shared), {
    line: primary,
    observer,
  })
  return {
    fence,
    all,
    reads: () => {
      const choice: Choice = { replica: choose() }
      if (choice.replica) noteTarget('replica')
      const { rows, first, one } = queryable((query) => ask(choice, query, () => pool.read(query)))
      return { rows, first, one, point: (query, shared) => pointOn(choice, query, shared), joined }
    },
    close: async () => {
      await Promise.all(all.map((replica) => replica.close()))
    },
  }
}

type Rows = Pick<pg.QueryResult, 'rows'>
type Choice = { replica: Replica | undefined }
