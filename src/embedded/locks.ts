import { hostname } from 'node:os'
import type pg from 'pg'
import { StartError } from '../errors.ts'
import type { Place } from './place.ts'
import { type Held, isAlive } from './postgres-process.ts'

/** `serve` is the one serving process of a data dir; a `command` joins the database briefly. */
export type Role = 'serve' | 'command'

/**
 * Advisory locks in the database `postgres`, so that they don't depend on the service's own database.
 * The serving process holds `serving`; all processes that use the server share `using`.
 */
const space = 0x63656c6c
const serving = `${space}, 1`
const using = `${space}, 2`

/** How long to wait for the lock of a dead process to disappear, and for a live one to finish its shutdown. */
const deadHolderMs = 5000
const liveHolderMs = 1000

/**
 * Takes this process's locks on a connection, which holds them until it ends: `using`, and for `serve` also
 * `serving`. Rejects with `data_dir_locked` (exit 75) while another process serves.
 */
export async function takeLocks({ client, ended }: Held, place: Place, role: Role): Promise<void> {
  await client.query(
    `select set_config(name, value, false) from (values
       ('application_name', $1), ('statement_timeout', '0'), ('idle_session_timeout', '0'), ('lock_timeout', '30s')
     ) as t(name, value)`,
    [`cellkeep ${role} pid=${process.pid} on ${host}`],
  )
  await client.query(`select pg_advisory_lock_shared(${using})`)
  if (role === 'serve') {
    await takeServing(client, place)
    served.set(place.dataDir, ended)
    // The next service may have the lock before the end of this connection is known.
    void ended.then(() => {
      if (served.get(place.dataDir) === ended) served.delete(place.dataDir)
    })
  }
  const { rowCount } = await client.query(`select from pg_database where datname = 'cellkeep'`)
  if (rowCount === 0)
    await client.query('create database cellkeep template template0').catch((error: { code?: string }) => {
      // Another process created it at the same time.
      if (error.code !== '42P04' && error.code !== '23505') throw error
    })
}

/**
 * Releases the shared lock. True: no other process uses the server, none can start using it until this
 * connection ends, and the caller must stop it.
 */
export async function leaveLast({ client }: { client: pg.Client }): Promise<boolean> {
  // Release first: if two processes leave at once and both still hold it, neither gets it exclusively.
  await client.query(`select pg_advisory_unlock_shared(${using})`)
  const { rows } = await client.query(`select pg_try_advisory_lock(${using}) as last`)
  return rows[0].last
}

/**
 * The data dirs that this process serves, with the end of the connection that holds the lock: to the database this
 * process looks like a container with the same host name.
 */
const served = new Map<string, Promise<void>>()

async function takeServing(client: pg.Client, place: Place): Promise<void> {
  const { rows } = await client.query(`select pg_try_advisory_lock(${serving}) as taken`)
  if (rows[0].taken) return
  // The server may not have noticed yet that a killed process is gone.
  const before = await holder(client)
  await client.query(`set lock_timeout = ${before?.isAlive ? liveHolderMs : deadHolderMs}`)
  try {
    await client.query(`select pg_advisory_lock(${serving})`)
  } catch (error) {
    if ((error as { code?: string }).code !== '55P03') throw error
    const found = (await holder(client)) ?? before
    const [user, cure] = served.has(place.dataDir)
      ? [
          'another service of this process',
          'Keep one service for the whole process, await close() of the first',
        ]
      : [found?.name ?? 'another process', 'Stop that process']
    throw new StartError(
      'data_dir_locked',
      `The data directory ${place.dataDir} is in use by ${user}. ${cure}, or set CELLKEEP_DATA_DIR (option data_dir) to another directory. Commands work beside it.`,
      75,
    )
  }
}

/** Containers may have the same pids. The name of a session has room for 63 bytes. */
const host = hostname().slice(0, 30)

type Holder = { name: string; isAlive: boolean }

/** The serving process, as given in its application_name. */
async function holder(client: pg.Client): Promise<Holder | undefined> {
  const { rows } = await client.query(
    `select a.application_name as name from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.classid = ${space} and l.objid = 1 and l.objsubid = 2 and l.granted`,
  )
  const [, digits, where = host] = /pid=(\d+)(?: on (.*))?/.exec(rows[0]?.name) ?? []
  if (digits === undefined) return undefined
  const pid = Number(digits)
  const name = `process ${pid}`
  if (where !== host) return { name: `${name} of ${where}, another container or machine`, isAlive: false }
  // An earlier connection of this process, or a container whose host has the same name.
  if (pid === process.pid) return { name: `${name} of another container`, isAlive: false }
  return { name, isAlive: isAlive(pid) }
}
