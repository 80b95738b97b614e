import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { createClient } from '../../src/client/client.ts'
import { databaseUser } from '../../src/embedded/user.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import { bootstrap, startServer, workspace } from '../../test/helpers/server-process.ts'
import { type Check, root, run, until } from './check.ts'
import { binaries } from './recovery.ts'

/** The commands that a page marks with this name. */
export function blockOf(page: string, name: string): string {
  const [, text] = new RegExp(`runs it as ${name} -->\\n *\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
  assert.ok(text, `docs/operations.md has no block ${name}`)
  return text.replace(/^ {3}/gm, '')
}

/** The node on the embedded database from which a guide begins, with a cell and a token that must arrive. */
export async function oldNode(home: string) {
  const old = await startServer(home)
  await bootstrap(old)
  const { cell } = await old.client.cell_create({ data: { kept: true } })
  const { token } = await old.client.account_token_create({
    name: 'guide',
    scope: { kind: 'full' },
    lifetime: { kind: 'eternal' },
  })
  return { old, cell, token }
}

/** A directory for `PATH` whose `cellkeep` is that of this working tree. */
export async function cellkeepIn(home: string): Promise<string> {
  const programs = join(home, 'bin')
  await mkdir(programs)
  await writeFile(
    join(programs, 'cellkeep'),
    `#!/bin/sh\nexec "${process.execPath}" "${root}bin/cellkeep.js" "$@"\n`,
  )
  await chmod(join(programs, 'cellkeep'), 0o755)
  return programs
}

/** The commands of docs/operations.md that lead from one embedded node to three on a primary with a standby. */
export const guide: Check = async function* () {
  const bin = await binaries()
  const user = await databaseUser('')
  const page = await readFile(`${root}docs/operations.md`, 'utf8')
  const space = await workspace()
  const [home, servers] = [await space.make('home'), await space.make('servers')]
  if (user) await chown(servers, user.uid, user.gid)
  const [db1, db2] = [await freePort(), await freePort()]
  const block = (name: string): string =>
    blockOf(page, name)
      .replaceAll('db1:5432', `127.0.0.1:${db1}`)
      .replaceAll('db2:5432', `127.0.0.1:${db2}`)
      .replaceAll('host=db1 port=5432', `host=127.0.0.1 port=${db1}`)
  const PATH = [await cellkeepIn(home), bin, process.env.PATH].join(delimiter)
  const at = (port: number, data: string) => (text: string) =>
    run('sh', ['-euc', text], {
      env: { PATH, PGHOST: servers, PGPORT: String(port), PGUSER: 'postgres', PGDATA: join(servers, data) },
      cwd: servers,
      ...(user && { uid: user.uid, gid: user.gid }),
    })
  const [onFirst, onSecond] = [at(db1, 'one'), at(db2, 'two')]
  const cellkeep = { env: { PATH, HOME: home }, cwd: home }
  const nodes: ChildProcess[] = []
  const running = new Set<typeof onFirst>()
  try {
    const { old, cell, token } = await oldNode(home)

    await onFirst('initdb --username=postgres --encoding=UTF8 --auth=trust --no-sync >/dev/null')
    await onFirst(`echo "unix_socket_directories = '${servers}'" >> "$PGDATA/postgresql.conf"`)
    await onFirst('pg_ctl --wait --log="$PGDATA/log" start >/dev/null')
    running.add(onFirst)
    await onFirst(block('primary'))
    await onSecond(`(${block('standby')}) >/dev/null`)
    running.add(onSecond)
    await onFirst(block('synchronous'))
    const { stdout } = await onFirst(
      'psql postgres -Atc "select application_name, state from pg_stat_replication"',
    )
    assert.match(stdout, /^db2\|streaming$/m)
    yield 'a primary whose commits wait for its standby'

    assert.equal((await old.end('SIGTERM')).code, 0)
    await run('sh', ['-euc', block('move')], cellkeep)
    const urls: string[] = []
    for (const NAME of ['web-1', 'web-2', 'web-3']) {
      const port = await freePort()
      const env = { ...cellkeep.env, NAME, CELLKEEP_PORT: String(port), CELLKEEP_COOKIE_SECURE: 'false' }
      nodes.push(spawn('sh', ['-euc', block('node')], { ...cellkeep, env, stdio: 'ignore' }))
      urls.push(`http://127.0.0.1:${port}`)
    }
    const settings = block('node')
      .replace(/^exec .*$/m, '')
      .replaceAll('"$NAME"', 'look')
    const looked = await run('sh', ['-uc', `${settings}${block('look')}`], cellkeep).catch((error) => error)
    assert.match(looked.stdout, /^3 nodes of 3 ready\.$/m)
    for (const name of ['web-1', 'web-2', 'web-3'])
      assert.match(looked.stdout, new RegExp(` ${name} +.* ready `))
    assert.doesNotMatch(looked.stdout, /settings_differ|replication|standby|limiter_store|connections_short/)
    const read = async (url: string) => {
      const client = createClient({ url, token })
      assert.deepEqual((await client.cell_get({ id: cell.id })).cell.data, { kept: true })
    }
    for (const url of urls) await read(url)
    yield 'three nodes on it, with the data of the embedded one, and its token'

    const client = createClient({ url: urls[0] as string, token })
    const last = await client.cell_create({ data: { last: true } })
    await onFirst('pg_ctl --wait --mode=immediate stop >/dev/null')
    running.delete(onFirst)
    await onSecond(`${block('promote')} >/dev/null`)
    for (const url of urls)
      await until('it serves on the standby', async () => {
        await createClient({ url, token }).cell_create({ data: {} })
        return true
      })
    assert.deepEqual((await client.cell_get({ id: last.cell.id })).cell.data, { last: true })
    yield 'the primary was lost: its standby is promoted, every node goes on, and nothing is lost'
  } finally {
    for (const node of nodes) {
      const ended = once(node, 'exit')
      if (node.exitCode === null && node.kill('SIGTERM')) await ended
    }
    for (const server of running)
      await server('pg_ctl --wait --mode=immediate stop >/dev/null').catch(() => {})
    await space.remove()
  }
}
