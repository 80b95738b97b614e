import { beforeEach, describe, expect, it } from 'vitest'
import { tokenOf } from '../../../test/helpers/callers.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { type TestAccount, testService } from '../../testing/index.ts'

const room = '3b241101-e2bb-4255-8caf-4136c566a962'
let admin: TestAccount
const test = await serviceForFile({
  roles: [
    { name: 'teacher', grant_paths: ['system', 'admin'] },
    { name: 'robot', grant_paths: ['system'] },
    { name: 'clerk', grant_paths: ['admin'] },
  ],
  scope_kinds: [{ name: 'room' }],
})
beforeEach(async () => {
  await run(sql`delete from account`)
  await run(sql`delete from role_grant_offer`)
  admin = await test.account({ roles: ['admin'] })
})

const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const list = (input: { include_deleted?: boolean | null } = {}) => admin.client.admin_account_list(input)
const entryOf = async ({ id }: { id: string }, include_deleted = false) => {
  const entry = (await list({ include_deleted })).accounts.find(({ account }) => account.id === id)
  if (!entry) throw new Error('the account is not listed')
  return entry
}
const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe('an entry of admin_account_list', () => {
  it('shows the ten keys of an account, its actor and its grants, and no hash at any depth', async () => {
    const ada = await test.account({ email: 'Ada@example.com' })
    await tokenOf(test, ada)
    const { role_grant_id } = await test.roleGrant({
      actor_id: ada.actor_id,
      role: 'clerk',
      scope_kind: 'room',
      scope_id: room,
      expires_at: '2040-01-02T03:04:05.678Z',
      granted_by: admin.actor_id,
    })
    const grant = {
      id: role_grant_id,
      actor_id: ada.actor_id,
      role: 'clerk',
      scope_kind: 'room',
      scope_id: room,
      created_at: aTime,
      expires_at: '2040-01-02T03:04:05.678Z',
      granted_by: admin.actor_id,
    }
    const actor = { id: ada.actor_id, name: ada.username }
    expect(await entryOf(ada)).toEqual({
      account: {
        id: ada.id,
        username: ada.username,
        email: 'Ada@example.com',
        email_verified: false,
        created_at: aTime,
        created_by: null,
        updated_at: aTime,
        updated_by: null,
        deleted_at: null,
        deleted_by: null,
      },
      actors: [{ ...actor, role_grants: [grant] }],
      actor,
      role_grants: [grant],
      pending_offers: [],
      sign_in: { password: true, second_factor: false, passkeys: 0, links: [] },
    })
    const secrets = await test.service.app.db.rows<Record<string, string>>(sql`
      select password_hash as secret from account union all select token_hash from api_token
      union all select email_key from account where email_key <> email`)
    const text = JSON.stringify(await list())
    for (const { secret } of secrets) expect(text).not.toContain(secret)
    expect(secrets).toHaveLength(4)
  })

  it('shows the live actors by age, the first as the actor, and the union of their grants by age', async () => {
    const ada = await test.account()
    const [second, removed] = [await test.actor(ada.id, 'second'), await test.actor(ada.id, 'removed')]
    await run(sql`update actor set created_at = created_at - interval '1 day' where id = ${second}::uuid`)
    const grants: string[] = []
    for (const [actor_id, role] of [
      [ada.actor_id, 'teacher'],
      [second, 'robot'],
      [removed, 'clerk'],
      [ada.actor_id, 'clerk'],
      [second, 'clerk'],
    ] as const)
      grants.push((await test.roleGrant({ actor_id, role })).role_grant_id)
    await run(sql`
      update role_grant set created_at = '2026-01-01T00:00:00Z'::timestamptz + at * interval '1 minute'
      from unnest(${grants}::uuid[]) with ordinality as made (grant_id, at) where id = grant_id`)
    await run(sql`update actor set deleted_at = now() where id = ${removed}::uuid`)
    const [teacher, robot, , clerk, other] = grants
    const { actors, actor, role_grants } = await entryOf(ada)
    expect(actors.map(({ id, name, role_grants: own }) => [id, name, own.map((one) => one.id)])).toEqual([
      [second, 'second', [robot, other]],
      [ada.actor_id, ada.username, [teacher, clerk]],
    ])
    expect(actor).toEqual({ id: second, name: 'second' })
    expect(role_grants.map(({ id }) => id)).toEqual([teacher, robot, clerk, other])
    await run(sql`update role_grant set created_at = '2026-01-01T00:00:00Z'`)
    expect((await entryOf(ada)).role_grants.map(({ id }) => id)).toEqual(
      [teacher, robot, clerk, other].sort(),
    )
  })

  it('shows active grants only', async () => {
    const ada = await test.account({ roles: ['teacher', 'robot', 'clerk', 'admin'] })
    for (const [role, change] of [
      ['teacher', 'revoked_at = now()'],
      ['robot', `expires_at = date_trunc('milliseconds', now())`],
      ['clerk', 'closed_at = now()'],
    ] as const)
      await run(
        sql`update role_grant set ${sql.raw(change)} where actor_id = ${ada.actor_id} and role = ${role}`,
      )
    expect((await entryOf(ada)).role_grants.map(({ role }) => role)).toEqual(['admin'])
  })

  it('has no actor where none is live', async () => {
    const ada = await test.account({ roles: ['clerk'] })
    await run(sql`update actor set deleted_at = now() where id = ${ada.actor_id}::uuid`)
    expect(await entryOf(ada)).toMatchObject({ actors: [], actor: null, role_grants: [] })
  })

  it('of a deleted account stands there on request, with the actors that were deleted with it', async () => {
    const ada = await test.account({ roles: ['clerk'] })
    const removed = await test.actor(ada.id, 'removed')
    await run(sql`update actor set deleted_at = now() where id = ${removed}::uuid`)
    await admin.client.account_delete({ account_id: ada.id })
    for (const include_deleted of [undefined, null, false]) {
      const { accounts } = await list({ ...(include_deleted !== undefined && { include_deleted }) })
      expect(accounts.map(({ account }) => account.id)).toEqual([admin.id])
    }
    expect(await entryOf(ada, true)).toMatchObject({
      account: { deleted_at: aTime, deleted_by: admin.actor_id, updated_by: admin.actor_id },
      actors: [{ id: ada.actor_id, role_grants: [{ role: 'clerk' }] }],
      actor: { id: ada.actor_id },
      role_grants: [{ role: 'clerk' }],
    })
  })
})

