import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { disconnect, startPostgres, stopPostgres } from '../../src/embedded/postgres-process.ts'
import { databaseUser } from '../../src/embedded/user.ts'
import { startCluster, toUrl } from '../../src/testing/cluster.ts'
import { serverProcesses } from '../embedded.ts'
import { inMemory } from '../memory.ts'

/** A PostgreSQL that the test may stop, restart and freeze. */
export async function stoppableCluster(initial: Record<string, string> = {}) {
  const cluster = await startCluster({ within: inMemory(), settings: initial })
  const dir = cluster.connection.host as string
  const signal = async (name: NodeJS.Signals) => {
    for (const pid of await serverProcesses(dir)) process.kill(pid, name)
  }
  return {
    url: toUrl(cluster.connection),
    /** Stops it as an operator would; connections are cut. */
    stop: () => stopPostgres(join(dir, 'db')),
    start: async () => {
      const user = await databaseUser('')
      const postgresBin = process.env.CELLKEEP_POSTGRES_BIN || undefined
      const libDir = join(dir, 'lib')
      const binaries = await findBinaries({ postgresBin, libDir, user, onNotice: console.warn })
      const settings = { fsync: 'off', max_connections: '300' }
      const server = {
        binaries,
        db: join(dir, 'db'),
        socketDir: dir,
        logFile: join(dir, 'log'),
        user,
        settings,
      }
      await disconnect(await startPostgres(server))
    },
    /** It starts as a standby next time, until somebody promotes it. Needs `wal_level` `replica` from the beginning. */
    demote: () => writeFile(join(dir, 'db', 'standby.signal'), ''),
    /** From now on it accepts connections and bytes, but answers nothing. */
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    remove: cluster.stop,
  }
}
