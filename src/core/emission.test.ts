import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { type LabContext, mutationLab, successRow, write } from '../../test/helpers/mutation-lab.ts'
import { rival } from '../../test/helpers/race.ts'
import { sql } from '../db/db.ts'
import { refusal } from '../errors.ts'

/** A mutation commits even if its audit rows are lost. */

const lab = await mutationLab()
afterAll(() => lab.close())
beforeEach(async () => {
  await lab.reset()
  await lab.admin.query('truncate audit_loss')
})

const keep = async ({ db }: LabContext) => db.run(write('kept'))
const keepAlone = async ({ single }: LabContext) =>
  single(sql`kept as (${write('kept')} returning text)`, 'kept', () => {})
const ways = [
  ['in a transaction', keep],
  ['as one statement', keepAlone],
] as const
const kept = { status: 200, reason: 'ok', notes: ['kept'], effects: ['effect'] }

/**
 * Starts counting; the returned function resolves to the losses since then, by the counters, the log and the database.
 */
function losses() {
  const { audit } = lab.test.service.app
  const [failures, lost] = [audit.failures, audit.lost]
  const lines = lab.captured.lines().length
  return async () => {
    await audit.flush()
    const { rows } = await lab.admin.query('select lost_rows::int, cause from audit_loss')
    const logged = lab.captured.lines().slice(lines)
    return {
      failures: audit.failures - failures,
      lost: audit.lost - lost,
      logged: logged.filter(({ msg }) => String(msg).startsWith('audit rows could not be written')),
      stored: rows,
    }
  }
}

/** One lost row of the lab's mutation, with this cause. */
const oneLost = (cause: string) => ({
  failures: 1,
  lost: 1,
  logged: [
    {
      level: 'error',
      failure: expect.stringContaining(cause),
      rows: 1,
      lost: [
        {
          event_type: 'cell_update',
          outcome: 'success',
          actor_id: lab.ada.actor_id,
          account_id: lab.ada.id,
          target_actor_id: null,
          target_account_id: null,
        },
      ],
    },
  ],
  stored: [{ lost_rows: 1, cause: expect.stringContaining(cause) }],
})

describe('while another session holds a lock on the audit log', () => {
  it.each(ways)(
    'a mutation commits %s after a short wait; a loss is logged, counted, stored',
    async (_way, keep) => {
      const other = await rival(lab.test.databaseUrl)
      await other.begin('lock table audit_inbox in access exclusive mode')
      const since = losses()
      expect(await lab.answer(keep)).toEqual({ status: 200, reason: 'ok' })
      expect(await since()).toMatchObject(oneLost('55P03'))
      await other.commit()
      await other.close()
      expect([await lab.notes(), lab.effects, lab.runs, await lab.audited()]).toEqual([
        ['kept'],
        ['effect'],
        1,
        [],
      ])
    },
  )

  it('a refusal and a failure give their usual answers', async () => {
    const other = await rival(lab.test.databaseUrl)
    await other.begin('lock table audit_inbox in access exclusive mode')
    const throws = (error: Error) => lab.answer(() => Promise.reject(error))
    expect(await throws(refusal('cell_not_found'))).toEqual({ status: 404, reason: 'cell_not_found' })
    expect(await throws(new Error('unexpected'))).toEqual({ status: 500, reason: 'internal_error' })
    await other.commit()
    await other.close()
  })

  it('a lock that is released soon loses no row', async () => {
    const other = await rival(lab.test.databaseUrl)
    await other.begin('lock table audit_inbox in access exclusive mode')
    expect(await other.release(lab.answer(keep))).toEqual({ status: 200, reason: 'ok' })
    await other.close()
    expect(await lab.audited()).toEqual([successRow])
  })
})

