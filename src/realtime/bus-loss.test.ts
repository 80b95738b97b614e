import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import { afterAll, expect, it, onTestFinished, vi } from 'vitest'
import { openStream } from '../../test/helpers/audit-streams.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { call, dataOf, rpc, send } from '../../test/helpers/http.ts'
import { postgresProxy } from '../../test/helpers/postgres-proxy.ts'
import { openSocket } from '../../test/helpers/sockets.ts'
import { defaultSchema } from '../db/servers/locate.ts'
import { toUrl } from '../testing/cluster.ts'
import { testService } from '../testing/index.ts'

// Fakes the intervals, so that only signals and pings work until a test lets the time of the regular checks pass.
vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })

/** Sits between the bus of the far node and its database; other connections pass. */
const wire = {
  ...{ isCut: false, isSwallowing: false, losesCommits: false, endsListener: false, losesSignals: 0 },
  ...{ refusesSignals: false, endsAsking: false },
  buses: new Set<Socket>(),
}
/** The database ends the connection, and before that it may report that it is ready. */
const ended = Buffer.concat([
  Buffer.from('450000001f', 'hex'),
  Buffer.from('SFATAL\0C57P01\0Mterminated\0\0'),
])
const readyAndEnded = Buffer.concat([Buffer.from('5a0000000549', 'hex'), ended])
const near = await testService()
const proxy = await postgresProxy({ connectionString: near.databaseUrl }, (client, server) => {
  let isBus = false
  client.once('data', (first: Buffer) => {
    isBus = first.includes('cellkeep bus')
    if (isBus) wire.buses.add(client)
    if (isBus && wire.isCut) return void client.destroy()
    server.write(first)
    client.on('data', (chunk: Buffer) => {
      if (isBus && wire.endsAsking && chunk.includes('pg_notify')) {
        wire.endsAsking = false
        wire.isCut = true
        return void client.end(ended)
      }
      if (isBus && wire.refusesSignals)
        return void server.write(
          Buffer.from(chunk.toString('latin1').replace('pg_notify', 'no_notify'), 'latin1'),
        )
      if (!(isBus && wire.losesSignals > 0 && chunk.includes('v1 '))) return void server.write(chunk)
      wire.losesSignals -= 1
      client.destroy()
    })
  })
  let rest = Buffer.alloc(0)
  server.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    for (;;) {
      const length = rest.length < 5 ? Number.POSITIVE_INFINITY : 1 + rest.readUInt32BE(1)
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      const isNotification = message[0] === 'A'.charCodeAt(0)
      if (wire.losesCommits && (message.includes('COMMIT\0') || message.includes('audit_report\0')))
        return void client.destroy()
      if (isBus && wire.endsListener && message.includes('LISTEN\0')) {
        wire.endsListener = false
        return void client.end(Buffer.concat([message, readyAndEnded]))
      }
      if (!(isBus && isNotification && wire.isSwallowing)) client.write(message)
    }
  })
})
const database_url = toUrl({ ...proxy.connection, schema: defaultSchema })
const far = await testService({ database_url, audit_stream: true })
const { app } = far.service
const ada = await near.account({ roles: ['admin'] })
afterAll(async () => {
  vi.useRealTimers()
  await far.close()
  await near.close()
  await proxy.close()
})
const ready = async () => (await send(far.url, { path: '/ready' })).json

it('a node that was cut off catches up once it is back: with ended credentials, and with rows of the log', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  const bob = await near.account()
  const tokens = await Promise.all(Array.from({ length: 10 }, () => tokenOf(near, bob)))
  const sockets = await Promise.all(tokens.map(({ headers }) => openSocket(far.url, headers)))
  const stream = await openStream(far, { cookie: ada.cookie })
  wire.isCut = true
  for (const bus of wire.buses) bus.destroy()
  await expect.poll(() => app.bus.isUp).toBe(false)
  await Promise.all(tokens.map(({ id }) => bob.client.account_token_revoke({ token_id: id })))
  // The sockets have not heard of the revocations.
  expect(sockets.map(({ order }) => order)).toEqual(tokens.map(() => []))
  wire.isCut = false
  for (const { closed } of sockets) expect(await closed).toEqual({ code: 4001, reason: 'revoked' })
  const revoked = (await stream.take(tokens.length)).map(({ text }) => text)
  expect(revoked.every((text) => text.includes('token_revoke'))).toBe(true)
  stream.leave()
  await expect.poll(() => app.bus.isUp).toBe(true)
})

