import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { StartError } from '../errors.ts'
import type { Log } from '../log/log.ts'
import { leaveLast, type Role, takeLocks } from './locks.ts'
import { type Place, preparePlace } from './place.ts'
import {
  connect,
  connectionTo,
  disconnect,
  type Held,
  PostgresFailure,
  stopPostgres,
} from './postgres-process.ts'
import { boundLog, openServer } from './server.ts'
import { sharedUser } from './user.ts'

export type EmbeddedOptions = {
  dataDir: string
  /** True when `dataDir` is the default: a root process may then use `/var/lib/cellkeep` instead. */
  dataDirIsDefault?: boolean
  /** `CELLKEEP_POSTGRES_BIN`. */
  postgresBin?: string | undefined
  /** `CELLKEEP_POSTGRES_USER`. */
  postgresUser?: string | undefined
  role: Role
  log: Log
  /** One sentence for the operator, such as the other data dir that is used. */
  onNotice?: ((text: string) => void) | undefined
  /** The database died, and before it was back another process began to serve the data dir: end this one. */
  onLost?: (error: StartError) => void
}

export type Embedded = {
  /** Valid until `close`, also after the database was started anew. */
  connection: pg.ClientConfig
  /** The data dir in use, as a real path. */
  dataDir: string
  /** Leaves the database, and stops it when nobody else uses it. Close the pool first. */
  close(): Promise<void>
}

/**
 * Joins the embedded database of a data dir: adopts a running server, else starts one (contract 1, section
 * 16). A serving process starts it again whenever it dies. Rejects with `StartError`.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const place = await preparePlace(options)
  if (place.user?.name === sharedUser && options.role === 'serve')
    options.log.warn(
      { user: sharedUser },
      'other daemons share the user of the database and may read it: name another by CELLKEEP_POSTGRES_USER',
    )
  const closing = new AbortController()
  const session: Session = { place, options, closing: closing.signal, held: undefined }
  await join(session, true)
  const supervised = options.role === 'serve' ? supervise(session) : undefined
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    closing.abort()
    await supervised
    await leave(session)
  }
  return {
    connection: connectionTo(place.socketDir, 'cellkeep'),
    dataDir: place.dataDir,
    close: () => {
      closed ??= close()
      return closed
    },
  }
}

type Session = {
  readonly place: Place
  readonly options: EmbeddedOptions
  readonly closing: AbortSignal
  /** The connection that stands for this process; undefined while there is none. */
  held: Held | undefined
}

/** Recovery after a crash, and the end of a server that is stopping, take as long as their disk. */
const joinLimitMs = 120_000

/** Connects, starts the server if need be, and takes the locks; repeats what another process got in the way of. */
async function join(session: Session, mayMake: boolean): Promise<void> {
  const { place, options, closing } = session
  const { postgresBin, onNotice } = options
  const until = performance.now() + joinLimitMs
  for (let wait = 20; ; wait = Math.min(wait * 2, 1000)) {
    let held: Held | undefined
    try {
      closing.throwIfAborted()
      const opened = await openServer(place, { postgresBin, onNotice, mayMake }, closing)
      held = opened.held
      await takeLocks(held, place, options.role)
      session.held = held
      options.log.info(
        { data_dir: place.dataDir },
        opened.started ? 'embedded database started' : 'embedded database adopted',
      )
      return
    } catch (error) {
      if (held !== undefined) await release(held, place)
      if (closing.aborted) throw closing.reason
      if (!isPassing(error) || performance.now() > until) throw startError(error, place)
    }
    await delay(wait, undefined, { signal: closing })
  }
}

/** Starts the database again whenever it dies under this process, until that closes. Never rejects. */
async function supervise(session: Session): Promise<void> {
  const { place, options, closing } = session
  const { log } = options
  const closed = new Promise<void>((resolve) =>
    closing.addEventListener('abort', () => resolve(), { once: true }),
  )
  const bounding = setInterval(() => boundLog(place.logFile).catch(() => {}), 600_000)
  bounding.unref()
  while (!closing.aborted) {
    await Promise.race([session.held?.ended, closed])
    if (closing.aborted) break
    session.held = undefined
    log.error({ data_dir: place.dataDir }, 'embedded database lost, starting it again')
    for (let wait = 50; session.held === undefined && !closing.aborted; wait = Math.min(wait * 2, 5000)) {
      try {
        await join(session, false)
      } catch (error) {
        if (closing.aborted) break
        log.error(
          { err: error, data_dir: place.dataDir },
          'embedded database cannot be started, trying again',
        )
        if (error instanceof StartError && error.reason === 'data_dir_locked') options.onLost?.(error)
        await delay(wait, undefined, { signal: closing }).catch(() => {})
      }
    }
  }
  clearInterval(bounding)
}

/** How long a server that is recovering from a crash is waited for, to be stopped properly. */
const leaveLimitMs = 10_000

async function leave(session: Session): Promise<void> {
  const { place, options } = session
  const until = performance.now() + leaveLimitMs
  let failure: unknown
  for (let held = session.held; performance.now() < until; held = undefined) {
    try {
      held ??= await connect(place.socketDir)
      if (held === undefined) return
      if (await leaveLast(held)) await stopPostgres(place.db)
      await disconnect(held)
      return
    } catch (error) {
      // The connection was lost, or the server is not ready: it is asked again on a new one.
      failure = error
      if (held !== undefined) await disconnect(held)
      await delay(50)
    }
  }
  options.log.error({ err: failure, data_dir: place.dataDir }, 'embedded database left running')
}

/** Undoes a failed join, which by now may be the last user of the server. */
async function release(held: Held, place: Place): Promise<void> {
  if (await leaveLast(held).catch(() => false)) await stopPostgres(place.db).catch(() => {})
  await disconnect(held)
}

/** The server is starting, stopping or restarting, or it went away in between: the next attempt finds it or starts it. */
function isPassing(error: unknown): boolean {
  if (error instanceof StartError) return false
  if (error instanceof PostgresFailure) return error.passing
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined) return /connection|timeout/i.test(message)
  return /^(57P0[123]|53300|08...|ECONNRESET|EPIPE)$/.test(code)
}

function startError(error: unknown, { dataDir, logFile }: Place): StartError {
  if (error instanceof StartError) return error
  const why = (error as Error).message
  return new StartError(
    'database_start_failed',
    `The embedded database in ${dataDir} does not start; its log is ${logFile}:\n${why}`,
    3,
    { cause: error },
  )
}
