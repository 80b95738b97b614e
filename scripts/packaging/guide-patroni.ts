import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { createClient } from '../../src/client/client.ts'
import { retry } from '../../src/client/retry.ts'
import { stopPostgres } from '../../src/embedded/postgres-process.ts'
import { databaseUser } from '../../src/embedded/user.ts'
import { signalServer } from '../../test/embedded.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import { workspace } from '../../test/helpers/server-process.ts'
import { type Check, need, packaging, root, run, until } from './check.ts'
import { blockOf, cellkeepIn, oldNode } from './guide.ts'

/** The commands of docs/operations.md that lead from one embedded node to three on a Patroni cluster. */
export const guidePatroni: Check = async function* () {
  need('/usr/lib/postgresql/15/bin/postgres', 'postgresql-15')
  need('etcd', 'etcd-server')
  for (const program of ['patroni', 'haproxy']) need(program)
  const user = await databaseUser('')
  const page = await readFile(`${root}docs/operations.md`, 'utf8')
  // Each server has an address of its own, and the usual ports.
  const net = `127.${1 + Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`
  const block = (name: string): string =>
    blockOf(page, name)
      .replaceAll('db1:5432,db2:5432/', 'db1:5432,db2:5432,db3:5432/')
      .replace(/\bdb(\d):/g, `${net}.$1:`)
  const space = await workspace()
  const home = await space.make('home')
  const servers = await Promise.all(
    ['db1', 'db2', 'db3'].map(async (NAME, at) => {
      const HOME = await space.make(NAME)
      if (user) await chown(HOME, user.uid, user.gid)
      const env = { PATH: process.env.PATH, HOME, NAME, ADDRESS: `${net}.${at + 1}`, NETWORK: '127.0.0.0/8' }
      const as = { cwd: HOME, env, ...(user && { uid: user.uid, gid: user.gid }) }
      return { NAME, HOME, as, running: [] as ChildProcess[] }
    }),
  )
  type Server = (typeof servers)[number]
  const begin = ({ as, running }: Server, name: string): void => {
    running.push(spawn('sh', ['-euc', block(name)], { ...as, stdio: 'ignore' }))
  }
  const [db1] = servers as [Server]
  const list = async (): Promise<Record<string, string>[]> => {
    const { stdout } = await run(
      'patronictl',
      ['-c', join(db1.HOME, 'patroni.yml'), 'list', '-f', 'json'],
      db1.as,
    )
    return JSON.parse(stdout)
  }
  const settled = () =>
    until(
      'three members, one of them synchronous',
      async () => {
        const members = await list()
        const roles = members.map(({ Role }) => Role).sort()
        return (
          roles.join() === 'Leader,Replica,Sync Standby' && members.every((one) => one.State === 'running')
        )
      },
      90_000,
    )
  const leader = async (): Promise<Server> => {
    const name = (await list()).find(({ Role }) => Role === 'Leader')?.Member
    return servers.find(({ NAME }) => NAME === name) ?? assert.fail('nobody leads')
  }
  const cellkeep = {
    env: { PATH: [await cellkeepIn(home), process.env.PATH].join(delimiter), HOME: home },
    cwd: home,
  }
  const unlimited = { CELLKEEP_LIMIT_CELL_CREATE: 'off', CELLKEEP_COOKIE_SECURE: 'false' }
  const nodes: ChildProcess[] = []
  try {
    const { old, cell, token } = await oldNode(home)

    for (const server of servers) begin(server, 'etcd')
    for (const server of servers) begin(server, 'patroni')
    await settled()
    await run('sh', ['-euc', block('members')], db1.as)
    yield 'three members of Patroni and etcd, one of them synchronous'

    assert.equal((await old.end('SIGTERM')).code, 0)
    await run('sh', ['-euc', block('move')], cellkeep)
    const proxy = await freePort()
    const [shipped = ''] = (await readFile(packaging('haproxy.cfg'), 'utf8')).split(/^frontend /m)
    const config = join(home, 'haproxy.cfg')
    await writeFile(
      config,
      shipped
        .replace('maxconn 20000', 'maxconn 1000')
        .replace('127.0.0.1:5000', `127.0.0.1:${proxy}`)
        .replace(/10\.0\.0\.1(\d):/g, `${net}.$1:`),
    )
    nodes.push(spawn('haproxy', ['-db', '-f', config], { stdio: 'ignore' }))
    const urls: string[] = []
    for (const NAME of ['web-1', 'web-2', 'web-3']) {
      const port = await freePort()
      const env = { ...cellkeep.env, ...unlimited, NAME, CELLKEEP_PORT: String(port) }
      const through = block('node').replace(/@[^/]+\//, `@127.0.0.1:${proxy}/`)
      const text = NAME === 'web-3' ? through : block('node')
      nodes.push(spawn('sh', ['-euc', text], { ...cellkeep, env, stdio: 'ignore' }))
      urls.push(`http://127.0.0.1:${port}`)
    }
    const settings = block('node')
      .replace(/^exec .*$/m, '')
      .replaceAll('"$NAME"', 'look')
    const looked = await run('sh', ['-uc', `${settings}${block('look')}`], cellkeep).catch((error) => error)
    assert.match(looked.stdout, /^3 nodes of 3 ready\.$/m)
    assert.doesNotMatch(looked.stdout, /settings_differ|replication|standby|limiter_store|connections_short/)
    const clients = urls.map((url) => createClient({ url, token, use: [retry({ deadline_ms: 60_000 })] }))
    const everywhere = async (id: string, data: object): Promise<void> => {
      for (const client of clients) assert.deepEqual((await client.cell_get({ id })).cell.data, data)
    }
    await everywhere(cell.id, { kept: true })
    yield 'three nodes on it, one through HAProxy, with the data of the embedded one, and its token'

    const before = await leader()
    const writer = createClient({ url: urls[0] as string, token })
    let isOver = false
    const written: string[] = []
    const failed: unknown[] = []
    const writing = (async () => {
      while (!isOver) {
        const made = await writer.try.cell_create({ data: { n: written.length } })
        if (made.ok) written.push(made.result.cell.id)
        else failed.push(made.error.data)
      }
    })()
    await Promise.race([writing, run('sh', ['-euc', block('switchover')], db1.as).then(settled)])
    isOver = true
    await writing
    assert.notEqual(await leader(), before)
    // A COMMIT was under way: at most one, of a single caller.
    assert.ok(failed.length <= 1, JSON.stringify(failed.slice(0, 9)))
    for (const data of failed) assert.equal((data as { outcome: string }).outcome, 'unknown')
    yield `a switchover, in which ${written.length} writes were answered and ${failed.length} left unknown`

    const lost = await leader()
    const patroni = lost.running[1] as ChildProcess
    const exit = once(patroni, 'exit')
    patroni.kill('SIGKILL')
    await exit
    await signalServer(lost.HOME, 'SIGKILL')
    const [first] = clients
    const last = await first?.cell_create({ data: { last: true } })
    await everywhere(last?.cell.id as string, { last: true })
    for (const id of written) await first?.cell_get({ id })
    begin(lost, 'patroni')
    await settled()
    yield 'the leader was lost: another leads, every node goes on, nothing is lost, and it follows when it is back'
  } finally {
    for (const child of [...nodes, ...servers.flatMap(({ running }) => running.reverse())]) {
      const ended = once(child, 'exit')
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM')) await ended
    }
    for (const { HOME } of servers) await stopPostgres(join(HOME, 'db'))
    await space.remove()
  }
}
