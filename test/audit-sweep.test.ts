import { afterAll, describe, expect, it } from 'vitest'
import { actions } from '../src/actions.ts'
import type { AuditRow } from '../src/audit/audit.ts'
import type { Method } from '../src/core/method.ts'
import { sql } from '../src/db/db.ts'
import { type BuiltinEventType, events } from '../src/events.ts'
import type { TestAccount } from '../src/testing/index.ts'
import { sessionIn } from './helpers/account-routes.ts'
import { bootstrapTest } from './helpers/bootstrap.ts'
import { doEverything, mark } from './helpers/everything.ts'
import { call, rpc } from './helpers/http.ts'

/** Rules for every audit row that a method, route or operation writes. */

const bootstraps = bootstrapTest()
const test = await doEverything(bootstraps)
const rows = await test.service.app.db.rows<AuditRow>(sql`
  select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata
  from audit_entries() order by written`)
afterAll(() => test.close())

describe('no row is left', () => {
  const written = async () => (await test.service.app.db.rows(sql`select from audit_entries()`)).length
  const nobody = '00000000-0000-4000-8000-00000000dead'
  const writing = Object.entries(actions as Record<string, Method>)
    .filter(([, action]) => action.side_effects)
    .map(([method]) => method)

  it('by a schema failure, a guard or an unknown method, of any method that writes', async () => {
    const [admin, plain] = [await test.account({ roles: ['admin'] }), await test.account()]
    const before = await written()
    for (const method of [...writing, 'nothing']) {
      const wrong = call(method, { [mark]: mark })
      const batch = Array.from({ length: 5 }, () => wrong)
      expect((await rpc(test.url, wrong)).status).toBeGreaterThanOrEqual(400)
      for (const { cookie } of [admin, plain]) {
        const { json } = await rpc(test.url, batch, { cookie })
        for (const answer of json as { error?: unknown }[]) expect(answer).toHaveProperty('error')
      }
    }
    expect(await written()).toBe(before)
  })

  it('by an id that is unknown or another’s, and by a call that changes nothing', async () => {
    const [admin, ada, bob] = await Promise.all([
      test.account({ roles: ['admin'] }),
      test.account(),
      test.account(),
    ])
    const { cell } = await bob.client.cell_create({ data: {} })
    const { id } = await bob.client.account_token_create({
      scope: { kind: 'full' },
      lifetime: { kind: 'eternal' },
    })
    const before = await written()
    const calls: [string, object, TestAccount?][] = [
      ['account_session_revoke', { session_id: sessionIn(bob.cookie) }],
      ['account_token_revoke', { token_id: id }],
      ['role_grant_offer_accept', { offer_id: nobody }],
      ['role_grant_offer_decline', { offer_id: nobody }],
      ['role_grant_offer_retract', { offer_id: nobody }],
      ['role_grant_revoke', { actor_id: ada.actor_id, role_grant_id: nobody }, admin],
      ['cell_update', { cell_id: cell.id, data: {} }],
      ['cell_delete', { cell_id: cell.id }],
      ['cell_clone', { source_id: cell.id }],
      ['cell_grant_revoke', { grant_id: nobody }],
      ['self_service_role_set', { role: 'teacher', enabled: false }],
      ['app_settings_update', { open_signup: true }, admin],
    ]
    for (const [method, params, { cookie } = ada] of calls)
      await rpc(test.url, call(method, params), { cookie })
    expect(await written()).toBe(before)
  })
})

describe('after a run of everything that is audited', () => {
  it('every event of the service has left a success row (otherwise: cause it in test/helpers/everything.ts)', () => {
    const left = new Set(rows.filter(({ outcome }) => outcome === 'success').map((row) => row.event_type))
    expect(Object.keys(events).filter((type) => !left.has(type))).toEqual([])
  })

  it('every refusal that is recorded has left a failure row (otherwise: the same)', () => {
    const left = new Set(rows.filter(({ outcome }) => outcome === 'failure').map((row) => row.event_type))
    const declared = Object.keys(events).filter((type) => 'failure' in events[type as BuiltinEventType])
    expect(declared.filter((type) => !left.has(type))).toEqual([])
  })

  it('every row has exactly the keys of its type', () => {
    const { events: types } = test.service.app.registry
    expect(rows.flatMap((row) => types.flaw(row) ?? [])).toEqual([])
    expect(test.service.app.audit.flaws + test.service.app.audit.failures).toBe(0)
  })

  it('rows of operations name `via`, and rows of callers do not', () => {
    // Routes used while signed out have no account, but are calls. The sweep writes in the name of the grantor, without
    // `via`.
    const signedOut = new Set(['login', 'signup', 'bootstrap', 'password_reset'])
    for (const row of rows) {
      const isCalled = row.account_id !== null || signedOut.has(row.event_type)
      expect([row.event_type, row.metadata?.via === undefined]).toEqual([row.event_type, isCalled])
    }
  })

  it('both ids of a pair are of one account', async () => {
    const pairs = await test.service.app.db.rows(sql`
      select event_type from audit_entries() l
      left join actor a on a.id = l.actor_id left join actor t on t.id = l.target_actor_id
      where (l.actor_id is not null and l.account_id is null)
        or (l.target_actor_id is not null and l.target_account_id is null)
        or a.account_id <> l.account_id or t.account_id <> l.target_account_id`)
    expect(pairs).toEqual([])
  })

  it('no row holds a name, address, message, reason, secret or typed text, except those of the purged account', () => {
    const telling = rows.filter((row) => JSON.stringify(row).includes(mark))
    expect(telling.map(({ event_type }) => event_type)).toEqual(['account_purge'])
  })
})
