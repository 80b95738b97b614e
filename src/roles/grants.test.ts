import { afterAll, describe, expect, it } from 'vitest'
import { rival } from '../../test/helpers/race.ts'
import { sql } from '../db/db.ts'
import { scenario, type TestAccount, testService } from '../testing/index.ts'

const test = await testService({
  roles: [{ name: 'editor', grant_paths: ['admin'] }],
  scope_kinds: [{ name: 'team' }],
  limit_role_write: 'off',
})
const admin = await test.account({ roles: ['admin'] })
const other = await rival(test.databaseUrl)
afterAll(async () => {
  await other.close()
  await test.close()
})

const team = '11111111-1111-1111-1111-111111111111'
const [soon, later] = ['2998-01-01T00:00:00.000Z', '2999-01-01T00:00:00.000Z']
const run = (...query: Parameters<typeof sql>) => test.service.app.db.run(sql(...query))
const confer = ({ actor_id }: { actor_id: string }, expires_at?: string | null, scope_id?: string) =>
  test.roleGrant({
    actor_id,
    role: 'editor',
    ...(expires_at !== undefined && { expires_at }),
    ...(scope_id && { scope_kind: 'team', scope_id }),
  })
type Stored = {
  id: string
  granted_by: string | null
  expires_at: string | null
  closed: boolean
  revoked: boolean
}
const stored = ({ actor_id }: { actor_id: string }) =>
  test.service.app.db.rows<Stored>(sql`
    select id, expires_at, granted_by, closed_at is not null as closed, revoked_at is not null as revoked
    from role_grant where actor_id = ${actor_id}::uuid and role = 'editor' order by closed desc, created_at, id`)
const library = { actor_id: null, account_id: null, ip: null }
const place = (scope_id?: string) => scope_id && { scope_kind: 'team', scope_id }
/** Each way to give a role without an offer, and what the log then says. */
const ways = [
  { way: 'the test kit', confer, by: library, said: { source: 'library', via: 'testing' } },
  {
    way: 'grantRole',
    confer: ({ actor_id }: TestAccount, expires_at?: string | null, scope_id?: string) =>
      test.service.operations.grantRole(
        { actor_id, role: 'editor', path: 'admin', expires_at, ...place(scope_id) },
        { via: 'cli' },
      ),
    by: library,
    said: { source: 'library', path: 'admin', via: 'cli' },
  },
  {
    way: 'role_grant_assign',
    confer: ({ id }: TestAccount, expires_at: string | null = null, scope_id?: string) =>
      admin.client.role_grant_assign({ to_account_id: id, role: 'editor', expires_at, ...place(scope_id) }),
    by: { actor_id: admin.actor_id, account_id: admin.id, ip: '127.0.0.1' },
    said: { source: 'assign' },
  },
]
const row = (account: TestAccount, metadata: object, { by, said } = ways[0] as (typeof ways)[number]) => ({
  event_type: 'role_grant_create',
  ...by,
  target_actor_id: account.actor_id,
  target_account_id: account.id,
  metadata: { role: 'editor', scope_kind: null, scope_id: null, ...said, ...metadata },
})
/** What the audit rows about the account's actor say, oldest first. */
const rowsOf = async (account: TestAccount) => {
  const { rows } = await other.query(
    'select metadata from audit_entries() where target_actor_id = $1 order by written',
    [account.actor_id],
  )
  return rows.map(({ metadata }) => metadata)
}

describe('conferring a role', () => {
  it('that the actor does not hold inserts a grant, with one audit row', async () => {
    const ada = await test.account()
    const conferred = await scenario(test, () => confer(ada, soon), {
      audit: [{ event_type: 'role_grant_create', target_actor_id: ada.actor_id, target_account_id: ada.id }],
    })
    expect(conferred).toEqual({ role_grant_id: expect.any(String), created: true, expires_at: soon })
    const { role_grant_id } = conferred
    expect(await stored(ada)).toEqual([
      { id: role_grant_id, granted_by: null, expires_at: soon, closed: false, revoked: false },
    ])
    expect(await rowsOf(ada)).toEqual([row(ada, { role_grant_id, expires_at: soon }).metadata])
  })

  it('answers the expiry as stored, whatever its spelling', async () => {
    const ada = await test.account()
    expect(await confer(ada, '2999-01-01T01:00:00+01:00')).toMatchObject({ created: true, expires_at: later })
    expect(await confer(ada, '2999-01-01T00:00:00Z')).toMatchObject({ created: false, expires_at: later })
    expect((await rowsOf(ada)).map(({ expires_at }) => expires_at)).toEqual([later])
  })

  it('whose grant was revoked inserts a fresh one and leaves the revoked row as it is', async () => {
    const ada = await test.account()
    const revoked = await confer(ada)
    await run`update role_grant set revoked_at = now() where id = ${revoked.role_grant_id}::uuid`
    const fresh = await confer(ada)
    expect([fresh.created, fresh.role_grant_id === revoked.role_grant_id]).toEqual([true, false])
    expect(await stored(ada)).toMatchObject([
      { closed: false, revoked: true },
      { closed: false, revoked: false },
    ])
  })
})

