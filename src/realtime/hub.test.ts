import { afterAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { tokenOf } from '../../test/helpers/callers.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { sql } from '../db/db.ts'
import type { Notification } from '../notifications.ts'
import type { TestAccount } from '../testing/index.ts'
import type { Committed } from './committed.ts'
import type { Connection } from './connection.ts'

// Fakes the intervals, so that the regular check finds nothing before the code under test does.
const intervals = ['setInterval', 'clearInterval'] as const
vi.useFakeTimers({ toFake: [...intervals] })

let statements: string[] = []
const test = await serviceForFile({ max_connections: 20, onStatement: (text) => void statements.push(text) })
const ada = await test.account({ roles: ['admin', 'keeper'] })
afterAll(() => void vi.useRealTimers())

type Heard = { lost: string[]; heard: Committed[]; remove(): void }
const open: Heard[] = []
beforeEach(() => () => {
  for (const { remove } of open.splice(0)) remove()
})

/** A connection that only records what reaches it. */
function add(connection: Pick<Connection, 'account_id' | 'credential'> & Partial<Connection>): Heard {
  const own: Heard = { lost: [], heard: [], remove: () => {} }
  const remove = test.service.app.hub.add({
    kind: 'socket',
    actor_id: null,
    hear: (committed) => void own.heard.push(committed),
    lost: (reason) => void own.lost.push(reason),
    ...connection,
  })
  if (!remove) throw new Error('the hub is full')
  own.remove = remove
  open.push(own)
  return own
}
const sessionOf = async ({ id }: TestAccount) => {
  const row = await test.service.app.db.first<{ id: string; expires_at: string }>(sql`
    select id, expires_at from auth_session where account_id = ${id}::uuid`)
  return { type: 'session' as const, ...(row as NonNullable<typeof row>) }
}
const daemon = { type: 'daemon_token' as const, id: null, expires_at: null }

describe('a check', () => {
  it('finds every credential that is gone, and only those, by one query', async () => {
    const [bob, eve, tom] = [await test.account(), await test.account(), await test.account()]
    const eva = await test.account({ roles: ['admin'] })
    const token = await tokenOf(test, bob)
    const api = { type: 'api_token' as const, id: token.id, expires_at: null }
    const expired = await tokenOf(test, bob)
    const good = [
      add({ account_id: ada.id, credential: await sessionOf(ada) }),
      add({ account_id: bob.id, credential: api }),
      add({ account_id: ada.id, credential: daemon }),
      add({ account_id: ada.id, credential: await sessionOf(ada), kind: 'stream', actor_id: ada.actor_id }),
    ]
    const of = {
      revoked: add({ account_id: eve.id, credential: await sessionOf(eve) }),
      twice: add({ account_id: eve.id, credential: await sessionOf(eve) }),
      deleted: add({ account_id: tom.id, credential: await sessionOf(tom) }),
      expired: add({ account_id: bob.id, credential: { ...api, id: expired.id } }),
      keeper: add({ account_id: bob.id, credential: daemon }),
      foreign: add({ account_id: bob.id, credential: await sessionOf(ada) }),
      reader: add({ account_id: bob.id, credential: api, kind: 'stream', actor_id: bob.actor_id }),
      removed: add({
        ...{ account_id: eva.id, credential: await sessionOf(eva), kind: 'stream', actor_id: eva.actor_id },
      }),
    }
    const { db, hub } = test.service.app
    await db.run(sql`delete from auth_session where account_id = ${eve.id}::uuid`)
    await db.run(sql`update account set deleted_at = now() where id = ${tom.id}::uuid`)
    await db.run(sql`update actor set deleted_at = now() where id = ${eva.actor_id}::uuid`)
    await db.run(sql`
      update api_token set created_at = now() - interval '2 s', expires_at = now() - interval '1 s'
      where id = ${expired.id}`)
    statements = []
    await hub.check()
    expect(statements).toHaveLength(1)
    expect(good.map(({ lost }) => lost)).toEqual([[], [], [], []])
    expect(Object.fromEntries(Object.entries(of).map(([name, { lost }]) => [name, lost]))).toEqual({
      revoked: ['revoked'],
      twice: ['revoked'],
      deleted: ['revoked'],
      expired: ['expired'],
      keeper: ['revoked'],
      foreign: ['revoked'],
      reader: ['role_lost'],
      removed: ['role_lost'],
    })
  })

  it('asks nothing where nobody is connected', async () => {
    statements = []
    await test.service.app.hub.check()
    expect(statements).toEqual([])
  })
})

it('a doubt that follows another is answered only once its own COMMIT had time to finish', async () => {
  vi.useFakeTimers({ toFake: [...intervals, 'setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useFakeTimers({ toFake: [...intervals] }))
  const { db, hub } = test.service.app
  const bob = await test.account()
  const socket = add({ account_id: bob.id, credential: await sessionOf(bob) })
  const checks = () => statements.filter((text) => text.includes('judged')).length
  statements = []
  hub.doubt()
  vi.advanceTimersByTime(900)
  hub.doubt()
  vi.advanceTimersByTime(100)
  await expect.poll(checks).toBe(1)
  await db.run(sql`delete from auth_session where account_id = ${bob.id}::uuid`)
  vi.advanceTimersByTime(1_000)
  await expect.poll(() => socket.lost).toEqual(['revoked'])
  vi.advanceTimersByTime(10_000)
  await hub.check()
  expect(checks()).toBe(3)
})

describe('what was committed', () => {
  const quiet: Committed = { notifications: [], closings: [], wroteAudit: true }
  const account = (account_id: string) => ({ ...quiet, closings: [{ kind: 'account' as const, account_id }] })

  it('is heard by whom it concerns, reduced to that; a failing one holds up nobody', async () => {
    const bob = await test.account()
    const failing = add({
      account_id: ada.id,
      credential: daemon,
      hear: () => {
        throw new Error('in a test')
      },
    })
    const session = await sessionOf(ada)
    const socket = add({ account_id: ada.id, credential: session })
    const stream = add({ account_id: ada.id, credential: session, kind: 'stream', actor_id: ada.actor_id })
    const foreign = add({ account_id: bob.id, credential: await sessionOf(bob) })
    const { hub } = test.service.app
    hub.publish(account(ada.id))
    hub.publish({ ...quiet, closings: [{ kind: 'actor', actor_id: ada.actor_id }] })
    hub.publish({ ...quiet, closings: [{ kind: 'keeper' }] })
    hub.publish(quiet)
    const kinds = ({ heard }: Heard) => heard.map(({ closings }) => closings.map(({ kind }) => kind))
    expect([failing, socket, stream, foreign].map(kinds)).toEqual([
      [],
      [['account']],
      [['account'], ['actor']],
      [],
    ])
  })
})

describe('what another node says of all credentials of a kind', () => {
  it('closes those that ended, and spares one that was opened since; others of the account hear it', async () => {
    const { db, hub } = test.service.app
    const bob = await test.account()
    const credential = await sessionOf(bob)
    const gone = { ...credential, id: 'gone' }
    const token = { type: 'api_token' as const, id: 'tok', expires_at: null }
    const [fresh, ended, other] = [credential, gone, token].map((one) =>
      add({ account_id: bob.id, credential: one }),
    )
    const daemons = [ada.id, bob.id].map((account_id) => add({ account_id, credential: daemon }))
    const closings = [
      { kind: 'credentials' as const, account_id: bob.id, ended: [{ type: 'session' as const, ids: null }] },
      { kind: 'keeper' as const },
    ]
    hub.receive({ notifications: [], closings, wroteAudit: false })
    while (ended?.lost.length === 0 || daemons[1]?.lost.length === 0) await db.run(sql`select 1`)
    expect([fresh, ended].map((one) => [one?.lost, one?.heard.length])).toEqual([
      [[], 0],
      [['revoked'], 0],
    ])
    expect(other?.heard.map((one) => one.closings)).toEqual([[closings[0]]])
    expect(daemons.map(({ lost }) => lost)).toEqual([[], ['revoked']])
  })
})

describe('a connection whose credential another node may have ended', async () => {
  const { db, hub } = test.service.app
  const [bob, eve] = [await test.account(), await test.account()]
  const connected = () =>
    Promise.all([bob, eve].map(async (one) => add({ account_id: one.id, credential: await sessionOf(one) })))
  const closings = [bob, eve].map(({ id }) => ({ kind: 'account' as const, account_id: id }))
  const told = [bob, eve].map(
    ({ id: account_id }): Notification => ({
      account_id,
      method: 'role_grant_revoke',
      params: { role_grant_id: account_id, role: 'admin', scope_id: null },
    }),
  )
  const later = { notifications: told, closings: [], wroteAudit: false }

  it('hears nothing more before that is known', async () => {
    const [ended, spared] = await connected()
    await db.run(sql`update account set deleted_at = now() where id = ${bob.id}::uuid`)
    hub.receive({ notifications: [], closings, wroteAudit: false })
    for (let n = 0; n < 2; n++) hub.receive(later)
    expect([ended?.heard, spared?.heard]).toEqual([[], []])
    ended?.remove()
    await expect.poll(() => spared?.heard.map((one) => one.notifications)).toEqual([[told[1]], [told[1]]])
    expect(ended?.heard).toEqual([])
    hub.receive(later)
    expect(spared?.heard).toHaveLength(3)
  })

  it('hears nothing either while the database does not tell, and the rest afterwards', async () => {
    const [ended, spared] = await connected()
    await db.run(sql`alter table auth_session rename to away`)
    statements = []
    hub.receive({ notifications: [], closings, wroteAudit: false })
    hub.receive(later)
    await expect.poll(() => statements.filter((text) => text.includes('judged')).length).toBeGreaterThan(1)
    expect([ended?.heard, spared?.heard]).toEqual([[], []])
    await db.run(sql`alter table away rename to auth_session`)
    await expect.poll(() => spared?.heard.map((one) => one.notifications)).toEqual([[told[1]]])
    expect(ended?.lost).toEqual(['revoked'])
  })
})

it('a socket for which too much waits meanwhile is closed, so that its client reads anew', async () => {
  const { db, hub } = test.service.app
  const bob = await test.account()
  const leave = vi.fn(() => socket.remove())
  const socket = add({ account_id: bob.id, credential: await sessionOf(bob), leave })
  await db.run(sql`alter table auth_session rename to away`)
  const params = { role_grant_id: bob.id, role: 'admin', scope_id: null }
  const told: Notification = { account_id: bob.id, method: 'role_grant_revoke', params }
  hub.receive({
    ...{ notifications: [], wroteAudit: false },
    closings: [{ kind: 'account', account_id: bob.id }],
  })
  for (let n = 0; n < 2_000; n++) hub.receive({ notifications: [told], closings: [], wroteAudit: false })
  await db.run(sql`alter table away rename to auth_session`)
  expect(leave).toHaveBeenCalledOnce()
  expect(socket.heard).toEqual([])
})

describe('what another node says of a deleted account', () => {
  it('closes its connections, and spares those of one that is back', async () => {
    const { db, hub } = test.service.app
    const [back, gone] = [await test.account(), await test.account()]
    const [spared, closed] = await Promise.all(
      [back, gone].map(async (one) => add({ account_id: one.id, credential: await sessionOf(one) })),
    )
    await db.run(sql`update account set deleted_at = now() where id = ${gone.id}::uuid`)
    const closings = [back, gone].map(({ id }) => ({ kind: 'account' as const, account_id: id }))
    hub.receive({ notifications: [], closings, wroteAudit: false })
    await expect.poll(() => closed?.lost).toEqual(['revoked'])
    expect([spared?.lost, spared?.heard]).toEqual([[], []])
  })
})

describe('the cap of the process', () => {
  it('is shared by sockets and streams, and free again when one ends', async () => {
    const credential = await sessionOf(ada)
    const all = Array.from({ length: 20 }, (_, i) =>
      add({ account_id: ada.id, credential, kind: i % 2 ? 'socket' : 'stream' }),
    )
    expect(test.service.app.hub.isFull()).toBe(true)
    for (const kind of ['socket', 'stream'] as const)
      expect(() => add({ account_id: ada.id, credential, kind })).toThrow('full')
    all[0]?.remove()
    expect(test.service.app.hub.isFull()).toBe(false)
    add({ account_id: ada.id, credential })
  })
})
