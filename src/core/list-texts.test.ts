import { expect, it } from 'vitest'
import { cellRows } from '../../test/helpers/cell-rows.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { TestAccount } from '../testing/index.ts'

/** The texts of all statements sent so far. */
const sent = new Set<string>()
const unlimited = { limit_admin_read: 'off', limit_lookup: 'off', limit_cell_read: 'off' } as const
const test = await serviceForFile({ ...unlimited, onStatement: (text) => sent.add(text) })
const [admin, other] = await Promise.all([test.account({ roles: ['admin'] }), test.account()])
const { db } = test.service.app
await cellRows(test, 3, {
  kind: sql`'k' || i % 2`,
  path: sql`'p/' || i`,
  visibility: sql`case when i % 2 = 0 then 'public' else 'private' end`,
  created_by: sql`${admin.actor_id}::uuid`,
})
const cells = (await db.rows<{ id: string }>(sql`select id from cell`)).map(({ id }) => id)
const [one, two] = cells as [string, string]
await db.run(sql`
  insert into cell_field (source_id, name, target_id) select ${one}, n, ${two} from unnest(array['a', 'b']) n`)
await db.run(sql`
  insert into cell_item (parent_id, position, child_id) select ${one}, n, ${two} from unnest(array['a', 'b']) n`)
for (const role of ['ra', 'rb']) await test.cellGrant(one, 'viewer', { role, scope_id: null })
await db.run(sql`insert into invite (email, email_key) select n, n from unnest(array['a@b.cd', 'e@f.gh']) n`)
await db.run(sql`
  insert into role_grant_offer (from_actor_id, from_account_id, to_account_id, role, expires_at)
  select ${other.actor_id}::uuid, ${other.id}::uuid, ${admin.id}::uuid, role, now() + interval '1 day'
  from unnest(array['ra', 'rb']) role`)

const limits = [1, 2, 3, 7, 19, 20, 21, 33, 49, 50, 51, 77, 99, 100, 101, 150, 199, 200, 201, 333, 499, 500]

type Input = Record<string, unknown>
const call = (account: TestAccount, method: string, input: Input) =>
  test.service.call(method, input, { headers: { cookie: account.cookie } }) as Promise<{
    next_cursor?: string | null
  }>

/** The number of statement texts that a list sends for these inputs with every limit, on first and later pages. */
async function textsOf(account: TestAccount, method: string, inputs: Input[], max: number): Promise<number> {
  // The statements that read the caller do not count.
  await call(account, 'role_grant_offer_list', {})
  const before = new Set(sent)
  for (const input of inputs) {
    const cursor = (await call(account, method, { ...input, limit: 1 })).next_cursor
    const behind = Object.fromEntries(Object.entries(input).filter(([key]) => key !== 'since_seq'))
    for (const limit of limits.filter((one) => one <= max)) {
      await call(account, method, { ...input, limit })
      if (cursor) await call(account, method, { ...behind, limit, cursor })
    }
  }
  return [...sent].filter((text) => !before.has(text)).length
}

/** One text per page size up to `max`, for the first page and for later ones. */
const sizes = (max: number): number =>
  2 * [20, 50, 100, 200, 500].filter((_, at, all) => (all[at - 1] ?? 0) < max).length

it.each<[method: string, max: number, shapes: number, inputs: () => Input[]]>([
  ['role_grant_offer_list', 500, 1, () => [{}]],
  ['role_grant_offer_history', 500, 1, () => [{}, { account_id: other.id }]],
  ['admin_account_list', 200, 2, () => [{}, { include_deleted: true }]],
  ['admin_session_list', 200, 2, () => [{}, { account_id: other.id }, { account_id: admin.id }]],
  ['invite_list', 200, 1, () => [{}]],
  ['audit_log_role_grant_history', 200, 1, () => [{}]],
  [
    'audit_log_list',
    200,
    6,
    () => [
      {},
      ...[admin.id, other.id].map((account_id) => ({ account_id })),
      ...['login', 'signup', 'cell_create'].map((event_type) => ({ event_type })),
      ...['success', 'failure'].map((outcome) => ({ outcome })),
      { since_seq: 0 },
      { since_seq: 1 },
    ],
  ],
  ['cell_grant_list', 500, 1, () => cells.map((cell_id) => ({ cell_id }))],
  ['cell_field_list', 500, 2, () => cells.flatMap((id) => [{ source_id: id }, { target_id: id }])],
  ['cell_item_list', 500, 2, () => cells.flatMap((id) => [{ parent_id: id }, { child_id: id }])],
])(
  '%s sends few texts, whatever its limit and the values of its filters',
  async (method, max, shapes, inputs) => {
    const texts = await textsOf(admin, method, inputs(), max)
    expect(texts).toBeGreaterThan(1)
    // Plus the statements with which an audit list numbers rows.
    expect(texts).toBeLessThanOrEqual(shapes * sizes(max) + 2)
  },
)

it('actor_search sends few texts, whatever its limit', async () => {
  const before = sent.size
  for (const query of ['a', 'b', 'cd'])
    for (const limit of limits.filter((one) => one <= 50)) await call(admin, 'actor_search', { query, limit })
  expect(sent.size - before).toBeLessThanOrEqual(3)
})

it.each<[string, () => Input[]]>([
  ['no filter', () => [{}]],
  ['kinds', () => ['k0', 'k1', 'other'].map((kind) => ({ kind }))],
  ['prefixes', () => ['p/', 'q', 'p/1'].map((path_prefix) => ({ path_prefix }))],
  ['creators', () => [admin, other].map(({ actor_id }) => ({ created_by: actor_id }))],
  ['ids', () => [cells, cells.slice(1)].map((ids) => ({ ids }))],
  ['shared ones', () => [{ shared_with: 'me' }]],
])('cell_list by %s sends few texts, whatever its limit and values', async (_what, inputs) => {
  // A caller's own cells are found by another statement than those of others.
  for (const account of [admin, other])
    expect(await textsOf(account, 'cell_list', inputs(), 200)).toBeLessThanOrEqual(2 * sizes(200))
})
