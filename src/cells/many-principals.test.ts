import { randomUUID } from 'node:crypto'
import { describe, expect, test as it } from 'vitest'
import { cellRow, cellRows, grantRow } from '../../test/helpers/cell-rows.ts'
import { workOf } from '../../test/helpers/plans.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** Callers with few and with many role grants are looked up in different ways, which must agree. */
const test = await serviceForFile()
const owner = await test.account()
const scopes = Array.from({ length: 60 }, () => randomUUID())

type Held = { role: string; scope_id: string | null }
type Caller = TestAccount & { held: Held[] }

async function holder(held: Held[]): Promise<Caller> {
  const account = await test.account()
  await test.service.app.db.run(sql`
    insert into role_grant (actor_id, role, scope_kind, scope_id)
    select ${account.actor_id}::uuid, role, case when scope_id is not null then 'team' end, scope_id
    from unnest(${held.map(({ role }) => role)}::text[], ${held.map(({ scope_id }) => scope_id)}::uuid[])
      as held (role, scope_id)`)
  return { ...account, held }
}

/** At every nth of the scopes; for one role, with principals for the actor and for any scope besides. */
const every = (nth: number, role: string): Held[] =>
  scopes.filter((_, n) => n % nth === 0).map((scope_id) => ({ role, scope_id }))

const callers = [
  await holder([]),
  // Eight principals are looked up one by one, nine are not.
  await holder(every(10, 'reader')),
  await holder([...every(10, 'reader'), { role: 'writer', scope_id: null }]),
  await holder(every(2, 'reader')),
  await holder([
    ...every(1, 'writer'),
    ...every(3, 'reader'),
    { role: 'admin', scope_id: scopes[0] as string },
  ]),
]

type Grant = {
  level: 'viewer' | 'editor'
  to: { actor_id: string } | { role: string; scope_id: string | null }
}

/** Sixty cells with none to 59 grants each, of both levels, spread over the scopes in a different way each. */
const cells = await Promise.all(
  Array.from({ length: 60 }, async (_, n) => {
    const grants: Grant[] = scopes.slice(0, n).map((_, at) => ({
      level: at % 5 === n % 5 ? 'editor' : 'viewer',
      to: {
        role: (at + n) % 3 === 0 ? 'writer' : at % 7 === 0 ? 'reader' : 'other',
        scope_id: scopes[(at * 7 + n * 11) % 60] as string,
      },
    }))
    if (n % 9 === 1) grants.push({ level: 'viewer', to: { role: 'reader', scope_id: null } })
    const named = callers[n % 4] as Caller
    if (n % 6 === 2) grants.push({ level: 'editor', to: { actor_id: named.actor_id } })
    const id = await cellRow(test, { created_by: owner.actor_id })
    for (const { level, to } of grants) await grantRow(test, id, level, to)
    return { id, grants }
  }),
)

const admits = ({ actor_id, held }: Caller, { to }: Grant): boolean =>
  'actor_id' in to
    ? to.actor_id === actor_id
    : held.some(
        ({ role, scope_id }) => role === to.role && (to.scope_id === null || to.scope_id === scope_id),
      )

describe.each(callers.map((caller) => ({ roles: caller.held.length, caller })))(
  'a caller with $roles role grants',
  ({ caller }) => {
    const admitted = cells.map(({ id, grants }) => ({
      id,
      by: grants.filter((grant) => admits(caller, grant)),
    }))
    const visible = admitted.filter(({ by }) => by.length > 0)

    it('views and edits exactly the cells whose grants admit it', async () => {
      for (const { id, by } of admitted) {
        const got = await caller.client.try.cell_get({ id })
        const tier = got.ok && (got.result.can_edit ? 'edit' : 'view')
        expect([id, tier]).toEqual([
          id,
          by.length > 0 && (by.some(({ level }) => level === 'editor') ? 'edit' : 'view'),
        ])
      }
    })

    it('lists them, each with exactly the grants that admit it', async () => {
      const ids = cells.map(({ id }) => id)
      for (const filter of [{}, { ids }, { order_by: 'updated_at' }] as const) {
        const { cells: found, cell_grants } = await caller.client.cell_list({
          ...filter,
          shared_with: 'me',
          limit: 200,
        })
        expect(found.map(({ id }) => id).sort()).toEqual(visible.map(({ id }) => id).sort())
        for (const { id, by } of visible) expect(cell_grants?.[id]).toHaveLength(by.length)
      }
      const { cells: all } = await caller.client.cell_list({ ids, limit: 200 })
      expect(all.map(({ id }) => id).sort()).toEqual(visible.map(({ id }) => id).sort())
    })
  },
)

it('a caller with 3000 role grants pays for a hidden cell what its few grants cost', async () => {
  const many = await holder(Array.from({ length: 3000 }, () => ({ role: 'reader', scope_id: randomUUID() })))
  const parent = await cellRow(test, { created_by: many.actor_id })
  await cellRows(test, 500, { kind: sql`'hidden'`, created_by: sql`${owner.actor_id}::uuid` })
  await test.service.app.db.run(sql`
    insert into cell_item (parent_id, position, child_id)
    select ${parent}::uuid, 'p' || row_number() over (), id from cell where kind = 'hidden'`)
  await test.service.app.db.run(sql`
    insert into cell_grant (cell_id, level, role, scope_id, cell_created_at)
    select id, 'viewer', 'reader', gen_random_uuid(), created_at from cell, generate_series(1, 2)
    where kind = 'hidden'`)
  for (const table of ['cell', 'cell_grant', 'cell_item', 'role_grant'])
    await test.service.app.db.run(sql`analyze ${sql.raw(table)}`)
  const work = await workOf(test.databaseUrl, async () => {
    expect((await many.client.cell_item_list({ parent_id: parent })).items).toEqual([])
  })
  expect(work.rows.cell_grant).toBeLessThan(500 * 4)
})
