import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

const roles = [
  { name: 'teacher', grant_paths: ['admin'] },
  { name: 'local', grant_paths: ['admin'] },
]
const scope_kinds = [{ name: 'classroom' }]
const room = '22222222-2222-2222-2222-222222222222'
const nobody = '11111111-1111-1111-1111-111111111111'
const by = { via: 'cli' }

let test: TestService
beforeAll(async () => {
  test = await testService({ roles, scope_kinds })
})
afterAll(() => test.close())
const ops = () => test.service.operations
const db = () => test.service.app.db

describe('what falls with a grant', () => {
  type Offer = {
    from: TestAccount
    to: TestAccount
    to_actor_id?: string | null
    role?: string
    scope_id?: string | null
    expires?: string
  }
  const offer = async ({
    from,
    to,
    to_actor_id = null,
    role = 'teacher',
    scope_id = null,
    expires = '1 day',
  }: Offer) =>
    (
      await db().first<{ offer_id: string }>(sql`
        insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, to_actor_id, role, scope_kind,
          scope_id, expires_at)
        values (${from.actor_id}::uuid, ${from.id}::uuid, ${to.id}::uuid, ${to_actor_id}::uuid, ${role},
          ${scope_id === null ? null : 'classroom'}, ${scope_id}::uuid, now() + ${expires}::interval)
        returning offer_id`)
    )?.offer_id as string
  const revoked = ({ id }: TestAccount) => ({ account_id: id, method: 'role_grant_revoke' as const })
  const superseded = ({ id }: TestAccount) => ({
    account_id: id,
    method: 'role_grant_offer_supersede' as const,
  })
  const supersededOf = async (ids: string[]) =>
    (
      await db().rows<{ offer_id: string }>(sql`
        select offer_id from role_grant_offer where offer_id = any(${ids}::uuid[]) and superseded_at is not null`)
    ).map(({ offer_id }) => offer_id)
  const row = (
    to: TestAccount,
    offer_id: string,
    reason: string,
    cause_id: string,
    scope_id: string | null = null,
  ) => ({
    event_type: 'role_grant_offer_supersede',
    target_account_id: to.id,
    target_actor_id: null,
    metadata: {
      offer_id,
      role: 'teacher',
      scope_kind: scope_id === null ? null : 'classroom',
      scope_id,
      reason,
      cause_id,
      via: 'cli',
    },
  })

  it('offers of its tuple that wait for the actor, and no others', async () => {
    const [ada, bob, eve] = await Promise.all([test.account(), test.account(), test.account()])
    const second = await test.actor(ada.id, 'second')
    await test.roleGrant({ actor_id: bob.actor_id, role: 'teacher' })
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    const falls = await offer({ from: bob, to: ada })
    const stays = [
      await offer({ from: bob, to: ada, to_actor_id: second }),
      await offer({ from: bob, to: ada, scope_id: room }),
      await offer({ from: bob, to: ada, role: 'local' }),
      await offer({ from: bob, to: eve }),
      await offer({ from: eve, to: ada, expires: '-1 second' }),
    ]
    await scenario(test, () => ops().revokeRole({ actor_id: ada.actor_id, role_grant_id }, by), {
      audit: [{ event_type: 'role_grant_revoke' }, row(ada, falls, 'role_grant_revoked', role_grant_id)],
      notify: [revoked(ada), superseded(bob)],
    })
    expect(await supersededOf([falls, ...stays])).toEqual([falls])
  })

  it('offers that the actor made by it, unless another grant of theirs still authorises them', async () => {
    const [ada, bob] = await Promise.all([test.account(), test.account()])
    const { role_grant_id } = await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
    await test.roleGrant({ actor_id: ada.actor_id, role: 'teacher', scope_kind: 'classroom', scope_id: room })
    const global = await offer({ from: ada, to: bob })
    const local = await offer({ from: ada, to: bob, scope_id: room })
    const elsewhere = await offer({ from: ada, to: bob, scope_id: nobody })
    await scenario(test, () => ops().revokeRole({ actor_id: ada.actor_id, role_grant_id }, by), {
      audit: [
        { event_type: 'role_grant_revoke' },
        ...[
          row(bob, global, 'grantor_lost_authority', role_grant_id),
          row(bob, elsewhere, 'grantor_lost_authority', role_grant_id, nobody),
        ].sort((a, b) => (a.metadata.offer_id < b.metadata.offer_id ? -1 : 1)),
      ],
      notify: [revoked(ada), superseded(ada), superseded(ada)],
    })
    expect(await supersededOf([local])).toEqual([])
  })

  it('nothing that a callback of the consumer authorised', async () => {
    const own = await testService({ roles, scope_kinds, authorize_offer: () => true })
    const before = test
    test = own
    try {
      const [ada, bob] = await Promise.all([own.account(), own.account()])
      const { role_grant_id } = await own.roleGrant({ actor_id: ada.actor_id, role: 'teacher' })
      await offer({ from: ada, to: bob })
      await scenario(own, () => ops().revokeRole({ actor_id: ada.actor_id, role_grant_id }, by), {
        audit: [{ event_type: 'role_grant_revoke' }],
        notify: [revoked(ada)],
      })
    } finally {
      test = before
      await own.close()
    }
  })
})
