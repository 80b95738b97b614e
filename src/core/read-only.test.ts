import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, reasonOf, rpc } from '../../test/helpers/http.ts'
import { openDatabase, type ReadOnly, type Sql, sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import { mutation, query } from './declare.ts'

/** A query cannot write, whatever its handler sends and whatever its connection was used for before. */

type Reading = (db: ReadOnly) => Promise<unknown>
let read: Reading = async () => null
const auth = { account: 'required', actor: 'required' } as const
const actions = {
  look: query({
    doc: 'Does what the test says.',
    auth,
    output: z.unknown(),
    handler: async (_input, { db }) => (await read(db)) ?? null,
  }),
  put: mutation({
    doc: 'Writes a note.',
    auth,
    event: 'cell_update',
    output: z.null(),
    async handler(_input, { db }) {
      await db.run(insert)
      return null
    },
  }),
}
const insert = sql`insert into note values ('written')`
const insertReturning = sql`insert into note values ('written') returning text`

const captured = capturedLog()
let test: TestService
let ada: TestAccount
beforeAll(async () => {
  // Only two connections, so that queries and mutations share them.
  test = await testService({ actions, log: captured.log, database_pool_max: 2 })
  ada = await test.account({ roles: ['admin'] })
  await db().run(sql`create table note (text text)`)
  await db().run(sql`create function put_note() returns text language sql as $$
    insert into note values ('written') returning text $$`)
})
afterAll(() => test.close())
beforeEach(() => db().run(sql`truncate note`))

const db = () => test.service.app.db
const notes = async () => (await db().rows(sql`select from note`)).length
const ask = async (method: 'look' | 'put', by: Reading = read) => {
  read = by
  return reasonOf(await rpc(test.url, call(method), { cookie: ada.cookie }))
}

const writes: [what: string, statement: Sql][] = [
  ['an insert', insertReturning],
  ['a function that writes', sql`select put_note()`],
  ['a with clause that writes', sql`with made as (${insertReturning}) select * from made`],
  ['a row lock', sql`select from account for update`],
  ['a change of the schema', sql`create table more (id int)`],
]
const ways: [way: string, by: (statement: Sql) => Reading][] = [
  ['rows', (statement) => (db) => db.rows(statement)],
  ['first', (statement) => (db) => db.first(statement)],
  ['point', (statement) => (db) => db.point(statement)],
]

describe.each(ways)('a query that sends by %s', (_way, by) => {
  it.each(writes)('%s is refused, and the log says why', async (_what, statement) => {
    const before = captured.lines().length
    expect(await ask('look', by(statement))).toBe('internal_error')
    expect(await notes()).toBe(0)
    const line = captured
      .lines()
      .slice(before)
      .find(({ msg }) => msg === 'a request failed unexpectedly')
    expect(line).toMatchObject({
      level: 'error',
      err: { message: expect.stringContaining('A query cannot write: declare the method with mutation()') },
    })
  })

  it('a read is answered', async () => {
    expect(await ask('look', by(sql`select count(*)::int as n from account`))).toBe('ok')
  })
})

it('queries stay read-only on connections that mutations and writing statements share with them', async () => {
  const outcomes: string[] = []
  const rounds = Array.from({ length: 30 }, async (_, nth) => {
    await delay(nth % 5)
    if (nth % 3 === 0) return await db().run(insert)
    if (nth % 3 === 1)
      return await db()
        .run(sql`select 1 / 0`)
        .catch(() => {})
    outcomes.push(String(await ask(nth % 2 ? 'look' : 'put', (it) => it.rows(insertReturning))))
  })
  await Promise.all(rounds)
  // Ten by db.run, five by the mutation, none by the query.
  expect(outcomes.toSorted()).toEqual([...Array(5).fill('internal_error'), ...Array(5).fill('ok')])
  expect(await notes()).toBe(15)
})

it('a writing statement leaves its connection read-only, also where it fails or is cut off', async () => {
  const small = openDatabase({
    connection: { connectionString: test.databaseUrl },
    poolMax: 1,
    statementTimeoutMs: 1_000,
    onError: () => {},
  })
  const isReadOnly = async () =>
    (await small.readOnly.first<{ on: string }>(sql`select current_setting('transaction_read_only') as on`))
      ?.on
  const endings: Sql[] = [
    insert,
    sql`select 1 / 0`,
    sql`select pg_sleep(60)`,
    sql`vacuum note`,
    sql`select pg_terminate_backend(pg_backend_pid())`,
  ]
  for (const statement of endings) {
    await small.run(statement).catch(() => {})
    expect(await isReadOnly()).toBe('on')
  }
  await small.transaction((tx) => tx.run(insert))
  expect([await isReadOnly(), await notes()]).toEqual(['on', 2])
  await small.close()
})

it('a transaction that a query begins on a connection holds no write of others', async () => {
  expect(await ask('look', (it) => it.rows(sql`begin read write`))).toBe('ok')
  await db().run(insert)
  const other = new pg.Client(test.databaseUrl)
  await other.connect()
  onTestFinished(() => other.end())
  expect((await other.query('select from note')).rowCount).toBe(1)
})

it('a transaction that a query begins on a connection keeps no credential alive', async () => {
  const bob = await test.account()
  expect(await ask('look', (it) => it.point(sql`begin isolation level repeatable read`))).toBe('ok')
  await bob.client.account_verify()
  await db().run(sql`delete from auth_session where account_id = ${bob.id}::uuid`)
  await expect(bob.client.account_verify()).rejects.toMatchObject({ status: 401 })
})

it('a query of the service that numbers the log on its way still does', async () => {
  await ask('put')
  await ada.client.cell_create({ data: {} })
  const { events } = await ada.client.audit_log_list({ limit: 1 })
  expect(events).toMatchObject([{ event_type: 'cell_create', seq: expect.any(Number) }])
})
