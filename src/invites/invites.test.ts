import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { purgeAccount } from '../accounts/admin/account_purge.ts'
import type { CellkeepError } from '../client/client.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile({ limit_signup_ip: 'off', limit_signup_username: 'off' })
const admin = await test.account({ username: 'admin', roles: ['admin'] })

const dayMs = 86_400_000
const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const create = (input: Parameters<typeof admin.client.invite_create>[0]) => admin.client.invite_create(input)
const signUp = (username: string, email?: string) =>
  test.client().account.signup({ username, password: 'a long password', ...(email && { email }) })
const entry = async (id: string) =>
  (await admin.client.invite_list({ limit: 200 })).invites.find((invite) => invite.id === id)
const expire = (id: string) =>
  run`update invite set expires_at = date_trunc('milliseconds', now()) where id = ${id}::uuid`
const deleteAccount = ({ id }: TestAccount) =>
  run`update account set deleted_at = now() where id = ${id}::uuid`
const purge = (id: string) =>
  purgeAccount(test.service.app, { account_id: id, confirm: true }, { via: 'testing' })
/** The issues of a refused input, as path and code. */
const issuesOf = async (call: Promise<unknown>): Promise<unknown> => {
  const error = (await call.then(
    () => undefined,
    (refused) => refused,
  )) as CellkeepError | undefined
  const issues = error?.data.issues as { path: unknown[]; code: string }[] | undefined
  return [error?.reason, ...(issues ?? []).map(({ path, code }) => [path, code])]
}

describe('invite_create', () => {
  it('answers with the invite: e-mail as given, username in lower case, expiry in UTC', async () => {
    const made = await scenario(
      test,
      () => create({ email: 'É@New.example', username: 'NewOne', expires_at: '2100-01-01T02:00:00+02:00' }),
      {
        audit: [
          {
            event_type: 'invite_create',
            actor_id: admin.actor_id,
            account_id: admin.id,
            target_account_id: null,
            ip: '127.0.0.1',
          },
        ],
      },
    )
    expect(made).toEqual({
      ok: true,
      link: null,
      invite: {
        id: expect.any(String),
        email: 'É@New.example',
        username: 'newone',
        expires_at: '2100-01-01T00:00:00.000Z',
        claimed_by: null,
        claimed_at: null,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
        created_by: admin.actor_id,
      },
    })
    const rows = await test.service.app.db.rows(sql`
      select metadata from audit_entries() where metadata ->> 'invite_id' = ${made?.invite.id}`)
    expect(rows).toEqual([{ metadata: { invite_id: made?.invite.id } }])
  })

  it.each([
    ['neither identifier', {}],
    ['both null', { email: null, username: null, expires_at: null }],
    ['only an expiry', { expires_at: '2100-01-01T00:00:00Z' }],
  ])('with %s names the rule at the root, and leaves no row', async (_what, input) => {
    await scenario(test, async () => {
      expect(await issuesOf(create(input))).toEqual(['invalid_params', [[], 'invite_identifier_required']])
    })
  })

  const at = (offset: number) => new Date(Date.now() + offset).toISOString()
  const minute = 60_000
  it.each([
    ['in the past', at(-minute), 'too_small'],
    ['equal to now', at(0), 'too_small'],
    ['more than 36 500 days ahead', at(36_500 * dayMs + 10 * minute), 'too_big'],
    ['no timestamp', 'tomorrow', 'invalid_format'],
    ['without a zone', '2100-01-01T00:00:00', 'invalid_format'],
    ['a number', 4_102_444_800_000, 'invalid_type'],
  ])('refuses an expiry %s', async (_what, expires_at, code) => {
    const refused = await issuesOf(create({ username: 'late', expires_at: expires_at as string }))
    expect(refused).toEqual(['invalid_params', [['expires_at'], code]])
  })

  it('takes an expiry up to 36 500 days ahead by the clock of the database, whatever that of the node', async () => {
    const ends = [at(10 * minute), at(36_500 * dayMs - minute)]
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.parse(at(365 * dayMs)))
    for (const expires_at of ends)
      expect((await create({ username: `u${expires_at.slice(0, 4)}`, expires_at })).invite).toMatchObject({
        expires_at,
      })
    clock.mockRestore()
  })

  it.each([
    ['a malformed e-mail', { email: 'a@b' }, 'email', 'invalid_format'],
    ['an empty e-mail', { email: '' }, 'email', 'invalid_format'],
    ['a username of two', { username: 'ab' }, 'username', 'too_small'],
    ['a username with a Kelvin sign', { username: '\u212Aelvin' }, 'username', 'invalid_format'],
    ['a lone surrogate', { email: '\ud800@b.example' }, 'email', 'invalid_format'],
    ['an unknown key', { username: 'abc', role: 'admin' }, 'role', 'unrecognized_keys'],
  ])('refuses %s', async (_what, input, key, code) => {
    expect(await issuesOf(create(input))).toEqual(['invalid_params', [[key], code]])
  })

  describe('refuses, with a failure row,', () => {
    const refused = (reason: string) => ({
      reason,
      audit: [
        {
          event_type: 'invite_create',
          outcome: 'failure' as const,
          actor_id: admin.actor_id,
          account_id: admin.id,
          metadata: { reason },
        },
      ],
    })

    it('the username of an account in any case, a deleted one included', async () => {
      await test.account({ username: 'taken' })
      await deleteAccount(await test.account({ username: 'gone' }))
      for (const username of ['TAKEN', 'gone'])
        await scenario(test, () => create({ username }), refused('invite_account_exists_username'))
    })

    it('the e-mail of an account, folded, a deleted one included', async () => {
      await test.account({ email: 'Élodie@taken.example' })
      await deleteAccount(await test.account({ email: 'gone@taken.example' }))
      for (const email of ['E\u0301LODIE@TAKEN.EXAMPLE', 'GONE@taken.example'])
        await scenario(test, () => create({ email }), refused('invite_account_exists_email'))
    })

    it('either identifier of an open invite', async () => {
      await create({ username: 'both', email: 'Ø@both.example' })
      for (const input of [
        { username: 'BOTH' },
        { email: 'ø@both.example' },
        { username: 'both', email: 'other@both.example' },
        { username: 'another', email: 'ø@BOTH.example' },
      ])
        await scenario(test, () => create(input), refused('invite_duplicate'))
    })

    it('in this order: username of an account, e-mail of an account, duplicate', async () => {
      await create({ username: 'order', email: 'order@x.example' })
      const owner = await test.account({ username: 'order1', email: 'order1@x.example' })
      await run`update account set username = 'order', email_key = 'order@x.example' where id = ${owner.id}::uuid`
      const both = { username: 'order', email: 'order@x.example' }
      await scenario(test, () => create(both), refused('invite_account_exists_username'))
      await run`update account set username = 'elsewhere' where id = ${owner.id}::uuid`
      await scenario(test, () => create(both), refused('invite_account_exists_email'))
      await purge(owner.id)
      await scenario(test, () => create(both), refused('invite_duplicate'))
    })
  })

  it('takes the name of a purged account', async () => {
    const ada = await test.account({ username: 'purged', email: 'purged@x.example' })
    await purge(ada.id)
    expect((await create({ username: 'purged', email: 'purged@x.example' })).ok).toBe(true)
  })

  it('replaces expired invites with either identifier, and no other', async () => {
    const byName = (await create({ username: 'again' })).invite.id
    const byEmail = (await create({ email: 'again@x.example' })).invite.id
    const other = (await create({ username: 'bystander' })).invite.id
    for (const id of [byName, byEmail, other]) await expire(id)
    const { invite } = await create({ username: 'again', email: 'AGAIN@x.example' })
    expect(
      await Promise.all([byName, byEmail, other, invite.id].map(async (id) => !!(await entry(id)))),
    ).toEqual([false, false, true, true])
  })

  it('keeps the expired invites when it is refused', async () => {
    const { id } = (await create({ username: 'stays' })).invite
    await create({ email: 'stays@x.example' })
    await expire(id)
    await expect(create({ username: 'stays', email: 'stays@x.example' })).rejects.toMatchObject({
      reason: 'invite_duplicate',
    })
    expect(await entry(id)).toBeDefined()
  })

  it('invites a name again once the invite is claimed and its account purged', async () => {
    const first = (await create({ username: 'twice' })).invite
    await purge((await signUp('twice')).account.id)
    const second = (await create({ username: 'twice' })).invite
    expect((await entry(first.id))?.claimed_at).not.toBeNull()
    expect(second.id).not.toBe(first.id)
  })
})

