import { once } from 'node:events'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openStream, signalRows, streamPath, writeRows } from '../../test/helpers/audit-streams.ts'
import { tokenOf } from '../../test/helpers/callers.ts'
import { capturedLog } from '../../test/helpers/captured-log.ts'
import { open, send, untilClosed } from '../../test/helpers/http.ts'
import { serve } from '../http/listen.ts'
import { type TestOptions, testService } from '../testing/index.ts'

async function started(options: TestOptions = {}) {
  const log = capturedLog()
  const test = await testService({ audit_stream: true, log: log.log, ...options })
  onTestFinished(() => test.close())
  const admin = await test.account({ roles: ['admin'] })
  const ended = () => log.lines().flatMap(({ msg, reason }) => (msg === 'audit stream ended' ? [reason] : []))
  return { test, admin, ended, open: (headers: Record<string, string>) => openStream(test, headers) }
}

const closeOf = (reason: string) => ({ event: 'close', data: { reason } })

describe('the caps of audit streams', () => {
  it('an eleventh stream of a credential closes the oldest; other credentials are counted apart', async () => {
    const { test, admin, open } = await started()
    const { headers } = await tokenOf(test, admin)
    const ofSession = await open({ cookie: admin.cookie })
    const streams = []
    for (let nth = 1; nth <= 11; nth++) streams.push(await open(headers))
    const [first, ...others] = streams
    expect(await first?.rest()).toMatchObject([closeOf('too_many_streams')])
    await writeRows(test, 1)
    for (const stream of [ofSession, ...others])
      expect(await stream.take(1)).toMatchObject([{ event: 'message' }])
  })

  it('the cap per credential is a setting', async () => {
    const { admin, open } = await started({ sse_per_credential: 1 })
    const first = await open({ cookie: admin.cookie })
    await open({ cookie: admin.cookie })
    expect(await first.rest()).toMatchObject([closeOf('too_many_streams')])
  })

  it('over the cap of the process a stream is refused as busy; one that leaves makes room', async () => {
    const { test, admin, ended, open } = await started({ max_connections: 2 })
    const streams = [await open({ cookie: admin.cookie }), await open({ cookie: admin.cookie })]
    const refused = await send(test.url, { path: streamPath, headers: { cookie: admin.cookie } })
    expect(refused).toMatchObject({ status: 503, json: { error: 'busy', retry_after: 1 } })
    expect(refused.headers['retry-after']).toBe('1')
    streams[0]?.leave()
    await expect.poll(ended).toEqual(['client_left'])
    expect((await open({ cookie: admin.cookie })).status).toBe(200)
  })

  it('streams that replay use few connections of the pool at once', async () => {
    const { test, admin } = await started({ sse_per_credential: 12 })
    const rows = 500
    await writeRows(test, rows, 4000)
    const watcher = new pg.Client(test.databaseUrl)
    await watcher.connect()
    onTestFinished(() => watcher.end())
    const streams = await Promise.all(
      // Streams at the same position would share their pages.
      Array.from({ length: 12 }, (_, at) => openStream(test, { cookie: admin.cookie }, `?after=${at}`)),
    )
    let isOver = false
    const replayed = Promise.all(streams.map((stream) => stream.take(rows - 12))).finally(() => {
      isOver = true
    })
    let most = 0
    while (!isOver) {
      const { rowCount } = await watcher.query(`
        select from pg_stat_activity where state = 'active' and query like '%from audit_log l%'
          and datname = current_database() and pid <> pg_backend_pid()`)
      most = Math.max(most, rowCount ?? 0)
    }
    await replayed
    // Two replays, and the reader of new rows.
    expect(most).toBeLessThanOrEqual(3)
    for (const stream of streams) stream.leave()
  })

  it('a client that ends its side has left, and its connection is closed at once', async () => {
    const { test, admin, ended } = await started()
    const socket = await open(test.url)
    const closed = untilClosed(socket)
    socket.write(`GET ${streamPath} HTTP/1.1\r\nHost: x\r\nCookie: ${admin.cookie}\r\n\r\n`)
    await once(socket, 'data')
    socket.end()
    expect(await closed).not.toContain('keep-alive\n')
    await expect.poll(ended).toEqual(['client_left'])
  })

  it('a reader that stops reading is closed as slow, and loses nothing by coming back with its last id', async () => {
    const { test, admin, ended, open } = await started()
    const [slow, quick] = [await open({ cookie: admin.cookie }), await open({ cookie: admin.cookie })]
    slow.pause()
    let written = 0
    // What is in the TCP buffers is not queued in the service.
    while (ended().length === 0) {
      written += await writeRows(test, 300, 8_000)
      signalRows(test)
      await quick.take(300)
    }
    expect(ended()).toEqual(['slow_consumer'])
    slow.resume()
    const rows = (await slow.rest()).filter(({ event }) => event === 'message')
    const seqs = rows.map(({ id }) => id)
    const again = await open({ cookie: admin.cookie, 'last-event-id': String(seqs.at(-1)) })
    while (seqs.length < written) seqs.push(...(await again.take(1)).map(({ id }) => id))
    expect(seqs).toEqual(Array.from({ length: written }, (_, index) => (seqs[0] as number) + index))
  })
})

describe('audit streams of a service that stops', () => {
  it('end with shutdown, behind what was written before; no other begins', async () => {
    const { test, admin, open } = await started()
    const streams = [await open({ cookie: admin.cookie }), await open({ cookie: admin.cookie })]
    await writeRows(test, 1)
    for (const stream of streams) await stream.take(1)
    test.service.leave('leaving')
    const late = await open({ cookie: admin.cookie })
    expect(late.status).toBe(200)
    test.service.leave('draining')
    for (const stream of [...streams, late]) expect(await stream.rest()).toMatchObject([closeOf('shutdown')])
    const refused = await send(test.url, { path: streamPath, headers: { cookie: admin.cookie } })
    expect([refused.status, refused.json]).toEqual([503, { error: 'shutting_down' }])
  })

  it('do not hold up the drain, not even one whose client reads nothing', async () => {
    const { test, admin } = await started()
    const serving = await serve(test.service)
    const stream = await openStream(serving, { cookie: admin.cookie })
    const stalled = await openStream(serving, { cookie: admin.cookie })
    stalled.pause()
    const isClean = await serving.drain(AbortSignal.timeout(30_000))
    expect(isClean).toBe(true)
    expect(await stream.rest()).toMatchObject([closeOf('shutdown')])
  })
})
