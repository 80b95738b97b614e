import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { ownLocks } from '../../test/helpers/own-locks.ts'
import { serviceForFile } from '../../test/helpers/service.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { sql } from '../db/db.ts'
import { type TestOptions, type TestService, testService } from '../testing/service.ts'
import type { NodeView } from './nodes.ts'

const test = await serviceForFile({ node_name: 'Web-1', shutdown_delay_ms: 50 })
await test.service.join()
const admin = await test.account({ roles: ['admin'] })
const db = () => test.service.app.db
const nodes = async () => (await test.service.operations.nodes()).nodes
const own = async (of: TestService = test): Promise<NodeView> =>
  (await nodes()).find(({ id }) => id === of.service.app.node.id) as NodeView
const health = async (path: string, { url } = test) => {
  const answer = await fetch(`${url}/health/${path}`)
  return [answer.status, await answer.json()]
}
const by = { via: 'test' }

/** Runs the work beside another node on the database. */
async function beside<T>(options: TestOptions, work: (other: TestService) => Promise<T>): Promise<T> {
  await using other = await testService({ database_url: test.databaseUrl, node_name: 'web-2', ...options })
  await other.service.join()
  return await work(other)
}

const plant = (id: string, columns: { name?: string; version?: string; age?: string }) =>
  db().run(sql`
    insert into node (id, name, version, known_step, pid, started_at, seen_at, state)
    values (${id}, ${columns.name ?? 'planted'}, ${columns.version ?? '0.0.1'}, '0001', 1, now(),
      now() - ${columns.age ?? '0 s'}::interval, 'ready')`)
/** How many hold, or wait for, a lock that keeps everybody from the table of nodes in the database of a service. */
const waitingOrHeld = async ({ service }: TestService, which: 'granted' | 'not granted'): Promise<number> =>
  (
    await service.app.db.one<{ n: number }>(sql`
      select count(*)::int as n from ${sql.raw(ownLocks)} l where relation = 'node'::regclass
        and ${which === 'granted' ? sql`granted and mode = 'AccessExclusiveLock'` : sql`not granted`}`)
  ).n
const unplant = (id: string) => db().run(sql`delete from node where id = ${id}`)

