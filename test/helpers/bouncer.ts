import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { databaseUser } from '../../src/embedded/user.ts'
import { freePort } from './free-port.ts'

type Behind = { host: string; port: number; user: string; database: string }
export type Bouncer = Awaited<ReturnType<typeof startBouncer>>

/** If false: `apt-get install pgbouncer`. */
export const hasBouncer = (() => {
  try {
    return execFileSync('pgbouncer', ['--version'], { encoding: 'utf8' }).startsWith('PgBouncer')
  } catch {
    return false
  }
})()

/** PgBouncer in front of a database, with few server connections shared by all clients. */
export async function startBouncer({ host, port, user, database }: Behind, size = 3, mode = 'transaction') {
  const dir = await mkdtemp(join(tmpdir(), 'ck-bouncer-'))
  const [own, runner] = [await freePort(), await databaseUser('')]
  await writeFile(join(dir, 'users'), `"${user}" ""\n`)
  await writeFile(
    join(dir, 'ini'),
    `[databases]
${database} = host=${host} port=${port} user=${user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
auth_file = ${dir}/users
pool_mode = ${mode}
default_pool_size = ${size}
max_client_conn = 500
server_login_retry = 1
ignore_startup_parameters = options
`,
  )
  for (const path of [dir, join(dir, 'ini'), join(dir, 'users')]) await chmod(path, 0o755)
  const url = `postgres://${user}@127.0.0.1:${own}/${database}`
  const start = () =>
    spawn('pgbouncer', ['-q', join(dir, 'ini')], {
      stdio: 'ignore',
      ...(runner && { uid: runner.uid, gid: runner.gid }),
    })
  let child = start()
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  const remove = async (): Promise<void> => {
    await stop()
    await rm(dir, { recursive: true })
  }
  for (const limit = performance.now() + 30_000; ; await delay(20)) {
    const client = new pg.Client(url)
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      break
    } catch (error) {
      if (performance.now() < limit) continue
      await remove()
      throw error
    }
  }
  return {
    url,
    host: `127.0.0.1:${own}`,
    stop,
    /** Cuts all connections. */
    restart: async (): Promise<void> => {
      await stop()
      child = start()
    },
    remove,
  }
}
