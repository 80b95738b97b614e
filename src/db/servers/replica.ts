import type pg from 'pg'
import { beginStatement } from '../../observe/work.ts'
import type { Clock } from '../clock.ts'
import type { DatabaseOptions, Pool } from '../pool.ts'
import { watchSilence } from '../silence.ts'
import { openSlots, type Slot, type Way } from '../slots.ts'
import { compile, nameless, type Sql, sql } from '../sql.ts'
import { type Answered, answered } from '../statement.ts'
import { isWornOut, noteOpened } from '../statement-names.ts'
import type { Connection } from './connection.ts'
import { cut, dial } from './dial.ts'
import { repeatCause } from './failure.ts'
import { judgeReplica } from './replica-admission.ts'
import { type Fitness, type FitnessDeps, silenceMs, watchFitness } from './replica-fitness.ts'
import { configOf, limitsOf } from './session-settings.ts'
import { Unfit } from './unfit.ts'

/** One standby. */
export type Replica = Pick<Fitness, 'isFit' | 'why' | 'lagMs' | 'judged'> & {
  /** Reads that wait for its answer. */
  readonly running: number
  readonly load: Pool['load']
  /** Undefined if it has not replayed everything below the fence. An error may concern only this server. */
  read(query: Sql, fence: number, shared?: string): Promise<Answered | undefined>
  close(): Promise<void>
}

type ReplicaContext = DatabaseOptions &
  Pick<FitnessDeps, 'fence' | 'lagMaxMs' | 'onChange'> & { pool: Pool; clock: Clock }

/** So many reads in a row fail before it is no longer used. */
const failuresMax = 2

export function openReplica(connection: Connection, context: ReplicaContext): Replica {
  const { pool, clock } = context
  const { receiving, observer, noteLostName } = pool
  const { admission } = pool.primary
  const limits = limitsOf(context)
  const isPooled = context.connection.direct !== undefined
  /** Open connections, with the timeline that the primary had when they were admitted. */
  const live = new Map<pg.Client, number | null>()
  let running = 0
  let failures = 0

  const judge = (client: pg.Client): Promise<number> => judgeReplica(client, limits, admission, clock)
  const connect = async (): Promise<pg.Client> => {
    const { timeline } = admission
    const client = await dial({
      connection,
      config: (one) => configOf(one, context, '-c default_transaction_read_only=on'),
      judge: async (client) => void (await judge(client)),
      withinMs: silenceMs,
      isPooled,
    })
    live.set(client, timeline)
    client.once('end', () => live.delete(client))
    return client
  }
  const fitness = watchFitness({
    ...context,
    connect,
    judge,
    onTurn: (isFit, watcher) => {
      failures = 0
      // So that waiting reads go to the primary at once.
      if (!isFit) for (const client of live.keys()) if (client !== watcher) cut(client)
    },
  })
  const silence = watchSilence(
    {
      session: connect,
      get isAway() {
        return !fitness.isFit
      },
      isSilent: false,
    },
    { isPooled },
  )
  const readOn = fencedReader(context, isPooled)
  const isAdmitted = (client: pg.Client): boolean => live.get(client) === admission.timeline
  const slots = openSlots(wayTo(fitness, connect, isAdmitted), {
    max: context.poolMax,
    waitMs: 0,
    onOpen: (slot) => {
      noteOpened(slot)
      receiving.watch(slot)
    },
    onError: () => {},
  })
  return {
    get isFit() {
      return fitness.isFit
    },
    get why() {
      return fitness.why
    },
    get lagMs() {
      return fitness.lagMs
    },
    judged: fitness.judged,
    get running() {
      return running
    },
    load: slots.load,
    read: async (query, fence, shared) => {
      running += 1
      try {
        if (!fitness.isFit) throw new Error('the replica is not used')
        const slot = await slots.take()
        const end = beginStatement(observer, shared, 'replica')
        silence.asked(slot)
        try {
          const answer = await readOn(slot, query, fence)
          slot.release(isWornOut(slot))
          failures = 0
          return answer
        } catch (error) {
          noteLostName(error)
          slot.release(repeatCause(error) !== undefined)
          throw error
        } finally {
          end()
          silence.answered(slot)
          receiving.done(slot)
        }
      } catch (error) {
        failures += 1
        if (failures >= failuresMax) fitness.failed(error)
        throw error
      } finally {
        running -= 1
      }
    },
    close: async () => {
      silence.end()
      await Promise.all([fitness.close(), slots.close()])
    },
  }
}

/** Unlike the primary, an unfit standby is not waited for, and a doubtful connection is not asked: others take the reads. */
const wayTo = (
  fitness: Fitness,
  connect: () => Promise<pg.Client>,
  isAdmitted: (client: pg.Client) => boolean,
): Way => ({
  connect: () =>
    connect().catch((error) => {
      fitness.failed(error)
      throw error
    }),
  isCertain: (client) => fitness.isFit && isAdmitted(client),
  isStillFit: async (client) => {
    cut(client)
    return false
  },
  alive: () => {},
  enter: () => {},
  leave: () => {},
  isAway: false,
  get isOpen() {
    return !fitness.isFit
  },
})

/** Reads on a connection to a standby; resolves to undefined if it has not replayed everything below the fence. */
function fencedReader(
  { hasNames = true, onStatement }: Pick<DatabaseOptions, 'hasNames' | 'onStatement'>,
  isPooled: boolean,
) {
  const send = (slot: Slot, query: Sql): Promise<Answered> => {
    const statement = hasNames ? compile(query) : nameless(query)
    onStatement?.(statement.text)
    return answered(slot, statement)
  }
  return async (slot: Slot, query: Sql, fence: number): Promise<Answered | undefined> => {
    const begun = isPooled && slot.query('begin read only')
    const check = send(slot, replayed(fence))
    const answer = send(slot, query)
    // Asked after the read: a standby promoted meanwhile may have shown data that the primary never had.
    const remains = send(slot, inRecovery)
    const ended = isPooled && slot.query('commit')
    const [settled, ...others] = await Promise.allSettled([check, answer, remains, begun, ended])
    if (settled.status === 'rejected') throw settled.reason
    // Checked before errors: the read may have failed because something is not replayed yet.
    if (settled.value.rows.length === 0) return undefined
    for (const one of others) if (one.status === 'rejected') throw one.reason
    if ((await remains).rows.length === 0) throw new Unfit('read_only', 'the server was promoted')
    return await answer
  }
}

const replayed = (fence: number): Sql =>
  sql`select where pg_last_wal_replay_lsn() - '0/0' >= ${fence}::bigint`

const inRecovery = sql`select where pg_is_in_recovery()`
