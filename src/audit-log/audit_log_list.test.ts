import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { auditRows, clearAudit } from '../../test/helpers/audit-rows.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { call, dataOf, reasonOf, rpc } from '../../test/helpers/http.ts'
import { type Sql, sql } from '../db/db.ts'
import { scenario, type TestAccount, type TestService, testService } from '../testing/index.ts'

let test: TestService
let admin: TestAccount
let ada: TestAccount
beforeAll(async () => {
  test = await testService()
  ;[admin, ada] = await Promise.all([test.account({ roles: ['admin'] }), test.account()])
})
afterAll(() => test.close())
beforeEach(() => clearAudit(test))

type Input = NonNullable<Parameters<TestAccount['client']['audit_log_list']>[0]>
const list = (input: Input = {}) => admin.client.audit_log_list(input)
const plant = (count: number, columns?: Parameters<typeof auditRows>[2]) => auditRows(test, count, columns)
/** The `n` of planted rows. */
const shown = ({ events }: Awaited<ReturnType<typeof list>>) => events.map(({ metadata }) => metadata?.n)

/** The rows of every page, following the cursor. */
async function walk(input: Input) {
  const found = []
  let { events, next_cursor } = await list(input)
  const { since_seq: _, offset: __, ...filters } = input
  while (next_cursor !== null) {
    found.push(...events)
    expect(events).toHaveLength(input.limit ?? 50)
    ;({ events, next_cursor } = await list({ ...filters, cursor: next_cursor }))
  }
  return [...found, ...events]
}
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i + 1)

describe('audit_log_list', () => {
  it('shows the answered mutations, newest first, with the names that their accounts have now', async () => {
    const { cell } = await ada.client.cell_create({ data: {} })
    await admin.client.admin_session_revoke_all({ account_id: ada.id })
    const { events, next_cursor } = await list()
    expect(next_cursor).toBeNull()
    expect(events).toMatchObject([
      {
        event_type: 'session_revoke_all',
        outcome: 'success',
        account_id: admin.id,
        username: admin.username,
        target_account_id: ada.id,
        target_username: ada.username,
      },
      {
        event_type: 'cell_create',
        actor_id: ada.actor_id,
        username: ada.username,
        target_username: null,
        ip: '127.0.0.1',
        metadata: { cell_id: cell.id },
      },
    ])
    expect(Object.keys(events[0] ?? {})).toEqual([
      ...['id', 'seq', 'event_type', 'outcome', 'actor_id', 'account_id', 'target_account_id'],
      ...['target_actor_id', 'ip', 'created_at', 'metadata', 'username', 'target_username'],
    ])
    // The tests that follow use a new account.
    ada = { ...ada, ...(await test.account()) }
  })

  it('is 50 rows without a limit, and 200 at most', async () => {
    await plant(201)
    expect((await list()).events).toHaveLength(50)
    expect((await list({ limit: null })).events).toHaveLength(50)
    expect(shown(await list({ limit: 200 }))).toEqual(upTo(201).reverse().slice(0, 200))
  })

  it('walks every row once, newest first or oldest first, while rows are added', async () => {
    await plant(23)
    const { events, next_cursor } = await list({ limit: 5 })
    await plant(3)
    const rest = []
    for (let cursor = next_cursor; cursor !== null; ) {
      const page = await list({ limit: 7, cursor })
      rest.push(...page.events)
      cursor = page.next_cursor
    }
    expect([...events, ...rest].map(({ metadata }) => metadata?.n)).toEqual(upTo(23).reverse())
    const oldest = await walk({ since_seq: 0, limit: 4 })
    expect(oldest.map(({ metadata }) => metadata?.n)).toEqual([...upTo(23), ...upTo(3)])
  })

  it('with since_seq goes on after that row, by its last number as by the cursor', async () => {
    await plant(5)
    const first = await list({ since_seq: 0, limit: 2 })
    expect(shown(first)).toEqual([1, 2])
    const last = first.events.at(-1)?.seq ?? 0
    expect(await list({ since_seq: last, limit: 2 })).toEqual(
      await list({ cursor: first.next_cursor, limit: 2 }),
    )
    expect((await walk({ since_seq: 0, limit: 2 })).map(({ metadata }) => metadata?.n)).toEqual(upTo(5))
    const end = (await list({ limit: 1 })).events[0]?.seq ?? 0
    for (const since_seq of [end, end + 1, Number.MAX_SAFE_INTEGER])
      expect(await list({ since_seq })).toEqual({ events: [], next_cursor: null })
  })

  it('goes on from a cursor whether or not the caller says again which actor acts', async () => {
    await plant(5)
    const acting = admin.actor_id
    for (const [first, then] of [
      [{ acting }, {}],
      [{}, { acting }],
    ]) {
      const { next_cursor } = await list({ limit: 2, ...first })
      expect(shown(await list({ limit: 2, cursor: next_cursor, ...then }))).toEqual([3, 2])
    }
  })

  it('an exactly full last page has no next one', async () => {
    await plant(40)
    const first = await list({ limit: 20 })
    expect(await list({ limit: 20, cursor: first.next_cursor })).toMatchObject({ next_cursor: null })
    expect(await list({ limit: 40 })).toMatchObject({ next_cursor: null })
    expect((await list({ limit: 39 })).next_cursor).not.toBeNull()
  })

  it('skips an offset', async () => {
    await plant(30)
    expect(shown(await list({ offset: 25, limit: 3 }))).toEqual([5, 4, 3])
    expect(shown(await list({ offset: null, limit: 1 }))).toEqual([30])
    const page = await list({ offset: 10, limit: 5 })
    expect(shown(await list({ cursor: page.next_cursor, limit: 2 }))).toEqual([15, 14])
    expect(await list({ offset: 10_000 })).toEqual({ events: [], next_cursor: null })
  })
})

