import type pg from 'pg'
import { StartError } from '../errors.ts'
import type { Place } from './place.ts'

/** `serve` is the one serving process of a data dir; a `command` joins the database for a while. */
export type Role = 'serve' | 'command'

/**
 * Advisory locks of the database `postgres`, so that they are the same for whatever becomes of the service's
 * own: `serving` is held by the serving process, `using` is shared by all that use the server.
 */
const space = 0x63656c6c
const serving = `${space}, 1`
const using = `${space}, 2`

/** How long a lock may outlast its dead process, and how long a live one gets to finish its shutdown. */
const deadHolderMs = 5000
const liveHolderMs = 1000

/**
 * Makes a connection the one that stands for this process: it holds the shared lock, for `serve` also the
 * serving one, until it ends. Rejects with `data_dir_locked` (exit 75) while another process serves.
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
      // Made by another process at the same moment.
      if (error.code !== '42P04' && error.code !== '23505') throw error
    })
}

/**
 * Gives up the shared lock. True: no other process uses the server, none can begin to before this connection
 * ends, and stopping it is the caller's part.
 */
export async function leaveLast({ client }: { client: pg.Client }): Promise<boolean> {
  // In this order: of two that leave at once, and hold it both, neither would get it exclusively.
  await client.query(`select pg_advisory_unlock_shared(${using})`)
  const { rows } = await client.query(`select pg_try_advisory_lock(${using}) as last`)
  return rows[0].last
}

async function takeServing(client: pg.Client, place: Place): Promise<void> {
  const { rows } = await client.query(`select pg_try_advisory_lock(${serving}) as taken`)
  if (rows[0].taken) return
  // The server may not have seen the end of a killed process yet.
  const before = await holder(client)
  await client.query(`set lock_timeout = ${isElsewhere(before) ? liveHolderMs : deadHolderMs}`)
  try {
    await client.query(`select pg_advisory_lock(${serving})`)
  } catch (error) {
    if ((error as { code?: string }).code !== '55P03') throw error
    const pid = (await holder(client)) ?? before
    throw new StartError(
      'data_dir_locked',
      `The data directory ${place.dataDir} is in use by the process ${pid ?? 'of another start'}: stop that one first, or name another CELLKEEP_DATA_DIR`,
      75,
    )
  }
}

/** The process number of whoever serves, as it gave it. */
async function holder(client: pg.Client): Promise<number | undefined> {
  const { rows } = await client.query(
    `select a.application_name as name from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.classid = ${space} and l.objid = 1 and l.objsubid = 2 and l.granted`,
  )
  const pid = Number(/pid=(\d+)/.exec(rows[0]?.name)?.[1])
  return pid > 0 ? pid : undefined
}

/** A live process, and not an earlier connection of this one. */
function isElsewhere(pid: number | undefined): boolean {
  if (pid === undefined || pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
