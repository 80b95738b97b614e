import { afterEach, beforeEach, describe, expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { type Rival, rival } from '../../../test/helpers/race.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { waitingCalls } from '../../../test/helpers/waiting-calls.ts'
import { sql } from '../../db/db.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

const waiting = waitingCalls()
let other: Rival
const test = await serviceForFile({ hooks: waiting.hooks })
const [ada, editor, root] = await Promise.all([
  test.account(),
  test.account(),
  test.account({ roles: ['admin'] }),
])
beforeEach(async () => {
  other = await rival(test.databaseUrl)
})
afterEach(() => other.close())

async function shared() {
  const cell_id = await cellRow(test, { created_by: ada.actor_id, data: { wait: true } })
  const { id } = await test.cellGrant(cell_id, 'editor', { actor_id: editor.actor_id })
  return { cell_id, grant_id: id }
}
const update = (by: TestAccount, cell_id: string, data: object) =>
  reasonOf(by.client.cell_update({ cell_id, data: { ...data } }))
const stored = async (id: string) => (await root.client.cell_get({ id })).cell
/**
 * Begins an update by the owner that holds the lock of the cell until `open` is called. It changes nothing, because
 * waiters for an updated row race each other to its new version, while waiters for an unchanged row get it in turn.
 */
const held = (cell_id: string) => waiting.held(() => update(ada, cell_id, { wait: true }))
type Take = (cell_id: string, grant_id: string) => Promise<unknown>
const revoke: Take = (_cell_id, grant_id) => ada.client.cell_grant_revoke({ grant_id })
const downgrade: Take = (cell_id) =>
  ada.client.cell_grant_create({ cell_id, level: 'viewer', principal: { actor_id: editor.actor_id } })
const removal: Take = (cell_id) => ada.client.cell_delete({ cell_id })
const ends: [string, Take][] = [
  ['a revoke', revoke],
  ['a downgrade', downgrade],
  ['a deletion', removal],
]

describe('the end of a right', () => {
  it.each(ends)('%s: an update queued behind it changes nothing', async (_what, take) => {
    const { cell_id, grant_id } = await shared()
    const first = await held(cell_id)
    const taken = reasonOf(take(cell_id, grant_id))
    await other.blocks(1)
    const late = update(editor, cell_id, { late: true })
    await other.blocks(2)
    first.open()
    expect(await Promise.all([first.answer, taken, late])).toEqual(['ok', 'ok', 'cell_not_found'])
    const row = await test.service.app.db.first(sql`select version, data from cell where id = ${cell_id}`)
    expect(row).toEqual({ version: 1, data: { wait: true } })
  })

  it('a visibility change waits for no reader and ends the view of all others', async () => {
    const cell_id = await cellRow(test, { created_by: ada.actor_id, visibility: 'public' })
    await ada.client.cell_update({ cell_id, visibility: 'private' })
    expect(await reasonOf(editor.client.cell_clone({ source_id: cell_id }))).toBe('cell_not_found')
  })
})

describe('the purge of the grantee', () => {
  it('before the grant is written: cell_grant_unknown_actor', async () => {
    const leaving = await test.account()
    const { cell_id } = await shared()
    await other.begin('delete from actor where id = $1', [leaving.actor_id])
    const principal = { actor_id: leaving.actor_id }
    const late = scenario(test, () => ada.client.cell_grant_create({ cell_id, level: 'viewer', principal }), {
      reason: 'cell_grant_unknown_actor',
    })
    await Promise.all([late, other.blocks(1).then(other.commit)])
  })

  it('in the middle of grants to it: they succeed or know no such actor, and no row stays', async () => {
    const known = ['ok', 'cell_grant_unknown_actor']
    for (let round = 0; round < 10; round++) {
      const leaving = await test.account()
      const { cell_id } = await shared()
      const calls = (['viewer', 'editor', 'viewer', 'editor'] as const).map((level) =>
        reasonOf(ada.client.cell_grant_create({ cell_id, level, principal: { actor_id: leaving.actor_id } })),
      )
      const purge = test.service.operations.purgeAccount(
        { account_id: leaving.id, confirm: true },
        { via: 'test' },
      )
      const [, ...outcomes] = await Promise.all([purge, ...calls])
      for (const outcome of outcomes) expect(known).toContain(outcome)
      expect((await ada.client.cell_grant_list({ cell_id })).grants).toHaveLength(1)
      expect(await stored(cell_id)).toMatchObject({ version: 1 })
    }
  })
})

it('any mix of grants, revokes, clones and changes ends in known refusals', async () => {
  const member = await test.account()
  const cells = await Promise.all([shared(), shared(), shared()])
  for (const [i, { cell_id }] of cells.entries())
    for (const [j, far] of cells.entries())
      await test.service.app.db.run(sql`
        insert into cell_item (parent_id, position, child_id)
        values (${cell_id}::uuid, ${`${i}${j}`}, ${far.cell_id}::uuid)`)
  let seed = 11
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const known = ['ok', 'cell_not_found', 'cell_grant_not_found']
  const worker = async (by: TestAccount) => {
    for (let i = 0; i < 20; i++) {
      const { cell_id } = cells[random(3)] as { cell_id: string }
      const level = random(2) ? 'viewer' : 'editor'
      const calls: (() => Promise<unknown>)[] = [
        () => by.client.cell_grant_create({ cell_id, level, principal: { actor_id: member.actor_id } }),
        async () => {
          const { grants } = await ada.client.cell_grant_list({ cell_id })
          const grant = grants.find(({ actor_id }) => actor_id === member.actor_id)
          if (grant) await by.client.cell_grant_revoke({ grant_id: grant.id })
        },
        () => by.client.cell_clone({ source_id: cell_id, deep: true }),
        () => by.client.cell_update({ cell_id, data: { i } }),
      ]
      expect(known).toContain(await reasonOf((calls[random(4)] as () => Promise<unknown>)()))
    }
  }
  await Promise.all([ada, ada, root, root, member, member, editor, editor].map(worker))
  for (const { cell_id } of cells) {
    const { grants } = await ada.client.cell_grant_list({ cell_id })
    expect(new Set(grants.map(({ actor_id }) => actor_id)).size).toBe(grants.length)
  }
})