describe('a filter of audit_log_list', () => {
  const third = sql`case when i % 3 = 0 then ${'00000000-0000-4000-8000-00000000000a'}::uuid end`
  const someone = '00000000-0000-4000-8000-00000000000A'
  const plantMixed = () =>
    plant(60, {
      event_type: sql`case when i % 2 = 0 then 'even' else 'odd' end`,
      outcome: sql`case when i % 5 = 0 then 'failure' else 'success' end`,
      account_id: third,
      // In every sixth row the account is both account and target account.
      target_account_id: sql`case when i % 6 = 0 or i % 7 = 0 then ${someone}::uuid end`,
    })
  const of = (keep: (n: number) => boolean) => upTo(60).filter(keep).reverse()
  const isOn = (n: number) => n % 3 === 0 || n % 7 === 0

  it.each<[what: string, filter: Input, keep: (n: number) => boolean]>([
    ['type', { event_type: 'even' }, (n) => n % 2 === 0],
    ['outcome', { outcome: 'failure' }, (n) => n % 5 === 0],
    ['success', { outcome: 'success' }, (n) => n % 5 !== 0],
    ['account, as the one acting or acted upon, each row once', { account_id: someone }, isOn],
    ['type and outcome', { event_type: 'odd', outcome: 'failure' }, (n) => n % 10 === 5],
    ['account and type', { account_id: someone, event_type: 'even' }, (n) => isOn(n) && n % 2 === 0],
    [
      'all three',
      { account_id: someone, event_type: 'odd', outcome: 'success' },
      (n) => isOn(n) && n % 2 === 1 && n % 5 !== 0,
    ],
    ['nothing, all null', { account_id: null, event_type: null, outcome: null }, () => true],
  ])('by %s', async (_what, filter, keep) => {
    await plantMixed()
    const ns = (rows: { metadata: Record<string, unknown> | null }[]) =>
      rows.map(({ metadata }) => metadata?.n)
    expect(ns(await walk({ ...filter, limit: 4 }))).toEqual(of(keep))
    expect(ns(await walk({ ...filter, limit: 4, since_seq: 0 }))).toEqual(of(keep).reverse())
    expect(shown(await list({ ...filter, offset: 2, limit: 3 }))).toEqual(of(keep).slice(2, 5))
  })

  it('that nothing matches is an empty list', async () => {
    await plantMixed()
    for (const filter of [{ event_type: 'no/such.type-1' }, { account_id: ada.id }])
      expect(await list(filter)).toEqual({ events: [], next_cursor: null })
  })
})

