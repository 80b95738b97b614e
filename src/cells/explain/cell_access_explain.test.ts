import { describe, expect, it } from 'vitest'
import { accessTable, as } from '../../../test/helpers/access-table.ts'
import { cellRow, closeRole, endRole, grantRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

const [here, there] = ['3b241101-e2bb-4255-8caf-4136c566a962', '4b241101-e2bb-4255-8caf-4136c566a962']
const test = await serviceForFile({ limit_lookup: 'off', limit_cell_write: 'off', limit_cell_read: 'off' })
const { db } = test.service.app
const admin = await test.account({ roles: ['admin'] })
const [owner, ada] = [await test.account(), await test.account()]
const explain = (cell_id: string, actor_id?: string | null, by: TestAccount = owner) =>
  by.client.cell_access_explain({ cell_id, ...(actor_id !== undefined && { actor_id }) })
const ownCell = (visibility: 'private' | 'public' = 'private') =>
  cellRow(test, { created_by: owner.actor_id, visibility })
const hold = async (one: { actor_id: string }, role: string, scope_id?: string, expires_at?: string) =>
  (
    await test.roleGrant({
      actor_id: one.actor_id,
      role,
      ...(scope_id && { scope_kind: 'place', scope_id }),
      ...(expires_at && { expires_at }),
    })
  ).role_grant_id
const past = '2020-01-01T00:00:00Z'
const share = async (
  cell_id: string,
  level: 'viewer' | 'editor',
  to: { actor_id: string } | { role: string; scope_id: string | null },
) => (await test.cellGrant(cell_id, level, to)).id

it('says of every kind of actor and cell what cell_get, cell_update and cell_grant_list answer', async () => {
  const { callers, targets } = await accessTable(test)
  const isOk = async (call: Promise<unknown>) => (await reasonOf(call)) === 'ok'
  let told = 0
  for (const [who, caller] of callers)
    for (const [what, { id, is_deleted }] of targets) {
      const answered = {
        view: await isOk(caller.client.cell_get({ id, ...as(caller) })),
        edit: await isOk(caller.client.cell_update({ cell_id: id, data_patch: {}, ...as(caller) })),
        manage: await isOk(caller.client.cell_grant_list({ cell_id: id, ...as(caller) })),
      }
      if (is_deleted) expect(await reasonOf(explain(id, caller.actor_id, admin))).toBe('cell_not_found')
      else
        expect([who, what, (await explain(id, caller.actor_id, admin)).verdict]).toEqual([
          who,
          what,
          answered,
        ])
      told++
    }
  expect(told).toBeGreaterThan(100)
})

const none = { cell_grant_id: null, level: null, role: null, scope_id: null, role_grant: null }
const nobody = { view: false, edit: false, manage: false }

describe('its reasons', () => {
  it('name the owner, the role admin and a public cell', async () => {
    const id = await ownCell('public')
    expect(await scenario(test, () => explain(id, owner.actor_id.toUpperCase()))).toEqual({
      cell: { id, visibility: 'public', created_by: owner.actor_id, version: 1 },
      verdict: { view: true, edit: true, manage: true },
      reasons: [
        { ...none, tier: 'manage', via: 'owner' },
        { ...none, tier: 'view', via: 'public' },
      ],
      near: [],
      everyone: null,
      next_cursor: null,
    })
    const { reasons } = await explain(id, admin.actor_id)
    expect(reasons[0]).toMatchObject({
      tier: 'manage',
      via: 'admin',
      role: 'admin',
      role_grant: { role: 'admin' },
    })
    expect(await explain(id, null)).toMatchObject({
      verdict: { view: true, edit: false, manage: false },
      reasons: [{ ...none, tier: 'view', via: 'public' }],
      near: [],
    })
  })

  it('name each grant of the cell that admits, with the role grant by which, the strongest first', async () => {
    const [id, bob] = [await ownCell(), await test.account()]
    const held = await hold(bob, 'editing', here, '2040-01-01T00:00:00Z')
    await hold(bob, 'viewing')
    const byRole = await share(id, 'viewer', { role: 'viewing', scope_id: null })
    const own = await share(id, 'viewer', { actor_id: bob.actor_id })
    const inScope = await share(id, 'editor', { role: 'editing', scope_id: here })
    await share(id, 'editor', { actor_id: ada.actor_id })
    const { verdict, reasons } = await explain(id, bob.actor_id)
    expect(verdict).toEqual({ view: true, edit: true, manage: false })
    expect(reasons).toEqual([
      {
        tier: 'edit',
        via: 'role_grant',
        cell_grant_id: inScope,
        level: 'editor',
        role: 'editing',
        scope_id: here,
        role_grant: expect.objectContaining({
          id: held,
          scope_id: here,
          expires_at: '2040-01-01T00:00:00.000Z',
        }),
      },
      { ...none, tier: 'view', via: 'actor_grant', cell_grant_id: own, level: 'viewer' },
      {
        ...none,
        tier: 'view',
        via: 'role_grant',
        cell_grant_id: byRole,
        level: 'viewer',
        role: 'viewing',
        role_grant: expect.objectContaining({ role: 'viewing', actor_id: bob.actor_id }),
      },
    ])
  })
})

describe('near misses', () => {
  const near = async (id: string, actor_id: string, by = owner) => (await explain(id, actor_id, by)).near

  it('name a role that is held elsewhere, has expired or was revoked', async () => {
    const [id, bob] = [await ownCell(), await test.account()]
    const grants = await Promise.all(
      ['far', 'late', 'ended', 'closed', 'unheld'].map((role) =>
        share(id, 'viewer', { role, scope_id: here }),
      ),
    )
    const held = [
      await hold(bob, 'far', there),
      await hold(bob, 'late', here, past),
      await hold(bob, 'ended', here),
      await hold(bob, 'closed', here),
    ]
    await endRole(test, bob.actor_id, 'ended')
    await closeRole(test, bob.actor_id, 'closed')
    // A role that was held only elsewhere, and has ended, is not near.
    await hold(bob, 'unheld', there)
    await endRole(test, bob.actor_id, 'unheld')
    const found = await near(id, bob.actor_id)
    const whys = ['scope_differs', 'role_expired', 'role_revoked', 'role_expired']
    const expected = whys.map((why, nth) => ({ why, cell_grant_id: grants[nth], role_grant_id: held[nth] }))
    const byWhy = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
    expect(found.toSorted(byWhy)).toEqual(expected.sort(byWhy))
    expect((await explain(id, bob.actor_id)).verdict).toEqual(nobody)
    await hold(bob, 'ended', here)
    expect((await near(id, bob.actor_id)).map(({ why }) => why)).not.toContain('role_revoked')
  })

  it('name a global role where the share is for one scope, and the lost role admin', async () => {
    const [id, bob] = [await ownCell(), await test.account({ roles: ['admin'] })]
    const grant = await share(id, 'viewer', { role: 'editing', scope_id: here })
    const role_grant_id = await hold(bob, 'editing')
    await endRole(test, bob.actor_id, 'admin')
    const found = await near(id, bob.actor_id)
    expect(found).toContainEqual({ why: 'scope_differs', cell_grant_id: grant, role_grant_id })
    expect(found).toContainEqual({
      why: 'role_revoked',
      cell_grant_id: null,
      role_grant_id: expect.any(String),
    })
    expect(found).toHaveLength(2)
  })

  it('say that a viewer may not edit, nor an editor of a system cell', async () => {
    const [own, system] = [await ownCell(), await cellRow(test)]
    const viewing = await share(own, 'viewer', { actor_id: ada.actor_id })
    const editing = await share(system, 'editor', { actor_id: ada.actor_id })
    expect(await near(own, ada.actor_id)).toEqual([
      { why: 'viewer_only', cell_grant_id: viewing, role_grant_id: null },
    ])
    expect(await near(system, ada.actor_id, admin)).toEqual([
      { why: 'system_cell', cell_grant_id: editing, role_grant_id: null },
    ])
    expect((await explain(system, ada.actor_id, admin)).reasons).toMatchObject([
      { tier: 'view', level: 'editor' },
    ])
  })

  it('of a removed actor say so, and of an unknown one the same', async () => {
    const [id, bob] = [await ownCell('public'), await test.account()]
    await share(id, 'viewer', { actor_id: bob.actor_id })
    await bob.client.account_delete()
    for (const actor_id of [bob.actor_id, crypto.randomUUID()])
      expect(await explain(id, actor_id)).toMatchObject({
        verdict: nobody,
        reasons: [],
        near: [{ why: 'actor_removed', cell_grant_id: null, role_grant_id: null }],
      })
  })

  it('are twenty at most', async () => {
    const [id, bob] = [await ownCell(), await test.account()]
    for (let n = 0; n < 25; n++) {
      const role = `r${'x'.repeat(n)}`
      await grantRow(test, id, 'viewer', { role, scope_id: here })
      await hold(bob, role)
    }
    expect(await near(id, bob.actor_id)).toHaveLength(20)
  })
})

describe('everyone', () => {
  it('is admins, owner, public or not, and the grants with how many actors each lets in', async () => {
    const [id, bob, eve] = [await ownCell(), await test.account(), await test.account()]
    for (const [one, scope_id] of [
      [bob, here],
      [bob, there],
      [eve, there],
      [eve, undefined],
    ] as const)
      await hold(one, 'counted', scope_id)
    const gone = await test.account()
    await hold(gone, 'counted', here)
    await gone.client.account_delete()
    await hold(ada, 'counted', here)
    await endRole(test, ada.actor_id, 'counted')
    const shares = [
      [{ actor_id: bob.actor_id }, 1],
      [{ role: 'counted', scope_id: null }, 2],
      [{ role: 'counted', scope_id: here }, 1],
      [{ role: 'nobody', scope_id: null }, 0],
    ] as const
    const grants: [string, number][] = []
    for (const [to, holders] of shares) grants.push([await share(id, 'viewer', to), holders])
    await grantRow(test, id, 'viewer', { actor_id: gone.actor_id })
    const all = await explain(id)
    expect(all).toMatchObject({ verdict: null, reasons: [], near: [], next_cursor: null })
    const { holders: held } = await admin.client.role_holder_list({ role: 'admin' })
    const admins = held.filter(({ role_grant }) => role_grant.scope_id === null).length
    expect(all.everyone).toMatchObject({ public: false, admins, owner: owner.actor_id })
    const shown = all.everyone?.grants.map(({ grant, holders }) => [grant.id, holders])
    expect(shown?.slice(0, 4)).toEqual(grants)
    expect(shown?.[4]?.[1]).toBe(0)
    expect(all.everyone?.grants.map(({ grant }) => grant)).toEqual(
      (await owner.client.cell_grant_list({ cell_id: id })).grants,
    )
    const paged: unknown[] = []
    for (let cursor: string | null = null; ; ) {
      const page: Awaited<ReturnType<typeof explain>> = await owner.client.cell_access_explain({
        cell_id: id,
        limit: 2,
        cursor,
      })
      paged.push(...(page.everyone?.grants ?? []))
      cursor = page.next_cursor
      if (cursor === null) break
    }
    expect(paged).toEqual(all.everyone?.grants)
  })
})

describe('who may ask', () => {
  it('is who manages the cell; others get cell_not_found, whether it exists or not', async () => {
    const id = await ownCell()
    await share(id, 'editor', { actor_id: ada.actor_id })
    for (const who of [undefined, null, owner.actor_id, crypto.randomUUID()]) {
      expect(await reasonOf(explain(id, who, ada))).toBe('cell_not_found')
      expect(await reasonOf(explain(crypto.randomUUID(), who, owner))).toBe('cell_not_found')
      expect(await reasonOf(explain(id, who, admin))).toBe('ok')
    }
    const input = { cell_id: id, actor_id: null }
    expect(await reasonOf(test.client().cell_access_explain(input))).toBe('authentication_required')
  })

  it('is whoever may view the cell, about their own actor: with reasons, without near misses', async () => {
    const id = await ownCell()
    const grant = await share(id, 'viewer', { actor_id: ada.actor_id })
    expect(await explain(id, ada.actor_id, ada)).toMatchObject({
      verdict: { view: true, edit: false, manage: false },
      reasons: [{ via: 'actor_grant', cell_grant_id: grant }],
      near: [],
      everyone: null,
    })
    expect(await reasonOf(explain(await ownCell(), ada.actor_id, ada))).toBe('cell_not_found')
  })
})

it('reads little of a cell with 8000 grants, and of a role with 8000 holders', async () => {
  const id = await ownCell()
  const many = 8000
  await db.run(sql`
    with made as (
      insert into account (username, password_hash) select 'many' || i, 'x' from generate_series(1, ${many}::int) i
      returning id
    ), actors as (
      insert into actor (account_id, name, name_key) select id, '', '' from made returning id
    ), held as (
      insert into role_grant (actor_id, role) select id, 'many' from actors
    )
    insert into cell_grant (cell_id, level, role, scope_id, cell_created_at)
    select ${id}::uuid, 'viewer', 'many', id, now() from actors`)
  await share(id, 'viewer', { role: 'many', scope_id: null })
  await hold(ada, 'many')
  await db.run(sql`vacuum analyze account`)
  await db.run(sql`vacuum analyze actor`)
  await db.run(sql`vacuum analyze role_grant`)
  await db.run(sql`vacuum analyze cell_grant`)
  const one = await workOf(test.databaseUrl, () => explain(id, ada.actor_id))
  expect(one.scanned).toEqual([])
  expect(one.rows.cell_grant).toBeLessThan(1200)
  expect(one.pages).toBeLessThan(2000)
  const all = await workOf(test.databaseUrl, () =>
    owner.client.cell_access_explain({ cell_id: id, limit: 50 }),
  )
  expect(all.scanned).toEqual([])
  expect(all.rows.actor).toBeLessThan(1200)
})