describe('invite_delete', () => {
  it('removes an open invite, and an expired one', async () => {
    const open = (await create({ username: 'open1' })).invite.id
    const expired = (await create({ username: 'expired1' })).invite.id
    await expire(expired)
    for (const invite_id of [open, expired])
      await scenario(test, () => admin.client.invite_delete({ invite_id: invite_id.toUpperCase() }), {
        audit: [
          {
            event_type: 'invite_delete',
            actor_id: admin.actor_id,
            account_id: admin.id,
            metadata: { invite_id },
          },
        ],
      })
    expect([await entry(open), await entry(expired)]).toEqual([undefined, undefined])
    await expect(signUp('open1')).rejects.toMatchObject({ reason: 'no_matching_invite' })
  })

  it('answers 404 for a missing, a deleted and a claimed one, which stays', async () => {
    const claimed = (await create({ username: 'claimed1' })).invite.id
    await signUp('claimed1')
    const deleted = (await create({ username: 'deleted1' })).invite.id
    await admin.client.invite_delete({ invite_id: deleted })
    for (const invite_id of [claimed, deleted, randomUUID()])
      await scenario(test, () => admin.client.invite_delete({ invite_id }), {
        reason: 'invite_not_found',
        audit: [
          {
            event_type: 'invite_delete',
            outcome: 'failure',
            account_id: admin.id,
            metadata: { reason: 'invite_not_found', attempted_invite_id: invite_id },
          },
        ],
      })
    expect(await entry(claimed)).toBeDefined()
  })
})

describe('invite_list', () => {
  it('names inviter and claimant by the username of their account, also when it is deleted', async () => {
    const inviter = await test.account({ username: 'inviter', roles: ['admin'] })
    await run`update actor set name = 'Another name' where id = ${inviter.actor_id}::uuid`
    const { invite } = await inviter.client.invite_create({ username: 'guest' })
    const { account } = await signUp('guest')
    await deleteAccount(inviter)
    expect(await entry(invite.id)).toEqual({
      ...invite,
      claimed_by: account.id,
      claimed_at: expect.any(String),
      created_by_username: 'inviter',
      claimed_by_username: 'guest',
    })
  })

  it('keeps an invite whose inviter and claimant are purged: still claimed, with no names', async () => {
    const inviter = await test.account({ roles: ['admin'] })
    const { invite } = await inviter.client.invite_create({ username: 'shortlived' })
    const { account } = await signUp('shortlived')
    await purge(account.id)
    await purge(inviter.id)
    expect(await entry(invite.id)).toMatchObject({
      created_by: inviter.actor_id,
      created_by_username: null,
      claimed_by: null,
      claimed_at: expect.any(String),
      claimed_by_username: null,
    })
    await expect(signUp('shortlived')).rejects.toMatchObject({ reason: 'no_matching_invite' })
  })
})
