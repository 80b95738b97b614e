import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestService, testService } from '../testing/index.ts'

const by = { via: 'cli' }
const password = 'a long password'
let path: string
let test: TestService
const dir = await mkdtemp(join(tmpdir(), 'ck-boot-'))
afterAll(() => rm(dir, { recursive: true }))

// Each test begins before the bootstrap.
let made = 0
beforeEach(async () => {
  path = join(dir, String(made++), 'token')
  test = await testService({ bootstrap: 'live', bootstrap_token_path: path, limit_bootstrap_ip: 'off' })
  return () => test.close()
})
const ops = () => test.service.operations
const keepers = () =>
  test.service.app.db.rows<{ actor_id: string }>(sql`
    select actor_id from role_grant where role = 'keeper' and revoked_at is null`)
const bootstrap = async (username: string, token: string) =>
  await test.client().account.bootstrap({ token: token.trim(), username, password })

it('createAccount makes the keeper while nobody has bootstrapped, and closes the bootstrap', async () => {
  const token = await readFile(path, 'utf8')
  const made = await ops().createAccount({ username: 'first', password, keeper: true }, by)
  const { role_grants } = await ops().findAccount({ ref: 'first' })
  expect(role_grants.map(({ role }) => role).sort()).toEqual(['admin', 'keeper'])
  expect([...made.role_grant_ids].sort()).toEqual(role_grants.map(({ id }) => id).sort())
  const row = await test.service.app.db.first(sql`
    select metadata, target_account_id from audit_entries() where event_type = 'account_create'`)
  expect(row).toEqual({
    metadata: { role_grant_ids: made.role_grant_ids, via: 'cli' },
    target_account_id: made.account.id,
  })
  expect(existsSync(path)).toBe(false)
  await expect(bootstrap('second', token)).rejects.toMatchObject({ reason: 'already_bootstrapped' })
  for (const input of [{ username: 'second', password, keeper: true }])
    await scenario(test, () => ops().createAccount(input, by), { reason: 'already_bootstrapped' })
  await expect(ops().findAccount({ ref: 'second' })).rejects.toThrow()
  await ops().createAccount({ username: 'second', password }, by)
  expect(await keepers()).toHaveLength(1)
})

it('createAccount --keeper and the bootstrap race for one keeper', async () => {
  for (let round = 0; round < 4; round++) {
    const token = await readFile(path, 'utf8')
    const done = await Promise.allSettled([
      bootstrap('a-keeper', token),
      ...[1, 2, 3].map((n) => ops().createAccount({ username: `keeper${n}`, password, keeper: true }, by)),
    ])
    expect(done.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const one of done)
      if (one.status === 'rejected')
        // The route may find the file missing before it takes the lock.
        expect(['already_bootstrapped', 'token_file_missing']).toContain(
          one.reason.reason ?? one.reason.data.reason,
        )
    expect(await keepers()).toHaveLength(1)
    await test.close()
    path = join(dir, String(made++), 'token')
    test = await testService({ bootstrap: 'live', bootstrap_token_path: path, limit_bootstrap_ip: 'off' })
  }
})

it('resetBootstrapToken writes a fresh token over any file, and the server takes it at once', async () => {
  const old = await readFile(path, 'utf8')
  expect(await scenario(test, () => ops().resetBootstrapToken())).toEqual({ path })
  const fresh = await readFile(path, 'utf8')
  expect(fresh).toMatch(/^[A-Za-z0-9_-]{43}\n$/)
  expect(fresh).not.toBe(old)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await expect(bootstrap('ada', old)).rejects.toMatchObject({ reason: 'invalid_token' })
  await rm(path)
  await writeFile(path, 'readable by all', { mode: 0o644 })
  await ops().resetBootstrapToken()
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  await bootstrap('ada', await readFile(path, 'utf8'))
  await scenario(test, () => ops().resetBootstrapToken(), { reason: 'already_bootstrapped' })
  expect(existsSync(path)).toBe(false)
})

it('resetBootstrapToken that cannot write leaves the present token', async () => {
  const kept = await readFile(path, 'utf8')
  await chmod(dirname(path), 0o777)
  const reset = ops().resetBootstrapToken()
  await expect(reset).rejects.toMatchObject({ reason: 'token_file_unwritable' })
  await chmod(dirname(path), 0o700)
  await bootstrap('ada', kept)
})

it('resetBootstrapToken never leaves the server without a token', async () => {
  let isResetting = true
  const resets = (async () => {
    for (let i = 0; i < 20; i++) await ops().resetBootstrapToken()
    isResetting = false
  })()
  while (isResetting) expect((await send(test, 'GET /status')).json?.bootstrap_available).toBe(true)
  await resets
})

it('resetBootstrapToken says when the bootstrap is switched off', async () => {
  const off = await testService()
  await expect(off.service.operations.resetBootstrapToken()).rejects.toThrow(/CELLKEEP_BOOTSTRAP/)
  await off.close()
})
