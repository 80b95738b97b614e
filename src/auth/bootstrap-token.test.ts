import { chmod, chown, mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freshIp, send } from '../../test/helpers/account-routes.ts'
import { bootstrapTest } from '../../test/helpers/bootstrap.ts'
import { sql } from '../db/db.ts'
import { databaseUser } from '../embedded/user.ts'
import { scenario } from '../testing/index.ts'

const password = 'a long password'
const { open } = bootstrapTest()

describe('a token file that is', () => {
  it.each<[string, (path: string, content: string) => Promise<unknown>]>([
    ['missing', (path) => rm(path)],
    ['empty', (path) => writeFile(path, '')],
    ['blank', (path) => writeFile(path, ' \n\t\n')],
    ['5 KiB long', (path, content) => writeFile(path, content.padEnd(5 * 1024))],
    ['readable by others', (path) => chmod(path, 0o644)],
    ['writable by the group', (path) => chmod(path, 0o620)],
    ['executable', (path) => chmod(path, 0o700)],
    [
      'a symbolic link to a good one',
      async (path) => {
        await rename(path, `${path}.real`)
        await symlink(`${path}.real`, path)
      },
    ],
    [
      'a directory',
      async (path) => {
        await rm(path)
        await mkdir(path, { mode: 0o600 })
      },
    ],
  ])('%s counts as missing: 404, logged, and not announced', async (_what, spoil) => {
    const { test, token, path, lines, bootstrap } = await open()
    await spoil(path, await readFile(path, 'utf8'))
    lines.length = 0
    const reply = await scenario(test, () => bootstrap({ token, username: 'root', password }), {
      audit: [
        {
          event_type: 'bootstrap',
          outcome: 'failure',
          account_id: null,
          metadata: { reason: 'token_file_missing' },
        },
      ],
    })
    expect([reply.status, reply.json, reply.cookie]).toEqual([
      404,
      { error: 'token_file_missing' },
      undefined,
    ])
    expect(lines.some((line) => line.includes('token file cannot be used') && line.includes(path))).toBe(true)
    expect((await send(test, 'GET /status')).json).toEqual({ error: 'authentication_required' })
    expect(await test.service.app.db.rows(sql`select from account`)).toEqual([])
  })

  it('missing charges the address as a wrong token does', async () => {
    const { token, path, bootstrap } = await open()
    await rm(path)
    const seen: number[] = []
    for (let i = 0; i < 6; i++) seen.push((await bootstrap({ token, username: 'root', password })).status)
    expect(seen).toEqual([...Array(5).fill(404), 429])
    expect((await bootstrap({ token, username: 'root', password }, { ip: freshIp() })).status).toBe(404)
  })
})

const nobody = 65_534
it.skipIf(process.getuid?.() !== 0).each<[string, (path: string) => Promise<unknown>]>([
  ['its owner', (path) => chown(path, nobody, nobody)],
  ['the owner of its directory', (path) => chown(dirname(path), nobody, nobody)],
  ['whoever may write its directory', (path) => chmod(dirname(path), 0o777)],
])(
  'a token file may be planted by %s: the service does not start, and the token is worth nothing',
  async (_, plant) => {
    const { test, token, path, bootstrap } = await open()
    await plant(path)
    const message = expect.stringMatching(/bootstrap token .* cannot be used: .*bootstrap-token reset/)
    await expect(open({ path })).rejects.toMatchObject({ reason: 'configuration', exitCode: 78, message })
    const { status, json } = await bootstrap({ token, username: 'root', password })
    expect([status, json]).toEqual([404, { error: 'token_file_missing' }])
    expect(await test.service.app.db.rows(sql`select from account`)).toEqual([])
  },
)

it('a used token file that cannot be deleted: 200 with a cookie, and a readiness warning until it is deleted', async () => {
  const { test, token, path, lines, bootstrap } = await open()
  const ready = async () => await (await fetch(`${test.url}/health/ready`)).json()
  const dir = dirname(path)
  // Root can always delete. The database's own user cannot, and can still reach the database.
  const user = await databaseUser('')
  if (user) for (const one of [dir, path]) await chown(one, user.uid, user.gid)
  await chmod(dir, 0o500)
  if (user) process.seteuid?.(user.uid)
  const reply = await bootstrap({ token, username: 'root', password }).finally(
    () => user && process.seteuid?.(0),
  )
  expect([reply.status, reply.cookie?.startsWith('svc_session=')]).toEqual([200, true])
  expect((await readFile(path, 'utf8')).trim()).toBe(token)
  expect(await ready()).toEqual({ ready: true, warnings: ['bootstrap_token_file_left'] })
  expect(lines.some((line) => line.includes('cannot be deleted'))).toBe(true)
  expect((await bootstrap({ token, username: 'other', password })).status).toBe(403)
  expect((await send(test, 'GET /status')).json).toEqual({
    error: 'authentication_required',
    bootstrap_available: false,
  })
  await chmod(dir, 0o700)
  await rm(path)
  expect(await ready()).toEqual({ ready: true })
})

it('a token file of another node is removed once this node learns that the token of the first was used', async () => {
  const first = await open()
  const second = await open({ database_url: first.test.databaseUrl })
  expect(await readFile(second.path, 'utf8')).toBe(`${second.token}\n`)
  await first.bootstrap({ token: first.token, username: 'root', password })
  expect((await send(second.test, 'GET /status')).json).toEqual({
    error: 'authentication_required',
    bootstrap_available: false,
  })
  await expect(readFile(second.path)).rejects.toThrow('ENOENT')
})

it('neither log nor audit log ever holds the token, a password or a username that was sent', async () => {
  const { test, token, lines, bootstrap } = await open()
  const [wrongToken, username, typed] = ['a-Wrong-Token-That-Was-Typed', 'typed-name', 'a-typed-Password-1']
  await bootstrap({ token: wrongToken, username, password: typed })
  await bootstrap({ token, username: typed, password: 'short' })
  await bootstrap(`{"token":"${token}","password":"${typed}"`)
  await test.account({ username: 'taken' })
  await bootstrap({ token, username: 'taken', password: typed })
  await bootstrap({ token, username, password: typed })
  await bootstrap({ token, username, password: typed })
  const dump = await test.service.app.db.first<{ text: string }>(sql`
    select string_agg(audit_entries::text, '') as text from audit_entries()`)
  for (const text of [dump?.text as string, lines.join('')]) {
    expect(text).toContain('bootstrap')
    for (const secret of [token, wrongToken, username, typed, typed.toLowerCase()])
      expect(text).not.toContain(secret)
  }
})
