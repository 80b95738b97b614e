import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { clearAudit } from '../../test/helpers/audit-rows.ts'
import { call, reasonOf, rpc } from '../../test/helpers/http.ts'
import type { AuditRow } from '../audit/audit.ts'
import { sql } from '../db/db.ts'
import { ServiceError } from '../errors.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import type { EventsOf } from '../wire/consumer.ts'
import { mutation } from './declare.ts'
import { recorded, type Work } from './mutate.ts'

/** The rows that a mutation recorded before it was refused or rolled back are in the audit log, as failures. */

const audit_events = {
  shelf_move: z.strictObject({ shelf: z.int() }),
  shelf_close: z.strictObject({ shelf: z.int(), reason: z.string().optional() }),
}
declare module '../wire/consumer.ts' {
  interface ConsumerEvents extends EventsOf<typeof audit_events> {}
}

let work: (tools: Work) => Promise<unknown> = async () => {}
let runs = 0
const actions = {
  shelve: mutation({
    doc: 'Does what the test says.',
    auth: { account: 'required', actor: 'required' },
    event: 'shelf_move',
    output: z.null(),
    async handler(_input, tools) {
      runs += 1
      return ((await work(tools)) ?? null) as null
    },
  }),
}

let test: TestService
let ada: TestAccount
let bob: TestAccount
beforeAll(async () => {
  const roles = [{ name: 'teacher', grant_paths: ['system'] }]
  test = await testService({ actions, audit_events, roles })
  ;[ada, bob] = await Promise.all([test.account(), test.account()])
  const run = (text: string) => test.service.app.db.run(sql.raw(text))
  await run('create table shelf (text text)')
  await run(`create function at_commit() returns trigger language plpgsql as $$
    begin
      if new.text = 'refuse' then raise exception 'refused at commit'; end if;
      if new.text = 'conflict' then raise exception 'again' using errcode = '40001'; end if;
      if new.text = 'die' then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(1); end if;
      return null;
    end $$`)
  await run(`create constraint trigger at_commit after insert on shelf deferrable initially deferred
    for each row execute function at_commit()`)
})
afterAll(() => test.close())
beforeEach(async () => {
  runs = 0
  await clearAudit(test)
})

const rows = () =>
  test.service.app.db.rows<AuditRow>(sql`
    select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata
    from audit_entries() order by written`)
const put = ({ db }: Work, text: string) => db.run(sql`insert into shelf values (${text})`)

async function left(by: (tools: Work) => Promise<unknown>) {
  work = by
  const reply = await rpc(test.url, call('shelve'), { cookie: ada.cookie })
  const { failures, flaws } = test.service.app.audit
  expect({ failures, flaws }).toEqual({ failures: 0, flaws: 0 })
  return { reason: reasonOf(reply), rows: await rows() }
}
const failure = (event_type: string, metadata: unknown, target?: TestAccount) => ({
  event_type,
  outcome: 'failure',
  actor_id: ada.actor_id,
  account_id: ada.id,
  target_actor_id: target?.actor_id ?? null,
  target_account_id: target?.id ?? null,
  ip: '127.0.0.1',
  metadata,
})

/** Three rows, of two types, one of them about Bob. */
function emit({ audit }: Work) {
  audit('shelf_close', { shelf: 1 })
  audit('shelf_move', { shelf: 2 }, { target_actor_id: bob.actor_id, target_account_id: bob.id })
  audit('shelf_move', { shelf: 3 })
}
const emitted = () => [
  failure('shelf_close', { shelf: 1 }),
  failure('shelf_move', { shelf: 2 }, bob),
  failure('shelf_move', { shelf: 3 }),
]

