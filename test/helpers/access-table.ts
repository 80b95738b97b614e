import { randomUUID } from 'node:crypto'
import type { TestAccount, TestService } from '../../src/testing/index.ts'
import { cellRow, closeRole, endRole, grantRow } from './cell-rows.ts'

/**
 * Every kind of caller and every kind of cell, and who may do what (the tiers of docs/concepts.md), written as
 * sets and quantifiers over the fixtures below, without SQL.
 */

const [here, there] = [randomUUID(), randomUUID()]
type Held = { role: string; scope_id: string | null; is_active: boolean }
type Grant = { level: 'viewer' | 'editor'; to: string }
export type Caller = { actor_id: string | null; client: TestAccount['client']; held: Held[]; acting?: string }
export type Target = {
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
export function allowed(caller: Caller, cell: Target) {
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

export type AccessTable = { callers: Map<string, Caller>; targets: Map<string, Target> }

/** Creates them all in a test service. */
export async function accessTable(test: TestService): Promise<AccessTable> {
  const callers = new Map<string, Caller>()
  const targets = new Map<string, Target>()
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
  await closeRole(test, await person('admin, closed', [holds('admin', null, false)]), 'admin')
  await closeRole(test, await person('editing, closed', [holds('editing', here, false)]), 'editing')
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
    await grantAll(test, id, grants)
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
  return { callers, targets }
}

/** Written as rows: owners and deleted cells get grants that no method would create. */
async function grantAll(test: TestService, cell_id: string, grants: Grant[]): Promise<void> {
  for (const { level, to } of grants) {
    const [kind, scope, role] = to.split(':') as [string, string, string]
    const scope_id = scope === '*' ? null : scope
    await grantRow(test, cell_id, level, kind === 'a' ? { actor_id: scope } : { role, scope_id })
  }
}

/** Runs the check for every caller and cell, and lists where its outcome differs from the rule. */
export async function compare(
  { callers, targets }: AccessTable,
  check: (caller: Caller, cell: Target) => Promise<unknown>,
  rule: (may: ReturnType<typeof allowed>, caller: Caller, cell: Target) => unknown,
) {
  const wrong: string[] = []
  for (const [who, caller] of callers)
    await Promise.all(
      [...targets].map(async ([what, cell]) => {
        const [is, should] = [await check(caller, cell), rule(allowed(caller, cell), caller, cell)]
        if (JSON.stringify(is) !== JSON.stringify(should))
          wrong.push(`${who} × ${what}: ${JSON.stringify(is)} instead of ${JSON.stringify(should)}`)
      }),
    )
  return wrong
}

/** The `acting` of the input, for a caller with several actors. */
export const as = ({ acting }: Caller) => (acting === undefined ? {} : { acting })
/** The expected outcome of a write. */
export const write = (isAllowed: boolean, { actor_id }: Caller): string =>
  actor_id === null ? 'authentication_required' : isAllowed ? 'ok' : 'cell_not_found'
