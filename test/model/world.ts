import fc from 'fast-check'
import { sql } from '../../src/db/db.ts'
import { type TestService, testService } from '../../src/testing/index.ts'
import {
  type Held,
  keyOf,
  type Lasts,
  type Model,
  type ModelCell,
  type Principal,
  type Who,
} from './access.ts'
import { insertModel } from './rows.ts'

/** Small random worlds, each kept twice: as a model, and as rows in the database of a service. */

const scopes = ['5c000000-0000-4000-8000-000000000001', '5c000000-0000-4000-8000-000000000002']
/** Roles that a grant may name; all but `admin` are registered by the stage. */
export const roles = ['reader', 'writer', 'admin']
/** How many actors each account has; actors are numbered in this order. */
const actorsOfAccounts = [2, 2, 1]
export const actorCount = 5

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
      path: fc.option(path, { freq: 1 }),
      isDeleted: fc.constantFrom(false, false, false, false, true),
      created: fc.nat(2),
      updated: fc.option(fc.nat(2), { freq: 1 }),
    }),
    { minLength: 2, maxLength: 6 },
  ),
  held: fc.array(held, { maxLength: 6 }),
  grants: fc.array(fc.record({ cell: anyCell, level, to: principal }), { maxLength: 9 }),
  fields: fc.array(fc.record({ cell: anyCell, key: fieldName, far: anyCell }), { maxLength: 8 }),
  items: fc.array(fc.record({ cell: anyCell, key: position, far: anyCell }), { maxLength: 8 }),
})
export type SeedWorld = typeof seedWorld extends fc.Arbitrary<infer W> ? W : never

/** A service with the actors of all worlds; `call` acts as one of them, or anonymously. */
export type Stage = {
  test: TestService
  actorIds: string[]
  call<T>(who: Who, method: string, params: object): Promise<T>
  close(): Promise<void>
}

export async function openStage(): Promise<Stage> {
  const test = await testService({
    roles: [
      { name: 'reader', grant_paths: [] },
      { name: 'writer', grant_paths: [] },
    ],
    limit_cell_create: 'off',
    limit_cell_write: 'off',
    limit_cell_clone: 'off',
    limit_cell_read: 'off',
    limit_lookup: 'off',
    // Few, because each connection plans every statement for itself, which costs more than all the rows of a world.
    database_pool_max: 2,
  })
  const actors: { id: string; cookie: string }[] = []
  for (const count of actorsOfAccounts) {
    const { id, actor_id, cookie } = await test.account()
    actors.push({ id: actor_id, cookie })
    for (let more = 1; more < count; more++)
      actors.push({ id: await test.actor(id, `actor ${more}`), cookie })
  }
  const call = async <T>(who: Who, method: string, params: object): Promise<T> => {
    if (who === null) return (await test.service.call(method, params)) as T
    const { id, cookie } = actors[who] as (typeof actors)[number]
    return (await test.service.call(method, { ...params, acting: id }, { headers: { cookie } })) as T
  }
  return { test, actorIds: actors.map(({ id }) => id), call, close: () => test.close() }
}

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
