import type pg from 'pg'
import { StartError } from '../errors.ts'
import type { Place } from './place.ts'
import { isAlive } from './postgres-process.ts'

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
export async function takeLocks({ client }: { client: pg.Client }, place: Place, role: Role): Promise<void> {
  await client.query(
    `select set_config(name, value, false) from (values
       ('application_name', $1), ('statement_timeout', '0'), ('idle_session_timeout', '0'), ('lock_timeout', '30s')
     ) as t(name, value)`,
    [`cellkeep ${role} pid=${process.pid}`],
  )
  await client.query(`select pg_advisory_lock_shared(${using})`)
  if (role === 'serve') await takeServing(client, place)
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

async function takeServing(client: pg.Client, place: Place): Promise<void> {
  const { rows } = await client.query(`select pg_try_advisory_lock(${serving}) as taken`)
  if (rows[0].taken) return
  // The server may not have noticed yet that a killed process is gone.
  const before = await holder(client)
  await client.query(`set lock_timeout = ${isElsewhere(before) ? liveHolderMs : deadHolderMs}`)
  try {
    await client.query(`select pg_advisory_lock(${serving})`)
  } catch (error) {
    if ((error as { code?: string }).code !== '55P03') throw error
    const pid = (await holder(client)) ?? before
    throw new StartError(
      'data_dir_locked',
      `The data directory ${place.dataDir} is in use by ${pid === undefined ? 'another process' : `process ${pid}`}. Stop that process, or set CELLKEEP_DATA_DIR (option data_dir) to another directory. Commands work while that process runs.`,
      75,
    )
  }
}

/** The pid of the serving process, as given in its application_name. */
async function holder(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query(
    `select a.application_name as name from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.classid = ${space} and l.objid = 1 and l.objsubid = 2 and l.granted`,
  )
  const pid = Number(/pid=(\d+)/.exec(rows[0]?.name)?.[1])
  return pid > 0 ? pid : undefined
}

/** True if the pid is that of another live process, not of an earlier connection of this one. */
const isElsewhere = (pid: number | undefined): boolean =>
  pid !== undefined && pid !== process.pid && isAlive(pid)
