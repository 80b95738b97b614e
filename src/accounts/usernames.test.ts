import { beforeEach, describe, expect, it } from 'vitest'
import { send } from '../../test/helpers/account-routes.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ username_change: 'self', limit_rename: 'off' })
/** Nodes on the same database with other settings. */
const off = await serviceForFile({ database_url: test.databaseUrl, username_change: 'off' })
const limited = await serviceForFile({ database_url: test.databaseUrl, username_change: 'self' })
const dated = await serviceForFile({ database_url: test.databaseUrl, username_reserve_days: 30 })
const by = { via: 'cli' }
const password = 'a long password'
const { operations } = test.service
const login = (username: string) => send(test, 'POST /login', { body: { username, password } })
const setUsername = (username: string, { id }: { id: string }, on = test) =>
  on.service.operations.setUsername({ account_id: id, username }, by)

let ada: TestAccount
let bob: TestAccount
beforeEach(async () => {
  await test.reset()
  ada = await test.account({ username: 'ada' })
  bob = await test.account({ username: 'bob' })
})

describe('account_username_change', () => {
  it('changes the username, and nothing else of the account', async () => {
    const changed = await scenario(test, () => ada.client.account_username_change({ username: 'Lovelace' }), {
      audit: [
        {
          event_type: 'account_update',
          account_id: ada.id,
          actor_id: null,
          target_account_id: ada.id,
          metadata: { change: 'username' },
        },
      ],
    })
    expect(changed).toEqual({ ok: true, changed: true })
    expect(await ada.client.account_verify()).toMatchObject({ id: ada.id, username: 'lovelace' })
    expect((await login('lovelace')).status).toBe(200)
    const { actors } = await bob.client.actor_lookup({ ids: [ada.actor_id] })
    expect(actors).toEqual([{ id: ada.actor_id, username: 'lovelace', display_name: 'ada' }])
  })

  it('changes nothing if it is the present one', async () => {
    expect(await scenario(test, () => ada.client.account_username_change({ username: 'ADA' }))).toEqual({
      ok: true,
      changed: false,
    })
  })

  it('refuses a name that is taken, also by a deleted account', async () => {
    await operations.deleteAccount({ account_id: bob.id }, by)
    await scenario(test, () => ada.client.account_username_change({ username: 'bob' }), {
      reason: 'username_taken',
    })
  })

  it('is for sessions only, and three times a day', async () => {
    const { token } = (await ada.client.account_token_create({
      scope: { kind: 'full' },
      lifetime: { kind: 'eternal' },
    })) as { token: string }
    const withToken = { headers: { authorization: `Bearer ${token}` } }
    await expect(
      test.service.call('account_username_change', { username: 'other' }, withToken),
    ).rejects.toMatchObject({ data: { reason: 'credential_type_required' } })
    const { client } = await limited.sessions.create(ada.id)
    for (const username of ['one', 'two', 'ada']) await client.account_username_change({ username })
    await expect(client.account_username_change({ username: 'one' })).rejects.toMatchObject({
      reason: 'rate_limited',
    })
  })
})

describe('a former username', () => {
  it('signs nobody in', async () => {
    await setUsername('lovelace', ada)
    const [former, unknown] = [await login('ada'), await login('nobody')]
    expect(former.status).toBe(401)
    expect(former.bare).toBe(unknown.bare)
  })

  it('goes to nobody else by signup, creation, invite or rename; its account takes it back', async () => {
    await setUsername('lovelace', ada)
    await operations.setSettings({ open_signup: true }, by)
    const signup = await send(test, 'POST /signup', { body: { username: 'ada', password } })
    expect([signup.status, signup.json]).toEqual([409, { error: 'signup_conflict' }])
    await scenario(test, () => operations.createAccount({ username: 'ada', password }, by), {
      reason: 'username_taken',
    })
    await scenario(test, () => operations.createInvite({ username: 'ada' }, by), {
      reason: 'invite_account_exists_username',
      audit: [{ event_type: 'invite_create', outcome: 'failure' }],
    })
    await scenario(test, () => bob.client.account_username_change({ username: 'ada' }), {
      reason: 'username_taken',
    })
    await scenario(test, () => setUsername('ada', bob), { reason: 'username_taken' })
    expect(await setUsername('ada', ada)).toEqual({ changed: true })
    await scenario(test, () => setUsername('lovelace', bob), { reason: 'username_taken' })
  })

  it('is free after the purge of its account, and not before', async () => {
    await setUsername('lovelace', ada)
    await operations.deleteAccount({ account_id: ada.id }, by)
    await scenario(test, () => setUsername('ada', bob), { reason: 'username_taken' })
    await operations.purgeAccount({ account_id: ada.id, confirm: true }, by)
    expect(await setUsername('ada', bob)).toEqual({ changed: true })
  })

  it('is free after `username_reserve_days`, and then reserved to whoever leaves it last', async () => {
    const lapse = () =>
      test.service.app.db.run(sql`
        update username_reservation set until = date_trunc('milliseconds', now()) where until is not null`)
    await setUsername('lovelace', ada, dated)
    const [reserved] = await test.service.app.db.rows(sql`
      select until - now() between interval '29 days 23 hours' and interval '30 days' as dated from username_reservation`)
    expect(reserved).toEqual({ dated: true })
    await scenario(test, () => setUsername('ada', bob), { reason: 'username_taken' })
    await lapse()
    await setUsername('ada', bob)
    await setUsername('robert', bob)
    await scenario(test, () => setUsername('ada', ada), { reason: 'username_taken' })
    expect(await setUsername('ada', bob)).toEqual({ changed: true })
  })
})

describe('setUsername', () => {
  it('says who and when, and leaves its row', async () => {
    const asBob = { via: 'importer', account_id: bob.id, actor_id: bob.actor_id }
    await scenario(test, () => operations.setUsername({ account_id: ada.id, username: 'lovelace' }, asBob), {
      audit: [
        {
          event_type: 'account_update',
          account_id: bob.id,
          actor_id: bob.actor_id,
          target_account_id: ada.id,
          metadata: { change: 'username', via: 'importer' },
        },
      ],
    })
    const { account } = await operations.findAccount({ ref: 'lovelace' })
    expect(account).toMatchObject({ id: ada.id, updated_by: bob.actor_id })
  })

  it('refuses a deleted account', async () => {
    await operations.deleteAccount({ account_id: ada.id }, by)
    await scenario(test, () => setUsername('lovelace', ada), { reason: 'account_not_found' })
  })
})

describe('with `username_change`', () => {
  it('`off` no name changes; `admin`, the default, leaves it to admins and operators', async () => {
    await scenario(off, () => setUsername('lovelace', ada, off), { reason: 'invalid_params' })
    expect(await setUsername('lovelace', ada, dated)).toEqual({ changed: true })
    for (const node of [off, dated]) {
      const { client } = await node.sessions.create(bob.id)
      await expect(client.account_username_change({ username: 'robert' })).rejects.toMatchObject({
        reason: 'method_not_found',
      })
    }
  })
})
