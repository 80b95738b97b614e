import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { call, type Reply, rpc, send } from '../../test/helpers/http.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { query } from '../core/declare.ts'
import { sql } from '../db/db.ts'
import { testService } from '../testing/index.ts'

const open = { account: 'none', actor: 'none' } as const
const actions = {
  still: query({ doc: 'Needs no database.', auth: open, output: z.int(), handler: async () => 1 }),
  sleeps: query({
    doc: 'Is in the database for long.',
    auth: open,
    output: z.null(),
    async handler(_input, { db }) {
      await db.rows(sql`select pg_sleep(60)`)
      return null
    },
  }),
}

const cluster = await stoppableCluster()
const metrics = new Registry()
const test = await testService({
  database_url: cluster.url,
  metrics,
  actions,
  // A database that does not respond is given up 5 s after this timeout.
  statement_timeout_ms: 1500,
  bootstrap: 'live',
  bootstrap_token_path: '/dev/null/none',
})
const ada = await test.account()
afterAll(async () => {
  await test.close()
  await cluster.remove()
})

const signedIn = () => ({ cookie: ada.cookie })
const rest = (path: string, method = 'GET', body?: unknown) =>
  send(test.url, { path: `/api/account/${path}`, method, body, headers: signedIn() })
const get = (method: string) =>
  send(test.url, { path: `/api/rpc?method=${method}&id=7`, headers: signedIn() })
const retry_after = expect.any(Number)
const envelope = (id: unknown, outcome?: 'none') => ({
  jsonrpc: '2.0',
  id,
  error: {
    code: -32007,
    message: 'The service is not available; retry later.',
    data: { reason: 'service_unavailable', retry_after, ...(outcome && { outcome }) },
  },
})
const flat = { error: 'service_unavailable', retry_after }
const unwritten = { ...flat, outcome: 'none' }
const login = { username: 'ada', password: 'whatever it is' }

/** Every kind of request that needs the database, with the expected body. */
const asking: [what: string, ask: () => Promise<Reply>, body: unknown][] = [
  ['an RPC read', () => rpc(test.url, call('account_session_list', {}, 'a'), signedIn()), envelope('a')],
  ['an RPC read that resolves the actor', () => rpc(test.url, call('cell_list'), signedIn()), envelope(1)],
  ['an anonymous RPC read', () => rpc(test.url, call('cell_list')), envelope(1)],
  [
    'an RPC mutation',
    () => rpc(test.url, call('cell_create', { data: {} }), signedIn()),
    envelope(1, 'none'),
  ],
  ['an RPC read by GET', () => get('account_session_list'), envelope(7)],
  ['verify', () => rest('verify'), flat],
  ['status', () => rest('status'), flat],
  ['logout', () => rest('logout', 'POST'), unwritten],
  ['login', () => rest('login', 'POST', login), unwritten],
  ['password', () => rest('password', 'POST', {}), unwritten],
  ['bootstrap', () => rest('bootstrap', 'POST', { token: 'x', ...login }), unwritten],
]

/** Sends all of them at once and expects 503 answers that leave the cookie alone. */
async function expectUnavailable(): Promise<void> {
  const replies = await Promise.all(
    asking.map(async ([what, ask, body]) => ({ what, reply: await ask(), body })),
  )
  for (const { what, reply, body } of replies) {
    expect({ what, status: reply.status, body: reply.json }).toEqual({ what, status: 503, body })
    expect(reply.headers).not.toHaveProperty('set-cookie')
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0)
  }
}

/** Only mutations say that they wrote nothing, also where reads share the statement that fails. */
async function expectOutcomesOfMutations(): Promise<void> {
  const mutate = () => rpc(test.url, call('cell_create', { data: {} }), signedIn())
  const read = () => rpc(test.url, call('cell_list'), signedIn())
  const pairs = await Promise.all(Array.from({ length: 20 }, () => Promise.all([mutate(), read()])))
  for (const [mutated, seen] of pairs)
    expect([mutated.json, seen.json]).toEqual([envelope(1, 'none'), envelope(1)])
}

async function expectAvailable(): Promise<void> {
  await expect.poll(async () => (await rest('status')).status).toBe(200)
  const replies = await Promise.all([
    rpc(test.url, call('account_session_list'), signedIn()),
    rpc(test.url, call('cell_create', { data: {} }), signedIn()),
    rest('verify'),
  ])
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
}

describe('while the database is stopped', () => {
  beforeAll(() => cluster.stop())

  it('every surface answers 503 in its own shape, and no cookie is cleared', expectUnavailable)

  it('a batch has the refusal at the place of each entry, and goes on', async () => {
    const { status, json } = await rpc(
      test.url,
      [call('cell_list', {}, 1), call('still', {}, 2), {}, call('account_verify', {}, 3)],
      signedIn(),
    )
    expect(status).toBe(200)
    expect(json).toMatchObject([envelope(1), { id: 2, result: 1 }, { error: { code: -32600 } }, envelope(3)])
  })

  it('what needs no database is answered', async () => {
    expect((await send(test.url, { path: '/health' })).status).toBe(200)
    expect((await rpc(test.url, call('still'), signedIn())).status).toBe(200)
    expect((await rpc(test.url, call('nothing'), signedIn())).status).toBe(404)
    expect((await rpc(test.url, call('account_verify'))).status).toBe(401)
  })

  it('readiness says so', async () => {
    const ready = () => send(test.url, { path: '/ready' })
    await expect.poll(async () => (await ready()).json).toEqual({ error: 'db_unreachable' })
    expect((await ready()).status).toBe(503)
    expect(await metrics.metrics()).toContain('cellkeep_readiness{reason="db_unreachable"} 1')
  })

  it('and after it is back, everything goes on without a restart, sessions included', async () => {
    await cluster.start()
    await expectAvailable()
    await expect.poll(async () => (await send(test.url, { path: '/ready' })).json).toEqual({ ready: true })
  })
})

describe('a database that goes away', () => {
  beforeEach(expectAvailable)

  it('in the middle of a statement is a 503 for the waiting client', async () => {
    // Its statements may take ten seconds.
    await using patient = await testService({ database_url: cluster.url, actions })
    const waiting = rpc(patient.url, call('sleeps'))
    await expect.poll(async () => (await test.service.app.db.point(sleepers)).length).toBe(1)
    await cluster.stop()
    expect(await waiting).toMatchObject({ status: 503, json: envelope(1) })
    await cluster.start()
  })

  it('by no longer responding is a 503 in the end, and has no lasting effect', async () => {
    await cluster.freeze()
    try {
      await Promise.all([expectUnavailable(), expectOutcomesOfMutations()])
    } finally {
      await cluster.thaw()
    }
    await expectAvailable()
  })
})

const sleepers = sql`select from pg_stat_activity where query like '%pg_sleep(60)%' and state = 'active' and pid <> pg_backend_pid()`