describe('where the function that writes is', () => {
  const away = 'alter function audit_write(json) rename to away'
  const back = 'alter function away(json) rename to audit_write'
  const replaced = (body: string) => `${away};
    create function audit_write(entries json) returns text language plpgsql as $$ begin ${body} end $$`
  const undo = 'drop function if exists audit_write(json)'

  const damages = [
    ['missing', away, 'does not exist'],
    ['broken', replaced(`raise exception 'broken by hand';`), 'broken by hand'],
    ['cancelled', replaced(`raise exception using errcode = 'query_canceled';`), 'timeout'],
    ['in conflict', replaced(`raise exception 'again' using errcode = '40001';`), 'again'],
  ] as const
  it.each(damages.flatMap((damage) => ways.map((way) => [...damage, ...way] as const)))(
    '%s, a mutation commits: run once more at first, then at once, and whole when it is back (%s, %s, %s)',
    async (_what, damage, cause, _way, keep) => {
      await lab.admin.query(damage)
      let since = losses()
      expect(await lab.outcome(keep)).toEqual({ ...kept, audit: [], runs: 2 })
      expect(await since()).toMatchObject(oneLost(cause))
      await lab.reset()
      await lab.admin.query('truncate audit_loss')
      since = losses()
      expect(await lab.outcome(keep)).toEqual({ ...kept, audit: [], runs: 1 })
      expect(await since()).toMatchObject(oneLost(cause))
      await lab.reset()
      await lab.admin.query(`${undo}; ${back}`)
      since = losses()
      for (const notes of [['kept'], ['kept', 'kept']])
        expect(await lab.outcome(keep)).toMatchObject({ status: 200, notes, runs: notes.length })
      expect(await lab.audited()).toEqual([successRow, successRow])
      expect(await since()).toMatchObject({ failures: 0, lost: 0 })
    },
  )

  it.each(ways)(
    'missing, each of many mutations at once commits its own work once, %s',
    async (_way, keep) => {
      await lab.admin.query(away)
      const since = losses()
      const all = await Promise.all(Array.from({ length: 8 }, () => lab.answer(keep)))
      await lab.admin.query(back)
      expect(all).toEqual(all.map(() => ({ status: 200, reason: 'ok' })))
      expect([(await lab.notes()).length, lab.effects.length]).toEqual([8, 8])
      expect(await since()).toMatchObject({ failures: 8, lost: 8, stored: [{ lost_rows: 8 }] })
    },
  )

  it('missing, a mutation that cannot commit for another reason does not, and is not run again for it', async () => {
    await lab.outcome(keep)
    await lab.reset()
    await lab.admin.query(away)
    const swallows = async ({ db }: LabContext) => {
      await db.run(write('lost'))
      await db.run(sql`select 1 / 0`).catch(() => {})
    }
    const undone = { status: 500, reason: 'internal_error', notes: [], audit: [], effects: [] }
    expect(await lab.outcome(swallows)).toEqual({ ...undone, runs: 1 })
    expect(await lab.outcome(async ({ db }) => db.run(write('refuse')))).toEqual({ ...undone, runs: 3 })
    await lab.admin.query(back)
  })

  it('somebody else’s, whatever it answers, a mutation commits and its rows count as lost', async () => {
    for (const answer of [`'fine'`, `'null'`, `'{"lost": "all"}'`]) {
      await lab.admin.query(replaced(`return ${answer};`))
      const since = losses()
      expect(await lab.answer(keep)).toEqual({ status: 200, reason: 'ok' })
      expect(await since()).toMatchObject({ failures: 1, lost: 1 })
      await lab.admin.query(`${undo}; ${back}`)
    }
  })
})

it('a loss that cannot be stored at once is stored with the next or at the end', async () => {
  await lab.admin.query('alter table audit_inbox add constraint broken check (false) not valid')
  await lab.admin.query('alter table audit_loss rename to away')
  const since = losses()
  await lab.answer(keep)
  await lab.test.service.app.audit.flush()
  await lab.admin.query(
    'alter table away rename to audit_loss; alter table audit_inbox drop constraint broken',
  )
  expect(await since()).toMatchObject({
    lost: 1,
    stored: [{ lost_rows: 1, cause: expect.stringMatching(/^23514 /) }],
  })
})

it('losses add up while they go on, and begin anew after a week without', async () => {
  await lab.admin.query('alter table audit_inbox add constraint broken check (false) not valid')
  const since = losses()
  for (let nth = 0; nth < 2; nth++) await lab.answer(keep)
  expect((await since()).stored).toMatchObject([{ lost_rows: 2 }])
  await lab.admin.query(
    `update audit_loss set since = now() - interval '9 days', last_at = now() - interval '8 days'`,
  )
  await lab.answer(keep)
  expect((await since()).stored).toMatchObject([{ lost_rows: 1 }])
  const { rows } = await lab.admin.query(`select since > now() - interval '1 hour' as fresh from audit_loss`)
  await lab.admin.query('alter table audit_inbox drop constraint broken')
  expect(rows).toEqual([{ fresh: true }])
})