describe('all rows of a mutation, in their order and as failures, are left by', () => {
  it.each<[what: string, reason: string, by: (tools: Work) => Promise<unknown>]>([
    ['a refusal', 'shelf_full', () => Promise.reject(new ServiceError(-32050, { reason: 'shelf_full' }))],
    ['an exception', 'internal_error', () => Promise.reject(new Error('unexpected'))],
    ['a result that breaks its declaration', 'internal_error', async () => 1n],
    ['an SQL error', 'internal_error', ({ db }) => db.run(sql`select 1 / 0`)],
    [
      'a time limit',
      'timeout',
      async ({ db }) => {
        await db.run(sql`set local statement_timeout = 50`)
        await db.run(sql`select pg_sleep(60)`)
      },
    ],
    ['a commit that fails', 'internal_error', (tools) => put(tools, 'refuse')],
    [
      'an SQL error that was swallowed',
      'internal_error',
      ({ db }) => db.run(sql`select 1 / 0`).catch(() => null),
    ],
    [
      'a connection that ends',
      'service_unavailable',
      ({ db }) => db.run(sql`select pg_terminate_backend(pg_backend_pid())`),
    ],
  ])('%s', async (_what, reason, by) => {
    const done = await left(async (tools) => {
      emit(tools)
      return await by(tools)
    })
    expect(done).toEqual({ reason, rows: emitted() })
  })

  it('conflicts that stay: those of the last run only', async () => {
    const done = await left(async (tools) => {
      tools.audit('shelf_move', { shelf: runs })
      await put(tools, 'conflict')
    })
    expect(done).toEqual({
      reason: 'service_unavailable',
      rows: [failure('shelf_move', { shelf: 2 })],
    })
  })
})

it('an unexpected end before the event of the method was recorded adds a row of it', async () => {
  const done = await left(async ({ audit }) => {
    audit('shelf_close', { shelf: 1 })
    throw new Error('unexpected')
  })
  const own = [failure('shelf_close', { shelf: 1 }), failure('shelf_move', { reason: 'rolled_back' })]
  expect(done).toEqual({ reason: 'internal_error', rows: own })
})

it('no row is left by a refusal before anything was recorded, nor by a commit with an unknown outcome', async () => {
  const refuses = () => Promise.reject(new ServiceError(-32050, { reason: 'shelf_full' }))
  expect(await left(refuses)).toEqual({ reason: 'shelf_full', rows: [] })
  const dies = async (tools: Work) => {
    emit(tools)
    await put(tools, 'die')
  }
  expect(await left(dies)).toEqual({ reason: 'service_unavailable', rows: [] })
})

describe('recorded()', () => {
  const full = () => new ServiceError(-32050, { reason: 'shelf_full' })

  it('gives a refusal a row of its own, after those that were recorded before it', async () => {
    const done = await left(async (tools) => {
      emit(tools)
      throw recorded('shelf_close', full(), { shelf: 4, reason: 'shelf_full' }, { target_account_id: bob.id })
    })
    const own = { ...failure('shelf_close', { shelf: 4, reason: 'shelf_full' }), target_account_id: bob.id }
    expect(done).toEqual({ reason: 'shelf_full', rows: [...emitted(), own] })
  })

  it('leaves one row in service.transaction, and none where the refusal is caught', async () => {
    const options = { event: 'shelf_move', via: 'shelves' } as const
    const refuses = (): Promise<never> =>
      Promise.reject(recorded('shelf_close', full(), { shelf: 5, reason: 'shelf_full' }))
    await expect(test.service.transaction(options, refuses)).rejects.toMatchObject({
      data: { reason: 'shelf_full' },
    })
    expect(await rows()).toMatchObject([
      { event_type: 'shelf_close', outcome: 'failure', actor_id: null, metadata: { shelf: 5 } },
    ])
    await clearAudit(test)
    expect(await left(() => refuses().catch(() => null))).toEqual({ reason: 'ok', rows: [] })
  })
})

describe('an operator call within a mutation that fails', () => {
  const via = 'shelves'

  it('leaves its rows as failures, too', async () => {
    const done = await left(async (within) => {
      const input = { actor_id: bob.actor_id, role: 'teacher', path: 'system' }
      await test.service.operations.grantRole(input, { via, within })
      throw new ServiceError(-32050, { reason: 'shelf_full' })
    })
    expect(done.reason).toBe('shelf_full')
    expect(done.rows).toMatchObject([
      {
        event_type: 'role_grant_create',
        outcome: 'failure',
        actor_id: null,
        account_id: null,
        target_actor_id: bob.actor_id,
        target_account_id: bob.id,
        metadata: { role: 'teacher', via },
      },
    ])
  })

  it('that refuses itself leaves its own row, by whom the operator named', async () => {
    const done = await left((within) =>
      test.service.operations.deleteAccount(
        { account_id: bob.actor_id },
        { via, within, actor_id: bob.actor_id, account_id: bob.id },
      ),
    )
    expect(done.reason).toBe('account_not_found')
    expect(done.rows).toMatchObject([
      {
        event_type: 'account_delete',
        outcome: 'failure',
        actor_id: bob.actor_id,
        account_id: bob.id,
        ip: null,
        metadata: { reason: 'account_not_found', attempted_account_id: bob.actor_id, via },
      },
    ])
  })
})