it('what was revoked by a commit whose answer was lost is closed on every node', async () => {
  const bob = await near.account()
  const { id, headers } = await tokenOf(near, bob)
  const sockets = await Promise.all([far, near].map(({ url }) => openSocket(url, headers)))
  wire.losesCommits = true
  const answer = await rpc(far.url, call('account_token_revoke', { token_id: id }), { cookie: bob.cookie })
  wire.losesCommits = false
  expect(dataOf(answer)).toMatchObject({ reason: 'service_unavailable', outcome: 'unknown' })
  for (const { closed } of sockets) expect(await closed).toEqual({ code: 4001, reason: 'revoked' })
})

it('the same for a session that one statement has ended', async () => {
  const bob = await near.account()
  const sockets = await Promise.all([far, near].map(({ url }) => openSocket(url, { cookie: bob.cookie })))
  wire.losesCommits = true
  const { status, json } = await send(far.url, {
    method: 'POST',
    path: '/api/account/logout',
    headers: { cookie: bob.cookie },
  })
  wire.losesCommits = false
  expect([status, json]).toMatchObject([503, { error: 'service_unavailable', outcome: 'unknown' }])
  for (const { closed } of sockets) expect(await closed).toEqual({ code: 4001, reason: 'revoked' })
}, 10_000)

it('what a node revokes while its connection for signals is lost is closed on the others', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  const bob = await near.account()
  const { id, headers } = await tokenOf(near, bob)
  const socket = await openSocket(near.url, headers)
  wire.losesSignals = 1
  await rpc(far.url, call('account_token_revoke', { token_id: id }), { cookie: bob.cookie })
  expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
  expect(wire.losesSignals).toBe(0)
})

it('what a lost signal closes is sent again, but no notification, which must not arrive twice', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  const heard: number[][] = []
  const deaf = near.service.app.hub.listen(({ notifications, closings }) => {
    if (closings.length > 0) heard.push([notifications.length, closings.length])
  })
  onTestFinished(deaf)
  wire.losesSignals = 1
  const [account_id, actor_id] = [randomUUID(), randomUUID()]
  app.hub.publish({
    notifications: [{ method: 'role_grant_revoke', account_id, params: {} } as never],
    closings: [{ kind: 'actor', actor_id }],
    wroteAudit: false,
  })
  await expect.poll(() => heard).toEqual([[0, 1]])
})

it('what is lost again and again, with ever more to tell, becomes the hint to look at everything', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  const heard: number[] = []
  const deaf = near.service.app.hub.listen(({ closings }) => void heard.push(closings.length))
  onTestFinished(deaf)
  const publish = () => {
    const closings = Array.from({ length: 600 }, () => ({ kind: 'actor' as const, actor_id: randomUUID() }))
    app.hub.publish({ notifications: [], closings, wroteAudit: false })
  }
  wire.losesSignals = 2
  for (const left of [1, 0]) {
    publish()
    await expect.poll(() => wire.losesSignals).toBeLessThanOrEqual(left)
  }
  publish()
  await expect.poll(() => heard.length).toBeGreaterThan(0)
  expect(Math.max(...heard)).toBeLessThanOrEqual(1_600)
})

it('a connection for signals that ends with the answer to LISTEN is opened again', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  wire.endsListener = true
  for (const bus of wire.buses) bus.destroy()
  await expect.poll(() => [wire.endsListener, app.bus.isUp]).toEqual([false, true])
})

async function saysThatItIsDeaf(): Promise<void> {
  vi.advanceTimersByTime(60_000)
  await expect.poll(ready).toEqual({ ready: true, warnings: ['bus_deaf'] })
  expect(app.bus.isUp).toBe(false)
}
async function recovers(): Promise<void> {
  await expect
    .poll(() => {
      vi.advanceTimersByTime(60_000)
      return ready()
    })
    .toEqual({ ready: true })
  expect(app.bus.isUp).toBe(true)
}

it('a node that hears nothing says so within a minute, checks by itself, and recovers', async () => {
  const bob = await near.account()
  const { id, headers } = await tokenOf(near, bob)
  const socket = await openSocket(far.url, headers)
  wire.isSwallowing = true
  await saysThatItIsDeaf()
  await bob.client.account_token_revoke({ token_id: id })
  vi.advanceTimersByTime(25_000)
  expect(await socket.closed).toEqual({ code: 4001, reason: 'revoked' })
  wire.isSwallowing = false
  await recovers()
})

it('a node whose signals the database refuses, as where its queue of them is full, says so too', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  wire.refusesSignals = true
  await saysThatItIsDeaf()
  wire.refusesSignals = false
  await recovers()
})

it('a node whose connection for signals ends while it asks whether it hears is not called deaf', async () => {
  await expect.poll(() => app.bus.isUp).toBe(true)
  wire.endsAsking = true
  for (const bus of wire.buses) bus.destroy()
  await expect.poll(() => [wire.isCut, app.bus.isUp]).toEqual([true, false])
  expect(await ready()).toEqual({ ready: true })
  wire.isCut = false
  await expect.poll(() => app.bus.isUp).toBe(true)
})