describe('a node', () => {
  it('is listed by its name in lower case, with counts and states', async () => {
    await beside({ node_name: 'Web-2' }, async (other) => {
      const socket = await openSocket(other.url, { cookie: admin.cookie })
      await other.client(admin.cookie).account_verify()
      other.service.leave('leaving')
      await expect.poll(() => own(other)).toMatchObject({ state: 'leaving' })
      const node = await own(other)
      expect(node).toMatchObject({ name: 'web-2', alive: true, wanted: 'run', pid: process.pid, marks: [] })
      expect(node.info).toMatchObject({
        sockets: 1,
        streams: 0,
        running: 0,
        limit_store: 'memory',
        timeline: 1,
        breaker_open: false,
        warnings: [],
      })
      expect(node.info.rate).toBeGreaterThan(0)
      expect(node.info.p99_ms).toBeGreaterThan(0)
      expect(node.info).not.toHaveProperty('settings')
      await socket.close()
    })
  })

  it('is gone at once after a clean stop, and silent after one that told nobody', async () => {
    const id = await beside({}, async (other) => (await own(other)).id)
    expect((await nodes()).map((one) => one.id)).not.toContain(id)
    await plant('a'.repeat(16), { age: '16 s' })
    expect(await nodes()).toContainEqual(
      expect.objectContaining({ id: 'a'.repeat(16), alive: false, marks: ['silent'] }),
    )
    await test.service.operations.cleanUp()
    expect(await nodes()).toHaveLength(2)
    await db().run(sql`update node set seen_at = now() - interval '25 hours' where name = 'planted'`)
    await test.service.operations.cleanUp()
    expect(await nodes()).toHaveLength(1)
    // If no cleanup runs, the next node that joins removes it.
    await plant('a'.repeat(16), { age: '25 hours' })
    await beside({}, async () => expect(await nodes()).toHaveLength(2))
  })

  it('is silent if it was last seen before the clock of the database was set back', async () => {
    const id = 'b'.repeat(16)
    await plant(id, { age: '-1 hour' })
    expect(await nodes()).toContainEqual(expect.objectContaining({ id, alive: false, marks: ['silent'] }))
    await unplant(id)
  })

  it('is marked if its name, its version or its settings are not those of the others', async () => {
    const other: TestOptions = {
      node_name: 'web-1',
      cookie_keys: ['another-key-another-key-another-key-1'],
      roles: [{ name: 'teacher', grant_paths: ['admin'] }],
      limit_login_ip: '3/60',
    }
    const mark = 'settings differ: cookie_keys, limit_login_ip, roles'
    const captured = capturedLog()
    await beside({ ...other, node_name: 'web-2', log: captured.log }, async () =>
      expect(captured.lines()).toContainEqual(expect.objectContaining({ event: 'node_differs', mark })),
    )
    await beside(other, async (second) => {
      expect((await own(second)).marks).toEqual([mark, 'same name'])
      // With a third node there is a majority, so only the odd one out is marked.
      await beside({}, async (third) => {
        expect((await own()).marks).toEqual(['same name'])
        expect((await own(third)).marks).toEqual([])
        expect((await own(second)).marks).toEqual([mark, 'same name'])
      })
      const rows = await db().rows(sql`select info from node`)
      expect(JSON.stringify([rows, captured.text()])).not.toMatch(/another-key|teacher|test-secret/)
    })
    await plant('b'.repeat(16), { version: '999.0.0' })
    expect((await own()).marks).toEqual(['behind'])
    await unplant('b'.repeat(16))
  })

  it('warns of another with its name only if that is alive, and not its killed predecessor', async () => {
    for (const isAlive of [false, true]) {
      // A node looks once when it joins, which takes longer than a second on a busy machine; by then it must be alive.
      await plant('a'.repeat(16), { name: 'web-2', version: '999.0.0', age: '9 s' })
      const { log, lines } = capturedLog()
      const marks = () => lines().flatMap(({ event, mark }) => (event === 'node_differs' ? [mark] : []))
      await beside({ log }, async () => {
        expect(marks()).toEqual([])
        // Again and again, as the other must be alive whenever this node looks.
        const live = async () => {
          if (isAlive) await db().run(sql`update node set seen_at = now() where name = 'web-2'`)
        }
        await expect
          .poll(() => live().then(async () => (await nodes()).some(({ alive }) => !alive)))
          .toBe(!isAlive)
        if (isAlive) await expect.poll(() => live().then(marks)).toEqual(['same name', 'behind'])
        else await delay(1000)
        expect(marks()).toHaveLength(isAlive ? 2 : 0)
      })
      await unplant('a'.repeat(16))
    }
  })

  it('leaves periodic work to a newer one that is alive', async () => {
    await plant('c'.repeat(16), { version: 'not a version' })
    await plant('d'.repeat(16), { version: '999.0.0', age: '16 s' })
    await beside({}, async (other) => {
      expect(other.service.app.node.isBehind).toBe(false)
      await db().run(sql`update node set seen_at = now() where id = ${'d'.repeat(16)}`)
      other.service.leave('leaving')
      await expect.poll(() => other.service.app.node.isBehind).toBe(true)
    })
    for (const id of ['c', 'd']) await unplant(id.repeat(16))
  })

  it('stops without complaint while it is joining or writes its row, and says once that the row stays', async () => {
    // On a database of its own, where no other node waits for the lock to write its row.
    await using holder = await testService()
    for (const hasRow of [false, true]) {
      const { log, lines } = capturedLog()
      const other = await testService({ database_url: holder.databaseUrl, node_name: 'web-2', log })
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      if (hasRow) await other.service.join()
      const held = holder.service.app.db.transaction(async (tx) => {
        await tx.run(sql`lock table node in access exclusive mode`)
        await released
      })
      await expect.poll(() => waitingOrHeld(holder, 'granted')).toBe(1)
      if (hasRow) other.service.leave('leaving')
      const joined = other.service.join()
      await expect.poll(() => waitingOrHeld(holder, 'not granted')).toBe(1)
      const closed = other.close()
      const warned = () => lines().filter(({ level }) => level !== 'info' && level !== 'debug')
      if (hasRow) await expect.poll(warned).toHaveLength(1)
      release()
      await Promise.all([held, closed, joined])
      expect(warned().map(({ event, err }) => [event, err])).toEqual(
        hasRow ? [['node_heartbeat', undefined]] : [],
      )
    }
  })

  it('writes its row while calls hold all connections of the pool', async () => {
    await beside({ database_pool_max: 2 }, async (other) => {
      const { service } = other
      const held = Promise.withResolvers<void>()
      const holding = Array.from({ length: 2 }, () =>
        service.transaction({ event: 'cell_update' }, async ({ db }) => {
          await db.run(sql`select`)
          await held.promise
        }),
      )
      await expect.poll(() => service.app.db.load()).toEqual({ open: 2, idle: 0, waiting: 0 })
      service.leave('leaving')
      await expect.poll(() => own(other)).toMatchObject({ state: 'leaving', info: { pool: { idle: 0 } } })
      expect(service.app.db.load()).toEqual({ open: 2, idle: 0, waiting: 0 })
      held.resolve()
      await Promise.all(holding)
    })
  })

  it('serves without its row too', async () => {
    await beside({}, async (other) => {
      await db().run(sql`alter table node rename to node_away`)
      try {
        other.service.leave('leaving')
        await other.client(admin.cookie).account_verify()
        expect(await health('live', other)).toEqual([200, { status: 'ok' }])
      } finally {
        await db().run(sql`alter table node_away rename to node`)
      }
    })
  })
})

