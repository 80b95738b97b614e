import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test as it } from 'vitest'
import { cellRow, endRole, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'

/**
 * Every kind of caller against every kind of cell, in every method, compared with contract 4, section 4.1
 * as it reads: sets and quantifiers over what the test itself has set up, no SQL.
 */

const [here, there] = [randomUUID(), randomUUID()]
type Held = { role: string; scope_id: string | null; is_active: boolean }
type Grant = { level: 'viewer' | 'editor'; to: string }
type Caller = { actor_id: string | null; client: TestAccount['client']; held: Held[]; acting?: string }
type Target = {
  id: string
  created_by: string | null
  visibility: string
  is_deleted: boolean
  grants: Grant[]
}

const keys = (caller: Caller): string[] => [
  ...(caller.actor_id === null ? [] : [`a:${caller.actor_id}`]),
  ...caller.held
    .filter(({ is_active }) => is_active)
    .flatMap(({ role, scope_id }) => [`r:*:${role}`, ...(scope_id ? [`r:${scope_id}:${role}`] : [])]),
]
function allowed(caller: Caller, cell: Target) {
  const admits = (grants: Grant[]) => grants.some(({ to }) => keys(caller).includes(to))
  const is_admin = caller.held.some(
    (held) => held.is_active && held.role === 'admin' && held.scope_id === null,
  )
  const is_owner = caller.actor_id !== null && caller.actor_id === cell.created_by
  const is_editing = admits(cell.grants.filter(({ level }) => level === 'editor'))
  const is_live = !cell.is_deleted
  return {
    view: is_live && (is_admin || cell.visibility === 'public' || is_owner || admits(cell.grants)),
    edit: is_live && (is_admin || (cell.created_by !== null && (is_owner || is_editing))),
    manage: is_live && (is_admin || is_owner),
  }
}

let test: TestService
let anchor: string
const callers = new Map<string, Caller>()
const targets = new Map<string, Target>()

beforeAll(async () => {
  test = await testService()
  const person = async (name: string, held: Held[] = [], roles: { expires_at?: string }[] = []) => {
    const { actor_id, client } = await test.account()
    for (const [i, { role, scope_id }] of held.entries())
      await test.roleGrant({ actor_id, role, scope_id, scope_kind: scope_id && 'place', ...roles[i] })
    callers.set(name, { actor_id, client, held })
    return actor_id
  }
  const holds = (role: string, scope_id: string | null = null, is_active = true) => ({
    role,
    scope_id,
    is_active,
  })
  const past = { expires_at: '2020-01-01T00:00:00Z' }
  const [viewer, editor] = [await person('viewer'), await person('editor')]
  callers.set('anonymous', { actor_id: null, client: test.client(), held: [] })
  await person('stranger')
  await person('holder of viewing, global', [holds('viewing')])
  await person('holder of editing, global', [holds('editing')])
  await person('holder of editing here', [holds('editing', here)])
  await person('holder of editing there', [holds('editing', there)])
  await person('holder of editing here and there', [holds('editing', here), holds('editing', there)])
  await endRole(test, await person('former holder of editing', [holds('editing', null, false)]), 'editing')
  await person('holder of editing, expired', [holds('editing', here, false)], [past])
  await person('admin', [holds('admin')])
  await person('admin of a scope', [holds('admin', here)])
  await endRole(test, await person('former admin', [holds('admin', null, false)]), 'admin')
  await person('admin, expired', [holds('admin', null, false)], [past])
  await person('holder of a role nobody is granted to', [holds('lonely', here)])

  const account = await test.account()
  const second = await test.actor(account.id, 'second')
  const { client, actor_id: owner } = account
  callers.set('owner', { actor_id: owner, client, held: [], acting: owner })
  callers.set('second actor of the owner', { actor_id: second, client, held: [], acting: second })

  const shared: Grant[] = [
    { level: 'viewer', to: `a:${viewer}` },
    { level: 'editor', to: `a:${editor}` },
    { level: 'viewer', to: 'r:*:viewing' },
    { level: 'editor', to: `r:${here}:editing` },
    { level: 'viewer', to: `r:${there}:editing` },
    { level: 'editor', to: `a:${owner}` },
    { level: 'editor', to: `r:${here}:nobody` },
  ]
  const toAnywhere: Grant[] = [{ level: 'editor', to: 'r:*:editing' }]
  const target = async (
    name: string,
    row: { created_by?: string; visibility?: string; deleted_at?: string },
    grants: Grant[],
  ) => {
    const { created_by = null, visibility = 'private', deleted_at } = row
    const id = await cellRow(test, row as object)
    await grantAll(id, grants)
    targets.set(name, { id, created_by, visibility, is_deleted: deleted_at !== undefined, grants })
  }
  await target('private', { created_by: owner }, shared)
  await target('public', { created_by: owner, visibility: 'public' }, shared)
  await target('private, to a role of any scope', { created_by: owner }, toAnywhere)
  await target('system, private', {}, [...shared, ...toAnywhere])
  await target('system, public', { visibility: 'public' }, shared)
  await target(
    'deleted',
    { created_by: owner, visibility: 'public', deleted_at: '2026-01-01T00:00:00Z' },
    shared,
  )
  await target('shared with nobody', { created_by: owner }, [])

  anchor = await cellRow(test, { visibility: 'public' })
  for (const [i, { id }] of [...targets.values()].entries()) {
    await fieldRow(test, anchor, `f${i}`, id)
    await itemRow(test, anchor, `${i}`, id)
  }
})
afterAll(() => test.close())

async function grantAll(cell_id: string, grants: Grant[]): Promise<void> {
  for (const { level, to } of grants) {
    const [kind, scope, role] = to.split(':') as [string, string, string]
    const scope_id = scope === '*' ? null : scope
    await test.cellGrant(cell_id, level, kind === 'a' ? { actor_id: scope } : { role, scope_id })
  }
}

/** Runs the check for every caller and cell, and lists where it came out otherwise than the rule. */
async function compare(
  check: (caller: Caller, cell: Target) => Promise<unknown>,
  rule: (may: ReturnType<typeof allowed>, caller: Caller) => unknown,
) {
  const wrong: string[] = []
  for (const [who, caller] of callers)
    await Promise.all(
      [...targets].map(async ([what, cell]) => {
        const [is, should] = [await check(caller, cell), rule(allowed(caller, cell), caller)]
        if (JSON.stringify(is) !== JSON.stringify(should))
          wrong.push(`${who} × ${what}: ${JSON.stringify(is)} instead of ${JSON.stringify(should)}`)
      }),
    )
  return wrong
}
const as = ({ acting }: Caller) => (acting === undefined ? {} : { acting })
const write = (isAllowed: boolean, { actor_id }: Caller): string =>
  actor_id === null ? 'authentication_required' : isAllowed ? 'ok' : 'cell_not_found'

it('the table holds every combination of tiers, so that a rule too strict or too lax shows', () => {
  const tiers = [...callers.values()].flatMap((caller) =>
    [...targets.values()].map((cell) => Object.values(allowed(caller, cell)).join()),
  )
  expect([...new Set(tiers)].sort()).toEqual(
    ['false,false,false', 'true,false,false', 'true,true,false', 'true,true,true'].sort(),
  )
})

describe('every caller × every cell', () => {
  it('cell_get', async () => {
    const check = async (caller: Caller, { id }: Target) => {
      const outcome = await caller.client.try.cell_get({ id, ...as(caller) })
      return outcome.ok ? [outcome.result.can_edit, outcome.result.can_grant] : outcome.error.reason
    }
    expect(
      await compare(check, ({ view, edit, manage }) => (view ? [edit, manage] : 'cell_not_found')),
    ).toEqual([])
  })

  it('cell_list, with ids and without', async () => {
    const full = new Map<Caller, string[]>()
    for (const caller of callers.values()) {
      const { cells } = await caller.client.cell_list({ limit: 200, ...as(caller) })
      full.set(
        caller,
        cells.map(({ id }) => id),
      )
    }
    const check = async (caller: Caller, { id }: Target) => {
      const { cells } = await caller.client.cell_list({ ids: [id], ...as(caller) })
      return [cells.length === 1, full.get(caller)?.includes(id)]
    }
    expect(await compare(check, ({ view }) => [view, view])).toEqual([])
  })

  it('edges to the cell, from one that everybody sees', async () => {
    const check = async (caller: Caller, { id }: Target) => {
      const { fields, items } = await caller.client.cell_get({ id: anchor, ...as(caller) })
      return [fields.some(({ target_id }) => target_id === id), items.some(({ child_id }) => child_id === id)]
    }
    expect(await compare(check, ({ view }) => [view, view])).toEqual([])
  })

  it('cell_update of data, and without any change', async () => {
    let n = 0
    for (const changes of [() => ({}), () => ({ data_patch: { n: n++ } })]) {
      const check = (caller: Caller, { id }: Target) =>
        reasonOf(caller.client.cell_update({ cell_id: id, ...changes(), ...as(caller) }))
      expect(await compare(check, ({ edit }, caller) => write(edit, caller))).toEqual([])
    }
  })

  it('cell_update of visibility', async () => {
    const check = async (caller: Caller, { id, visibility }: Target) => {
      const other = visibility === 'public' ? 'private' : 'public'
      const reason = await reasonOf(
        caller.client.cell_update({ cell_id: id, visibility: other, ...as(caller) }),
      )
      await test.service.app.db.run(sql`update cell set visibility = ${visibility} where id = ${id}`)
      return reason
    }
    const rule = ({ edit, manage }: ReturnType<typeof allowed>, caller: Caller) =>
      edit && !manage ? 'cell_visibility_manage_only' : write(manage, caller)
    expect(await compare(check, rule)).toEqual([])
  })

  it('cell_update of the path', async () => {
    const check = async (caller: Caller, { id }: Target) => {
      const sent = { cell_id: id, path: `to ${id}`, ...as(caller) }
      const reason = await reasonOf(caller.client.cell_update(sent))
      await test.service.app.db.run(sql`update cell set path = null where id = ${id}`)
      return reason
    }
    const admin = callers.get('admin')
    const rule = ({ edit }: ReturnType<typeof allowed>, caller: Caller) =>
      caller === admin || caller.actor_id === null ? write(edit, caller) : 'cell_path_admin_only'
    expect(await compare(check, rule)).toEqual([])
  })

  it('cell_delete', async () => {
    const check = async (caller: Caller, target: Target) => {
      const { created_by, visibility, is_deleted } = target
      const copy = await cellRow(test, {
        created_by,
        visibility: visibility as 'public',
        deleted_at: is_deleted ? '2026-01-01T00:00:00Z' : null,
      })
      await test.service.app.db.run(sql`
        insert into cell_grant (cell_id, level, actor_id, role, scope_id, cell_created_at)
        select ${copy}::uuid, level, actor_id, role, scope_id, cell_created_at
        from cell_grant where cell_id = ${target.id}`)
      return await reasonOf(caller.client.cell_delete({ cell_id: copy, ...as(caller) }))
    }
    expect(await compare(check, ({ edit }, caller) => write(edit, caller))).toEqual([])
  })
})
