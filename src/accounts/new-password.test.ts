import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { ConfigError, resolveOptions } from '../config/config.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

const directory = await mkdtemp(join(tmpdir(), 'ck-blocklist-'))
afterAll(() => rm(directory, { recursive: true }))
const own = join(directory, 'own.txt')
// With the BOM and line ends of an editor on Windows.
writeFileSync(own, '\ufeffZwölf Äpfel im Korb\r\nour company slogan\r\n')

/** A password of the built-in list. */
const listed = 'qwertyqwerty'
const password = 'a long password'
const test = await serviceForFile({
  password_blocklist: own,
  bootstrap: 'disabled',
  limit_signup_ip: '1/900',
})
const { operations, app } = test.service
const operator = { via: 'test' }
await operations.setSettings({ open_signup: true }, operator)

const issueOf = (key: string, code: string) => ({ issues: [expect.objectContaining({ path: [key], code })] })
const common = (key: string) => issueOf(key, 'password_common')
const signup = (body: object) => send(test, 'POST /signup', { body })

describe('a new password', () => {
  it.each([
    ['listed', listed],
    ['listed, in another case', 'QWERTYqwerty'],
    ['listed in the file, decomposed and in another case', 'ZWÖLF äpfel im korb'.normalize('NFD')],
    ['the username', 'Margaret-Hamilton'],
    ['the e-mail', 'MH@apollo.example.org'],
    ['the local part of the e-mail', 'maggie.of.apollo', 'maggie.of.apollo@example.org'],
  ])('that is %s is refused before any limiter', async (_what, bad, email = 'mh@apollo.example.org') => {
    const body = { username: 'margaret-hamilton', email, password: bad }
    const reply = await signup(body)
    expect(reply).toMatchObject({
      status: 400,
      json: { error: 'invalid_request_body', ...common('password') },
    })
    await expect(operations.createAccount(body, operator)).rejects.toMatchObject({
      data: { reason: 'invalid_params', ...common('password') },
    })
  })

  it('may be a listed one with a space at its end, or the username twice', async () => {
    for (const [username, good] of [
      ['spaced', `${listed} `],
      ['twice-ada', 'twice-adatwice-ada'],
    ])
      expect((await signup({ username, password: good })).status).toBe(200)
  })

  it('is held to the same rules by a password change, which ends nothing', async () => {
    const ada = await test.account({ username: 'ada-of-lovelace', email: 'countess.ada@example.org' })
    for (const new_password of [listed, 'ada-of-lovelace', 'countess.ada']) {
      const body = { current_password: password, new_password }
      const reply = await send(test, 'POST /password', { cookie: ada.cookie, body })
      expect(reply).toMatchObject({ status: 400, json: common('new_password') })
      await expect(
        operations.setPassword({ account_id: ada.id, password: new_password }, operator),
      ).rejects.toMatchObject({ data: common('password') })
    }
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })

  it('does not concern passwords already set: a listed one still signs in', async () => {
    const bob = await test.account()
    const stored = await app.passwords.hash(listed)
    await app.db.run(sql`update account set password_hash = ${stored} where id = ${bob.id}::uuid`)
    const reply = await send(test, 'POST /login', { body: { username: bob.username, password: listed } })
    expect(reply.status).toBe(200)
  })
})

describe('the settings', () => {
  it('raise the minimum, and switch the list off but not the names', async () => {
    await using strict = await testService({ password_min: 15, password_blocklist: 'off', bootstrap: 'live' })
    const create = (username: string, password: string) =>
      strict.service.operations.createAccount({ username, password }, operator)
    await expect(create('ada', 'fourteen chars')).rejects.toMatchObject({
      data: issueOf('password', 'too_small'),
    })
    await expect(create('sixteen-of-these', 'sixteen-of-these')).rejects.toMatchObject({
      data: common('password'),
    })
    await create('bob', '123456789987654321')
    const body = { token: 'x', username: 'keeper', password: 'fourteen chars' }
    const reply = await send(strict, 'POST /bootstrap', { body })
    expect(reply).toMatchObject({ status: 400, json: issueOf('password', 'too_small') })
  })

  it('are refused when the file cannot be read', () => {
    for (const password_blocklist of [directory, join(directory, 'missing.txt')])
      expect(() => resolveOptions({ password_blocklist })).toThrow(ConfigError)
  })
})
