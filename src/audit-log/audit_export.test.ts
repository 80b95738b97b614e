import { expect, it } from 'vitest'
import { serviceForFile } from '../../test/helpers/service.ts'
import type { AuditEvent } from '../audit/entry.ts'
import { sql } from '../db/db.ts'
import type { AuditFilter } from './audit_export.ts'

const test = await serviceForFile()

async function exported(filter?: AuditFilter): Promise<AuditEvent[]> {
  const rows: AuditEvent[] = []
  for await (const row of await test.service.operations.exportAudit(filter)) rows.push(row)
  return rows
}

it('every answered mutation is in it, in rising order, with the eleven keys in theirs', async () => {
  const ada = await test.account()
  const { cell } = await ada.client.cell_create({ data: {} })
  await ada.client.cell_delete({ cell_id: cell.id })
  const rows = await exported()
  expect(rows.map(({ event_type }) => event_type)).toEqual(['account_create', 'cell_create', 'cell_delete'])
  expect(rows.map(({ seq }) => seq)).toEqual([...rows.map(({ seq }) => seq)].sort((a, b) => a - b))
  expect(Object.keys(rows[0] as AuditEvent)).toEqual([
    ...['id', 'seq', 'event_type', 'outcome', 'actor_id', 'account_id', 'target_account_id'],
    ...['target_actor_id', 'ip', 'created_at', 'metadata'],
  ])
})

it('goes on from the last row without a gap or a repeat, over more rows than one batch', async () => {
  const before = await exported()
  const last = before.at(-1)?.seq ?? 0
  const { db } = test.service.app
  await db.rows(sql`
    select audit_write(json_agg(json_build_object('event_type', 'many', 'outcome', 'success', 'metadata', json_build_object('n', n))))
    from generate_series(1, 2500) n`)
  const rows = await exported({ since_seq: last })
  expect(rows.map(({ metadata }) => metadata?.n)).toEqual(Array.from({ length: 2500 }, (_, n) => n + 1))
  expect(await exported({ since_seq: rows.at(-1)?.seq ?? 0 })).toEqual([])
  expect(await exported({ since_seq: last, until_seq: last + 10 })).toHaveLength(10)
})

it('filters by event, outcome and account, the one acted upon included', async () => {
  const bob = await test.account()
  await test
    .client()
    .account.login({ username: bob.username, password: 'a wrong password' })
    .catch(() => {})
  expect((await exported({ account_id: bob.id })).map(({ event_type }) => event_type)).toEqual([
    'account_create',
    'login',
  ])
  expect(await exported({ event_type: 'login', outcome: 'failure' })).toMatchObject([
    { account_id: bob.id, metadata: { reason: 'invalid_credentials' } },
  ])
})

it('refuses a type that is neither declared nor in the log, and names a near one', async () => {
  await expect(exported({ event_type: 'lgoin' })).rejects.toMatchObject({
    data: { issues: [{ path: ['event_type'], message: expect.stringContaining('did you mean login?') }] },
  })
  expect(await exported({ event_type: 'token_revoke' })).toEqual([])
  await test.service.app.db.rows(sql`
    select audit_write('[{"event_type": "of_before", "outcome": "success", "metadata": null}]')`)
  expect(await exported({ event_type: 'of_before' })).toHaveLength(1)
})

it('refuses filters that are none', async () => {
  for (const filter of [
    { since_seq: -1 },
    { since_seq: 1.5 },
    { outcome: 'x' },
    { account_id: 'x' },
    { x: 1 },
  ])
    await expect(exported(filter as AuditFilter)).rejects.toThrow('invalid_params')
})
