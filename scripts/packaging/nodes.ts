import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { randomToken } from '../../src/auth/secrets.ts'
import { cloneDatabase, startCluster, toUrl } from '../../src/testing/cluster.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import {
  type Environment,
  runCellkeep,
  type ServerProcess,
  startServer,
  workspace,
} from '../../test/helpers/server-process.ts'

export const keeper = { username: 'ada', password: 'correct horse battery' }

export type Nodes = {
  dir: string
  env: Environment
  ports: number[]
  running: ServerProcess[]
  /** SIGTERM, then a new process on the same port. Resolves to the exit code. */
  restart(index: number): Promise<number | null>
}

/** Runs `work` beside this many nodes on one database, with a keeper. */
export async function withNodes(
  count: number,
  more: Environment,
  work: (nodes: Nodes) => Promise<void>,
): Promise<void> {
  const space = await workspace()
  const cluster = await startCluster()
  const running: ServerProcess[] = []
  try {
    const database = await cloneDatabase(cluster.connection, 'template0')
    const dir = await space.make('shared')
    const env = {
      CELLKEEP_DATABASE_URL: toUrl(database.connection),
      CELLKEEP_COOKIE_KEYS: randomToken(),
      CELLKEEP_BOOTSTRAP: 'disabled',
      CELLKEEP_LOG_LEVEL: 'warn',
      ...more,
    }
    await runCellkeep(dir, ['migrate'], env)
    const made = await runCellkeep(
      dir,
      ['account', 'create', '--username', keeper.username, '--keeper'],
      env,
      `${keeper.password}\n`,
    )
    if (made.code !== 0) throw new Error(made.stderr)
    const ports: number[] = []
    const start = async (index: number): Promise<void> => {
      const cwd = join(dir, `node${index}`)
      await mkdir(cwd, { recursive: true })
      const own = { CELLKEEP_NODE_NAME: `node${index}`, CELLKEEP_PORT: String(ports[index]) }
      running[index] = await startServer(cwd, { ...env, ...own })
    }
    for (let index = 0; index < count; index++) {
      ports[index] = await freePort()
      await start(index)
    }
    const restart = async (index: number): Promise<number | null> => {
      const { code } = await (running[index] as ServerProcess).end('SIGTERM')
      await start(index)
      return code
    }
    await work({ dir, env, ports, running, restart })
  } finally {
    await Promise.all(running.map((one) => one.end('SIGTERM')))
    await cluster.stop()
    await space.remove()
  }
}
