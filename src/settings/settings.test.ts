import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { serviceForFile } from '../../test/helpers/service.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'
import { getSettings } from './app_settings_get.ts'
import { setSettings } from './app_settings_update.ts'

const test = await serviceForFile({ app_settings: true, limit_admin_write: 'off' })
const admin = await test.account({ username: 'admin', roles: ['admin'] })

const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const untouched = { open_signup: false, updated_at: null, updated_by: null, updated_by_username: null }
beforeEach(() => run`update app_settings set open_signup = false, updated_at = null, updated_by = null`)

const changed = (new_value: boolean, more: object = {}) => ({
  event_type: 'app_settings_update',
  target_account_id: null,
  metadata: { setting: 'open_signup', old_value: !new_value, new_value },
  ...more,
})

describe('app_settings_get and app_settings_update', () => {
  it('show the seeded row: closed, never changed', async () => {
    expect(await admin.client.app_settings_get()).toEqual({ settings: untouched })
  })

  it('change the row, with the actor who did and one audit row', async () => {
    const caller = { actor_id: admin.actor_id, account_id: admin.id, ip: '127.0.0.1' }
    for (const open_signup of [true, false]) {
      const answer = await scenario(test, () => admin.client.app_settings_update({ open_signup }), {
        audit: [changed(open_signup, caller)],
      })
      const settings = {
        open_signup,
        updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
        updated_by: admin.actor_id,
        updated_by_username: 'admin',
      }
      expect(answer).toEqual({ ok: true, settings })
      expect(await admin.client.app_settings_get()).toEqual({ settings: answer?.settings })
    }
  })

  it('to the present value changes nothing: no row, no time, no actor', async () => {
    const answer = await scenario(test, () => admin.client.app_settings_update({ open_signup: false }))
    expect(answer).toEqual({ ok: true, settings: untouched })
    const { settings } = await admin.client.app_settings_update({ open_signup: true })
    const other = await test.account({ roles: ['admin'] })
    const repeated = await scenario(test, () => other.client.app_settings_update({ open_signup: true }))
    expect(repeated?.settings).toEqual(settings)
  })

  it('ten times at once to one value leaves one audit row', async () => {
    await scenario(
      test,
      () =>
        Promise.all(
          Array.from({ length: 10 }, () => admin.client.app_settings_update({ open_signup: true })),
        ),
      { audit: [changed(true)] },
    )
  })

  it('keep the id of an actor whose account is purged, without a name', async () => {
    const gone = await test.account({ roles: ['admin'] })
    await gone.client.app_settings_update({ open_signup: true })
    await run`delete from account where id = ${gone.id}::uuid`
    expect((await admin.client.app_settings_get()).settings).toMatchObject({
      open_signup: true,
      updated_by: gone.actor_id,
      updated_by_username: null,
    })
  })

  it.each([
    ['nothing', {}, 'open_signup', 'invalid_type'],
    ['null', { open_signup: null }, 'open_signup', 'invalid_type'],
    ['a text', { open_signup: 'true' }, 'open_signup', 'invalid_type'],
    ['a number', { open_signup: 1 }, 'open_signup', 'invalid_type'],
    ['another setting', { open_signup: true, theme: 'dark' }, 'theme', 'unrecognized_keys'],
  ])('refuse %s', async (_what, input, key, code) => {
    await scenario(test, async () => {
      await expect(admin.client.app_settings_update(input as { open_signup: boolean })).rejects.toMatchObject(
        { reason: 'invalid_params', data: { issues: [{ path: [key], code }] } },
      )
    })
  })
})

