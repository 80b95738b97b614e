import { expect, test as it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

/** PostgreSQL plans a statement for its first five sets of values on a connection, and from then on should keep a plan. */
const planned = 5
const rounds = 30

// As few connections as possible, so that each runs every statement more often than that.
const test = await serviceForFile({ database_pool_max: 2 })
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])

/** The statements that the connections have run, and how often they planned them anew. */
async function plans(): Promise<{ statement: string; runs: number; custom: number }[]> {
  const { db } = test.service.app
  const ofOne = () =>
    db.rows<{ statement: string; runs: number; custom: number }>(sql`
      select statement, generic_plans + custom_plans as runs, custom_plans as custom
      from pg_prepared_statements, pg_sleep(0.05) where name like 'ck_%'`)
  return (await Promise.all([ofOne(), ofOne()])).flat()
}

const cells = await Promise.all(
  Array.from({ length: 8 }, async (_, at) => (await ada.client.cell_create({ data: { at } })).cell.id),
)
const cellOf = (round: number): string => cells[round % cells.length] as string
const to_account_id = bob.id

it.each<[string, (round: number) => Promise<unknown>]>([
  ['a create', (round) => ada.client.cell_create({ data: { round } })],
  ['an update', (round) => ada.client.cell_update({ cell_id: cellOf(round), data: { round } })],
  [
    // The number of calls changes, so that a shared statement has from one to eight entries.
    'updates at the same time',
    (round) =>
      Promise.all(
        cells
          .slice(0, 1 + (round % cells.length))
          .map((cell_id) => ada.client.cell_update({ cell_id, data: { many: round } })),
      ),
  ],
  [
    'an update of a large cell',
    (round) => ada.client.cell_update({ cell_id: cellOf(round), data: { round, long: 'x'.repeat(10_000) } }),
  ],
  ['a clone', (round) => ada.client.cell_clone({ source_id: cellOf(round) })],
  [
    'an offer, its acceptance and the end of the grant',
    async () => {
      const { offer } = await root.client.role_grant_offer_create({ to_account_id, role: 'admin' })
      const { offer_id } = offer
      const { role_grant_id } = await bob.client.role_grant_offer_accept({ offer_id })
      await root.client.role_grant_revoke({ actor_id: bob.actor_id, role_grant_id })
    },
  ],
])('%s is not planned anew each time', async (_what, call) => {
  for (let round = 0; round < rounds; round++) await call(round)
  const found = await plans()
  expect(found.some(({ runs }) => runs > planned)).toBe(true)
  expect(found.filter(({ custom }) => custom > planned)).toEqual([])
})
