import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  failureRow,
  type LabContext,
  mutationLab,
  successRow,
  write,
} from '../../test/helpers/mutation-lab.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { cells } from '../cells/own-methods.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'

/** A mutation of one statement: `single` sends it with its audit rows, and it commits by itself. */

const lab = await mutationLab()
afterAll(() => lab.close())
beforeEach(() => lab.reset())

const other = '22222222-2222-4222-8222-222222222222'
const own = { ...successRow, metadata: { cell_id: other } }
const noted = (text: string) => sql`noted as (${write(text)} returning text)`
const single = (context: LabContext, statement = noted('kept')) =>
  context.single<{ text: string }>(statement, 'noted', (audit) => audit('cell_update', { cell_id: other }))
const kept = { notes: ['kept'], audit: [successRow, own], effects: ['effect'], runs: 1 }
const undone = { notes: [], audit: [failureRow], effects: [], runs: 1 }

it('commits with the rows recorded before and by it, and answers the row alone', async () => {
  let row: unknown
  const done = await lab.outcome(async (context) => {
    row = await single(context)
  })
  expect(done).toEqual({ status: 200, reason: 'ok', ...kept })
  expect(row).toEqual({ text: 'kept' })
})

it('with many rows answers the first, and records once', async () => {
  const many = sql`noted as (insert into note (text) select 'kept' from generate_series(1, 3) returning text)`
  const done = await lab.outcome((context) => single(context, many))
  expect(done).toEqual({ status: 200, reason: 'ok', ...kept, notes: ['kept', 'kept', 'kept'] })
})

describe('what only the statement finds is in its audit row', () => {
  const found_id = '33333333-3333-4333-8333-333333333333'
  const finding = sql`noted as (${write('kept')} returning text, ${found_id}::uuid as id)`
  const finds = (context: LabContext) =>
    context.single(finding, 'noted', (audit, found) => audit('cell_update', { cell_id: found('id') }))
  const found = { ...own, metadata: { cell_id: found_id } }

  it('alone', async () => {
    expect(await lab.outcome(finds)).toEqual({
      status: 200,
      reason: 'ok',
      ...kept,
      audit: [successRow, found],
    })
  })

  it('behind another statement', async () => {
    const done = await lab.outcome(async (context) => {
      await context.db.run(write('first'))
      await finds(context)
    })
    expect(done).toMatchObject({ status: 200, notes: ['first', 'kept'], audit: [successRow, found] })
  })

  it('where audit rows cannot be written', async () => {
    await lab.admin.query('alter function audit_write rename to audit_write_away')
    try {
      expect(await lab.outcome(finds)).toMatchObject({ status: 200, notes: ['kept'], audit: [] })
      expect(lab.captured.lines().findLast(({ event }) => event === 'audit_rows_lost')).toMatchObject({
        rows: 2,
      })
    } finally {
      await lab.admin.query('alter function audit_write_away rename to audit_write')
    }
    expect(await lab.outcome(finds)).toMatchObject({ audit: [successRow, found] })
  })

  it('but not of a statement that others share', async () => {
    const write = { statement: () => finding, max: 2 }
    const done = await lab.outcome((context) =>
      context.single(finding, 'noted', (audit, found) => audit('cell_update', { cell_id: found('id') }), {
        write,
        key: 1,
      }),
    )
    expect(done).toEqual({ status: 500, reason: 'internal_error', ...undone })
  })
})

describe('without a row', () => {
  const none = sql`noted as (insert into note (text) select 'none' where false returning text)`

  it('a refusal leaves only what was recorded before', async () => {
    const refuses = async (context: LabContext) => {
      if (!(await single(context, none))) throw refusal('cell_not_found')
    }
    expect(await lab.outcome(refuses)).toEqual({ status: 404, reason: 'cell_not_found', ...undone })
  })

  it('the work goes on in a transaction, in which another single is an ordinary statement', async () => {
    const goesOn = async (context: LabContext) => {
      await single(context, none)
      await context.db.run(write('first'))
      await single(context)
    }
    expect(await lab.outcome(goesOn)).toMatchObject({ status: 200, ...kept, notes: ['first', 'kept'] })
    await lab.reset()
    const fails = async (context: LabContext) => {
      await goesOn(context)
      throw new Error('unexpected')
    }
    const audit = [failureRow, { ...failureRow, metadata: { cell_id: other } }]
    expect(await lab.outcome(fails)).toEqual({ status: 500, reason: 'internal_error', ...undone, audit })
  })
})

describe('is undone, and leaves the rows recorded before as failures, if', () => {
  it.each([
    ['it fails', sql`noted as (select 1 / (select count(*) from note) as text)`],
    ['its commit fails', noted('refuse')],
  ])('%s', async (_what, statement) => {
    const done = await lab.outcome((context) => single(context, statement))
    expect(done).toEqual({ status: 500, reason: 'internal_error', ...undone })
  })

  it('its conflict stays', async () => {
    const done = await lab.outcome((context) => single(context, noted('conflict')))
    expect(done).toEqual({ status: 503, reason: 'service_unavailable', ...undone, runs: 2 })
  })

  it('it takes too long', async () => {
    const slow = sql`noted as (select pg_sleep(60)::text as text)`
    const done = await lab.outcome((context) => single(context, slow))
    expect(done).toEqual({ status: 504, reason: 'timeout', ...undone })
  })
})

