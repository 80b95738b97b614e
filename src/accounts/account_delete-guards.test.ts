import { beforeEach, describe, expect, it } from 'vitest'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount } from '../testing/index.ts'

const test = await serviceForFile()
// "The last admin" depends on the whole database.
beforeEach(() => run(sql`delete from account`))

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const asAdmin = () => test.account({ roles: ['admin'] })
const remove = async (by: TestAccount, { id }: TestAccount) =>
  await reasonOf(by.client.account_delete({ account_id: id }))
const purge = async ({ id }: TestAccount) =>
  await reasonOf(test.daemonClient().account_purge({ account_id: id, confirm: true }))

/** Ways in which a grant of this actor has no effect, set by SQL. */
const dormant: [string, (holder: TestAccount) => ReturnType<typeof sql>][] = [
  [
    'expired',
    ({ actor_id }) =>
      sql`update role_grant set expires_at = date_trunc('milliseconds', now()) where actor_id = ${actor_id}`,
  ],
  ['revoked', ({ actor_id }) => sql`update role_grant set revoked_at = now() where actor_id = ${actor_id}`],
  ['closed', ({ actor_id }) => sql`update role_grant set closed_at = now() where actor_id = ${actor_id}`],
  [
    'scoped',
    ({ actor_id, id }) => sql`
      update role_grant set scope_kind = 'room', scope_id = ${id} where actor_id = ${actor_id}`,
  ],
]

describe('the last global admin', () => {
  it('cannot delete itself; with another one it can', async () => {
    const ada = await asAdmin()
    await scenario(test, () => ada.client.account_delete(), {
      reason: 'cannot_delete_last_admin',
      audit: [
        {
          event_type: 'account_delete',
          outcome: 'failure',
          account_id: ada.id,
          actor_id: ada.actor_id,
          target_account_id: ada.id,
          metadata: { reason: 'cannot_delete_last_admin' },
        },
      ],
    })
    expect((await ada.client.account_verify()).id).toBe(ada.id)
    const bob = await asAdmin()
    expect(await remove(ada, ada)).toBe('ok')
    expect(await remove(bob, bob)).toBe('cannot_delete_last_admin')
  })

  it('cannot be purged, by the keeper either', async () => {
    const ada = await asAdmin()
    await test.account({ roles: ['keeper'] })
    await scenario(test, () => purge(ada), {
      audit: [
        {
          event_type: 'account_purge',
          outcome: 'failure',
          target_account_id: ada.id,
          metadata: { reason: 'cannot_delete_last_admin' },
        },
      ],
    })
    expect(await purge(ada)).toBe('cannot_delete_last_admin')
    await asAdmin()
    expect(await purge(ada)).toBe('ok')
  })

  it.each([
    ...dormant,
    [
      'on a removed actor',
      ({ actor_id }: TestAccount) => sql`update actor set deleted_at = now() where id = ${actor_id}`,
    ] as const,
    [
      'of a deleted account',
      ({ id }: TestAccount) => sql`update account set deleted_at = now() where id = ${id}`,
    ] as const,
  ])('is the only one when the other grant is %s', async (_what, change) => {
    const ada = await asAdmin()
    const bob = await asAdmin()
    await run(change(bob))
    expect(await remove(ada, ada)).toBe('cannot_delete_last_admin')
    expect((await ada.client.account_verify()).id).toBe(ada.id)
  })

  it('is one account, however many of its actors hold the role', async () => {
    const ada = await asAdmin()
    const second = await test.actor(ada.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'admin' })
    expect(await reasonOf(ada.client.account_delete({ acting: second }))).toBe('cannot_delete_last_admin')
  })

  it('that does not exist is in nobody’s way', async () => {
    const ada = await test.account()
    expect(await reasonOf(ada.client.account_delete())).toBe('ok')
  })
})

describe('a keeper', () => {
  it('cannot delete itself, nor be deleted by an admin, nor be purged; the log says so', async () => {
    const keeper = await test.account({ roles: ['keeper', 'admin'] })
    const ada = await asAdmin()
    for (const by of [keeper, ada])
      await scenario(test, () => by.client.account_delete({ account_id: keeper.id }), {
        reason: 'cannot_delete_keeper',
        audit: [
          {
            event_type: 'account_delete',
            outcome: 'failure',
            account_id: by.id,
            actor_id: by.actor_id,
            target_account_id: keeper.id,
            metadata: { reason: 'cannot_delete_keeper' },
          },
        ],
      })
    expect(await purge(keeper)).toBe('cannot_delete_keeper')
    expect((await keeper.client.account_verify()).id).toBe(keeper.id)
  })

  it('that is the last admin as well hears of the keeper first', async () => {
    const keeper = await test.account({ roles: ['keeper', 'admin'] })
    expect(await remove(keeper, keeper)).toBe('cannot_delete_keeper')
    expect(await purge(keeper)).toBe('cannot_delete_keeper')
  })

  it('is protected by a grant on a removed actor too, and in a deleted account', async () => {
    const ada = await asAdmin()
    const bob = await test.account()
    const second = await test.actor(bob.id, 'second')
    await test.roleGrant({ actor_id: second, role: 'keeper' })
    await test.account({ roles: ['keeper'] })
    await run(sql`update actor set deleted_at = now() where id = ${second}::uuid`)
    expect(await remove(bob, bob)).toBe('cannot_delete_keeper')
    expect(await remove(ada, bob)).toBe('cannot_delete_keeper')
    await run(sql`update account set deleted_at = now() where id = ${bob.id}::uuid`)
    expect(await purge(bob)).toBe('cannot_delete_keeper')
  })

  it.each(dormant)('is none by a grant that is %s', async (_what, change) => {
    const ada = await asAdmin()
    const bob = await test.account({ roles: ['keeper'] })
    await run(change(bob))
    expect(await remove(ada, bob)).toBe('ok')
  })

  it('may be gone as one of several only after its grant', async () => {
    const [one, two] = [await test.account({ roles: ['keeper'] }), await test.account({ roles: ['keeper'] })]
    expect([await purge(one), await purge(two)]).toEqual(['cannot_delete_keeper', 'cannot_delete_keeper'])
    await run(sql`update role_grant set revoked_at = now() where actor_id = ${one.actor_id}::uuid`)
    expect([await purge(one), await purge(two)]).toEqual(['ok', 'cannot_delete_keeper'])
  })
})
