import { describe, expect, it } from 'vitest'
import { tokenOf } from '../../../test/helpers/callers.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario } from '../../testing/index.ts'

const test = await serviceForFile()
const admin = await test.account({ roles: ['admin'] })
const keeper = await test.account({ roles: ['keeper'] })
const cli = { via: 'cli' }

const { raw } = sql
const run = (statement: ReturnType<typeof sql>) => test.service.app.db.run(statement)
const undelete = async ({ id }: { id: string }) =>
  await reasonOf(admin.client.account_undelete({ account_id: id }))
const nobody = '00000000-0000-4000-8000-000000000000'

describe('an account that is undeleted', () => {
  it('loses its tombstone with the actors that were deleted with it; the log says how many', async () => {
    const ada = await test.account()
    const second = await test.actor(ada.id, 'second')
    const removed = await test.actor(ada.id, 'removed')
    await run(sql`update actor set deleted_at = '2020-01-01T00:00:00Z' where id = ${removed}::uuid`)
    await ada.client.account_delete({ acting: ada.actor_id })
    const envelope = { account_id: admin.id, actor_id: admin.actor_id, target_account_id: ada.id }
    const answer = await scenario(test, () => admin.client.account_undelete({ account_id: ada.id }), {
      audit: [
        {
          event_type: 'account_undelete',
          ...envelope,
          target_actor_id: null,
          metadata: { actor_count: 2, credential_type: 'session' },
        },
        ...[ada.actor_id, second].sort().map((target_actor_id) => ({
          event_type: 'actor_undelete',
          ...envelope,
          target_actor_id,
          metadata: null,
        })),
      ],
    })
    expect(answer).toEqual({ ok: true, undeleted: true })
    const { db } = test.service.app
    expect(
      await db.first(sql`
        select deleted_at, deleted_by, updated_by, updated_at > created_at as is_updated
        from account where id = ${ada.id}::uuid`),
    ).toEqual({ deleted_at: null, deleted_by: null, updated_by: admin.actor_id, is_updated: true })
    expect(
      await db.rows(sql`
        select id, deleted_at, deleted_by, deleted_with_account from actor
        where account_id = ${ada.id}::uuid order by created_at`),
    ).toEqual([
      ...[ada.actor_id, second].map((id) => ({
        id,
        deleted_at: null,
        deleted_by: null,
        deleted_with_account: false,
      })),
      { id: removed, deleted_at: '2020-01-01T00:00:00.000Z', deleted_by: null, deleted_with_account: false },
    ])
  })

  it('signs in anew, with its grants; its old cookie and token stay dead', async () => {
    const ada = await test.account({ roles: ['admin'] })
    const { client } = await tokenOf(test, ada)
    await ada.client.account_delete()
    expect(await undelete(ada)).toBe('ok')
    for (const old of [ada.client, client])
      expect(await reasonOf(old.account_verify())).toBe('authentication_required')
    const fresh = test.client()
    await fresh.account.login({ username: ada.username, password: ada.password })
    expect(await reasonOf(fresh.admin_account_list({ limit: 1 }))).toBe('ok')
  })

  it.each([
    ['revoked', 'revoked_at = now()'],
    ['expired', `expires_at = date_trunc('milliseconds', now())`],
  ])('has no grant that was %s meanwhile', async (_what, change) => {
    const ada = await test.account({ roles: ['admin'] })
    await ada.client.account_delete()
    await run(sql`update role_grant set ${raw(change)} where actor_id = ${ada.actor_id}::uuid`)
    await undelete(ada)
    const fresh = test.client()
    await fresh.account.login({ username: ada.username, password: ada.password })
    expect(await reasonOf(fresh.admin_account_list())).toBe('insufficient_permissions')
  })

  it('leaves an actor removed that was removed in the very millisecond of the deletion', async () => {
    const ada = await test.account()
    const removed = await test.actor(ada.id, 'removed')
    await run(sql`update actor set deleted_at = now() where id = ${removed}::uuid`)
    await ada.client.account_delete()
    await run(sql`
      update actor set deleted_at = account.deleted_at
      from account where account.id = actor.account_id and actor.id = ${removed}::uuid`)
    await undelete(ada)
    const { actors } = await admin.client.actor_lookup({ ids: [ada.actor_id, removed] })
    expect(actors.map(({ id }) => id)).toEqual([ada.actor_id])
  })

  it('can be deleted and undeleted again and again', async () => {
    const ada = await test.account()
    for (let i = 0; i < 3; i++) {
      expect(await reasonOf(admin.client.account_delete({ account_id: ada.id }))).toBe('ok')
      expect(await undelete(ada)).toBe('ok')
    }
    expect((await admin.client.actor_lookup({ ids: [ada.actor_id] })).actors).toHaveLength(1)
  })
})

describe('account_undelete', () => {
  it('of a live account changes nothing and leaves no row', async () => {
    const live = await test.account()
    const removed = await test.actor(live.id, 'removed')
    await run(sql`
      update actor set deleted_at = now(), deleted_with_account = true where id = ${removed}::uuid`)
    for (const account_id of [live.id, admin.id]) {
      const answer = await scenario(test, () => admin.client.account_undelete({ account_id }))
      expect(answer).toEqual({ ok: true, undeleted: false })
    }
    const { actors } = await admin.client.actor_lookup({ ids: [removed] })
    expect(actors).toEqual([])
  })

  it('succeeds once of two at the same time', async () => {
    const ada = await test.account()
    await ada.client.account_delete()
    const once = async () => (await admin.client.account_undelete({ account_id: ada.id })).undeleted
    expect((await Promise.all([once(), once()])).sort()).toEqual([false, true])
  })

  it('is for admins by any credential', async () => {
    const ada = await test.account()
    await ada.client.account_delete()
    const { client } = await tokenOf(test, admin)
    expect(await reasonOf(client.account_undelete({ account_id: ada.id }))).toBe('ok')
  })

  it('asks for an id', async () => {
    for (const params of [
      {},
      { account_id: null },
      { account_id: 'x' },
      { account_id: nobody, confirm: true },
    ])
      expect(await reasonOf(admin.client.account_undelete(params as { account_id: string }))).toBe(
        'invalid_params',
      )
  })
})

describe('an unknown account', () => {
  const target = { account_id: nobody }
  const { operations } = test.service
  it.each<[kind: string, byMethod: () => Promise<unknown>, byOperator: () => Promise<unknown>]>([
    ['delete', () => admin.client.account_delete(target), () => operations.deleteAccount(target, cli)],
    ['undelete', () => admin.client.account_undelete(target), () => operations.undeleteAccount(target, cli)],
    [
      'purge',
      () => test.daemonClient().account_purge({ ...target, confirm: true, acting: keeper.actor_id }),
      () => operations.purgeAccount({ ...target, confirm: true }, cli),
    ],
  ])('is not found by a %s, and the row names it as attempted only', async (kind, byMethod, byOperator) => {
    const reason = 'account_not_found'
    const { id, actor_id } = kind === 'purge' ? keeper : admin
    for (const [call, account_id, actor, via] of [
      [byMethod, id, actor_id, {}],
      [byOperator, null, null, cli],
    ] as const)
      await scenario(test, call, {
        reason,
        audit: [
          {
            event_type: `account_${kind}`,
            outcome: 'failure',
            account_id,
            actor_id: actor,
            target_account_id: null,
            target_actor_id: null,
            metadata: { reason, attempted_account_id: nobody, ...via },
          },
        ],
      })
  })
})
