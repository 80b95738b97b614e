import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { isRoot, start, startChild, testDirectory } from '../../test/embedded.ts'
import { copyDirectory, furnish } from '../../test/kept-database.ts'
import { silentLog } from '../log/log.ts'
import { findBinaries } from './binaries.ts'
import { startEmbedded } from './embedded.ts'
import { databaseUser } from './user.ts'

const dir = await testDirectory()
const seed = join(dir, 'seed')
let copies = 0
beforeAll(async () => {
  await furnish(seed)
  await (await start(seed, 'command')).close()
})

async function dataDir(): Promise<string> {
  const path = join(dir, `data-${++copies}`)
  await copyDirectory(seed, path)
  return path
}

/** What a killed start left beside a database made later, with a link that leads outside. */
async function leftover(path: string, name: string): Promise<string> {
  const made = join(path, name)
  const outside = join(dir, `outside-${copies}`)
  await mkdir(outside, { recursive: true })
  await writeFile(join(outside, 'kept'), '')
  await mkdir(join(made, 'base'), { recursive: true })
  await writeFile(join(made, 'PG_VERSION'), '18\n')
  await symlink(outside, join(made, 'base', 'out'))
  const user = await databaseUser('')
  if (user) for (const one of [made, join(made, 'base')]) await chown(one, user.uid, user.gid)
  return join(outside, 'kept')
}

test('what a killed start left is removed by the next one, even if another process has its pid by now', async () => {
  const path = await dataDir()
  const sleeper = spawn('sleep', ['60'])
  onTestFinished(() => void sleeper.kill())
  await once(sleeper, 'spawn')
  const kept = await leftover(path, `db.making-${sleeper.pid}-1`)
  await leftover(path, `db.making-${process.pid}-1`)
  await (await start(path, 'command')).close()
  expect((await readdir(path)).filter((name) => name.startsWith('db.making-'))).toEqual([])
  await stat(kept)
})

test.skipIf(process.platform !== 'linux')('what a live process is making is left alone', async () => {
  const path = await dataDir()
  const sleeper = spawn('sleep', ['60'])
  onTestFinished(() => void sleeper.kill())
  await once(sleeper, 'spawn')
  const fields = (await readFile(`/proc/${sleeper.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')
  const name = `db.making-${sleeper.pid}-${fields?.[19]}`
  await leftover(path, name)
  await (await start(path, 'command')).close()
  expect(await readdir(path)).toContain(name)
})

test('a database that cannot be made is reported with what initdb wrote, and no log is named', async () => {
  const bin = join(dir, 'failing')
  await mkdir(bin)
  const script = (name: string, otherwise: string) =>
    `#!/bin/sh\n[ "$1" != --version ] || exec echo "${name} (PostgreSQL) 18.0"\n${otherwise}\n`
  await writeFile(join(bin, 'postgres'), script('postgres', 'exit 1'))
  await writeFile(join(bin, 'initdb'), script('initdb', 'echo "No space left" >&2; exit 1'))
  for (const name of ['postgres', 'initdb']) await chmod(join(bin, name), 0o755)
  const path = join(dir, 'unmade')
  const started = startEmbedded({ dataDir: path, postgresBin: bin, role: 'command', log: silentLog })
  await expect(started).rejects.toMatchObject({
    reason: 'database_start_failed',
    message: `The embedded database in ${path} cannot be made. The end of what initdb wrote:\nNo space left`,
  })
})

test.skipIf(!isRoot)('root writes through no link that the database’s user put in its way', async () => {
  const user = await databaseUser('')
  const { initdb, postgres, env } = await findBinaries({ libDir: join(seed, 'lib'), user })
  const target = join(dir, 'target')
  await writeFile(target, 'as it was', { mode: 0o600 })
  // An initdb that, when it has ended, puts a link in place of a file, as another program of the same user could.
  const bin = join(dir, 'bin')
  await mkdir(bin)
  const settings = Object.entries(env).map(([name, value]) => `export ${name}='${value}'`)
  const plant = `ln -sf ${target} "$2/postgresql.conf"`
  const script = (body: string) => ['#!/bin/sh', ...settings, body].join('\n')
  await writeFile(join(bin, 'postgres'), script(`exec ${postgres} "$@"`))
  await writeFile(join(bin, 'initdb'), script(`${initdb} "$@" || exit\n[ "$1" != -D ] || ${plant}`))
  for (const name of ['postgres', 'initdb']) await chmod(join(bin, name), 0o755)
  const path = join(dir, 'raced')
  const started = startEmbedded({ dataDir: path, postgresBin: bin, role: 'command', log: silentLog })
  await expect(started).rejects.toMatchObject({ reason: 'database_start_failed' })
  expect(await readFile(target, 'utf8')).toBe('as it was')
  expect((await readdir(path)).filter((name) => name.startsWith('db'))).toEqual([])
})

test.skipIf(!isRoot)(
  'the directory of library links is taken back by root, and no link is followed to it',
  async () => {
    const path = await dataDir()
    const lib = join(path, 'lib')
    const user = await databaseUser('')
    await chown(lib, user?.uid as number, user?.gid as number)
    await chmod(lib, 0o777)
    await (await start(path, 'command')).close()
    expect(await stat(lib)).toMatchObject({ uid: 0, mode: 0o40755 })
    await rm(lib, { recursive: true })
    const elsewhere = join(dir, 'elsewhere')
    await mkdir(elsewhere)
    await symlink(elsewhere, lib)
    await start(path, 'command').then(
      ({ close }) => close(),
      () => undefined,
    )
    expect(await readdir(elsewhere)).toEqual([])
  },
)

test.skipIf(!isRoot)(
  'the database runs as the named user; one who is missing, or root, is refused',
  async () => {
    const path = join(dir, 'named')
    const child = await startChild({ dataDir: path, postgresUser: 'nobody' })
    expect(child).toMatchObject({ event: 'ready' })
    expect((await stat(join(path, 'db'))).uid).toBe(65_534)
    expect(child.seen.some(({ text }) => text?.includes('CELLKEEP_POSTGRES_USER'))).toBe(true)
    await child.close()
    for (const postgresUser of ['no-such-user', 'root'])
      expect(await startChild({ dataDir: join(dir, 'unnamed'), postgresUser })).toMatchObject({
        event: 'failed',
        reason: 'no_database_user',
      })
    expect(await startChild({ dataDir: path, postgresUser: 'daemon' })).toMatchObject({
      event: 'failed',
      reason: 'data_dir_unusable',
      message: expect.stringContaining('chown -R daemon'),
    })
  },
)