describe('the names in audit_log_list', () => {
  const eve = async () => {
    const made = await test.account()
    await clearAudit(test)
    return made
  }
  const uuid = (text: string): Sql => sql`${text}::uuid`

  it('come from the actor, else from the account', async () => {
    const one = await eve()
    await plant(1, { actor_id: uuid(one.actor_id), target_actor_id: uuid(ada.actor_id) })
    await plant(1, { account_id: uuid(ada.id), target_account_id: uuid(one.id) })
    const { events } = await list()
    expect(events.map(({ username, target_username }) => [username, target_username])).toEqual([
      [ada.username, one.username],
      [one.username, ada.username],
    ])
  })

  it('of a deleted account stay, of a purged one are null, while its rows are found as before', async () => {
    const one = await eve()
    const own = () => list({ account_id: one.id })
    await one.client.cell_create({ data: {} })
    await admin.client.account_delete({ account_id: one.id })
    for (const { username, target_username } of (await own()).events)
      expect([username, target_username]).toContain(one.username)
    const before = (await own()).events.map(({ seq }) => seq)
    await test.service.operations.purgeAccount({ account_id: one.id, confirm: true }, { via: 'testing' })
    const { events } = await own()
    expect(events.map(({ seq }) => seq)).toEqual(expect.arrayContaining(before))
    for (const { username, target_username } of events)
      expect([username, target_username]).not.toContain(one.username)
    expect(events.at(-1)).toMatchObject({ event_type: 'cell_create', account_id: one.id, username: null })
  })
})

const pathOf = async (input: unknown, method = 'audit_log_list') => {
  const reply = await rpc(test.url, call(method, input), { cookie: admin.cookie })
  const [issue] = (dataOf(reply)?.issues ?? []) as { path: unknown[]; code: string }[]
  return issue && `${issue.path.join('.')} ${issue.code}`
}

describe('audit_log_list refuses', () => {
  it.each([
    [{ limit: 0 }, 'limit too_small'],
    [{ limit: 201 }, 'limit too_big'],
    [{ limit: '50' }, 'limit invalid_type'],
    [{ offset: -1 }, 'offset too_small'],
    [{ offset: 10_001 }, 'offset too_big'],
    [{ since_seq: -1 }, 'since_seq too_small'],
    [{ since_seq: 1.5 }, 'since_seq invalid_type'],
    [{ since_seq: 2 ** 53 }, 'since_seq too_big'],
    [{ event_type: 'a b' }, 'event_type invalid_format'],
    [{ event_type: '' }, 'event_type invalid_format'],
    [{ event_type: 'x'.repeat(129) }, 'event_type too_big'],
    [{ outcome: 'x' }, 'outcome invalid_value'],
    [{ outcome: 1 }, 'outcome invalid_type'],
    [{ account_id: 'x' }, 'account_id invalid_format'],
    [{ offset: 0, since_seq: 0 }, 'offset invalid_value'],
    [{ cursor: 'garbage' }, 'cursor invalid_cursor'],
    [{ actor: null }, 'actor unrecognized_keys'],
  ])('%j', async (input, issue) => {
    const got = await pathOf(input)
    // Zod words numbers beyond the safe range in different ways.
    if (issue === 'since_seq too_big') expect(got).toMatch(/^since_seq /)
    else expect(got).toBe(issue)
  })

  it('a cursor with an offset or a number, of another filter, cut, or of the other list', async () => {
    await plant(3)
    const { next_cursor: cursor } = await list({ limit: 1 })
    for (const beside of [{ offset: 0 }, { since_seq: 0 }])
      expect(await pathOf({ cursor, ...beside })).toBe('cursor invalid_value')
    for (const other of [{ cursor, event_type: 'planted' }, { cursor: cursor?.slice(1) }])
      expect(await pathOf(other)).toBe('cursor invalid_cursor')
    expect(await pathOf({ cursor }, 'audit_log_role_grant_history')).toBe('cursor invalid_cursor')
    expect(await pathOf({ cursor })).toBeUndefined()
  })

  it.each(['audit_log_list', 'audit_log_role_grant_history'])(
    'everybody but a global admin, as %s does',
    async (method) => {
      const local = await test.account()
      await test.service.app.db.run(sql`
        insert into role_grant (actor_id, role, scope_kind, scope_id)
        values (${local.actor_id}::uuid, 'admin', 'room', gen_random_uuid())`)
      const ask = async (headers: Record<string, string>) =>
        reasonOf(await rpc(test.url, call(method), headers))
      const narrow = await tokenOf(test, admin, { kind: 'methods', methods: ['account_verify'] })
      const reading = await tokenOf(test, admin, { kind: 'read_only' })
      expect(await ask({})).toBe('authentication_required')
      for (const { cookie } of [ada, local]) expect(await ask({ cookie })).toBe('insufficient_permissions')
      expect(await ask(narrow.headers)).toBe('token_scope_required')
      expect(await ask(reading.headers)).toBe('ok')
    },
  )

  it('nothing else, and leaves no row', async () => {
    await scenario(test, () => list())
  })
})