describe('a drained node', () => {
  const drained = { error: 'draining' }

  it('leaves the balancer, still answers, and sends its sockets and streams elsewhere until it is resumed', async () => {
    await beside({ shutdown_delay_ms: 2_000, audit_stream: true }, async (other) => {
      const { id } = other.service.app.node
      const { cookie } = admin
      const socket = await openSocket(other.url, { cookie })
      const stream = await fetch(`${other.url}/api/account/audit/stream`, { headers: { cookie } })
      const streamed = stream.text()
      // The signal arrives long before the next heartbeat.
      expect(await test.service.operations.drainNode({ node_id: id }, by)).toEqual({ changed: true })
      await expect.poll(() => health('serving', other)).toEqual([503, drained])
      expect(await health('ready', other)).toEqual([503, drained])
      expect(await health('live', other)).toEqual([200, { status: 'ok' }])
      expect(socket.ws.readyState).toBe(socket.ws.OPEN)
      expect(await socket.closed).toEqual({ code: 1001, reason: 'shutting down' })
      expect(await streamed).toContain('"shutdown"')
      await other.client(cookie).account_verify()
      await expect.poll(() => own(other)).toMatchObject({ state: 'drained', wanted: 'drain' })
      // A client that connects to it directly is sent away too.
      expect((await (await openSocket(other.url, { cookie })).closed).code).toBe(1001)

      expect(await test.service.operations.drainNode({ node_id: id }, by)).toEqual({ changed: false })
      expect(await test.service.operations.resumeNode({ node_id: id }, by)).toEqual({ changed: true })
      await expect.poll(() => health('serving', other)).toEqual([200, { status: 'ok' }])
      const again = await openSocket(other.url, { cookie })
      await again.call('account_verify')
      again.ws.close()
      await once(again.ws, 'close')
      await expect.poll(() => own(other)).toMatchObject({ state: 'ready', wanted: 'run' })
    })
    expect(await health('serving')).toEqual([200, { status: 'ok' }])
  })

  it('leaves an audit row for each change, and none where nothing changed or there is no such node', async () => {
    const node_id = test.service.app.node.id
    const rows = async () =>
      await db().rows<{ event_type: string }>(sql`
        select event_type, outcome, metadata from audit_entries() where event_type in ('node_drain', 'node_resume')
          and metadata->>'node_id' = ${node_id} order by written, id`)
    const { operations } = test.service
    await operations.resumeNode({ node_id }, by)
    expect(await rows()).toEqual([])
    await operations.drainNode({ node_id }, by)
    await operations.resumeNode({ node_id }, by)
    expect(await rows()).toEqual(
      ['node_drain', 'node_resume'].map((event_type) => ({
        event_type,
        outcome: 'success',
        metadata: { node_id, via: 'test' },
      })),
    )
    await expect(operations.drainNode({ node_id: 'e'.repeat(16) }, by)).rejects.toMatchObject({
      data: { reason: 'node_not_found' },
    })
    await expect.poll(() => health('serving')).toEqual([200, { status: 'ok' }])
  })
})

describe('a process', () => {
  it('of the library is a node after five seconds, without a call, and never with `heartbeat` off', async () => {
    await using late = await testService({
      database_url: test.databaseUrl,
      node_name: 'late',
      heartbeat: true,
    })
    await using never = await testService({ database_url: test.databaseUrl, node_name: 'never' })
    const names = async () => (await nodes()).map(({ name }) => name)
    expect(await names()).toEqual(['web-1'])
    await expect.poll(names).toEqual(['late', 'web-1'])
    expect(never.service.app.node.name).toBe('never')
    expect(late.service.app.node.phase).toBe('serving')
  })
})
