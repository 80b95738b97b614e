import { afterEach, describe, expect, test as it } from 'vitest'
import { graph } from '../../../test/helpers/cell-graphs.ts'
import { cellRow, itemRow } from '../../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import { CellDataIssues, type CellHooks } from '../../registry/hooks.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

/** The hooks of the running test; the service calls whatever is set here. */
let hooks: CellHooks = {}
const seen: string[] = []

const test = await serviceForFile({
  hooks: {
    validateData(kind, data) {
      seen.push(`data ${kind} ${data.name}`)
      return hooks.validateData ? hooks.validateData(kind, data) : data
    },
    authorizeCreate(caller, input) {
      seen.push(`${input.operation} ${input.kind}`)
      return hooks.authorizeCreate ? hooks.authorizeCreate(caller, input) : true
    },
  },
})
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
afterEach(() => {
  hooks = {}
  seen.length = 0
})

type Input = Parameters<TestAccount['client']['cell_clone']>[0]
/** A visible root `a` of kind `top` with the child `b` of kind `leaf`. */
const pair = () =>
  graph(test, bob.actor_id, ['a #1 b'], {
    a: { kind: 'top', visibility: 'public', data: { name: 'a', n: 1 } },
    b: { kind: 'leaf', visibility: 'public', data: { name: 'b' } },
  })
const clone = (source_id: string | undefined, more: Partial<Input> = {}, by = ada) =>
  by.client.cell_clone({ source_id: source_id as string, deep: true, ...more })
const child = async (id: string) => {
  const { items } = await root.client.cell_get({ id })
  return (await root.client.cell_get({ id: items[0]?.child_id as string })).cell
}
const amount = async () =>
  (await test.service.app.db.first<{ n: number }>(sql`select count(*) as n from cell`))?.n
async function refused(call: () => Promise<unknown>, reason: string) {
  const before = await amount()
  await scenario(test, call, { reason })
  expect(await amount()).toBe(before)
}

describe('every new cell', () => {
  it('is shown to the data hook, then to the create hook, the root first and patched', async () => {
    const ids = await pair()
    const inputs: unknown[] = []
    hooks.authorizeCreate = (caller, input) => {
      inputs.push({ caller, input })
      return true
    }
    await clone(ids.a, { with_data_patch: { n: null, m: 2 } })
    expect(seen).toEqual(['data top a', 'data leaf b', 'clone top', 'clone leaf'])
    const caller = { actor_id: ada.actor_id, account_id: ada.id, is_admin: false }
    const common = { operation: 'clone', visibility: 'public', path: null }
    expect(inputs).toEqual([
      { caller, input: { ...common, kind: 'top', data: { name: 'a', m: 2 }, source_id: ids.a } },
      { caller, input: { ...common, kind: 'leaf', data: { name: 'b' }, source_id: ids.b } },
    ])
  })

  it('of a shallow clone is the root alone, and admins are not exempt', async () => {
    const ids = await pair()
    hooks.authorizeCreate = ({ is_admin }) => !is_admin
    await refused(() => clone(ids.a, { deep: false }, root), 'cell_create_forbidden')
    expect(seen).toEqual(['data top a', 'clone top'])
  })

  it('may have its data transformed, and what is left alone is copied as it is', async () => {
    const ids = await pair()
    hooks.validateData = (kind, data) => (kind === 'leaf' ? { ...data, checked: true } : data)
    const { cell } = await clone(ids.a)
    expect(cell.data).toEqual({ name: 'a', n: 1 })
    expect((await child(cell.id)).data).toEqual({ name: 'b', checked: true })
    hooks.validateData = (kind, data) => (kind === 'top' ? { ...data, checked: true } : data)
    const { cell: other } = await clone(ids.a, { with_data_patch: { n: null } })
    expect(other.data).toEqual({ name: 'a', checked: true })
    expect((await child(other.id)).data).toEqual({ name: 'b' })
  })
})

describe('nothing is written', () => {
  it.each(['top', 'leaf'])('where the create hook refuses the kind %s', async (refusedKind) => {
    const ids = await pair()
    hooks.authorizeCreate = (_caller, { kind }) => kind !== refusedKind
    await refused(() => clone(ids.a), 'cell_create_forbidden')
  })

  it.each(['top', 'leaf'])('where the data hook refuses the data of %s', async (refusedKind) => {
    const ids = await pair()
    hooks.validateData = (kind, data) => {
      if (kind === refusedKind) throw new CellDataIssues([{ path: ['name'], message: 'not this one' }])
      return data
    }
    await refused(() => clone(ids.a), 'cell_data_invalid')
    const outcome = await ada.client.try.cell_clone({ source_id: ids.a as string, deep: true })
    expect(outcome).toMatchObject({
      error: { data: { issues: [{ path: ['name'], code: 'custom', message: 'not this one' }] } },
    })
  })

  it('where the data hook returns something that is not data', async () => {
    const ids = await pair()
    for (const bad of [{ kind: 'x' }, { a: 'x'.repeat(262_144) }, [], null]) {
      hooks.validateData = () => bad as never
      await refused(() => clone(ids.a), 'cell_data_invalid')
    }
  })

  it('where the data hook grows the clone beyond its limit of bytes', async () => {
    const source = await cellRow(test, { created_by: ada.actor_id })
    for (let n = 0; n < 70; n++)
      await itemRow(test, source, `${n}`, await cellRow(test, { created_by: ada.actor_id }))
    hooks.validateData = () => ({ a: 'x'.repeat(250_000) })
    await refused(() => clone(source), 'cell_clone_too_large')
  })
})

describe('earlier refusals skip the hooks', () => {
  it('404, kind in the patch and limits', async () => {
    const ids = await pair()
    const hidden = await cellRow(test, { created_by: bob.actor_id })
    await refused(() => clone(hidden), 'cell_not_found')
    await refused(() => clone(ids.a, { with_data_patch: { kind: 1 } }), 'cell_kind_in_data')
    await test.service.app.db.run(sql`
      insert into cell_item (parent_id, position, child_id)
      select ${ids.a as string}::uuid, 'more' || n, ${ids.b as string}::uuid from generate_series(1, 10000) n`)
    await refused(() => clone(ids.a, { deep: false }), 'cell_clone_too_large')
    expect(seen).toEqual([])
  })
})