it('leaves no failure rows if the connection ends, since it may be committed', async () => {
  const done = await lab.outcome((context) => single(context, noted('die')))
  expect(done).toEqual({ status: 503, reason: 'service_unavailable', ...undone, audit: [] })
})

describe('once committed', () => {
  it.each<[what: string, next: (context: LabContext) => unknown]>([
    ['an exception', () => Promise.reject(new Error('unexpected'))],
    ['a conflict', () => Promise.reject(Object.assign(new Error('again'), { code: '40001' }))],
    ['another statement', ({ db }) => db.run(write('more'))],
    ['another row', ({ audit }) => audit('cell_update', { cell_id: other })],
    ['another of its kind', (context) => single(context)],
  ])('%s fails, and undoes nothing', async (_what, next) => {
    const done = await lab.outcome(async (context) => {
      await single(context)
      await next(context)
    })
    expect(done).toEqual({ status: 500, reason: 'internal_error', ...kept })
  })
})

it('without the account of an actor only the notification to that actor is lost', async () => {
  const socket = await openSocket(lab.test.url, { cookie: lab.ada.cookie })
  const revoked = { role_grant_id: other, role: 'admin', scope_id: null }
  const notifies = async (context: LabContext) => {
    await single(context)
    await lab.admin.query('alter table actor rename to actor_away')
    context.notify({ actor_id: lab.ada.actor_id }, 'role_grant_revoke', { ...revoked, reason: 'lost' })
    context.notify(lab.ada.id, 'role_grant_revoke', { ...revoked, reason: 'heard' })
  }
  lab.work = notifies
  const { status } = await lab
    .reply()
    .finally(() => lab.admin.query('alter table actor_away rename to actor'))
  expect([status, await lab.notes(), await lab.audited(), lab.effects]).toEqual([
    200,
    kept.notes,
    kept.audit,
    kept.effects,
  ])
  expect(await socket.next()).toMatchObject({ params: { reason: 'heard' } })
  expect(lab.captured.lines().findLast(({ event }) => event === 'effect_failed')).toMatchObject({
    msg: 'an effect after commit failed',
  })
})

it('does not commit a transaction that it joins', async () => {
  const { service } = lab.test
  const joins = service.transaction({ event: 'cell_update' }, async (outer) => {
    await service.transaction({ event: 'cell_update', within: outer }, async (inner) => {
      const row = await inner.single(noted('joined'), 'noted', (audit) =>
        audit('cell_update', { cell_id: other }),
      )
      expect(row).toEqual({ text: 'joined' })
    })
    throw new Error('undone')
  })
  await expect(joins).rejects.toThrow('undone')
  expect([await lab.notes(), await lab.audited()]).toEqual([[], [{ ...own, outcome: 'failure' }]])
})

it('does not commit a handler that makes a cell on its way', async () => {
  const fails = async (context: LabContext) => {
    await cells.create(context, { data: {} })
    await context.db.run(write('after'))
    throw new Error('undone')
  }
  const audit = [failureRow, { ...failureRow, event_type: 'cell_create', metadata: expect.anything() }]
  expect(await lab.outcome(fails)).toEqual({ status: 500, reason: 'internal_error', ...undone, audit })
  expect((await lab.admin.query('select from cell')).rowCount).toBe(0)
})

it('leaves its connection as read-only for queries as it was', async () => {
  await lab.answer((context) => single(context))
  const { db } = lab.test.service.app
  await expect(db.readOnly.rows(write('written by a query'))).rejects.toThrow('A query cannot write')
  expect(await lab.notes()).toEqual(['kept'])
})

it('work that finds the service unavailable after the commit is not told that nothing was done', async () => {
  lab.work = async (context) => {
    await single(context)
    throw refusal('service_unavailable')
  }
  const { status, json } = await lab.reply()
  expect([status, json]).toMatchObject([
    503,
    { error: { data: { reason: 'service_unavailable', outcome: 'unknown' } } },
  ])
  expect([await lab.notes(), await lab.audited(), lab.effects]).toEqual([
    kept.notes,
    kept.audit,
    kept.effects,
  ])
})

it('a statement that is under way at the time limit may be committed, and its caller is told so', async () => {
  await lab.admin.query('begin; lock table note in exclusive mode')
  onTestFinished(async () => void (await lab.admin.query('rollback')))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  lab.work = async (context) => await single(context)
  const reply = lab.reply()
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await expect.poll(async () => (await lab.admin.query(waiting)).rowCount).toBe(1)
  vi.advanceTimersByTime(30_000)
  const { status, json } = await reply
  expect([status, json]).toMatchObject([503, { error: { data: { outcome: 'unknown' } } }])
  await lab.admin.query('commit')
  await expect.poll(lab.notes).toEqual(kept.notes)
})
