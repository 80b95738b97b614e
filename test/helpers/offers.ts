import { sql } from '../../src/db/db.ts'
import type { Notification } from '../../src/notifications.ts'
import type { TestAccount, TestOptions, TestService } from '../../src/testing/index.ts'

/** The roles and scope kinds of the tests of role grants and offers. */
export const registries = {
  roles: [
    { name: 'teacher', grant_paths: ['admin', 'system'] },
    { name: 'guide', grant_paths: ['admin', 'self_service'] },
    { name: 'local', grant_paths: ['admin'], applicable_scope_kinds: ['classroom'] },
    { name: 'plain', grant_paths: ['admin'], applicable_scope_kinds: [] },
    { name: 'inner', grant_paths: ['system'] },
    { name: 'closed', grant_paths: [] },
  ],
  scope_kinds: [{ name: 'classroom' }, { name: 'team' }],
} satisfies TestOptions

export const room = '22222222-2222-4222-8222-222222222222'
export const otherRoom = '33333333-3333-4333-8333-333333333333'
export const nobody = '11111111-1111-4111-8111-111111111111'
export const inRoom = { scope_kind: 'classroom', scope_id: room } as const
export const globally = { scope_kind: null, scope_id: null } as const

type Test = Pick<TestService, 'service'>

/** An account whose actor holds a role, which it may therefore offer. */
export async function holder(
  test: TestService,
  role = 'teacher',
  scope: { scope_kind?: string | null; scope_id?: string | null } = {},
): Promise<TestAccount & { role_grant_id: string }> {
  const account = await test.account()
  const { role_grant_id } = await test.roleGrant({ actor_id: account.actor_id, role, ...scope })
  return { ...account, role_grant_id }
}

/** Expires an offer. */
export const lapse = ({ service }: Test, offer_id: string): Promise<unknown> =>
  service.app.db.run(sql`
    update role_grant_offer set expires_at = now() - interval '1 ms' where offer_id = ${offer_id}::uuid`)

/** Expires a grant. */
export const expire = ({ service }: Test, role_grant_id: string): Promise<unknown> =>
  service.app.db.run(sql`update role_grant set expires_at = now() where id = ${role_grant_id}::uuid`)

/** Deletes the actor and the account as their methods would. */
export const removeActor = ({ service }: Test, actor_id: string): Promise<unknown> =>
  service.app.db.run(sql`update actor set deleted_at = now() where id = ${actor_id}::uuid`)

type StoredGrant = {
  id: string
  role: string
  granted_by: string | null
  source_offer_id: string | null
  revoked_by: string | null
  revoked_reason: string | null
  expires_at: string | null
  is_active: boolean
}

/** Every stored grant of an actor, oldest first. */
export const grantsOf = ({ service }: Test, actor_id: string): Promise<StoredGrant[]> =>
  service.app.db.rows<StoredGrant>(sql`
    select id, role, granted_by, source_offer_id, revoked_by, revoked_reason, expires_at,
      revoked_at is null and closed_at is null and (expires_at is null or expires_at > now()) as is_active
    from role_grant where actor_id = ${actor_id}::uuid order by created_at, id`)

/** The notifications of a call, whether it succeeds or fails. */
export async function heard(test: Test, act: () => Promise<unknown>): Promise<Notification[]> {
  const sent: Notification[] = []
  const deaf = test.service.app.hub.listen(({ notifications }) => sent.push(...notifications))
  try {
    await act()
  } finally {
    deaf()
  }
  return sent
}
