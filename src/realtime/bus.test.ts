import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { runCellkeep, workspace } from '../../test/helpers/server-process.ts'
import { openSocket, outcomeOf, refusedUpgrade } from '../../test/helpers/sockets.ts'
import { stoppableCluster } from '../../test/helpers/stoppable-cluster.ts'
import { type TestService, testService } from '../testing/index.ts'
import type { Committed } from './committed.ts'

// Without the regular checks, so only a signal, or the recheck after a gap, closes anything.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
const near = await testService()
const far = await testService({ database_url: near.databaseUrl })
const admin = new pg.Client(near.databaseUrl)
await admin.connect()
const ada = await near.account()
afterAll(async () => {
  vi.useRealTimers()
  await admin.end()
  await far.close()
  await near.close()
})

const revocation = (account_id: string, number: number): Committed => ({
  notifications: [
    {
      account_id,
      method: 'role_grant_revoke',
      params: { role_grant_id: randomUUID(), role: 'editor', scope_id: null, reason: `number ${number}` },
    },
  ],
  closings: [],
  wroteAudit: true,
})
/** Resolves when a signal from one node has reached the other. */
async function hears(to: TestService, from: TestService): Promise<void> {
  const actor_id = randomUUID()
  const sign = { notifications: [], closings: [{ kind: 'actor' as const, actor_id }], wroteAudit: false }
  let hasCome = false
  const deaf = to.service.app.hub.listen(({ closings }) => {
    hasCome ||= closings.some((one) => one.kind === 'actor' && one.actor_id === actor_id)
  })
  while (!hasCome) {
    from.service.app.hub.publish(sign)
    await delay(20)
  }
  deaf()
}

describe('what one node commits', () => {
  it('is told to every socket of the account on every node once and in order, and to no other', async () => {
    const bob = await near.account()
    const own = [near, near, far, far]
    const sockets = await Promise.all(own.map(({ url }) => openSocket(url, { cookie: ada.cookie })))
    const foreign = await openSocket(far.url, { cookie: bob.cookie })
    const sent = Array.from({ length: 300 }, (_, number) => revocation(ada.id, number))
    for (const committed of sent) near.service.app.hub.publish(committed)
    for (const socket of sockets)
      for (const { notifications } of sent)
        expect(await socket.next()).toEqual({
          jsonrpc: '2.0',
          method: 'role_grant_revoke',
          params: notifications[0]?.params,
        })
    expect(outcomeOf(await foreign.call('heartbeat'))).toBe('ok')
    expect([...sockets, foreign].map(({ waiting }) => waiting)).toEqual(Array(5).fill([]))
    await Promise.all([...sockets, foreign].map((socket) => socket.close()))
  })

  it('is told however much it is, beside others of the same moment', async () => {
    const socket = await openSocket(far.url, { cookie: ada.cookie })
    const many = Array.from({ length: 1500 }, (_, number) => revocation(ada.id, number).notifications).flat()
    const commits = [
      revocation(ada.id, -1),
      { ...revocation(ada.id, 0), notifications: many },
      revocation(ada.id, 1500),
    ]
    for (const committed of commits) near.service.app.hub.publish(committed)
    for (const { params } of commits.flatMap(({ notifications }) => notifications))
      expect((await socket.next()).params).toEqual(params)
    await socket.close()
  })

  it('wakes the followers of the log on the others, and is not heard twice at home', async () => {
    const wakes = { near: 0, far: 0 }
    const woken = new Promise<void>((resolve) => {
      far.service.app.hub.listen(({ wroteAudit }) => {
        if (wroteAudit) wakes.far += 1
        resolve()
      })
    })
    near.service.app.hub.listen(({ wroteAudit }) => {
      if (wroteAudit) wakes.near += 1
    })
    await ada.client.cell_create({ data: {} })
    await woken
    await hears(near, far)
    expect(wakes).toEqual({ near: 1, far: 1 })
  })

  it('survives anything that others send to the channel', async () => {
    for (const junk of [
      '',
      'x',
      'aa 0/1 {}',
      'aa 0/1 [[{}],[{}],1]',
      'aa 0/1 [[null],[null],true]',
      'aa 0/2 [',
    ])
      await admin.query(`select pg_notify('cellkeep_cellkeep', $1)`, [junk])
    await hears(far, near)
    const socket = await openSocket(far.url, { cookie: ada.cookie })
    expect(outcomeOf(await socket.call('account_verify'))).toBe('ok')
    await socket.close()
  })
})

