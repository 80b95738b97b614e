import { randomUUID } from 'node:crypto'
import { describe, expect, test as it } from 'vitest'
import { cellRow } from '../../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../../test/helpers/outcome.ts'
import { workOf } from '../../../test/helpers/plans.ts'
import { serviceForFile } from '../../../test/helpers/service.ts'
import { sql } from '../../db/db.ts'
import type { TestAccount } from '../../testing/index.ts'

/** How many statements the methods that share cells send, and how many rows these touch. */

const sent: string[] = []
const test = await serviceForFile({
  onStatement: (text) => sent.push(text),
  roles: [{ name: 'team', grant_paths: [] }],
})
const [ada, bob] = await Promise.all([test.account(), test.account()])

/** The outcome and the statements: `c` reads the caller, `s` is one of the method, `n` looks for rows to number, `A` writes audit rows. */
async function statements(call: () => Promise<unknown>): Promise<string> {
  sent.length = 0
  const reason = await reasonOf(call())
  const kinds = sent.map((text) =>
    text.includes('auth_session')
      ? 'c'
      : text.includes('audit_write')
        ? 'A'
        : /seq is null|audit_number/.test(text)
          ? 'n'
          : 's',
  )
  return `${reason} ${kinds.join('')}`
}
const own = () => cellRow(test, { created_by: ada.actor_id })
type Principal = Parameters<TestAccount['client']['cell_grant_create']>[0]['principal']
const give = (
  by: TestAccount,
  cell_id: string,
  principal: Principal,
  level: 'viewer' | 'editor' = 'viewer',
) => statements(() => by.client.cell_grant_create({ cell_id, level, principal }))

describe('statements', () => {
  it('cell_grant_create: lock, write and audit rows; refused or without a change two at most', async () => {
    const cell_id = await own()
    expect(await give(ada, cell_id, { actor_id: bob.actor_id })).toBe('ok cssA')
    expect(await give(ada, cell_id, { actor_id: bob.actor_id }, 'editor')).toBe('ok cssA')
    expect(await give(ada, cell_id, { actor_id: bob.actor_id }, 'editor')).toBe('ok css')
    expect(await give(ada, cell_id, { role: 'team' })).toBe('ok cssA')
    expect(await give(ada, cell_id, { role: 'none' })).toBe('cell_grant_unknown_role cs')
    expect(await give(ada, cell_id, { actor_id: ada.actor_id })).toBe('cell_grant_principal_is_owner css')
    expect(await give(ada, cell_id, { actor_id: ada.id })).toBe('cell_grant_unknown_actor css')
    for (const id of [cell_id, randomUUID()])
      expect(await give(bob, id, { role: 'none' })).toBe('cell_not_found cs')
  })

  it('cell_grant_revoke: lock, removal, what is left of the access, and audit rows; a miss is one', async () => {
    const cell_id = await own()
    const revoke = (by: TestAccount, grant_id: string) =>
      statements(() => by.client.cell_grant_revoke({ grant_id }))
    const { id } = await test.cellGrant(cell_id, 'viewer', { role: 'team', scope_id: null })
    for (const one of [id, randomUUID()]) expect(await revoke(bob, one)).toBe('cell_grant_not_found cs')
    expect(await revoke(ada, id)).toBe('ok csssA')
    const own_grant = await test.cellGrant(cell_id, 'viewer', { actor_id: bob.actor_id })
    expect(await revoke(bob, own_grant.id)).toBe('ok csssA')
  })

  it('cell_grant_list: one, whatever the outcome', async () => {
    const list = (by: TestAccount, cell_id: string) =>
      statements(() => by.client.cell_grant_list({ cell_id }))
    const cell_id = await own()
    expect(await list(ada, cell_id)).toBe('ok cs')
    for (const id of [cell_id, randomUUID()]) expect(await list(bob, id)).toBe('cell_not_found cs')
  })

  it('cell_audit_list: two, and the numbering where rows wait for it', async () => {
    const list = (by: TestAccount, cell_id: string) =>
      statements(() => by.client.cell_audit_list({ cell_id }))
    const { cell } = await ada.client.cell_create({ data: {} })
    expect(await list(ada, cell.id)).toMatch(/^ok cnn+s$/)
    expect(await list(ada, cell.id)).toBe('ok cns')
    for (const id of [cell.id, randomUUID()]) expect(await list(bob, id)).toBe('cell_not_found cns')
  })
})

describe('work', () => {
  it('a page of grants reads no grants of other cells and none before the page', async () => {
    const cell_id = await own()
    const { db } = test.service.app
    await db.run(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at, created_at)
      select id, 'viewer', 'r' || n, created_at, created_at + n * interval '1 second'
      from cell, generate_series(1, 3000) n where id = ${cell_id}`)
    for (let i = 0; i < 3; i++)
      await db.run(sql`
        insert into cell_grant (cell_id, level, role, cell_created_at)
        select ${await own()}::uuid, 'viewer', 'r' || n, now() from generate_series(1, 3000) n`)
    await db.run(sql`analyze cell_grant, cell`)
    let { next_cursor } = await ada.client.cell_grant_list({ cell_id, limit: 500 })
    ;({ next_cursor } = await ada.client.cell_grant_list({ cell_id, limit: 500, cursor: next_cursor }))
    const work = await workOf(test.databaseUrl, () =>
      ada.client.cell_grant_list({ cell_id, limit: 20, cursor: next_cursor }),
    )
    expect(work.scanned).not.toContain('cell_grant')
    expect(work.rows.cell_grant).toBeLessThanOrEqual(30)
  })

  it('a timeline reads its own events and no others, however many there are', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    const quiet = await own()
    await test.service.app.db.run(sql`
      select audit_write((select json_agg(json_build_object('event_type', 'many', 'outcome', 'success',
        'metadata', json_build_object('cell_id', gen_random_uuid()))) from generate_series(1, 20000)))`)
    for (let n = 0; n < 60; n++) await ada.client.cell_update({ cell_id: cell.id, data: { n } })
    await ada.client.cell_audit_list({ cell_id: cell.id })
    await test.service.app.db.run(sql`analyze audit_log, audit_cell`)
    for (const [cell_id, most] of [
      [cell.id, 120],
      [quiet, 2],
    ] as const) {
      const work = await workOf(test.databaseUrl, () => ada.client.cell_audit_list({ cell_id }))
      expect(work.scanned).not.toContain('audit_log')
      expect(work.scanned).not.toContain('audit_cell')
      expect(work.rows.audit_log ?? 0).toBeLessThanOrEqual(most)
      expect(work.rows.audit_cell ?? 0).toBeLessThanOrEqual(most)
    }
  })
})
