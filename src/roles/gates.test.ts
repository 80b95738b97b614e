import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { inRoom } from '../../test/helpers/offers.ts'
import type { Actions } from '../actions.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, testService } from '../testing/index.ts'

const actions = {
  teach: query({
    doc: 'For teachers.',
    auth: { account: 'required', actor: 'required', roles: ['teacher'] },
    output: z.object({ at: z.string() }),
    handler: async (_input, { db }) =>
      (await db.first<{ at: string }>(sql`select now() as at`)) as { at: string },
  }),
}

type Mine = Actions & typeof actions

let ada: TestAccount<Mine>
const test = await testService<Mine>({
  actions,
  roles: [{ name: 'teacher', grant_paths: ['admin'], required_credential_types: ['daemon_token'] }],
  scope_kinds: [{ name: 'classroom' }],
  limit_role_write: '2/60',
  limit_role_revoke: '1/60',
})
afterAll(() => test.close())
beforeEach(async () => {
  ada = await test.account()
})

const teach = async () => (await ada.client.try.teach()).ok
const grant = (more: object = {}) => test.roleGrant({ actor_id: ada.actor_id, role: 'teacher', ...more })

describe('the gate of a role', () => {
  it('opens to an active grant, whatever credential types the role calls required', async () => {
    expect(await teach()).toBe(false)
    await grant()
    expect(await teach()).toBe(true)
  })

  it('is closed to a grant at a scope', async () => {
    await grant(inRoom)
    expect(await teach()).toBe(false)
  })

  it('closes with the moment at which the grant expires, and opens again to a fresh one', async () => {
    const { role_grant_id } = await grant()
    await test.service.app.db.run(sql`
      update role_grant set expires_at = now() + interval '1 hour' where id = ${role_grant_id}::uuid`)
    expect(await teach()).toBe(true)
    await test.service.app.db.run(sql`
      update role_grant set expires_at = date_trunc('milliseconds', now()) where id = ${role_grant_id}::uuid`)
    expect(await teach()).toBe(false)
    expect((await grant()).created).toBe(true)
    expect(await teach()).toBe(true)
  })

  it('is closed while the actor is removed, and opens again with it', async () => {
    await grant()
    const removed = (at: 'now()' | 'null') =>
      test.service.app.db.run(sql`
        update actor set deleted_at = ${sql.raw(at)} where id = ${ada.actor_id}::uuid`)
    await removed('now()')
    expect(await teach()).toBe(false)
    await removed('null')
    expect(await teach()).toBe(true)
  })
})

describe('the limiters of role changes', () => {
  it('count assigns, offers and self-service together, revocations apart, per account', async () => {
    const admin = await test.account({ roles: ['admin', 'teacher'] })
    const to = { to_account_id: ada.id, role: 'teacher' }
    const { role_grant_id } = await admin.client.role_grant_assign(to)
    await admin.client.role_grant_offer_create(to)
    for (const call of [
      () => admin.client.try.role_grant_assign(to),
      () => admin.client.try.role_grant_offer_create(to),
    ])
      expect(await call()).toMatchObject({ ok: false, error: { reason: 'rate_limited' } })
    const revoke = () => admin.client.try.role_grant_revoke({ actor_id: ada.actor_id, role_grant_id })
    expect((await revoke()).ok).toBe(true)
    expect(await revoke()).toMatchObject({ ok: false, error: { reason: 'rate_limited' } })
  })

  it('leave answers to offers, and lists of them, alone', async () => {
    const { actions: wired } = test.service.app
    for (const method of ['accept', 'decline', 'retract', 'list', 'history'])
      expect(wired.get(`role_grant_offer_${method}`)?.rate_limit).toBeUndefined()
  })
})
