import { expect, test as it } from 'vitest'
import { cellRow, fieldRow, itemRow } from '../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../test/helpers/service.ts'

const sent: string[] = []
const test = await serviceForFile({ onStatement: (text) => sent.push(text) })
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

const [own, open, shared, parent, large, wide] = await Promise.all([
  cellRow(test, { created_by: ada.actor_id, path: 'own', data: { a: 'own' } }),
  cellRow(test, { created_by: ada.actor_id, path: 'open', visibility: 'public' }),
  cellRow(test, { created_by: ada.actor_id, path: 'shared' }),
  cellRow(test, { created_by: ada.actor_id, path: 'parent', visibility: 'public' }),
  cellRow(test, {
    created_by: ada.actor_id,
    path: 'large',
    visibility: 'public',
    data: { a: 'x'.repeat(200_000) },
  }),
  cellRow(test, { created_by: ada.actor_id, path: 'wide', visibility: 'public' }),
])
await test.cellGrant(shared, 'editor', { actor_id: bob.actor_id })
await itemRow(test, parent, 'a', own)
await itemRow(test, parent, 'b', open)
await fieldRow(test, parent, 'about', own)
await fieldRow(test, shared, 'next', open)
// More items than are read together with other cells; the last one is visible to one caller only.
for (let at = 0; at < 9; at++) await itemRow(test, wide, `a${at}`, at === 8 ? own : open)
const missing = '11111111-1111-4111-8111-111111111111'
const inputs = [
  ...[own, open, shared, parent, large, wide, missing].map((id) => ({ id })),
  ...['own', 'open', 'shared', 'parent', 'large', 'wide', 'missing'].map((path) => ({ path })),
]
const callers = [ada.cookie, bob.cookie, root.cookie, undefined]
const asked = callers.flatMap((cookie) => inputs.map((input) => ({ cookie, input })))

type Asked = (typeof asked)[number]
const get = async ({ cookie, input }: Asked): Promise<unknown> =>
  await test.service
    .call('cell_get', input, cookie === undefined ? {} : { headers: { cookie } })
    .catch(({ code, data }) => ({ code, data }))

it('a get that joins others is answered as it is alone, whoever asks beside it', async () => {
  const alone: unknown[] = []
  for (const one of asked) alone.push(await get(one))
  expect(new Set(alone.map((answer) => JSON.stringify(answer))).size).toBeGreaterThan(8)
  for (let round = 0; round < 3; round++) expect(await Promise.all(asked.map(get))).toEqual(alone)
})

it('gets of one turn share a statement, up to its maximum', async () => {
  const count = async (many: number): Promise<number> => {
    sent.length = 0
    await Promise.all(Array.from({ length: many }, () => get({ cookie: undefined, input: { id: open } })))
    await Promise.all(
      Array.from({ length: many }, (_, at) => get({ cookie: undefined, input: { path: `no ${at}` } })),
    )
    return sent.length
  }
  // Calls of one caller for one cell share a key; each path is a key of its own.
  expect(await count(16)).toBe(2)
  expect(await count(48)).toBe(4)
})

it('an answer belongs to its caller alone', async () => {
  const both = await Promise.all([1, 2].map(() => test.service.call('cell_get', { path: 'open' })))
  const [first, second] = both
  if (!first || !second) throw new Error('there are two answers')
  first.cell.data.changed = true
  expect(second.cell.data).toEqual({})
})

it('a key that the database would refuse is refused before it joins others', async () => {
  const [refused, found] = await Promise.all([
    get({ cookie: undefined, input: { path: 'a\0b' } }),
    get({ cookie: undefined, input: { path: 'open' } }),
  ])
  expect(refused).toMatchObject({ data: { reason: 'invalid_params' } })
  expect(found).toMatchObject({ cell: { id: open } })
})
