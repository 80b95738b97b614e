import { describe, expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, testService } from '../testing/index.ts'

const test = await serviceForFile()

const by = { via: 'cli' }
const password = 'a long password'
const nobody = '11111111-1111-1111-1111-111111111111'
const ops = () => test.service.operations
const stored = async (id: string) =>
  await test.service.app.db.first<Record<string, unknown>>(sql`select * from account where id = ${id}::uuid`)

it.each([undefined, {}, { via: null }, { via: 'two words' }])('nothing is done by %j', async (who) => {
  const make = ops().createAccount as (input: object, by?: object) => Promise<unknown>
  const made = () => make({ username: 'nobodys', password }, who).catch((error) => error.constructor)
  expect(await scenario(test, made)).toBe(TypeError)
  await expect(ops().findAccount({ ref: 'nobodys' })).rejects.toMatchObject({
    data: { reason: 'account_not_found' },
  })
})

describe('createAccount', () => {
  it('makes an account with one actor and no role', async () => {
    const made = await scenario(
      test,
      () => ops().createAccount({ username: 'Grace', email: 'Grace@x.io', password }, by),
      {
        audit: [
          {
            event_type: 'account_create',
            actor_id: null,
            account_id: null,
            target_actor_id: null,
            ip: null,
            metadata: { via: 'cli' },
          },
        ],
      },
    )
    expect(made).toMatchObject({ account: { username: 'grace', email: 'Grace@x.io' }, role_grant_ids: [] })
    const found = await ops().findAccount({ ref: 'grace' })
    expect(found).toMatchObject({
      account: { id: made.account.id, email_verified: false, created_by: null },
      actors: [{ id: made.actor.id, name: 'grace', role_grants: [] }],
    })
    await expect(test.client().account.login({ username: 'grace', password })).resolves.toEqual({ ok: true })
  })

  it('names the actor as asked, and the library caller as the one who created it', async () => {
    const ada = await test.account()
    const asAda = { via: 'importer', actor_id: ada.actor_id, account_id: ada.id, ip: '192.0.2.1' }
    const made = await scenario(
      test,
      () => ops().createAccount({ username: 'named', actor_name: ' Élodie ', password }, asAda),
      {
        audit: [
          { event_type: 'account_create', actor_id: ada.actor_id, account_id: ada.id, ip: '192.0.2.1' },
        ],
      },
    )
    const { account, actor } = await ops().findAccount({ ref: made.account.id })
    expect(account.created_by).toBe(ada.actor_id)
    expect(actor?.name).toBe('Élodie')
  })

  const taken = { username: 'taken', email: 'É@taken.io', password }
  it.each([
    ['the username in other case', { username: 'TAKEN', password }, 'username_taken'],
    [
      'the email composed otherwise',
      { username: 'other', email: 'e\u0301@TAKEN.io', password },
      'email_taken',
    ],
    ['the email in a Greek case', { username: 'other', password, email: 'ΟΔΟς@taken.io' }, 'email_taken'],
    ['a username with a blank', { username: 'us er', password }, 'invalid_params'],
    ['a password of 11 characters', { username: 'other', password: 'short12345x' }, 'invalid_params'],
    ['an unknown key', { username: 'other', password, role: 'admin' }, 'invalid_params'],
    ['U+0000 in a name', { username: 'other', password, actor_name: '\0' }, 'invalid_params'],
  ])('refuses %s and leaves nothing', async (_what, input, reason) => {
    for (const there of [taken, { username: 'greek', email: 'οδοΣ@taken.io', password }])
      await ops()
        .createAccount(there, by)
        .catch(() => {})
    await scenario(test, () => ops().createAccount(input, by), { reason })
    await expect(ops().findAccount({ ref: 'other' })).rejects.toMatchObject({
      data: { reason: 'account_not_found' },
    })
  })

  it('races the signup for one name, and one wins', async () => {
    const open = await testService({ limit_signup_ip: 'off', limit_signup_open_ip: 'off' })
    const { operations } = open.service
    await operations.setSettings({ open_signup: true }, by)
    for (let round = 0; round < 10; round++) {
      const wanted = { username: `racer${round}`, password }
      const done = await Promise.allSettled([
        open.client().account.signup(wanted),
        operations.createAccount(wanted, by),
      ])
      expect(done.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    }
    await open.close()
  })

  it('refuses a `via` that is no name', async () => {
    await expect(ops().createAccount({ username: 'x1y', password }, { via: 'My job' })).rejects.toThrow(/via/)
  })
})

describe('setPassword', () => {
  it('ends every session and token and lets the new password in', async () => {
    const ada = await test.account()
    await ada.client.account_token_create({ scope: { kind: 'full' }, lifetime: { kind: 'eternal' } })
    const ended = await scenario(
      test,
      () => ops().setPassword({ account_id: ada.id, password: 'another long one' }, by),
      {
        audit: [
          {
            event_type: 'password_change',
            account_id: null,
            target_account_id: ada.id,
            metadata: { sessions_revoked: 1, tokens_revoked: 1, credential_type: null, via: 'cli' },
          },
        ],
      },
    )
    expect(ended).toEqual({ sessions_revoked: 1, tokens_revoked: 1 })
    const again = (word: string) => test.client().account.login({ username: ada.username, password: word })
    await expect(again(ada.password)).rejects.toMatchObject({ reason: 'invalid_credentials' })
    await expect(again('another long one')).resolves.toEqual({ ok: true })
  })

  it('refuses a short one, a missing account and a deleted one', async () => {
    const gone = await test.account()
    await ops().deleteAccount({ account_id: gone.id }, by)
    for (const [account_id, word, reason] of [
      [gone.id, 'short', 'invalid_params'],
      [nobody, password, 'account_not_found'],
      [gone.id, password, 'account_not_found'],
    ] as const)
      await scenario(test, () => ops().setPassword({ account_id, password: word }, by), { reason })
  })
})

describe('setEmail, verifyEmail', () => {
  const update = (target: string, change: string) => ({
    event_type: 'account_update',
    target_account_id: target,
    target_actor_id: null,
    metadata: { change, via: 'cli' },
  })

  it('sets, verifies once, and clears the mark with every new address', async () => {
    const { id } = await test.account()
    const set = (email: string | null) => () => ops().setEmail({ account_id: id, email }, by)
    await scenario(test, set('A@b.io'), { audit: [update(id, 'email')] })
    expect(await stored(id)).toMatchObject({ email: 'A@b.io', email_key: 'a@b.io', email_verified: false })
    const verify = () => ops().verifyEmail({ account_id: id }, by)
    expect(await scenario(test, verify, { audit: [update(id, 'email_verified')] })).toEqual({ changed: true })
    expect(await scenario(test, verify)).toEqual({ changed: false })
    expect(await stored(id)).toMatchObject({ email_verified: true })
    await scenario(test, set('c@d.io'), { audit: [update(id, 'email')] })
    expect(await stored(id)).toMatchObject({ email_verified: false })
    expect(await scenario(test, set('c@d.io'))).toEqual({ changed: false })
    await scenario(test, set(null), { audit: [update(id, 'email_cleared')] })
    expect(await stored(id)).toMatchObject({ email: null, email_key: null })
    expect(await scenario(test, set(null))).toEqual({ changed: false })
    await scenario(test, verify, { reason: 'invalid_params' })
  })

  it('refuses a taken or malformed address and a missing account', async () => {
    const owner = await test.account({ email: 'owner@b.io' })
    const { id } = await test.account()
    for (const [account_id, email, reason] of [
      [id, 'OWNER@b.io', 'email_taken'],
      [id, 'a@@b.io', 'invalid_params'],
      [id, '', 'invalid_params'],
      [nobody, 'n@b.io', 'account_not_found'],
    ] as const)
      await scenario(test, () => ops().setEmail({ account_id, email }, by), { reason })
    expect(await stored(owner.id)).toMatchObject({ email: 'owner@b.io' })
  })
})

it('unlockAccount lets a name that failed too often in again', async () => {
  const limited = await testService({ limit_login_account: '2/600', limit_login_ip: 'off' })
  const { account } = await limited.service.operations.createAccount(
    { username: 'locked', email: 'locked@x.io', password },
    by,
  )
  const login = (username: string, word = password) =>
    limited.client().account.login({ username, password: word })
  const names = ['locked', 'LOCKED@x.io']
  const fail = async () => {
    for (const reason of ['invalid_credentials', 'rate_limit_exceeded'])
      for (const name of names) await expect(login(name, 'wrong password')).rejects.toMatchObject({ reason })
  }
  const unlock = () =>
    scenario(limited, () => limited.service.operations.unlockAccount({ account_id: account.id }, by), {
      audit: [{ event_type: 'account_update', metadata: { change: 'unlock', via: 'cli' } }],
    })
  await fail()
  await unlock()
  for (const name of names) await expect(login(name)).resolves.toEqual({ ok: true })
  // The account now knows this address, which therefore has a bucket of its own.
  await fail()
  await unlock()
  for (const name of names) await expect(login(name)).resolves.toEqual({ ok: true })
  await limited.close()
})

describe('deleteAccount, undeleteAccount, purgeAccount', () => {
  it('do what the methods do, with the operator in the rows', async () => {
    const ada = await test.account()
    const target = { account_id: ada.id }
    const rows = (kind: string, metadata: Record<string, unknown>) => [
      { event_type: `account_${kind}`, target_account_id: ada.id, metadata: { ...metadata, via: 'cli' } },
      { event_type: `actor_${kind}`, target_actor_id: ada.actor_id, metadata: { via: 'cli' } },
    ]
    await scenario(test, () => ops().deleteAccount(target, by), {
      audit: rows('delete', { sessions_revoked: 1, tokens_revoked: 0, credential_type: null }),
    })
    await expect(ada.client.account_verify()).rejects.toMatchObject({ reason: 'authentication_required' })
    expect(await scenario(test, () => ops().deleteAccount(target, by))).toEqual({ deleted: false })
    await scenario(test, () => ops().undeleteAccount(target, by), {
      audit: rows('undelete', { actor_count: 1, credential_type: null }),
    })
    expect(await scenario(test, () => ops().undeleteAccount(target, by))).toEqual({ undeleted: false })
    await scenario(test, () => ops().purgeAccount(target, by), { reason: 'purge_not_confirmed' })
    await scenario(test, () => ops().purgeAccount({ ...target, confirm: true }, by), {
      audit: rows('purge', { username: ada.username, email: null, credential_type: null }),
    })
    expect(await stored(ada.id)).toBeUndefined()
  })

  it('refuse the keeper and the last admin', async () => {
    const keeper = await test.account({ roles: ['keeper', 'admin'] })
    const refused = (reason: string, event = 'account_purge') => ({
      reason,
      audit: [
        {
          event_type: event,
          outcome: 'failure' as const,
          target_account_id: keeper.id,
          metadata: { reason, via: 'cli' },
        },
      ],
    })
    const purge = () => ops().purgeAccount({ account_id: keeper.id, confirm: true }, by)
    await scenario(test, purge, refused('cannot_delete_keeper'))
    const heir = await test.account()
    await ops().transferKeeper({ actor_id: heir.actor_id }, by)
    await scenario(test, purge, refused('cannot_delete_last_admin'))
    await scenario(test, () => ops().deleteAccount({ account_id: keeper.id }, by), {
      ...refused('cannot_delete_last_admin', 'account_delete'),
    })
    await test.roleGrant({ actor_id: heir.actor_id, role: 'admin' })
    await purge()
    expect(await stored(keeper.id)).toBeUndefined()
  })
})
