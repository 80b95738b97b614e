import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { clearAudit } from '../../test/helpers/audit-rows.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { call, reasonOf, rpc } from '../../test/helpers/http.ts'
import type { AuditRow } from '../audit/audit.ts'
import { mutation } from '../core/declare.ts'
import type { Work } from '../core/mutate.ts'
import { sql } from '../db/db.ts'
import { type TestAccount, type TestService, testService } from '../testing/index.ts'
import type { EventsOf } from '../wire/consumer.ts'

const audit_events = {
  'team/delete': z.strictObject({ team_id: z.guid(), members: z.int(), cell_id: z.guid().optional() }),
  'team/note': z.strictObject({ note: z.string() }),
  'team/open': null,
  'team/broken': z.record(z.string(), z.string()).refine(() => {
    throw new Error('a schema that throws')
  }),
}

declare module '../wire/consumer.ts' {
  interface ConsumerEvents extends EventsOf<typeof audit_events> {}
}

const team_id = '00000000-0000-4000-8000-000000000001'
const secret = 'a secret of the handler'
let work: (tools: Work) => unknown = () => {}
const actions = {
  team_delete: mutation({
    doc: 'Does what the test says.',
    auth: { account: 'required', actor: 'required' },
    event: 'team/delete',
    output: z.null(),
    async handler(_input, tools) {
      await work(tools)
      return null
    },
  }),
}

const captured = capturedLog()
let test: TestService
let ada: TestAccount
beforeAll(async () => {
  test = await testService({ actions, audit_events, log: captured.log })
  ada = await test.account()
})
afterAll(() => test.close())
beforeEach(() => clearAudit(test))

const rows = () =>
  test.service.app.db.rows<AuditRow>(sql`
    select event_type, outcome, actor_id, account_id, target_actor_id, target_account_id, ip, metadata
    from audit_entries() order by written`)

/** Runs the method with this handler; returns its answer, its rows, and the number of new flaws. */
async function run(handler: (tools: Work) => unknown) {
  work = handler
  const { audit } = test.service.app
  const before = audit.flaws
  const reply = await rpc(test.url, call('team_delete'), { cookie: ada.cookie })
  return { reason: reasonOf(reply), rows: await rows(), flaws: audit.flaws - before }
}
const byAda = () => ({
  actor_id: ada.actor_id,
  account_id: ada.id,
  target_actor_id: null,
  target_account_id: null,
})

describe('an event of a consumer', () => {
  it('is written like one of the service', async () => {
    const metadata = { team_id, members: 2 }
    const done = await run(({ audit }) => {
      audit('team/delete', metadata)
      audit('team/open', null, { target_account_id: ada.id })
    })
    const own = { outcome: 'success', ...byAda(), ip: '127.0.0.1' }
    expect(done).toEqual({
      reason: 'ok',
      flaws: 0,
      rows: [
        { event_type: 'team/delete', ...own, metadata },
        { event_type: 'team/open', ...own, target_account_id: ada.id, metadata: null },
      ],
    })
  })

  it('is in the timeline of the cell that its metadata names', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    await run(({ audit }) => audit('team/delete', { team_id, members: 0, cell_id: cell.id }))
    const { events } = await ada.client.cell_audit_list({ cell_id: cell.id })
    expect(events.map(({ event_type }) => event_type)).toEqual(['team/delete', 'cell_create'])
  })

  it('that is undone leaves one failure row of its type, as recorded so far', async () => {
    const fails = () => {
      throw new Error('unexpected')
    }
    const own = { event_type: 'team/delete', outcome: 'failure', ...byAda(), ip: '127.0.0.1' }
    expect(await run(fails)).toEqual({
      reason: 'internal_error',
      flaws: 0,
      rows: [{ ...own, metadata: { reason: 'rolled_back' } }],
    })
    await clearAudit(test)
    const metadata = { team_id, members: 1 }
    const late = await run(({ audit }) => {
      audit('team/delete', metadata)
      fails()
    })
    expect(late).toEqual({ reason: 'internal_error', flaws: 0, rows: [{ ...own, metadata }] })
  })
})

/** As called by a handler in plain JavaScript. */
const record = (type: string, metadata: unknown) => (tools: Work) =>
  tools.audit(type as never, metadata as never)
const cyclic: { self?: unknown } = {}
cyclic.self = cyclic

describe('metadata that breaks the rules of its type is logged and counted, and the row written', () => {
  it.each<[what: string, type: string, metadata: unknown, kept: unknown]>([
    ['a key too many', 'team/delete', { team_id, members: 1, secret }, { team_id, members: 1, secret }],
    ['a key too few', 'team/delete', { team_id }, { team_id }],
    ['any where none is declared', 'team/open', { secret }, { secret }],
    ['none where some is declared', 'team/delete', undefined, null],
    ['of an unregistered type', 'team/unknown', { secret }, { secret }],
    ['of a type named like a property', 'constructor', { secret }, { secret }],
    ['of an event of the service', 'cell_update', { cell: secret }, { cell: secret }],
    ['under a schema that throws', 'team/broken', { secret }, { secret }],
    ['a text', 'team/note', secret, null],
    ['a list', 'team/note', [secret], null],
    ['a cycle', 'team/note', cyclic, null],
    ['a BigInt', 'team/note', { note: 1n }, null],
    ['text with U+0000', 'team/note', { note: `${secret}\0` }, null],
    ['a lone surrogate', 'team/note', { note: `${secret}\ud800` }, null],
  ])('%s', async (_what, type, metadata, kept) => {
    const done = await run(record(type, metadata))
    expect(done).toMatchObject({ reason: 'ok', flaws: 1, rows: [{ event_type: type, metadata: kept }] })
    const line = captured.lines().findLast(({ flaw }) => flaw !== undefined)
    expect(line).toMatchObject({ level: 'error', event_type: type })
    expect(captured.text()).not.toContain(secret)
  })

  it('more than 8 KiB as JSON is replaced, on events of the service too', async () => {
    const ofSize = (bytes: number) => ({ note: 'é'.repeat((bytes - 11) / 2) + (bytes % 2 === 0 ? 'x' : '') })
    const fits = ofSize(8192)
    expect(Buffer.byteLength(JSON.stringify(fits))).toBe(8192)
    expect(await run(record('team/note', fits))).toMatchObject({ flaws: 0, rows: [{ metadata: fits }] })
    for (const type of ['team/note', 'cell_update']) {
      await clearAudit(test)
      expect(await run(record(type, ofSize(8193)))).toMatchObject({
        reason: 'ok',
        flaws: 1,
        rows: [{ event_type: type, metadata: { oversize: true } }],
      })
    }
  })
})

it('a method whose event is not registered stops the start, and the message names it', async () => {
  const { team_delete } = actions
  await expect(testService({ actions: { team_delete } })).rejects.toMatchObject({
    reason: 'invalid_action',
    message: 'Action team_delete: the audit event "team/delete" is not registered; add it to audit_events.',
  })
})
