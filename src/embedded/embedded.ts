import { stat } from 'node:fs/promises'
import { join as pathOf } from 'node:path'
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
  postmasterPid,
  socketName,
  stopPostgres,
} from './postgres-process.ts'
import { boundLog, openServer } from './server.ts'
import { socketDirectory } from './socket.ts'
import { sharedUser } from './user.ts'

export type EmbeddedOptions = {
  dataDir: string
  /** True if `dataDir` is the default: a root process may then use `/var/lib/cellkeep` instead. */
  dataDirIsDefault?: boolean
  /** `CELLKEEP_POSTGRES_BIN`. */
  postgresBin?: string | undefined
  /** `CELLKEEP_POSTGRES_USER`. */
  postgresUser?: string | undefined
  role: Role
  log: Log
  /** Aborting it ends the start; later it has no effect. */
  stop?: AbortSignal | undefined
  /** Called with one sentence for the operator, such as that another data dir is used. */
  onNotice?: ((text: string) => void) | undefined
  /** Called if the database died and another process took over the data dir: this process must end. */
  onLost?: (error: StartError) => void
}

export type Embedded = {
  /** Valid until `close`, even after a restart of the database. */
  connection: pg.ClientConfig
  /** The data dir in use, as a real path. */
  dataDir: string
  /** Leaves the database, and stops it if no other process uses it. Close the pool first. */
  close(): Promise<void>
}

/**
 * Joins the embedded database of a data dir: adopts a running server, else starts one. A serving process
 * restarts it whenever it dies. Rejects with `StartError`.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const place = await preparePlace(options)
  if (place.user?.name === sharedUser && options.role === 'serve')
    options.log.warn(
      { event: 'configuration', user: sharedUser },
      'the database runs as a user that other daemons share and that can read it; set CELLKEEP_POSTGRES_USER to another user',
    )
  const closing = new AbortController()
  const session: Session = { place, options, closing: closing.signal, held: undefined }
  const starting = AbortSignal.any([closing.signal, ...(options.stop ? [options.stop] : [])])
  await afterOthers(place, starting, () => join(session, true, starting)).catch((error) => {
    throw options.stop?.aborted && !(error instanceof StartError) ? interrupted(error) : error
  })
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

/** The last start of each data dir in this process: its temporary files have the names that a second start would use. */
const starts = new Map<string, Promise<unknown>>()

function afterOthers({ dataDir }: Place, stop: AbortSignal, work: () => Promise<void>): Promise<void> {
  const others = starts.get(dataDir) ?? Promise.resolve()
  const started = Promise.race([others, aborted(stop)]).then(work)
  // If this start is stopped while it waits, the next one still waits for the others.
  starts.set(dataDir, Promise.allSettled([others, started]))
  return started
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

type Session = {
  readonly place: Place
  readonly options: EmbeddedOptions
  readonly closing: AbortSignal
  /** The connection that holds this process's locks; undefined while there is none. */
  held: Held | undefined
}

/** Recovery after a crash and a shutdown checkpoint may take long on a slow disk. */
const joinLimitMs = 120_000
/** Processes that a killed server left behind end sooner. */
const heldLimitMs = 20_000

/** Connects, starts the server if need be, and takes the locks; retries if another process interfered. */
async function join(session: Session, mayMake: boolean, signal: AbortSignal): Promise<void> {
  const { place, options } = session
  const { postgresBin, onNotice } = options
  const began = performance.now()
  for (let wait = 20; ; wait = Math.min(wait * 2, 1000)) {
    let held: Held | undefined
    try {
      signal.throwIfAborted()
      const opened = await openServer(place, { postgresBin, onNotice, mayMake }, signal)
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
      if (signal.aborted) throw signal.reason
      const pastMs = performance.now() - began
      if (mayMake && pastMs > heldLimitMs && error instanceof PostgresFailure && error.isHeld)
        throw heldElsewhere(place)
      if (!isPassing(error) || pastMs > joinLimitMs) throw startError(error, place)
    }
    await delay(wait, undefined, { signal })
  }
}

/** Restarts the database whenever it dies, until this process closes. Never rejects. */
async function supervise(session: Session): Promise<void> {
  const { place, options, closing } = session
  const { log } = options
  const closed = aborted(closing)
  const bounding = setInterval(() => boundLog(place.logFile).catch(() => {}), 600_000)
  bounding.unref()
  const reaching = keepReachable(session)
  while (!closing.aborted) {
    await Promise.race([session.held?.ended, closed])
    if (closing.aborted) break
    session.held = undefined
    log.error({ event: 'embedded_db', data_dir: place.dataDir }, 'embedded database lost; starting it again')
    for (let wait = 50; session.held === undefined && !closing.aborted; wait = Math.min(wait * 2, 5000)) {
      try {
        await join(session, false, closing)
      } catch (error) {
        if (closing.aborted) break
        log.error(
          { event: 'embedded_db', err: error, data_dir: place.dataDir },
          'embedded database cannot be started; trying again',
        )
        if (error instanceof StartError && error.reason === 'data_dir_locked') options.onLost?.(error)
        await delay(wait, undefined, { signal: closing }).catch(() => {})
      }
    }
  }
  clearInterval(bounding)
  await reaching
}

const socketCheckMs = 5000

/**
 * Stops a server whose socket has been deleted, so that `supervise` starts it again: connections that are open work on,
 * but no new one reaches it. A server left behind by a deleted data dir does this to the next one at the same path.
 */
async function keepReachable({ place, options, closing }: Session): Promise<void> {
  const { dataDir, db, socketDir, user } = place
  const isGone = (): Promise<boolean> =>
    stat(pathOf(socketDir, socketName)).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
    )
  let unreachable: number | undefined
  for (;;) {
    await delay(socketCheckMs, undefined, { signal: closing, ref: false }).catch(() => {})
    if (closing.aborted) return
    try {
      // Without a pid its data dir is gone, which the server notices itself. One that starts has a pid before a socket.
      const pid = (await isGone()) ? await postmasterPid(db) : undefined
      const isLasting = pid !== undefined && pid === unreachable
      unreachable = pid
      if (!isLasting) continue
      const isPlace = (await socketDirectory(dataDir, user)) === socketDir
      options.log.error(
        { event: 'embedded_db', data_dir: dataDir },
        isPlace
          ? 'the socket of the embedded database is gone'
          : 'the socket of the embedded database is gone, and its directory too; restart the server',
      )
      if (isPlace) await stopPostgres(db)
    } catch (error) {
      options.log.error(
        { event: 'embedded_db', err: error, data_dir: dataDir },
        'embedded database is unreachable',
      )
    }
  }
}