describe('settings by operator and library calls', () => {
  it('are read and changed where the methods are off, with the way in the audit row', async () => {
    const off = await testService()
    const { app } = off.service
    expect(await getSettings(app)).toEqual(untouched)
    const via = 'cli'
    const opened = await scenario(off, () => setSettings(app, { open_signup: true }, { via }), {
      audit: [
        {
          event_type: 'app_settings_update',
          actor_id: null,
          account_id: null,
          ip: null,
          metadata: { setting: 'open_signup', old_value: false, new_value: true, via },
        },
      ],
    })
    expect(opened).toEqual({ ...untouched, open_signup: true, updated_at: expect.any(String) })
    await scenario(off, () => setSettings(app, { open_signup: true }, { via }))
    expect(await getSettings(app)).toEqual(opened)
    await expect(setSettings(app, { open_signup: 'yes' as never }, { via })).rejects.toMatchObject({
      data: { reason: 'invalid_params', issues: [{ path: ['open_signup'], code: 'invalid_type' }] },
    })
    await off.close()
  })

  it('name the actor on whose behalf they were changed', async () => {
    const behalf = { via: 'console', actor_id: admin.actor_id, account_id: admin.id }
    expect(await setSettings(test.service.app, { open_signup: true }, behalf)).toMatchObject({
      updated_by: admin.actor_id,
      updated_by_username: 'admin',
    })
  })
})

describe('a method that the configuration leaves out', () => {
  const own = {
    own_off: query({
      doc: 'Off.',
      auth: { account: 'none', actor: 'none' },
      enabled: ({ app_settings }) => app_settings,
      output: z.object({}),
      handler: async () => ({}),
    }),
  }
  /** Everything of the responses that a client can see, over POST, GET and in a batch. */
  async function seen({ url }: TestService, method: string, cookie?: string): Promise<string[]> {
    const headers = { 'content-type': 'application/json', 'x-request-id': 'same', ...(cookie && { cookie }) }
    const call = { jsonrpc: '2.0', id: 1, method }
    const replies = [
      fetch(`${url}/api/rpc`, { method: 'POST', headers, body: JSON.stringify(call) }),
      fetch(`${url}/api/rpc`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ ...call, params: { x: 1 } }),
      }),
      fetch(`${url}/api/rpc`, { method: 'POST', headers, body: JSON.stringify([call]) }),
      fetch(`${url}/api/rpc?method=${method}&id=1`, { headers }),
    ].map(async (sent) => {
      const reply = await sent
      const lines = [...reply.headers].filter(([name]) => name !== 'date').map((pair) => pair.join(': '))
      return [reply.status, ...lines, await reply.text()].join('\n')
    })
    return await Promise.all(replies)
  }

  it('answers byte for byte like a name nobody knows, to an anonymous caller, a user and an admin', async () => {
    const off = await testService({ actions: own })
    const callers = [
      undefined,
      (await off.account()).cookie,
      (await off.account({ roles: ['admin'] })).cookie,
    ]
    for (const cookie of callers) {
      const random = await seen(off, 'no_such_method', cookie)
      expect(random[0]).toMatch(/^404\n.*"code":-32601/s)
      for (const method of ['app_settings_get', 'app_settings_update', 'own_off'])
        expect(await seen(off, method, cookie)).toEqual(random)
    }
    await off.close()
  })

  it('is not a method that a token scope can name', async () => {
    const token = (account: TestAccount) =>
      account.client.account_token_create({
        scope: { kind: 'methods', methods: ['app_settings_get'] },
        lifetime: { kind: 'eternal' },
      })
    const off = await testService()
    await expect(token(await off.account())).rejects.toMatchObject({ reason: 'unknown_method' })
    expect((await token(admin)).scope).toBe('methods:app_settings_get')
    await off.close()
  })

  it('is checked at the start all the same', async () => {
    const broken = { own_off: { ...own.own_off, rate_limit_group: 'group' } }
    await expect(testService({ actions: broken })).rejects.toMatchObject({
      reason: 'invalid_action',
      message: expect.stringContaining('own_off: rate_limit_group needs rate_limit'),
    })
  })

  it('is there where the configuration says so, for consumers too', async () => {
    const on = await testService({ app_settings: true, actions: own })
    expect(await on.service.call('own_off' as string)).toEqual({})
    await on.close()
  })
})
