import { expect, test as it } from 'vitest'
import {
  accessTable,
  allowed,
  as,
  type Caller,
  compare,
  type Target,
  write,
} from '../../test/helpers/access-table.ts'
import { cellRow } from '../../test/helpers/cell-rows.ts'
import { reasonOf } from '../../test/helpers/outcome.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'

/** Every kind of caller against every kind of cell, in the methods that share, copy and account for cells. */

const test = await serviceForFile({ limit_cell_create: 'off' })
const table = await accessTable(test)
/** An actor without any other access, to give grants to. */
const guest = await test.account()

it('cell_grant_create', async () => {
  const check = async (caller: Caller, { id }: Target) => {
    const principal = { actor_id: guest.actor_id }
    const sent = { cell_id: id, level: 'viewer' as const, principal, ...as(caller) }
    const reason = await reasonOf(caller.client.cell_grant_create(sent))
    await test.service.app.db.run(sql`delete from cell_grant where actor_id = ${guest.actor_id}`)
    return reason
  }
  expect(await compare(table, check, ({ manage }, caller) => write(manage, caller))).toEqual([])
})

it('cell_grant_list', async () => {
  const check = (caller: Caller, { id }: Target) =>
    reasonOf(caller.client.cell_grant_list({ cell_id: id, ...as(caller) }))
  expect(await compare(table, check, ({ manage }, caller) => write(manage, caller))).toEqual([])
})

const missing = (outcome: string) => outcome.replace('cell_not_found', 'cell_grant_not_found')

it('cell_grant_revoke of another actor’s grant', async () => {
  const { rows } = test.service.app.db
  const check = async (caller: Caller, { id }: Target) => {
    const [grant] = await rows<{ id: string }>(sql`
      insert into cell_grant (cell_id, level, role, cell_created_at)
      select id, 'viewer', ${`for ${caller.actor_id}`}, created_at from cell where id = ${id} returning id`)
    return await reasonOf(caller.client.cell_grant_revoke({ grant_id: grant?.id as string, ...as(caller) }))
  }
  expect(await compare(table, check, ({ manage }, caller) => missing(write(manage, caller)))).toEqual([])
})

it('cell_grant_revoke of the caller’s own grant, and whether it is admitted afterwards', async () => {
  const check = async (caller: Caller, target: Target) => {
    if (caller.actor_id === null) return 'authentication_required'
    const { created_by, visibility, is_deleted } = target
    const copy = await cellRow(test, {
      created_by,
      visibility: visibility as 'public',
      deleted_at: is_deleted ? '2026-01-01T00:00:00Z' : null,
    })
    const { rows } = test.service.app.db
    const [grant] = await rows<{ id: string }>(sql`
      insert into cell_grant (cell_id, level, actor_id, cell_created_at)
      select id, 'viewer', ${caller.actor_id}::uuid, created_at from cell where id = ${copy} returning id`)
    const sent = { grant_id: grant?.id as string, ...as(caller) }
    const outcome = await caller.client.try.cell_grant_revoke(sent)
    const { view } = allowed(caller, { ...target, id: copy, grants: [] })
    return outcome.ok ? outcome.result.still_admitted === view : is_deleted && outcome.error.reason
  }
  const rule = (_may: unknown, { actor_id }: Caller, { is_deleted }: Target) =>
    actor_id === null ? 'authentication_required' : is_deleted ? 'cell_grant_not_found' : true
  expect(await compare(table, check, rule)).toEqual([])
})

it('cell_clone, shallow and deep', async () => {
  for (const deep of [false, true]) {
    const check = (caller: Caller, { id }: Target) =>
      reasonOf(caller.client.cell_clone({ source_id: id, deep, ...as(caller) }))
    expect(await compare(table, check, ({ view }, caller) => write(view, caller))).toEqual([])
  }
})

it('cell_audit_list, where a deleted cell is for admins', async () => {
  const check = (caller: Caller, { id }: Target) =>
    reasonOf(caller.client.cell_audit_list({ cell_id: id, ...as(caller) }))
  const wrong = await compare(table, check, ({ manage }, caller) => write(manage, caller))
  expect(wrong).toEqual(['admin × deleted: "ok" instead of "cell_not_found"'])
})
