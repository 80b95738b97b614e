import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { call, dataOf, rpc } from '../../test/helpers/http.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { shell } from '../../test/helpers/shell.ts'
import { stoppedPair } from '../../test/helpers/stoppable-cluster.ts'
import { mutation } from '../core/declare.ts'
import { sql } from './db.ts'

/** A primary whose commits wait for its standby. */
const { primary, standby } = await stoppedPair()
afterAll(() => Promise.all([standby.remove(), primary.remove()]))
await primary.start()
await standby.start()

const admin = new pg.Client(primary.url)
await admin.connect()
afterAll(() => admin.end())
// The warning must arrive even so.
await admin.query('alter role current_user set client_min_messages = error')

const act = mutation({
  doc: 'Writes by two statements, and warns.',
  auth: { account: 'required', actor: 'required' },
  event: 'cell_update',
  output: z.null(),
  async handler(_input, { db }) {
    await db.run(sql`insert into note values (1)`)
    await db.run(sql`insert into note values (2)`)
    return null
  },
})
const test = await serviceForFile({ database_url: primary.url, actions: { act } })
const ada = await test.account()
await admin.query(`
  create table note (n int);
  create function warns() returns trigger language plpgsql as $$ begin raise warning 'noted'; return null; end $$;
  create constraint trigger at_commit after insert on note deferrable initially deferred
    for each row execute function warns()`)
await admin.query(`alter system set synchronous_standby_names = 'standby'`)
await admin.query('select pg_reload_conf()')

const waiting = `select pid from pg_stat_activity where wait_event = 'SyncRep'`
const answer = (method: string, params = {}) => rpc(test.url, call(method, params), { cookie: ada.cookie })

it('a commit that the standby has not confirmed is no success, whichever way it was sent', async () => {
  expect(await answer('cell_create', { data: { n: 1 } })).toMatchObject({ status: 200 })
  expect(await answer('act')).toMatchObject({ status: 200 })
  await standby.freeze()
  for (const [method, params] of [
    ['cell_create', { data: { n: 2 } }],
    ['act', {}],
  ] as const) {
    const reply = answer(method, params)
    await expect.poll(async () => (await admin.query(waiting)).rowCount).toBe(1)
    await admin.query(`select pg_cancel_backend(pid) from (${waiting}) one`)
    const { status } = await reply
    expect([method, status, dataOf(await reply)]).toEqual([
      method,
      503,
      { reason: 'service_unavailable', retry_after: expect.any(Number), outcome: 'unknown' },
    ])
  }
  await standby.thaw()
  // On this server both are committed, and neither has a row that says it failed.
  await expect.poll(async () => (await answer('act')).status).toBe(200)
  const { rows } = await admin.query(`
    select (select count(*) from cell)::int as cells, (select count(*) from note)::int as notes,
      (select count(*) from audit_entries() where outcome = 'failure')::int as failures`)
  expect(rows).toEqual([{ cells: 2, notes: 6, failures: 0 }])
})

it('a command says that its outcome is unknown, and a backup waits for no standby', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'ck-unconfirmed-'))
  onTestFinished(() => rm(dir, { recursive: true }))
  await standby.freeze()
  onTestFinished(() => standby.thaw())
  const cellkeep = shell({ CELLKEEP_DATABASE_URL: primary.url }, dir)
  const creating = cellkeep(['account', 'create', '--username', 'grace'], 'correct horse battery')
  await expect.poll(async () => (await admin.query(waiting)).rowCount).toBe(1)
  await admin.query(`select pg_cancel_backend(pid) from (${waiting}) one`)
  const { code, stderr } = await creating
  expect([code, stderr]).toEqual([3, expect.stringContaining('It is unknown whether it was done')])
  expect(await cellkeep(['backup', 'all'])).toMatchObject({ code: 0 })
  expect((await admin.query(waiting)).rowCount).toBe(0)
})
