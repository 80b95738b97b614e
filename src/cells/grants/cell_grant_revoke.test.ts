import { describe, expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf, tally } from '../../../test/helpers/outcome.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { scenario, type TestAccount } from '../../testing/index.ts'

const test = await serviceForFile()
const [ada, bob, root] = await Promise.all([
  test.account(),
  test.account({ roles: ['team'] }),
  test.account({ roles: ['admin'] }),
])

const cell = (row: Parameters<typeof cellRow>[1] = {}) => cellRow(test, { created_by: ada.actor_id, ...row })
const toBob = () => ({ actor_id: bob.actor_id })
const toTeam = { role: 'team', scope_id: null }
const revoke = (by: TestAccount, grant_id: string) => by.client.cell_grant_revoke({ grant_id })
const refused = (by: TestAccount, grant_id: string) =>
  scenario(test, () => revoke(by, grant_id), { reason: 'cell_grant_not_found' })

describe('a manager', () => {
  it('removes the row, whoever it is for, and stays admitted', async () => {
    const cell_id = await cell()
    const [one, two] = [
      await test.cellGrant(cell_id, 'editor', toBob()),
      await test.cellGrant(cell_id, 'viewer', toTeam),
    ]
    for (const [by, { id }, target] of [
      [ada, one, { target_actor_id: bob.actor_id, target_account_id: bob.id }],
      [root, two, { target_actor_id: null, target_account_id: null }],
    ] as const) {
      const principal = id === one.id ? toBob() : toTeam
      const metadata = { cell_id, grant_id: id, principal }
      const answer = await scenario(test, () => revoke(by, id), {
        audit: [
          { event_type: 'cell_grant_revoke', actor_id: by.actor_id, account_id: by.id, metadata, ...target },
        ],
      })
      expect(answer).toEqual({ ok: true, still_admitted: true })
      await refused(by, id)
    }
    expect((await ada.client.cell_grant_list({ cell_id })).grants).toEqual([])
    expect(await reasonOf(bob.client.cell_get({ id: cell_id }))).toBe('cell_not_found')
  })

  it('removes grants of actors that are soft-deleted', async () => {
    const [cell_id, gone] = [await cell(), await test.account()]
    const { id } = await test.cellGrant(cell_id, 'viewer', { actor_id: gone.actor_id })
    await test.service.operations.deleteAccount({ account_id: gone.id }, { via: 'test' })
    await scenario(test, () => revoke(ada, id), {
      audit: [
        { event_type: 'cell_grant_revoke', target_actor_id: gone.actor_id, target_account_id: gone.id },
      ],
    })
  })
})

describe('a grantee', () => {
  const leave = async (row: Parameters<typeof cell>[0], level: 'viewer' | 'editor' = 'viewer') => {
    const cell_id = await cell(row)
    const { id } = await test.cellGrant(cell_id, level, toBob())
    return { cell_id, id }
  }
  const audit = [{ event_type: 'cell_grant_revoke' }]

  it('leaves a private cell and is not admitted any more', async () => {
    for (const level of ['viewer', 'editor'] as const) {
      const { cell_id, id } = await leave({}, level)
      const answer = await scenario(test, () => revoke(bob, id), { audit })
      expect(answer).toEqual({ ok: true, still_admitted: false })
      expect(await reasonOf(bob.client.cell_get({ id: cell_id }))).toBe('cell_not_found')
    }
  })

  it('stays admitted to a public cell, and where a role admits too', async () => {
    const open = await leave({ visibility: 'public' })
    expect((await revoke(bob, open.id)).still_admitted).toBe(true)
    const shared = await leave({})
    await test.cellGrant(shared.cell_id, 'viewer', toTeam)
    expect((await revoke(bob, shared.id)).still_admitted).toBe(true)
  })

  it('leaves a system cell too', async () => {
    const { id } = await leave({ created_by: null })
    expect((await revoke(bob, id)).still_admitted).toBe(false)
  })

  it('removes no grant of a role that it holds, and no one else’s', async () => {
    const { cell_id } = await leave({}, 'editor')
    const [team, other] = [
      await test.cellGrant(cell_id, 'viewer', toTeam),
      await test.cellGrant(cell_id, 'viewer', { actor_id: root.actor_id }),
    ]
    await refused(bob, team.id)
    await refused(bob, other.id)
  })
})

it('of two concurrent calls the second finds nothing', async () => {
  for (let round = 0; round < 5; round++) {
    const { id } = await test.cellGrant(await cell(), 'viewer', toBob())
    const calls = () => tally([revoke(ada, id), revoke(round % 2 ? bob : root, id)])
    const counts = await scenario(test, calls, { audit: [{ event_type: 'cell_grant_revoke' }] })
    expect(counts).toEqual({ ok: 1, cell_grant_not_found: 1 })
  }
})
