import { expect, test as it } from 'vitest'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

/** Creates at the same moment, which share a statement and its commit. */

const most = 1500
const test = await serviceForFile({
  max_account_cells: most,
  limit_cell_create: 'off',
  hooks: {
    async validateData(kind, data) {
      // The owner is deleted once the call has passed every check.
      if (kind === 'orphan') await test.service.app.db.run(sql`delete from account where id = ${data.owner}`)
      return data
    },
  },
})
const { db } = test.service.app
type Input = Parameters<typeof create>[1]
const create = async (
  { cookie }: { cookie: string },
  input: { data: Record<string, unknown>; kind?: string; visibility?: 'public'; path?: string },
) => {
  try {
    const { cell } = await test.service.call('cell_create', input, { headers: { cookie } })
    return { reason: 'ok', cell }
  } catch (error) {
    return { reason: (error as { data: { reason: string } }).data.reason, cell: undefined }
  }
}
const stored = (ids: unknown) =>
  db.one<{ cells: number; commits: number }>(sql`
    select count(*)::int as cells, count(distinct xmin::text)::int as commits from cell where id = any(${ids}::uuid[])`)
const entries = (account_id: string) =>
  db.rows(sql`
    select event_type, outcome, actor_id, metadata ->> 'cell_id' as cell_id from audit_entries()
    where account_id = ${account_id}::uuid and event_type = 'cell_create' order by metadata ->> 'cell_id'`)
const used = (account_id: string) =>
  db.first(sql`
    select sum(cells)::int as cells, sum(bytes)::int as bytes from cell_usage where account_id = ${account_id}::uuid`)

it('each is answered, counted and recorded as it is alone', async () => {
  const accounts = await Promise.all(Array.from({ length: 6 }, () => test.account()))
  const inputs: Input[] = [
    { data: { a: 'quote "\\{}, null' } },
    { data: {}, kind: 'page', visibility: 'public' },
    { data: { deep: { list: [1, null, '\u2028', 'é'] } }, kind: 'null' },
  ]
  const made = await Promise.all(
    accounts.flatMap((account) =>
      inputs.map(async (input) => ({ account, input, ...(await create(account, input)) })),
    ),
  )
  for (const { account, input, cell } of made) {
    const { kind = null, visibility = 'private' } = input
    expect(cell).toMatchObject({
      data: input.data,
      kind,
      visibility,
      path: null,
      created_by: account.actor_id,
    })
    expect((await account.client.cell_get({ id: cell?.id as string })).cell).toEqual(cell)
  }
  const ids = made.map(({ cell }) => cell?.id)
  const { cells, commits } = await stored(ids)
  expect(cells).toBe(made.length)
  expect(commits).toBeLessThan(made.length / 2)
  for (const account of accounts) {
    const own = made.filter((one) => one.account === account)
    const rows = own.map(({ cell }) => cell?.id as string).sort()
    expect(await entries(account.id)).toEqual(
      rows.map((cell_id) => ({
        event_type: 'cell_create',
        outcome: 'success',
        actor_id: account.actor_id,
        cell_id,
      })),
    )
    const bytes = inputs.reduce((sum, { data }) => sum + Buffer.byteLength(JSON.stringify(data)), 0)
    expect(await used(account.id)).toEqual({ cells: inputs.length, bytes })
  }
})

it('one without room or account, or with a path or much data, does not affect its neighbours', async () => {
  const [far, near, full, gone, root] = await Promise.all([
    test.account(),
    test.account(),
    test.account(),
    test.account(),
    test.account({ roles: ['admin'] }),
  ])
  const fill = (account_id: string, cells: number) =>
    db.run(
      sql`insert into cell_usage (account_id, shard, cells, bytes) values (${account_id}::uuid, 1, ${cells}, 0)`,
    )
  await fill(near.id, most - 1)
  await fill(full.id, most)
  await fill(root.id, most)
  const taken = await cellRow(test, { created_by: root.actor_id, path: 'taken' })
  const made = await Promise.all([
    create(far, { data: { n: 1 } }),
    create(near, { data: { n: 2 } }),
    create(full, { data: { n: 3 } }),
    create(gone, { data: { owner: gone.id }, kind: 'orphan' }),
    create(root, { data: { n: 4 } }),
    create(root, { data: {}, path: 'taken' }),
    create(far, { data: { text: 'x'.repeat(20_000) } }),
    create(far, { data: { n: 5 } }),
  ])
  expect(made.map(({ reason }) => reason)).toEqual([
    ...['ok', 'ok', 'cell_quota_exceeded', 'account_vanished', 'ok', 'cell_path_taken', 'ok', 'ok'],
  ])
  const ids = made.flatMap(({ cell }) => cell?.id ?? [])
  expect((await stored([...ids, taken])).cells).toBe(6)
  expect(await used(far.id)).toMatchObject({ cells: 3 })
  expect(await used(near.id)).toMatchObject({ cells: most })
  expect(await used(full.id)).toMatchObject({ cells: most })
  expect(await used(root.id)).toMatchObject({ cells: most + 1 })
  const successes = await db.one(sql`
    select count(*)::int as count from audit_entries()
    where event_type = 'cell_create' and outcome = 'success' and account_id in (${full.id}::uuid, ${gone.id}::uuid)`)
  expect(successes).toEqual({ count: 0 })
})

it('a quota is not exceeded by creates that share a statement', async () => {
  const ada = await test.account()
  await db.run(sql`
    insert into cell_usage (account_id, shard, cells, bytes) values (${ada.id}::uuid, 1, ${most - 1004}, 0)`)
  const made = []
  for (let round = 0; round < 126; round++)
    made.push(...(await Promise.all(Array.from({ length: 8 }, (_, n) => create(ada, { data: { n } })))))
  expect(made.filter(({ reason }) => reason === 'ok')).toHaveLength(1004)
  expect(new Set(made.map(({ reason }) => reason))).toEqual(new Set(['ok', 'cell_quota_exceeded']))
  expect(await used(ada.id)).toMatchObject({ cells: most })
})