describe.each(ways)('conferring a role by $way', (way) => {
  const { confer, by } = way
  it.each<[string, string | null, string | null, string | null, boolean]>([
    ['with a later expiry is prolonged', soon, later, later, true],
    ['without an expiry becomes unlimited', soon, null, null, true],
    ['with the same expiry stays', soon, soon, soon, false],
    ['with an earlier expiry is not shortened', later, soon, later, false],
    ['with an expiry stays unlimited', null, later, null, false],
    ['without an expiry stays unlimited', null, null, null, false],
  ])(
    'that is held, again %s: same id, a row only for a move',
    async (_what, first, second, kept, extended) => {
      const ada = await test.account()
      const { role_grant_id } = await confer(ada, first)
      const again = await scenario(test, () => confer(ada, second), {
        audit: extended ? [row(ada, { role_grant_id, expires_at: kept, extended: true }, way)] : [],
      })
      expect(again).toMatchObject({ role_grant_id, created: false, expires_at: kept })
      expect(await stored(ada)).toEqual([
        { id: role_grant_id, granted_by: by.actor_id, expires_at: kept, closed: false, revoked: false },
      ])
    },
  )

  it('whose grant has expired closes that row and inserts a fresh one', async () => {
    const ada = await test.account()
    const expired = await confer(ada, soon)
    await run`update role_grant set expires_at = now() - interval '1 ms' where id = ${expired.role_grant_id}::uuid`
    const fresh = await scenario(test, () => confer(ada), { audit: [{ event_type: 'role_grant_create' }] })
    expect(fresh).toMatchObject({ role_grant_id: expect.any(String), created: true, expires_at: null })
    expect(fresh.role_grant_id).not.toBe(expired.role_grant_id)
    expect(await stored(ada)).toMatchObject([
      { id: expired.role_grant_id, closed: true, revoked: false },
      { id: fresh.role_grant_id, closed: false, revoked: false },
    ])
    expect((await rowsOf(ada)).at(-1)).not.toHaveProperty('extended')
  })

  it('at a scope, at another scope and globally are three grants', async () => {
    const ada = await test.account()
    const places = [undefined, team, team.replace('1', '2')]
    const grants = []
    for (const scope of places) grants.push(await confer(ada, null, scope))
    expect(new Set(grants.map(({ role_grant_id }) => role_grant_id)).size).toBe(3)
    expect(grants.map(({ created }) => created)).toEqual([true, true, true])
    for (const [i, scope] of places.entries())
      expect(await confer(ada, null, scope)).toMatchObject({ ...grants[i], created: false })
  })
})

describe('conferring one role many times at once', () => {
  const calls = (expiries: (string | null)[], account: TestAccount) => () =>
    Promise.all(expiries.map((expires_at) => confer(account, expires_at)))
  const oneCreated = (answers: { created: boolean }[]) => answers.filter(({ created }) => created).length

  it('leaves one live row, made by one of the calls', async () => {
    const ada = await test.account()
    const answers = await scenario(test, calls(Array(10).fill(soon), ada), {
      audit: [{ event_type: 'role_grant_create' }],
    })
    expect([oneCreated(answers), new Set(answers.map(({ role_grant_id }) => role_grant_id)).size]).toEqual([
      1, 1,
    ])
    expect(await stored(ada)).toHaveLength(1)
  })

  it('keeps the latest expiry of them all', async () => {
    const ada = await test.account()
    const answers = await calls([soon, later, soon, later, soon], ada)()
    expect(oneCreated(answers)).toBe(1)
    expect(await stored(ada)).toMatchObject([{ expires_at: later }])
    await calls([soon, null, later], ada)()
    expect(await stored(ada)).toMatchObject([{ expires_at: null }])
  })

  it('over an expired grant closes it once and makes one', async () => {
    const ada = await test.account()
    const { role_grant_id } = await confer(ada, soon)
    await run`update role_grant set expires_at = date_trunc('milliseconds', now()) where id = ${role_grant_id}::uuid`
    expect(oneCreated(await calls(Array(10).fill(null), ada)())).toBe(1)
    expect(await stored(ada)).toMatchObject([{ id: role_grant_id, closed: true }, { closed: false }])
  })
})

describe('an actor that is not live', () => {
  const missing = { reason: 'actor_not_found' }

  it('gets no grant: unknown, removed, or of a deleted account; no row is written', async () => {
    const [removed, deleted] = [await test.account(), await test.account()]
    await run`update actor set deleted_at = now() where id = ${removed.actor_id}::uuid`
    await run`update account set deleted_at = now() where id = ${deleted.id}::uuid`
    for (const target of [removed, deleted, { actor_id: team }]) {
      await scenario(test, () => confer(target), missing)
      expect(await stored(target)).toEqual([])
    }
    await expect(confer(removed)).rejects.toMatchObject({ code: -32003, status: 404 })
  })

  it.each([
    [
      'removed',
      'select from account where id = $1 for no key update',
      'update actor set deleted_at = now() where account_id = $1',
    ],
    [
      'deleted with its account',
      'select from account where id = $1 for no key update',
      'update account set deleted_at = now() where id = $1',
    ],
    [
      'purged with its account',
      'select from account where id = $1 for update',
      'delete from account where id = $1',
    ],
  ])('gets none either when it is %s while the call waits for the account lock', async (_how, lock, end) => {
    const ada = await test.account()
    await other.begin(lock, [ada.id])
    const conferring = scenario(test, () => confer(ada), missing)
    await other.blocks(1)
    await other.query(end, [ada.id])
    await other.commit()
    await conferring
    expect(await stored(ada)).toEqual([])
  })
})