describe('pending_offers', () => {
  type Offer = { to?: TestAccount; actor?: string; from?: string; ends?: string; stamp?: string; at?: string }
  const offer = async ({ to = admin, actor, from, ends = '1 day', stamp, at }: Offer): Promise<string> => {
    const row = await test.service.app.db.first<{ offer_id: string }>(sql`
      insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, to_actor_id, role, scope_kind,
        scope_id, created_at, expires_at)
      select gen_random_uuid(), coalesce(${from ?? null}::uuid, gen_random_uuid()), ${to.id}::uuid,
        ${actor ?? null}::uuid, 'clerk',
        ${at === undefined ? null : 'room'}, ${at ?? null}::uuid, now() - interval '2 days', now() + ${ends}::interval
      returning offer_id`)
    const { offer_id } = row as { offer_id: string }
    if (stamp)
      await run(sql`update role_grant_offer set ${sql.raw(stamp)} = now() where offer_id = ${offer_id}::uuid`)
    return offer_id
  }
  const pending = async ({ id }: { id: string }) => (await entryOf({ id })).pending_offers

  it('are those that wait for the account, soonest end first, with the name of who made them and the actor that they name', async () => {
    const [ada, bob, gone] = [await test.account(), await test.account(), await test.account()]
    await gone.client.account_delete()
    const ids = [
      await offer({ to: ada, from: bob.id, ends: '3 days' }),
      await offer({ to: ada, actor: ada.actor_id, from: gone.id, ends: '1 day' }),
      await offer({ to: ada, ends: '2 days', at: room }),
    ] as const
    await offer({ to: bob, from: ada.id })
    await offer({ to: ada, ends: '-1 second' })
    for (const stamp of ['accepted_at', 'declined_at', 'retracted_at', 'superseded_at', 'expired_at'])
      await offer({ to: ada, stamp })
    const common = { role: 'clerk', from_actor_id: expect.any(String), created_at: aTime, expires_at: aTime }
    const global = { scope_kind: null, scope_id: null, to_actor_id: null }
    expect(await pending(ada)).toEqual([
      { ...common, ...global, offer_id: ids[1], from_username: gone.username, to_actor_id: ada.actor_id },
      { ...common, ...global, scope_kind: 'room', scope_id: room, offer_id: ids[2], from_username: null },
      { ...common, ...global, offer_id: ids[0], from_username: bob.username },
    ])
    expect(await pending(bob)).toHaveLength(1)
  })

  it('are a hundred at most, the soonest to end', async () => {
    const ids: string[] = []
    for (let i = 0; i < 102; i++) ids.push(await offer({ ends: `${102 - i} hours` }))
    const shown = (await pending(admin)).map(({ offer_id }) => offer_id)
    expect(shown).toEqual(ids.reverse().slice(0, 100))
  })
})

it('grantable_roles are those that admins may confer, in the order of the registry', async () => {
  expect((await list()).grantable_roles).toEqual(['admin', 'teacher', 'clerk'])
})

describe('admin_account_list', () => {
  it('asks which actor, where there are several, and whether that one is admin', async () => {
    const second = await test.actor(admin.id, 'second')
    const attempt = async (acting?: string) =>
      await reasonOf(admin.client.admin_account_list(acting === undefined ? {} : { acting }))
    expect(await attempt()).toBe('actor_required')
    expect(await attempt(second)).toBe('insufficient_permissions')
    expect(await attempt(admin.actor_id.toUpperCase())).toBe('ok')
  })

  it('shares its budget with the other lists of admins, not with what they change', async () => {
    await using limited = await testService({ limit_admin_read: '2/900' })
    const { client, id } = await limited.account({ roles: ['admin'] })
    await client.admin_account_list()
    await client.admin_session_list()
    expect(await reasonOf(client.admin_account_list({ limit: 0 }))).toBe('invalid_params')
    expect(await reasonOf(client.admin_account_list())).toBe('rate_limited')
    expect(await reasonOf(client.admin_token_revoke_all({ account_id: id }))).toBe('ok')
  })
})