describe('a node whose connection for signals is cut', () => {
  it('connects again, and then looks at once for what it missed', async () => {
    const eve = await near.account()
    const socket = await openSocket(far.url, { cookie: eve.cookie })
    // Never published, as if the signal had been lost.
    await admin.query('delete from auth_session where account_id = $1', [eve.id])
    await admin.query(`
      select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'cellkeep bus' and datname = current_database()`)
    expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
    await hears(far, near)
    await hears(near, far)
  })
})

describe('a connection for signals that is stuck', () => {
  it('holds up no mutation and no socket of its own node; what waits goes as soon as it moves', async () => {
    const { rows } = await admin.query(`
      select pid from pg_stat_activity where application_name = 'cellkeep bus' and datname = current_database()`)
    const eve = await near.account()
    const sockets = await Promise.all([near, far].map(({ url }) => openSocket(url, { cookie: eve.cookie })))
    const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
      for (const { pid } of rows) process.kill(pid, name)
    }
    signal('SIGSTOP')
    try {
      await eve.client.cell_create({ data: {} })
      await eve.client.account_session_revoke_all()
      expect(await sockets[0]?.closed).toEqual({ code: 4001, reason: 'revoked' })
      expect(sockets[1]?.order).toEqual([])
    } finally {
      signal('SIGCONT')
    }
    expect(await sockets[1]?.closed).toEqual({ code: 4001, reason: 'revoked' })
  })
})

describe('more than a node can hold while it cannot tell the others', () => {
  it('becomes the hint to look at everything', async () => {
    const eve = await near.account()
    const socket = await openSocket(far.url, { cookie: eve.cookie })
    const { rows } = await admin.query(`
      select pid from pg_stat_activity where application_name = 'cellkeep bus' and datname = current_database()`)
    const told: number[] = []
    const deaf = far.service.app.hub.listen(({ notifications }) => void told.push(notifications.length))
    for (const { pid } of rows) process.kill(pid, 'SIGSTOP')
    try {
      // Never published, so only a full recheck finds it.
      await admin.query('delete from auth_session where account_id = $1', [eve.id])
      for (let number = 0; number < 3000; number++) near.service.app.hub.publish(revocation(ada.id, number))
    } finally {
      for (const { pid } of rows) process.kill(pid, 'SIGCONT')
    }
    expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
    expect(told.reduce((sum, count) => sum + count, 0)).toBeLessThan(1100)
    deaf()
  })
})

describe('an operator command in another process', () => {
  it('closes the sockets of what it ends', async () => {
    const space = await workspace()
    const eve = await near.account({ username: 'eve' })
    const sockets = await Promise.all([near, far].map(({ url }) => openSocket(url, { cookie: eve.cookie })))
    const env = { CELLKEEP_DATABASE_URL: near.databaseUrl }
    const { code, stderr } = await runCellkeep(
      await space.make('command'),
      ['session', 'revoke-all', 'eve'],
      env,
    )
    expect([code, stderr]).toEqual([0, expect.any(String)])
    for (const socket of sockets) expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
    await space.remove()
  })
})

describe('while the database is away', () => {
  it('messages and upgrades are 503, heartbeats are answered, and all goes on when it is back', async () => {
    const cluster = await stoppableCluster()
    const nodes = [
      await testService({ database_url: cluster.url }),
      await testService({ database_url: cluster.url }),
    ] as const
    const [one, other] = nodes
    const bob = await one.account()
    const socket = await openSocket(one.url, { cookie: bob.cookie })
    const far = await openSocket(other.url, { cookie: bob.cookie })
    for (const { call } of [socket, far]) expect(outcomeOf(await call('account_verify'))).toBe('ok')
    await cluster.stop()
    for (const method of ['account_verify', 'cell_list', 'account_session_revoke_all'])
      expect(outcomeOf(await socket.call(method))).toBe('-32007 service_unavailable')
    expect(await socket.call('heartbeat')).toMatchObject({ result: {} })
    const refused = await refusedUpgrade(one.url, { cookie: bob.cookie })
    expect([refused.status, refused.json]).toMatchObject([503, { error: 'service_unavailable' }])
    expect(refused.headers).not.toHaveProperty('set-cookie')
    await one.service.app.hub.check()
    await cluster.start()
    await expect.poll(async () => outcomeOf(await socket.call('account_verify'))).toBe('ok')
    await hears(other, one)
    expect(outcomeOf(await socket.call('account_session_revoke_all'))).toBe('ok')
    for (const { closed } of [socket, far]) expect(await closed).toEqual({ code: 4001, reason: 'revoked' })
    for (const node of nodes) await node.close()
    await cluster.remove()
  })
})
