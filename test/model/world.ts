import fc from 'fast-check'
import { sql } from '../../src/db/db.ts'
import { type Held, keyOf, type Lasts, type Model, type ModelCell, type Principal } from './access.ts'
import { insertModel } from './rows.ts'
import { actorCount, type Stage, stageWith } from './stage.ts'

/** Small random worlds, each kept twice: as a model, and as rows in the database of a service. */

const scopes = ['5c000000-0000-4000-8000-000000000001', '5c000000-0000-4000-8000-000000000002']
/** Roles that a grant may name; all but `admin` are registered by the stage. */
export const roles = ['reader', 'writer', 'admin']
export const actor = fc.nat(actorCount - 1)
export const who = fc.option(actor, { freq: 8 })
export const scope = fc.constantFrom(null, ...scopes)
export const role = fc.constantFrom(...roles)
export const principal: fc.Arbitrary<Principal> = fc.oneof(fc.record({ actor }), fc.record({ role, scope }))
export const level = fc.constantFrom('viewer' as const, 'editor' as const)
export const visibility = fc.constantFrom('private' as const, 'private' as const, 'public' as const)
export const kind = fc.constantFrom(null, 'k', 'K')
export const path = fc.constantFrom('p', 'p/', 'p/q')
export const fieldName = fc.constantFrom('a', 'a_', 'z9')
export const position = fc.constantFrom('00', 'Z', 'a')
/** Picks a cell of the world, whatever its size. */
export const anyCell = fc.nat(19)
/** How long a role grant is active. */
export const lasts = fc.constantFrom<Lasts[]>('ever', 'ever', 'long', 'expired', 'revoked', 'closed')
export const held: fc.Arbitrary<Held> = fc.record({ actor, role, scope, lasts })

export const seedWorld = fc.record({
  cells: fc.array(
    fc.record({
      owner: fc.option(actor),
      visibility,
      kind,
      path: fc.option(path, { freq: 2 }),
      isDeleted: fc.constantFrom(false, false, false, false, true),
      created: fc.nat(2),
      updated: fc.option(fc.nat(2), { freq: 2 }),
    }),
    { minLength: 2, maxLength: 6 },
  ),
  held: fc.array(held, { maxLength: 6 }),
  grants: fc.array(fc.record({ cell: anyCell, level, to: principal }), { maxLength: 9 }),
  fields: fc.array(fc.record({ cell: anyCell, key: fieldName, far: anyCell }), { maxLength: 8 }),
  items: fc.array(fc.record({ cell: anyCell, key: position, far: anyCell }), { maxLength: 8 }),
})
export type SeedWorld = typeof seedWorld extends fc.Arbitrary<infer W> ? W : never

export const openStage = (): Promise<Stage> =>
  stageWith({
    roles: [
      { name: 'reader', grant_paths: [] },
      { name: 'writer', grant_paths: [] },
    ],
    limit_cell_create: 'off',
    limit_cell_write: 'off',
    limit_cell_clone: 'off',
    limit_cell_read: 'off',
    limit_lookup: 'off',
  })

/** Empties the stage and builds the world on it. */
export async function build(stage: Stage, seed: SeedWorld): Promise<Model> {
  const { db } = stage.test.service.app
  // Not truncate, as that would make every connection plan every statement anew.
  for (const table of ['cell', 'role_grant']) await db.run(sql`delete from ${sql.raw(table)}`)
  const model: Model = { cells: [], held: [] }
  const taken = new Set<string | null>()
  for (const { path, ...given } of seed.cells) {
    const isFree = path !== null && !given.isDeleted && !taken.has(path)
    if (isFree) taken.add(path)
    model.cells.push({ ...newCell(crypto.randomUUID()), ...given, path: isFree ? path : null })
  }
  for (const one of seed.held) if (!isTwice(model, one)) model.held.push({ ...one })
  for (const { cell, level, to } of seed.grants) {
    const { grants } = pick(model, cell)
    if (!grants.some((one) => keyOf(one.to) === keyOf(to)))
      grants.push({ id: crypto.randomUUID(), level, to })
  }
  for (const { cell, key, far } of seed.fields) pick(model, cell).fields.set(key, pick(model, far))
  for (const { cell, key, far } of seed.items) pick(model, cell).items.set(key, pick(model, far))
  await insertModel(db, stage.actorIds, model)
  return model
}

export const newCell = (id: string): ModelCell => ({
  id,
  owner: null,
  visibility: 'private',
  kind: null,
  path: null,
  version: 1,
  isDeleted: false,
  created: 0,
  updated: null,
  fields: new Map(),
  items: new Map(),
  grants: [],
})

export const pick = ({ cells }: Model, n: number): ModelCell => cells[n % cells.length] as ModelCell

const hasEnded = ({ lasts }: Held): boolean => lasts === 'revoked' || lasts === 'closed'

/** Whether the model has a role grant that conflicts with this one. */
export const isTwice = ({ held }: Model, one: Held): boolean =>
  !hasEnded(one) &&
  held.some((other) => {
    const isSame = other.actor === one.actor && other.role === one.role && other.scope === one.scope
    return isSame && !hasEnded(other)
  })
