import assert from 'node:assert/strict'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import pg from 'pg'
import { randomToken } from '../../src/auth/secrets.ts'
import { databaseUser } from '../../src/embedded/user.ts'
import { createService } from '../../src/index.ts'
import { runCellkeep } from '../../test/helpers/server-process.ts'
import { type Check, NotRun, root, run, until } from './check.ts'

/** The directory of a whole PostgreSQL; the embedded one comes without pg_basebackup. */
export async function binaries(): Promise<string> {
  for (const major of [18, 17, 16, 15]) {
    const dir = `/usr/lib/postgresql/${major}/bin`
    if ((await readdir(dir).catch((): string[] => [])).includes('pg_basebackup')) return dir
  }
  throw new NotRun('there is no PostgreSQL with pg_basebackup (Debian: postgresql)')
}

/** The commands of docs/backup.md: a base backup, archived WAL, and a recovery to a moment between two writes. */
export const recovery: Check = async function* () {
  const bin = await binaries()
  const dir = await mkdtemp(join(tmpdir(), 'ck-pitr-'))
  await chmod(dir, 0o711)
  const user = await databaseUser('')
  const page = await readFile(`${root}docs/backup.md`, 'utf8')
  const block = (name: string): string => {
    const [, text] = new RegExp(`runs it as ${name} -->\\n\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(page) ?? []
    return text ?? assert.fail(`docs/backup.md has no block ${name}`)
  }
  const [data, archive, socket] = [join(dir, 'data'), join(dir, 'archive'), join(dir, 'socket')]
  for (const one of [data, archive, socket]) {
    await mkdir(one, { mode: 0o700 })
    if (user) await chown(one, user.uid, user.gid)
  }
  if (user) await chown(dir, user.uid, user.gid)
  const env = {
    PATH: `${bin}${delimiter}${process.env.PATH}`,
    PGHOST: socket,
    PGUSER: 'cellkeep',
    ARCHIVE: archive,
    BASE: join(dir, 'base'),
    RECOVERED: join(dir, 'recovered'),
  }
  const shell = (text: string, more: Record<string, string> = {}) =>
    run('sh', ['-euc', text], {
      env: { ...env, ...more },
      cwd: dir,
      ...(user && { uid: user.uid, gid: user.gid }),
    })
  const ask = async <T>(text: string): Promise<T> => {
    const client = new pg.Client({ host: socket, user: 'cellkeep', database: 'cellkeep' })
    await client.connect()
    try {
      return (await client.query(text)).rows[0]
    } finally {
      await client.end()
    }
  }
  const start = (place: string): string =>
    `pg_ctl --pgdata="${place}" --wait --log="${dir}/log" start >/dev/null`
  const stop = (place: string): string => `pg_ctl --pgdata="${place}" --wait --mode=fast stop >/dev/null`
  let running: string | undefined
  try {
    await shell(`initdb --pgdata="${data}" --username=cellkeep --encoding=UTF8 --no-sync >/dev/null`)
    const settings = /^```\n(archive_mode[\s\S]*?)```/m.exec(page)?.[1] as string
    const config = `listen_addresses = ''\nunix_socket_directories = '${socket}'\n`
    await writeFile(join(data, 'postgresql.auto.conf'), config + settings.replaceAll('/srv/archive', archive))
    await shell(start(data))
    running = data
    await shell('createdb cellkeep')
    const database_url = `postgres://cellkeep@localhost/cellkeep?host=${encodeURIComponent(socket)}`
    const service = await createService({ database_url, cookie_keys: [randomToken()], log_level: 'silent' })
    const by = { via: 'packaging' }
    await service.operations.createAccount({ username: 'keeper', password: randomToken(), keeper: true }, by)
    await shell(block('base'))
    yield 'a base backup by pg_basebackup, while the server runs'

    await service.operations.createAccount({ username: 'kept', password: randomToken() }, by)
    const { at } = await ask<{ at: string }>(`select pg_sleep(0.01), clock_timestamp()::text as at`)
    await service.operations.createAccount({ username: 'lost', password: randomToken() }, by)
    await service.close()
    const { wal } = await ask<{ wal: string }>('select pg_walfile_name(pg_switch_wal()) as wal')
    await until('the last WAL is archived', async () => (await readdir(archive)).includes(wal))
    await shell(stop(data))
    running = undefined

    await shell(block('recover'), { WHEN: at })
    running = env.RECOVERED
    assert.deepEqual(await ask('select pg_is_in_recovery() as is'), { is: false }, 'it is not promoted')
    const names = await ask<{ names: string[] }>(
      'select array_agg(username::text order by username) as names from cellkeep.account',
    )
    assert.deepEqual(names, { names: ['keeper', 'kept'] })
    yield 'recovered to a moment between two writes: the first is there, the second is not'

    for (const line of block('check').trim().split('\n')) {
      const args = line.split(' ').slice(1)
      const place = { CELLKEEP_DATABASE_URL: database_url, CELLKEEP_COOKIE_KEYS: randomToken() }
      const { code, stdout } = await runCellkeep(dir, args, place)
      assert.ok(code === 0 || args[0] === 'doctor', `${line}: ${stdout.join('\n')}`)
      assert.doesNotMatch(stdout.join('\n'), /"check"/)
    }
    yield 'sessions and tokens end, and the doctor finds no bad row'
  } finally {
    if (running) await shell(stop(running))
    await rm(dir, { recursive: true, force: true })
  }
}
