import { appendFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { disconnect, startPostgres, stopPostgres, superuser } from '../../src/embedded/postgres-process.ts'
import { databaseUser } from '../../src/embedded/user.ts'
import { startCluster, toUrl } from '../../src/testing/cluster.ts'
import { signalServer } from '../embedded.ts'
import { copyDirectory, keptDatabase } from '../kept-database.ts'
import { inMemory } from '../memory.ts'

/**
 * A PostgreSQL that a test can stop, restart and freeze. With `from: null` it is created anew, with a system identifier
 * of its own.
 */
export async function stoppableCluster(
  initial: Record<string, string> = {},
  { from = keptDatabase() }: { from?: string | null | undefined } = {},
) {
  const cluster = await startCluster({ within: inMemory(), settings: initial, from: from ?? undefined })
  const dir = cluster.connection.host as string
  const db = join(dir, 'db')
  return {
    db,
    url: toUrl(cluster.connection),
    /** Stops it as an operator would; connections are cut. */
    stop: () => stopPostgres(db),
    start: async (own: Record<string, string> = { fsync: 'off' }) => {
      const user = await databaseUser('')
      const postgresBin = process.env.CELLKEEP_POSTGRES_BIN || undefined
      const libDir = join(dir, 'lib')
      const binaries = await findBinaries({ postgresBin, libDir, user, onNotice: console.warn })
      const settings = { ...own, max_connections: '300' }
      const server = {
        binaries,
        db,
        socketDir: dir,
        logFile: join(dir, 'log'),
        user,
        settings,
      }
      await disconnect(await startPostgres(server))
    },
    /**
     * Makes it a standby from the next start on, until it is promoted. Needs `wal_level` `replica` from the beginning.
     */
    demote: () => writeFile(join(db, 'standby.signal'), ''),
    /** Replaces its data directory by a copy of the other's. Both must be stopped. */
    replaceBy: async ({ db: other }: { db: string }) => {
      await rm(db, { recursive: true })
      await copyDirectory(other, db)
    },
    /** From the next start on, it follows the primary as the standby of this name. */
    follow: async ({ dir: primary }: { dir: string }, name = 'standby') => {
      await writeFile(join(db, 'standby.signal'), '')
      await appendFile(
        join(db, 'postgresql.auto.conf'),
        `primary_conninfo = 'host=${primary} user=${superuser} application_name=${name}'\n`,
      )
    },
    dir,
    kill: () => signalServer(dir, 'SIGKILL'),
    /** From now on it accepts connections and bytes, but answers nothing. */
    freeze: () => signalServer(dir, 'SIGSTOP'),
    thaw: () => signalServer(dir, 'SIGCONT'),
    remove: cluster.stop,
  }
}

/** A primary and its standby, both stopped. */
export async function stoppedPair() {
  const [primary, standby] = await Promise.all([
    stoppableCluster({ wal_level: 'replica', max_wal_senders: '4' }),
    stoppableCluster(),
  ])
  await Promise.all([primary.stop(), standby.stop()])
  await standby.replaceBy(primary)
  await standby.follow(primary)
  return { primary, standby }
}