/** How long to wait for a server that is recovering from a crash before giving up stopping it properly. */
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
      // The connection was lost, or the server is not ready: try again on a new connection.
      failure = error
      if (held !== undefined) await disconnect(held)
      await delay(50)
    }
  }
  options.log.error(
    { event: 'embedded_db', err: failure, data_dir: place.dataDir },
    'embedded database left running',
  )
}

/** Undoes a failed join. By now this process may be the last user of the server. */
async function release(held: Held, place: Place): Promise<void> {
  if (await leaveLast(held).catch(() => false)) await stopPostgres(place.db).catch(() => {})
  await disconnect(held)
}

/** True if the server is starting, stopping, restarting or just went away: the next attempt finds it or starts it. */
function isPassing(error: unknown): boolean {
  if (error instanceof StartError) return false
  if (error instanceof PostgresFailure) return error.passing
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined) return /connection|timeout/i.test(message)
  return /^(57P0[123]|53300|08...|ECONNRESET|EPIPE)$/.test(code)
}

const heldElsewhere = ({ dataDir, logFile }: Place): StartError =>
  new StartError(
    'data_dir_locked',
    `The data directory ${dataDir} is in use by a process that cannot be reached from here: in another container, on another machine, or left behind by a killed database (\`fuser ${logFile}\` lists those of this machine). Stop it, or set CELLKEEP_DATA_DIR (option data_dir) to another directory.`,
    75,
  )

const interrupted = (cause: unknown): StartError =>
  new StartError('interrupted', 'Interrupted; the embedded database was not started.', 1, { cause })

function startError(error: unknown, { dataDir, logFile }: Place): StartError {
  if (error instanceof StartError) return error
  const why = (error as Error).message
  if (why.includes('could not look up effective user ID'))
    return new StartError(
      'no_database_user',
      `PostgreSQL cannot run as uid ${process.geteuid?.()}, which has no name here. Add a line for it to /etc/passwd, run the container as a user of its image or, with DynamicUser of systemd, install the package libnss-systemd.`,
      78,
      { cause: error },
    )
  const isMaking = error instanceof PostgresFailure && error.isMaking
  const what = isMaking
    ? 'cannot be made. The end of what initdb wrote'
    : `does not start. The end of its log, ${logFile}`
  return new StartError('database_start_failed', `The embedded database in ${dataDir} ${what}:\n${why}`, 3, {
    cause: error,
  })
}
