import { describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { createLog } from '../log/log.ts'
import { setSettings } from '../settings/app_settings_update.ts'
import { scenario, testService } from '../testing/index.ts'

const lines: string[] = []
const password = 'a long password'
const test = await serviceForFile({ log: createLog('debug', { write: (line) => void lines.push(line) }) })

describe('the input of a signup', () => {
  it.each([
    ['a username of two', { username: 'ab', password }, 'username'],
    ['a username with a space', { username: ' ada', password }, 'username'],
    ['a password of eleven', { username: 'ada', password: 'eleven char' }, 'password'],
    ['no password', { username: 'ada' }, 'password'],
    ['an empty e-mail', { username: 'ada', password, email: '' }, 'email'],
    ['a NUL in the password', { username: 'ada', password: `${password}\0` }, 'password'],
    ['an unknown key', { username: 'ada', password, role: 'admin' }, 'role'],
  ])('with %s is 400 at that key, without an audit row', async (_what, body, key) => {
    await scenario(test, async () => {
      const { status, json, cookie } = await send(test, 'POST /signup', { body })
      expect([status, cookie]).toEqual([400, undefined])
      expect(json).toMatchObject({ error: 'invalid_request_body', issues: [{ path: [key] }] })
    })
  })

  it('leaves no trace of what was typed in audit rows, logs or the refusal', async () => {
    await test.account({ username: 'zz_account' })
    const typed = { username: 'zz_account', email: 'zz_mail@x.example', password: 'zz_password zz' }
    lines.length = 0
    for (const isOpen of [false, true]) {
      await setSettings(test.service.app, { open_signup: isOpen }, { via: 'testing' })
      expect((await send(test, 'POST /signup', { body: typed })).text).not.toContain('zz_')
    }
    expect(lines.join('')).not.toContain('zz_')
    const rows = await test.service.app.db.rows(sql`
      select event_type, audit_entries::text like '%zz\\_%' as tells from audit_entries() where event_type = 'signup'`)
    expect(rows).toEqual(Array(2).fill({ event_type: 'signup', tells: false }))
  })
})

describe('the route', () => {
  it('is POST only and refuses an origin that is not allowed, also without a cookie', async () => {
    const get = await send(test, 'GET /signup')
    expect([get.status, get.headers.allow]).toEqual([405, 'POST'])
    const foreign = await send(test, 'POST /signup', {
      body: { username: 'foreign', password },
      headers: { origin: 'https://evil.example' },
    })
    expect([foreign.status, foreign.json]).toEqual([403, { error: 'forbidden_origin' }])
  })

  it('does not exist where the setting `signup` is off', async () => {
    const without = await testService({ signup: false })
    const replies = await Promise.all(
      ['POST /signup', 'POST /nothing'].map((route) => send(without, route, { body: {} })),
    )
    await without.close()
    expect([replies[0]?.status, replies[0]?.json]).toEqual([404, { error: 'not_found' }])
    expect(replies[0]?.bare).toBe(replies[1]?.bare)
  })
})
