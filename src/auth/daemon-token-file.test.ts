import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { clientWith } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { shell } from '../../test/helpers/shell.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { testService } from '../testing/index.ts'

const captured = capturedLog()
const dir = await mkdtemp(join(tmpdir(), 'ck-daemon-'))
const path = join(dir, 'sub', 'daemon_token')
const test = await testService({ daemon_token_file: path, daemon_token_state: undefined, log: captured.log })
const keeper = await test.account({ roles: ['keeper'] })
const cellkeep = shell({ CELLKEEP_DAEMON_TOKEN_FILE: path, CELLKEEP_DATABASE_URL: test.databaseUrl }, dir)
afterAll(async () => {
  await test.close()
  await rm(dir, { recursive: true })
})

const carrying = (token: string) => ({ 'x-daemon-token': token })
const whoIs = async (token: string) => {
  const outcome = await clientWith(test, carrying(token)).try.account_verify()
  return outcome.ok ? outcome.result.id : null
}
const rotate = async (...args: string[]) => {
  const { code, stdout, stderr } = await cellkeep(['daemon-token', 'rotate', ...args])
  expect([code, stdout, stderr]).toEqual([0, `${path}\n`, ''])
  const [current = ''] = (await readFile(path, 'utf8')).split('\n')
  expect(current).toMatch(/^[A-Za-z0-9_-]{43}$/)
  return current
}

describe('the daemon token file', () => {
  beforeEach(() => rm(path, { force: true }))

  it('lets the keeper purge over the wire as soon as it exists, and accepts the previous token too', async () => {
    expect(await whoIs('x'.repeat(43))).toBeNull()
    const first = await rotate()
    expect(await whoIs(first)).toBe(keeper.id)
    const second = await rotate()
    expect(await Promise.all([first, second].map(whoIs))).toEqual([keeper.id, keeper.id])
    const third = await rotate()
    expect(await Promise.all([first, second, third].map(whoIs))).toEqual([null, keeper.id, keeper.id])
    const only = await rotate('--only')
    expect(await Promise.all([third, only].map(whoIs))).toEqual([null, keeper.id])
    const { id } = await test.account()
    const { client } = keeper
    expect(await reasonOf(client.account_purge({ account_id: id, confirm: true }))).toBe(
      'credential_type_required',
    )
    const purged = await clientWith(test, carrying(only)).account_purge({ account_id: id, confirm: true })
    expect(purged).toEqual({ ok: true, purged: true })
  })

  it('is ignored in a request from a page, like any daemon token', async () => {
    const token = await rotate()
    const inPage = clientWith(test, { ...carrying(token), origin: 'http://localhost:1' })
    expect(await reasonOf(inPage.account_verify())).toBe('authentication_required')
  })

  it.each<[string, (token: string) => Promise<unknown>]>([
    ['others may read', () => chmod(path, 0o640)],
    [
      'is a link',
      async (token) => {
        await writeFile(`${path}.real`, token, { mode: 0o600 })
        await rm(path)
        await symlink(`${path}.real`, path)
      },
    ],
    ['holds three tokens', (token) => writeFile(path, `${token}\n${token}\n${token}\n`)],
    ['holds something else', (token) => writeFile(path, `${token}!\n`)],
    ['is empty', () => writeFile(path, '')],
    ['is gone', () => rm(path)],
  ])('that %s is not used from the next request on, which is logged once', async (_what, spoil) => {
    const token = await rotate()
    expect(await whoIs(token)).toBe(keeper.id)
    const before = captured.lines().filter(({ level }) => level === 'warn').length
    await spoil(token)
    for (let n = 0; n < 3; n++) expect(await whoIs(token)).toBeNull()
    const lines = captured
      .lines()
      .filter(({ level }) => level === 'warn')
      .slice(before)
    expect(lines).toMatchObject([{ path, msg: expect.stringMatching(/daemon token file cannot be used/) }])
    expect(captured.text()).not.toContain(token)
  })

  it('rotated twice ends a socket of the old token at the next check; one of the current token stays', async () => {
    const [old, fresh] = [await rotate(), await rotate()]
    const [one, other] = [
      await openSocket(test.url, carrying(old)),
      await openSocket(test.url, carrying(fresh)),
    ]
    await rotate()
    await test.service.app.hub.check()
    expect(await one.closed).toEqual({ code: 4001, reason: 'revoked' })
    expect((await other.call('account_verify')).result).toMatchObject({ id: keeper.id })
    await other.close()
  })
})

describe('cellkeep daemon-token rotate', () => {
  it('says what is missing if no file is configured', async () => {
    const { code, stderr } = await shell({}, dir)(['daemon-token', 'rotate'])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/CELLKEEP_DAEMON_TOKEN_FILE/)])
  })

  it('writes no token where others could replace it, and says what to change', async () => {
    const open = join(dir, 'open')
    await mkdir(open)
    await chmod(open, 0o777)
    const env = { CELLKEEP_DAEMON_TOKEN_FILE: join(open, 'daemon_token') }
    const { code, stderr } = await shell(env, dir)(['daemon-token', 'rotate'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`chmod go-w ${open}`)])
  })

  it('keeps an unreadable file unless told otherwise', async () => {
    await rotate('--only')
    await writeFile(path, 'not a token')
    const { code, stderr } = await cellkeep(['daemon-token', 'rotate'])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/--only/)])
    expect(await readFile(path, 'utf8')).toBe('not a token')
    await rotate('--only')
    expect(await readFile(path, 'utf8')).not.toBe('not a token')
  })
})
