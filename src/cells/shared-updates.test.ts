import { expect, test as it } from 'vitest'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** Updates at the same moment, which share a statement and its commit. */

const bytesMax = 400_000_000
const test = await serviceForFile({ max_account_bytes: bytesMax })
const { db } = test.service.app
type Input = Parameters<TestAccount['client']['cell_update']>[0]
const update = async ({ cookie }: { cookie: string }, input: Input) => {
  try {
    const { cell } = await test.service.call('cell_update', input, { headers: { cookie } })
    return { reason: 'ok', cell }
  } catch (error) {
    return { reason: (error as { data: { reason: string } }).data.reason, cell: undefined }
  }
}
const made = (owner: TestAccount | null, data: object = {}, row: Parameters<typeof cellRow>[1] = {}) =>
  cellRow(test, { created_by: owner?.actor_id ?? null, data, ...row })
const entries = async (cell_id: string) =>
  await db.rows(sql`
    select outcome, actor_id from audit_entries()
    where event_type = 'cell_update' and metadata ->> 'cell_id' = ${cell_id}`)
const used = async ({ id }: TestAccount) =>
  (
    await db.one<{ bytes: number }>(sql`
    select coalesce(sum(bytes), 0)::int as bytes from cell_usage where account_id = ${id}::uuid`)
  ).bytes

it('each is answered, counted and recorded as it is alone', async () => {
  const accounts = await Promise.all(Array.from({ length: 6 }, () => test.account()))
  const root = await test.account({ roles: ['admin'] })
  const changes: [Omit<Input, 'cell_id'>, object][] = [
    [{ data: { quote: '"\\{}, null' } }, { data: { quote: '"\\{}, null' }, visibility: 'private' }],
    [{ data_patch: { a: null, b: [1, 'é'] } }, { data: { b: [1, 'é'] }, visibility: 'private' }],
    [{ visibility: 'public' }, { data: { a: 1 }, visibility: 'public' }],
    [
      { data: { a: 2 }, visibility: 'public' },
      { data: { a: 2 }, visibility: 'public' },
    ],
  ]
  const calls = await Promise.all(
    accounts.flatMap((owner) =>
      changes.map(async ([change, wanted]) => ({ owner, change, wanted, id: await made(owner, { a: 1 }) })),
    ),
  )
  const ofSystem = await made(null, { a: 1 })
  const [system, ...answers] = await Promise.all([
    update(root, { cell_id: ofSystem, data: { long: 'enough to count' } }),
    ...calls.map(({ owner, change, id }) => update(owner, { cell_id: id, ...change })),
  ])
  expect(system).toMatchObject({
    cell: { version: 2, updated_by: root.actor_id, data: { long: 'enough to count' } },
  })
  for (const [index, { owner, wanted, id }] of calls.entries()) {
    const { cell } = answers[index] ?? {}
    expect(cell).toMatchObject({ id, version: 2, updated_by: owner.actor_id, ...wanted })
    expect((await owner.client.cell_get({ id })).cell).toEqual(cell)
    expect(await entries(id)).toEqual([{ outcome: 'success', actor_id: owner.actor_id }])
  }
  const ids = calls.map(({ id }) => id)
  const { commits } = await db.one<{ commits: number }>(sql`
    select count(distinct xmin::text)::int as commits from cell where id = any(${ids}::uuid[])`)
  expect(commits).toBeLessThan(ids.length / 2)
  const grown = [{ quote: '"\\{}, null' }, { b: [1, 'é'] }, { a: 1 }, { a: 2 }]
    .map((data) => Buffer.byteLength(JSON.stringify(data)) - Buffer.byteLength(JSON.stringify({ a: 1 })))
    .reduce((sum, bytes) => sum + bytes)
  for (const owner of accounts) expect(await used(owner)).toBe(grown)
})

it('one without right or room, or with an old version, much data or a path, does not affect its neighbours', async () => {
  const [ada, bob, full, root] = await Promise.all([
    ...[1, 2, 3].map(() => test.account()),
    test.account({ roles: ['admin'] }),
  ])
  const viewed = await made(ada as TestAccount)
  await test.cellGrant(viewed, 'viewer', { actor_id: bob?.actor_id as string })
  await db.run(sql`
    insert into cell_usage (account_id, shard, cells, bytes) values (${full?.id}::uuid, 1, 0, ${bytesMax}::bigint)`)
  const of = (owner: TestAccount | undefined) => made(owner as TestAccount, { a: 1 })
  const [own, fulls, shrinks, old, large, pathless, moved] = await Promise.all(
    [ada, full, full, ada, ada, ada, ada].map(of),
  )
  await made(ada as TestAccount, {}, { path: 'taken' })
  const by = (
    account: TestAccount | undefined,
    cell_id: string | undefined,
    change: Omit<Input, 'cell_id'>,
  ) => update(account as TestAccount, { cell_id: cell_id as string, ...change })
  const answers = await Promise.all([
    by(ada, own, { data: { a: 2 } }),
    by(bob, viewed, { data: { a: 2 } }),
    by(bob, own, { data: { a: 2 } }),
    by(full, fulls, { data: { a: 'longer than before' } }),
    by(full, shrinks, { data: {} }),
    by(ada, old, { data: { a: 2 }, expected_version: 7 }),
    by(ada, large, { data: { text: 'x'.repeat(20_000) } }),
    by(root, pathless, { path: 'taken' }),
    by(root, moved, { path: 'free' }),
  ])
  expect(answers.map(({ reason }) => reason)).toEqual([
    ...['ok', 'cell_not_found', 'cell_not_found', 'cell_quota_exceeded', 'ok', 'cell_version_conflict'],
    ...['ok', 'cell_path_taken', 'ok'],
  ])
  const versions = await db.rows<{ id: string; version: number }>(sql`
    select id, version from cell where version > 1 order by id`)
  const changed = new Set(versions.map(({ id }) => id))
  expect(
    [own, viewed, fulls, shrinks, old, large, pathless, moved].map((id) => changed.has(id as string)),
  ).toEqual([...[true, false, false, true, false, true, false, true]])
})

it('many at one cell are each done once, in some order', async () => {
  const ada = await test.account()
  const cell_id = await made(ada)
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, n) => update(ada, { cell_id, data_patch: { [`k${n}`]: n } })),
  )
  expect(answers.map(({ cell }) => cell?.version).sort((a = 0, b = 0) => a - b)).toEqual(
    Array.from({ length: 24 }, (_, n) => n + 2),
  )
  const { cell } = await ada.client.cell_get({ id: cell_id })
  expect(cell.data).toEqual(Object.fromEntries(Array.from({ length: 24 }, (_, n) => [`k${n}`, n])))
  expect(await entries(cell_id)).toHaveLength(24)
})
